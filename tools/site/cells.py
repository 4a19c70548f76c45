"""Cells on a finished page: what is the idea stands open, all else is one click away.

A cell with the tag ``idea`` shows its code. The code of any other one is folded behind
a line that says what it is, below what it shows. A cell that only checks something
becomes a chip at the end of the paragraph before it, and neighbors share one chip.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from html import escape

from bs4 import BeautifulSoup, PageElement, Tag

from tools.command import PipelineError
from tools.site.checks import chip
from tools.site.markup import element_of, one, parsed

IDEA, IDEA_LINES = "tag_idea", 6
IN_CHECK = "tag_in-check"  # what a cell prints stands with its verdicts
CELL = "div.cell:not(.tag_remove-cell)"
SWITCH = """<fieldset class="code-switch" hidden><legend>code</legend>
<label><input type="radio" name="code" value="none" autocomplete="off"/>hidden</label>
<label><input type="radio" name="code" value="ideas" autocomplete="off" checked/>ideas</label>
<label><input type="radio" name="code" value="all" autocomplete="off"/>all</label></fieldset>
"""  # noqa: E501
NAMES = 3  # of what a folded cell defines, its line says so many


def fold_cells(tree: BeautifulSoup, name: str) -> None:
    """Fold the code of a page, turn its checks into chips, and add the switch."""
    cells = tree.select(f"article {CELL}")
    if not cells:
        return
    for number, cell in enumerate(cells):
        cell["data-cell"] = str(number)
        unfold(cell)
        if IDEA in cell["class"]:
            require_short(cell, name)
        else:
            fold_code(cell)
    for run in runs(cells):
        last = max((n for n, cell in enumerate(run) if is_check(cell)), default=-1)
        if last >= 0:
            make_chip(run[: last + 1])
        if silent := run[last + 1 :]:
            figure = adjacent(silent[-1].next_siblings)
            if figure is not None and is_figure(figure):
                join(silent, figure)
            else:  # shown with all code only
                fold_run(silent)["class"].append("helper")
    for output in tree.select("article div.output:has(> .verdict)"):
        if not output.find_parent("details", class_="checks"):
            chip_of(output.select(".verdict"), output).append(output.extract())
    header = one(tree, name, "a header", ".header-article__inner")
    header.append(parsed(SWITCH))


def unfold(cell: Tag) -> None:
    """Take a fold away that the notebook programs have as well."""
    for fold in cell.select("details.hide"):
        if summary := fold.find("summary"):
            summary.decompose()
        fold.unwrap()


def require_short(cell: Tag, name: str) -> None:
    lines = code_of(cell).strip().splitlines()
    if len(lines) > IDEA_LINES:
        raise PipelineError(
            f"{name}: the cell that starts with {lines[0]!r} has the tag idea and"
            f" {len(lines)} lines; an idea has {IDEA_LINES} at most"
        )


def code_of(cell: Tag) -> str:
    code = cell.select_one(".cell_input pre")
    return code.get_text() if code else ""


def fold_code(cell: Tag) -> None:
    """The code of one cell behind a line, below its output."""
    if (code := cell.select_one(".cell_input")) is None:
        return
    fold = folded(said(code_of(cell), cell.select_one(".cell_output")))
    fold.append(code.extract())
    cell.append(fold)


def folded(words: str) -> Tag:
    return element_of(
        f'<details class="hide fold"><summary>{words}</summary></details>'
    )


def said(source: str, output: Tag | None) -> str:
    """Words of the line of a folded cell."""
    if output and output.select_one(".book-figure"):
        return "code of the figure"
    if output and output.select_one(".verdict"):
        return "code of the check"
    if output:
        return "code of this output"
    names = defined(source)
    if names is None:
        return "code"
    if not names:
        return "code: imports"
    more = ", …" if len(names) > NAMES else ""
    listed = ", ".join(f"<code>{escape(each)}</code>" for each in names[:NAMES])
    return f"code: {listed}{more}"


def defined(source: str) -> list[str] | None:
    """Names that a cell defines, but for imports; None where it is no Python."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return None
    names = []
    for node in statements(tree.body):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.append(node.name)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                parts = [x for x in ast.walk(target) if isinstance(x, ast.Name)]
                names += [each.id for each in parts if isinstance(each.ctx, ast.Store)]
    return list(dict.fromkeys(names))


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements in turn, those of loops, branches and ``with`` blocks among them."""
    for node in body:
        yield node
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield from statements(getattr(node, "body", []))


def runs(cells: list[Tag]) -> list[list[Tag]]:
    """Folded cells that show nothing but verdicts, with nothing between them."""
    groups: list[list[Tag]] = []
    for cell in cells:
        if not (is_silent(cell) or is_check(cell)):
            continue
        if groups and adjacent(cell.previous_siblings) is groups[-1][-1]:
            groups[-1].append(cell)
        else:
            groups.append([cell])
    return groups


def adjacent(siblings: Iterable[PageElement]) -> Tag | None:
    """The first element of some siblings, if no text stands before it."""
    for each in siblings:
        if isinstance(each, Tag):
            return each
        if str(each).strip():
            return None
    return None


def is_figure(element: Tag) -> bool:
    """Say whether an element is a folded cell that shows a figure."""
    fold = element.select_one(":scope > details.fold")
    return fold is not None and bool(element.select(".cell_output .book-figure"))


def is_silent(cell: Tag) -> bool:
    """Say whether a cell is folded and shows nothing."""
    return IDEA not in cell["class"] and not cell.select_one(".cell_output")


def is_check(cell: Tag) -> bool:
    """Say whether what a cell shows belongs to verdicts, and its code is no idea."""
    shown = cell.select(".cell_output > *")
    enough = any if IN_CHECK in cell["class"] else all
    return (
        IDEA not in cell["class"]
        and bool(shown)
        and enough(each.select_one(".verdict") is not None for each in shown)
    )


def fold_run(run: list[Tag]) -> Tag:
    """Silent cells in a row behind one line; the fold stands where the first was."""
    lines = [one(cell, "a cell", "its line", "details.fold > summary") for cell in run]
    names = [code.decode() for line in lines for code in line.select("code")]
    text = ", ".join(names[:NAMES]) + (", …" if len(names) > NAMES else "")
    if not names:
        text = lines[0].get_text().partition(": ")[2]
    around = folded(f"code: {text}" if text else "code")
    run[0].insert_before(around)
    for cell, line in zip(run, lines, strict=True):
        line.parent.unwrap()
        line.decompose()
        around.append(cell.extract())
    return around


def join(run: list[Tag], figure: Tag) -> None:
    """Silent cells before a figure, in the fold of its own code and above this."""
    own = one(figure, "a figure's cell", "its code", ":scope > .fold > .cell_input")
    for cell in run:
        unfold(cell)
        own.insert_before(cell.extract())


def make_chip(run: list[Tag]) -> None:
    """Cells that check something as one chip, in the line of the paragraph before.

    The cells between them are a part of the check, and their code stands below it.
    """
    before = adjacent(run[0].previous_siblings)
    items = [item for cell in run for item in cell.select(".verdict")]
    around = chip_of(items, run[0])
    for cell in run:
        if is_check(cell):
            around.append(cell.extract())
    if silent := [cell for cell in run if is_silent(cell)]:
        around.append(fold_run(silent).extract())
    if before is not None and before.name == "p":
        line = element_of('<div class="checked"></div>')
        before.insert_before(line)
        line.extend([before.extract(), " ", around.extract()])


def chip_of(items: list[Tag], place: Tag) -> Tag:
    """The chip of some verdicts, before a place, and empty but for its line."""
    parts = [
        (
            "holds" if "verdict-holds" in item["class"] else "rejected",
            str(item["data-claim"]),
            str(item["data-number"]),
        )
        for item in items
    ]
    line = f"<summary>{chip(parts)}</summary>"
    around = element_of(f'<details class="checks">{line}</details>')
    place.insert_before(around)
    return around


def as_cells(tree: BeautifulSoup) -> None:
    """Undo the folds of a page, for its live twin: each cell has its code above."""
    for checks in tree.select("details.checks"):
        one(checks, "a chip", "its line", ":scope > summary").decompose()
        cells = sorted(checks.select(CELL), key=lambda cell: int(cell["data-cell"]))
        for cell in cells:
            checks.append(cell.extract())
        checks.unwrap()
    for fold in tree.select("details.fold"):
        one(fold, "a fold", "its line", "summary").decompose()
        if "cell" in fold.parent.get("class", ()):
            for cell in fold.select(CELL):
                fold.parent.insert_before(cell.extract())
            fold.parent.insert(0, fold.extract())
        fold.unwrap()
    for switch in tree.select(".code-switch"):
        switch.decompose()
