"""Slides of a chapter: one file that moves without a network, turns by keys, prints."""

import io
import json
import re
import unicodedata
from functools import cache

import pytest
from playwright.sync_api import expect
from pypdf import PdfReader

from tools import slides
from tools.command import ROOT, PipelineError
from tools.serve import HTML
from tools.site.markup import parsed, with_plain_formulas
from tools.verdicts import STATEMENT

CHAPTERS = slides.chapters(None)
SPHERE = "chapters/4-mean-field-sphere.html"


@pytest.fixture(scope="module")
def decks(site, browser, tmp_path_factory):
    """Decks as files, each made once."""
    folder, made = tmp_path_factory.mktemp("slides"), {}

    def deck(address):
        if address not in made:
            made[address] = folder / f"{address.replace('/', '-')}"
            text = slides.deck(browser, site, ROOT / HTML, address)
            made[address].write_text(text, "utf-8")
        return made[address]

    return deck


@pytest.fixture
def shown(browser, decks):
    """Open a deck as a file, without a network; what it complains of is collected."""
    contexts = []

    def show(address, **options):
        context = browser.new_context(offline=True, **options)
        contexts.append(context)
        tab, seen = context.new_page(), []
        tab.on("console", lambda m: seen.append(m.text) if m.type == "error" else None)
        tab.on("pageerror", lambda error: seen.append(str(error)))
        tab.on("request", lambda r: seen.append(r.url))
        tab.goto(decks(address).as_uri())
        tab.locator("body[data-ready]").wait_for(state="attached")
        own = [url for url in seen if url == decks(address).as_uri()]
        assert len(own) == 1
        seen.remove(own[0])
        return tab, seen

    yield show
    for context in contexts:
        context.close()


@cache
def tree(path):
    return parsed(with_plain_formulas(path.read_text("utf-8")))


def parts(path, kind):
    return tree(path).select(f".slide-{kind}")


@pytest.mark.parametrize("address", CHAPTERS)
def test_deck_has_what_its_chapter_has(decks, shown, address):
    path = decks(address)
    assert path.stat().st_size <= slides.BUDGET
    article = tree(ROOT / HTML / address).select_one("article")
    text = (ROOT / address).with_suffix(".md").read_text("utf-8")
    labels = [label for _, label in STATEMENT.findall(text)]
    assert len(parts(path, "title")) == 1
    told = [e["id"] for s in parts(path, "statement") for e in s.select(".proof[id]")]
    assert told == labels
    folded = ["fold", "checks", "sd-dropdown"]  # a section with a star is on slides
    figures = [
        f for f in article.select("figure") if not f.find_parent("details", folded)
    ]
    assert len(parts(path, "figure")) == len(figures)
    assert len(parts(path, "section")) == len(
        [h for h in article.select("h2") if not re.fullmatch(slides.LEFT_OUT, words(h))]
    )
    questions = parts(path, "question")
    assert questions and all(each.select("details") for each in questions)
    code = [e for e in article.select(".cell_input")]
    assert code and not tree(path).select("main :is(pre, a, [onclick])")
    tab, seen = shown(address)
    assert tab.evaluate("""document.fonts.ready.then(() => {
      const letters = [...document.querySelectorAll('mjx-c')];
      const formulas = [...document.querySelectorAll('mjx-container')];
      return formulas.length > 0
        && formulas.every((each) => each.querySelector('mjx-c'))
        && letters.every((each) =>
          getComputedStyle(each, '::before').content !== 'none');
    })""")
    fonts = tab.evaluate(
        "document.fonts.ready.then(() => [...document.fonts].map((f) => f.status))"
    )
    assert "error" not in fonts
    assert [each for each in seen if not each.startswith("data:")] == []


def words(heading):
    return re.sub(r"^[\d.]+\s*", "", heading.get_text().strip()).rstrip("#")


def test_keys_buttons_and_addresses_turn_the_slides(shown):
    tab, _ = shown(SPHERE)
    number = tab.locator(".deck-number")
    count = tab.locator(".slide").count()

    def at(place):
        assert number.inner_text() == f"{place} / {count}"
        assert tab.locator(".slide-shown").count() == 1
        assert tab.url.endswith(f"#{place}")

    at_start = tab.locator(".slide-shown h1")
    assert at_start.is_visible() and number.inner_text() == f"1 / {count}"
    for key, place in (
        ("ArrowRight", 2), ("PageDown", 3), ("ArrowLeft", 2), ("End", count),
        ("ArrowRight", count), ("Home", 1), ("PageUp", 1), (" ", 2),
    ):  # fmt: skip
        tab.keyboard.press(key)
        at(place)
    tab.get_by_role("button", name="Forth").click()
    at(3)
    tab.get_by_role("button", name="Back").click()
    at(2)
    tab.evaluate("location.hash = '#7'")
    tab.locator(".slide:nth-child(7).slide-shown").wait_for()
    assert number.inner_text() == f"7 / {count}"


def test_answer_comes_before_the_next_slide(shown):
    tab, _ = shown(SPHERE)
    place = tab.evaluate(
        "[...document.querySelectorAll('.slide')].findIndex("
        "(s) => s.matches('.slide-question')) + 1"
    )
    tab.evaluate(f"location.hash = '#{place}'")
    answer = tab.locator(".slide-shown details > div")
    tab.locator(".slide-shown.slide-question").wait_for()
    assert not answer.is_visible()
    tab.keyboard.press("ArrowRight")
    assert answer.is_visible()
    tab.keyboard.press("ArrowRight")
    assert tab.locator(".deck-number").inner_text().startswith(f"{place + 1} /")


def test_exhibits_move_without_a_network(shown):
    tab, seen = shown(SPHERE, reduced_motion="reduce")
    tab.evaluate("location.hash = '#2'")
    exhibit = tab.locator(".slide-shown .book-exhibit.exhibit-moves")
    exhibit.wait_for()
    note = exhibit.locator(".exhibit-note")
    before = note.inner_text()
    assert "tokens" in before and "Stored" not in before
    exhibit.get_by_role("button", name="Step").click()
    tab.wait_for_function(
        "(before) => document.querySelector('.slide-shown .exhibit-note').innerText"
        " !== before",
        arg=before,
    )
    slider = exhibit.locator("input[type=range]").first
    slider.focus()
    tab.keyboard.press("ArrowLeft")  # moves the slider, and turns no slide
    assert tab.locator(".deck-number").inner_text().startswith("2 /")
    assert [each for each in seen if not each.startswith("data:")] == []


def test_explorers_move(shown):
    tab, _ = shown(SPHERE, reduced_motion="reduce")
    place = tab.evaluate(
        "[...document.querySelectorAll('.slide')].findIndex("
        "(s) => s.querySelector('.book-explorer')) + 1"
    )
    tab.evaluate(f"location.hash = '#{place}'")
    explorer = tab.locator(".slide-shown .book-explorer")
    explorer.wait_for()
    before = explorer.locator("svg").inner_html()
    explorer.locator("input").last.focus()
    tab.keyboard.press("End")
    assert explorer.locator("svg").inner_html() != before


SCREENS = [(1280, 720), (1920, 1080), (1024, 768), (390, 844)]
# One deck on all screens, the others on the first; once a week all on all.
DAILY = [(SPHERE, size) for size in SCREENS]
DAILY += [(address, SCREENS[0]) for address in CHAPTERS if address != SPHERE]
WEEKLY = [
    pytest.param(address, size, marks=pytest.mark.slow)
    for address in CHAPTERS
    for size in SCREENS
    if (address, size) not in DAILY
]


@pytest.mark.parametrize(("address", "size"), [*DAILY, *WEEKLY])
def test_nothing_leaves_its_slide(shown, address, size):
    """With every answer open and every exhibit moving."""
    tab, _ = shown(
        address, viewport={"width": size[0], "height": size[1]}, reduced_motion="reduce"
    )
    for place in range(1, tab.locator(".slide").count() + 1):
        tab.evaluate(f"location.hash = '#{place}'")
        tab.locator(f".slide:nth-child({place}).slide-shown").wait_for(state="attached")
        for exhibit in tab.locator(".slide-shown [data-exhibit]").all():
            expect(exhibit).to_contain_class("exhibit-moves")
        fault = tab.evaluate("""async () => {
          const body = document.querySelector('.slide-shown .slide-body');
          body.querySelectorAll('details').forEach((fold) => (fold.open = true));
          // What a figure has grown by is answered in the second frame.
          const frame = () => new Promise(requestAnimationFrame);
          for (let count = 0; count < 3; count++) await frame();
          const { left, right } = body.getBoundingClientRect();
          const wide = [...body.querySelectorAll('p, figure, svg, .proof, h1, h2')]
            .map((e) => e.getBoundingClientRect()).filter((b) => b.width > 0)
            .some((b) => b.right > right + 1 || b.left < left - 1);
          const high = innerWidth > 700 && body.scrollHeight > body.clientHeight + 1;
          const cut = [...body.querySelectorAll('mjx-container[display="true"]')]
            .some((e) => e.scrollWidth > e.clientWidth + 1);
          return [wide, high, cut, document.documentElement.scrollWidth > innerWidth];
        }""")
        assert fault == [False, False, False, False], place


def test_deck_is_printed_one_slide_a_sheet_with_answers(shown):
    tab, _ = shown(SPHERE)
    count = tab.locator(".slide").count()
    document = PdfReader(io.BytesIO(tab.pdf(prefer_css_page_size=True)))
    assert len(document.pages) == count
    assert {tuple(map(round, p.mediabox[2:])) for p in document.pages} == {(960, 540)}
    asked = tab.evaluate(
        "[...document.querySelectorAll('.slide')].map("
        "(s) => [...s.querySelectorAll('details > div p')].flatMap((p) =>"
        " [...p.childNodes]).find((n) => n.nodeType === 3 && n.data.trim().length > 15)"
        "?.data.trim().slice(0, 15))"
    )
    source = (ROOT / "chapters/4-mean-field-sphere.md").read_text("utf-8")
    questions = re.findall(r"^:+\{dropdown\} (?:Answer|Checkpoint|Guess)", source, re.M)
    assert sum(map(bool, asked)) == len(questions) >= 2
    assert tab.locator(".slide-question").count() == len(questions)
    for sheet, answer in zip(document.pages, asked, strict=True):
        if answer:
            text = unicodedata.normalize("NFKC", sheet.extract_text())  # ligatures
            assert " ".join(answer.split()) in " ".join(text.split())


def test_font_that_is_not_used_stays_behind(tmp_path):
    (tmp_path / slides.FONTS).mkdir()
    (tmp_path / slides.FONTS / "A.woff").write_bytes(b"a")
    face = '@font-face {{ font-family: {0}; src: url("x/{0}.woff") format("woff"); }}'
    styles = f"i {{ color: red }} {face.format('A')} {face.format('B')}"
    made = slides.with_fonts(styles, ['"A"'], tmp_path)
    assert "data:font/woff;base64,YQ==" in made and "B" not in made
    assert "color: red" in made


def test_modules_find_each_other_by_name(tmp_path):
    (tmp_path / "kernels").mkdir()
    (tmp_path / "exhibit.mjs").write_text(
        'import { a } from "./random.mjs";\nconst b = () => import("./globe.mjs");\n'
        "import(`./kernels/${name}.mjs`);\n"
    )
    for name in ("random", "globe", "kernels/step"):
        (tmp_path / f"{name}.mjs").write_text("export default 1;\n")
    described = json.dumps({"script": "globe", "kernels": {"step": "step"}})
    exhibit = (
        '<figure class="book-exhibit"><script type="application/json">'
        f"{described}</script></figure>"
    )
    made = dict(slides.bundled(exhibit, tmp_path))
    assert set(made) == {
        "exhibit.mjs", "random.mjs", "globe.mjs", "kernels/step.mjs"
    }  # fmt: skip
    assert "./" not in made["exhibit.mjs"]
    assert made["exhibit.mjs"].count("book/") == 3


@pytest.mark.parametrize("asked", ["9", "0", "sphere", "4.0"])
def test_unknown_chapter_is_one_sentence(asked):
    with pytest.raises(
        PipelineError, match=f"'{asked}' is no chapter; there are: 1, 2"
    ):
        slides.chapters(asked)


def test_deck_that_is_too_large_is_refused_and_not_written(tmp_path, monkeypatch):
    (tmp_path / "_build").mkdir()
    monkeypatch.setattr(slides, "ROOT", tmp_path)
    monkeypatch.setattr(slides, "fresh_site", lambda: ROOT / HTML)
    monkeypatch.setattr(slides, "required_browser", lambda purpose: "none")
    monkeypatch.setattr(slides, "launched", lambda path: slides.served(tmp_path))
    monkeypatch.setattr(slides, "deck", lambda *args: "x" * (slides.BUDGET + 1))
    monkeypatch.setattr("sys.argv", ["slides", "4"])
    with pytest.raises(PipelineError, match="more than 2000000"):
        slides.main()
    assert not list((tmp_path / slides.TARGET).iterdir())
