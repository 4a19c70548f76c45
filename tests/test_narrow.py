"""The built site on narrow screens: nothing is cut, and what scrolls shows it."""

import json
from pathlib import Path

import pytest
from docutils import nodes
from docutils.utils import new_document
from sphinx.errors import ExtensionError
from test_site import LANDING, pages, soup_of
from waits import frames

from tools.site import formulas, reading_graph
from tools.site.markup import parsed

CHAPTERS = [
    name for name in pages() if name.startswith("chapters/") and name.count("/") == 1
]
PHONE, SMALL = (390, 844), (320, 700)
SVG = "http://www.w3.org/2000/svg"
LEAST = 11  # pixels of a label on a phone

# What is wrong on a page, as lines that begin with the kind of fault.
FAULTS = """(least) => {
  const find = (name) => document.querySelector(name);
  const article = find('article') ?? find('main'), faults = [];
  const fault = (kind, element, more) =>
    faults.push(`${kind}: ${more}: ${element.textContent.trim().slice(0, 60)}`);
  const scrolls = (s) => ['auto', 'scroll'].includes(s.overflowX);
  // What is said to a screen reader is wider than what is seen.
  const hides = (e) => [...e.querySelectorAll(':not(mjx-assistive-mml *, svg *)')].some(
    (inner) => !inner.closest('mjx-assistive-mml, [data-scrolls]')
      && inner.getBoundingClientRect().right > e.getBoundingClientRect().right + 1)
    || [...e.childNodes].some((text) => text.nodeType === 3 && text.data.trim());
  for (const formula of article.querySelectorAll('mjx-container:not([display])')) {
    const box = formula.getBoundingClientRect();
    if (!box.width) continue;
    let edge = innerWidth;
    for (let e = formula.parentElement; e !== article; e = e.parentElement) {
      const s = getComputedStyle(e);
      if (s.display === 'inline' || s.overflowX === 'visible') continue;
      edge = scrolls(s) ? Infinity : Math.min(edge, e.getBoundingClientRect().right);
      if (edge === Infinity) break;
    }
    if (box.right > edge + 1) fault('cut', formula, `${box.right - edge} px`);
    const next = document.createTreeWalker(article);
    next.currentNode = (formula.closest('.math') ?? formula).lastChild;
    let text = next.nextNode();
    while (text && formula.contains(text)) text = next.nextNode();
    if (text?.nodeType !== 3 || !/^[.,;:?!)]/.test(text.data)) continue;
    const range = document.createRange();
    range.setEnd(text, 1);
    range.setStart(text, 0);
    if (range.getBoundingClientRect().left < box.right - 3)
      fault('alone', formula, `the ${text.data[0]} after a formula`);
  }
  for (const e of article.querySelectorAll('*')) {
    const s = getComputedStyle(e);
    if (e.namespaceURI.endsWith('svg') || e.parentElement.closest('mjx-container'))
      continue;
    if (s.display === 'inline' || s.overflowX === 'visible') continue;
    const beyond = `${e.scrollWidth - e.clientWidth} px`;
    if (e.clientWidth < 20 || e.scrollWidth <= e.clientWidth + 1) continue;
    if (!scrolls(s)) hides(e) && fault('hidden', e, beyond);
    else if (e.dataset.more !== 'right' || s.boxShadow === 'none')
      fault('no cue', e, `${e.tagName} goes on for ${beyond}`);
  }
  for (const text of article.querySelectorAll('svg text')) {
    if (!text.getClientRects().length || !text.textContent.trim()) continue;
    const { a, b } = text.getScreenCTM();
    const parts = [text, ...text.querySelectorAll('tspan')];
    const sizes = parts.map((e) => parseFloat(getComputedStyle(e).fontSize));
    const pixels = Math.min(...sizes) * Math.hypot(a, b);
    if (pixels < least) fault('small', text, `${pixels.toFixed(1)} px`);
  }
  return faults;
}"""
OPEN = "document.querySelectorAll('details').forEach((each) => (each.open = true))"


@pytest.fixture
def phone(browser):
    context = browser.new_context(
        viewport={"width": PHONE[0], "height": PHONE[1]}, reduced_motion="reduce"
    )
    yield context
    context.close()


def settled(page):
    page.wait_for_load_state("load")
    frames(page, 4)  # two turns, after which what observes a size has been told


def opened(context, address):
    page = context.new_page()
    page.goto(address)
    settled(page)
    page.evaluate(OPEN)
    settled(page)
    return page


def faults(page, size, least=0):
    page.set_viewport_size({"width": size[0], "height": size[1]})
    settled(page)
    return page.evaluate(FAULTS, least)


@pytest.mark.parametrize("name", pages())
def test_nothing_is_cut_or_small_on_a_narrow_page(site, phone, name):
    page = opened(phone, site + name)
    assert faults(page, PHONE, LEAST) == []
    assert faults(page, SMALL) == []


@pytest.mark.parametrize("name", CHAPTERS)
def test_nothing_is_cut_at_twice_the_size(site, browser, name):
    """A window of 1280 pixels at 200 percent has 640, of two by two each."""
    context = browser.new_context(
        viewport={"width": 640, "height": 400},
        device_scale_factor=2,
        reduced_motion="reduce",
    )
    page = opened(context, site + name)
    assert page.evaluate(FAULTS, 0) == []
    assert page.evaluate("document.documentElement.scrollWidth") == 640
    context.close()


def test_faults_of_a_narrow_page_are_noticed(site, phone):
    """Each fault planted in a page without one, as it was before it was mended."""
    page = opened(phone, f"{site}chapters/reference/bibliography.html")
    assert faults(page, PHONE, LEAST) == []
    page.evaluate("""() => {
      const wide = '<mjx-container><i style="display:inline-block;width:%">x</i>';
      const box = document.createElement('div');
      box.innerHTML = `
        <p>${wide.replace('%', '600px')}</mjx-container></p>
        <p style="width:200px">${wide.replace('%', '200px')}</mjx-container>, and</p>
        <p style="overflow:hidden;white-space:nowrap">${'hidden words '.repeat(20)}</p>
        <div style="overflow:auto"><b style="display:block;width:600px">b</b></div>
        <svg viewBox="0 0 100 9" width="100"><text font-size="9" y="9">9</text></svg>`;
      document.querySelector('article').append(box);
    }""")
    kinds = {each.partition(":")[0] for each in page.evaluate(FAULTS, LEAST)}
    assert kinds == {"cut", "alone", "hidden", "no cue", "small"}


def test_shadow_stands_where_there_is_more(site, phone):
    page = opened(phone, f"{site}chapters/reference/benchmarks.html")
    box = page.locator(".pst-scrollable-table-container[data-scrolls]").first
    cell = box.locator("tbody tr").first.locator("td, th").first
    before = cell.bounding_box()["x"]
    for left, more in ((0, "right"), (30, "left right"), (99_999, "left")):
        box.evaluate("(e, left) => e.scrollTo({left, behavior: 'instant'})", left)
        page.wait_for_function(
            "([e, more]) => e.dataset.more === more", arg=[box.element_handle(), more]
        )
        assert box.evaluate("e => getComputedStyle(e).boxShadow").count("inset") == len(
            more.split()
        )
        assert abs(cell.bounding_box()["x"] - before) < 2  # the first column stays
    page.set_viewport_size({"width": 3000, "height": 900})
    settled(page)
    assert box.count() == 0 or page.evaluate(FAULTS, 0) == []


def test_wide_formula_has_a_line_of_its_own_while_it_is_wide(site, phone):
    for name in CHAPTERS:
        page = opened(phone, site + name)
        wide = page.locator(".formula-wide")
        if wide.count():
            break
    assert page.locator(".formula-wide[data-more]").count()
    assert page.evaluate(
        """() => [...document.querySelectorAll('.formula-wide')].every((each) => {
          each.scrollTo({ left: 9999, behavior: 'instant' });
          const inner = each.querySelector('mjx-container').getBoundingClientRect();
          return inner.right <= each.getBoundingClientRect().right + 1;
        })"""
    )
    page.set_viewport_size({"width": 1280, "height": 900})
    settled(page)
    assert wide.count() == 0
    assert page.locator(".formula[data-more], span.math[data-more]").count() == 0


def test_without_scripts_wide_code_has_a_shadow(site, browser):
    context = browser.new_context(
        viewport={"width": 390, "height": 844}, java_script_enabled=False
    )
    page = context.new_page()
    page.goto(f"{site}chapters/reference/running.html")
    background = page.evaluate(
        "getComputedStyle(document.querySelector('article pre')).backgroundAttachment"
    )
    assert background == "local, local, scroll, scroll"
    context.close()


def test_landing_page_has_each_chapter_with_its_picture_in_both_schemes(site, browser):
    page = soup_of(LANDING)
    cards = page.select(".reading-graph .graph-chapter")
    linked = [card.select_one(".graph-title a")["href"] for card in cards]
    listed = [name.removeprefix("chapters/") for name in CHAPTERS if name != LANDING]
    assert sorted(linked) == listed
    for card in cards:
        picture = card.find("svg", recursive=False)
        assert picture["role"] == "img" and len(picture["aria-label"]) >= 40
        assert not picture.find_all(["text", "a", "title"])
    colors = []
    for scheme in ("light", "dark"):
        context = browser.new_context(color_scheme=scheme)
        shown = context.new_page()
        shown.goto(site + LANDING)
        ink = "getComputedStyle(document.querySelector('.graph-chapter > svg')).fill"
        colors.append(shown.evaluate(ink))
        context.close()
    assert colors[0] != colors[1]


def test_garments_stand_on_the_page_itself_in_the_dark(site, browser):
    context = browser.new_context(color_scheme="dark")
    page = context.new_page()
    name = next(name for name in CHAPTERS if "softmax" in name)
    page.goto(site + name)
    image = page.locator(".exhibit-garments img").first
    image.wait_for()
    clear = "rgba(0, 0, 0, 0)"
    assert image.evaluate("e => getComputedStyle(e).backgroundColor") == clear
    context.close()


def together(*children):
    paragraph = nodes.paragraph("", "", *children)
    formulas.keep_together(paragraph)
    return [
        f"[{each.astext()}]" if isinstance(each, nodes.inline) else each.astext()
        for each in paragraph.children
        if each.astext()
    ]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("Let ", ", and", ["Let ", "[x,]", " and"]),
        ("a (", ") b", ["a ", "[(x)]", " b"]),
        ("", "-dimensional space", ["[x-dimensional]", " space"]),
        ("at ", "th place", ["at ", "[xth]", " place"]),
        ("if ", " then", ["if ", "x", " then"]),
        ("so ", "—which", ["so ", "x", "—which"]),
        ("“", "”.", ["[“x”.]"]),
    ],
)
def test_formula_keeps_what_touches_it(before, after, expected):
    given = [nodes.Text(before), nodes.math("", "x"), nodes.Text(after)]
    assert together(*given) == expected


def test_two_formulas_share_what_is_between_them():
    joined = together(
        nodes.math("", "x"), nodes.Text(", "), nodes.math("", "y"), nodes.Text(".")
    )
    assert joined == ["[x,]", " ", "[y.]"]
    joined = together(nodes.math("", "x"), nodes.Text("/"), nodes.math("", "y"))
    assert joined == ["[x/]", "y"]


def test_picture_of_a_chapter_has_neither_letters_nor_links():
    svg = parsed(Path("figures/map-of-limits.svg").read_text("utf-8")).svg
    made = reading_graph.thumbnail(svg, "The map & its limits.")
    tree = parsed(made).svg
    assert tree["aria-label"] == "The map & its limits." and tree["role"] == "img"
    assert not tree.find_all(["text", "a"]) and len(tree.find_all("circle")) == 8
    assert made == reading_graph.thumbnail(svg, "The map & its limits.")


def listed(*items):
    return nodes.bullet_list("", *(nodes.list_item("", *item) for item in items))


def chapter(name, text):
    link = nodes.reference("", name, refuri=f"{name}.html")
    return nodes.paragraph("", "", link, nodes.Text(text))


def test_graph_is_read_from_a_list(monkeypatch):
    monkeypatch.setattr(reading_graph, "picture", lambda path: f"<svg>{path.name}")
    below = listed([chapter("b", ". Then b.")])
    rows = listed([chapter("a", ". First."), below], [chapter("c", ": too.")])
    given = nodes.container("", rows, chapter("d", ". End."), classes=["reading-graph"])
    document = new_document("page")
    document += given
    reading_graph.resolve(None, document, "page")
    ways, last = given.children
    assert [" ".join(row.astext().split()) for row in ways.children] == [
        "<svg>a.ipynb a First. <svg>b.ipynb b Then b. After a.",
        "<svg>c.ipynb c too.",
    ]
    assert last.astext().split()[-4:] == ["End.", "After", "the", "others."]


def test_chapter_of_the_graph_without_a_link_is_one_sentence():
    with pytest.raises(ExtensionError, match="begins with its link: 'No link'"):
        reading_graph.card(nodes.paragraph("", "No link"), None)


def test_picture_of_a_chapter_is_the_first_it_has(tmp_path):
    path = tmp_path / "9-x.ipynb"

    def stored(*cells):
        path.write_text(json.dumps({"cells": cells}))

    svg = f"<p><svg xmlns='{SVG}'><path/></svg>"
    figure = {"text/html": svg, "text/plain": "A line."}
    drawn = {"source": "", "outputs": [{"text": "1"}, {"data": figure}]}
    drawing = {"source": ["```{raw} html\n", ":file: ../figures/map-of-limits.svg\n"]}
    stored({"source": "# Title"}, drawn, drawing)
    assert 'aria-label="A line."' in reading_graph.picture(path)
    stored(drawing, drawn)
    assert "A line." not in reading_graph.picture(path)
    stored({"source": "# Title"})
    with pytest.raises(ExtensionError, match=r"9-x.ipynb has stored no picture"):
        reading_graph.picture(path)
