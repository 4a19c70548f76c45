"""Simulated submissions: right, wrong in known ways, of another term, and broken.

They prove that grading works, in the tests and in the benchmark of grading.
"""

from __future__ import annotations

import copy
import runpy
from pathlib import Path
from typing import NamedTuple

import nbformat
from nbformat import NotebookNode

from coursework.sets import drawn, inline, mark, sets, term
from tools.command import ROOT
from tools.texts import read_text


class Mistake(NamedTuple):
    """A typical wrong answer: why it is wrong, which checks it loses, its code."""

    why: str
    loses: list[str]
    code: str


def mistakes(
    name: str, seed: str | None = None, root: Path = ROOT
) -> dict[str, list[Mistake]]:
    """The typical wrong answers to a set, by the answer they replace.

    With the seed of a term its numbers stand in them, as in the answers of the set.
    """
    module = runpy.run_path(str(root / "coursework" / "mistakes" / f"{name}.py"))
    made = {k: [Mistake(*m) for m in v] for k, v in module["MISTAKES"].items()}
    if seed is None:
        return made
    with term(seed):
        given = drawn(read_text(sets()[name]))
    return {
        k: [m._replace(code=inline(m.code, given)) for m in v] for k, v in made.items()
    }


def solutions(notebook: NotebookNode) -> dict[str, str]:
    """The reference code of each answer of a marked notebook."""
    marked = {c.metadata.get("nbgrader", {}).get("grade_id"): c for c in notebook.cells}
    code = {k: c for k, c in marked.items() if k and c.cell_type == "code"}
    return {k: c.source for k, c in code.items() if c.metadata.nbgrader.solution}


def answered(released: NotebookNode, answers: dict[str, str]) -> NotebookNode:
    """The student's notebook with these answers filled in."""
    notebook = copy.deepcopy(released)
    for cell in notebook.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        if name in answers:
            cell.source = answers[name]
    return notebook


def solutions_of(name: str, seed: str) -> dict[str, str]:
    """The reference code of each answer to a set in the term of ``seed``."""
    with term(seed):
        return solutions(mark(read_text(sets()[name])))


def put(course: Path, name: str, student: str, notebook: NotebookNode | str) -> None:
    """Hand a notebook, or any text in its place, in."""
    folder = course / "submitted" / student / name
    folder.mkdir(parents=True, exist_ok=True)
    whole = notebook if isinstance(notebook, str) else nbformat.writes(notebook)
    (folder / f"{name}.ipynb").write_text(whole, "utf-8")


def read(course: Path, kind: str, name: str) -> NotebookNode:
    """The ``source`` or ``release`` notebook of a set of a course."""
    return nbformat.read(course / kind / name / f"{name}.ipynb", 4)
