"""HTML that is edited where a parser found it, and what finishes a page."""

import re

import pytest

from tools.command import PipelineError
from tools.site import finish
from tools.site.markup import Markup
from tools.site.outputs import without_stills

PAGE = """<!DOCTYPE html>
<html lang="en" data-theme="auto"><head><title>A &amp; b</title>
<link rel="stylesheet" href="a.css"><link rel=preload as=script href=x.js />
<script data-cfasync="false">t = localStorage.getItem("theme") || "auto";</script>
<script src="fontawesome.js"></script><script>one("</p>")</script>
<script type="module" src="m.mjs"></script><script src="two.js"></script></head>
<body><p>1 < 2 <br> <svg viewBox="0 0 1 1"><path d="M0 0"/></svg>
<button onclick="window.print()" title="&lt;Print&gt;">x</button>
<details class="admonition hide"><summary aria-label="Toggle hidden content">s</summary>
</details></p></body></html>"""


def finished(html=PAGE):
    page = Markup(html, "a.html")
    for mend in (
        finish.put_scripts_last,
        finish.drop_handler,
        finish.drop_fold_labels,
        finish.set_theme_at_once,
        finish.set_list_roles,
    ):
        mend(page)
    return page.text()


def test_what_is_not_edited_stays():
    assert Markup(PAGE).text() == PAGE
    page = Markup(PAGE)
    (svg,) = page.all("svg")
    page.remove(svg)
    assert page.text() == PAGE.replace(page.whole(svg), "")
    assert page.whole(svg) == '<svg viewBox="0 0 1 1"><path d="M0 0"/></svg>'


def test_places_are_those_of_the_elements():
    page = Markup(PAGE)
    (title,) = page.all("title")
    assert page.content(title) == "A &amp; b" and title.within("head")
    (path,) = page.all("path")
    assert path.within("svg") and not path.within("head") and path.parent.name == "svg"
    scripts = [page.content(script) for script in page.all("script")]
    assert 'one("</p>")' in scripts and scripts.count("") == 3


def test_attributes_are_set_added_and_taken_away():
    page = Markup('<a b="&lt;1&gt;" hidden c=2>x</a><i d="1" />')
    a, i = page.all()
    page.set(a, b=None, c="<3>", e="4")
    page.set(i, d="2")
    assert page.text() == '<a hidden c="&lt;3&gt;" e="4">x</a><i d="2" />'


def test_two_edits_of_one_place_are_refused():
    page = Markup("<p><b>x</b></p>", "p.html")
    paragraph, bold = page.all()
    page.remove(paragraph)
    page.set(bold, id="x")
    with pytest.raises(PipelineError, match="p.html: two edits meet"):
        page.text()


@pytest.mark.parametrize("html", ["<p>no b</p>", "<b>1</b><b>2</b>"])
def test_a_place_that_is_not_there_is_named_with_its_page(html):
    with pytest.raises(PipelineError, match="p.html: it should have one b, and has"):
        Markup(html, "p.html").one("one b", "b")


def test_page_of_the_theme_is_finished():
    html = finished()
    assert '<html lang="en" data-theme="light">' in html
    assert "prefers-color-scheme: dark" in html and '|| "auto"' not in html
    assert "fontawesome" not in html and "preload" not in html
    assert "onclick" not in html and 'title="&lt;Print&gt;"' in html
    assert "aria-label" not in html and "<summary>s" in html
    head, body = html.split("</head>")
    assert 'src="m.mjs"' in head and "two.js" not in head and "one(" not in head
    assert re.search(r'one\("</p>"\).*two\.js.*</body>', body, re.S)


@pytest.mark.parametrize(
    ("changed", "missing"),
    [
        (("rel=preload", "rel=other"), "links that load scripts ahead"),
        (("fontawesome.js", "icons.js"), "the script of the icons"),
        (('|| "auto"', "|| auto"), "the script that sets the theme"),
        (("Toggle hidden", "Show hidden"), "a label on each folded cell"),
        (("window.print()", "print()"), "no handlers in attributes"),
    ],
)
def test_a_theme_that_changed_stops_the_build(changed, missing):
    with pytest.raises(PipelineError, match=f"^a.html: it should have {missing}"):
        finished(PAGE.replace(*changed))


def test_entries_of_a_bibliography_are_list_items():
    html = (
        '<div class="citation-list" role="list"><div role="doc-biblioentry">'
        '<a role="doc-backlink" href="#x">1</a></div></div>'
    )
    page = Markup(html)
    finish.set_list_roles(page)
    assert page.text() == (
        '<div class="citation-list" role="list"><div role="listitem">'
        '<a href="#x">1</a></div></div>'
    )
    with pytest.raises(PipelineError, match="entries in its bibliography"):
        finish.set_list_roles(Markup(html.replace("doc-biblioentry", "listitem")))


def test_only_stored_pictures_are_left_out():
    kept = '<template><p>x</p></template><img src="data:image/png;base64,x">'
    still = '<template><img alt="a" src="data:image/png;base64,x"></template>'
    assert without_stills(f"<svg/>{still}{kept}") == f"<svg/>{kept}"
