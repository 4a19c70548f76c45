"""Grading at the size of a class: ``make bench-coursework`` writes coursework.json.

The reference solutions of each set run in 20 terms. Then 200 students hand in, each a
set, right or wrong or broken; the grader is killed on the way and started again.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stdout
from io import StringIO
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from benchmarks import _machine
from tools import coursework, grading, submissions
from tools.command import ROOT, replace, run_main
from tools.notebooks import today
from tools.texts import read_text

RESULTS = Path(__file__).resolve().parent / "coursework.json"
TERMS, STUDENTS, JOBS = 20, 200, 2
SEED = "the term of the benchmark"


def failed_terms(name: str, count: int = TERMS) -> list[str]:
    """The terms in which the reference solutions of a set fail a check."""
    failed = []
    for number in range(count):
        with coursework.term(f"term {number}"), redirect_stdout(StringIO()):
            marked = coursework.mark(read_text(coursework.sets()[name]))
            names: dict[str, Any] = {}
            try:
                for cell in (c for c in marked.cells if c.cell_type == "code"):
                    with warnings.catch_warnings(action="ignore"):
                        exec(cell.source, names)
            except Exception as error:
                failed.append(f"term {number}: {error}")
    return failed


def digest(name: str) -> str:
    """Digest of the code of a set: what the terms were tried with."""
    cells = read_text(coursework.sets()[name]).cells
    code = "\0".join(cell.source for cell in cells if cell.cell_type == "code")
    return hashlib.sha256(code.encode()).hexdigest()


def hand_in(course: Path) -> dict[str, dict[str, float | None]]:
    """200 submissions; by set and student the points it deserves, None for any."""
    kinds = ["reference", "wrong-0", "wrong-1", "untouched", *submissions.TROUBLES]
    due: dict[str, dict[str, float | None]] = {name: {} for name in coursework.sets()}
    pairs = ((name, kind) for kind in cycle(kinds) for name in due)
    for number, (name, kind) in enumerate(islice(pairs, STUDENTS)):
        student = f"s{number:03d}-{kind}"
        given = submissions.read(course, "release", name)
        solved = submissions.solutions(submissions.read(course, "source", name))
        wrong = submissions.mistakes(name)
        answers = {"untouched": {}}.get(kind, solved)
        if kind.startswith("wrong"):
            answers = {k: v[int(kind[-1])].code for k, v in wrong.items()}
        notebook = submissions.answered(given, answers)
        if kind in submissions.TROUBLES:
            submissions.TROUBLES[kind].spoil(notebook, next(iter(solved)))
        submissions.put(course, name, student, notebook)
        due[name][student] = deserved(name, kind)
    return due


def deserved(name: str, kind: str) -> float | None:
    """Points of a submission, where they are the same for all sets."""
    text = read_text(coursework.sets()[name])
    tags = [coursework.tag(cell) for cell in text.cells]
    checks = {t.split(":")[1]: int(t.split(":")[2]) for t in tags if t[:5] == "check"}
    if kind.startswith("wrong"):
        found = submissions.mistakes(name).values()
        lost = {check for each in found for check in each[int(kind[-1])].loses}
        return float(sum(v for k, v in checks.items() if k not in lost))
    return {"reference": float(sum(checks.values())), "untouched": 0.0}.get(kind)


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
    run.wait()


def graded_class(course: Path) -> dict[str, Any]:
    """Grade 200 submissions with one interruption; what came out, and what it cost."""
    due = hand_in(course)
    start = time.monotonic()
    for number, name in enumerate(due):
        if number == 1:
            run_grader(course, name, stop_after=10)
        run_grader(course, name)
    seconds = time.monotonic() - start
    rows = {
        (name, student): row
        for name in due
        for student, row in grading.read_report(
            course / "reports" / f"{name}.jsonl"
        ).items()
    }
    expected = {(n, s): points for n in due for s, points in due[n].items()}
    wrong = [
        f"{s}: {rows[n, s]['points']} instead of {points}"
        for (n, s), points in expected.items()
        if (n, s) in rows and points is not None and rows[n, s]["points"] != points
    ]
    cpu = [row["cpu_seconds"] for row in rows.values() if "cpu_seconds" in row]
    return {
        "students": len(expected),
        "lost": sorted(s for n, s in expected.keys() - rows.keys()),
        "wrong_marks": wrong,
        "minutes": round(seconds / 60, 1),
        "jobs": JOBS,
        "cpu_seconds": round(sum(cpu) / len(cpu), 2),
        "slowest_seconds": max(row["seconds"] for row in rows.values()),
        "memory_mb": max(row.get("memory_mb", 0) for row in rows.values()),
    }


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
    if named := sys.argv[1:]:
        result = json.loads(RESULTS.read_text())
        result["terms"] |= tried_terms(named)
    else:
        result = {"date": today(), "machine": _machine.machine()}
        result["terms"] = tried_terms(list(coursework.sets()))
        with tempfile.TemporaryDirectory() as folder:
            coursework.main(["--course", folder, "--seed", SEED])
            result["class"] = graded_class(Path(folder))
    replace(RESULTS, json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    run_main(main)
