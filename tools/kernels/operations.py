"""Elementwise operations: what numpy calls them, and what they are in JavaScript."""

from __future__ import annotations

from typing import NamedTuple

# How tightly an expression binds, as in the grammar of JavaScript.
ATOM, UNARY, PRODUCT, SUM, ORDER, EQUALITY, AND, OR = 18, 14, 12, 11, 9, 8, 4, 3


class Operation(NamedTuple):
    """An expression of its operands {0}, {1}, ..., and what it costs beside a sum."""

    text: str
    binds: int = ATOM
    cost: int = 1


# A ufunc of numpy has one line here, or is made of others in ``rules.COMPOSED``.
OPERATIONS = {
    "add": Operation("{0} + {1}", SUM),
    "subtract": Operation("{0} - {1}", SUM),
    "multiply": Operation("{0} * {1}", PRODUCT),
    "divide": Operation("{0} / {1}", PRODUCT, 3),
    "negative": Operation("-{0}", UNARY),
    "power": Operation("Math.pow({0}, {1})", cost=12),
    "absolute": Operation("Math.abs({0})"),
    "sign": Operation("Math.sign({0})"),
    "floor": Operation("Math.floor({0})"),
    "sqrt": Operation("Math.sqrt({0})", cost=4),
    "exp": Operation("Math.exp({0})", cost=8),
    "expm1": Operation("Math.expm1({0})", cost=8),
    "log": Operation("Math.log({0})", cost=8),
    "log1p": Operation("Math.log1p({0})", cost=8),
    "sin": Operation("Math.sin({0})", cost=8),
    "cos": Operation("Math.cos({0})", cost=8),
    "tanh": Operation("Math.tanh({0})", cost=12),
    "arccos": Operation("Math.acos({0})", cost=8),
    "maximum": Operation("Math.max({0}, {1})"),
    "minimum": Operation("Math.min({0}, {1})"),
    "where": Operation("({0} ? {1} : {2})"),
    # Of truth values or with one; in an array they are 0 and 1.
    "less": Operation("{0} < {1}", ORDER),
    "less_equal": Operation("{0} <= {1}", ORDER),
    "greater": Operation("{0} > {1}", ORDER),
    "greater_equal": Operation("{0} >= {1}", ORDER),
    "equal": Operation("{0} == {1}", EQUALITY),
    "not_equal": Operation("{0} != {1}", EQUALITY),
    "logical_and": Operation("{0} && {1}", AND),
    "logical_or": Operation("{0} || {1}", OR),
    "logical_not": Operation("!{0}", UNARY),
    "isfinite": Operation("Number.isFinite({0})"),
    "isnan": Operation("Number.isNaN({0})"),
}

# How a reduction starts, and how it goes on with the next term.
REDUCTIONS = {
    "sum": ("0", "add"),
    "max": ("-Infinity", "maximum"),
    "min": ("Infinity", "minimum"),
    "all": ("true", "logical_and"),
    "any": ("false", "logical_or"),
}


def expression(name: str, operands: list[tuple[str, int]]) -> tuple[str, int]:
    """Text of an operation and how it binds, from those of its operands."""
    operation = OPERATIONS[name]
    written = []
    for place, (text, binds) in enumerate(operands):
        needed = operation.binds + (place > 0 or operation.binds == UNARY)
        bare = operation.binds == ATOM or binds >= needed
        written.append(text if bare else f"({text})")
    return operation.text.format(*written), operation.binds


def number(value: float | bool) -> tuple[str, int]:
    """A number that JavaScript reads as the same one."""
    if isinstance(value, bool):
        return str(value).lower(), ATOM
    if value != value:
        return "NaN", ATOM
    size = abs(value)
    if size == float("inf"):
        text = "Infinity"
    elif size == int(size) and size < 2**53:
        text = str(int(size))
    else:
        text = repr(size)
    negative = value < 0 or str(value) == "-0.0"
    return (f"-{text}", UNARY) if negative else (text, ATOM)
