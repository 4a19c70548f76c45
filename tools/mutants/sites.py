"""Places where the numerics of ``lib`` can be changed, and to what.

A mutant replaces one piece of one statement: an operator, a constant, a comparison, a
sign, an axis, a function, two arguments, a factor or a transpose that is dropped. What
is printed or only said is left alone: docstrings, annotations, decorators, errors,
warnings, texts.
"""

from __future__ import annotations

import ast
import hashlib
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tools.command import PipelineError

#: Parts of ``lib`` that draw, load or send, and compute nothing of the book's.
LEFT_OUT = {"figures", "exhibits", "coursework", "data", "sweep", "__init__"}
#: Functions that print.
PRINTING = re.compile(r"__(repr|str)__|_(repr|render)_\w+_")
#: Keywords with which nothing is computed, and those that are axes.
IDLE = {"strict", "stacklevel", "maxsize", "copy"}
AXES = {"axis", "axis1", "axis2"}
#: Functions that say something, and that suppress what numpy says.
SAYING = {"warn", "_warn", "errstate"}

OPERATORS: dict[type, tuple[str, str]] = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"), ast.Pow: ("**", "*"), ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"), ast.And: ("and", "or"), ast.Or: ("or", "and"),
}  # fmt: skip
COMPARISONS: dict[type, tuple[str, tuple[str, ...]]] = {
    ast.Lt: ("<", ("<=", ">=")), ast.LtE: ("<=", ("<", ">")),
    ast.Gt: (">", (">=", "<=")), ast.GtE: (">=", (">", "<")),
    ast.Eq: ("==", ("!=",)), ast.NotEq: ("!=", ("==",)),
}  # fmt: skip
_PAIRS = (
    "sin cos, sinh cosh, maximum minimum, max min, argmax argmin, floor ceil, any all,"
    " zeros ones, zeros_like ones_like, mean sum, std var, exp expm1, log log1p,"
    " sqrt cbrt, cumsum cumprod, erf erfc, tril triu, fft ifft, rfft irfft"
)
FUNCTIONS = dict(pair.split() for pair in _PAIRS.split(", "))
FUNCTIONS |= {second: first for first, second in FUNCTIONS.items()}
#: Functions to whose result the order of two arguments makes no difference.
SYMMETRIC = {
    "maximum", "minimum", "max", "min", "add", "multiply", "hypot", "isinstance",
    "array_equal", "broadcast_shapes", "gcd", "logaddexp", "zip",
}  # fmt: skip


@dataclass(frozen=True)
class Unit:
    """A statement, or the head of one that contains others."""

    scope: str  # of functions and classes, as in a traceback
    start: int
    end: int
    lines: tuple[int, int]
    function: str | None  # in which it runs; None for what runs at import
    body: tuple[int, int] | None = None  # lines of the function that it begins


@dataclass(frozen=True)
class Mutant:
    """One change of one file; ``key`` names it as long as its statement stands."""

    file: str
    unit: Unit
    line: int
    start: int
    end: int
    was: str
    to: str
    kind: str
    key: str

    def applied(self, source: bytes) -> bytes:
        return source[: self.start] + self.to.encode() + source[self.end :]


def files(root: Path) -> list[Path]:
    """The files of ``lib`` that compute."""
    return [
        path
        for path in sorted((root / "lib").rglob("*.py"))
        if not LEFT_OUT & {*path.relative_to(root / "lib").with_suffix("").parts}
    ]


def mutants(path: Path, root: Path) -> list[Mutant]:
    """Every mutant of a file."""
    return mutants_of(path.read_bytes(), path.relative_to(root).as_posix())


def mutants_of(source: bytes, name: str) -> list[Mutant]:
    """Every mutant of a source; ``name`` is that of its file."""
    text, mutants, seen = Text(source), [], Counter[tuple[str, bytes]]()
    for unit, nodes in _units(ast.parse(source), text):
        statement = source[unit.start : unit.end]
        seen[unit.scope, statement] += 1
        before = f"{name}\n{unit.scope}\n{seen[unit.scope, statement]}\n"
        changes = {change[:3]: change[3] for n in nodes for change in _changes(n, text)}
        for (start, end, to), kind in sorted(changes.items()):
            own = f"\n{start - unit.start}\n{end - unit.start}\n{to}"
            digest = hashlib.sha256(before.encode() + statement + own.encode())
            was, line = source[start:end].decode(), text.line(start)
            key = digest.hexdigest()[:12]
            mutants.append(Mutant(name, unit, line, start, end, was, to, kind, key))
    return mutants


def sample(every: Iterable[Mutant], count: int, seed: int, root: Path) -> list[Mutant]:
    """The first ``count`` of the mutants in an order that the seed gives.

    A larger sample begins with a smaller one, and a sample stays what it was, but for
    the mutants of statements that came or went. What is no Python, or the same program,
    is passed over.
    """

    def place(mutant: Mutant) -> bytes:
        return hashlib.sha256(f"{seed} {mutant.key}".encode()).digest()

    chosen: list[Mutant] = []
    for mutant in sorted(every, key=place):
        if len(chosen) == count:
            break
        if differs(mutant, (root / mutant.file).read_bytes()):
            chosen.append(mutant)
    if len(chosen) < count:
        raise PipelineError(f"there are {len(chosen)} mutants, {count} are asked for")
    return chosen


def differs(mutant: Mutant, source: bytes) -> bool:
    """Say whether it is Python, and not the same program."""
    try:
        changed = ast.dump(ast.parse(mutant.applied(source)))
    except SyntaxError:
        return False
    return changed != program(source)


@cache
def program(source: bytes) -> str:
    """Tree of a source as Python reads it; a file is asked for each of its mutants."""
    return ast.dump(ast.parse(source))


class Text:
    """A source in bytes, with places as ``ast`` gives them."""

    def __init__(self, source: bytes):
        self.source = source
        self.starts = [0]
        for line in source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))

    def at(self, line: int, column: int) -> int:
        return self.starts[line - 1] + column

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return (
            self.at(node.lineno, node.col_offset),
            self.at(node.end_lineno, node.end_col_offset),
        )

    def line(self, place: int) -> int:
        return self.source.count(b"\n", 0, place) + 1

    def of(self, node: ast.expr) -> str:
        start, end = self.span(node)
        return self.source[start:end].decode()

    def between(self, left: ast.expr, right: ast.expr, token: str) -> Iterator[int]:
        """Place of the operator between two operands."""
        start, end = self.span(left)[1], self.span(right)[0]
        # In parentheses, so that a new line ends nothing.
        piece = b"(" + self.source[start:end]
        lines = io.BytesIO(piece).readline
        try:
            for each in tokenize.tokenize(lines):
                if each.string == token and each.type != tokenize.COMMENT:
                    row, column = each.start
                    before = piece.splitlines(keepends=True)[: row - 1]
                    # A column counts characters; operators are ASCII, so may texts not.
                    line = piece.splitlines()[row - 1].decode()[:column].encode()
                    yield start - 1 + sum(map(len, before)) + len(line)
                    return
        except tokenize.TokenError:
            return


def _units(tree: ast.Module, text: Text) -> Iterator[tuple[Unit, list[ast.AST]]]:
    """Each statement that computes, with the nodes in it that do."""
    pending: list[tuple[ast.stmt, str, str | None]] = [(s, "", None) for s in tree.body]
    while pending:
        node, scope, function = pending.pop(0)
        inner = [*_statements(node)]
        start, end = text.span(node)
        first, last = node.lineno, node.end_lineno or node.lineno
        if inner and inner[0].lineno > first:  # its head alone
            last, end = inner[0].lineno - 1, text.at(inner[0].lineno, 0)
        within, body = scope, None
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            within = f"{scope}.{node.name}".lstrip(".")
        if isinstance(node, ast.FunctionDef):
            body = (inner[0].lineno, node.end_lineno or last)
        if not (isinstance(node, ast.FunctionDef) and PRINTING.fullmatch(node.name)):
            nodes = [*_computing(node)]
            yield Unit(scope, start, end, (first, last), function, body), nodes
            own = within if isinstance(node, ast.FunctionDef) else function
            pending[:0] = [(each, within, own) for each in inner]


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
    """The statements directly within one."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        elif isinstance(child, ast.ExceptHandler | ast.match_case):
            yield from _statements(child)


def _computing(node: ast.AST) -> Iterator[ast.AST]:
    """Nodes of one statement, without those within others, and what only says."""
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom):
        return
    if isinstance(node, ast.Call) and _name(node.func) in SAYING:
        return
    yield node
    if isinstance(node, ast.keyword) and node.arg in AXES:
        return
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.keyword) and child.arg in IDLE:
                continue
            if isinstance(child, ast.AST) and not isinstance(child, ast.stmt):
                if isinstance(child, ast.ExceptHandler | ast.match_case):
                    continue
                yield from _computing(child)


def _name(function: ast.AST) -> str:
    return getattr(function, "attr", getattr(function, "id", ""))


def _changes(node: ast.AST, text: Text) -> Iterator[tuple[int, int, str, str]]:
    """Start, end, replacement and kind of each change of one node alone."""
    if isinstance(node, ast.BinOp):
        yield from _binary(node, text)
    elif isinstance(node, ast.AugAssign) and type(node.op) in OPERATORS:
        was, to = OPERATORS[type(node.op)]
        for at in text.between(node.target, node.value, f"{was}="):
            yield at, at + len(was) + 1, f"{to}=", "operator"
    elif isinstance(node, ast.BoolOp):
        was, to = OPERATORS[type(node.op)]
        if len(node.values) == 2:  # of three, one alone would bind otherwise
            for at in text.between(node.values[0], node.values[1], was):
                yield at, at + len(was), to, "operator"
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        was, others = COMPARISONS.get(type(node.ops[0]), ("", ()))
        for at in text.between(node.left, node.comparators[0], was) if was else ():
            for to in others:
                yield at, at + len(was), to, "comparison"
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
        start, end = text.span(node)
        yield start, end, f"({text.of(node.operand)})", "sign"
    elif isinstance(node, ast.Constant):
        yield from _constant(node, text)
    elif isinstance(node, ast.keyword) and node.arg in AXES:
        yield from _axis(node.value, text)
    elif isinstance(node, ast.Attribute) and node.attr == "T":
        yield *text.span(node), f"({text.of(node.value)})", "dropped"
    elif isinstance(node, ast.Call):
        yield from _call(node, text)


def _binary(node: ast.BinOp, text: Text) -> Iterator[tuple[int, int, str, str]]:
    left, right = node.left, node.right
    if _wordy(left) or _wordy(right):
        return
    start, end = text.span(node)
    if isinstance(node.op, ast.MatMult):
        to = f"(({text.of(right)}) @ ({text.of(left)}))"
        yield start, end, to, "arguments"
    if type(node.op) in OPERATORS:
        was, to = OPERATORS[type(node.op)]
        for at in text.between(left, right, was):
            yield at, at + len(was), to, "operator"
    if isinstance(node.op, ast.Mult | ast.Div | ast.MatMult):
        yield start, end, f"({text.of(left)})", "dropped"
    if isinstance(node.op, ast.Mult | ast.MatMult):
        yield start, end, f"({text.of(right)})", "dropped"


def _wordy(node: ast.AST) -> bool:
    """Tell whether it is a text."""
    text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return text or isinstance(node, ast.JoinedStr)


def _constant(node: ast.Constant, text: Text) -> Iterator[tuple[int, int, str, str]]:
    value = node.value
    if isinstance(value, bool):
        yield *text.span(node), str(not value), "constant"
    elif isinstance(value, int):
        yield *text.span(node), str(value + 1), "constant"
    elif isinstance(value, float | complex):
        yield *text.span(node), repr(2 * value if value else 1.0), "constant"


def _axis(node: ast.expr, text: Text) -> Iterator[tuple[int, int, str, str]]:
    """The neighboring axis: 1 for 0, −2 for −1."""
    try:
        axis = ast.literal_eval(node)
    except ValueError:
        return
    if isinstance(axis, int):
        to = axis + 1 if axis >= 0 else axis - 1
        yield *text.span(node), str(to), "axis"


def _call(node: ast.Call, text: Text) -> Iterator[tuple[int, int, str, str]]:
    name, (_, end) = _name(node.func), text.span(node.func)
    if name in FUNCTIONS:
        yield end - len(name), end, FUNCTIONS[name], "function"
    if len(node.args) < 2 or name in SYMMETRIC:
        return
    first, second = node.args[:2]
    if any(isinstance(each, ast.Starred) or _wordy(each) for each in (first, second)):
        return
    (start, middle), (after, end) = text.span(first), text.span(second)
    between = text.source[middle:after].decode()
    if text.of(first) != text.of(second):
        to = f"{text.of(second)}{between}{text.of(first)}"
        yield start, end, to, "arguments"
