"""Last edits of every page of a built site, once its style sheets are written.

The theme writes into its pages what only the finished text can be mended of: a dozen
style sheets, scripts before the words, a handler that a strict policy refuses. What
Sphinx knows of a page is mended before it is written, in ``statements``.
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

from tools.site.bundle import one_style_sheet
from tools.site.head import NOT_FOUND, ROOT_PAGE
from tools.site.markup import Element, Markup

# Attributes with the address of another file, and that of the root of the site.
ADDRESSES = ("href", "src", "action", "data-content_root")
HANDLER = "window.print()"
FOLD_LABEL = "Toggle hidden content"
AUTO = 'localStorage.getItem("theme") || "auto"'
# The theme of the system before the first paint; the theme's own script decides only
# when the page is there.
SYSTEM = (
    'localStorage.getItem("theme") ||'
    ' (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")'
)


def finish(folder: Path, base: str = "/") -> None:
    """Finish every page of a built site, and drop the assets none of them needs.

    ``base`` is the path under which the site will be served.
    """
    for path in sorted(folder.rglob("*.html")):
        name = path.relative_to(folder).as_posix()
        if "_static" in path.parts:
            continue
        html = path.read_text("utf-8")
        if name != f"{ROOT_PAGE}.html":  # which has no theme
            html = finished(html, path, folder)
        if name == f"{NOT_FOUND}.html":
            html = with_absolute_paths(html, base)
        path.write_text(with_policy(html, name), "utf-8")
    static = folder / "_static"
    for pattern in ("**/fontawesome*", "**/fa-*", "**/*.map"):
        for path in static.glob(pattern):
            if path.is_file():
                path.unlink()


def finished(html: str, path: Path, folder: Path) -> str:
    """One page of the theme with one style sheet, fewer scripts and right roles."""
    page = Markup(html, path.relative_to(folder).as_posix())
    one_style_sheet(page, path, folder)
    put_scripts_last(page)
    drop_handler(page)
    drop_fold_labels(page)
    set_theme_at_once(page)
    set_list_roles(page)
    return page.text()


def put_scripts_last(page: Markup) -> None:
    """Scripts of the head behind the text: before it, each costs a round trip.

    Modules wait for the text by themselves, and the script that sets the theme must
    not. The icons in use are drawn by icons.css; the theme's script has two thousand.
    """
    for link in page.some(
        "links that load scripts ahead", "link", where=lambda e: loads_ahead(e)
    ):
        page.remove(link)
    icons = page.one(
        "the script of the icons",
        "script",
        where=lambda e: "fontawesome.js" in (e.attrs.get("src") or ""),
    )
    page.remove(icons)
    own = {"type", "data-cfasync"}
    scripts = page.some(
        "scripts in its head", "script", where=lambda e: e.within("head")
    )
    moved = [each for each in scripts if each is not icons and not own & {*each.attrs}]
    for script in moved:
        page.remove(script)
    last = "".join(f"{page.whole(script)}\n" for script in moved)
    page.last_in(page.one("one body", "body"), last)


def loads_ahead(link: Element) -> bool:
    return link.attrs.get("rel") == "preload" and link.attrs.get("as") == "script"


def drop_handler(page: Markup) -> None:
    """The print button is served by book.mjs; a strict policy refuses handlers."""
    for button in page.all(where=lambda e: e.attrs.get("onclick") == HANDLER):
        page.set(button, onclick=None)
    page.none(
        "handlers in attributes other than that of the print button",
        where=lambda e: any(
            name.startswith("on") and (name, value) != ("onclick", HANDLER)
            for name, value in e.attrs.items()
        ),
    )


def drop_fold_labels(page: Markup) -> None:
    """A folded cell says what it is; the label would hide that from readers."""
    folds = page.all("details", where=lambda e: e.has_class("hide"))
    if folds:
        for summary in page.some(
            "a label on each folded cell",
            "summary",
            where=lambda e: e.attrs.get("aria-label") == FOLD_LABEL,
            count=len(folds),
        ):
            page.set(summary, **{"aria-label": None})


def set_theme_at_once(page: Markup) -> None:
    """The theme of the system before the first paint, a light one without scripts."""
    root = page.one(
        "a theme that is set later", "html", where=lambda e: e.attrs["data-theme"]
    )
    page.set(root, **{"data-theme": "light"})
    script = page.one(
        "the script that sets the theme",
        "script",
        where=lambda e: page.content(e).count(AUTO) == 1,
    )
    before, after = page.content(script).split(AUTO)
    page.replace(
        script, f'<script data-cfasync="false">{before}{SYSTEM}{after}</script>'
    )


def set_list_roles(page: Markup) -> None:
    """Give the bibliography roles that its elements can have.

    docutils writes ``role="list"`` around entries that are no list items.
    """
    lists = page.all(where=lambda e: e.has_class("citation-list"))
    if lists:
        for entry in page.some(
            "entries in its bibliography",
            where=lambda e: e.attrs.get("role") == "doc-biblioentry",
        ):
            page.set(entry, role="listitem")
    for link in page.all("a", where=lambda e: e.attrs.get("role") == "doc-backlink"):
        page.set(link, role=None)


def with_absolute_paths(html: str, base: str) -> str:
    """Addresses that lead to the same places from any depth.

    The page of unknown addresses is served in their place, wherever they are.
    """
    page = Markup(html, NOT_FOUND)
    for element in page.all():
        within = {
            name: base + value.removeprefix("./")
            for name, value in element.attrs.items()
            if name in ADDRESSES and value is not None and is_within(value)
        }
        if within:
            page.set(element, **within)
    return page.text()


def is_within(address: str) -> bool:
    """Say whether an address is one within the site, as from its root."""
    scheme, colon, _ = address.partition(":")
    outside = colon and scheme.replace("-", "").replace("+", "").isalnum()
    return not (outside or address.startswith(("#", "/")))


def with_policy(html: str, name: str, *more: str, scripts: str = "'self'") -> str:
    """Allow this page its own files and its own inline scripts, and nothing else.

    ``more`` are further directives and ``scripts`` the sources of scripts, for a page
    that needs others.
    """
    page = Markup(html, name)
    inline = page.all(
        "script",
        where=lambda e: (
            "src" not in e.attrs and "json" not in (e.attrs.get("type") or "")
        ),
    )
    hashes = sorted({source_of(page.content(script)) for script in inline})
    policy = (
        "default-src 'self'; base-uri 'self'; object-src 'none'; form-action 'self';"
        " img-src 'self' data:; style-src 'self' 'unsafe-inline';"
        f" script-src {' '.join([scripts, *hashes])}"
        + "".join(f"; {each}" for each in more)
    )
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}" />'
    page.first_in(page.one("one head", "head"), f"\n    {meta}")
    return page.text()


def source_of(text: str) -> str:
    """The policy's name for an inline script."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
