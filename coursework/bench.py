"""Grading at the size of a class: ``make bench-coursework`` writes bench.json.

The reference solutions of each set run in 20 terms. Then 200 students hand in, each a
set: right, wrong, untouched, or with a trick. The grader is killed on the way and
started again. All is graded a second time, on a machine kept busy, and has to have the
same marks.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from io import StringIO
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from coursework import course as making
from coursework import grading, isolation, submissions
from coursework.plan import first_checks
from coursework.sets import mark, points, sets, tag, term
from coursework.tricks import TRICKS
from tools.command import ROOT, replace, run_main, today
from tools.texts import read_text

RESULTS = Path(__file__).resolve().parent / "bench.json"
TERMS, STUDENTS, JOBS, LOAD = 20, 200, 2, 12
SEED = "the term of the benchmark"


def failed_terms(name: str, count: int = TERMS) -> list[str]:
    """The terms in which the reference solutions of a set fail a check."""
    failed = []
    for number in range(count):
        with term(f"term {number}"), contextlib.redirect_stdout(StringIO()):
            marked = mark(read_text(sets()[name]))
            names: dict[str, Any] = {}
            try:
                for cell in (c for c in marked.cells if c.cell_type == "code"):
                    with warnings.catch_warnings(action="ignore"):
                        exec(cell.source, names)
            except Exception as error:
                failed.append(f"term {number}: {error}")
    return failed


def machine() -> dict[str, Any]:
    """Conditions of the minutes."""
    system = f"{platform.system()} {platform.machine()}"
    return {"cores": os.cpu_count(), "system": system}


def digest(name: str) -> str:
    """Digest of the code of a set: what the terms were tried with."""
    cells = read_text(sets()[name]).cells
    code = "\0".join(cell.source for cell in cells if cell.cell_type == "code")
    return hashlib.sha256(code.encode()).hexdigest()


def hand_in(course: Path, students: int) -> dict[tuple[str, str], float]:
    """Submissions of a class; by set and student the points that each deserves."""
    kinds = ["reference", "wrong-0", "wrong-1", "untouched", *TRICKS]
    due = {}
    pairs = zip(cycle(kinds), cycle(sets()), strict=False)
    for number, (kind, name) in enumerate(islice(pairs, students)):
        student = f"s{number:03d}-{kind}"
        given = submissions.read(course, "release", name)
        solved = submissions.solutions(submissions.read(course, "source", name))
        wrong, first = submissions.mistakes(name, SEED), next(iter(solved))
        answers, lost = dict(solved), set[str]()
        if kind == "untouched":
            answers, lost = {}, set(checks(name))
        elif kind.startswith("wrong"):
            answers = {k: v[int(kind[-1])].code for k, v in wrong.items()}
            lost = {c for each in wrong.values() for c in each[int(kind[-1])].loses}
        elif kind in TRICKS:
            lost = {"none": set(), "first": set(first_checks(given))}.get(
                TRICKS[kind].loses, set(wrong[first][0].loses)
            )
            if TRICKS[kind].wrong:
                answers[first] = wrong[first][0].code
        notebook = submissions.answered(given, answers)
        if kind in TRICKS:
            TRICKS[kind].spoil(notebook, first)
        submissions.put(course, name, student, notebook)
        due[name, student] = float(
            sum(v for k, v in checks(name).items() if k not in lost)
        )
    return due


def checks(name: str) -> dict[str, int]:
    """Points of the checks of a set."""
    text = read_text(sets()[name])
    by_hand = {tag(c).split(":")[1] for c in text.cells if tag(c)[:4] == "open"}
    return {k: v for k, v in points(text).items() if k not in by_hand}


def run_grader(course: Path, name: str, stop_after: int = 0) -> None:
    """Grade a set; kill the grader once so many submissions are graded."""
    command = [sys.executable, "-m", "tools.grading", "--set", name]
    command += ["--course", str(course), "--jobs", str(JOBS)]
    run = subprocess.Popen(
        command, cwd=ROOT, start_new_session=True, stdout=subprocess.DEVNULL
    )
    report = course / "reports" / f"{name}.jsonl"
    while stop_after and run.poll() is None:
        if len(grading.read_report(report)) >= stop_after:
            os.killpg(run.pid, signal.SIGKILL)
        time.sleep(0.2)
    if run.wait() and not stop_after:
        raise RuntimeError(f"the grader ended with {run.returncode} in {course}")


@contextlib.contextmanager
def busy(processes: int) -> Iterator[None]:
    """Keep the machine busy with processes that only compute."""
    burn = [sys.executable, "-c", "while True: pass"]
    running = [subprocess.Popen(burn) for _ in range(processes)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def graded(course: Path, names: list[str], interrupt: bool) -> dict[Any, Any]:
    """The rows of all sets, by set and student."""
    for number, name in enumerate(names):
        if interrupt and number == min(1, len(names) - 1):
            run_grader(course, name, stop_after=3)
        run_grader(course, name)
    return {
        (name, student): row
        for name in names
        for student, row in grading.read_report(
            course / "reports" / f"{name}.jsonl"
        ).items()
    }


def graded_class(course: Path, students: int, load: int) -> dict[str, Any]:
    """Grade a class twice; what came out, and what it cost."""
    due = hand_in(course, students)
    names = sorted({name for name, _ in due})
    again = course.with_name(course.name + "-again")
    shutil.copytree(course, again)
    shutil.copy(ROOT / "coursework" / "nbgrader_config.py", again)
    start, before = time.monotonic(), os.getloadavg()[0]
    rows = graded(course, names, interrupt=True)
    seconds, between = time.monotonic() - start, os.getloadavg()[0]
    with busy(load):
        second = graded(again, names, interrupt=False)
        after = os.getloadavg()[0]
    shutil.rmtree(again)
    wrong = [
        f"{student}: {rows[name, student]['points']} instead of {points}"
        for (name, student), points in due.items()
        if (name, student) in rows and rows[name, student]["points"] != points
    ]
    other = [
        f"{student}: {[each[name, student]['points'] for each in (rows, second)]}"
        for name, student in due
        if rows[name, student]["lost"].keys() != second[name, student]["lost"].keys()
        or rows[name, student]["points"] != second[name, student]["points"]
    ]  # fmt: skip
    cpu = [row["cpu_seconds"] for row in rows.values() if "cpu_seconds" in row]
    return {
        "students": len(due),
        "interruptions": 1,
        "isolation": isolation.choose(),
        "lost": sorted(s for n, s in due.keys() - rows.keys()),
        "wrong_marks": wrong,
        "other_marks_when_busy": other,
        "load": [round(x, 1) for x in (before, between, after)],
        "minutes": round(seconds / 60, 1),
        "jobs": JOBS,
        "cpu_seconds": round(sum(cpu) / len(cpu), 2),
        "slowest_seconds": max(row["seconds"] for row in rows.values()),
        "memory_mb": max(row.get("memory_mb", 0) for row in rows.values()),
        "tricks": tricks(rows, wrong),
    }


def tricks(rows: dict[Any, Any], wrong: list[str]) -> dict[str, Any]:
    """For each trick how often it was tried, and the first note it led to."""
    results: dict[str, Any] = {}
    for (_, student), row in rows.items():
        kind = student.partition("-")[2]
        if kind in TRICKS:
            each = results.setdefault(kind, {"tried": 0, "wrong": 0, "note": ""})
            each["tried"] += 1
            each["wrong"] += any(line.startswith(f"{student}:") for line in wrong)
            each["note"] = each["note"] or next(iter(row["notes"]), "")
    return dict(sorted(results.items()))


def tried_terms(names: list[str]) -> dict[str, Any]:
    """For each set, how many terms were tried, with which code, and what failed."""
    with ProcessPoolExecutor(JOBS) as pool:
        failed = list(pool.map(failed_terms, names))
    return {
        name: {"count": TERMS, "failed": each, "code": digest(name)}
        for name, each in zip(names, failed, strict=True)
    }


def main() -> None:
    """Measure all, or the terms of the sets named alone; write the result."""
    parser = argparse.ArgumentParser(prog="coursework.bench", description=__doc__)
    parser.add_argument("sets", nargs="*", help="try the terms of these sets only")
    parser.add_argument("--students", type=int, default=STUDENTS)
    parser.add_argument("--load", type=int, default=LOAD)
    parser.add_argument("--class-only", action="store_true")
    given = parser.parse_args()
    result = json.loads(RESULTS.read_text())
    if given.sets:
        result["terms"] |= tried_terms(given.sets)
    else:
        result |= {"date": today(), "machine": machine()}
        if not given.class_only:
            result["terms"] = tried_terms(list(sets()))
        with tempfile.TemporaryDirectory() as folder:
            course = Path(folder) / "course"
            making.main(["--course", str(course), "--seed", SEED])
            result["class"] = graded_class(course, given.students, given.load)
    replace(RESULTS, json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    run_main(main)
