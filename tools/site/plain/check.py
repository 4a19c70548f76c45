"""A check that the text of a notebook is Markdown that every program shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import nbformat
from markdown_it.token import Token
from myst_parser.config.main import MdParserConfig
from myst_parser.parsers.mdit import create_md_parser

from tools.command import PipelineError

# More than the book has switched on: a problem set or a download has none of them.
EXTENSIONS = [
    "amsmath",
    "attrs_inline",
    "colon_fence",
    "deflist",
    "dollarmath",
    "substitution",
]
MYST = {
    "amsmath": "an equation without dollars",
    "colon_fence": "a directive",
    "dl_open": "a definition list",
    "footnote_ref": "a footnote",
    "math_block_label": "a labelled equation",
    "myst_block_break": "a break",
    "myst_line_comment": "a comment",
    "myst_role": "a role",
    "myst_target": "a target",
    "span_open": "words with attributes",
    "substitution_block": "a substitution",
    "substitution_inline": "a substitution",
}


def require_plain(notebook: nbformat.NotebookNode, name: str) -> None:
    """Raise PipelineError where the text of a notebook is more than plain Markdown.

    For notebooks that people get without a build of the site, such as problem sets:
    nothing could number their statements or find their citations. ``name`` says whose
    text it is.
    """
    parser = create_md_parser(MdParserConfig(enable_extensions=EXTENSIONS), Silent)
    for cell in notebook.cells:
        if cell.cell_type != "markdown":
            continue
        for token in every(parser.parse(cell.source)):
            if what := beyond_markdown(token):
                shown = (token.content or token.info or cell.source).strip()
                raise PipelineError(
                    f"{name}: {what} of MyST, which notebook programs show as source:"
                    f" {' '.join(shown.split())[:60]!r}"
                )


def beyond_markdown(token: Token) -> str | None:
    """Say what a token is in MyST; None where every program reads it alike."""
    if token.type == "fence" and token.info.lstrip().startswith("{"):
        return "a directive"
    return MYST.get(token.type)


def every(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from every(token.children or [])


class Silent:
    """The parser asks for a renderer; only its tokens are used here."""

    __output__ = "tokens"

    def __init__(self, parser: Any) -> None:
        self.rules: dict[str, Any] = {}
