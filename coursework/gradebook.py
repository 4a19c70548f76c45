"""Records of nbgrader: points of a submission, marks of a class, tables of them."""

from __future__ import annotations

import contextlib
import csv
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from coursework.course import settings
from tools.command import PipelineError

Row = dict[str, Any]


def points(config: Any, name: str, student: str) -> Row:
    """Points of the checks of a graded submission, and what is graded by hand."""
    with _opened(config) as book:
        (notebook,) = book.find_submission(name, student).notebooks
        grades = {g.name: g for g in notebook.grades}
        checks = {n: g for n, g in grades.items() if g.cell.cell_type == "code"}
        return {
            "points": sum(g.auto_score or 0.0 for g in checks.values()),
            "of": sum(g.max_score for g in checks.values()),
            "by_hand": [n for n, g in grades.items() if g.needs_manual_grade],
            "lost": {n: "" for n, g in checks.items() if not g.auto_score},
        }


def zero(config: Any, name: str, student: str, reason: str) -> Row:
    """Record 0 points for a submission in which nothing can be graded."""
    with _opened(config) as book:
        book.update_or_create_student(student)
        submission = book.update_or_create_submission(name, student)
        (notebook,) = submission.notebooks
        for grade in notebook.grades:
            grade.auto_score, grade.needs_manual_grade = 0, False
        automatic = [g for g in notebook.grades if g.cell.cell_type == "code"]
        of = sum(g.max_score for g in automatic)
        book.db.commit()
    return {"points": 0.0, "of": of, "by_hand": [], "lost": {}, "notes": [reason]}


def by_hand(config: Any, name: str, student: str) -> dict[str, tuple[float, bool]]:
    """Points of each problem graded by hand, and whether somebody has graded it."""
    with _opened(config) as book:
        (notebook,) = book.find_submission(name, student).notebooks
        grades = [g for g in notebook.grades if g.cell.cell_type != "code"]
        return {g.name: (g.max_score, g.manual_score is not None) for g in grades}


def totals(course: Path, name: str, rows: dict[str, Row]) -> dict[str, float]:
    """Points of each student with those given by hand, as nbgrader has them."""
    graded = [who for who, row in rows.items() if row["points"] is not None]
    with _opened(settings(course)) as book:
        return {who: book.find_submission(name, who).score for who in graded}


@contextlib.contextmanager
def _opened(config: Any) -> Iterator[Any]:
    from nbgrader.api import Gradebook

    with Gradebook(config.CourseDirectory.db_url) as book:
        yield book


def write_marks(path: Path, rows: dict[str, Row]) -> None:
    """A table of marks: student, points of the checks, out of, notes."""
    lines = [["student", "points", "of", "by hand", "notes"]]
    for student, row in sorted(rows.items()):
        marks = "" if row["points"] is None else row["points"]
        notes = "; ".join(row["notes"])
        lines.append([student, marks, row["of"], ", ".join(row["by_hand"]), notes])
    _write(path, lines)


def fill(table: Path, who: str, where: str, marks: dict[str, float]) -> list[str]:
    """Put the marks into a copy of a table that a learning system exported.

    ``who`` is its column of student names as in ``submitted``, ``where`` that of the
    set. Other lines stay as they are. Returns the students the table does not have.
    """
    with table.open(newline="", encoding="utf-8-sig") as file:
        lines = list(csv.reader(file))
    for column in (who, where):
        if not lines or column not in lines[0]:
            known = ", ".join(lines[0]) if lines else "no columns"
            raise PipelineError(f"{table} has no column {column!r}; it has {known}")
    key, mark = lines[0].index(who), lines[0].index(where)
    for line in lines[1:]:
        if len(line) > max(key, mark) and line[key] in marks:
            line[mark] = str(marks[line[key]])
    _write(table.with_name(f"{table.stem}-filled.csv"), lines)
    return sorted(marks.keys() - {line[key] for line in lines[1:] if len(line) > key})


def _write(path: Path, lines: list[list[Any]]) -> None:
    part = path.with_name(path.name + ".part")
    with part.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(lines)
    os.replace(part, path)
