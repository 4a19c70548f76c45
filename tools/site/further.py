"""Sections with a star: how they begin stands open, and the rest is one click away.

A star behind a heading says, in the notebook too, that a section can be left out at a
first reading. On the site it shows its first paragraph and a line that says what more
there is; an address within it opens it (book.mjs).
"""

from __future__ import annotations

from html import escape

from bs4 import BeautifulSoup, Tag

from tools.command import PipelineError
from tools.site.markup import element_of

STAR = "⋆"
STARRED = "section > :is(h2, h3)"
STATEMENT = ".proof > .admonition-title > .caption-number"


def fold_further(tree: BeautifulSoup, name: str) -> None:
    """Fold each section with a star behind its first paragraph."""
    for heading in tree.select(f"article {STARRED}"):
        if has_star(heading):
            fold_section(heading, name)


def has_star(heading: Tag) -> bool:
    words = "".join(heading.find_all(string=True, recursive=False))
    return words.rstrip().endswith(STAR)


def fold_section(heading: Tag, name: str) -> None:
    """All of a section behind its first paragraph, behind one line."""
    title = heading.get_text().rstrip("#").strip()
    lead = heading.find_next_sibling()
    if lead is None or not (lead.name == "p" or "checked" in lead.get("class", [])):
        raise PipelineError(f"{name}: the section {title!r} has to begin with a text")
    if heading.find_parent("details", class_="further"):
        raise PipelineError(
            f"{name}: {title!r} is in a section with a star, and has one"
        )
    line = f"<summary>{escape(what_follows(heading.parent))}</summary>"
    fold = element_of(f'<details class="further">{line}</details>')
    fold.extend(list(lead.next_siblings))
    lead.insert_after(fold)


def what_follows(section: Tag) -> str:
    """The line of a folded section: its statements, and how many figures it has."""
    parts = [number.get_text().strip() for number in section.select(STATEMENT)]
    if count := len(section.select("figure")):
        parts.append(f"{count} figure{'' if count == 1 else 's'}")
    said = f"Read on: {', '.join(parts)}" if parts else "Read on"
    return f"{said} (can wait for a second reading)"
