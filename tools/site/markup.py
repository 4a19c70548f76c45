"""The pages of the finished site as trees, and the places that an edit needs.

A page whose place is missing, or has become two, stops the build with a sentence: the
theme has changed, and an edit in silence would do nothing.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import takewhile
from typing import Any, NamedTuple

import soupsieve
from bs4 import BeautifulSoup, ResultSet, Tag

from tools.command import PipelineError

# A script, which may have a drawing as a text, or a drawing: its tag and its content.
DRAWING = re.compile(r"<script\b.*?</script>|(<svg\b[^>]*>)(.*?)</svg>", re.S)
HIDDEN = re.compile("\ue000(\\d+)\ue000")
FORMULA = re.compile("<mjx-container.*?</mjx-container>", re.S)
NAMED, TAG = re.compile(r"\s(id|href|on[a-z]+)="), re.compile("<[^>]*>")


class _Selecting(Tag):
    """Selects by CSS as ``Tag.select`` does, and asks few elements whether they match.

    Of a page of twenty thousand elements nearly all have another name, or another
    class, than the last part of a selector asks for. That is seen at a fraction of the
    cost of the question; without it a build takes a fifth longer.
    """

    def select(self, selector: str, *args: Any, **options: Any) -> ResultSet[Tag]:
        asked = None if args or options else _last_parts(selector)
        if asked is None:
            return super().select(selector, *args, **options)
        found = [each for each in asked.may_be(self) if self._shows(each)]
        return ResultSet(None, soupsieve.compile(selector).filter(found))

    def _shows(self, element: Tag) -> bool:
        """True unless a template has the element: what is in one is on no page."""
        within = takewhile(lambda each: each is not self, element.parents)
        return all(each.name != "template" for each in within)


class _Element(_Selecting):
    """An element of a page."""


class _Page(BeautifulSoup, _Selecting):
    """A page, or a part of one."""


class _Asked(NamedTuple):
    """One name, class or attribute of each alternative of a selector."""

    names: frozenset[str]
    classes: frozenset[str]
    keys: frozenset[str]

    def may_be(self, tree: Tag) -> list[Tag]:
        """All within a tree that a selector can mean, and others; in their order."""
        names, classes, keys = self
        if not classes and not keys:  # a text has the name None
            return [each for each in tree.descendants if each.name in names]
        return [
            each
            for each in tree.descendants
            if isinstance(each, Tag)
            and (
                each.name in names
                or not classes.isdisjoint(each.attrs.get("class", ()))
                or not keys.isdisjoint(each.attrs)
            )
        ]


@cache
def _last_parts(selector: str) -> _Asked | None:
    """Names, classes and keys that a selector asks for; None where it does not say.

    None as well where it matters in what one selects.
    """
    if ":scope" in selector or "&" in selector:
        return None
    names, classes, keys = set(), set(), set()
    for last in soupsieve.compile(selector).selectors:
        keyed = [each.attribute for each in last.attributes if not each.inverse]
        if last.classes:
            classes.add(last.classes[0])
        elif last.ids or keyed:
            keys.add("id" if last.ids else keyed[0].lower())
        elif last.tag and last.tag.name not in (None, "*"):
            names.add(last.tag.name.lower())
        else:
            return None
    return _Asked(frozenset(names), frozenset(classes), frozenset(keys))


def parsed(html: str) -> BeautifulSoup:
    """The tree of a page, or of a part of one."""
    return _Page(html, "html.parser", element_classes={Tag: _Element})


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
