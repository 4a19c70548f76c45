"""A course for one term: what students get, what instructors get, in one folder.

    python -m tools.coursework [--course FOLDER] [--seed TEXT]

The texts in ``coursework/source`` are ordinary notebooks whose cells have tags.
``answer:ID`` is an answer, ``check:ID:POINTS`` a check, ``open:ID:POINTS`` a problem
graded by hand, ``locked:ID`` a cell that students leave alone, and ``term`` one whose
numbers this term draws. nbgrader does the rest.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import secrets
import shutil
import tokenize
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
from nbformat import NotebookNode

from lib.coursework import TERM
from tools import wheel
from tools.command import ROOT, PipelineError, replace, run_main
from tools.texts import SETS, SETUP, read_text, texts

COURSE = Path("_build/course")
SECRET = "term.txt"
TAG = re.compile(r"(locked|answer|check|open):([a-z0-9-]+)(?::(\d+))?|term")
HIDDEN = "### BEGIN HIDDEN TESTS\n"
TOLD = "# The numbers of this term. Write those that you need into your answers."
CHECKS = "from lib.coursework import Answer, agree, holds, lean, term_generator\n"
README = """{title}

Open {name}.ipynb in JupyterLab or another notebook program, and write your answers
where "YOUR CODE HERE" and "YOUR ANSWER HERE" stand. Leave the other cells as they are.

You need Python 3.11 or later and the package of the book, which lies beside this file:

    pip install {wheel}

(On Colab: upload that file, and run %pip install {wheel} in a cell.)

Before you hand {name}.ipynb in, run all of it from the start in a new kernel.
"""


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
    found, *others = cell.metadata.get("tags", []) or [""]
    if cell.id == SETUP:
        return ""  # the first cell of every notebook
    if others:
        raise PipelineError(f"a cell of a problem set has several tags: {found}, ...")
    if found and not TAG.fullmatch(found):
        raise PipelineError(f"a cell of a problem set has the unknown tag {found!r}")
    return found


def points(notebook: NotebookNode) -> dict[str, int]:
    """Points of each graded cell, by its name."""
    found = [TAG.fullmatch(tag(cell)) for cell in notebook.cells]
    return {m[2]: int(m[3]) for m in found if m and m[1] in ("check", "open")}


def numbers(source: str) -> dict[str, Any]:
    """What a ``term`` cell assigns, with the values it has this term."""
    names: dict[str, Any] = {}
    exec(source, names)
    found = {}
    for name in re.findall(r"^(\w+) =", source, flags=re.M):
        value = np.asarray(names[name])
        if value.dtype.kind not in "iuf":
            kind = type(names[name]).__name__
            raise PipelineError(f"a term cell assigns numbers only, {name} is a {kind}")
        found[name] = value.tolist()
    return found


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


def mark(notebook: NotebookNode) -> NotebookNode:
    """The set as nbgrader wants it, with the numbers of the term in force."""
    given: dict[str, Any] = {}
    for number, cell in enumerate(notebook.cells):
        if not (found := tag(cell)):
            continue
        kind, name, worth = TAG.fullmatch(found).groups()  # type: ignore[union-attr]
        if found == "term":
            drawn = numbers(cell.source)
            given |= drawn
            listed = [f"#   {name} = {value!r}" for name, value in drawn.items()]
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


def prepare(course: Path, seed: str, root: Path = ROOT) -> None:
    """Write the settings and the sources of a course; refuse to change a graded one."""
    fresh = {}
    with term(seed):
        for name, path in sets(root).items():
            fresh[name] = nbformat.writes(mark(read_text(path))) + "\n"
    for name, content in fresh.items():
        old = course / "source" / name / f"{name}.ipynb"
        handed_in = list((course / "submitted").glob(f"*/{name}"))
        if handed_in and old.exists() and old.read_text("utf-8") != content:
            raise PipelineError(
                f"{name} has {len(handed_in)} submissions in {course}, and its text or"
                " its seed changed since it was released; make a new course with"
                " COURSE=another-folder"
            )
    start = course / "ipython" / "profile_default" / "startup"
    for folder in (start, course / "submitted"):
        folder.mkdir(parents=True, exist_ok=True)
    replace(course / SECRET, seed + "\n")
    os.chmod(course / SECRET, 0o600)
    for name in ("nbgrader_config.py", "limits.py"):
        shutil.copy(root / "coursework" / name, course / name)
    replace(start / "00-limits.py", _START.format(course=str(course.resolve())))
    for name, content in fresh.items():
        (course / "source" / name).mkdir(parents=True, exist_ok=True)
        replace(course / "source" / name / f"{name}.ipynb", content)


_START = """import runpy
runpy.run_path({course!r} + "/limits.py")["install"](get_ipython())
del runpy
"""


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
    title, package = first.source.splitlines()[0][2:], wheel.build(course)
    archive = course / "students" / f"{name}.zip"
    archive.parent.mkdir(exist_ok=True)
    part = archive.with_name(archive.name + ".part")
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as file:
        file.write(notebook, f"{name}/{name}.ipynb")
        file.write(package, f"{name}/{package.name}")
        told = README.format(title=title, name=name, wheel=package.name)
        file.writestr(f"{name}/README.txt", told)
    os.replace(part, archive)
    return archive


def instruct(course: Path, name: str) -> Path:
    """The instructor's copy: executed, with solutions, hidden parts and rubric."""
    from nbclient import NotebookClient
    from nbconvert import HTMLExporter

    notebook = nbformat.read(course / "source" / name / f"{name}.ipynb", 4)
    with term((course / SECRET).read_text().strip()):
        NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    target = course / "instructor" / f"{name}.html"
    target.parent.mkdir(exist_ok=True)
    replace(target.with_suffix(".ipynb"), nbformat.writes(notebook) + "\n")
    replace(target, HTMLExporter().from_notebook_node(notebook)[0])
    return target


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="tools.coursework", description=__doc__)
    parser.add_argument("--course", type=Path, default=ROOT / COURSE)
    parser.add_argument("--seed")
    given = parser.parse_args(argv)
    course = given.course.resolve()
    course.mkdir(parents=True, exist_ok=True)
    prepare(course, seed_of(course, given.seed))
    for name in sets():
        print(f"coursework: {release(course, name).relative_to(course)}, ", end="")
        print(instruct(course, name).relative_to(course))
    print(f"coursework: the course is in {given.course}; keep {SECRET} to yourself")


if __name__ == "__main__":
    run_main(main)
