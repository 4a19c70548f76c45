"""Elementwise operations: what numpy calls them, and what they are in JavaScript."""

from __future__ import annotations

import json
from typing import NamedTuple

Text = tuple[str, int]  # an expression, and how tightly it binds
# As in the grammar of JavaScript.
ATOM, UNARY, PRODUCT, SUM, ORDER, EQUALITY, AND, OR = 18, 14, 12, 11, 9, 8, 4, 3


class Operation(NamedTuple):
    """An expression of its operands {0}, {1}, ..., and what it costs beside a sum."""

    text: str
    binds: int = ATOM
    cost: int = 1


def _infix(binds: int, cost: int = 1, **signs: str) -> dict[str, Operation]:
    return {k: Operation(f"{{0}} {v} {{1}}", binds, cost) for k, v in signs.items()}


def _math(cost: int, **names: str) -> dict[str, Operation]:
    return {k: Operation(f"Math.{v}({{0}})", ATOM, cost) for k, v in names.items()}


# A ufunc of numpy is here, or is made of others in ``recorder.RULES``. Truth values are
# 0 and 1 in an array.
OPERATIONS = {
    **_infix(SUM, add="+", subtract="-"),
    **_infix(PRODUCT, multiply="*"),
    **_infix(PRODUCT, 3, divide="/"),
    **_infix(ORDER, less="<", less_equal="<=", greater=">", greater_equal=">="),
    **_infix(EQUALITY, equal="==", not_equal="!="),
    **_infix(AND, logical_and="&&"),
    **_infix(OR, logical_or="||"),
    **_math(1, absolute="abs", sign="sign", floor="floor"),
    **_math(4, sqrt="sqrt"),
    **_math(8, exp="exp", expm1="expm1", log="log", log1p="log1p"),
    **_math(8, sin="sin", cos="cos", arccos="acos"),
    **_math(12, tanh="tanh"),
    "negative": Operation("-{0}", UNARY),
    "logical_not": Operation("!{0}", UNARY),
    "power": Operation("Math.pow({0}, {1})", cost=12),
    "maximum": Operation("Math.max({0}, {1})"),
    "minimum": Operation("Math.min({0}, {1})"),
    "where": Operation("({0} ? {1} : {2})"),
    "isfinite": Operation("Number.isFinite({0})"),
    "isnan": Operation("Number.isNaN({0})"),
}

# How a reduction starts, and the operation that takes up the next term.
REDUCTIONS = {
    "sum": ("0", "add"),
    "max": ("-Infinity", "maximum"),
    "min": ("Infinity", "minimum"),
    "all": ("true", "logical_and"),
    "any": ("false", "logical_or"),
}


def applied(name: str, *operands: Text) -> Text:
    """An operation on expressions."""
    operation = OPERATIONS[name]
    written = []
    for place, (text, binds) in enumerate(operands):
        needed = operation.binds + (place > 0 or operation.binds == UNARY)
        bare = operation.binds == ATOM or binds >= needed
        written.append(text if bare else f"({text})")
    return operation.text.format(*written), operation.binds


def number(value: float | bool) -> Text:
    """A number that JavaScript reads as the same one."""
    text = json.dumps(value).removesuffix(".0")
    return text, UNARY if text.startswith("-") else ATOM
