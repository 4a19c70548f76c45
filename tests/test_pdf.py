"""The printed book: order, contents, numbers, links inside the document, bookmarks."""

import io
import re
import tomllib
from pathlib import Path

import pytest
from pypdf import PdfReader

from lib.figures import explore
from lib.figures.book_figure import BookFigure
from tools import browser as browser_tools
from tools import pdf
from tools.bind import Heading, Page
from tools.command import ROOT, PipelineError
from tools.serve import HTML, served
from tools.site.live_page import SUFFIX
from tools.site.moved import MOVED

FRONT = "chapters/index.html"
CHECKS = "chapters/reference/more-checks-1.html"
RUNNING = "chapters/reference/running.html"
SOFTMAX = "chapters/1-softmax-expansion.html"
NOTATION = "chapters/reference/notation.html"
META = {"Title": "Attention in the Limit", "Author": "A. U. Thor"}


def test_pages_are_in_the_order_of_the_table_of_contents():
    toc = {
        "root": "chapters/index",
        "parts": [
            {"caption": "One", "chapters": [{"file": "chapters/1-a.ipynb"}]},
            {"caption": "Two", "chapters": [{"file": "chapters/reference/b"}]},
        ],
    }
    assert list(pdf.addresses(toc)) == [
        ("", "chapters/index.html"),
        ("One", "chapters/1-a.html"),
        ("Two", "chapters/reference/b.html"),
    ]


@pytest.fixture(scope="module")
def every():
    return pdf.book_pages(ROOT / HTML)


def test_every_page_of_the_site_is_printed_once(every):
    names = [page.address for page in every]
    built = (ROOT / HTML / "chapters").rglob("*.html")
    reading = (p.relative_to(ROOT / HTML).as_posix() for p in built)
    assert sorted(names) == sorted(
        name for name in reading if name not in MOVED and not name.endswith(SUFFIX)
    )
    assert names[0] == FRONT


@pytest.fixture(scope="module")
def read():
    return pdf.book_pages(ROOT / HTML, ROOT, pdf.READER)


def test_readers_get_the_pages_that_one_reads(every, read):
    kept = [page.address for page in read]
    left = {page.address for page in every} - set(kept)
    assert {Path(name).stem for name in left} >= {"api", "scoreboard", "more-checks-2"}
    assert all("/reference/" in name for name in left)
    assert kept == [page.address for page in every if page.address in kept]
    assert NOTATION in kept and "chapters/reference/bibliography.html" in kept


def test_headings_are_titles_and_sections_without_their_marks():
    text = """<h2>outside</h2><article><section id="a"><h1>One &amp; all<a
      class="headerlink">#</a></h1><section id="b"><h2>Two</h2><h3>no</h3></section>
      </section></article>"""
    assert list(pdf.headings(text)) == [
        Heading(1, "One & all", "a"),
        Heading(2, "Two", "b"),
    ]


def test_readers_find_solutions_at_the_end_of_a_page_that_has_some():
    text = """<article><section id="a"><h1>One</h1><details class="sd-dropdown">
      <summary> {} </summary>x</details></section></article>"""
    titles = ("Solution", "Answer", "Checkpoint: why?", "The map in words")
    headings = [[*pdf.headings(text.format(each), pdf.READER)][1:] for each in titles]
    assert headings == [[Heading(2, "Solutions", pdf.SOLUTIONS)]] * 3 + [[]]
    assert len([*pdf.headings(text.format("Solution"))]) == 1  # where they are, in full


def test_date_is_that_of_the_last_outputs():
    facts = {"a": {"date": "2025-12-31"}, "b": {"date": "2026-02-03"}}
    assert pdf.date_of_outputs(facts) == "3 February 2026"


def test_contents_list_sections_of_chapters_only():
    heads = (Heading(1, "T <1>", "t"), Heading(2, "S", "s"))
    pages = [
        Page(FRONT, "", heads),
        Page("chapters/1-a.html", "One", heads),
        Page("chapters/reference/b.html", "Two", heads),
    ]
    numbers = {("chapters/1-a.html", "t"): 3, ("chapters/1-a.html", "s"): 41}
    text = pdf.contents(pages, numbers)
    assert re.findall(r'href="([^"]+)"', text) == [
        "index.html#t",
        "index.html#s",
        "1-a.html#t",
        "1-a.html#s",
        "reference/b.html#t",
    ]
    assert re.findall("<b>(.*?)</b>", text) == ["–", "–", "3", "41", "–"]
    assert text.index(">One<") < text.index("1-a.html") < text.index(">Two<")
    assert "T &lt;1&gt;" in text


def test_numbers_start_where_they_should():
    style = pdf.page_style('the "title"', 7, bare=False)
    assert "counter-reset: page 6" in style and r'"the \"title\""' in style
    assert ":first" not in style and ":first" in pdf.page_style("x", 1, bare=True)


def test_site_that_is_not_built_is_one_sentence(tmp_path):
    with pytest.raises(PipelineError, match="make site"):
        pdf.fresh_site(tmp_path)


def test_unknown_edition_is_one_sentence():
    assert pdf.chosen(None) == [*pdf.EDITIONS] and pdf.chosen("full") == [pdf.FULL]
    with pytest.raises(PipelineError, match="'short' is no edition; there are reader"):
        pdf.chosen("short")


def test_missing_browser_is_one_sentence(monkeypatch):
    monkeypatch.setattr(pdf, "fresh_site", lambda: ROOT / HTML)
    monkeypatch.setattr(browser_tools, "browser_path", lambda: None)
    monkeypatch.setattr("sys.argv", ["pdf"])
    with pytest.raises(PipelineError, match="install Chromium"):
        pdf.main()


@pytest.fixture(scope="module")
def small(site, browser, every):
    """A book of three pages, printed; and how many sheets it should have."""
    pages = [page for page in every if page.address in (FRONT, CHECKS, RUNNING)]
    data, sheets = pdf.book(browser, site, pages, META, "3 February 2026")
    return pages, PdfReader(io.BytesIO(data)), sheets


@pytest.fixture(scope="module")
def texts(small):
    return [sheet.extract_text() for sheet in small[1].pages]


def test_sheets_are_counted_and_numbered(small, texts):
    _, reader, sheets = small
    assert len(reader.pages) == sheets >= 6
    feet = [page_foot(sheet) for sheet in reader.pages]
    assert feet[0] == ""
    for number, foot in enumerate(feet[1:], 2):
        assert re.findall(r"\d+", foot) == [str(number)]
    assert "Contents" in feet[1] and "Contents" not in feet[2]


def test_title_page_says_edition_version_and_day(texts):
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    for said in (
        *META.values(),
        "Full edition",
        f"version {version}",
        "3 February 2026",
    ):
        assert said in " ".join(texts[0].split())


def page_foot(sheet):
    """Text in the bottom margin of a sheet."""
    words = []

    def visit(text, matrix, text_matrix, *_):
        # y of the text in points: the product of both matrices.
        y = text_matrix[4] * matrix[1] + text_matrix[5] * matrix[3] + matrix[5]
        if 0 < y < 24 / 25.4 * 72 and text.strip():
            words.append(text.strip())

    sheet.extract_text(visitor_text=visit)
    return " ".join(words)


def test_contents_tell_the_pages_where_the_titles_are(small, texts):
    pages, contents = small[0], texts[1]
    for page in pages:
        told = re.search(rf"{re.escape(page.title)}\s*(\d+)", contents)
        assert page.title in texts[int(told.group(1)) - 1]
        assert page.title not in texts[int(told.group(1)) - 2].split("\n")[0]


def test_links_stay_in_the_document_or_leave_the_machine(small):
    reader, kinds, targets = small[1], set(), set()
    sheets = {sheet.indirect_reference.idnum for sheet in reader.pages}
    for sheet in reader.pages:
        for link in (each.get_object() for each in sheet.get("/Annots", ())):
            if "/Dest" in link:
                kinds.add("inside")
                # The first entry is kept as a reference to a sheet.
                targets.add(list.__getitem__(link["/Dest"], 0).idnum)
            else:
                kinds.add("outside")
                uri = link["/A"]["/URI"]
                assert re.match("https://|mailto:", uri) and "127.0.0.1" not in uri
    assert "inside" in kinds and targets <= sheets and len(targets) >= 2


def test_nothing_names_the_machine(small, texts):
    reader = small[1]
    everything = "\n".join(texts) + str(reader.metadata)
    for number in range(1, len(reader.xref_objStm) + len(reader.xref.get(0, ())) + 1):
        everything += str(reader.get_object(number))
    # "one file:" stands in the text; an address of a file goes on with a slash.
    for mark in ("localhost", "127.0.0.1", "file:/", str(ROOT), "Headless"):
        assert mark not in everything


def test_bookmarks_language_and_title_are_there(small):
    pages, reader, _ = small
    outline = reader.outline
    titles = [entry.title for entry in outline if not isinstance(entry, list)]
    assert titles == ["Contents", *(page.title for page in pages)]
    nested = [entry for entry in outline if isinstance(entry, list)]
    sections = [[h.text for h in page.headings[1:]] for page in pages]
    assert [[e.title for e in each] for each in nested] == sections
    for entry in [outline[-2], *nested[-1]]:
        sheet = reader.pages[reader.get_destination_page_number(entry)]
        assert entry.title in sheet.extract_text()
    assert reader.metadata.title == META["Title"]
    assert reader.metadata.author == META["Author"]
    assert reader.trailer["/Root"]["/Lang"] == "en"


def test_mathematics_and_code_are_on_paper(small, texts):
    whole = "\n".join(texts)
    assert "Holds" in whole and "verify(" in whole and r"\frac" not in whole
    # The formulas are glyphs of MathJax's fonts, which the document carries.
    fonts = {
        str(font.get_object().get("/FontDescriptor", {}).get("/FontName"))
        for sheet in small[1].pages
        for font in sheet["/Resources"]["/Font"].values()
    }
    assert any(name.endswith("MathJax_Math-Italic") for name in fonts)


def test_what_does_not_fit_the_paper_is_refused(site, browser):
    press = pdf.Press(browser, site)
    page = Page(FRONT, "", (Heading(1, "x", "x"),))
    fits = press.printed(page, 1, "<p>short</p>")
    assert len(fits.pages) == 1
    wide = '<h1>x</h1><p style="width: 3000px">wide</p>'
    with pytest.raises(PipelineError, match="index.html: too wide.*wide"):
        press.printed(page, 1, wide)
    # A wide table is set smaller instead.
    press.printed(page, 1, f"<table><tr><td>{'x' * 110}</td></tr></table>")
    press.context.close()


@pytest.fixture(scope="module")
def reader(site, browser, read):
    """The reader's edition of a chapter and a page of the reference."""
    pages = [page for page in read if page.address in (SOFTMAX, NOTATION)]
    data, _ = pdf.book(browser, site, pages, META, "3 February 2026", pdf.READER)
    return pages, PdfReader(io.BytesIO(data))


def test_readers_see_no_code(reader):
    _, document = reader
    text = "\n".join(sheet.extract_text() for sheet in document.pages)
    assert "Reader’s edition" in text
    for code in ("import numpy", "verify(", "def ", "figures.explore"):
        assert code not in text


def test_readers_find_each_solution_at_the_end_and_the_way_there(reader):
    pages, document = reader
    texts = [sheet.extract_text() for sheet in document.pages]
    (end,) = [h for h in pages[0].headings if h.id == pdf.SOLUTIONS]
    outline = [e for each in document.outline if isinstance(each, list) for e in each]
    (mark,) = [entry for entry in outline if entry.title == end.text]
    first = document.get_destination_page_number(mark)
    before, after = "\n".join(texts[2:first]), "\n".join(texts[first:])
    asked = [int(n) for n in re.findall(r"→\s*Solution (\d+)", before + after)]
    assert asked == [*range(1, len(asked) + 1)] and len(asked) >= 5
    assert [int(n) for n in re.findall(r"^Solution (\d+)\.", after, re.M)] == asked
    goals = [
        document.pages.index(list.__getitem__(link["/Dest"], 0).get_object())
        for sheet in document.pages[2 : first + 1]  # they may begin below exercises
        for link in (each.get_object() for each in sheet.get("/Annots", ()))
        if "/Dest" in link
    ]
    assert sum(goal >= first for goal in goals) >= len(asked)


def test_readers_see_states_of_an_explorer(reader):
    text = " ".join(sheet.extract_text() for sheet in reader[1].pages)
    states = re.findall(r"width = (\d+), τ\s*₀\s*= ([\d.]+)\.\s+Degree", text)
    assert len(set(states)) == 3 and len({n for n, _ in states}) > 1
    assert "Drawn for" not in text


@pytest.mark.parametrize(
    ("paper", "shown"),
    [
        ([], ["a = 0, b = y", "a = 2, b = y", "a = 3, b = y"]),
        ([{"a": 3, "b": "x"}, {"b": "y", "a": 1}], ["a = 3, b = x", "a = 1, b = y"]),
    ],
)
@pytest.mark.parametrize("own", [False, True])
def test_states_of_an_explorer_are_those_that_make_the_point(
    browser, tmp_path, paper, shown, own
):
    def draw(a, b):
        circle = f'<circle id="c" r="{a}"/><use href="#c"/><text>{b}</text>'
        svg = f'<svg xmlns="http://www.w3.org/2000/svg">{circle}</svg>'
        alt = "A circle whose radius is told by a slider below it."
        return BookFigure(svg, alt, f"Radius {a}." if own else "Circles.")

    made = explore(draw, a=[0, 1, 2, 3], b=["x", "y"], paper=paper)
    (tmp_path / "explorer.mjs").write_text(
        (ROOT / "lib/figures/explorer.mjs").read_text("utf-8")
    )
    (tmp_path / "index.html").write_text(
        f"<article>{made.html}</article><script type=module src=explorer.mjs></script>"
    )
    with served(tmp_path) as site:
        tab = browser.new_page()
        tab.goto(site, wait_until="networkidle")
        asked = {"body": "", "edition": "reader", "answers": pdf.ANSWERS}
        assert tab.evaluate(pdf.SCRIPT, asked) == []
        states = tab.locator(".paper-state")
        said = [f"{text}. Radius {text[4]}." for text in shown] if own else shown
        assert states.locator("p").all_inner_texts() == said
        common = tab.locator("figcaption").all_inner_texts()
        assert common == ([] if own else ["Circles."])
        radii = [e.get_attribute("r") for e in states.locator("circle").all()]
        assert radii == [text[4] for text in shown]
        names = tab.evaluate(
            "[...document.querySelectorAll('svg [id]')].map(e => e.id)"
        )
        assert len(set(names)) == len(names) == len(shown)
        tab.close()
