"""Grade what was handed in, one submission after the other, whatever they do.

    python -m tools.grading --set problems-3 [--course FOLDER] [--jobs 2]

Submissions lie in ``FOLDER/submitted/STUDENT/SET/SET.ipynb``. Each is graded by
nbgrader in a process of its own, which is stopped when it takes too long. The report,
``FOLDER/reports/SET.jsonl``, gets a line when a submission is done, so a run that was
killed goes on where it was. A submission that cannot be graded gets 0 points and the
reason. Feedback and a table of marks follow.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import hashlib
import json
import multiprocessing
import os
import re
import resource
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import nbformat

from tools.command import ROOT, PipelineError, run_main
from tools.coursework import COURSE, settings

WALL = 300  # seconds of one submission at most
TROUBLES = (
    "CellTimeoutError", "KernelDied", "LimitReached", "MemoryError", "SyntaxError",
)  # fmt: skip
Row = dict[str, Any]


def students(course: Path, name: str) -> list[str]:
    """Who handed the set in, or at least made its folder."""
    return sorted(path.parent.name for path in (course / "submitted").glob(f"*/{name}"))


def digest(folder: Path) -> str:
    """Digest of all files that were handed in."""
    found = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        found.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes())
    return found.hexdigest()[:16]


def read_report(path: Path) -> dict[str, Row]:
    """The last complete line of each student; a line cut short does not count."""
    rows: dict[str, Row] = {}
    for line in path.read_text("utf-8").splitlines() if path.exists() else []:
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue
        rows[row["student"]] = row
    return rows


def append(path: Path, row: Row) -> None:
    """Add a line and have it on the disk; a line cut short before is ended first."""
    path.parent.mkdir(exist_ok=True)
    with path.open("a+b") as file:
        if file.tell() and path.read_bytes()[-1:] != b"\n":
            file.write(b"\n")
        file.write(json.dumps(row, sort_keys=True).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def grade(course: Path, name: str, jobs: int = 1, wall: float = WALL) -> dict[str, Row]:
    """Grade what is new or changed since the last run; return all rows."""
    config, path = settings(course), course / "reports" / f"{name}.jsonl"
    _require_release(course, name)
    known = read_report(path)
    fresh = {s: digest(course / "submitted" / s / name) for s in students(course, name)}
    todo = [s for s in fresh if known.get(s, {}).get("digest") != fresh[s]]
    pool = ThreadPoolExecutor(jobs)
    try:
        runs = {pool.submit(_isolated, config, course, name, s, wall): s for s in todo}
        for run in as_completed(runs):
            student = runs[run]
            row = {"student": student, "digest": fresh[student], **run.result()}
            append(path, row)
            print(f"grading: {student} {row['points']:g} of {row['of']:g}", end="")
            print("".join(f"; {note}" for note in row["notes"]))
    finally:  # when interrupted, only what is in work is waited for
        pool.shutdown(cancel_futures=True)
    return read_report(path)


def _require_release(course: Path, name: str) -> None:
    made = sorted(p.name for p in (course / "release").glob("*"))
    if name not in made:
        raise PipelineError(f"{course} has no set {name!r}; it has {', '.join(made)}")


def _isolated(config: Any, course: Path, name: str, student: str, wall: float) -> Row:
    """Grade one submission in a process that may be stopped with all it started."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    start = time.monotonic()
    args = (config, course, name, student, there)
    process = context.Process(target=_child, args=args)
    process.start()
    there.close()
    row: Row = {}
    reason = "grading ended without a result"
    try:
        if here.poll(wall):
            row = here.recv()
        else:
            reason = f"grading was stopped after {wall:g} seconds"
    except EOFError:
        pass
    if not row:
        _stop(process.pid)
    process.join()
    if not row or row.get("failed"):
        reason = row.get("failed", reason)
        row = zero(config, name, student, f"not graded, 0 points: {reason}")
    return {**row, "seconds": round(time.monotonic() - start, 2)}


def _stop(group: int | None) -> None:
    """Kill a process and those it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group or 0, signal.SIGKILL)


def _child(config: Any, course: Path, name: str, student: str, out: Connection) -> None:
    os.setsid()
    for stream in (1, 2):  # what kernels print belongs to no one here
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    try:
        row = autograde(config, course, name, student)
    except Exception as error:
        row = {"failed": f"{type(error).__name__}: {error}"}
    usage = [
        resource.getrusage(k) for k in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    ]
    row["cpu_seconds"] = round(sum(u.ru_utime + u.ru_stime for u in usage), 2)
    row["memory_mb"] = round(max(u.ru_maxrss for u in usage) / 1024)
    out.send(row)


def autograde(config: Any, course: Path, name: str, student: str) -> Row:
    """Grade one submission with nbgrader: points, what was lost, what to look at."""
    from nbgrader.api import Gradebook
    from nbgrader.apps import NbGraderAPI

    handed_in = course / "submitted" / student / name
    if not (handed_in / f"{name}.ipynb").exists():
        found = ", ".join(sorted(p.name for p in handed_in.iterdir())) or "nothing"
        return {"failed": f"there is no file {name}.ipynb, but {found}"}
    if reason := _unreadable(handed_in / f"{name}.ipynb"):
        return {"failed": reason}
    # A kernel may fail to start, as when another takes its port: what fails is tried
    # once more.
    attempts = (
        NbGraderAPI(config=config).autograde(name, student, force=True)
        for _ in range(2)
    )
    reasons = []
    for result in attempts:
        if result["success"]:
            break
        reasons.append(_reason(result["log"]))
    else:
        return {"failed": reasons[-1]}
    with Gradebook(config.CourseDirectory.db_url) as book:
        submission = book.find_submission(name, student)
        (notebook,) = submission.notebooks
        grades = {g.name: g for g in notebook.grades}
        automatic = {n: g for n, g in grades.items() if g.cell.cell_type == "code"}
        row: Row = {
            "points": sum(g.auto_score or 0.0 for g in automatic.values()),
            "of": sum(g.max_score for g in automatic.values()),
            "by_hand": [n for n, g in grades.items() if g.needs_manual_grade],
        }
    folders = ("submitted", student), ("release", ""), ("autograded", student)
    handed_in, given, graded = (
        nbformat.read(course.joinpath(*folder, name, f"{name}.ipynb"), 4)
        for folder in folders
    )
    lost = dict(_errors(graded))
    row["first_try"] = reasons
    row["lost"] = {n: lost[n] for n in automatic if n in lost}
    row["notes"] = [*_changes(handed_in, given), *_notes(graded)]
    return row


def _reason(log: str) -> str:
    """The exception in a log of nbgrader, else its last line."""
    found = re.findall(r"^ +(\S*(?:Error|Exception): .*)", log, flags=re.M)
    return found[-1] if found else log.strip().splitlines()[-1]


def _unreadable(path: Path) -> str:
    try:
        nbformat.validate(nbformat.read(path, 4))
    except Exception as error:
        return f"{path.name} is not a notebook: {str(error).splitlines()[0][:120]}"
    return ""


def _errors(notebook: nbformat.NotebookNode) -> Iterator[tuple[str, str]]:
    """Name and message of each cell that failed."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                name = cell.metadata.get("nbgrader", {}).get("grade_id", "")
                yield name, f"{output.ename}: {output.evalue}"[:300]


def _notes(notebook: nbformat.NotebookNode) -> Iterator[str]:
    """Limits that were met while grading."""
    outputs = [o for cell in notebook.cells for o in cell.get("outputs", [])]
    said = "".join(o.get("text", "") for o in outputs if o.output_type == "stream")
    yield from dict.fromkeys(re.findall("^grading limit: .*", said, flags=re.M))
    for kind in TROUBLES:
        if count := sum(o.get("ename") == kind for o in outputs):
            yield f"{kind} in {count} cell{'s' * (count > 1)}"


def _changes(
    handed_in: nbformat.NotebookNode, released: nbformat.NotebookNode
) -> Iterator[str]:
    """Cells that are not as they were given: missing, doubled or edited."""
    found: dict[str, list[str]] = {}
    for cell in handed_in.cells:
        if name := cell.metadata.get("nbgrader", {}).get("grade_id"):
            found.setdefault(name, []).append(cell.source)
    marks = [cell.metadata.get("nbgrader", {}) for cell in released.cells]
    for name in sorted(found.keys() - {mark.get("grade_id") for mark in marks}):
        yield f"cell {name} does not belong to this set"
    for cell, mark in zip(released.cells, marks, strict=True):
        sources = found.get(mark.get("grade_id"), [])
        if mark and not sources:
            yield f"cell {mark.grade_id} is missing"
        if len(sources) > 1:
            yield f"cell {mark.grade_id} stands {len(sources)} times, the last counts"
        if mark.get("locked") and any(source != cell.source for source in sources):
            yield f"cell {mark.grade_id} was edited and is graded as given"


def zero(config: Any, name: str, student: str, reason: str) -> Row:
    """Record 0 points for a submission that could not be graded."""
    from nbgrader.api import Gradebook

    with Gradebook(config.CourseDirectory.db_url) as book:
        book.update_or_create_student(student)
        submission = book.update_or_create_submission(name, student)
        (notebook,) = submission.notebooks
        for grade in notebook.grades:
            grade.auto_score, grade.needs_manual_grade = 0, False
        automatic = [g for g in notebook.grades if g.cell.cell_type == "code"]
        of = sum(g.max_score for g in automatic)
        book.db.commit()
    return {"points": 0.0, "of": of, "by_hand": [], "lost": {}, "notes": [reason]}


def feedback(course: Path, name: str, rows: dict[str, Row]) -> None:
    """A page for each student whose submission was graded."""
    from nbgrader.apps import NbGraderAPI

    api = NbGraderAPI(config=settings(course))
    for student in rows:
        if (course / "autograded" / student / name).exists():
            result = api.generate_feedback(name, student, force=True)
            if not result["success"]:
                raise PipelineError(f"no feedback for {student}:\n{result['log']}")


def write_marks(path: Path, rows: dict[str, Row]) -> None:
    """A table of marks: student, points of the checks, out of, notes."""
    part = path.with_name(path.name + ".part")
    with part.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["student", "points", "of", "by hand", "notes"])
        for student, row in sorted(rows.items()):
            by_hand, notes = ", ".join(row["by_hand"]), "; ".join(row["notes"])
            table.writerow([student, row["points"], row["of"], by_hand, notes])
    os.replace(part, path)


def total(course: Path, name: str, rows: dict[str, Row]) -> dict[str, float]:
    """Points of each student with those given by hand, as nbgrader has them."""
    from nbgrader.api import Gradebook

    with Gradebook(settings(course).CourseDirectory.db_url) as book:
        return {who: book.find_submission(name, who).score for who in rows}


def fill(table: Path, who: str, where: str, totals: dict[str, float]) -> list[str]:
    """Put the marks into a copy of a table that a learning system exported.

    ``who`` is its column of student names as in ``submitted``, ``where`` that of the
    set. Other lines stay as they are. Returns the students the table does not have.
    """
    with table.open(newline="", encoding="utf-8-sig") as file:
        lines = list(csv.reader(file))
    for column in (who, where):
        if column not in lines[0]:
            known = ", ".join(lines[0])
            raise PipelineError(f"{table} has no column {column!r}; it has {known}")
    key, mark = lines[0].index(who), lines[0].index(where)
    for line in lines[1:]:
        if len(line) > max(key, mark) and line[key] in totals:
            line[mark] = str(totals[line[key]])
    target = table.with_name(f"{table.stem}-filled.csv")
    part = target.with_name(target.name + ".part")
    with part.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(lines)
    os.replace(part, target)
    return sorted(totals.keys() - {line[key] for line in lines[1:] if len(line) > key})


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="tools.grading", description=__doc__)
    parser.add_argument("--set", required=True)
    parser.add_argument("--course", type=Path, default=ROOT / COURSE)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--fill", nargs=3, metavar=("TABLE", "STUDENTS", "MARKS"),
        help="put the marks into this table, by the names of two of its columns",
    )  # fmt: skip
    given = parser.parse_args(argv)
    course = given.course.resolve()
    rows = grade(course, given.set, given.jobs)
    feedback(course, given.set, rows)
    write_marks(course / f"marks-{given.set}.csv", rows)
    print(f"grading: {len(rows)} submissions, marks-{given.set}.csv")
    if given.fill:
        table, who, where = given.fill
        for student in fill(Path(table), who, where, total(course, given.set, rows)):
            print(f"grading: {student} is not in {table}")


if __name__ == "__main__":
    run_main(main, "what was graded is kept, run it again to go on")
