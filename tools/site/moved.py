"""Pages that have another address since: the old one leads to the new one.

The place on the page is kept where scripts run, as in #thm-shaped-attention.
"""

from __future__ import annotations

import posixpath
from html import escape
from pathlib import Path

from tools.command import PipelineError
from tools.site.finish import set_policy
from tools.site.live_page import SUFFIX
from tools.site.markup import one, parsed

# The order of the first two chapters was another one in the first edition.
MOVED = {
    f"chapters/{old}{kind}": f"chapters/{new}{kind}"
    for old, new in (
        ("1-proportional-limits", "2-proportional-limits"),
        ("2-softmax-expansion", "1-softmax-expansion"),
    )
    for kind in (".html", SUFFIX)
}
GO = "location.replace(document.links[0].href + location.search + location.hash);"


def write_moved(folder: Path, moved: dict[str, str] = MOVED) -> None:
    """Write a page at each old address; PipelineError where the new one is missing."""
    for old, new in moved.items():
        if not (folder / new).is_file():
            raise PipelineError(f"{old} leads to {new}, which the site does not have")
        head = (folder / new).read_text("utf-8").partition("</head>")[0]
        title = one(parsed(head), new, "a title", "title")
        there = posixpath.relpath(new, posixpath.dirname(old))
        (folder / old).write_text(page(there, title.get_text(), old), "utf-8")


def page(there: str, title: str, name: str) -> str:
    tree = parsed(
        f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="robots" content="noindex">
<title>{escape(title)}</title><link rel="canonical" href="{escape(there)}">
<noscript><meta http-equiv="refresh" content="0; url={escape(there)}"></noscript></head>
<body><p>This page has moved: <a href="{escape(there)}">{escape(title)}</a></p>
<script>{GO}</script></body></html>
"""
    )
    set_policy(tree, name)
    return str(tree)
