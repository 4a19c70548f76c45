"""Cells on a page: ideas open, the rest behind a line, checks behind a chip."""

import pytest

from tools.command import PipelineError
from tools.site.cells import as_cells, defined, fold_cells, said
from tools.site.markup import one, parsed

HEADER = '<div class="header-article__inner"></div>'


def cell(code, output="", tags=""):
    code = f'<div class="cell_input"><pre>{code}</pre></div>'
    shown = f'<div class="cell_output">{output}</div>' if output else ""
    return f'<div class="cell {tags}">{code}{shown}</div>'


def verdict(kind="holds", claim="it rises"):
    return (
        f'<div class="output"><div class="verdict verdict-{kind}" id="{claim}"'
        f' data-claim="{claim}" data-number="1.2"></div></div>'
    )


FIGURE = '<div class="output"><figure class="book-figure"></figure></div>'


def folded(*parts):
    tree = parsed(f"{HEADER}<article>{''.join(parts)}</article>")
    fold_cells(tree, "a.html")
    return tree


def test_an_idea_stands_open_and_the_rest_is_folded():
    tree = folded(cell("x = f(x)", tags="tag_idea"), "<p></p>", cell("import a"))
    first, second = tree.select("div.cell")
    assert not first.find_parent("details") and not first.find("details")
    assert second.find_parent("details")["class"] == ["hide", "fold", "helper"]
    assert tree.select_one("details > summary").text == "code: imports"
    (switch,) = tree.select(".header-article__inner > fieldset")
    assert "hidden" in switch.attrs and len(switch.select("input")) == 3


def test_a_page_without_code_has_no_switch():
    assert not folded("<p></p>").select("fieldset")


def test_a_long_idea_is_refused():
    with pytest.raises(PipelineError, match="a.html: the cell that starts with 'a1'"):
        folded(cell("\n".join(f"a{n}" for n in range(1, 8)), tags="tag_idea"))


def test_silent_cells_in_a_row_share_a_line():
    tree = folded(
        cell("import a"), cell("x = 1"), cell("def f(): pass\ny, z = 1, 2"), "<p></p>",
        cell("%magic"),
    )  # fmt: skip
    assert [line.text for line in tree.select("summary")] == [
        "code: x, f, y, …",
        "code",
    ]
    assert [len(fold.select(".cell")) for fold in tree.select("details")] == [3, 1]


def test_code_stands_below_what_it_shows():
    tree = folded(cell("draw()", FIGURE))
    names = [part.name for part in tree.select("div.cell > *")]
    assert names == ["div", "details"]
    assert tree.select_one("summary").text == "code of the figure"


def test_what_prepares_a_figure_stands_with_its_code():
    cells = (cell("import a"), cell("x = 1"), cell("draw(x)", FIGURE))
    tree = folded("<p></p>", *cells, cell("y = 2"), "<p></p>")
    lines = [line.text for line in tree.select("summary")]
    assert lines == ["code of the figure", "code: y"]
    (fold,) = tree.select(".cell > details")
    assert [code.text for code in fold.select("pre")] == [
        "import a",
        "x = 1",
        "draw(x)",
    ]
    as_cells(tree)
    assert [code.text for code in tree.select("article > .cell > .cell_input")] == [
        *("import a", "x = 1", "draw(x)", "y = 2")
    ]
    assert [part.name for part in tree.select("article > *")] == [
        *("p", "div", "div", "div", "div", "p")
    ]


def test_text_between_code_and_a_figure_keeps_them_apart():
    tree = folded(cell("x = 1"), "<p></p>", cell("draw(x)", FIGURE))
    lines = [line.text for line in tree.select("summary")]
    assert lines == ["code: x", "code of the figure"]


def test_names_that_a_cell_defines():
    assert defined("import x\na = b = 1\nc[0] = 2\ndef d(): e = 3\nf, *g = h") == [
        *("a", "b", "d", "f", "g")
    ]
    assert defined("!ls") is None and said("!ls", None) == "code"


def test_a_check_is_a_chip_in_the_line_of_its_paragraph():
    tree = folded("<p>Text.</p>", cell("y = 1"), cell("verify()", verdict()))
    chip = one(tree, "a.html", "a chip", ".checked > p + details.checks")
    assert chip.summary.get_text(" ", strip=True) == "✓ it rises: 1.2"
    # Its numbers come first, then the code of it and of what it needs.
    order = [part.get_text() for part in chip.select("pre")]
    assert order == ["verify()", "y = 1"]
    assert chip.select_one(".verdict")["id"] == "it rises"


@pytest.mark.parametrize("asked", [True, False])
def test_what_a_check_prints_stands_in_its_chip_where_it_asks(asked):
    printed = '<div class="output stream"><pre>0.8</pre></div>'
    tags = "tag_in-check" if asked else ""
    tree = folded("<p>T</p>", cell("verify()", printed + verdict(), tags=tags))
    inside = tree.select("details.checks div.stream")
    assert bool(inside) == asked and len(tree.select("div.stream")) == 1
    # What only prints is no check, whatever it asks for.
    tree = folded("<p>T</p>", cell("print()", printed, tags="tag_in-check"))
    assert not tree.select("details.checks") and tree.select(".cell > div > .stream")


def test_neighbors_share_one_chip():
    first, second = verdict(claim="a"), verdict("rejected", "b")
    tree = folded("<p>T</p>", cell("1", first), cell("2", second), "<p>U</p>")
    (chip,) = tree.select("details.checks")
    assert chip.summary.text.endswith("· 1 more")
    assert len(chip.select(".verdict")) == 2 and len(chip.select(".cell")) == 2


def test_a_paragraph_has_one_chip_at_most():
    parts = [f"<p>{n}</p>{cell('1', verdict(claim=str(n)))}" for n in range(3)]
    tree = folded(*parts, cell("x = 1"), cell("draw()", FIGURE + verdict()))
    assert len(tree.select("details.checks")) == 4
    for chip in tree.select("details.checks"):
        assert not chip.find_next_sibling("details", class_="checks")
    # Beside a figure the chip stands below it, and its code with that of the figure.
    assert tree.select("div.cell > div.cell_output > details.checks")


def test_live_twin_has_every_cell_in_its_place():
    codes = ["import a", "x = 1", "verify(1)", "y = 1", "draw()", "idea", "end = 1"]
    tree = folded(
        "<p></p>", cell(codes[0]), cell(codes[1]), cell(codes[2], verdict()),
        cell(codes[3]), cell(codes[4], FIGURE), cell(codes[5], tags="tag_idea"),
        cell(codes[6]),
    )  # fmt: skip
    as_cells(tree)
    assert [pre.text for pre in tree.select("div.cell > .cell_input pre")] == codes
    assert not tree.select("details, summary, fieldset")
    assert tree.select(".cell > .cell_input + .cell_output .book-figure")
    assert tree.select(".cell > .cell_input + .cell_output .verdict")
