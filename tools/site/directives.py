"""Common ground of the directives of the book: files they read, links, tables.

Everything they show is read from files that a run wrote: executed notebooks and the
JSON of ``make notebooks``, ``make reseed``, ``make mutants``, ``make ways`` and
``make bench``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective

from tools.command import ROOT
from tools.site.incremental import READS_VERDICTS
from tools.verdicts import Row


class Page(SphinxDirective):
    """A directive that reads records and leads to other places."""

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
        """Make a node that Sphinx resolves to a link; it keeps an explicit ``text``."""
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
