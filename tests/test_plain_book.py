"""Downloaded notebooks: each page of the book keeps its words, formulas and numbers."""

import copy
import re
from collections import Counter
from functools import cache

import nbformat
import pytest
from bs4 import BeautifulSoup
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from pybtex.database import parse_file
from pybtex.richtext import Text
from sphinxcontrib.bibtex.citation_target import parse_citation_targets

from tools.command import ROOT
from tools.launch import public_address
from tools.serve import HTML
from tools.site.markup import parsed, with_plain_formulas
from tools.site.plain.check import require_plain
from tools.texts import texts

SITE = ROOT / HTML
PAGES = [text.relative_to(ROOT).with_suffix("") for text in texts()]
WORKS = parse_file(str(ROOT / "chapters/reference/references.bib")).entries
RESIDUE = ("{prf:", "{cite", ":label:", ":::", "{doc}", "{ref}", "{eq}", "```{")
FENCE = re.compile(r" *(`{3,})(.*)")
CODE = re.compile(r"(?<!`)(`{1,2})(?!`).*?(?<!`)\1(?!`)", re.S)
FORMULA = re.compile(r"(?<!\\)\$\$(.+?)\$\$|(?<![\\$])\$([^$]+?)\$", re.S)
# What pages have beside their words and formulas, and downloads do not.
ASIDE = (
    ".cell", ".headerlink", ".statement-checks", ".toctree-wrapper", ".math", ".fold",
    ".checks", ".graph-chapter > svg", ".graph-after", ".further > summary",
    ".sd-stretched-link", ".sd-summary-state-marker", ".cell_output", "script",
)  # fmt: skip

every_page = pytest.mark.parametrize("page", PAGES, ids=str)


class Renderer(IPythonRenderer):
    """As nbconvert and nbviewer read Markdown, with formulas marked as such."""

    def inline_math(self, body):
        return f'<span class="math">{self.escape_html(body)}</span>'

    def block_math(self, body):
        return f'<div class="math">{self.escape_html(body)}</div>'


@cache
def cells(page):
    """Pairs of the cells of text, as they are written and as they are given away."""
    kept = nbformat.read(ROOT / f"{page}.ipynb", 4).cells
    given = nbformat.read(SITE / "_sources" / f"{page}.ipynb", 4).cells
    both = zip(kept, given, strict=True)
    return [(a.source, b.source) for a, b in both if b.cell_type == "markdown"]


@cache
def given(page):
    """The text that is given away, rendered."""
    render = MarkdownWithMath(renderer=Renderer(escape=False)).render
    return BeautifulSoup("\n".join(render(b) for _, b in cells(page)), "html.parser")


@cache
def article(page):
    """The text of the page on the site."""
    html = (SITE / f"{page}.html").read_text("utf-8")
    return parsed(with_plain_formulas(html)).select_one("article")


def names(entry):
    """Authors as they are cited: one, two, or the first and others."""
    last = [
        str(Text.from_latex(" ".join([*person.prelast_names, *person.last_names])))
        for person in entry.persons["author"]
    ]
    if len(last) < 3:
        return " and ".join(last)
    return f"{last[0]} et al."


def citation(text):
    """Words of a citation, from its keys and what is said around them."""
    words = []
    for target in parse_citation_targets(text):
        entry = WORKS[target.key]
        words += [target.pre, names(entry), entry.fields["year"], target.post]
    return f" {' '.join(words)} "


def words(soup, citations=None):
    """The words of a text in order; on a page of the site with citations in full."""
    soup = copy.copy(soup)
    for element, text in zip(
        soup.select(".bibtex-citation"), citations or (), strict=True
    ):
        element.replace_with(text)
    for element in soup.select("svg[aria-label]:not(.graph-chapter > svg)"):
        element.replace_with(f" Picture {element['aria-label']} ")
    for element in soup.select(", ".join(ASIDE)):
        element.decompose()
    return re.findall(r"\w+", soup.get_text(" "))


def without_code(text):
    """A text but for its code; what stands in a directive is no code."""
    kept, ends, inside = [], [], False
    for line in text.split("\n"):
        fence = FENCE.fullmatch(line)
        if fence and ends and fence.groups() == (ends[-1], ""):
            ends, inside = ends[:-1], False
        elif fence and not inside:
            ends, inside = [*ends, fence[1]], not fence[2].startswith("{")
        elif not inside:
            kept.append(line)
    return CODE.sub("", "\n".join(kept))


def formulas(text):
    """The formulas of a cell, however their lines, bars and tags are written."""
    text = re.sub(r"^ *\|.*", lambda row: row[0].replace(r"\|", "|"), text, flags=re.M)
    formulas = (a or b for a, b in FORMULA.findall(without_code(text)))
    return Counter(normal(each) for each in formulas)


def normal(tex):
    tex = re.sub(r"\\tag\{.*?\}|\\(begin|end)\{split\}", "", tex)
    tex = re.sub(r"\\vert\b", "|", re.sub(r"\\Vert\b", r"\\|", tex))
    return re.sub(r"\s", "", tex)


@every_page
def test_nothing_of_myst_is_left(page):
    notebook = nbformat.read(SITE / "_sources" / f"{page}.ipynb", 4)
    nbformat.validate(notebook)
    require_plain(notebook, page.name)
    for _, text in cells(page):
        assert not [mark for mark in RESIDUE if mark in without_code(text)]
        assert not re.search(r"^\([\w-]+\)=", text, re.M)


@every_page
def test_words_are_those_of_the_site(page):
    source = "\n".join(a for a, _ in cells(page))
    asked = re.findall(r"\{cite(?::\w+)?\}`([^`]+)`", source)
    wanted = words(article(page), [citation(each) for each in asked])
    assert words(given(page)) == wanted
    assert len(wanted) > 20


@every_page
def test_every_formula_is_there_and_is_one_to_a_notebook_program(page):
    for source, text in cells(page):
        assert formulas(text) == formulas(source)
    every = sum((formulas(text) for _, text in cells(page)), Counter())
    seen = Counter(normal(each.get_text()) for each in given(page).select(".math"))
    assert seen == every


@every_page
def test_numbers_and_titles_of_statements_are_those_of_the_site(page):
    wanted = {
        each["id"]: re.sub(r"\W+", " ", each.select_one("p").get_text()).strip()
        for each in article(page).select("div.proof[id]")
    }
    heads = re.findall(
        r'^> <a id="([^"]+)"></a>\*\*(.+?)\.\*\*( |$)',
        "\n".join(b for _, b in cells(page)),
        re.M,
    )
    links = {
        name: re.sub(r"\W+", " ", plain_math(head)).strip() for name, head, _ in heads
    }
    assert links == wanted


def plain_math(text):
    return text.replace("$", " ")


@every_page
def test_every_link_leads_somewhere(page):
    notebook = nbformat.read(SITE / "_sources" / f"{page}.ipynb", 4)
    places = {each["id"] for each in given(page).select("[id]")}
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            html = output.get("data", {}).get("text/html", "")
            places |= set(re.findall(r'\bid="([^"]+)"', html))
    works = {work_address(entry) for entry in WORKS.values()}
    outside = {each["href"] for each in article(page).select("a.reference.external")}
    for link in given(page).select("a[href]"):
        address = link["href"]
        if address.startswith("#"):
            assert address[1:] in places
        elif not (public_address() and address.startswith(public_address())):
            assert address in works | outside
    assert not given(page).select("img:not([src^='data:image/'])")


def work_address(entry):
    fields = entry.fields
    if "doi" in fields:
        return f"https://doi.org/{fields['doi']}"
    if "eprint" in fields:
        return f"https://arxiv.org/abs/{fields['eprint']}"
    return fields.get("url")


def test_the_chapters_have_what_these_tests_look_for():
    """Statements, folded answers, citations and tables stand in the downloads."""
    chapters = [page for page in PAGES if page.parent.name == "chapters"]
    for select in ("blockquote strong", "details > summary", "a[href*='arxiv.org']"):
        assert all(
            given(page).select(select) for page in chapters if page.name[0] != "i"
        )
    assert any(given(page).select("table") for page in chapters)
