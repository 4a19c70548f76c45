"""Directives of the page on running the book: what was run where, what installs cost.

They read what ``make ways`` and ``tools.environments`` recorded; a way that nobody
recorded has no column.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes

from tools import launch
from tools.environments import RECORD as ENVIRONMENTS
from tools.environments import SUITES
from tools.notebooks import FACTS
from tools.site.directives import Page, table
from tools.ways import RECORD

# Ways in which a whole notebook is run, by their names in the record.
WAYS = {
    "alone": "alone in an empty folder, with the small install",
    "live": "Run all on its live page",
}
HERE = "where it lies, by make test"
# Installations that no longer exist, as new users measured them.
BEFORE = {
    "the package, before it was made small": {
        "date": "2026-11-22", "seconds": 326, "load": 9.0, "packages": 160,
        "megabytes": 866,
    },
    "requirements.txt, at that time": {
        "date": "2026-11-22", "seconds": 182, "load": 5.0, "packages": 160,
        "megabytes": 864,
    },
}  # fmt: skip


class Ways(Page):
    """Way by notebook: what was run, and when."""

    def run(self) -> list[nodes.Node]:
        record, facts = self.read(RECORD), self.read(FACTS)
        by_name = record["notebooks"]
        ways = [way for way in WAYS if any(way in each for each in by_name.values())]
        lines = [
            [
                name,
                f"{facts[name]['cpu_seconds']} s" if name in facts else "—",
                *(told(each.get(way)) for way in ways),
            ]
            for name, each in by_name.items()
        ]
        versions = ", ".join(f"{k} {v}" for k, v in record["versions"].items())
        text = f"The small install had {versions}, on {record['machine']}."
        heads = ["notebook", HERE, *(WAYS[way] for way in ways)]
        cells = ([nodes.Text(cell) for cell in line] for line in lines)
        return [table(heads, cells), nodes.paragraph(text=text)]


def told(outcome: dict[str, Any] | None) -> str:
    """Tell of one notebook run in one way."""
    if outcome is None:
        return "not run"
    if "failed" in outcome:
        return f"{outcome['date']}: failed with {outcome['failed']}"
    seconds = f", {outcome['cpu_seconds']} s" if "cpu_seconds" in outcome else ""
    return f"{outcome['date']}: {outcome['cells']} cells{seconds}"


class Installs(Page):
    """Shows what each installation costs, beside what it cost before."""

    def run(self) -> list[nodes.Node]:
        rows = self.read(RECORD)["installs"] | BEFORE
        lines = [
            [
                name,
                f"{each['seconds']} s",
                f"{each['load']:g}",
                str(each["packages"]),
                f"{each['megabytes']} MB",
                each["date"],
            ]
            for name, each in rows.items()
        ]
        heads = ["installation", "time", "load", "packages", "size", "measured"]
        return [table(heads, ([nodes.Text(c) for c in line] for line in lines))]


class Environments(Page):
    """Shows under which Pythons, versions and processors the tests were run."""

    def run(self) -> list[nodes.Node]:
        heads = ["Python", "system", "versions", "of which", "tests", "cells", "date"]
        lines = map(environment_cells, self.read(ENVIRONMENTS))
        return [table(heads, ([nodes.Text(c) for c in line] for line in lines))]


def environment_cells(row: dict[str, Any]) -> list[str]:
    """One run in another environment, cell by cell of the table."""
    kind = "lowest" if row["lowest"] else "newest"
    return [
        row["python"],
        row["system"],
        kind + (", older processor" if row["older_processor"] else ""),
        ", ".join(f"{name} {version}" for name, version in row["versions"].items()),
        *(_counted(row[suite]) for suite in SUITES),
        row["date"],
    ]


def _counted(outcome: dict[str, Any]) -> str:
    counts = [(outcome["passed"], "pass"), (outcome["skipped"], "skipped"),
              (len(outcome["failed"]), "fail")]  # fmt: skip
    return ", ".join(f"{n} {what}" for n, what in counts if n or what == "pass")


class Wheel(Page):
    """A link to the package as one file, which lies at the root of the site."""

    def run(self) -> list[nodes.Node]:
        name = launch.wheel_name()
        up = "../" * self.env.docname.count("/")
        link = nodes.reference("", name, internal=True, refuri=f"{up}{name}")
        line = [nodes.Text("The package as one file: "), link, nodes.Text(".")]
        return [nodes.paragraph("", "", *line)]


def setup(app: Any) -> None:
    app.add_directive("ways", Ways)
    app.add_directive("installs", Installs)
    app.add_directive("environments", Environments)
    app.add_directive("package-wheel", Wheel)
