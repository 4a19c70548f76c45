"""Steps of nbgrader that are ours: how a notebook runs, and which cells it restores."""

from __future__ import annotations

import json
import multiprocessing
import resource
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import nbformat
from nbformat.v4 import new_output
from nbgrader import preprocessors as nbg
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Unicode

from coursework import isolation
from coursework.execute import Execution
from coursework.sandbox.refuse import end_with_parent
from coursework.session import MachineTrouble

MEMORY = 8 << 30  # bytes of address space of the checks themselves
LIMITS, SECRET, COLLECTED = "limits.json", "term.txt", "collected"
RECORD = "grading"  # notebook metadata: notes and processor seconds


class RunApart(NbGraderPreprocessor):
    """Runs cells shut in, and checks apart from them, from the instructor's source."""

    course = Unicode(help="folder of the course").tag(config=True)
    isolation = Unicode("", help="kind of isolation, '' for the best").tag(config=True)

    def preprocess(self, nb: Any, resources: Any) -> Any:
        """Give each cell of code its outputs."""
        name, course = resources["nbgrader"]["assignment"], Path(self.course)
        source = nbformat.read(course / "source" / name / f"{name}.ipynb", 4)
        kind = isolation.choose(self.isolation or None)
        settings = limits(course, name)
        files: Path | None = (
            course / COLLECTED / resources["nbgrader"]["student"] / name
        )
        if not files.is_dir():
            files = None
        record: dict[str, Any] = {"notes": [], "cost": {}, "isolation": kind}
        for cell in nb.cells:
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = [], None
        for number, outputs in run(source, kind, settings, files, nb.cells, record):
            nb.cells[number].outputs = outputs
        nb.metadata[RECORD] = record
        return nb, resources


def limits(course: Path, name: str) -> dict[str, Any]:
    """Limits of a set of a course, with its seed, which no output may have."""
    bounds = json.loads((course / LIMITS).read_text("utf-8"))
    return {**bounds[name], "seed": (course / SECRET).read_text("utf-8").strip()}


def run(
    source: Any,
    kind: str,
    settings: dict[str, Any],
    files: Path | None,
    cells: list[Any],
    record: dict[str, Any],
) -> Iterator[tuple[int, Any]]:
    """Number and outputs of each cell of code, whatever a check makes of its answer.

    The checks run in a process of their own. If one of them ends it, say by a value
    that is too large, that check has failed and the next ones go on in another.
    """
    context = multiprocessing.get_context("fork")
    numbers = [k for k, cell in enumerate(cells) if cell.cell_type == "code"]
    while numbers:
        here, there = context.Pipe(duplex=False)
        given = source, kind, settings, files, cells, numbers[0], there
        process = context.Process(target=_child, args=given)
        process.start()
        there.close()
        try:
            while numbers:
                message = here.recv()
                if isinstance(message, str):
                    raise MachineTrouble(message)
                number, outputs, notes, cost = message
                record["notes"] += notes
                record["cost"] = cost
                numbers.remove(number)
                yield number, outputs
        except EOFError:
            said = "the check could not be finished on the values of this answer"
            error = new_output("error", ename="CheckFailed", evalue=said)
            error.traceback = [f"CheckFailed: {said}"]
            record["notes"].append(f"cell {numbers[0] + 1}: {said}")
            yield numbers.pop(0), [error]
        finally:
            process.join(10 if not numbers else 0)
            process.kill()
            process.join()
            here.close()


def _child(
    source: Any, kind: str, settings: dict[str, Any], files: Path | None,
    cells: list[Any], start: int, out: Connection,
) -> None:  # fmt: skip
    end_with_parent()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    try:
        execution = Execution(source, kind, settings, files)
        told: set[str] = set()
        for number, outputs in execution.run(cells, start):
            notes = [note for note in execution.notes if note not in told]
            told |= set(notes)
            out.send((number, outputs, notes, execution.cost()))
    except MachineTrouble as error:
        out.send(str(error))


class OverwriteKnownCells(nbg.OverwriteCells):
    """Restores cells; one that is doubled or unknown is an ordinary cell from then on.

    nbgrader 0.9.6 leaves such cells half marked, and then fails on them.
    """

    def preprocess_cell(self, cell: Any, resources: Any, index: int) -> Any:
        """Restore a cell, or take off a mark without a name."""
        cell, resources = super().preprocess_cell(cell, resources, index)
        if "grade_id" not in cell.metadata.get("nbgrader", {}):
            cell.metadata.pop("nbgrader", None)
        return cell, resources
