"""Directives of the reference pages, and the links between statements and verdicts.

Everything shown is read from files that a run wrote: executed notebooks and the JSON
of ``make notebooks``, ``make reseed`` and ``make bench``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective

from benchmarks._timing import duration
from benchmarks.harness import error_text
from tools.command import ROOT
from tools.incremental import READS_VERDICTS
from tools.notebooks import FACTS
from tools.reseed import RESULTS as RESEED
from tools.verdicts import Row, collect, used_in

BENCHMARKS = "benchmarks/results.json"
ERRATA = "chapters/reference/errata"


class Page(SphinxDirective):
    """What the directives share: links, tables, and the files they read."""

    @property
    def rows(self) -> list[Row]:
        rows: list[Row] = self.env.limit_rows
        self.env.metadata[self.env.docname][READS_VERDICTS] = ""
        return rows

    def read(self, path: Any) -> Any:
        """Content of a JSON file of the project; a change of it rebuilds the page."""
        self.env.note_dependency(str(ROOT / path))
        return json.loads((ROOT / path).read_text("utf-8"))

    def verdict_link(self, row: Row, text: str) -> nodes.reference:
        return reference(self.env.app, self.env.docname, text, row.page, row.id)

    def statement(self, row: Row) -> nodes.Node:
        """The statement of a verdict, by its number."""
        if row.statement is None:
            return nodes.Text("—")
        return self.cross_reference(row.statement, "prf", "ref", row.statement, False)

    def cross_reference(
        self, text: str, domain: str, role: str, target: str, explicit: bool = True
    ) -> nodes.Node:
        """What Sphinx resolves to a link; it keeps ``text`` if that is explicit."""
        return addnodes.pending_xref(
            "",
            nodes.inline(text=text),
            refdomain=domain,
            reftype=role,
            reftarget=target,
            refdoc=self.env.docname,
            refexplicit=explicit,
            refwarn=True,
        )


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


class Reseed(Page):
    """What ``make reseed`` found, in one sentence and a list of failures."""

    def run(self) -> list[nodes.Node]:
        result = self.read(RESEED)
        first, last = result["offsets"]
        failing = [each for each in result["claims"] if each["passed"] < each["runs"]]
        text = (
            f"On {result['date']} the {len(result['claims'])} claims were run under"
            f" the seed offsets {first} to {last}:"
            + (f" {len(failing)} of them failed." if failing else " none failed.")
        )
        sentences = [f"{each['claim']}: {times(each['words'])}" for each in failing]
        items = [nodes.list_item("", nodes.paragraph(text=s)) for s in sentences]
        listing = [nodes.bullet_list("", *items)] if items else []
        return [nodes.paragraph(text=text), *listing]


class Benchmarks(Page):
    """What ``make bench`` measured: machine, ratios, growth, first paint."""

    def run(self) -> list[nodes.Node]:
        found = self.read(BENCHMARKS)
        unit, machine = found["unit_seconds"], found["machine"]
        versions = ", ".join(f"{k} {v}" for k, v in found["versions"].items())
        text = (
            f"Measured on {found['date']} on one thread of {machine['processor']}"
            f" ({machine['system']}), with {versions}. The limits of the machine on"
            f" that day: {1e-9 / unit['bytes']:.1f} GB/s of memory,"
            f" {1e9 * unit['exp']:.2f} ns an exponential,"
            f" {1e9 * unit['normals']:.1f} ns a normal deviate,"
            f" {1e-9 / unit['flop']:.0f} Gflop/s in a matrix product."
        )
        growths = [
            [
                nodes.Text(each["name"]),
                nodes.Text(f"{each['exponent']:.2f} ± {each['stderr']:.2f}"),
                nodes.Text(f"{each['expected']:g}"),
            ]
            for each in found["growths"]
        ]
        paints = [
            [
                nodes.Text(each["page"]),
                nodes.Text(f"{each['seconds']:.2f} s" if "seconds" in each else "—"),
                nodes.Text(each.get("note") or f"{each['bytes'] / 1000:.0f} kB"),
            ]
            for each in found["paint"]
        ]
        return [
            nodes.paragraph(text=text),
            table(
                ["what", "peer", "ours", "ratio", "errors: ours, peer", "limit"],
                map(self.line, found["rows"]),
            ),
            nodes.paragraph(text="How costs grow:"),
            table(["what", "exponent (s.e.)", "expected"], growths),
            nodes.paragraph(text="First sight of a page:"),
            table(["page", "first contentful paint", "on the wire"], paints),
        ]

    def line(self, row: dict[str, Any]) -> list[nodes.Node]:
        ratio, errors = row.get("note", "—"), error_text(row, "ours")
        if "ratio" in row:
            found = row["ratio"]
            middle, low, high = (
                f"{found[key]:,.0f}" if found[key] >= 100 else f"{found[key]:.2g}"
                for key in ("median", "low", "high")
            )
            ratio = f"{middle} ({low}–{high})"
            errors += f", {error_text(row, 'peer')}"
        limit = row.get("limit")
        cells = (
            row["name"],
            row["peer_name"],
            duration(row["ours"]["seconds"]),
            ratio,
            errors,
            f"{limit['ours_over_limit']:.1f} × {limit['by']}" if limit else "—",
        )
        return [nodes.Text(cell) for cell in cells]


class ExecutionFacts(Page):
    """Table of what ``make notebooks`` recorded: time, date, versions, machine."""

    def run(self) -> list[nodes.Node]:
        facts = self.read(FACTS)
        heads = ["notebook", *next(iter(facts.values()))]
        lines = [
            [nodes.Text(str(value)) for value in (name, *fact.values())]
            for name, fact in facts.items()
        ]
        return [table([head.replace("_", " ") for head in heads], lines)]


def times(words: dict[str, int]) -> str:
    """How often each verdict came out: ``HOLDS 19 times, FAILS once``."""
    return ", ".join(
        f"{word} {'once' if count == 1 else f'{count} times'}"
        for word, count in words.items()
    )


def table(heads: Sequence[str], lines: Iterable[Sequence[nodes.Node]]) -> nodes.table:
    """A docutils table of one node a cell."""

    def line(cells: Iterable[nodes.Node]) -> nodes.row:
        return nodes.row(
            "", *(nodes.entry("", nodes.paragraph("", "", cell)) for cell in cells)
        )

    group = nodes.tgroup(cols=len(heads))
    group += [nodes.colspec(colwidth=1) for _ in heads]
    group += nodes.thead("", line(map(nodes.Text, heads)))
    group += nodes.tbody("", *map(line, lines))
    return nodes.table("", group)


def reference(
    app: Any, here: str, text: str, page: str, anchor: str
) -> nodes.reference:
    return nodes.reference(
        "", text, internal=True, refuri=address(app, here, page, anchor)
    )


def address(app: Any, here: str, page: str, anchor: str) -> str:
    """Address of a place in the book, as from the page ``here``."""
    uri = app.builder.get_relative_uri(here, page) if page != here else ""
    return f"{uri}#{anchor}"


def read_notebooks(app: Any) -> None:
    app.env.limit_rows = collect()
    app.env.limit_used_in = used_in()


def link_both_ways(app: Any, doctree: nodes.document, here: str) -> None:
    """From each statement to its verdicts, and from a verdict to another page."""
    places = {
        label: entry["docname"]
        for label, entry in getattr(app.env, "proof_list", {}).items()
    }

    def href(match: re.Match[str]) -> str:
        label = match.group(1)
        return f'<a href="{address(app, here, places.get(label, here), label)}">'

    for raw in doctree.findall(nodes.raw):
        if 'class="verdict' in raw.astext():
            text = re.sub(r'<a href="#([^"]+)">', href, raw.astext())
            raw.children = [nodes.Text(text)]
            raw.rawsource = text
    for node in list(doctree.findall(nodes.Element)):
        if (label := node.get("label")) not in places:
            continue
        if checks := [row for row in app.env.limit_rows if row.statement == label]:
            node += checked_by(app, here, checks)


def checked_by(app: Any, here: str, checks: list[Row]) -> nodes.paragraph:
    """The line under a statement that leads to its verdicts."""
    line = nodes.paragraph(classes=["statement-checks"])
    line += nodes.Text("Checked: ")
    for number, row in enumerate(checks):
        line += nodes.Text(" · " if number else "")
        link = reference(app, here, row.word.lower(), row.page, row.id)
        link["reftitle"] = row.claim
        line += link
    return line


def say_where_used(
    app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Under the documentation of a function, the chapters that call it."""
    if pages := app.env.limit_used_in.get(name):
        links = ", ".join(f":doc:`/{page}`" for page in pages)
        lines += ["", f"**Used in:** {links}.", ""]


def setup(app: Any) -> None:
    app.connect("builder-inited", read_notebooks)
    app.connect("doctree-resolved", link_both_ways)
    app.connect("autodoc-process-docstring", say_where_used)
    app.add_directive("errata", Errata)
    app.add_directive("reseed", Reseed)
    app.add_directive("benchmarks", Benchmarks)
    app.add_directive("execution-facts", ExecutionFacts)
