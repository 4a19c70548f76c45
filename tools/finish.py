"""What every built page still needs, as functions from HTML text to HTML text."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

from tools.bundle import with_one_style_sheet, with_scripts_last
from tools.head import NOT_FOUND

SCRIPT = re.compile(r"<script\b([^>]*)>(.*?)</script>\s*", re.S)
# What lib.figures stores in place of a drawing, for notebooks that are not trusted.
STILL = re.compile(r'<template><img [^>]*src="data:image/png;[^>]*></template>')
POLICY = 'http-equiv="Content-Security-Policy"'  # every finished page has one
# An address within the site, as from its root.
WITHIN = re.compile(
    r'\b(href|src|action|data-content_root)="(?!#|/|[a-z][a-z+.-]*:)([^"]*)"'
)


def finish(folder: Path, base: str = "/") -> set[Path]:
    """Finish the new pages of a built site, and drop the assets none of them needs.

    ``base`` is the path under which the site will be served. The pages of an earlier
    build have a policy already; those that had none are returned.
    """
    every = [p for p in sorted(folder.rglob("*.html")) if "_static" not in p.parts]
    pages = {p for p in every if POLICY not in p.read_text("utf-8")}
    for path in pages:
        html = with_one_style_sheet(path.read_text("utf-8"), path, folder)
        path.write_text(finished(html), "utf-8")
    not_found = folder / f"{NOT_FOUND}.html"
    if not_found in pages:
        html = with_absolute_paths(not_found.read_text("utf-8"), base)
        not_found.write_text(html, "utf-8")
    static = folder / "_static"
    for pattern in ("**/fontawesome*", "**/fa-*", "**/*.map"):
        for path in static.glob(pattern):
            if path.is_file():
                path.unlink()
    return pages


def finished(html: str) -> str:
    """One page: fewer scripts, right roles and ids, and a policy for the rest."""
    # The icons in use are drawn by icons.css; the theme's script has two thousand.
    html = with_scripts_last(without_scripts(html, "fontawesome.js"))
    if 'class="math' not in html:
        html = without_scripts(html, "mathjax/", "window.MathJax")
    for mend in (
        without_handlers,
        without_fold_labels,
        without_stills,
        with_theme_at_once,
        with_list_roles,
        with_unique_ids,
    ):
        html = mend(html)
    return with_policy(html)


def with_absolute_paths(html: str, base: str) -> str:
    """Addresses that lead to the same places from any depth.

    The page of unknown addresses is served in their place, wherever they are.
    """

    return WITHIN.sub(
        lambda found: f'{found[1]}="{base}{found[2].removeprefix("./")}"', html
    )


def without_scripts(html: str, *marks: str) -> str:
    """Leave out the scripts whose address or text has one of the marks."""

    def kept(tag: re.Match[str]) -> str:
        return "" if any(mark in tag.group() for mark in marks) else tag.group()

    return SCRIPT.sub(kept, html)


def without_handlers(html: str) -> str:
    """The print button is served by book.mjs; a strict policy refuses handlers."""
    return html.replace(' onclick="window.print()"', "")


def without_fold_labels(html: str) -> str:
    """A folded cell says what it is; the theme's label would hide that from readers."""
    return html.replace(' aria-label="Toggle hidden content"', "")


def without_stills(html: str) -> str:
    """The PNG that a notebook has in a figure is for those who are shown no SVG."""
    return STILL.sub("", html)


def with_theme_at_once(html: str) -> str:
    """The theme of the system before the first paint, and a light one without scripts.

    The theme's own script decides only when the page is there.
    """
    html = html.replace('data-theme="auto"', 'data-theme="light"', 1)
    system = '(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")'
    stored = 'localStorage.getItem("theme")'
    return html.replace(f'{stored} || "auto"', f"{stored} || {system}")


def with_list_roles(html: str) -> str:
    """Give the bibliography roles that its elements can have.

    docutils writes ``role="list"`` around entries that are no list items.
    """
    html = re.sub(r' role="doc-biblioentry"', ' role="listitem"', html)
    return re.sub(r' role="doc-backlink"', "", html)


def with_unique_ids(html: str) -> str:
    """sphinx-proof gives all proofs, and all bodies, one and the same id."""
    return re.sub(r' id="proof(-content)?"', "", html)


def with_policy(html: str, *more: str) -> str:
    """Allow this page its own files and its own inline scripts, and nothing else.

    ``more`` are further directives, for a page that needs them.
    """
    scripts = [
        body
        for attributes, body in SCRIPT.findall(html)
        if " src=" not in attributes and "json" not in attributes
    ]
    hashes = sorted({_source(script) for script in scripts})
    policy = (
        "default-src 'self'; base-uri 'self'; object-src 'none'; form-action 'self';"
        " img-src 'self' data:; style-src 'self' 'unsafe-inline';"
        f" script-src 'self' {' '.join(hashes)}" + "".join(f"; {each}" for each in more)
    )
    meta = f'<meta {POLICY} content="{policy}" />'
    return re.sub(r"<head>", f"<head>\n    {meta}", html, count=1)


def _source(text: str) -> str:
    """The policy's name for an inline script."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
