"""The live twin of each page with code: the same text, whose cells can be run.

A reading page loads nothing for it. Its button leads to the twin, a file beside it with
a script and a policy of its own. The style sheet shows the button only where a cell can
be run: where the page comes from ``make live``, where Binder makes servers for this
book, or where Python in the browser stands beside the site.
"""

from __future__ import annotations

import json
import re
from html import escape
from pathlib import Path
from typing import Any

import nbformat

from tools.command import PipelineError
from tools.launch import BINDER, BRANCH
from tools.site.cells import as_cells
from tools.site.finish import set_policy
from tools.site.first_rules import take_first_rules
from tools.site.markup import one, parsed, with_drawings, without_drawings

SUFFIX = ".live.html"
# Its one tag is edited as text: a server does it for each page that is asked for.
HEAD, OFFERED = re.compile(r"<html\b[^>]*>"), ' data-live=""'
# Tags of cells whose code is not on the page; they run all the same.
HIDDEN = {"remove-cell", "remove-input"}
# Where the servers of mybinder.org are.
BINDER_HOSTS = ("mybinder.org", "*.mybinder.org", "notebooks.gesis.org")
NOT_LISTED = '<meta name="robots" content="noindex" />'
BACK = (
    '<a href="{page}" class="btn btn-sm btn-reading-button"'
    ' title="Back to the stored results">'
    '<span class="btn__text-container">Reading page</span></a>'
)
BAR = """<section class="live" aria-label="Live code"{data}>
<p class="live-says" role="status">The cells of this page run in a browser of these years with JavaScript switched on; here it is off, or the browser is too old. The text and the stored results are those of <a href="{page}">the page itself</a>.</p>
<div class="live-buttons" hidden="hidden"></div>
<script type="application/json">{cells}</script>
</section>
"""  # noqa: E501


def add_button(
    app: Any, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Put a plain link to its live twin on every page with code."""
    if "kernelspec" not in app.env.metadata.get(page, {}):
        return
    button = {
        "type": "link",
        "url": f"{page.rpartition('/')[2]}{SUFFIX}",
        "text": "Live code",
        "tooltip": "Edit and run the code of this page",
        "icon": "fas fa-play",
        "label": "live-button",
    }
    context["header_buttons"].insert(0, button)


def offered(html: str) -> str:
    """A page on which the button that leads to its live twin is in sight."""
    heads = HEAD.findall(html)
    if len(heads) != 1:
        raise PipelineError(f"a page should have one html element, not {len(heads)}")
    (head,) = heads
    return html if OFFERED in head else html.replace(head, f"{head[:-1]}{OFFERED}>", 1)


def write_live_pages(folder: Path, texts: list[Path], root: Path, name: str | None):
    """The live twins of the pages of a finished site.

    ``name`` is that of the public repository, from which Binder makes a server.
    """
    for text in texts:
        path = (folder / text.relative_to(root)).with_suffix(".html")
        notebook = nbformat.read(text.with_suffix(".ipynb"), 4)
        html = path.read_text("utf-8")
        twin = live_page(html, path.name, notebook, name)
        path.with_name(live_name(path.name)).write_text(twin, "utf-8")
        if name:
            path.write_text(offered(html), "utf-8")


def live_page(
    html: str, name: str, notebook: nbformat.NotebookNode, repository: str | None
) -> str:
    """The live twin of one finished page."""
    (text, drawings), cells = without_drawings(html), hidden_cells(notebook)
    tree = parsed(text)
    as_cells(tree)
    take_first_rules(tree, name)
    if len(tree.select("div.cell_input")) != cells.count(None):
        raise PipelineError(
            f"{name}: its cells are not those of its notebook; make site"
        )
    data, connect = "", "connect-src 'self'"
    if repository:
        data = f' data-binder="{BINDER}/build/gh/{escape(repository)}/{BRANCH}"'
        hosts = [f"{way}://{host}" for host in BINDER_HOSTS for way in ("https", "wss")]
        connect = " ".join([connect, *hosts])
    codes = json.dumps(cells, ensure_ascii=False).replace("</", "<\\/")
    bar = BAR.format(data=data, page=escape(name), cells=codes)
    one(tree, name, "an article", "article.bd-article").insert(0, parsed(bar))
    button = f'a[href="{live_name(name)}"]'
    back = BACK.format(page=escape(name))
    one(tree, name, "a button to its live twin", button).replace_with(parsed(back))
    policy = 'meta[http-equiv="Content-Security-Policy"]'
    one(tree, name, "a policy", policy).decompose()
    one(tree, name, "a title", "head > title").insert(0, "Live code: ")
    top = one(tree, name, "an html element", "html")["data-content_root"]
    script = f'<script type="module" src="{top}_static/live.mjs"></script>'
    one(tree, name, "a head", "head").append(parsed(NOT_LISTED + script))
    set_policy(tree, name, connect)
    return with_drawings(str(tree), drawings)


def live_name(name: str) -> str:
    """The file of the live twin of a page."""
    return name.removesuffix(".html") + SUFFIX


def hidden_cells(notebook: nbformat.NotebookNode) -> list[str | None]:
    """The code cells in order: None where the page shows the code, else the code."""
    return [
        cell.source if HIDDEN & set(cell.metadata.get("tags", ())) else None
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]
