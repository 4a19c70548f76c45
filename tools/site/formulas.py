"""Formulas in lines: one keeps the punctuation that touches it on its line.

A browser may break a line before and after a formula, which is a box to it. So the
characters around a formula that no space parts from it stand with it in one element,
which ``narrow.css`` does not break.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes

# A dash is a place to break a line; after an opening mark there is none.
AFTER = re.compile(r"^[^\s—–]+")
BEFORE = re.compile(r"[(\[“‘]+$")


def keep_together(doctree: nodes.document) -> None:
    """Put each formula into one element with what touches it."""
    for formula in list(doctree.findall(nodes.math)):
        parent, place = formula.parent, formula.parent.index(formula)
        around = nodes.inline(classes=["formula"])
        if (before := taken(parent, place - 1, BEFORE)) is not None:
            around += before
        if (after := taken(parent, place + 1, AFTER)) is not None:
            parent.replace(formula, around)
            around += [formula, after]
        elif before is not None:
            parent.replace(formula, around)
            around += formula


def taken(parent: nodes.Element, place: int, kind: re.Pattern[str]) -> Any:
    """The text of a kind that a child of a node starts or ends with, taken from it."""
    text = parent[place] if 0 <= place < len(parent) else None
    if not isinstance(text, nodes.Text) or not (match := kind.search(text)):
        return None
    start, end = match.span()
    parent.replace(text, nodes.Text(text[:start] + text[end:]))
    return nodes.Text(match.group())


def resolve(app: Any, doctree: nodes.document, here: str) -> None:
    if app.builder.format == "html":
        keep_together(doctree)


def setup(app: Any) -> None:
    # After the plain notebooks are made of the same pages.
    app.connect("doctree-resolved", resolve, priority=900)
    # After the other styles, some of which it changes for narrow screens.
    app.add_css_file("narrow.css", priority=900)
    app.add_js_file("narrow.mjs", type="module")
