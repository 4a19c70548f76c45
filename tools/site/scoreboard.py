"""The scoreboard: all verdicts with their filters, those that were to fail, errata."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from html import escape
from itertools import groupby
from typing import Any

from docutils import nodes

from tools.command import ROOT
from tools.mutants.claims_record import RECORD as MUTANTS
from tools.reseed import RESULTS as RESEED
from tools.reseed import counts_of_runs
from tools.site.directives import Page, table
from tools.verdicts import Row, statement_kinds

SCOREBOARD = "chapters/reference/scoreboard"
ERRATA = "chapters/reference/errata"
HEADS = ("verdict", "claim", "statement", "numbers", "fresh seeds", "turns red if")
WORDS = {"holds": "HOLDS", "refuted": "REFUTED"}
NO_STATEMENT = "none"


class Scoreboard(Page):
    """All verdicts, page by page, with fresh seeds and what would have failed each."""

    def run(self) -> list[nodes.Node]:
        fresh = {
            (each["page"], each["id"]): f"{each['passed']} of {each['runs']}"
            for each in self.read(RESEED)["claims"]
        }
        red = {
            (each["page"], each["id"]): each for each in self.read(MUTANTS)["claims"]
        }
        words = Counter(row.word for row in self.rows)
        by_page = pages_of(self.rows)
        kinds = statement_kinds()
        sentence = (
            f"{words['HOLDS']} claims hold and {words['REFUTED']} are refuted"
            f" as expected, on {len(by_page)} pages."
        )
        options = {stem(page): title(page) for page in by_page}
        parts: list[nodes.Node] = [
            nodes.paragraph(text=sentence),
            nodes.raw("", filters(options, kinds_of(self.rows, kinds)), format="html"),
        ]
        for page, rows in by_page.items():
            part = nodes.section(ids=[f"claims-{stem(page)}"], classes=["claims"])
            lines = [
                self.line(row, fresh.get((page, row.id)), red.get((page, row.id)))
                for row in rows
            ]
            board = table(HEADS, lines)
            body = next(board.findall(nodes.tbody))
            for each, row in zip(body.findall(nodes.row), rows, strict=True):
                each["classes"] += [f"claim-{row.word.lower()}", kind(row, kinds)]
            part += [nodes.title(text=title(page)), board]
            parts.append(part)
        return parts

    def line(
        self, row: Row, fresh: str | None, red: dict[str, Any] | None
    ) -> list[nodes.Node]:
        return [
            nodes.inline(text=row.word, classes=["claim-word"]),
            self.verdict_link(row, row.claim),
            self.statement(row),
            nodes.Text(row.numbers),
            nodes.Text(fresh or "not run"),
            turns_red(red),
        ]


def turns_red(row: dict[str, Any] | None) -> nodes.Node:
    """The change of one place that makes a verdict fail, and how it read then."""
    if row is None:
        return nodes.Text("not run")
    if (mutant := row["mutant"]) is None:
        return nodes.Text("none found")
    where = re.sub(r"^(lib|chapters)/", "", mutant["file"])
    if mutant["function"]:
        where += f": {mutant['function']}"
    mark = nodes.inline(classes=["claim-red"])
    mark += [
        nodes.literal(text=where),
        nodes.Text(" "),
        nodes.literal(text=f"{mutant['was']} → {mutant['to']}"),
        nodes.Text(f": {row['red']['numbers'].partition(';')[0]}"),
    ]
    return mark


class Scoreline(Page):
    """The scoreboard in one line, with a link to it."""

    def run(self) -> list[nodes.Node]:
        words = Counter(row.word for row in self.rows)
        record = self.read(RESEED)
        failing = sum(each["passed"] < each["runs"] for each in record["claims"])
        seeds = max(counts_of_runs(record["claims"]))
        link = self.cross_reference("scoreboard", "std", "doc", f"/{SCOREBOARD}")
        text = (
            f"{len(self.rows)} such verdicts stand here: {words['HOLDS']} claims"
            f" hold, {words['REFUTED']} were meant to fail and do. Under up"
            f" to {seeds} fresh seeds {failing or 'none'} of them came out"
            " otherwise. All are on the "
        )
        return [nodes.paragraph("", "", nodes.Text(text), link, nodes.Text("."))]


class Errata(Page):
    """The errors of the sources: printed form refuted, corrected form holding."""

    def run(self) -> list[nodes.Node]:
        own = [row for row in self.rows if row.page == ERRATA]
        lines = []
        for section, group in groupby(own, key=lambda row: row.section):
            by_word = {row.word: row for row in group}
            lines.append(
                [
                    nodes.Text(section),
                    self.verdict_link(by_word["REFUTED"], "refuted"),
                    self.verdict_link(by_word["HOLDS"], "holds"),
                ]
            )
        return [table(["error", "printed form", "corrected form"], lines)]


class ExpectedFailures(Page):
    """Each refuted claim, with the claim beside it that holds."""

    def run(self) -> list[nodes.Node]:
        listing = nodes.definition_list()
        for page, rows in pages_of(self.rows).items():
            items = [self.item(row) for row in rows if row.word == "REFUTED"]
            if items:
                listing += nodes.definition_list_item(
                    "",
                    nodes.term(text=title(page)),
                    nodes.definition(
                        "", nodes.bullet_list("", *items, classes=["claims-failing"])
                    ),
                )
        return [listing]

    def item(self, row: Row) -> nodes.list_item:
        first = nodes.paragraph("", "", self.verdict_link(row, row.claim))
        first += nodes.Text(f": {row.numbers}.")
        second = nodes.paragraph("", f"In “{row.section}”", classes=["where"])
        if row.statement:
            second += [nodes.Text(" ("), self.statement(row), nodes.Text(")")]
        if beside := companion(row, self.rows):
            second += [nodes.Text(". Holds: "), self.verdict_link(beside, beside.claim)]
        second += nodes.Text(".")
        return nodes.list_item("", first, second)


def companion(row: Row, rows: list[Row]) -> Row | None:
    """The claim of the same section that holds and stands nearest, before or after.

    It says what was true until the hypothesis was broken, or what is true instead.
    """
    place = rows.index(row)
    holding = [
        other
        for other in [*reversed(rows[:place]), *rows[place + 1 :]]
        if (other.page, other.section) == (row.page, row.section)
        and other.word == "HOLDS"
    ]
    return holding[0] if holding else None


def pages_of(rows: Iterable[Row]) -> dict[str, list[Row]]:
    return {page: [*group] for page, group in groupby(rows, key=lambda row: row.page)}


def title(page: str) -> str:
    text = (ROOT / page).with_suffix(".md").read_text("utf-8")
    heading = re.search(r"^# (.+)$", text, re.M)
    return heading.group(1) if heading else page


def stem(page: str) -> str:
    """The last part of a page's name, which the address of a filtered view uses."""
    return page.rpartition("/")[2]


def kind(row: Row, kinds: dict[str, str]) -> str:
    """Class of a row: the kind of the statement that the claim belongs to."""
    return f"kind-{kinds[row.statement] if row.statement else NO_STATEMENT}"


def kinds_of(rows: Iterable[Row], kinds: dict[str, str]) -> dict[str, str]:
    """The kinds that occur, most frequent first, those without statement last."""
    counts = Counter(kinds[row.statement] for row in rows if row.statement)
    return {each: each for each, _ in counts.most_common()} | {
        NO_STATEMENT: "no statement"
    }


def filters(pages: dict[str, str], kinds: dict[str, str]) -> str:
    """The form above the table, hidden until scoreboard.mjs runs."""

    def choice(name: str, label: str, all_of: str, options: dict[str, str]) -> str:
        lines = "".join(
            f'<option value="{escape(value)}">{escape(text)}</option>'
            for value, text in {"": all_of, **options}.items()
        )
        return f'<label>{label} <select name="{name}">{lines}</select></label>'

    return (
        '<form class="claim-filters" aria-label="Filter the claims"'
        ' autocomplete="off" hidden>'
        + choice("page", "Page", "all pages", pages)
        + choice("verdict", "Verdict", "all verdicts", WORDS)
        + choice("kind", "Statement", "all kinds", kinds)
        + '<label>Words of the claim <input type="search" name="claim"'
        ' spellcheck="false" /></label>'
        '<p><span role="status" aria-live="polite"></span>'
        ' <button type="button">Show all</button></p></form>'
    )


def load_script(
    app: Any, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Load the script of the scoreboard on its page alone."""
    if page == SCOREBOARD:
        app.add_js_file("scoreboard.mjs", type="module")


def setup(app: Any) -> None:
    app.add_directive("scoreboard", Scoreboard)
    app.add_directive("scoreline", Scoreline)
    app.add_directive("errata", Errata)
    app.add_directive("expected-failures", ExpectedFailures)
    app.connect("html-page-context", load_script)
