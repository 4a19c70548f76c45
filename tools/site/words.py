"""The role ``set``: words of the text that set the controls of an exhibit.

The text ``few tokens <tokens=25 eps=0.004>`` of this role shows *few tokens*; where the
exhibit before it moves, as a button that sets two of its controls (exhibit.mjs).
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxRole

FORM = re.compile(r"(.+) <(\w+=[-\d.]+(?: \w+=[-\d.]+)*)>", re.S)


class Words(nodes.inline):
    """Text, with what it sets in its attribute ``values``."""


class Set(SphinxRole):
    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        match = FORM.fullmatch(self.text)
        if match is None:
            message = self.inliner.reporter.error(
                "the role set wants words and values, as in few tokens <tokens=25>,"
                f" got {self.text!r}",
                line=self.lineno,
            )
            return [], [message]
        return [Words(self.rawtext, match[1], values=match[2])], []


def visit(self: Any, node: Words) -> None:
    self.body.append(self.starttag(node, "span", "", **{"data-set": node["values"]}))


def depart(self: Any, node: Words) -> None:
    self.body.append("</span>")


def setup(app: Any) -> None:
    app.add_node(Words, html=(visit, depart))
    app.add_role("set", Set())
