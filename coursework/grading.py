"""Grade what was handed in, one submission after the other, whatever they do.

    python -m tools.grading --set problems-3 [--course FOLDER] [--jobs 2]

Submissions lie in ``FOLDER/submitted/STUDENT/SET``. Each is graded by nbgrader in a
process of its own, with the student's code shut in. The report,
``FOLDER/reports/SET.jsonl``, gets a line when a submission is done, so a run that was
killed goes on where it was. A submission in which nothing can be graded gets 0 points
and the reason; one that the machine could not grade gets no points and is tried again
by the next run. Feedback and a table of marks follow.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import multiprocessing
import os
import re
import resource
import signal
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor, as_completed
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import nbformat

from coursework import gradebook, intake, isolation
from coursework.course import COURSE, settings
from coursework.feedback import feedback
from coursework.gradebook import Row
from coursework.preprocessors import COLLECTED, RECORD
from coursework.sandbox.refuse import end_with_parent
from tools.command import ROOT, PipelineError, run_main

WALL = 4 * 3600.0  # seconds of one submission: only a machine that is stuck takes them
MEMORY = 8 << 30  # bytes of address space of what reads a submission


def students(course: Path, name: str) -> list[str]:
    """Names of those who handed the set in, or at least made its folder."""
    return sorted(path.parent.name for path in (course / "submitted").glob(f"*/{name}"))


def digest(folder: Path) -> str:
    """Digest of all files that were handed in; of a link, where it points."""
    hashed = hashlib.sha256()
    if folder.is_symlink() or not folder.is_dir():
        return "no folder"
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            hashed.update(f"{path.relative_to(folder)} -> {path.readlink()}\0".encode())
    for path in intake.files(folder):
        hashed.update(f"{path.relative_to(folder)}\0".encode())
        with path.open("rb") as file:
            hashed.update(hashlib.file_digest(file, "sha256").digest())
    return hashed.hexdigest()[:16]


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


def grade(
    course: Path, name: str, jobs: int = 1, wall: float = WALL, kind: str | None = None
) -> dict[str, Row]:
    """Grade what is new or changed since the last run; return all rows."""
    import nbgrader.apps  # noqa: F401 (once, before processes are made)

    config, path = settings(course), course / "reports" / f"{name}.jsonl"
    _require_release(course, name)
    config.RunApart.isolation = isolation.choose(kind)
    config.CourseDirectory.submitted_directory = COLLECTED
    known = read_report(path)
    fresh = {s: digest(course / "submitted" / s / name) for s in students(course, name)}
    todo = [
        s for s in fresh
        if known.get(s, {}).get("digest") != fresh[s] or known[s]["points"] is None
    ]  # fmt: skip
    how, count = config.RunApart.isolation, len(todo)
    print(f"grading: {count} of {len(fresh)} submissions to {name} are new", flush=True)
    if todo:
        print(f"grading: student's code is shut in by: {how}", flush=True)
    running: set[int] = set()
    pool, stopped = ThreadPoolExecutor(jobs), threading.Event()

    def one(student: str) -> Row:
        return _isolated(config, course, name, student, wall, running, stopped)

    try:
        runs = {pool.submit(one, student): student for student in todo}
        for done, run in enumerate(as_completed(runs), 1):
            row = {"student": runs[run], "digest": fresh[runs[run]], **run.result()}
            append(path, row)
            print(f"grading: {done}/{count} {_said(row)}", flush=True)
    except BaseException:
        # Nothing is waited for: what was not finished is graded by the next run.
        stopped.set()
        for group in list(running):
            _stop(group)
        raise
    finally:
        pool.shutdown(cancel_futures=True)
    return read_report(path)


def _said(row: Row) -> str:
    marks = "not graded" if row["points"] is None else f"{row['points']:g}"
    return "; ".join([f"{row['student']} {marks} of {row['of']:g}", *row["notes"]])


def _require_release(course: Path, name: str) -> None:
    made = sorted(p.name for p in (course / "release").glob("*"))
    if name not in made:
        raise PipelineError(f"{course} has no set {name!r}; it has {', '.join(made)}")


def _isolated(
    config: Any, course: Path, name: str, student: str, wall: float,
    running: set[int], stopped: threading.Event,
) -> Row:  # fmt: skip
    """Grade one submission in a process that may be stopped with all it started."""
    start, reason = time.monotonic(), ""
    row: Row = {}
    for _ in range(2):  # what the machine spoils is tried once more
        row = _attempt(config, course, name, student, wall, running, stopped)
        if stopped.is_set():
            return {}
        if "machine" not in row:
            break
        reason = row.pop("machine")
    if "failed" in row:
        reason = f"not graded, 0 points: {row.pop('failed')}"
        row |= gradebook.zero(config, name, student, reason)
    elif "points" not in row:
        row |= gradebook.zero(config, name, student, f"not graded: machine: {reason}")
        row["points"] = None
    return {**row, "seconds": round(time.monotonic() - start, 2)}


def _attempt(
    config: Any, course: Path, name: str, student: str, wall: float,
    running: set[int], stopped: threading.Event,
) -> Row:  # fmt: skip
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(
        target=_child, args=(config, course, name, student, there)
    )
    process.start()
    running.add(process.pid or 0)
    there.close()
    row: Row = {}
    try:
        if stopped.is_set():
            row = {"machine": "interrupted"}
        elif here.poll(wall):
            row = here.recv()
        else:
            row = {"machine": f"grading was stopped after {wall:g} seconds"}
    except (EOFError, OSError):
        row = {"machine": "grading ended without a result"}
    _stop(process.pid)
    process.join()
    running.discard(process.pid or 0)
    return row


def _stop(group: int | None) -> None:
    """Kill a process and those it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group or 0, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(group or 0, signal.SIGKILL)  # it may have no group of its own yet


def _child(config: Any, course: Path, name: str, student: str, out: Connection) -> None:
    os.setsid()
    end_with_parent()
    for stream in (1, 2):  # nbgrader's log belongs to no one here
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    row: Row
    try:
        row = autograde(config, course, name, student)
    except intake.Unreadable as error:
        row = {"failed": str(error)}
    except MemoryError:
        row = {"failed": "the notebook needs more memory than there is while grading"}
    except Exception as error:
        row = {"machine": f"{type(error).__name__}: {error}"[:300]}
    usage = [
        resource.getrusage(k) for k in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    ]
    own, cost = sum(u.ru_utime + u.ru_stime for u in usage), row.pop("cost", {})
    row["cpu_seconds"] = round(own + cost.get("cpu_seconds", 0.0), 2)
    most = max(u.ru_maxrss / 1024 for u in usage)
    row["memory_mb"] = round(max(most, cost.get("memory_mb", 0.0)))
    out.send(row)


def autograde(config: Any, course: Path, name: str, student: str) -> Row:
    """Grade one submission with nbgrader: points, what was lost, what to look at."""
    from nbgrader.apps import NbGraderAPI

    handed_in = course / "submitted" / student / name
    submission, notes = intake.find(handed_in, name)
    given = nbformat.read(course / "release" / name / f"{name}.ipynb", 4)
    notebook, more = intake.assemble(submission, given)
    target = course / COLLECTED / student / name
    notes += more + intake.collect(handed_in, target, notebook, name)
    result = NbGraderAPI(config=config).autograde(name, student, force=True)
    if not result["success"]:
        return {"machine": _reason(result["log"]), "notes": notes}
    graded = nbformat.read(course / "autograded" / student / name / f"{name}.ipynb", 4)
    row = gradebook.points(config, name, student)
    said = dict(_errors(graded))
    row["lost"] = {n: said.get(n, "") for n in row["lost"]}
    row["notes"] = list(dict.fromkeys([*notes, *graded.metadata[RECORD]["notes"]]))[:40]
    row["isolation"] = graded.metadata[RECORD]["isolation"]
    row["cost"] = graded.metadata[RECORD]["cost"]
    return row


def _reason(log: str) -> str:
    """The exception in a log of nbgrader, else its last line."""
    reasons = re.findall(r"^ +(\S*(?:Error|Exception|Trouble): .*)", log, flags=re.M)
    return (reasons or [*log.strip().splitlines(), "no reason"])[-1][:300]


def _errors(notebook: nbformat.NotebookNode) -> list[tuple[str, str]]:
    """Name and message of each cell that failed."""
    return [
        (
            cell.metadata.get("nbgrader", {}).get("grade_id", ""),
            f"{output.ename}: {output.evalue}"[:300],
        )
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if output.output_type == "error"
    ]


def main(argv: list[str] | None = None) -> None:
    """Grade what the command line asks for."""
    parser = argparse.ArgumentParser(prog="tools.grading", description=__doc__)
    parser.add_argument("--set", required=True)
    parser.add_argument("--course", type=Path, default=ROOT / COURSE)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--isolation", choices=isolation.KINDS)
    parser.add_argument(
        "--fill", nargs=3, metavar=("TABLE", "STUDENTS", "MARKS"),
        help="put the marks into this table, by the names of two of its columns",
    )  # fmt: skip
    given = parser.parse_args(argv)
    warnings.filterwarnings("ignore", module=r"(sqlalchemy|nbgrader|nbconvert)\b")
    course = given.course.resolve()
    rows = grade(course, given.set, given.jobs, kind=given.isolation)
    print("grading: writing feedback", flush=True)
    for note in feedback(course, given.set, rows):
        print(f"grading: {note}")
    gradebook.write_marks(course / f"marks-{given.set}.csv", rows)
    left = [who for who, row in rows.items() if row["points"] is None]
    print(f"grading: {len(rows)} submissions, marks-{given.set}.csv")
    if left:
        print(f"grading: the machine spoiled {', '.join(left)}; run it again")
    if given.fill:
        table, who, where = given.fill
        marks = gradebook.totals(course, given.set, rows)
        for student in gradebook.fill(Path(table), who, where, marks):
            print(f"grading: {student} is not in {table}")


KEPT = "what was graded is kept, run it again to go on"
if __name__ == "__main__":
    run_main(main, KEPT)
