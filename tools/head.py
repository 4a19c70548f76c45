"""What the head of a page tells search engines, and who shares its address.

The public address stands in pyproject.toml alone. Where it is not known, whatever
needs it (canonical addresses, the picture of a shared link, sitemap.xml, robots.txt)
is absent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from typing import Any
from urllib.parse import urlsplit

from docutils import nodes

from tools.launch import project_url

BOOK = "Attention in the Limit"
LANDING = "chapters/index"
# The root of the site leads to the landing page and says the same of itself.
ROOT_PAGE = "index"
NOT_FOUND = "404"
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


def public_address(pyproject: str | None = None) -> str | None:
    """Where the site stands, with a slash at its end; None while it stands nowhere."""
    address = project_url("Homepage", pyproject)
    if address is None:
        return None
    parts = urlsplit(address)
    if parts.scheme != "https" or not parts.netloc or parts.query or parts.fragment:
        raise ValueError(f"Homepage in pyproject.toml is no https address: {address!r}")
    return f"{address.rstrip('/')}/"


def base_path(address: str | None) -> str:
    """Path under which the site is served: that of its address, or the root."""
    return urlsplit(address).path if address else "/"


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
    found = ""
    for sentence in re.split(r"(?<=[.?!])\s+", text):
        if FORMULA in sentence:
            if found:
                break
            continue
        if len(longer := f"{found} {sentence}".strip()) > limit:
            break
        found = longer
    else:
        return found
    if found:
        return found
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
        canonical = escape(f"{address}{place}.html")
        tags.append(f'<link rel="canonical" href="{canonical}" />')
        tags.append(meta("name", "twitter:card", "summary_large_image"))
    tags += [meta("property", name, content) for name, content in graph.items()]
    return "\n    ".join(["", *tags])


def meta(key: str, name: str, content: str) -> str:
    return f'<meta {key}="{name}" content="{escape(content)}" />'


def sitemap(pages: Iterable[str], address: str) -> str:
    """sitemap.xml: the address of every page that is to be found."""
    lines = [
        f"  <url><loc>{escape(f'{address}{page}.html')}</loc></url>"
        for page in sorted(pages)
        if page not in UNLISTED | {ROOT_PAGE}
    ]
    return "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">',
            *lines,
            "</urlset>\n",
        ]
    )


def robots(address: str) -> str:
    """robots.txt: everything may be read, and the sitemap is here."""
    return f"User-agent: *\nAllow: /\n\nSitemap: {address}sitemap.xml\n"


def add_to_page(
    app: Any, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Title and tags of a page, for the templates."""
    titles = app.env.titles
    title = TITLES.get(page) or titles[page].astext()
    context["head_title"] = full_title(page, title)
    context["metatags"] = context.get("metatags", "") + head_tags(
        page, title, description(doctree), app.env.limit_address
    )
    if page == NOT_FOUND:
        context["chapters"] = [
            (name, titles[name].astext())
            for name in sorted(titles)
            if re.match(r"chapters/\d", name)
        ]


def setup(app: Any) -> None:
    app.connect("html-page-context", add_to_page)
