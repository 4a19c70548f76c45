"""Heads of the pages: for search engines, and for who shares an address.

The public address stands in pyproject.toml alone. Where it is not known, whatever
needs it (canonical addresses, the picture of a shared link, sitemap.xml, robots.txt)
is absent. Canonical addresses and sitemap.xml are those of Sphinx and sphinx-sitemap.
"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes

from tools.command import NOT_FOUND
from tools.launch import public_address
from tools.site import card

BOOK = "Attention in the Limit"
LANDING = "chapters/index"
# The root of the site leads to the landing page and says the same of itself.
ROOT_PAGE = "index"
UNLISTED = {"genindex", "search", NOT_FOUND}
TITLES = {
    LANDING: f"{BOOK} — executable lecture notes",
    ROOT_PAGE: f"{BOOK} — executable lecture notes on transformers",
    "search": "Search",
    "genindex": "Index",
    NOT_FOUND: "Page not found",
}
ABOUT = (
    "Executable lecture notes on wide, deep, long and hot transformers: each limit is"
    " derived and measured, and each theorem has a verdict."
)
SENTENCES = {
    LANDING: ABOUT,
    ROOT_PAGE: ABOUT,
    "search": "Search the chapters, the claims and the functions of the book.",
    "genindex": "All functions and classes of the book's package, by name.",
    NOT_FOUND: "There is no page at this address.",
}
LIMIT = 160
CARD = "_static/card.png"
CARD_SIZE = (1200, 630)
CARD_ALT = (
    "The title of the book beside errors that fall along predicted straight lines."
)
# Stands for a formula while the sentences that have one are found.
FORMULA = "\0"


def full_title(page: str, title: str) -> str:
    """Title of the window, another one for each page."""
    title = TITLES.get(page, title)
    return title if BOOK in title else f"{title} — {BOOK}"


def description(doctree: nodes.document | None) -> str:
    """Whole sentences from the first paragraph of a page, 160 characters at most.

    A sentence with a formula is left out, with what follows it.
    """
    section = doctree and next(doctree.findall(nodes.section), None)
    for each in section.children if section else ():
        if isinstance(each, nodes.paragraph):
            return shortened(words_of(each))
    return ""


def words_of(paragraph: nodes.paragraph) -> str:
    parts = [
        FORMULA if isinstance(part.parent, nodes.math) else part.astext()
        for part in paragraph.findall(nodes.Text)
    ]
    return re.sub(r"\s+", " ", "".join(parts)).strip()


def shortened(text: str, limit: int = LIMIT) -> str:
    """The first sentences without formula that fit; else one, cut between words."""
    kept = ""
    for sentence in re.split(r"(?<=[.?!])\s+", text):
        if FORMULA in sentence:
            if kept:
                break
            continue
        if len(longer := f"{kept} {sentence}".strip()) > limit:
            break
        kept = longer
    else:
        return kept
    if kept:
        return kept
    first = next(s for s in re.split(r"(?<=[.?!])\s+", text) if FORMULA not in s)
    return first[: limit - 1].rpartition(" ")[0].rstrip(",;:") + "…"


def head_tags(page: str, title: str, sentence: str, address: str | None) -> str:
    """The tags of one page; ``address`` is that of the site, None if not known."""
    sentence = SENTENCES.get(page, sentence) or f"{title}, a page of {BOOK}."
    place = LANDING if page == ROOT_PAGE else page
    tags = [meta("name", "description", sentence)]
    if page in UNLISTED:
        tags.append(meta("name", "robots", "noindex"))
        return "\n    ".join(["", *tags])
    graph = {
        "og:title": BOOK if place == LANDING else title,
        "og:description": sentence,
        "og:type": "website" if place == LANDING else "article",
        "og:site_name": BOOK,
    }
    if address:
        graph |= {
            "og:url": f"{address}{place}.html",
            "og:image": f"{address}{CARD}",
            "og:image:width": str(CARD_SIZE[0]),
            "og:image:height": str(CARD_SIZE[1]),
            "og:image:alt": CARD_ALT,
        }
        tags.append(meta("name", "twitter:card", "summary_large_image"))
    tags += [meta("property", name, content) for name, content in graph.items()]
    return "\n    ".join(["", *tags])


def meta(key: str, name: str, content: str) -> str:
    return f'<meta {key}="{name}" content="{escape(content)}" />'


def robots(address: str) -> str:
    """robots.txt: everything may be read, and the sitemap is here."""
    return f"User-agent: *\nAllow: /\n\nSitemap: {address}sitemap.xml\n"


def add_to_page(
    app: Any, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Title, tags and canonical address of a page, for the templates."""
    titles, address = app.env.titles, app.env.limit_address
    title = TITLES.get(page) or numbered(app.env, page)
    context["head_title"] = full_title(page, title)
    context["metatags"] = context.get("metatags", "") + head_tags(
        page, title, description(doctree), address
    )
    if page in UNLISTED:
        context["pageurl"] = None
    elif page == ROOT_PAGE and address:
        context["pageurl"] = f"{address}{LANDING}.html"
    if page == NOT_FOUND:
        chapters = (name for name in titles if chapter_number(app.env, name))
        context["chapters"] = [
            (name, numbered(app.env, name))
            for name in sorted(chapters, key=lambda name: chapter_number(app.env, name))
        ]
    for way, name in zip(("prev", "next"), beside(app, page), strict=True):
        if context.get(way) and name:  # the links at the foot of the page
            context[way]["title"] = escape(numbered(app.env, name))


def chapter_number(env: Any, page: str) -> tuple[int, ...]:
    """The number of a chapter as Sphinx counts them, () for other pages."""
    return tuple(env.toc_secnumbers.get(page, {}).get("") or ())


def numbered(env: Any, page: str) -> str:
    """The title of a page behind its number, as in "2 Softmax expansion"."""
    number = ".".join(map(str, chapter_number(env, page)))
    return f"{number} {env.titles[page].astext()}".strip()


def beside(app: Any, page: str) -> tuple[str | None, str | None]:
    """The pages before and after one in the order of the book."""
    _, before, after = app.builder.relations.get(page, (None, None, None))
    return before, after


def publish(app: Any, error: Exception | None) -> None:
    """The files that make sense only where the address of the site is known."""
    if error is None and (address := app.env.limit_address):
        folder = Path(app.outdir)
        (folder / "robots.txt").write_text(robots(address), "utf-8")
        card.draw(folder / CARD, BOOK, CARD_SIZE)


def read_address(app: Any) -> None:
    app.env.limit_address = app.config.html_baseurl or None


def setup(app: Any) -> None:
    """Settings of Sphinx and of sphinx-sitemap from the address of the site."""
    app.connect("builder-inited", read_address)
    app.connect("html-page-context", add_to_page)
    app.connect("build-finished", publish)
    if address := public_address():
        app.setup_extension("sphinx_sitemap")
        app.config.html_baseurl = address
        app.config.sitemap_url_scheme = "{link}"
        unlisted = sorted({*UNLISTED, ROOT_PAGE})
        app.config.sitemap_excludes = [f"{page}.html" for page in unlisted]
