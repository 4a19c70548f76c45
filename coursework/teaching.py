"""Directives of the page for teachers: the sets, what grading costs, what was tried."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes

from coursework.sets import sets
from coursework.tricks import TRICKS
from tools.site.directives import Page, table

BENCHMARK = "coursework/bench.json"


class ProblemSets(Page):
    """Title, problems and time of each set, read from its text."""

    def run(self) -> list[nodes.Node]:
        lines = []
        for path in sets().values():
            self.env.note_dependency(str(path))
            text = path.read_text("utf-8")
            title = re.search(r"^# (.+)", text, flags=re.M)
            hours = re.search(r"\*\*Time\*\*: about ([\w ]*hours)", text)
            problems = re.findall(r"^## \d\. (.+) \(\d+ points", text, flags=re.M)
            assert title and hours, path
            cells = [title[1], "; ".join(problems), hours[1]]
            lines.append([nodes.Text(cell) for cell in cells])
        return [table(["set", "problems", "time"], lines)]


class Coursework(Page):
    """Findings of ``make bench-coursework``."""

    def run(self) -> list[nodes.Node]:
        result = self.read(BENCHMARK)
        trial, terms = result["class"], result["terms"]
        failed = sum(len(each["failed"]) for each in terms.values())
        before, _, busy = trial["load"]
        text = (
            f"On {result['date']}, {trial['students']} simulated students handed in a"
            " set: right, wrong in known ways, untouched, or with one of the tricks"
            f" below. Their code was shut in by {trial['isolation']}. The grader was"
            f" killed and started again {trial['interruptions']} times."
            f" {len(trial['lost'])} submissions were lost,"
            f" {len(trial['wrong_marks'])} got a mark they do not deserve. Graded"
            f" again on a busy machine (load {busy:g} instead of {before:g}),"
            f" {len(trial['other_marks_when_busy'])} got another mark. With"
            f" {trial['jobs']} workers the first run took {trial['minutes']:g} minutes,"
            f" {trial['cpu_seconds']:g} CPU seconds each, at most"
            f" {trial['memory_mb']} MB of memory for a process. The reference solutions"
            f" were tried in {min(each['count'] for each in terms.values())} terms for"
            f" each set; {failed} failed."
        )
        return [nodes.paragraph(text, text)]


class Tricks(Page):
    """Tricks of submissions, what answers them, and what the report then says."""

    def run(self) -> list[nodes.Node]:
        tried = self.read(BENCHMARK)["class"]["tricks"]
        lines = []
        for kind, trick in TRICKS.items():
            note = tried.get(kind, {}).get("note") or "nothing: it has no effect"
            cells = [trick.what, trick.answered, note]
            lines.append([nodes.Text(cell) for cell in cells])
        return [table(["tried", "what answers it", "in the report"], lines)]


def setup(app: Any) -> dict[str, bool]:
    app.add_directive("problem-sets", ProblemSets)
    app.add_directive("coursework-benchmark", Coursework)
    app.add_directive("coursework-tricks", Tricks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
