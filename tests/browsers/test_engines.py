"""The site in Firefox and in WebKit: what a reader does first, at both widths.

Deselected unless asked for: `make browsers`.
"""

import os

import pytest
from test_live import free_port, started
from test_site import CHAPTER, LANDING, SIZES, pages

from tools import engines

pytestmark = pytest.mark.browsers
ENGINES = ("firefox", "webkit")

FAULTS = """
const seen = (e) => e.checkVisibility?.() ?? e.offsetParent !== null;
const all = (selector) => [...document.querySelectorAll(selector)].filter(seen);
const width = (e) => e?.getBoundingClientRect().width ?? 0;
const letters = (e) => [...e.querySelectorAll("mjx-c")];
const drawn = (e) => width(e.querySelector("mjx-container")) > 0
  && letters(e).every((c) => getComputedStyle(c, "::before").content !== "none");
const PARTS = { "mfrac, mover, munder, msub, msup, mroot": 2,
  "msubsup, munderover": 3 };
const text = document.querySelector(".bd-article, #search-results")?.innerText ?? "";
return {
  "too few words": text.length < 100 && !location.pathname.endsWith("search.html"),
  "formulas as source": all(".bd-article .math").filter((e) => !drawn(e)).length,
  "formulas without all parts": Object.entries(PARTS).flatMap(([names, count]) =>
    [...document.querySelectorAll(names)].filter((e) => e.childElementCount !== count),
  ).length,
  "pixels to scroll sideways": document.documentElement.scrollWidth - innerWidth,
  "figures too small": all(".book-figure svg").filter((e) => width(e) < 100).length,
};"""
SLIDERS = '[...document.querySelectorAll(".book-explorer input[type=range]")]'
TO_FIRST_STOP = f"""
const input = {SLIDERS}[values[0]];
document.querySelectorAll("details").forEach((fold) => {{
  if (fold.contains(input)) fold.open = true;
}});
input.scrollIntoView({{ block: "center" }});
input.value = 0;
input.dispatchEvent(new Event("input", {{ bubbles: true }}));
input.focus();"""
STATE = f"""
const input = {SLIDERS}[values[0]];
const figure = input.closest(".book-explorer");
const inputs = [...figure.querySelectorAll("input[type=range]")];
return {{
  stop: input.value,
  said: input.getAttribute("aria-valuetext"),
  written: figure.querySelectorAll("output")[inputs.indexOf(input)].textContent,
  label: figure.querySelector("[aria-label]").getAttribute("aria-label"),
  drawn: figure.firstElementChild.innerHTML,
}};"""
INK = """
const of = (selector, name) =>
  getComputedStyle(document.querySelector(selector))[name];
return [of(".book-figure svg", "color"), of("body", "backgroundColor")].join(" ");"""
EDITOR = 'document.querySelector("pre[contenteditable]")'
CODE = f"return {EDITOR}.innerText.trimEnd()"
OUTPUT = f'return {EDITOR}.closest(".cell").querySelector(".cell_output").innerText'


@pytest.fixture(scope="session", params=ENGINES)
def running(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    try:
        if request.param == "firefox":
            browser = engines.firefox(folder)
        else:
            browser = engines.webkit(folder, free_port(), dict(os.environ))
        with browser as engine:
            print(engine.name)
            yield engine
    except engines.Missing as error:
        pytest.fail(str(error))


@pytest.fixture(params=SIZES)
def engine(running, request):
    running.resize(*SIZES[request.param])
    return running


@pytest.fixture(scope="session")
def live(tmp_path_factory):
    with started(tmp_path_factory.mktemp("home")) as (_, address):
        yield address


def says(engine, words):
    """Wait until a live page says these words."""
    line = 'document.querySelector(".live-says").innerText'
    engine.wait(f"return {line}.includes(values[0])", words)


def test_every_page_shows_text_and_mathematics(engine, site):
    problems = []
    for name in pages():
        engine.goto(site + name)
        faults = [f"{n} {what}" for what, n in engine.run(FAULTS).items() if n > 0]
        faults += engine.complaints()
        faults += [f"asked {address}" for address in engine.foreign(site)]
        problems += [f"{name}: {each}" for each in faults]
    assert problems == []


def test_every_slider_moves_its_picture_by_the_keyboard(engine, site):
    moved = 0
    for name in pages():
        engine.goto(site + name)
        for number in range(engine.run(f"return {SLIDERS}.length")):
            engine.run(TO_FIRST_STOP, number)
            before = engine.run(STATE, number)
            engine.press("ArrowRight")
            engine.wait(f'return {SLIDERS}[values[0]].value !== "0"', number)
            after = engine.run(STATE, number)
            place = f"{name}, slider {number}"
            assert (before["stop"], after["stop"]) == ("0", "1"), place
            assert after["said"] == after["written"] != before["written"], place
            assert after["label"] != before["label"], place
            assert after["drawn"] != before["drawn"], place
            moved += 1
        assert engine.complaints() == [], name
    assert moved >= 10


GLOBE = 'document.querySelector(".book-exhibit[data-exhibit=globe]")'
BUTTON = """
[...document.querySelectorAll(".exhibit-buttons button")].find(
  (each) => each.textContent === values[0])"""
SAID = f'{GLOBE}.querySelector(".exhibit-note").textContent'
PICTURE = f'{GLOBE}.querySelector(".exhibit-globe").toDataURL()'


@pytest.mark.parametrize("name", [LANDING, "chapters/4-mean-field-sphere.html"])
def test_the_globe_computes_in_the_browser(engine, site, name):
    engine.goto(site + name)
    engine.wait(f"return {SAID}.startsWith('Time')")
    engine.run(f"{GLOBE}.scrollIntoView()")
    # It moves by itself, unless the system of this machine asks for less motion.
    if engine.run(f"return Boolean({BUTTON})", "Pause"):
        first = engine.run(f"return {PICTURE}")
        engine.wait(f"return {PICTURE} !== values[0]", first)
        engine.run(f"{BUTTON}.click()", "Pause")
    engine.wait(f"return Boolean({BUTTON})", "Play")
    before = engine.run(f"return {PICTURE}")
    engine.run(f"{BUTTON}.click()", "Step")
    engine.wait(f"return {PICTURE} !== values[0]", before)
    engine.run(f"{BUTTON}.click()", "Draw again")
    engine.wait(f"return {SAID}.startsWith('Time')")
    engine.run(f'{GLOBE}.querySelector(".exhibit-globe").focus()')
    before = engine.run(f"return {PICTURE}")
    engine.press("ArrowLeft")
    engine.wait(f"return {PICTURE} !== values[0]", before)
    assert "NaN" not in engine.run(f"return {SAID}")
    assert engine.complaints() == []


def test_search_finds_rank_collapse(engine, site):
    engine.goto(f"{site}search.html?q=rank+collapse")
    links = '[...document.querySelectorAll("#search-results li a")]'
    engine.wait(f'return {links}.some((e) => e.href.includes("/chapters/"))')
    targets = engine.run(f"return {links}.map((e) => e.href)")
    assert engine.complaints() == []
    engine.goto(next(each for each in targets if "/chapters/" in each))
    assert engine.run("return /collapse/i.test(document.body.innerText)")
    assert engine.complaints() == []


def test_theme_changes_the_ink_of_a_figure(engine, site):
    engine.goto(site + CHAPTER)
    shown = set()
    for _ in range(3):  # light, dark, that of the system
        engine.run('document.querySelector(".theme-switch-button").click()')
        shown.add(engine.run(INK))
    engine.run("localStorage.clear()")
    assert len(shown) == 2 and engine.complaints() == []


def test_live_page_runs_an_edited_cell_and_keeps_the_edit(engine, live):
    host = live.partition("chapters")[0]
    engine.goto(host + CHAPTER)
    button = 'document.querySelector(".btn-live-button")'
    assert engine.run(f"return {button}.offsetWidth") > 0
    engine.goto(live)
    says(engine, "Connected")
    book = engine.run(CODE)
    engine.run(f'{EDITOR}.scrollIntoView({{ block: "center" }}); {EDITOR}.focus()')
    # A click puts the caret there; a script that gives the focus, not in every engine.
    engine.run(f"getSelection().selectAllChildren({EDITOR})")
    engine.type("for k in range(2):\nprint(40 + k)")
    mine = "for k in range(2):\n    print(40 + k)"
    assert engine.run(CODE) == mine
    engine.press("Shift+Enter")
    says(engine, "Cell 1 has run")
    assert engine.run(OUTPUT).split() == ["40", "41"]
    assert engine.complaints() == [] and engine.foreign(host) == []
    engine.goto(f"{live.partition('#')[0]}?again")
    says(engine, "Your edits are back")
    assert engine.run(CODE) == mine
    buttons = '[...document.querySelectorAll(".live button")]'
    engine.run(f'{buttons}.find((e) => e.textContent === "Undo my edits").click()')
    assert engine.run(CODE) == book and engine.complaints() == []
