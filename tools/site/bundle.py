"""One style sheet a page instead of a dozen.

On a slow line each style sheet costs a round trip before the first word appears.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from pathlib import Path

from bs4 import BeautifulSoup

from tools.site.markup import some

IMPORT = re.compile(r'@import\s+(?:url\()?["\']([^"\']+)["\']\)?\s*;')
URL = re.compile(r"url\(([\"']?)(?!data:|#)([^)\"']+)\1\)")
# The icon font of the theme: its rules, and the names of two thousand icons.
ICON_FONT = re.compile(
    r"@font-face\s*\{[^{}]*Font ?Awesome[^{}]*\}|(?:\.fa-[\w-]+,?)+\{--fa:[^{}]*\}",
    re.S,
)


def one_style_sheet(tree: BeautifulSoup, path: Path, root: Path) -> None:
    """Replace the style sheets of a page by one file that holds them all."""
    links = some(tree, path.name, "style sheets", "link[rel=stylesheet]")
    names = [str(link["href"]).partition("?")[0] for link in links]
    sheets = [style_sheet((path.parent / name).resolve(), root) for name in names]
    text = ICON_FONT.sub("", "\n".join(sheets))
    name = f"book-{hashlib.sha256(text.encode()).hexdigest()[:12]}.css"
    target = root / "_static" / name
    if not target.exists():
        target.write_text(text, "utf-8")
    here = posixpath.relpath((root / "_static").as_posix(), path.parent.as_posix())
    links[0]["href"] = f"{here}/{name}"
    for link in links[1:]:
        link.decompose()


def style_sheet(path: Path, root: Path) -> str:
    """Text of a style sheet with its imports, its addresses as from ``_static``."""

    def rebased(match: re.Match[str]) -> str:
        target = (path.parent / match.group(2)).resolve().as_posix()
        here = (root / "_static").resolve().as_posix()
        return f'url("{posixpath.relpath(target, here)}")'

    text = path.read_text("utf-8").replace('@charset "UTF-8";', "")
    imports = [style_sheet(path.parent / name, root) for name in IMPORT.findall(text)]
    return "\n".join([*imports, URL.sub(rebased, IMPORT.sub("", text))])
