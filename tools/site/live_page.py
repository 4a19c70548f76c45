"""The live twin of each page with code: the same text, whose cells can be run.

A reading page loads nothing for it. Its button leads to the twin, a file beside it with
a script and a policy of its own. The style sheet shows the button only where a cell can
be run: where the page comes from ``make live``, where Binder makes servers for this
book, or where Python in the browser stands beside the site.
"""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import Any

import nbformat

from tools.command import PipelineError
from tools.launch import BINDER, BRANCH
from tools.site.finish import with_policy
from tools.site.markup import Element, Markup

SUFFIX = ".live.html"
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
    start, head, rest = html.partition("<head>")
    page = Markup(start)
    root = page.one("one html element before its head", "html")
    if "data-live" not in root.attrs:
        page.set(root, **{"data-live": ""})
    return f"{page.text()}{head}{rest}"


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
    page, cells = Markup(html, name), hidden_cells(notebook)
    shown = page.all("div", where=lambda e: e.has_class("cell_input"))
    if len(shown) != cells.count(None):
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
    article = page.one(
        "one article", "article", where=lambda e: e.has_class("bd-article")
    )
    page.first_in(article, f"\n{bar}")
    button = page.one(
        "one button that leads to its live twin",
        "a",
        where=lambda e: e.attrs.get("href") == live_name(name),
    )
    page.replace(button, BACK.format(page=escape(name)))
    page.remove(page.one("one policy", "meta", where=is_policy))
    title = page.one("one title in its head", "title", where=lambda e: e.within("head"))
    page.first_in(title, "Live code: ")
    top = page.one("one html element", "html").attrs["data-content_root"]
    script = f'<script type="module" src="{top}_static/live.mjs"></script>'
    head = page.one("one head", "head")
    page.last_in(head, f"{NOT_LISTED}{script}\n  ")
    return with_policy(page.text(), name, connect)


def live_name(name: str) -> str:
    """The file of the live twin of a page."""
    return name.removesuffix(".html") + SUFFIX


def is_policy(meta: Element) -> bool:
    return meta.attrs.get("http-equiv") == "Content-Security-Policy"


def hidden_cells(notebook: nbformat.NotebookNode) -> list[str | None]:
    """The code cells in order: None where the page shows the code, else the code."""
    return [
        cell.source if HIDDEN & set(cell.metadata.get("tags", ())) else None
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]
