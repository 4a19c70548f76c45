"""The pages of the finished site as trees, and the places that an edit needs.

A page whose place is missing, or has become two, stops the build with a sentence: the
theme has changed, and an edit in silence would do nothing.
"""

from __future__ import annotations

import re

from bs4 import BeautifulSoup, Tag

from tools.command import PipelineError

# A script, which may have a drawing as a text, or a drawing: its tag and its content.
DRAWING = re.compile(r"<script\b.*?</script>|(<svg\b[^>]*>)(.*?)</svg>", re.S)
HIDDEN = re.compile("\ue000(\\d+)\ue000")
FORMULA = re.compile("<mjx-container.*?</mjx-container>", re.S)
NAMED, TAG = re.compile(r"\s(id|href|on[a-z]+)="), re.compile("<[^>]*>")


def parsed(html: str) -> BeautifulSoup:
    return BeautifulSoup(html, "html.parser")


def without_drawings(html: str) -> tuple[str, list[str]]:
    """A page whose drawings are empty but for a number, and what was in each.

    A third of what a page consists of is in them, and no edit of a tree looks there.
    """
    drawings: list[str] = []

    def hide(found: re.Match[str]) -> str:
        if found[1] is None:
            return found[0]
        drawings.append(found[2])
        return f"{found[1]}\ue000{len(drawings) - 1}\ue000</svg>"

    return DRAWING.sub(hide, html), drawings


def with_drawings(html: str, drawings: list[str]) -> str:
    """The page with its drawings again."""
    return HIDDEN.sub(lambda found: drawings[int(found[1])], html)


def element_of(html: str) -> Tag:
    """The one element that a text of HTML is, to stand in a page."""
    (made,) = parsed(html).contents
    return made.extract()


def with_plain_formulas(html: str) -> str:
    """A page whose formulas are the text that a reader is told, without elements.

    They are nearly half of the elements of the site, which takes a while to parse. One
    that has a name, leads somewhere or does something stays as it is.
    """
    return FORMULA.sub(
        lambda formula: (
            formula[0] if NAMED.search(formula[0]) else TAG.sub("", formula[0])
        ),
        html,
    )


def some(
    tree: Tag, page: str, what: str, selector: str, count: int | None = None
) -> list[Tag]:
    """The elements that a selector of CSS finds: as many as ``count``, or some."""
    places = tree.select(selector)
    if not places or count not in (None, len(places)):
        wanted = f", {count} of them" if count else ""
        raise PipelineError(
            f"{page}: it should have {what}{wanted}; there are {len(places)}"
        )
    return list(places)


def one(tree: Tag, page: str, what: str, selector: str) -> Tag:
    """The one element that a selector of CSS finds."""
    (place,) = some(tree, page, what, selector, 1)
    return place
