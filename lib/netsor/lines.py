"""The lines of a program: what runs them, and what the theorem asks of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lib.core.checks import Array

_WEIGHTS = 2**21  # entries of random matrices held at a time
INPUT, PRODUCT, FUNCTION, DOT = "input", "product", "function", "dot"
AVERAGE = "average"  # of a function over coordinates; no line of a program


@dataclass(frozen=True)
class Line:
    """One line of a program: what it makes, of what, and how.

    Attributes
    ----------
    kind : str
        INPUT, PRODUCT, FUNCTION or DOT; AVERAGE for an output that is no line.
    name, text : str
        Name of what it makes; the whole line.
    args : tuple of int
        Lines of its arguments.
    source : int
        Number of the matrix of a product, of the block of an input.
    place : int
        Place of an input in its block.
    f : callable or None
        The function of a FUNCTION or AVERAGE, and whether it is bounded.
    random : bool
        Whether it depends on a scalar of an earlier line.
    """

    kind: str
    name: str
    text: str
    args: tuple[int, ...] = ()
    source: int = 0
    place: int = 0
    f: Callable[..., Any] | None = None
    bounded: bool = False
    random: bool = False


Output = int | Line  # number of a line, or an AVERAGE


def roots_of(outputs: Iterable[Output]) -> list[int]:
    """Numbers of the lines that the outputs are, or are averages of."""
    parts = (out.args if isinstance(out, Line) else (out,) for out in outputs)
    return [number for part in parts for number in part]


def needed(lines: Sequence[Line], outputs: Iterable[Output]) -> set[int]:
    """Lines that the outputs depend on, themselves included."""
    reached: set[int] = set()
    rest = roots_of(outputs)
    while rest:
        number = rest.pop()
        if number not in reached:
            reached.add(number)
            rest.extend(lines[number].args)
    return reached


def apply(number: int | None, line: Line, values: Mapping[int, Array]) -> Array:
    """Values of a function, after a check of what the user's function returned.

    ``number`` is that of the line of a FUNCTION; an AVERAGE has none.
    """
    assert line.f is not None
    arguments = [values[arg] for arg in line.args]
    result = np.asarray(line.f(*arguments))
    shape = np.broadcast_shapes(*(argument.shape for argument in arguments))
    wrong = result.dtype.kind not in "fiub" or result.shape != shape
    if wrong or not np.isfinite(result).all():
        kind = (
            f"shape {result.shape} and dtype {result.dtype}" if wrong else "inf or NaN"
        )
        where = "" if number is None else f"line {number + 1}, "
        raise ValueError(
            f"{where}{line.text}: f must return finite numbers of shape"
            f" {shape}, got {kind}"
        )
    return result.astype(np.float64, copy=False)


def run_finite(
    lines: Sequence[Line],
    roots: Sequence[Array],
    variances: Sequence[float],
    outputs: Sequence[Output],
    width: int,
    size: int,
    rng: np.random.Generator,
) -> Array:
    """Outputs of networks with real matrices, shape (size, len(outputs))."""
    wanted = needed(lines, outputs)
    matrices = {lines[k].source for k in wanted if lines[k].kind == PRODUCT}
    step = max(1, _WEIGHTS // (width**2 * max(len(matrices), 1)))
    drawn = np.empty((size, len(outputs)))
    for start in range(0, size, step):
        networks = min(step, size - start)
        weights = {
            k: rng.standard_normal((networks, width, width))
            * np.sqrt(variances[k] / width)
            for k in sorted(matrices)
        }
        blocks = {
            k: rng.standard_normal((networks, width, root.shape[1])) @ root.T
            for k, root in enumerate(roots)
        }
        values: dict[int, Array] = {}
        for number in sorted(wanted):
            line = lines[number]
            if line.kind == INPUT:
                values[number] = blocks[line.source][..., line.place]
            elif line.kind == PRODUCT:
                h = values[line.args[0]][..., None]
                values[number] = (weights[line.source] @ h)[..., 0]  # (networks, n)
            elif line.kind == DOT:
                one, two = (values[arg] for arg in line.args)
                scalar = (one * two).sum(axis=-1, keepdims=True)
                values[number] = scalar / np.sqrt(width)  # (networks, 1)
            else:
                values[number] = apply(number, line, values)
        for column, out in enumerate(outputs):
            if isinstance(out, Line):
                sampled = apply(None, out, values).mean(axis=-1)
            else:
                sampled = values[out][:, 0]
            drawn[start : start + networks, column] = sampled
    return drawn


def violations(lines: Sequence[Line]) -> list[str]:
    """The hypotheses that the lines violate; each names its line, counted from 1."""
    reasons = []
    for number, line in enumerate(lines, 1):
        where = f"line {number}, {line.text}: "
        if line.kind == PRODUCT and line.random:
            reasons.append(where + "its argument depends on a dot product")
        if line.kind == DOT:
            reasons += [where + reason for reason in _of_scalar(lines, line)]
    return reasons


def _of_scalar(lines: Sequence[Line], line: Line) -> Iterator[str]:
    """Say what is wrong with a scalar and its factors."""
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
