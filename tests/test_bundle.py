"""The style sheet of a page: no rule is missed, and few are there for nothing."""

import gzip
import re

import pytest
from test_site import CHAPTER, LANDING, SITE

from tools.command import ROOT, PipelineError
from tools.site.bundle import TRIMMED, names_in, trim_style_sheets, trimmed

NAMES = frozenset({"there", "also", "here"})


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (".there { color: red; }", ".there{color: red;}"),
        (".gone { color: red; }", ""),
        (".gone, p > .there:hover {}", "p > .there:hover{}"),
        (".there.gone {} #gone {} #here {}", "#here{}"),
        ("p:not(.gone) {} [class*=gone] {}", "p:not(.gone){}\n[class*=gone]{}"),
        ('a::before { content: ".gone {"; }', 'a::before{content: ".gone {";}'),
        ("@media print { .gone {} .also { top: 0 } }", "@media print{.also{top: 0}}"),
        ("@media print { .gone {} }", ""),
        ("@font-face { src: url(a.woff) }", "@font-face { src: url(a.woff) }"),
        (".there { color: /* .gone */ #abc }", ".there{color:  #abc}"),
        (r".there\:x {} .also {}", ".also{}"),
    ],
)  # fmt: skip
def test_a_rule_stays_where_it_can_apply(text, kept):
    assert trimmed(text, NAMES) == kept


def test_a_style_sheet_that_cannot_be_read_stops_the_build():
    with pytest.raises(PipelineError, match="a style sheet cannot be read"):
        trimmed(".there { color: red } }", NAMES)


def test_names_are_those_of_pages_and_the_words_of_scripts():
    page = '<p class="a b" id="c">d</p><script>x.add("e-f")</script>'
    data = '<script type="application/json">"g"</script>'
    names = names_in([page + data], ['toggle("h")'])
    assert {"a", "b", "c", "e-f", "h"} <= names and not {"d", "g"} & names


def test_a_class_that_comes_or_goes_changes_the_name_of_the_sheet(tmp_path):
    """And a build that adds to the last one ends with the files of one from nothing."""
    static = tmp_path / "_static"
    static.mkdir()
    whole = "book-0123456789ab.css"
    (static / whole).write_text(".a {} .b {}")
    page, seen = tmp_path / "page.html", []
    for name in "aba":
        html = (
            page.read_text() if seen else f'<link href="_static/{whole}"/><p class="a">'
        )
        page.write_text(re.sub('class="."', f'class="{name}"', html))
        trim_style_sheets(tmp_path)
        (sheet,) = static.glob("book-*-*.css")
        assert sheet.name in page.read_text() and sheet.read_text() == f".{name}{{}}"
        seen.append(sheet.name)
    assert seen[0] == seen[2] != seen[1]


MISSED = """async ([page, whole, trimmed]) => {
  const selectors = async (name) => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(await (await fetch(name)).text());
    const of = (rules) => [...rules].flatMap((rule) => rule.selectorText
      ? rule.selectorText.split(/,(?![^(]*\\))/).map((each) => each.trim())
      : rule.cssRules ? of(rule.cssRules) : []);
    return new Set(of(sheet.cssRules));
  };
  const [all, kept] = [await selectors(whole), await selectors(trimmed)];
  const dropped = [...all].filter((each) => !kept.has(each));
  const state = /::?(?!not|is|where|has|root)[a-z-]+(\\([^)]*\\))?/g;
  const bare = (each) => each.replace(state, "") || "*";
  const there = (each) => {
    try { return document.querySelector(bare(each)) !== null; } catch { return false; }
  };
  return [dropped.length, dropped.filter(there)];
}"""


@pytest.mark.parametrize(
    "name", [LANDING, CHAPTER, "search.html?q=rank", "genindex.html"]
)
def test_no_rule_that_a_page_needs_was_dropped(site, browser, name):
    """Of the page as its scripts have made it."""
    file = SITE / name.partition("?")[0]
    sheet = TRIMMED.search(file.read_text("utf-8"))
    context = browser.new_context()
    page = context.new_page()
    page.goto(site + name, wait_until="load")
    whole = f"{site}_static/book-{sheet[1]}.css"
    number, missed = page.evaluate(MISSED, [name, whole, f"{site}_static/{sheet[0]}"])
    assert number > 1000 and missed == []
    context.close()


def test_the_style_sheet_is_light():
    sheet = TRIMMED.search((SITE / LANDING).read_text("utf-8"))[0]
    assert len(gzip.compress((SITE / "_static" / sheet).read_bytes())) <= 40_000


SOURCES = {
    path.name: path
    for folder in ("lib/figures", "lib/exhibits", "tools/site/static")
    for path in (ROOT / folder).glob("*.mjs")
}


@pytest.mark.parametrize("name", SOURCES)
def test_scripts_are_served_without_the_lines_of_their_comments(name):
    text = SOURCES[name].read_text("utf-8")
    lines = [row for row in text.splitlines() if not row.lstrip().startswith("//")]
    assert (SITE / "_static" / name).read_text("utf-8").splitlines() == lines
    # A line that begins like a comment is one: no text of several lines is open there.
    parts = re.split(r"^ *//.*\n", text, flags=re.M)
    assert all(part.count("`") % 2 == 0 for part in parts)
