"""Roles of the cells of a set for the grader, read from the instructor's notebook."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

from nbformat import NotebookNode

HIDDEN = "### BEGIN HIDDEN TESTS\n"
END = "### END HIDDEN TESTS"
_DEFINES = ast.FunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom


@dataclass(frozen=True)
class Step:
    """A cell of a set: ``given`` is ``locked``, ``check`` or ``answer``."""

    given: str
    visible: str
    hidden: str = ""
    names: list[str] = field(default_factory=list)  # that an answer defines


def steps(source: NotebookNode) -> dict[str, Step]:
    """The cells of code by their names, in order."""
    plan: dict[str, Step] = {}
    for cell in source.cells:
        mark = cell.metadata.get("nbgrader", {})
        if cell.cell_type != "code" or "grade_id" not in mark:
            continue
        if mark.get("grade"):
            visible, hidden = split(cell.source)
            plan[mark.grade_id] = Step("check", visible, hidden)
        elif mark.get("solution"):
            names = defined(cell.source)
            plan[mark.grade_id] = Step("answer", cell.source, names=names)
        else:
            plan[mark.grade_id] = Step("locked", cell.source)
    return plan


def split(source: str) -> tuple[str, str]:
    """The visible part of a check and the hidden one; lines keep their numbers."""
    before, _, rest = source.partition(HIDDEN)
    inside, _, after = rest.partition(END)
    return before + after, "\n" * (before.count("\n") + 1) + inside if inside else ""


def defined(source: str) -> list[str]:
    """Names that a cell binds at its top level."""
    names: list[str] = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.append(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names += [n.id for t in targets for n in ast.walk(t)
                      if isinstance(n, ast.Name)]  # fmt: skip
    return names


def definitions(source: str) -> str:
    """The functions, classes and imports of a cell."""
    kept = [node for node in ast.parse(source).body if isinstance(node, _DEFINES)]
    return ast.unparse(ast.Module(kept, []))


def hidden_lines(source: NotebookNode) -> set[str]:
    """Lines of hidden parts that stand nowhere else, long enough to be told."""
    every = [split(cell.source) for cell in source.cells]
    seen = "\n".join(visible for visible, _ in every)
    lines = {line.strip() for _, part in every for line in part.splitlines()}
    return {x for x in lines if len(x) > 25 and re.search(r"\w", x) and x not in seen}


def first_checks(given: NotebookNode) -> list[str]:
    """Checks between the first answer of a set and the second."""
    checks: list[str] = []
    answers = 0
    for cell in given.cells:
        mark = cell.metadata.get("nbgrader", {})
        answers += bool(mark.get("solution"))
        if answers == 1 and mark.get("grade") and mark.get("locked"):
            checks.append(mark.grade_id)
    return checks
