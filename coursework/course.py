"""A course for one term: what students get, what instructors get, in one folder.

    python -m tools.coursework [--course FOLDER] [--seed TEXT]

Each set is executed with its reference solutions first, in the way submissions are
graded, which says how long a check may take. nbgrader takes out solutions and hidden
parts.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import json
import math
import os
import secrets
import shutil
import zipfile
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from coursework import isolation
from coursework.execute import Execution
from coursework.pages import offline
from coursework.preprocessors import LIMITS, SECRET
from coursework.session import MEMORY
from coursework.sets import mark, sets, term
from tools import wheel
from tools.command import ROOT, PipelineError, replace, run_main
from tools.texts import read_text

COURSE = Path("_build/course")
FLOOR = 30  # seconds of the processor that any cell and any check may use
REFERENCE = 600  # seconds of the processor for a cell of the reference
README = """{title}

Open {name}.ipynb in JupyterLab or another notebook program, and write your answers
where "YOUR CODE HERE" and "YOUR ANSWER HERE" stand. Leave the other cells as they are.

You need Python 3.11 or later and the package of the book, which lies beside this file:

    pip install {wheel}

(On Colab: upload that file, and run %pip install {wheel} in a cell.)

Before you hand {name}.ipynb in, run all of it from the start in a new kernel.
"""


def code_of(notebook: NotebookNode) -> str:
    """Digest of the code of a marked set: what its limits were measured with."""
    code = "\0".join(c.source for c in notebook.cells if c.cell_type == "code")
    return hashlib.sha256(code.encode()).hexdigest()[:16]


def measured(notebook: NotebookNode) -> tuple[NotebookNode, dict[str, Any]]:
    """The set with the outputs of its reference solutions, and limits from their cost.

    Runs within :func:`term`. A reference that fails a check is an error.
    """
    kind = "none" if isolation.why_not() else "bubblewrap"
    whole = copy.deepcopy(notebook)
    free: dict[str, Any] = {"floor": REFERENCE, "checks": {}}
    execution = Execution(notebook, kind, free)
    passed: dict[str, list[str]] = {}
    for number, outputs in execution.run(whole.cells):
        cell = whole.cells[number]
        cell.outputs = outputs
        name = cell.metadata.get("nbgrader", {}).get("grade_id", "")
        for output in outputs:
            if output.output_type == "error":
                raise PipelineError(f"the reference fails at {name}: {output.evalue}")
            if cell.metadata.get("nbgrader", {}).get("grade"):
                lines = output.get("text", "").splitlines()
                passed[name] = [x for x in lines if x.startswith("passed: ")]
    wanted = {name: math.ceil(4 * execution.used[name]) for name in passed}
    checks = {name: seconds for name, seconds in wanted.items() if seconds > FLOOR}
    return whole, {"floor": FLOOR, "checks": checks, "passed": passed}


def stated(limits: dict[str, Any]) -> str:
    """The limits of a set, as students read them."""
    more = [f"`{name}` {seconds} s" for name, seconds in limits["checks"].items()]
    longer = f" ({', '.join(more)})" if more else ""
    return (
        "**Limits while grading.** A cell, and all calls of one check together, may use"
        f" {limits['floor']} seconds of processor time{longer}, at least four times"
        " what the reference solution needs; a busy machine does not count against"
        f" you. A process has {MEMORY >> 30} GiB of memory. No network, no other"
        " programs, at most 100,000 printed characters a cell. A cell that passes a"
        " limit costs its own points and no others."
    )


def with_limits(notebook: NotebookNode, limits: dict[str, Any]) -> NotebookNode:
    """The set with a cell that states its limits, before its first code."""
    whole = copy.deepcopy(notebook)
    cell = nbformat.v4.new_markdown_cell(stated(limits), id="limits")
    place = next(k for k, c in enumerate(whole.cells) if c.cell_type == "code")
    whole.cells.insert(place, cell)
    return whole


def require_unreleased(course: Path, changed: list[str], again: bool) -> None:
    """Refuse to change a set that was handed in, or unless asked to, one given out."""
    for name in changed:
        handed_in = list((course / "submitted").glob(f"*/{name}"))
        if handed_in:
            raise PipelineError(
                f"{name} has {len(handed_in)} submissions in {course}, and its text or"
                " its seed changed since it was released; make a new course with"
                " COURSE=another-folder"
            )
        if not again:
            raise PipelineError(
                f"{name} was released in {course}, and its text or its seed changed"
                " since; make a new course with COURSE=another-folder, or, if no"
                " student has it, say REPLACE=yes"
            )


def prepare(
    course: Path, seed: str, root: Path = ROOT, again: bool = False
) -> dict[str, NotebookNode]:
    """Write the settings and the sources of a course; return the executed sets."""
    released = sorted(path.parent.name for path in course.glob("source/*/*.ipynb"))
    if (course / SECRET).exists() and seed_of(course, None) != seed:
        require_unreleased(course, released, again)
    known = course / LIMITS
    limits = json.loads(known.read_text("utf-8")) if known.exists() else {}
    fresh, executed = {}, {}
    with term(seed):
        for name, path in sets(root).items():
            marked = mark(read_text(path))
            whole, measures = measured(marked)
            if limits.get(name, {}).get("code") != code_of(marked):
                limits[name] = {**measures, "code": code_of(marked)}
            fresh[name] = nbformat.writes(with_limits(marked, limits[name])) + "\n"
            executed[name] = with_limits(whole, limits[name])
            print(f"coursework: {name}: the reference passes", flush=True)
    old = {name: course / "source" / name / f"{name}.ipynb" for name in released}
    require_unreleased(
        course,
        [n for n in old if n in fresh and old[n].read_text("utf-8") != fresh[n]],
        again,
    )
    (course / "submitted").mkdir(parents=True, exist_ok=True)
    os.chmod(course, 0o700)
    replace(course / SECRET, seed + "\n")
    os.chmod(course / SECRET, 0o600)
    replace(known, json.dumps(limits, indent=1) + "\n")
    shutil.copy(root / "coursework" / "nbgrader_config.py", course)
    for name, content in fresh.items():
        (course / "source" / name).mkdir(parents=True, exist_ok=True)
        replace(course / "source" / name / f"{name}.ipynb", content)
    return executed


def seed_of(course: Path, wanted: str | None) -> str:
    """The seed asked for, else that of the course, else a new one nobody knows."""
    file = course / SECRET
    if wanted is None:
        return file.read_text().strip() if file.exists() else secrets.token_hex(16)
    if not wanted.strip():
        raise PipelineError(f"the seed must not be empty, got {wanted!r}")
    return wanted.strip()


def settings(course: Path) -> Any:
    """The nbgrader configuration of a course."""
    from traitlets.config import PyFileConfigLoader

    if not (course / "nbgrader_config.py").exists():
        raise PipelineError(f"{course} is not a course; make one: make coursework")
    return PyFileConfigLoader("nbgrader_config.py", str(course)).load_config()


def release(course: Path, name: str) -> Path:
    """The student's notebook, without solutions and hidden parts, and its archive."""
    from nbgrader.apps import NbGraderAPI

    api = NbGraderAPI(config=settings(course))
    result = api.generate_assignment(name, force=True, create=True)
    if not result["success"]:
        raise PipelineError(f"{name} could not be released:\n{result['log']}")
    notebook = course / "release" / name / f"{name}.ipynb"
    first = next(c for c in nbformat.read(notebook, 4).cells if c.source[:2] == "# ")
    title = first.source.splitlines()[0][2:]
    archive = course / "students" / f"{name}.zip"
    archive.parent.mkdir(exist_ok=True)
    part = archive.with_name(archive.name + ".part")
    package = wheel.build(course)
    told = README.format(title=title, name=name, wheel=package.name)
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as file:
        file.write(notebook, f"{name}/{name}.ipynb")
        file.write(package, f"{name}/{package.name}")
        file.writestr(f"{name}/README.txt", told)
    os.replace(part, archive)
    return archive


def instruct(course: Path, name: str, executed: NotebookNode) -> Path:
    """The instructor's copy: with outputs, solutions, hidden parts and rubric."""
    from nbconvert import HTMLExporter

    target = course / "instructor" / f"{name}.html"
    target.parent.mkdir(exist_ok=True)
    replace(target.with_suffix(".ipynb"), nbformat.writes(executed) + "\n")
    replace(target, offline(HTMLExporter().from_notebook_node(executed)[0]))
    return target


def main(argv: list[str] | None = None) -> None:
    """Make the course that the command line asks for."""
    parser = argparse.ArgumentParser(prog="tools.coursework", description=__doc__)
    parser.add_argument("--course", type=Path, default=ROOT / COURSE)
    parser.add_argument("--seed")
    parser.add_argument(
        "--replace", action="store_true", help="change sets that were released"
    )
    given = parser.parse_args(argv)
    course = given.course.resolve()
    course.mkdir(parents=True, exist_ok=True)
    seed = seed_of(course, given.seed)
    executed = prepare(course, seed, again=given.replace)
    for name, notebook in executed.items():
        print(f"coursework: {release(course, name).relative_to(course)}, ", end="")
        print(instruct(course, name, notebook).relative_to(course), flush=True)
    print(f"coursework: the course is in {given.course}; keep {SECRET} to yourself")


if __name__ == "__main__":
    run_main(main)
