"""What a page has before its style sheet is there, which then changes nothing of it."""

import gzip
from contextlib import contextmanager

import pytest
from playwright.sync_api import expect
from test_site import LANDING, SITE
from waits import arrived, frames

from tools.browser import WATCH, visitor
from tools.command import PipelineError
from tools.paint import DESK, PAGES, PHONE, SLOW
from tools.site.bundle import TRIMMED
from tools.site.first_rules import (
    PLACE,
    Seen,
    beginning,
    filled,
    first_rules,
    put_first_rules,
    seen_in,
    take_first_rules,
)
from tools.site.markup import parsed

SEEN = Seen(frozenset({"there", "also", "--asked"}), frozenset({"p", "a"}))
HEAD = (
    '<html><head><title>t</title><script src="_static/exhibit.mjs"></script>'
    '<link href="_static/globe.mjs" rel="modulepreload"/>'
    '<link href="_static/book-0123456789ab.css" rel="stylesheet"/></head>'
)
BODY = (
    '<body><p class="there">x</p><figure class="book-exhibit">'
    '<figcaption id="exhibit-0">c</figcaption></figure><table></table></body></html>'
)


@pytest.mark.parametrize(
    ("sheet", "kept"),
    [
        (".there { color: red; }", ".there{color:red}"),
        (".gone, p > .also:hover {top: 0}", "p > .also:hover{top:0}"),
        ("p.there::before {top: 0} table .there {top: 0}", "p.there::before{top:0}"),
        ("A:is(table, p) {top: 0} P#gone {top: 0}", "A:is(table, p){top:0}"),
        ("p {top: 0 !important; *zoom: 1}", "p{top:0!important}"),
        # Custom properties that are read, by others that are or by a script.
        ("p {--a: 1; --b: var(--c); --c: 2; left: var(--b)}",
         "p{--b:var(--c);--c:2;left:var(--b)}"),
        ("p {--a: 1} @media print {p {left: var(--a); --asked: 1}}",
         "p{--a:1}@media print{p{left:var(--a);--asked:1}}"),
        # Pictures come with the whole sheet.
        ('p {top: 0; --b: url("data:x"); background: url(x.png)}', "p{top:0}"),
        ("@keyframes turns {to {top: 0}} @keyframes rests {to {top: 0}}"
         "p {animation: turns 1s}",
         "@keyframes turns {to {top: 0}}p{animation:turns 1s}"),
        ('@font-face {font-family: "F"; src: x} @font-face {font-family: G}'
         "p {font: 1em G}", "@font-face {font-family: G}p{font:1em G}"),
        ("@media print {table {top: 0}} @import 'x';", '@import "x";'),
    ],
)  # fmt: skip
def test_a_rule_is_among_the_first_where_it_can_apply(sheet, kept):
    assert first_rules(sheet, SEEN) == kept


def test_what_is_seen_ends_with_the_exhibit(tmp_path):
    page = str(put(parsed(HEAD + BODY)))
    assert page.index("globe.mjs") < page.index("first-rules") < page.index("</head>")
    assert '</figure><link href="_static/book-0123456789ab.css"' in page
    assert '<link blocking="render" href="#exhibit-0" rel="expect"/>' in page
    (tmp_path / "exhibit.mjs").write_text('make("canvas", "exhibit-moves")')
    (tmp_path / "globe.mjs").write_text("`<b>`")
    seen = seen_in([beginning(filled(page, '[class="inside"] {}'))], tmp_path)
    assert {"there", "book-exhibit", "exhibit-moves"} <= seen.names
    assert {"p", "figure", "canvas", "b"} <= seen.elements
    assert "table" not in seen.elements and "inside" not in seen.names


def put(tree):
    put_first_rules(tree, "a.html")
    return tree


def test_rules_of_an_earlier_build_are_replaced():
    page = '<style id="first-rules">p{}</style><noscript><style>a{}</style></noscript>'
    assert filled(filled(page, ""), "b{}") == page.replace("p{}", "b{}")


def test_a_page_with_other_parts_has_its_sheet_in_its_head():
    tree = put(parsed(HEAD + BODY))
    take_first_rules(tree, "a.html")
    assert str(tree) == str(parsed(HEAD + BODY))
    assert str(put(parsed("<p>no exhibit</p>"))) == "<p>no exhibit</p>"


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ((' id="exhibit-0"', ""), "a caption with a name, 1 of"),
        (("modulepreload", "preload"), "modules of its exhibit, 1 of"),
        (('rel="stylesheet"', 'rel="icon"'), "a style sheet, 1 of"),
    ],
)
def test_a_page_that_lacks_a_place_stops_the_build(changed, sentence):
    assert changed[0] in HEAD + BODY
    with pytest.raises(PipelineError, match=f"^a.html: it should have {sentence}"):
        put(parsed((HEAD + BODY).replace(*changed)))


def text_of(name):
    return (SITE / name).read_text("utf-8")


@pytest.mark.parametrize("name", PAGES)
def test_the_first_rules_are_light_and_stand_in_the_head(site, name):
    """Every page carries them again: less than a twelfth of a second of a slow line."""
    head = text_of(name).partition("</head>")[0]
    assert not TRIMMED.search(head)
    assert 5_000 < len(gzip.compress(PLACE.search(head)[2].encode())) <= 15_000


def test_a_page_without_exhibit_has_its_sheet_first(site):
    head = text_of("chapters/reference/notation.html").partition("</head>")[0]
    assert TRIMMED.search(head) and not PLACE.search(head)


@contextmanager
def held_back(browser, address, body=None, **context):
    """A page whose complete style sheet is asked for and does not come.

    With a body of its own it has no script but those of its exhibit.
    """
    with browser.new_context(**context) as fresh:
        page = fresh.new_page()
        page.add_init_script(WATCH)
        asked = []
        page.route("**/_static/book-*.css", lambda route: asked.append(route))
        if body:
            page.route(address, lambda route: route.fulfill(body=body))
            page.route("**/*.mjs?v=*", lambda route: route.abort())
        page.goto(address, wait_until="commit")
        yield page, asked


@pytest.mark.parametrize("name", PAGES)
def test_an_exhibit_moves_before_the_style_sheet_is_there(site, browser, name):
    with held_back(browser, site + name, viewport=PHONE) as (page, asked):
        page.wait_for_function("() => window.moved")
        expect(page.locator(".exhibit-stage").first).to_be_visible()
        assert page.evaluate("document.readyState") == "loading"
        # What follows waits for the sheet, and comes with it.
        assert page.locator("article h2").count() == 0
        while not asked:
            frames(page)
        asked[0].continue_()
        expect(page.locator("article h2").first).to_be_attached()
        arrived(page)


def test_where_nothing_can_move_the_stored_pictures_stand(site, browser):
    with browser.new_context() as context:
        page = context.new_page()
        page.route("**/_static/*.mjs*", lambda route: route.abort())
        page.goto(site + LANDING)
        expect(page.locator(".exhibit-frame").first).to_be_visible()
        arrived(page)


# How each element as far as the exhibit looks, but for the pictures of icons: noted
# under a name, and compared with what was noted under it before.
LOOKS = """(name) => {
  // Its words come when the exhibit has computed them, and that may be between looks.
  const note = document.querySelector(".exhibit-note");
  note.replaceChildren(document.createElement("span"));
  note.dataset.now = note.dataset.moved = "";
  // The same of every element, and there are hundreds.
  const asked = [...getComputedStyle(document.body)].filter((property) =>
    !/^--|mask/.test(property));
  const looks = [...document.querySelectorAll("body, body *:not(script, link, svg *)")]
    .flatMap((element) => [null, "::before", "::after"].map((pseudo) => {
      const style = getComputedStyle(element, pseudo);
      if (pseudo && style.content === "none") return [];
      return [`${element.tagName} ${element.getAttribute("class")} ${pseudo ?? ""}`,
        ...asked.map((property) => style.getPropertyValue(property))];
    }));
  const before = (window.looks ??= {})[name];
  window.looks[name] = looks;
  return before && [looks.length, before.length, looks.flatMap((now, i) =>
    now.flatMap((each, k) => each === before[i]?.[k] ? []
      : [[now[0], `${asked[k - 1]}: ${each}`]]))];
}"""


def looks(page):
    """What differs from the last look: on a desk, a phone and paper, light and dark."""
    for media, size in (("screen", DESK), ("screen", PHONE), ("print", DESK)):
        page.set_viewport_size(size)
        page.emulate_media(media=media)
        for theme in ("light", "dark"):
            page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
            frames(page)
            yield page.evaluate(LOOKS, f"{media} {size['width']} {theme}")


@pytest.mark.parametrize("name", PAGES)
def test_the_style_sheet_changes_nothing_of_what_is_there(site, browser, name):
    """Of a page that ends with its exhibit, which rests; no script adds to it."""
    text = text_of(name)
    body = text[: text.index("/>", TRIMMED.search(text).end()) + 2]
    options = {"reduced_motion": "reduce", "viewport": DESK}
    with held_back(browser, site + name, body, **options) as (page, asked):
        expect(page.locator(".exhibit-moves")).to_have_count(1)
        assert [*looks(page)] == [None] * 6
        while not asked:
            frames(page)
        asked[0].continue_()
        page.wait_for_load_state("load")
        for count, before, other in looks(page):
            assert count == before > 100 and other == []


SHIFTS = """window.shifts = 0;
new PerformanceObserver((list) => list.getEntries().forEach(
  (each) => { window.shifts += each.value; }
)).observe({ type: "layout-shift", buffered: true });"""


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_pushed_aside_on_a_slow_line(site, browser, name, size):
    with visitor(browser, SLOW, viewport=size) as (page, _):
        page.add_init_script(SHIFTS)
        page.goto(site + name, wait_until="load")
        page.wait_for_function("() => document.querySelector('.exhibit-moves')")
        frames(page)
        assert page.evaluate("window.shifts") < 0.01
