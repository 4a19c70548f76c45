"""What the theorem on scalars asks of a program, line by line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lib._netsor.program import DOT, PRODUCT, Line


def violations(lines: Sequence[Line]) -> list[str]:
    """The hypotheses that the lines violate; each names its line, counted from 1."""
    found = []
    for number, line in enumerate(lines, 1):
        where = f"line {number}, {line.text}: "
        if line.kind == PRODUCT and line.random:
            found.append(where + "its argument depends on a dot product")
        if line.kind == DOT:
            found += [where + reason for reason in _of_scalar(lines, line)]
    return found


def _of_scalar(lines: Sequence[Line], line: Line) -> Iterator[str]:
    """What is wrong with a scalar and its factors."""
    factors = [lines[k] for k in line.args]
    products = [factor for factor in factors if factor.kind == PRODUCT]
    for factor in factors:
        if factor.kind != PRODUCT:
            yield f"the factor {factor.name} is not a matrix product"
    for factor in products:
        inner = lines[factor.args[0]]
        if not inner.bounded:
            yield f"{inner.name} in {factor.text} is not declared bounded"
    if len(products) == 2 and products[0].source == products[1].source:
        yield f"both factors use the matrix W{products[0].source + 1}"
    for source in sorted({factor.source for factor in products}):
        for other in _used_elsewhere(lines, source):
            yield f"its matrix W{source + 1} is also used in {other}"
    if line.random:
        yield "it depends on another dot product"


def _used_elsewhere(lines: Sequence[Line], source: int) -> list[str]:
    """Lines that use a matrix and are no factor of a scalar."""
    factors = {k for line in lines if line.kind == DOT for k in line.args}
    return [
        f"line {k + 1}, {line.text}"
        for k, line in enumerate(lines)
        if line.kind == PRODUCT and line.source == source and k not in factors
    ]
