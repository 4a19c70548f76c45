"""A page as pieces, and the parts of it that can be run again for some claims alone."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from tools.digests import sha
from tools.mutants.sites import Mutant, Text, differs, mutants_of
from tools.reseed import claim_cells, made_from
from tools.verdicts import code_of, names_of_lib, page_name

#: What ``verify`` is told to ask for: never changed, nor is the text of a claim.
ASKED = {"tolerance", "at_least", "at_most", "stderr"}
EXPECTED, MEASURED = "expected", "measured"
#: Share of the work of a claim from which on it is run together with another one.
SHARED = 0.5


@dataclass(frozen=True)
class Piece:
    """A statement of a cell."""

    cell: int
    place: int
    source: str


class Book:
    """The page of one text: the cells that its claims need, statement by statement."""

    def __init__(self, path: Path, root: Path):
        self.path, self.root = path, root
        self.name = page_name(path, root)
        self.made_from = made_from(path, root)
        self.cells = claim_cells(code_of(path))

    @cached_property
    def pieces(self) -> list[Piece]:
        return [each for n, cell in enumerate(self.cells) for each in _pieces(n, cell)]

    @cached_property
    def mutants(self) -> dict[Mutant, int]:
        """Mutants of the cells, each with its cell: not of what a claim asks for."""
        text = self.path.read_text("utf-8")
        names, expected = _asked_alone(self.cells), _expected(self.cells)
        every = {}
        for number, cell in enumerate(self.cells):
            source, before = cell.encode(), text.partition(cell)[0].count("\n")
            kept = _left_alone(source, names, expected)
            for each in mutants_of(source, f"{self.name}.md cell {_title(cell)}"):
                apart = all(
                    each.end <= start or end <= each.start for start, end in kept
                )
                if apart and differs(each, source):
                    every[_moved(each, f"{self.name}.md", before)] = number
        return every

    def source(self, mutant: Mutant) -> bytes:
        """The source that a mutant changes: of a cell, or of a file of ``lib``."""
        if mutant in self.mutants:
            return self.cells[self.mutants[mutant]].encode()
        return (self.root / mutant.file).read_bytes()

    def sources(self, part: Iterable[int], mutant: Mutant | None) -> tuple[str, ...]:
        """The pieces of a part, one of whose cells may have a mutant."""
        pieces = {n: self.pieces[n] for n in part}
        if mutant is not None and mutant in self.mutants:
            cell = self.mutants[mutant]
            changed = mutant.applied(self.source(mutant)).decode()
            by_place = {each.place: each for each in _pieces(cell, changed)}
            for n, piece in pieces.items():
                if piece.cell == cell:
                    pieces[n] = by_place[piece.place]
        return tuple(piece.source for piece in pieces.values())


def _pieces(number: int, cell: str) -> Iterator[Piece]:
    for place, node in enumerate(ast.parse(cell).body):
        source = ast.get_source_segment(cell, node) or ""
        if decorators := getattr(node, "decorator_list", []):
            source = "".join(
                cell.splitlines(keepends=True)[
                    decorators[0].lineno - 1 : node.end_lineno
                ]
            )
        yield Piece(number, place, source)


def _title(cell: str) -> str:
    """A name of a cell that it keeps as long as it is the same."""
    return sha(cell.encode())[:8]


def _moved(mutant: Mutant, file: str, lines: int) -> Mutant:
    """A mutant of a cell, with its file and its line there."""
    return replace(mutant, file=file, line=mutant.line + lines)


# -- What a claim asks for ---------------------------------------------------------


def _calls(tree: ast.AST, name: str) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and name == getattr(
            node.func, "attr", getattr(node.func, "id", "")
        ):
            yield node


def _names(nodes: Iterable[ast.AST]) -> list[str]:
    return [
        each.id
        for node in nodes
        for each in ast.walk(node)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)
    ]


def _asked_alone(cells: list[str]) -> set[str]:
    """Names that nothing but bounds, tolerances and standard errors use."""
    trees = [ast.parse(cell) for cell in cells]
    asked = [
        word.value
        for tree in trees
        for call in _calls(tree, "verify")
        for word in call.keywords
        if word.arg in ASKED
    ]
    used, of_asked = _names(trees), _names(asked)
    return {name for name in of_asked if used.count(name) == of_asked.count(name)}


def _expected(cells: list[str]) -> set[str]:
    """Names of what claims expect."""
    return {
        word.value.id
        for cell in cells
        for call in _calls(ast.parse(cell), "verify")
        for word in call.keywords
        if word.arg == EXPECTED and isinstance(word.value, ast.Name)
    }


def _left_alone(
    source: bytes, names: set[str], expected: set[str]
) -> list[tuple[int, int]]:
    """Spans of a cell, in bytes: what claims ask for, their texts, and seeds.

    ``names`` are of bounds, ``expected`` of what may also be computed, and then counts.
    """
    tree = ast.parse(source)
    nodes: list[ast.expr | ast.stmt] = []
    for call in _calls(tree, "verify"):
        nodes += [*call.args, *(k.value for k in call.keywords if k.arg != MEASURED)]
    for call in _calls(tree, "generator"):
        nodes += [*call.args, *(word.value for word in call.keywords)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            targets = {
                each.id
                for target in node.targets
                for each in ast.walk(target)
                if isinstance(each, ast.Name)
            }
            if targets <= names or targets <= expected and _literal(node.value):
                nodes.append(node)
    return [*map(Text(source).span, nodes)]


def _literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except ValueError:
        return False
    return True


# -- Parts -------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """Pieces of a page, in order, and the claims that they lead to."""

    pieces: tuple[int, ...]
    claims: tuple[str, ...]
    seconds: float

    def key(self) -> str:
        return sha(repr(self.pieces).encode())[:12]


def parts(steps: list[dict[str, Any]], claims: dict[str, int]) -> list[Part]:
    """The claims of a page, those that share most of their work together.

    ``steps`` have what each piece needs and its seconds, ``claims`` the piece that
    gives each verdict.
    """
    joined: list[Part] = []
    for piece in sorted({*claims.values()}):
        pieces = _needed(steps, piece)
        own = [key for key, place in claims.items() if place == piece]
        while together := next((p for p in joined if _share(p, pieces, steps)), None):
            joined.remove(together)
            pieces |= {*together.pieces}
            own = [*together.claims, *own]
        seconds = sum(steps[n]["seconds"] for n in pieces)
        joined.append(Part(tuple(sorted(pieces)), tuple(own), seconds))
    return joined


def _needed(steps: list[dict[str, Any]], last: int) -> set[int]:
    needed: set[int] = set()
    pending = [last]
    while pending:
        piece = pending.pop()
        if piece not in needed:
            needed.add(piece)
            pending += steps[piece]["needs"]
    return needed


def _share(part: Part, pieces: set[int], steps: list[dict[str, Any]]) -> bool:
    """Say whether parts share half of the work of the smaller, and a second of it."""
    both = sum(steps[n]["seconds"] for n in pieces & {*part.pieces})
    own = sum(steps[n]["seconds"] for n in pieces)
    return both > max(0.5, SHARED * min(own, part.seconds))


# -- Where to look -----------------------------------------------------------------


def named(sources: Iterable[str]) -> dict[str, set[str]]:
    """Functions and classes that pieces name, by the package that they take them from.

    ``{"lib/sphere": {"simulate"}}``.
    """
    names: dict[str, set[str]] = {}
    for name in names_of_lib("\n".join(sources)):
        _, *folders, last = name.split(".")
        if folders:
            names.setdefault("/".join(["lib", *folders]), set()).add(last)
    return names
