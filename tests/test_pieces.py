"""What pages give to others: previews, sections for the search, letters."""

import json

import pytest

from tools.site import pieces
from tools.site.markup import parsed
from tools.site.tex import letter_of, readable

PAGE = r"""<article><section id="top"><h1>Title<a class="headerlink" href="#top">#</a></h1>
<p>Intro with <span class="math">\(n \ge m\)</span>.</p>
<section id="one"><h2>One</h2><div class="proof theorem" id="thm"><p>A <a href="b.html">law</a>
<span class="math">\(x\)</span></p><details class="statement-checks">x</details></div>
<div class="cell"><div class="cell_input"><pre>code</pre></div></div>
<section id="two"><h3>Two</h3><p>Below.</p></section></section></section>
<dl class="py function"><dt id="lib.f">f(x)</dt><dd><p>Computes f.</p></dd></dl></article>"""  # noqa: E501


def test_a_page_leaves_its_pieces_beside_it(tmp_path):
    path = tmp_path / "chapters" / "2-x.html"
    path.parent.mkdir()
    pieces.write_pieces(parsed(PAGE), path, "chapters/2-x.html")
    previews = json.loads(path.with_suffix(".previews.json").read_text())
    assert list(previews) == ["thm"]
    # Nothing of it leads away, and no name is there twice.
    assert "href" not in previews["thm"] and "id=" not in previews["thm"]
    assert "statement-checks" not in previews["thm"] and "law" in previews["thm"]
    sections = json.loads(path.with_suffix(".sections.json").read_text())
    assert [(each["to"], each["title"]) for each in sections] == [
        ("chapters/2-x.html", "Title"),
        ("chapters/2-x.html#one", "One"),
        ("chapters/2-x.html#two", "Two"),
        ("chapters/2-x.html#lib.f", "lib.f"),
    ]
    assert sections[0]["text"].startswith("Intro with n ≥ m")
    assert "code" not in sections[1]["text"] and "Below" not in sections[1]["text"]
    assert sections[1]["page"] == "Title" and sections[0]["page"] == ""
    (tmp_path / "_static").mkdir()
    pieces.write_index(tmp_path)
    assert json.loads((tmp_path / pieces.INDEX).read_text()) == []  # a page that went
    path.write_text(PAGE)
    pieces.write_index(tmp_path)
    assert json.loads((tmp_path / pieces.INDEX).read_text()) == sections


def test_chapters_weigh_more_than_what_is_around_them():
    def weight(name):
        return pieces.sections(parsed(PAGE), name)[1]["weight"]

    chapter = weight("chapters/1-a.html")
    for name in ("index", "reference/api", "reference/more-checks-2"):
        assert chapter > 2 * weight(f"chapters/{name}.html")


def test_symbols_of_the_notation():
    table = r"""<article><table><thead><tr><th>symbol</th><th>meaning</th><th>ch.</th>
    <th>code</th></tr></thead><tbody>
    <tr><td><p><span class="math">\(n_k\)</span></p></td><td><p>key width</p></td>
    <td>1, 2</td><td></td></tr>
    <tr><td><span class="math">\(i, j\)</span></td><td>tokens</td><td>all</td>
    <td></td></tr>
    <tr><td><span class="math">\(\lVert x\rVert\)</span></td><td>norm</td><td>all</td>
    <td></td></tr></tbody></table></article>"""
    symbols = pieces.symbols(parsed(table))
    assert [(each["letters"], each["chapters"]) for each in symbols] == [
        *((["n_k"], [1, 2]), (["i", "j"], None))
    ]
    assert symbols[0]["meaning"] == "key width"


@pytest.mark.parametrize(
    ("tex", "text"),
    [
        (r"\(n \ge m\)", "n ≥ m"),
        (r"\(\tau_0^2\)", "τ₀²"),
        (r"\(\frac12\)", "1/2"),
        (r"\(\mathbb R^d\)", "R^d"),
        (r"\[\int_0^1 \frac{\mathrm dx}{\sqrt{1 - x^2}}\]", "…"),
    ],
)
def test_a_formula_as_it_is_read(tex, text):
    assert readable(tex) == text


def test_letters_of_symbols():
    known = {
        r"\tau_{0}": r"\tau_0", "n_k": "n_k", "b(V)": "b", r"\mathcal A": r"\mathcal A",
        r"\lvert x\rvert": None, r"\langle x, y\rangle": None,
    }  # fmt: skip
    assert {tex: letter_of(tex) for tex in known} == known
