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
from tools.finish import with_policy
from tools.launch import BINDER, BRANCH

SUFFIX = ".live.html"
# Tags of cells whose code is not on the page; they run all the same.
HIDDEN = {"remove-cell", "remove-input"}
# Where the servers of mybinder.org are.
BINDER_HOSTS = ("mybinder.org", "*.mybinder.org", "notebooks.gesis.org")
SHOWN = re.compile(r'<div class="cell_input')
POLICY = re.compile(r"\s*<meta http-equiv=\"Content-Security-Policy\"[^>]*>")
OFFERED = "<html data-live"
BUTTON = re.compile(r'<a href="([^"]+)\.live\.html"[^>]*>.*?</a>', re.S)
NOT_LISTED = '<meta name="robots" content="noindex" />'
ARTICLE = '<article class="bd-article">'
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
    """On every page with code, a plain link to its live twin."""
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
    return html if OFFERED in html else html.replace("<html", OFFERED, 1)


def write_live_pages(folder: Path, texts: list[Path], root: Path, name: str | None):
    """The live twins of the pages of a finished site.

    ``name`` is that of the public repository, from which Binder makes a server.
    """
    for text in texts:
        path = (folder / text.relative_to(root)).with_suffix(".html")
        notebook = nbformat.read(text.with_suffix(".ipynb"), 4)
        html = path.read_text("utf-8")
        twin = live_page(html, path.name, notebook, name)
        path.with_name(path.stem + SUFFIX).write_text(twin, "utf-8")
        if name:
            path.write_text(offered(html), "utf-8")


def live_page(
    html: str, name: str, notebook: nbformat.NotebookNode, repository: str | None
) -> str:
    """The live twin of one finished page."""
    cells = hidden_cells(notebook)
    if len(SHOWN.findall(html)) != cells.count(None) or html.count(ARTICLE) != 1:
        raise PipelineError(
            f"{name}: its cells are not those of its notebook; make site"
        )
    data, connect = "", "connect-src 'self'"
    if repository:
        data = f' data-binder="{BINDER}/build/gh/{escape(repository)}/{BRANCH}"'
        hosts = [f"{way}://{host}" for host in BINDER_HOSTS for way in ("https", "wss")]
        connect = " ".join([connect, *hosts])
    text = json.dumps(cells, ensure_ascii=False).replace("</", "<\\/")
    bar = BAR.format(data=data, page=escape(name), cells=text)
    back = BACK.format(page=escape(name))
    html = BUTTON.sub(lambda _: back, POLICY.sub("", html))
    html = html.replace(ARTICLE, f"{ARTICLE}\n{bar}", 1)
    html = html.replace("<title>", "<title>Live code: ", 1)
    root = re.search(r'data-content_root="([^"]*)"', html)
    script = f"{root[1] if root else ''}_static/live.mjs"
    tags = f'{NOT_LISTED}<script type="module" src="{script}"></script>'
    html = html.replace("</head>", f"{tags}\n  </head>", 1)
    return with_policy(html, connect)


def hidden_cells(notebook: nbformat.NotebookNode) -> list[str | None]:
    """The code cells in order: None where the page shows the code, else the code."""
    return [
        cell.source if HIDDEN & set(cell.metadata.get("tags", ())) else None
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]
