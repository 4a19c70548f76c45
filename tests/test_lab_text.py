"""The text of every notebook as JupyterLab shows it: statements, formulas, answers."""

import re
from collections import Counter

import nbformat
import pytest
from lab_server import furnished, serving
from playwright.sync_api import expect
from waits import until

from tools.texts import read_text, texts

# What a reader must not see of the source, in text that stands outside of code.
RAW = re.compile(
    r":label:|:{3}|`{3}|\{(?:prf|cite|doc|ref|eq|dropdown)\b|\$|\\[a-z]{2}"
)
STATEMENT = re.compile(r"^`{3,}\{prf:(\w+)\}", re.M)
FOLDED = re.compile(r"^:{3,}\{dropdown\}|^:class: .*\bdropdown\b", re.M)
# What is left of the cells without code, formulas, and the editors behind them.
PROSE = """cells => cells.map(cell => {
  const copy = cell.cloneNode(true);
  const other = copy.querySelectorAll('.jp-InputArea-editor, code, .katex');
  other.forEach(each => each.remove());
  return copy.textContent;
})"""
PAGES = {text.stem: text for text in texts()}


@pytest.fixture(scope="module")
def lab(tmp_path_factory, browser):
    home = furnished(tmp_path_factory.mktemp("home"))
    folder = tmp_path_factory.mktemp("folder")
    for name, text in PAGES.items():
        notebook = read_text(text)
        notebook.cells = [c for c in notebook.cells if c.cell_type == "markdown"]
        nbformat.write(notebook, folder / f"{name}.ipynb")
    # One JupyterLab shows one after the other: to load it takes longer than to show.
    with serving(folder, home, "--LabApp.expose_app_in_browser=True") as address:
        page = browser.new_page(viewport={"width": 1000, "height": 2000})
        page.goto(f"{address}lab")
        page.wait_for_function("() => window.jupyterapp?.restored")
        page.evaluate("() => jupyterapp.restored")
        yield page
        page.close()


@pytest.fixture
def opened(lab):
    """How a notebook is opened in JupyterLab; what is open is closed at the end."""

    command = "jupyterapp.commands.execute('docmanager:open', {path}).then(() => null)"
    yield lambda path: lab.evaluate(f"path => {command}", path) or lab
    # Not its command that closes all: JupyterLab completes a notebook some time after
    # it is open, and would ask whether to save that, over all that follows.
    lab.evaluate(
        "[...jupyterapp.shell.widgets('main')].forEach(each => each.dispose())"
    )
    expect(lab.locator(".jp-Notebook")).to_have_count(0)


@pytest.mark.parametrize("name", PAGES)
def test_text_is_shown_as_in_the_book(name, opened):
    cells = [c for c in read_text(PAGES[name]).cells if c.cell_type == "markdown"]
    source = "\n\n".join(cell.source for cell in cells)
    page = opened(f"{name}.ipynb")
    shown = page.locator(".jp-MarkdownCell.jp-mod-rendered")
    expect(shown).to_have_count(len(cells))
    # Statements by their kind and number, in order; the proofs among them.
    kinds = [kind.capitalize() for kind in STATEMENT.findall(source)]
    heads = page.locator("aside", has_text=re.compile(rf"^({'|'.join({*kinds})}) \d"))
    if kinds:
        expect(heads).to_have_count(len(kinds))
        numbered, seen = Counter(), []
        for kind in kinds:
            numbered[kind] += 1
            seen.append(re.compile(rf"^{kind} {numbered[kind]}\b"))
        expect(heads).to_have_text(seen)

    # The extension draws each cell a moment after JupyterLab has.
    def drawn():
        words = shown.evaluate_all(PROSE)
        return all(words) and not any(map(RAW.search, words))

    assert until(drawn), f"raw or empty: {shown.evaluate_all(PROSE)}"
    if "$" in source:
        page.locator(".katex").first.wait_for(state="attached")  # it may be folded
        assert not page.locator(".katex-error").count()
    # Answers are folded, and open at a click.
    answers = page.locator("details.myst-dropdown")
    assert answers.count() >= len(FOLDED.findall(source))
    assert page.locator("details.myst-dropdown[open]").count() == 0
    if answers.count():
        answers.first.locator("summary").click()
        expect(page.locator("details.myst-dropdown[open]")).to_have_count(1)
