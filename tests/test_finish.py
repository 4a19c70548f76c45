"""What finishes a page of the theme, and what a theme that changed is met with."""

import re
from copy import copy

import matplotlib.pyplot as plt
import pytest
from bs4 import BeautifulSoup

from lib.figures.svg import render
from tools.command import ROOT, PipelineError
from tools.site import finish
from tools.site.markup import one, parsed, some, with_drawings, without_drawings

UNUSED = (*finish.UNUSED, *finish.UNUSED_SEARCH)
SCRIPTS = "".join(f'<script src="../{name}?v=1"></script>' for name in UNUSED)
PAGE = f"""<!DOCTYPE html>
<html lang="en" data-theme="auto"><head><title>A &amp; b</title>
<link rel="preload" as="script" href="x.js"/>
<script data-cfasync="false">t = localStorage.getItem("theme") || "auto";</script>
<script src="fontawesome.js"></script><script>one("</p>" && 1)</script>
<link rel="stylesheet" href="_static/book.css"/>
<script type="module" src="m.mjs"></script><script src="two.js"></script>
{SCRIPTS}<script>let toggleHint;</script><script>var togglebutton;</script></head>
<body><header id="pst-header">
</header><div id="pst-primary-sidebar">logo</div>
<p>1 &lt; 2 <svg viewBox="0 0 1 1"><path d="M0 0"/></svg>
<button onclick="window.print()" title="&lt;Print&gt;">x</button></p>
<nav id="pst-page-toc-nav"><a href="#x">x</a></nav><footer class="bd-footer">
</footer></body></html>"""


def finished(html=PAGE, name="a.html"):
    tree = parsed(html)
    finish.finish_page(tree, name)
    return str(tree)


def test_page_of_the_theme_is_finished():
    html = finished()
    assert '<html data-theme="light" lang="en">' in html or (
        '<html lang="en" data-theme="light">' in html
    )
    assert "prefers-color-scheme: dark" in html and '|| "auto"' not in html
    assert "fontawesome" not in html and "preload" not in html
    assert "onclick" not in html and 'title="&lt;Print&gt;"' in html
    # The theme's script does not find the contents list, which book.mjs keeps.
    assert '<nav id="page-contents">' in html and "pst-page-toc-nav" not in html
    assert not [name for name in (*UNUSED, "toggleHint") if name in html]
    assert 'dataset.code = localStorage.getItem("code")' in html
    head, body = html.split("</head>")
    # A script behind the style sheet would wait for it, and so would all below.
    assert head.index("</title>") < head.index("data-cfasync") < head.index("book.css")
    assert 'dataset.arriving = ""' in head[: head.index("book.css")]
    assert 'src="m.mjs"' in head and "two.js" not in head and "one(" not in head
    # Behind the text, in their order and as they were.
    ours, theirs = body.index('<script>one("</p>" && 1)</script>'), body.index("two.js")
    assert body.index("</nav>") < ours < theirs < body.index("</body>")


ASKED = (
    "p", "P", "svg path", "clippath", "main > .a", ".a .b", "p.a.b", "#x", "p#x, .b",
    "[id]", "[ID]", "a[href^='#']", "[class!=a]", "p:not(.a)", "p:has(> b)", ".gone",
    ":is(p, b)", "*", "main > *", ":scope > p", "p:first-child", "template",
    "template p", "div .a", "input", "p, p.a",
)  # fmt: skip
ODD = """<main class="a"><p class="a b" id="x">1<b>2</b></p><p id="y">3</p>
<div><template><p class="a">4</p><template><p>5</p></template></template>
<p class="b">6<a href="#x">7</a></p></div><input class="a"/>
<svg><clipPath id="z"><path class="b" d="M0 0"/></clipPath></svg></main>"""


@pytest.mark.parametrize("selector", ASKED)
def test_elements_are_selected_as_beautiful_soup_selects_them(selector):
    fast, plain = parsed(ODD), BeautifulSoup(ODD, "html.parser")
    assert str(fast) == str(plain)
    for place in (None, "main", "div", "template", "p"):
        mine, other = (t.select_one(place) if place else t for t in (fast, plain))
        for ours, theirs in ((mine, other), (copy(mine), copy(other))):
            found = [*map(str, ours.select(selector))]
            assert found == [*map(str, theirs.select(selector))]
        assert len(mine.select(selector, limit=1)) == bool(other.select(selector))


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        (("preload", "other"), "should have links that load scripts ahead"),
        (("fontawesome.js", "icons.js"), "should have the script of the icons, 1 of"),
        (('rel="stylesheet"', 'rel="icon"'), "should have a style sheet, 1 of them"),
        (('|| "auto"', "|| auto"), "its script does not set the theme by"),
        (('data-theme="auto"', ""), "should have a theme that is set later, 1 of"),
        (("window.print()", "print()"), "refuses the handler onclick of <button>"),
        (("<header id", "<header class"), "an empty header#pst-header, 1 of"),
        (("</header>", "x</header>"), "an empty header#pst-header, 1 of"),
        (('"pst-primary-sidebar"', '"side"'), "should have a sidebar, 1 of"),
        (("togglebutton.js", "x.js"), "should have the script togglebutton.js, 1 of"),
        (("searchindex.js", "x.js"), "should have the script searchindex.js, 1 of"),
        (("let toggle", "let x"), "no script of it starts with 'let toggle'"),
        (("var toggle", "var x"), "no script of it starts with 'var togglebutton'"),
    ],
)
def test_a_theme_that_changed_stops_the_build(changed, sentence):
    assert changed[0] in PAGE
    with pytest.raises(PipelineError, match=f"^a.html: .*{sentence}"):
        finished(PAGE.replace(*changed))


def test_page_of_the_search_lacks_the_scripts_of_the_theme_for_it():
    html = re.sub("|".join(finish.UNUSED_SEARCH), "x.js", PAGE)
    assert "togglebutton" not in finished(html, finish.SEARCH)
    with pytest.raises(PipelineError, match="^b.html: .* the script searchtools.js"):
        finished(html, "b.html")


def test_letters_of_formulas_are_where_formulas_are():
    link = '<link href="_static/formulas.css?v=1" rel="stylesheet"/>'
    for text in ('<p class="math">x</p>', "<p>x</p>"):
        tree = parsed(link + text)
        finish.drop_formula_styles(tree, "a.html")
        assert ("formulas.css" in str(tree)) == ("math" in text)
    with pytest.raises(PipelineError, match="^a.html: .*the style sheet of formulas"):
        finish.drop_formula_styles(parsed("<p>x</p>"), "a.html")


def test_entries_of_a_bibliography_are_list_items():
    html = (
        '<div class="citation-list" role="list"><div role="doc-biblioentry">'
        "1</div></div>"
    )
    tree = parsed(html)
    assert finish.set_list_roles(tree, "a.html") == 1
    assert str(tree) == (
        '<div class="citation-list" role="list"><div role="listitem">1</div></div>'
    )
    with pytest.raises(PipelineError, match="a.html: .*entries in its bibliography"):
        finish.set_list_roles(
            parsed(html.replace("doc-biblioentry", "listitem")), "a.html"
        )


def test_logo_is_in_the_only_banner():
    tree = parsed(finished())
    banner = tree.select_one("#pst-primary-sidebar")
    assert banner["role"] == "banner" and "logo" in banner.text
    empty = [each["role"] for each in tree.select("header, footer")]
    assert empty == ["presentation"] * 2


def test_an_exhibit_is_named_by_its_caption():
    html = '<figure class="book-exhibit"><figcaption>A</figcaption></figure>'
    tree = parsed(html + html.replace("A", "B") + "<figure></figure>")
    finish.name_exhibits(tree, "a.html")
    one, two, drawn = tree.select("figure")
    assert one["aria-labelledby"] == one.figcaption["id"] != two.figcaption["id"]
    assert two["aria-labelledby"] == two.figcaption["id"] and not drawn.attrs
    with pytest.raises(PipelineError, match="should have a caption of its exhibit, 1"):
        finish.name_exhibits(parsed('<figure class="book-exhibit"></figure>'), "a.html")


def test_only_stored_pictures_are_left_out():
    kept = '<template><p>x</p></template><img src="data:image/png;base64,x"/>'
    still = '<template><img alt="a" src="data:image/png;base64,x"/></template>'
    tree = parsed(f"<svg></svg>{still}{kept}")
    assert finish.drop_stills(tree) == 1
    assert str(tree) == f"<svg></svg>{kept}"


def test_rule_of_drawings_is_left_to_the_style_sheet_of_the_book():
    """matplotlib writes this rule, for all elements of the page, into each drawing."""
    fig = plt.figure()
    drawn = render(fig)
    plt.close(fig)
    kept = "<noscript><style>p { color: red }</style></noscript>"
    template = f"<template>{drawn}</template>"
    page = f"<body>{kept}<figure>{drawn}</figure>{template}</body>"
    text, drawings = without_drawings(page)
    assert with_drawings(text, drawings) == page
    assert finish.drop_styles(drawings, "a.html") == 2
    (rule,) = set(re.findall("<style[^>]*>(.*?)</style>", drawn))
    left = with_drawings(str(parsed(text)), drawings)
    assert rule not in left and kept in left and left.count("<svg") == 2
    css = (ROOT / "tools/site/static/book.css").read_text("utf-8")
    declared = rule.removeprefix("*{").removesuffix("}")
    assert f":where(.book-figure svg *) {{ {declared}; }}" in css


@pytest.mark.parametrize(
    ("drawing", "sentence"),
    [
        ("<style>p{}</style><path/>", "a drawing has other styles: 'p{}'"),
        ('<path d="M0 0" onclick="x()"/>', "refuses the handler onclick of a drawing"),
    ],
)
def test_what_no_drawing_may_have(drawing, sentence):
    with pytest.raises(PipelineError, match=f"^a.html: .*{sentence}"):
        finish.drop_styles(["<path/>", drawing], "a.html")


def test_a_script_with_the_text_of_a_drawing_is_no_drawing():
    page = '<script>"<svg><g>"</script><svg id="a"><g/></svg><p>x</p>'
    text, drawings = without_drawings(page)
    assert drawings == ["<g/>"] and '<script>"<svg><g>"</script>' in text
    assert with_drawings(text, drawings) == page


def test_theme_does_not_measure_what_is_folded(tmp_path):
    script = tmp_path / "theme.js"
    script.write_text(f"a({finish.TAB_STOPS})")
    for _ in range(2):  # a build of single pages finds what the first one left
        finish.drop_tab_stops(script)
        assert script.read_text() == f"a({finish.NOTHING})"
    script.write_text("a('pre')")
    with pytest.raises(PipelineError, match="^theme.js: it does not measure"):
        finish.drop_tab_stops(script)


def test_places_are_counted():
    tree = parsed("<p><b>1</b><b>2</b></p>")
    assert [b.text for b in some(tree, "p.html", "bold words", "b")] == ["1", "2"]
    assert one(tree, "p.html", "a paragraph", "p").name == "p"
    sentence = "^p.html: it should have a bold word, 1 of them; there are 2$"
    with pytest.raises(PipelineError, match=sentence):
        one(tree, "p.html", "a bold word", "b")
    with pytest.raises(PipelineError, match="should have rules; there are 0"):
        some(tree, "p.html", "rules", "hr")


def test_policy_has_the_digest_of_each_inline_script_as_it_is_written():
    tree = parsed(PAGE)
    finish.finish_page(tree, "a.html")
    finish.set_policy(tree, "a.html")
    written = str(tree)
    inline = re.findall(r"<script(?![^>]* src=)[^>]*>(.*?)</script>", written, re.S)
    assert len(inline) == 2 and "prefers-color-scheme" in inline[0]
    (policy,) = re.findall('content="(default-src[^"]*)"', written)
    assert policy.count("'sha256-") == 2
    assert all(finish.source_of(script) in policy for script in inline)


STILL = '<template><img src="data:image/png;base64,x"/></template>'
EVERYTHING = PAGE.replace(
    "</p>\n<nav",
    f"<svg><style>{finish.OF_DRAWINGS}</style></svg>{STILL}</p>"
    '<div class="citation-list"><p role="doc-biblioentry">x</p></div>\n<nav',
).replace("</title>", '</title><link rel="stylesheet" href="_static/formulas.css"/>')
FILES = {
    "_static/book.css": "@font-face{font-family:Font Awesome\\ 6 Free}",
    "_static/formulas.css": "",
    "_static/fontawesome.js": "",
    "_static/webfonts/fa-solid.woff2": "",
    "_static/theme.css.map": "",
    "_static/scripts/pydata-sphinx-theme.js": finish.TAB_STOPS,
}


@pytest.fixture
def site(tmp_path):
    """A site of one page on which there is something to mend everywhere."""
    for name, text in {**FILES, "a.html": EVERYTHING}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def edit(site, old, new):
    text = (site / "a.html").read_text()
    assert old in text
    (site / "a.html").write_text(text.replace(old, new))


def test_a_site_is_finished_once(site):
    page = site / "a.html"
    assert finish.finish(site) == {page}
    left = {path.name for path in site.rglob("*") if path.is_file()} - {"a.html"}
    assert not [n for n in left if n.startswith(("fa-", "fonta")) or n.endswith(".map")]
    html = page.read_text()
    assert "page-contents" in html and "formulas.css" not in html
    assert finish.finish(site) == set() and page.read_text() == html


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        (('onclick="window.print()"', ""), "a button that prints"),
        (("pst-page-toc-nav", "toc"), "a list of contents, #pst-page-toc-nav"),
        (("citation-list", "works"), "a bibliography, .citation-list"),
        (("data:image/png;", "data:image/gif;"), "a picture stored with its drawing"),
        (("<svg><style>", "<noscript><style>"), "a drawing with a style of its own"),
        (("_static/fontawesome.js", None), "files **/fontawesome*"),
        (("_static/webfonts/fa-solid.woff2", None), "files **/fa-*"),
        (("_static/theme.css.map", None), "files **/*.map"),
    ],
)
def test_what_no_page_has_stops_a_build_from_nothing(site, changed, what):
    old, new = changed
    if new is None:
        (site / old).unlink()
    else:
        edit(site, old, new)
    sentence = f"^no page of the site has {re.escape(what)}, which a build mends$"
    with pytest.raises(PipelineError, match=sentence):
        finish.finish(site)


def test_a_page_that_is_made_again_need_not_have_what_others_have(site):
    finish.finish(site)
    (site / "b.html").write_text(
        EVERYTHING.replace("citation-list", "works").replace("pst-page-toc-nav", "x")
    )
    assert finish.finish(site) == {site / "b.html"}


def test_an_icon_font_that_changed_stops_the_build(site):
    (site / "_static/book.css").write_text("@font-face{font-family:Icons}")
    with pytest.raises(PipelineError, match="^a.html: .* have the icon font"):
        finish.finish(site)
