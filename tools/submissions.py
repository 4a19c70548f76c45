"""Simulated submissions: right, wrong in known ways, of another term, and broken.

They prove that grading works, in the tests and in the benchmark of grading.
"""

from __future__ import annotations

import contextlib
import copy
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import nbformat
import numpy as np
from nbformat import NotebookNode

from tools.command import ROOT
from tools.coursework import mark, sets, term
from tools.texts import read_text


class Mistake(NamedTuple):
    """A typical wrong answer: why it is wrong, which checks it loses, its code."""

    why: str
    loses: list[str]
    code: str


def mistakes(name: str, root: Path = ROOT) -> dict[str, list[Mistake]]:
    """The typical wrong answers to a set, by the answer they replace."""
    found = runpy.run_path(str(root / "coursework" / "mistakes" / f"{name}.py"))
    return {k: [Mistake(*m) for m in v] for k, v in found["MISTAKES"].items()}


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


def numbers_of(name: str, seed: str, answers: dict[str, str]) -> dict[str, str]:
    """Answers without arguments, each as the number it is in the term of ``seed``."""
    with term(seed):
        notebook = mark(read_text(sets()[name]))
    names: dict[str, object] = {}
    found = {}
    for cell in (c for c in notebook.cells if c.cell_type == "code"):
        nbgrader = cell.metadata.get("nbgrader", {})
        if not nbgrader.get("grade"):
            exec(cell.source, names)
        if nbgrader.get("grade_id") in answers and "():" in cell.source:
            head = cell.source.split("def ")[1].split("(")[0]
            with contextlib.suppress(ValueError):  # not plain numbers
                value = np.asarray(names[head](), float)  # type: ignore[operator]
                code = f"def {head}():\n    return {value.tolist()!r}\n"
                found[nbgrader.grade_id] = code
    return found


def put(course: Path, name: str, student: str, notebook: NotebookNode | str) -> None:
    """Hand a notebook, or any text in its place, in."""
    folder = course / "submitted" / student / name
    folder.mkdir(parents=True, exist_ok=True)
    whole = notebook if isinstance(notebook, str) else nbformat.writes(notebook)
    (folder / f"{name}.ipynb").write_text(whole, "utf-8")


def read(course: Path, kind: str, name: str) -> NotebookNode:
    """The ``source`` or ``release`` notebook of a set of a course."""
    return nbformat.read(course / kind / name / f"{name}.ipynb", 4)


class Trouble(NamedTuple):
    """What happens to one answer of a correct notebook, what the report says of it,
    and which checks are lost: those of the answer, all, or none.
    """

    spoil: Callable[[NotebookNode, str], None]
    note: str
    loses: str = "its"


def _index(notebook: NotebookNode, name: str) -> int:
    ids = [c.metadata.get("nbgrader", {}).get("grade_id") for c in notebook.cells]
    return ids.index(name)


def _prepend(code: str) -> Callable[[NotebookNode, str], None]:
    def spoil(notebook: NotebookNode, answer: str) -> None:
        cell = notebook.cells[_index(notebook, answer)]
        cell.source = f"{code}\n{cell.source}"

    return spoil


def _delete_check(notebook: NotebookNode, answer: str) -> None:
    del notebook.cells[_index(notebook, answer) + 1]


def _delete_answer(notebook: NotebookNode, answer: str) -> None:
    del notebook.cells[_index(notebook, answer)]


def _double(notebook: NotebookNode, answer: str) -> None:
    place = _index(notebook, answer) + 1
    twin = copy.deepcopy(notebook.cells[place])
    twin.id += "-2"
    notebook.cells.insert(place, twin)


def _add_foreign(notebook: NotebookNode, answer: str) -> None:
    place = _index(notebook, answer) + 1
    twin = copy.deepcopy(notebook.cells[place])
    twin.id, twin.metadata.nbgrader.grade_id = twin.id + "-2", "of-another-set"
    notebook.cells.insert(place, twin)


def _edit_check(notebook: NotebookNode, answer: str) -> None:
    notebook.cells[_index(notebook, answer) + 1].source = "print('passed')"


READ = """import os
from pathlib import Path
print(next(Path(os.environ["ATTENTION_LIMIT_COURSE"]).glob("source/*/*")).read_text())
"""
PEEK = "from pathlib import Path\nprint(next(Path().glob('*.ipynb')).read_text())\n"

#: By name: spoils the cell of one answer of a correct notebook.
TROUBLES = {
    "infinite-loop": Trouble(_prepend("while True:\n    pass"), "CellTimeoutError"),
    "syntax-error": Trouble(_prepend("def f(:"), "SyntaxError"),
    "deleted-check": Trouble(_delete_check, "is missing", "none"),
    "deleted-answer": Trouble(_delete_answer, "is missing"),
    "doubled-check": Trouble(_double, "stands 2 times", "none"),
    "foreign-cell": Trouble(_add_foreign, "does not belong", "none"),
    "edited-check": Trouble(_edit_check, "was edited", "none"),
    "runaway-output": Trouble(
        _prepend("while True:\n    print('x' * 1000)"), "LimitReached"
    ),
    "runaway-memory": Trouble(_prepend("y = bytearray(1 << 40)"), "MemoryError"),
    "kernel-death": Trouble(_prepend("import os\nos._exit(1)"), "KernelDied", "all"),
    "reads-course": Trouble(_prepend(READ), "the grader's files"),
    "reads-own-notebook": Trouble(_prepend(PEEK), "the grader's files"),
    "starts-program": Trouble(
        _prepend("import os\nos.system('ls')"), "no other program"
    ),
}
