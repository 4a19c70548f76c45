"""Verdicts, links and figures of a page, put right before Sphinx writes it.

The verdicts are data in the notebooks. A page shows each of them where its output is,
with a link to its statement, and under each statement stand its verdicts.
"""

from __future__ import annotations

import json
from typing import Any

from docutils import nodes

from lib.claims import MIME_TYPE
from tools.command import PipelineError
from tools.site import checks
from tools.site.directives import address
from tools.verdicts import Row, collect, used_in

# Names that sphinx-proof gives to all proofs, and to the bodies of all statements.
SHARED = {"proof", "proof-content"}


class Output(nodes.General, nodes.Element):  # type: ignore[misc]
    """The box around an output, as myst-nb makes it of HTML."""


def visit_output(self: Any, node: Output) -> None:
    self.body.append(self.starttag(node, "div", CLASS="output text_html"))


def depart_output(self: Any, node: Output) -> None:
    self.body.append("</div>\n")


def read_notebooks(app: Any) -> None:
    app.env.limit_rows = collect()
    app.env.limit_used_in = used_in()


def leave_data_out(app: Any, here: str, source: list[str]) -> None:
    """The data of verdicts, which ``collect`` has read, are no form that myst-nb shows.

    Any other form that it does not know is a warning, and so an error.
    """
    if MIME_TYPE not in source[0]:
        return
    notebook = json.loads(source[0])
    for cell in notebook["cells"]:
        for output in cell.get("outputs", ()):
            output.get("data", {}).pop(MIME_TYPE, None)
    source[0] = json.dumps(notebook, ensure_ascii=False)


def resolve(app: Any, doctree: nodes.document, here: str) -> None:
    show_verdicts(app, doctree, here)
    drop_shared_names(doctree)
    link_statements(app, doctree, here)


def show_verdicts(app: Any, doctree: nodes.document, here: str) -> None:
    """Each stored verdict as nodes, in the place of its stored HTML."""
    rows = {row.html: row for row in app.env.limit_rows if row.page == here}
    for raw in list(doctree.findall(nodes.raw)):
        if row := rows.pop(raw.astext(), None):
            raw.replace_self(shown(app, here, row))
    if rows:
        row = next(iter(rows.values()))
        raise PipelineError(
            f"{here}: the output of this verdict is not on the page: {row.claim}"
        )


def shown(app: Any, here: str, row: Row) -> Output:
    """A verdict on a page, as ``checks`` writes it, with a link to its statement."""
    statement = None
    if row.statement:
        page = places(app).get(row.statement, here)
        statement = address(app, here, page, row.statement)
    return Output("", nodes.raw("", checks.item(row, statement), format="html"))


def places(app: Any) -> dict[str, str]:
    """The pages of the statements, by their labels."""
    listed: dict[str, dict[str, Any]] = getattr(app.env, "proof_list", {})
    return {label: entry["docname"] for label, entry in listed.items()}


def drop_shared_names(doctree: nodes.document) -> None:
    """A name is that of one place; those that many places have lead nowhere."""
    for node in doctree.findall(nodes.Element):
        node["ids"] = [name for name in node["ids"] if name not in SHARED]


def link_statements(app: Any, doctree: nodes.document, here: str) -> None:
    """Under each statement the verdicts that check it."""
    known = places(app)
    for node in list(doctree.findall(nodes.Element)):
        if (label := node.get("label")) not in known:
            continue
        if rows := [row for row in app.env.limit_rows if row.statement == label]:
            links = [address(app, here, row.page, row.id) for row in rows]
            node += nodes.raw("", checks.statement_line(rows, links), format="html")


def say_where_used(
    app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Under the documentation of a function, the chapters that call it."""
    if pages := app.env.limit_used_in.get(name):
        links = ", ".join(f":doc:`/{page}`" for page in pages)
        lines += ["", f"**Used in:** {links}.", ""]


def setup(app: Any) -> None:
    app.add_node(Output, html=(visit_output, depart_output))
    app.connect("builder-inited", read_notebooks)
    app.connect("source-read", leave_data_out)
    app.connect("doctree-resolved", resolve)
    app.connect("autodoc-process-docstring", say_where_used)
