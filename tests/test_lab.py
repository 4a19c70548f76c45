"""Figures in a real JupyterLab: run, trusted but not run, and not trusted."""

import os
import re
from html import unescape

import nbformat
import pytest
from lab_server import furnished, serving
from nbformat.sign import NotebookNotary
from nbformat.v4 import new_code_cell, new_notebook, new_output
from waits import MILLISECONDS

from lib.data import DataUnavailable, fashion_mnist
from tools.command import ROOT
from tools.texts import read_text, texts

CHAPTER = ROOT / "chapters" / "1-softmax-expansion.ipynb"
DRAW = """
import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from lib.figures import explore, figure, style

def draw(**chosen):
    (value,) = chosen.values()
    with style():
        fig = Figure(figsize=(3, 1.5))
        fig.subplots().set(xlim=(0, 1), ylim=(0, 1), title=value)
    alt = f"An empty rectangle & above it, as its title, the value “{value}”."
    return figure(fig, alt=alt, caption="What matters is the title.")

TABLE = {0.25: 0.25, 0.5: 0.5, 1.0: 1.0}

def look_up(τ):
    return draw(τ=TABLE[τ])

def fragile(shift):
    if 0 < shift < 0.1:
        raise ArithmeticError("no <title> for this")
    return draw(shift=shift)
"""
SHOW = [
    "draw(law='uniform')",
    "explore(draw, continuous=True, scale=[0.25, 0.5, 1.0, 2.0])",
    "explore(fragile, continuous=True, shift=[0.0, 0.5, 2.0])",
    "explore(draw, law=['uniform', 'normal'])",
    "explore(look_up, τ=[0.25, 0.5, 1.0])",
]
# Plain matplotlib, in a cell of a reader.
PLAIN = """
fig, ax = plt.subplots()
ax.plot([0, 1], [0, 1], label="a line")
ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="x")
figure(fig, alt="A line from the lower left corner to the upper right one.")
"""
FAILED = "[data-mime-type$='jupyter.error'], [data-mime-type$='jupyter.stderr']"


def small_notebook(*, outputs):
    names, cells = {}, [new_code_cell(source) for source in (DRAW, *SHOW)]
    exec(DRAW, names)
    for cell in cells[1:] if outputs else []:
        value = eval(cell.source, names)
        cell.outputs = [new_output("display_data", value._repr_mimebundle_())]
    if not outputs:
        cells.append(new_code_cell(PLAIN))
    kernel = {"name": "python3", "display_name": "Python 3"}
    return new_notebook(cells=cells, metadata={"kernelspec": kernel})


def notebooks():
    """By their names in the folder; but for one, JupyterLab trusts none of them."""
    return {
        "new": small_notebook(outputs=False),
        "trusted": small_notebook(outputs=True),
        "untrusted": small_notebook(outputs=True),
        "chapter": nbformat.read(CHAPTER, as_version=4),
        "chapter-to-run": nbformat.read(CHAPTER, as_version=4),
    }


def stored_figures(notebook):
    """Description and HTML of each figure among the stored outputs."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    data = [output.get("data", {}) for output in outputs]
    pairs = [(d.get("text/plain"), d.get("text/html", "")) for d in data]
    return [(alt, html) for alt, html in pairs if "book-figure" in html]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the JupyterLab finds its notebooks."""
    return tmp_path_factory.mktemp("folder")


@pytest.fixture(scope="module")
def lab(tmp_path_factory, folder, browser):
    """Address of a JupyterLab on a temporary folder, and with a home of its own."""
    home = furnished(tmp_path_factory.mktemp("home"))
    for name, notebook in notebooks().items():
        notebook.metadata["title"] = name  # so that each has a signature of its own
        nbformat.write(notebook, folder / f"{name}.ipynb")
        if name == "trusted":
            NotebookNotary(data_dir=str(home / "data")).sign(notebook)
    with serving(folder, home) as address:
        yield address


@pytest.fixture(scope="module")
def opened(lab, browser):
    """Opens one notebook after the other; nothing may be asked of other hosts."""
    context = browser.new_context(viewport={"width": 1000, "height": 2000})
    context.set_default_timeout(MILLISECONDS)
    asked = []
    context.on("request", lambda request: asked.append(request.url))

    def open_notebook(name):
        for page in context.pages:
            page.close()
        page = context.new_page()
        page.goto(f"{lab}doc/tree/{name}.ipynb")
        return page

    yield open_notebook
    context.close()
    assert [x for x in asked if not x.startswith((lab, "data:", "blob:"))] == []


def run_all(page):
    idle = page.get_by_text(" | Idle")  # with the kernel's name, in the status bar
    idle.wait_for()
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_text("Run All Cells", exact=True).click()
    last = page.locator(".jp-CodeCell .jp-InputPrompt").last
    ran = last.and_(page.get_by_text(re.compile(r"\[\d+\]")))
    ran.or_(page.locator(FAILED)).first.wait_for()
    idle.wait_for()
    assert page.locator(FAILED).all_inner_texts() == []


def press(page, number, *keys):
    """Title of the drawing, and readout, after each key on one of the sliders."""
    from playwright.sync_api import expect

    slider = page.locator(".widget-slider").nth(number)
    title = page.locator(".widget-html").nth(number).locator("svg text").last
    seen = []
    for key in keys:
        before = title.text_content()
        slider.get_by_role("slider").press(key)
        expect(title).not_to_have_text(before, timeout=MILLISECONDS)
        readout = slider.locator(".widget-readout").inner_text()
        seen.append((title.text_content(), readout))
    return zip(*seen, strict=True)


@pytest.fixture(scope="module")
def live(opened):
    """A page on which the small notebook has run, for the tests that follow."""
    page = opened("new")
    run_all(page)
    return page


def test_explorers_are_live_in_a_kernel(live):
    page = live
    page.locator(".widget-slider").nth(3).wait_for()
    assert page.locator(".book-explorer").count() == 0  # the static form
    # Continuous, from geometric stops: equal ratios, and between the stops.
    titles, readouts = press(page, 0, "ArrowRight", "ArrowRight", "End")
    expected = (0.25 * 10**0.01, 0.25 * 10**0.02, 2)
    assert [float(x) for x in titles] == pytest.approx(expected)
    assert [float(x) for x in readouts] == pytest.approx(expected, rel=1e-3, abs=0)
    titles, readouts = press(page, 2, "ArrowRight", "ArrowLeft")
    assert titles == readouts == ("normal", "uniform")
    # Without a word: the stops of a table alone.
    titles, readouts = press(page, 3, "ArrowRight", "ArrowRight", "ArrowLeft")
    assert [float(x) for x in titles] == [float(x) for x in readouts] == [0.5, 1, 0.5]


def test_what_draw_raises_stands_where_the_picture_was(live):
    page = live
    slider = page.locator(".widget-slider").nth(1)
    handle, view = slider.get_by_role("slider"), page.locator(".widget-html").nth(1)
    for back, value in (("Home", "0.0"), ("End", "2.0")):
        handle.press("Home")
        view.get_by_role("img", name="“0.0”").wait_for()
        handle.press("ArrowRight")
        alert = view.get_by_role("alert")
        alert.wait_for()
        assert alert.inner_text() == (
            "draw raised ArithmeticError: no <title> for this at shift = 0.02"
        )
        assert view.locator("svg").count() == 0
        handle.press(back)
        view.get_by_role("img", name=f"“{value}”").wait_for()
        assert alert.count() == 0


def test_plain_matplotlib_is_themed_and_shown_once(live):
    page = live
    last = page.locator(".jp-CodeCell").last
    drawing = last.get_by_role("img", name="A line from the lower left corner")
    drawing.wait_for()
    assert last.locator("img").count() == 0  # pyplot's own picture
    ink = drawing.locator("text").first.evaluate("e => getComputedStyle(e).fill")
    assert ink == drawing.evaluate("e => getComputedStyle(e).color")


def test_chapter_runs_and_its_explorer_moves(opened):
    try:
        fashion_mnist()
    except DataUnavailable as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
    page = opened("chapter-to-run")
    run_all(page)
    first = page.locator(".widget-html").first.locator("[aria-label]")
    drawing = page.get_by_role("img", name=first.get_attribute("aria-label"))
    page.locator(".widget-slider").first.get_by_role("slider").press("ArrowRight")
    drawing.wait_for(state="detached")
    assert drawing.count() == 0


def test_trusted_notebook_shows_first_frames(opened):
    check_drawings(opened("trusted"))


def test_plain_page_shows_first_frames(browser):
    page = browser.new_page()
    stored = stored_figures(small_notebook(outputs=True))
    assert all("data:image/png" in html for _, html in stored)
    page.set_content("".join(html for _, html in stored))
    check_drawings(page)
    page.close()


def check_drawings(page):
    """Each figure is one image with its description, printed nowhere; no sliders."""
    stored = stored_figures(small_notebook(outputs=True))
    figures = page.locator(".book-figure")
    figures.nth(len(stored) - 1).wait_for()
    for shown, (alt, _) in zip(figures.all(), stored, strict=True):
        assert shown.locator("svg").is_visible()
        image = shown.get_by_role("img")
        assert image.count() == 1 and image.get_attribute("aria-label") == alt
        assert shown.get_by_text(alt).count() == shown.locator("img").count() == 0
        assert shown.get_by_role("slider").count() == 0


@pytest.mark.parametrize("name", ["untrusted", "chapter"])
def test_untrusted_figure_is_one_picture_and_its_caption(opened, name):
    stored = stored_figures(notebooks()[name])
    figures = opened(name).locator(".book-figure")
    figures.nth(len(stored) - 1).wait_for()
    for shown, (alt, html) in zip(figures.all(), stored, strict=True):
        caption = re.findall("<figcaption[^>]*>(.*)</figcaption>", unescape(html))
        shown.scroll_into_view_if_needed()  # a long notebook draws what is in view
        picture = shown.get_by_role("img")
        picture.wait_for()
        assert picture.count() == 1 and picture.get_attribute("alt") == alt
        assert picture.evaluate("e => e.complete && e.naturalWidth") > 300
        assert picture.bounding_box()["width"] > 200
        lines = re.split(r"\n+", shown.inner_text().strip())
        # An exhibit says as well what its stored picture shows.
        assert lines == caption or ("book-exhibit" in html and caption[-1] in lines)
        assert shown.get_by_role("slider").count() == 0


# All explorers of the book: minutes long.

# Whether the picture of an explorer says what its readouts say, to three digits.
AGREE = """box => {
  const image = box.querySelector('.widget-html [role=img]');
  if (!image || box.querySelector('[role=alert]')) return false;
  const alt = image.getAttribute('aria-label');
  const numbers = (alt.match(/\\d[\\d.,]*(e[+-]?\\d+)?/g) || []).map((x) =>
    Number(x.replace(/[.,]$/, '')));
  return [...box.querySelectorAll('.widget-readout')].every((readout) => {
    const text = readout.textContent.trim(), value = Math.abs(Number(text));
    return Number.isNaN(value) ? alt.includes(text)
      : numbers.some((x) => Math.abs(x - value) <= 1e-3 * value);
  });
}"""
MOVING = r"^(?:figures\.)?explore\(|^exhibits\.\w+\("
TEXTS = [path for path in texts() if re.search(MOVING, path.read_text(), re.M)]


def key_of(handle):
    """The key that moves a slider to its end in at most some seventy steps."""
    place = ("aria-valuemin", "aria-valuenow", "aria-valuemax")  # to one decimal
    handle.press("Home")
    handle.press("ArrowRight")
    low, now, high = (float(handle.get_attribute(name)) for name in place)
    return "PageUp" if now - low < (high - low) / 70 else "ArrowRight"


def moved_exhibit(page, box):
    """Each slider to both ends, each choice and each button: always other pictures."""
    view, moves = box.locator(".widget-html"), []
    view.scroll_into_view_if_needed()

    def changed(act):
        before = view.inner_html()
        act()
        page.wait_for_function(
            "([view, before]) => view.innerHTML !== before",
            arg=[view.element_handle(), before],
            polling=100,
        )
        assert view.get_by_role("img").count() == 1
        assert view.get_by_role("alert").count() == 0

    for slider in box.get_by_role("slider").all():
        # One end after the other, each with its picture: a slider may start at one.
        for key, end in (("Home", "aria-valuemin"), ("End", "aria-valuemax")):
            if slider.get_attribute("aria-valuenow") != slider.get_attribute(end):
                changed(lambda handle=slider, key=key: handle.press(key))
                moves.append(key)
    for choice in box.get_by_role("radio").all():
        if not choice.is_checked():
            changed(choice.click)
            moves.append("choice")
    for name in ("Step", "Reset", "Draw again"):
        button = box.get_by_role("button", name=name)
        if button.count():
            changed(button.click)
            moves.append(name)
    assert len(moves) > 1
    return moves


@pytest.mark.slow
@pytest.mark.parametrize("text", TEXTS, ids=lambda path: path.stem)
def test_every_explorer_of_the_book_tells_the_truth(opened, folder, text):
    """Each slider from end to end: picture and readouts agree after each move."""
    name, moves = f"all-of-{text.stem}", []
    nbformat.write(read_text(text), folder / f"{name}.ipynb")
    page = opened(name)
    run_all(page)
    boxes = page.locator(".widget-vbox:has(.widget-html)")
    assert boxes.count() == len(re.findall(MOVING, text.read_text(), re.M)) > 0
    for box in boxes.all():
        if box.get_by_role("button").count():
            moves += moved_exhibit(page, box)
            continue
        element = box.element_handle()
        for slider in box.locator(".widget-slider").all():
            handle = slider.get_by_role("slider")
            handle.scroll_into_view_if_needed()
            key, shown = key_of(handle), slider.locator(".widget-readout")
            handle.press("End")
            last, seen = shown.inner_text(), []
            handle.press("Home")
            while last not in seen[-1:]:
                page.wait_for_function(AGREE, arg=element, polling=100)
                seen.append(shown.inner_text())
                handle.press(key)
                if shown.inner_text() == seen[-1]:  # no whole page is left to the end
                    handle.press("End")
            assert len(set(seen)) == len(seen) > 1, seen
            moves.append(f"{slider.inner_text().split()[0]}: {len(seen)}")
    print(text.stem, *moves, sep=", ")
