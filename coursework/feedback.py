"""Pages for students: what each check said, with its name, and no secret."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat

from coursework import gradebook, plan
from coursework.course import settings
from coursework.pages import offline
from coursework.preprocessors import SECRET
from tools.command import PipelineError, replace

SCORE = r"\(Score: [\d.]+ / [\d.]+\)"


def feedback(course: Path, name: str, rows: dict[str, dict[str, Any]]) -> list[str]:
    """Write a page for each graded student; a note for each that had to be held back.

    Pages that would be the same are not written again.
    """
    from nbgrader.apps import NbGraderAPI

    config, notes = settings(course), []
    api = NbGraderAPI(config=config)
    source = nbformat.read(course / "source" / name / f"{name}.ipynb", 4)
    seed = (course / SECRET).read_text("utf-8").strip()
    for student in rows:
        if not (course / "autograded" / student / name).exists():
            continue
        result = api.generate_feedback(name, student, force=True)
        if not result["success"]:
            raise PipelineError(f"no feedback for {student}:\n{result['log']}")
        page = course / "feedback" / student / name / f"{name}.html"
        text = named(page.read_text("utf-8"), gradebook.by_hand(config, name, student))
        graded = course / "autograded" / student / name / f"{name}.ipynb"
        if leak := leaked(text, nbformat.read(graded, 4), source, seed):
            replace(page, f"<p>This page was held back: {leak}. Ask your grader.</p>")
            notes.append(f"the feedback of {student} was held back: it has {leak}")
        else:
            replace(page, offline(text))
    return notes


def leaked(text: str, graded: Any, source: Any, seed: str) -> str:
    """First secret of a course that a page has, '' for none.

    A line of a hidden part may stand in what the student wrote: it is public.
    """
    if seed in text:
        return "the seed of the term"
    shown = "\n".join(
        str(output) for cell in graded.cells for output in cell.get("outputs", [])
    )
    if any(line in shown for line in plan.hidden_lines(source)):
        return "a line of a hidden check"
    return ""


def named(page: str, by_hand: dict[str, tuple[float, bool]]) -> str:
    """The page with the names of the checks, and open problems as what they are."""
    page, count = re.subn(
        r'(<a href="#([\w-]+)">)Test cell</a>',
        lambda m: f"{m[1]}{m[2].replace('-', ' ')}</a>",
        page,
    )
    if not count:
        raise PipelineError("the feedback of nbgrader has another form than it had")
    waiting = {n: points for n, (points, done) in by_hand.items() if not done}
    for name, points in waiting.items():
        said = f"(not yet graded, {points:g} points)"
        link = rf'(<a href="#{name}">)[^<]*(</a>) {SCORE}'
        page = re.sub(link, rf"\1Open problem: {name.replace('-', ' ')}\2 {said}", page)
        head = rf'(<a name="{name}"></a>.*?)Score: [\d.]+ / [\d.]+'
        page = re.sub(head, rf"\1{said[1:-1]}", page, count=1, flags=re.S)
    if waiting:
        left = sum(waiting.values())

        def so_far(match: re.Match[str]) -> str:
            score, of = float(match[1]), float(match[2]) - left
            return f"(Score: {score:g} / {of:g} so far; {left:g} points not yet graded)"

        page = re.sub(r"\(Score: ([\d.]+) / ([\d.]+)\)", so_far, page, count=1)
    return page
