"""Figures in a real JupyterLab: run, trusted but not run, and not trusted."""

import json
import os
import re
import subprocess
import sys
import time
from contextlib import contextmanager
from html import unescape
from pathlib import Path

import nbformat
import pytest
from nbformat.sign import NotebookNotary
from nbformat.v4 import new_code_cell, new_notebook, new_output

from lib.data import DataUnavailable, fashion_mnist
from tools.notebooks import ROOT

CHAPTER = ROOT / "chapters" / "2-softmax-expansion.ipynb"
DRAW = """
from matplotlib.figure import Figure
from lib.figures import explore, figure, style

def draw(**chosen):
    (value,) = chosen.values()
    with style():
        fig = Figure(figsize=(3, 1.5))
        fig.subplots().set(xlim=(0, 1), ylim=(0, 1), title=value)
    alt = f"An empty rectangle & above it, as its title, the value “{value}”."
    return figure(fig, alt=alt, caption="What matters is the title.")
"""
SHOW = [
    "draw(law='uniform')",
    "explore(draw, scale=[0.25, 0.5, 1.0, 2.0])",
    "explore(draw, shift=[0.0, 0.5, 2.0])",
    "explore(draw, law=['uniform', 'normal'])",
]
FAILED = "[data-mime-type$='jupyter.error'], [data-mime-type$='jupyter.stderr']"
# The plugin that asks a new user whether to fetch news from outside.
QUIET = {"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}}


def small_notebook(*, outputs):
    names, cells = {}, [new_code_cell(source) for source in (DRAW, *SHOW)]
    exec(DRAW, names)
    for cell in cells[1:] if outputs else []:
        value = eval(cell.source, names)
        data = {"text/html": value._repr_html_(), "text/plain": repr(value)}
        cell.outputs = [new_output("display_data", data)]
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
def lab(tmp_path_factory, browser):
    """Address of a JupyterLab on a temporary folder, and with a home of its own."""
    home, folder = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("folder")
    for name in ("config/labconfig", "data", "runtime"):
        (home / name).mkdir(parents=True)
    (home / "config" / "labconfig" / "page_config.json").write_text(json.dumps(QUIET))
    for name, notebook in notebooks().items():
        notebook.metadata["title"] = name  # so that each has a signature of its own
        nbformat.write(notebook, folder / f"{name}.ipynb")
        if name == "trusted":
            NotebookNotary(data_dir=str(home / "data")).sign(notebook)
    with serving(folder, home) as found:
        yield found


@contextmanager
def serving(folder, home):
    """Address of a JupyterLab on a folder while it runs; ``home`` has its settings."""
    places = {
        "JUPYTER_CONFIG_DIR": home / "config",
        "JUPYTER_DATA_DIR": home / "data",
        "JUPYTER_RUNTIME_DIR": home / "runtime",
        "JUPYTERLAB_SETTINGS_DIR": home / "settings",
        "IPYTHONDIR": home / "ipython",
        "PYTHONPATH": ROOT,
    }
    command = [Path(sys.executable).with_name("jupyter"), "lab", "--no-browser"]
    command += ["--allow-root", "--ServerApp.port=0", "--IdentityProvider.token="]
    command += [f"--ServerApp.root_dir={folder}", "--LabApp.extension_manager=readonly"]
    with (home / "log").open("w") as log:
        env = os.environ | {name: str(path) for name, path in places.items()}
        server = subprocess.Popen(command, env=env, stdout=log, stderr=log)
    try:
        yield address(server, home)
    finally:
        server.terminate()
        server.wait(30)


def address(server, home):
    """What the server writes down once it listens."""
    for _ in range(600):
        if server.poll() is not None:
            break
        for path in (home / "runtime").glob("jpserver-*.json"):
            if (text := path.read_text()).endswith("}"):
                return json.loads(text)["url"]
        time.sleep(0.1)
    return pytest.fail((home / "log").read_text())


@pytest.fixture(scope="module")
def opened(lab, browser):
    """Opens one notebook after the other; nothing may be asked of other hosts."""
    context = browser.new_context(viewport={"width": 1000, "height": 2000})
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
        expect(title).not_to_have_text(before, timeout=30_000)
        readout = slider.locator(".widget-readout").inner_text()
        seen.append((title.text_content(), readout))
    return zip(*seen, strict=True)


def test_explorers_are_live_in_a_kernel(opened):
    page = opened("new")
    run_all(page)
    page.locator(".widget-slider").nth(2).wait_for()
    assert page.locator(".book-explorer").count() == 0  # the static form
    keys = ("ArrowRight", "ArrowRight", "End")
    # Geometric stops, then others: equal ratios, equal steps, and between the stops.
    for number, expected in enumerate(
        [(0.25 * 10**0.01, 0.25 * 10**0.02, 2), (0.02, 0.04, 2)]
    ):
        titles, readouts = press(page, number, *keys)
        assert [float(x) for x in titles] == pytest.approx(expected)
        assert [float(x) for x in readouts] == pytest.approx(expected, rel=0.01, abs=0)
    titles, readouts = press(page, 2, "ArrowRight", "ArrowLeft")
    assert titles == readouts == ("normal", "uniform")


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
        assert shown.get_by_text(alt).count() == 0
        assert shown.get_by_role("slider").count() == 0


@pytest.mark.parametrize("name", ["untrusted", "chapter"])
def test_untrusted_figure_is_one_sentence_and_its_caption(opened, name):
    stored = stored_figures(notebooks()[name])
    figures = opened(name).locator(".book-figure")
    figures.nth(len(stored) - 1).wait_for()
    for shown, (alt, html) in zip(figures.all(), stored, strict=True):
        caption = re.findall("<figcaption>(.*)</figcaption>", unescape(html))
        shown.scroll_into_view_if_needed()  # a long notebook draws what is in view
        shown.get_by_text(alt).wait_for()
        assert re.split(r"\n+", shown.inner_text()) == [alt, *caption]
        assert shown.get_by_role("slider").count() == 0
