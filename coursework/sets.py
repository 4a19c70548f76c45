"""The texts of the problem sets, and the notebooks of a term made from them.

The texts in ``coursework/source`` are ordinary notebooks whose cells have tags.
``answer:ID`` is an answer, ``check:ID:POINTS`` a check, ``open:ID:POINTS`` a problem
graded by hand, ``locked:ID`` a cell that students leave alone, and ``term`` one whose
numbers this term draws.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
from nbformat import NotebookNode

from coursework.plan import HIDDEN
from lib.coursework import TERM
from tools.command import ROOT, PipelineError
from tools.texts import SETS, SETUP, texts

TAG = re.compile(r"(locked|answer|check|open):([a-z0-9-]+)(?::(\d+))?|term")
TOLD = "# The numbers of this term. Write those that you need into your answers."
CHECKS = "from lib.coursework import Answer, agree, holds, lean, term_generator\n"


@contextlib.contextmanager
def term(seed: str) -> Iterator[None]:
    """Within it, :func:`lib.coursework.term_generator` draws what this term draws."""
    before = os.environ.get(TERM)
    os.environ[TERM] = seed
    try:
        yield
    finally:
        if before is None:
            del os.environ[TERM]
        else:
            os.environ[TERM] = before


def tag(cell: NotebookNode) -> str:
    """The tag that says what a cell of a set is, '' for none."""
    first, *others = cell.metadata.get("tags", []) or [""]
    if cell.id == SETUP:
        return ""  # the first cell of every notebook
    if others:
        raise PipelineError(f"a cell of a problem set has several tags: {first}, ...")
    if first and not TAG.fullmatch(first):
        raise PipelineError(f"a cell of a problem set has the unknown tag {first!r}")
    return first


def points(notebook: NotebookNode) -> dict[str, int]:
    """Points of each graded cell, by its name."""
    matches = [TAG.fullmatch(tag(cell)) for cell in notebook.cells]
    return {m[2]: int(m[3]) for m in matches if m and m[1] in ("check", "open")}


def numbers(source: str) -> dict[str, Any]:
    """Assignments of a ``term`` cell, with the values it has this term."""
    names: dict[str, Any] = {}
    exec(source, names)
    numbered = {}
    for name in re.findall(r"^(\w+) =", source, flags=re.M):
        value = np.asarray(names[name])
        if value.dtype.kind not in "iuf":
            kind = type(names[name]).__name__
            raise PipelineError(f"a term cell assigns numbers only, {name} is a {kind}")
        numbered[name] = value.tolist()
    return numbered


def inline(source: str, given: dict[str, Any]) -> str:
    """Code in which the names of ``given`` are replaced by their values.

    No name is left that a student could assign or take from another term.
    """
    lines = source.splitlines(keepends=True)
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    for before, token in reversed(list(zip(tokens, tokens[1:], strict=False))):
        if token.type == tokenize.NAME and token.string in given:
            if before.string == ".":
                continue
            row, column = token.start
            line, value = lines[row - 1], repr(given[token.string])
            value = f"({value})" if value.startswith("-") else value
            lines[row - 1] = line[:column] + value + line[token.end[1] :]
    return "".join(lines)


def drawn(notebook: NotebookNode) -> dict[str, Any]:
    """All numbers of a set in the term that is in force."""
    values: dict[str, Any] = {}
    for cell in notebook.cells:
        if tag(cell) == "term":
            values |= numbers(cell.source)
    return values


def mark(notebook: NotebookNode) -> NotebookNode:
    """The set as nbgrader wants it, with the numbers of the term in force."""
    given: dict[str, Any] = {}
    for number, cell in enumerate(notebook.cells):
        if not (label := tag(cell)):
            continue
        kind, name, worth = TAG.fullmatch(label).groups()  # type: ignore[union-attr]
        if label == "term":
            told = numbers(cell.source)
            given |= told
            listed = [f"#   {name} = {value!r}" for name, value in told.items()]
            cell.source = "\n".join([TOLD, *listed])
        elif cell.cell_type == "code":
            cell.source = inline(cell.source, given)
        if cell.source.startswith(HIDDEN):
            cell.source = "# The grader checks more here.\n" + cell.source
        # A student may have given one of these names to something else.
        cell.source = cell.source.replace(HIDDEN, HIDDEN + CHECKS)
        graded, solved = kind in ("check", "open"), kind in ("answer", "open")
        cell.metadata = nbformat.from_dict({"nbgrader": {
            "grade": graded, "solution": solved, "locked": not solved, "task": False,
            "grade_id": name or f"term-{number}", "schema_version": 3,
            **({"points": int(worth)} if graded else {}),
        }})  # fmt: skip
    return notebook


def sets(root: Path = ROOT) -> dict[str, Path]:
    """The texts of the problem sets by their names."""
    return {path.stem: path for path in texts(root, SETS)}
