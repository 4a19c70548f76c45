"""One style sheet a page instead of a dozen, and scripts after the text.

On a slow line each style sheet and each script in the head costs a round trip before
the first word appears.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from pathlib import Path

LINK = re.compile(r'<link\b[^>]*\brel="stylesheet"[^>]*>\s*')
HREF = re.compile(r'\bhref="([^"?]+)[^"]*"')
IMPORT = re.compile(r'@import\s+(?:url\()?["\']([^"\']+)["\']\)?\s*;')
URL = re.compile(r"url\(([\"']?)(?!data:|#)([^)\"']+)\1\)")
# The icon font of the theme: its rules, and the names of two thousand icons.
ICON_FONT = re.compile(
    r"@font-face\s*\{[^{}]*Font ?Awesome[^{}]*\}|(?:\.fa-[\w-]+,?)+\{--fa:[^{}]*\}",
    re.S,
)
PRELOAD = re.compile(r'<link\b[^>]*\brel="preload"[^>]*as="script"[^>]*>\s*')
HEAD = re.compile(r"(<head>.*?)(</head>.*)</body>", re.S)
CLASSIC = re.compile(
    r"<script(?![^>]*(?:type=|data-cfasync))[^>]*>.*?</script>\s*", re.S
)


def with_one_style_sheet(html: str, page: Path, root: Path) -> str:
    """Replace the style sheets of a page by one file that holds them all."""
    links = LINK.findall(html)
    if not links:
        return html
    sheets = []
    for link in links:
        href = HREF.search(link)
        assert href is not None, link
        sheets.append((page.parent / href.group(1)).resolve())
    text = ICON_FONT.sub("", "\n".join(style_sheet(sheet, root) for sheet in sheets))
    name = f"book-{hashlib.sha256(text.encode()).hexdigest()[:12]}.css"
    target = root / "_static" / name
    if not target.exists():
        target.write_text(text, "utf-8")
    here = posixpath.relpath((root / "_static").as_posix(), page.parent.as_posix())
    one = f'<link rel="stylesheet" href="{here}/{name}" />\n    '
    html = html.replace(links[0], one, 1)
    for link in links[1:]:
        html = html.replace(link, "", 1)
    return html


def style_sheet(path: Path, root: Path) -> str:
    """Text of a style sheet with its imports, its addresses as from ``_static``."""

    def rebased(match: re.Match[str]) -> str:
        target = (path.parent / match.group(2)).resolve().as_posix()
        here = (root / "_static").resolve().as_posix()
        return f'url("{posixpath.relpath(target, here)}")'

    text = path.read_text("utf-8").replace('@charset "UTF-8";', "")
    imports = [style_sheet(path.parent / name, root) for name in IMPORT.findall(text)]
    return "\n".join([*imports, URL.sub(rebased, IMPORT.sub("", text))])


def with_scripts_last(html: str) -> str:
    """Move the scripts of the head behind the text, in their order."""
    html = PRELOAD.sub("", html)
    found = HEAD.search(html)
    if found is None:
        return html
    head, rest = found.groups()
    scripts = "".join(CLASSIC.findall(head))
    page = f"{CLASSIC.sub('', head)}{rest}{scripts}</body>"
    return html[: found.start()] + page + html[found.end() :]
