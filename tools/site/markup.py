"""HTML that a parser has read, and that is edited at the places found in it.

What is not edited stays as it is, byte for byte: the pages carry drawings and inline
scripts whose digests their policy names. An edit that finds no place, or another
number of places than it should, says so with the name of the page.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from html.parser import HTMLParser
from itertools import accumulate

from tools.command import PipelineError

VOID = {
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta",
    "source", "track", "wbr",
}  # fmt: skip


@dataclass(eq=False)
class Element:
    """An element by its place in the text: start tag, content, end tag."""

    name: str
    attrs: dict[str, str | None]
    parent: Element | None
    start: int
    inside: int  # where its start tag ends and its content begins
    outside: int = -1  # where its content ends and its end tag begins
    end: int = -1

    def has_class(self, name: str) -> bool:
        return name in (self.attrs.get("class") or "").split()

    def within(self, name: str) -> bool:
        """Say whether an element of this name is around it."""
        return self.parent is not None and (
            self.parent.name == name or self.parent.within(name)
        )


class Markup(HTMLParser):
    """A text of HTML, its elements in order, and what is to change in it."""

    def __init__(self, text: str, page: str = "a page"):
        super().__init__()
        self.source, self.page = text, page
        self.elements: list[Element] = []
        self._open: list[Element] = []
        self._edits: list[tuple[int, int, str]] = []
        lines = text.split("\n")
        self._lines = [0, *accumulate(len(line) + 1 for line in lines)]
        self.feed(text)
        self.close()

    # What the parser calls.

    def _here(self) -> int:
        line, column = self.getpos()
        return self._lines[line - 1] + column

    def handle_starttag(
        self, tag: str, attrs: list[tuple[str, str | None]], closed: bool = False
    ) -> None:
        start, text = self._here(), self.get_starttag_text() or ""
        parent = self._open[-1] if self._open else None
        element = Element(tag, dict(attrs), parent, start, start + len(text))
        self.elements.append(element)
        if closed or tag in VOID:
            element.outside = element.end = element.inside
        else:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs, closed=True)

    def handle_endtag(self, tag: str) -> None:
        if tag not in (each.name for each in self._open):
            return
        while (last := self._open.pop()).name != tag:
            pass
        last.outside = self._here()
        last.end = self.source.index(">", last.outside) + 1

    # What is looked for.

    def all(
        self, *names: str, where: Callable[[Element], object] = lambda element: True
    ) -> list[Element]:
        """The elements of these names (of any, if there is none) that pass a test."""
        return [e for e in self.elements if (not names or e.name in names) and where(e)]

    def some(
        self,
        what: str,
        *names: str,
        where: Callable[[Element], object] = lambda element: True,
        count: int | None = None,
    ) -> list[Element]:
        """The same, of which there must be some, or as many as ``count``."""
        places = self.all(*names, where=where)
        if not places or count not in (None, len(places)):
            wanted = "none" if not places else f"{len(places)} and not {count}"
            raise PipelineError(f"{self.page}: it should have {what}, and has {wanted}")
        return places

    def one(
        self,
        what: str,
        *names: str,
        where: Callable[[Element], object] = lambda element: True,
    ) -> Element:
        """The one place of its kind."""
        (place,) = self.some(what, *names, where=where, count=1)
        return place

    def none(self, what: str, where: Callable[[Element], object]) -> None:
        """Stop where there is any."""
        if places := self.all(where=where):
            raise PipelineError(
                f"{self.page}: it should have no {what}: {self.tag(places[0])}"
            )

    def tag(self, element: Element) -> str:
        """The start tag."""
        return self.source[element.start : element.inside]

    def content(self, element: Element) -> str:
        return self.source[element.inside : element.outside]

    def whole(self, element: Element) -> str:
        return self.source[element.start : element.end]

    # What is changed.

    def remove(self, element: Element) -> None:
        self.replace(element, "")

    def replace(self, element: Element, html: str) -> None:
        self._edits.append((element.start, element.end, html))

    def set(self, element: Element, **attrs: str | None) -> None:
        """Give an element attributes, once; those that are None are taken away."""
        kept = {
            name: attrs.get(name, value)
            for name, value in element.attrs.items()
            if attrs.get(name, "") is not None
        } | {name: value for name, value in attrs.items() if value is not None}
        words = [
            name if value is None else f'{name}="{escape(value)}"'
            for name, value in kept.items()
        ]
        tail = " /" if self.tag(element).endswith("/>") else ""
        tag = f"<{' '.join([element.name, *words])}{tail}>"
        self._edits.append((element.start, element.inside, tag))

    def before(self, element: Element, html: str) -> None:
        self._edits.append((element.start, element.start, html))

    def first_in(self, element: Element, html: str) -> None:
        self._edits.append((element.inside, element.inside, html))

    def last_in(self, element: Element, html: str) -> None:
        self._edits.append((element.outside, element.outside, html))

    def text(self) -> str:
        """The text with all that was to change."""
        parts, place = [], 0
        for start, end, html in sorted(self._edits, key=lambda edit: edit[:2]):
            if start < place:
                raise PipelineError(f"{self.page}: two edits meet at {html[:60]!r}")
            parts += [self.source[place:start], html]
            place = end
        return "".join([*parts, self.source[place:]])
