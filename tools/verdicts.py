"""Verdicts collected from the executed notebooks, never typed again."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat

from lib import claims
from lib.claims import MIME_TYPE
from tools.command import ROOT, PipelineError
from tools.texts import texts

HEADING = re.compile(r"^#+ (.+)$", re.M)
STATEMENT = re.compile(r"\{prf:(\w+)\}[^\n]*\n:label: (\S+)")


@dataclass(frozen=True)
class Row:
    """One verdict of one page: its data, and the HTML that was stored with them.

    ``chip`` are the few words that the page shows of it, where its cell names some,
    ``cell`` the number of that cell among those of code.
    """

    page: str
    section: str
    id: str
    word: str
    claim: str
    statement: str | None
    numbers: str
    html: str
    chip: str = ""
    cell: int = field(default=0, compare=False)


def collect(root: Path = ROOT) -> list[Row]:
    """The verdicts of all notebooks, in the order of the book."""
    return [row for path in texts(root) for row in page_rows(path, root)]


def page_rows(text: Path, root: Path = ROOT) -> Iterator[Row]:
    """The verdicts stored in the notebook of one text, in order."""
    page, section, number = page_name(text, root), "", -1
    for cell in nbformat.read(text.with_suffix(".ipynb"), 4).cells:
        if cell.cell_type == "markdown":
            section = next(reversed(HEADING.findall(cell.source)), section)
        number += cell.cell_type == "code"
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if MIME_TYPE in data:
                own = {**data[MIME_TYPE], "html": data["text/html"]}
                chip = cell.metadata.get("chip", "")
                yield Row(page, section, **own, chip=chip, cell=number)
            elif 'class="verdict' in data.get("text/html", ""):
                raise PipelineError(
                    f"{page}: its notebook has a verdict without data; make notebooks"
                )


def statement_kinds(root: Path = ROOT) -> dict[str, str]:
    """Map the labels of the statements to their kinds: ``{label: "theorem"}``."""
    return {
        label: kind
        for path in texts(root)
        for kind, label in STATEMENT.findall(path.read_text("utf-8"))
    }


# Kinds of statements that claim something; a definition claims nothing.
CLAIMING = {"theorem", "proposition", "lemma", "corollary", "observation", "conjecture"}


def unmatched(kinds: dict[str, str], rows: Iterable[Row]) -> list[str]:
    """Sentences on statements without a check, and on checks without a statement."""
    rows = list(rows)
    checked = {row.statement for row in rows if row.word == "HOLDS"}
    without = [
        f"the {kind} {label!r} has no check that holds: give a verify() of it"
        f" statement={label!r}, or take it for what it is, such as a definition"
        for label, kind in kinds.items()
        if kind in CLAIMING and label not in checked
    ]
    return without + [
        f"{row.page}: the check {row.claim!r} names the statement {row.statement!r},"
        " which no page has"
        for row in rows
        if row.statement and row.statement not in kinds
    ]


def page_name(text: Path, root: Path = ROOT) -> str:
    """Name of the page of a text, as in the table of contents."""
    return text.relative_to(root).with_suffix("").as_posix()


def code_of(text: Path) -> list[str]:
    """The code cells of a notebook, in order."""
    cells = nbformat.read(text.with_suffix(".ipynb"), 4).cells
    return [cell.source for cell in cells if cell.cell_type == "code"]


@contextmanager
def recorded(keep: Callable[[claims.Verdict], object]) -> Iterator[None]:
    """Let ``verify`` give each verdict to ``keep`` and go on, failures included."""
    verify = claims.verify

    def record(*args: Any, **kwargs: Any) -> claims.Verdict:
        try:
            verdict = verify(*args, **kwargs)
        except claims.ClaimFailed as failure:
            verdict = failure.verdict
        keep(verdict)
        return verdict

    claims.verify = record
    try:
        yield
    finally:
        claims.verify = verify


def used_in(root: Path = ROOT) -> dict[str, list[str]]:
    """Pages whose cells name a public function: ``{"lib.m.f": [page, ...]}``."""
    pages: dict[str, list[str]] = {}
    for path in texts(root):
        for name in sorted(names_of_lib("\n".join(code_of(path)))):
            pages.setdefault(name, []).append(page_name(path, root))
    return pages


def names_of_lib(source: str) -> set[str]:
    """Full names of what a piece of Python takes from ``lib``."""
    known: dict[str, str] = {}
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith("lib."):
            for alias in node.names:
                known[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    attributes = {
        f"{known[node.value.id]}.{node.attr}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in known
    }
    return attributes | set(known.values())
