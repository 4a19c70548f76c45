"""The notebooks that people download, in Markdown that every notebook program shows.

The chapters are written in MyST, which VS Code, Colab, GitHub and a JupyterLab without
its extension show as source. While Sphinx builds the site it has read each page, with
its numbers, citations and links resolved. From that the cells of text are written anew
as plain Markdown; code, outputs and the ids of the cells are those that were stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from docutils import nodes

from tools.command import PipelineError
from tools.digests import KEY
from tools.site.plain.blocks import blocks
from tools.site.plain.page import LINES, KeepCitations, Page, anchor, first_line

# Where the theme's download button leads.
FOLDER = "_sources"


def plain_notebook(page: Page) -> nbformat.NotebookNode:
    """The notebook of a page with its text in plain Markdown."""
    notebook = nbformat.from_dict(page.notebook)
    notebook.metadata.pop(KEY, None)
    texts = texts_of(page)
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type == "markdown":
            if cell.source.strip() and not texts.get(number):
                raise PipelineError(
                    f"{page.here}.md: a cell of text is not on the page, so that its"
                    f" plain notebook would lose it: {cell.source[:60]!r}"
                )
            cell.source = texts.get(number, "")
    written = "\n".join(texts.values()) + outputs(notebook)
    for name in sorted(page.targets):
        if f'id="{name}"' not in written:
            raise PipelineError(
                f"{page.here}.md: a link leads to {name!r}, which is no place of its"
                " plain notebook"
            )
    nbformat.validate(notebook)
    return notebook


def outputs(notebook: nbformat.NotebookNode) -> str:
    """The stored HTML of a notebook, where links to verdicts lead."""
    data = (o.get("data", {}) for c in notebook.cells for o in c.get("outputs", ()))
    return "\n".join(each.get("text/html", "") for each in data)


def texts_of(page: Page) -> dict[int, str]:
    """Plain Markdown of the cells of text, by their numbers in the notebook."""
    cells: dict[int, list[nodes.Node]] = {}
    for cell, node in by_cell(page):
        cells.setdefault(cell, []).append(node)
    return {cell: text(children, page) for cell, children in cells.items()}


def text(children: list[nodes.Node], page: Page) -> str:
    """One cell: its blocks, and the footnotes that it mentions."""
    return "\n\n".join([blocks(children, page), *footnotes(children, page)]).strip()


def footnotes(children: list[nodes.Node], page: Page) -> Iterator[str]:
    """The notes that a cell is the first to mention."""
    here = [
        note for child in children for note in child.findall(nodes.footnote_reference)
    ]
    if not here:
        return
    notes = {name: x for x in page.doctree.findall(nodes.footnote) for name in x["ids"]}
    for mention in here:
        note = notes[mention["refid"]]
        if note["backrefs"][0] in mention["ids"]:
            label, *body = note.children
            number = f"{anchor(note['ids'][0])}<sup>{label.astext()}</sup>"
            yield f"{number} {blocks(body, page)}"


def by_cell(page: Page) -> Iterator[tuple[int, nodes.Node]]:
    """The titles and blocks of a page, each with the number of its cell.

    myst-nb numbers the lines of a cell from a multiple of 10,000. What has no line
    (some directives make such nodes) belongs to the cell of what stands before it, or
    to the next one where that is code.
    """
    cell = following(page, -1)
    for node in top_level(page.doctree):
        if isinstance(node, nodes.container) and "cell_index" in node:
            cell = following(page, node["cell_index"])
            continue
        if (line := first_line(node)) is not None:
            cell = line // LINES - 1
        elif cell is None or following(page, cell) is not None:
            raise page.error(node, "text of which it is not known to which cell it is")
        assert cell is not None
        yield cell, node


def following(page: Page, number: int) -> int | None:
    """The next cell with text, which is that of any text behind a cell of code."""
    for later, cell in enumerate(page.notebook.cells):
        if later > number and cell.source.strip():
            return later if cell.cell_type == "markdown" else None
    return None


def top_level(node: nodes.Element) -> Iterator[nodes.Node]:
    """The blocks of a page in order, out of their sections."""
    for child in node.children:
        if isinstance(child, nodes.section):
            yield from top_level(child)
        elif isinstance(child, nodes.footnote) or "footnotes" in child["classes"]:
            continue  # written below the cell that mentions them
        else:
            yield child


# In the build of the site.


def convert(app: Any, doctree: nodes.document, here: str) -> None:
    """Keep the plain notebook of a page while the page is resolved."""
    source = Path(app.env.doc2path(here))
    if app.builder.format != "html" or source.suffix != ".ipynb":
        return
    if app.config.mathjax3_config.get("tex", {}).get("macros"):
        raise PipelineError(
            "_config.yml gives MathJax macros, which the plain notebooks do not have"
        )
    notebook = nbformat.read(source, 4)
    page = Page(app.builder, here, doctree, notebook, app.env.limit_address)
    app.env.limit_plain[here] = nbformat.writes(plain_notebook(page)) + "\n"


def write(app: Any, error: Exception | None) -> None:
    """Put the plain notebooks where the download buttons lead."""
    if error is None:
        for here, content in app.env.limit_plain.items():
            path = Path(app.outdir) / FOLDER / f"{here}.ipynb"
            path.write_text(content, "utf-8")


def prepare(app: Any) -> None:
    app.env.limit_plain = {}


def setup(app: Any) -> None:
    app.connect("builder-inited", prepare)
    app.add_post_transform(KeepCitations)
    # Before the lines that lead from statements to verdicts are added.
    app.connect("doctree-resolved", convert, priority=400)
    app.connect("build-finished", write)
