"""What finishes a page of the theme, and what a theme that changed is met with."""

import re

import matplotlib.pyplot as plt
import pytest

from lib.figures.svg import render
from tools.command import ROOT, PipelineError
from tools.site import finish
from tools.site.markup import one, parsed, some

PAGE = """<!DOCTYPE html>
<html lang="en" data-theme="auto"><head><title>A &amp; b</title>
<link rel="preload" as="script" href="x.js"/>
<script data-cfasync="false">t = localStorage.getItem("theme") || "auto";</script>
<script src="fontawesome.js"></script><script>one("</p>" && 1)</script>
<link rel="stylesheet" href="book.css"/>
<script type="module" src="m.mjs"></script><script src="two.js"></script>
<script src="../searchindex.js?v=1"></script><script>let toggleHint = 1;</script></head>
<body><header id="pst-header">
</header><div id="pst-primary-sidebar">logo</div>
<p>1 &lt; 2 <svg viewBox="0 0 1 1"><path d="M0 0"/></svg>
<button onclick="window.print()" title="&lt;Print&gt;">x</button></p>
<nav id="pst-page-toc-nav"><a href="#x">x</a></nav><footer class="bd-footer">
</footer></body></html>"""


def finished(html=PAGE):
    tree = parsed(html)
    finish.finish_page(tree, "a.html")
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
    assert "searchindex" not in html and "toggleHint" not in html
    assert 'dataset.code = localStorage.getItem("code")' in html
    head, body = html.split("</head>")
    # A script behind the style sheet would wait for it, and so would all below.
    assert head.index("</title>") < head.index("data-cfasync") < head.index("book.css")
    assert 'dataset.arriving = ""' in head[: head.index("book.css")]
    assert 'src="m.mjs"' in head and "two.js" not in head and "one(" not in head
    # Behind the text, in their order and as they were.
    ours, theirs = body.index('<script>one("</p>" && 1)</script>'), body.index("two.js")
    assert body.index("</nav>") < ours < theirs < body.index("</body>")


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
        (("<path", "<style>p{}</style><path"), "a drawing has other styles: 'p{}'"),
    ],
)
def test_a_theme_that_changed_stops_the_build(changed, sentence):
    assert changed[0] in PAGE
    with pytest.raises(PipelineError, match=f"^a.html: .*{sentence}"):
        finished(PAGE.replace(*changed))


def test_entries_of_a_bibliography_are_list_items():
    html = (
        '<div class="citation-list" role="list"><div role="doc-biblioentry">'
        '<a href="#x" role="doc-backlink">1</a></div></div>'
    )
    tree = parsed(html)
    finish.set_list_roles(tree, "a.html")
    assert str(tree) == (
        '<div class="citation-list" role="list"><div role="listitem">'
        '<a href="#x">1</a></div></div>'
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
    finish.drop_stills(tree)
    assert str(tree) == f"<svg></svg>{kept}"


def test_rule_of_drawings_is_left_to_the_style_sheet_of_the_book():
    """matplotlib writes this rule, for all elements of the page, into each drawing."""
    fig = plt.figure()
    drawn = render(fig)
    plt.close(fig)
    kept = "<noscript><style>p { color: red }</style></noscript>"
    template = f"<template>{drawn}</template>"
    tree = parsed(f"<body>{kept}<figure>{drawn}</figure>{template}</body>")
    finish.drop_styles_of_drawings(tree, "a.html")
    (rule,) = set(re.findall("<style[^>]*>(.*?)</style>", drawn))
    left = str(tree)
    assert rule not in left and kept in left and left.count("<svg") == 2
    css = (ROOT / "tools/site/static/book.css").read_text("utf-8")
    declared = rule.removeprefix("*{").removesuffix("}")
    assert f":where(.book-figure svg *) {{ {declared}; }}" in css


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
