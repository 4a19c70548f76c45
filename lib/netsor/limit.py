"""The infinite-width limit of a program of wide vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.special import ndtri

from lib.core.checks import Array
from lib.core.psd import canonical_columns, gram_root
from lib.core.quadrature import sobol
from lib.netsor.lines import (
    DOT,
    FUNCTION,
    INPUT,
    PRODUCT,
    Line,
    Output,
    apply,
    roots_of,
)

_BLOCK = 2**14  # draws held at a time, few enough for the cache of a processor
_POINTS = 2**16  # quasi-random points for the means of nonlinear functions
_GIVEN = 2**11  # those for means given the scalars, one for each draw
_CERTAIN = 1e-10  # a conditional variance below this share counts as zero


@dataclass
class _Family:
    """Lines that are jointly Gaussian: inputs, products of one matrix, or scalars."""

    members: list[int] = field(default_factory=list)
    covariance: list[list[float]] = field(default_factory=list)
    factor: list[Array] = field(default_factory=list)
    normals: list[Array] = field(default_factory=list)

    def add(self, number: int, row: list[float], normal: Array) -> Array:
        """Append a line with these covariances; its values at the points."""
        coefficients = np.zeros(len(row))  # a row of the Cholesky factor
        for k, before in enumerate(self.factor):
            rest = row[k] - coefficients[:k] @ before[:k]
            coefficients[k] = rest / before[k] if before[k] else 0.0
        rest = row[-1] - coefficients @ coefficients
        coefficients[-1] = np.sqrt(rest) if rest > _CERTAIN * row[-1] else 0.0
        for earlier, entry in zip(self.covariance, row[:-1], strict=True):
            earlier.append(entry)
        self.covariance.append(list(row))
        self.members.append(number)
        self.factor.append(coefficients)
        self.normals.append(normal)
        return np.asarray(coefficients @ np.stack(self.normals))

    def entry(self, one: int, two: int) -> float:
        """Covariance of two members."""
        return self.covariance[self.members.index(one)][self.members.index(two)]

    def root(self, numbers: Sequence[int]) -> Array:
        """Root of the covariance matrix of some members, shape (k, k)."""
        places = [self.members.index(number) for number in numbers]
        matrix = np.array(self.covariance)[np.ix_(places, places)]
        return canonical_columns(gram_root(matrix))


class Limit:
    """Covariances of a program in the limit, and draws of it.

    One pass in the order of the lines: the covariances of Gaussian variables follow
    from those before, the means of nonlinear functions are taken over Sobol' points.

    Parameters
    ----------
    lines : sequence of Line
    inputs : sequence of ndarray
        Covariance of each block of inputs.
    variances : sequence of float
        n times the variance of the entries of each matrix.
    """

    def __init__(
        self, lines: Sequence[Line], inputs: Sequence[Array], variances: Sequence[float]
    ) -> None:
        self._lines, self._inputs, self._variances = lines, inputs, variances
        self._families: dict[tuple[str, int], _Family] = {}
        self._values: dict[int, Array] = {}
        self._undefined: dict[int, str] = {}
        gaussian = sum(line.kind != FUNCTION for line in lines)
        normals = iter(_normals(max(gaussian, 1)))
        for number, line in enumerate(lines):
            reason = self._why_undefined(line)
            if reason:
                self._undefined[number] = reason
            elif line.kind == FUNCTION:
                self._values[number] = apply(number, line, self._values)
            else:
                family = self._families.setdefault((line.kind, line.source), _Family())
                row = [self._covariance(k, number) for k in [*family.members, number]]
                self._values[number] = family.add(number, row, next(normals))

    def require(self, number: int) -> None:
        """Raise ValueError for a line that has no limit of this kind."""
        if number in self._undefined:
            raise ValueError(
                f"outputs: {self._lines[number].name} has no limit here, because"
                f" {self._undefined[number]}"
            )

    def moment(self, one: int, two: int) -> float:
        """E[Z Z'] of two lines."""
        first, second = self._lines[one], self._lines[two]
        if FUNCTION in (first.kind, second.kind):
            return float(np.mean(self._values[one] * self._values[two]))
        if (first.kind, first.source) != (second.kind, second.source):
            return 0.0
        return self._families[first.kind, first.source].entry(one, two)

    def sample(
        self, outputs: Sequence[Output], size: int, rng: np.random.Generator
    ) -> Array:
        """Joint draws of the variables of some outputs, shape (size, len(outputs)).

        The variable of an average is its conditional mean given the scalars.
        """
        averages = [out for out in outputs if isinstance(out, Line)]
        functions, gaussian = self._split([k for k in outputs if isinstance(k, int)])
        given, fixed = self._split(roots_of(averages))
        for key, numbers in fixed.items():
            if key[0] == DOT:
                gaussian[key] = sorted({*gaussian.get(key, []), *numbers})
        points = self._points({k: v for k, v in fixed.items() if k[0] != DOT})
        roots = [
            (numbers, self._families[key].root(numbers))
            for key, numbers in sorted(gaussian.items())
        ]
        drawn = np.empty((size, len(outputs)))
        block = _BLOCK // 64 if averages else _BLOCK
        for start in range(0, size, block):
            draws = min(block, size - start)
            values: dict[int, Array] = {}
            for numbers, root in roots:
                normals = root @ rng.standard_normal((len(numbers), draws))
                values |= dict(zip(numbers, normals, strict=True))
            scalars = {
                number: values[number][:, None]
                for key, numbers in fixed.items()
                if key[0] == DOT
                for number in numbers
            }
            means = points | scalars
            for table, numbers in ((values, functions), (means, given)):
                for number in numbers:
                    table[number] = apply(number, self._lines[number], table)
            for column, out in enumerate(outputs):
                drawn[start : start + draws, column] = (
                    apply(None, out, means).mean(axis=-1)
                    if isinstance(out, Line)
                    else values[out]
                )
        return drawn

    def _points(self, families: dict[tuple[str, int], list[int]]) -> dict[int, Array]:
        """Values of Gaussian variables at quasi-random points, one row each."""
        count = sum(len(numbers) for numbers in families.values())
        normals = iter(_normals(max(count, 1), _GIVEN))
        values: dict[int, Array] = {}
        for key, numbers in sorted(families.items()):
            own = np.stack([next(normals) for _ in numbers])
            rows = self._families[key].root(numbers) @ own
            values |= {k: row[None] for k, row in zip(numbers, rows, strict=True)}
        return values

    def _split(
        self, outputs: Sequence[int]
    ) -> tuple[list[int], dict[tuple[str, int], list[int]]]:
        """Functions to compute in order, and Gaussian variables to draw by family."""
        functions: set[int] = set()
        gaussian: dict[tuple[str, int], set[int]] = {}
        rest = list(outputs)
        while rest:
            number = rest.pop()
            line = self._lines[number]
            if line.kind == FUNCTION:
                if number not in functions:
                    functions.add(number)
                    rest.extend(line.args)
            else:
                gaussian.setdefault((line.kind, line.source), set()).add(number)
        return sorted(functions), {key: sorted(k) for key, k in gaussian.items()}

    def _covariance(self, one: int, two: int) -> float:
        """Covariance of two lines of one family, from those of their arguments."""
        first, second = self._lines[one], self._lines[two]
        if first.kind == INPUT:
            return float(self._inputs[first.source][first.place, second.place])
        if first.kind == PRODUCT:
            variance = self._variances[first.source]
            return variance * self.moment(first.args[0], second.args[0])
        # Wick's formula; the two factors of a scalar are independent of one another.
        (a, b), (c, d) = first.args, second.args
        straight = self.moment(a, c) * self.moment(b, d)
        return straight + self.moment(a, d) * self.moment(b, c)

    def _why_undefined(self, line: Line) -> str:
        """Reason of a line that has no limit of this kind, or nothing."""
        for arg in line.args:
            if arg in self._undefined:
                return self._undefined[arg]
        if line.kind == PRODUCT and line.random:
            return f"{line.text} multiplies what depends on a dot product"
        if line.kind != DOT:
            return ""
        one, two = (self._lines[arg] for arg in line.args)
        if one.kind != PRODUCT or two.kind != PRODUCT:
            return f"{line.text} has a factor that is not a matrix product"
        if one.source == two.source:
            return f"the mean of {line.text}, whose factors share a matrix, diverges"
        return ""


def _normals(count: int, size: int = _POINTS) -> Array:
    """Columns of quasi-random standard normals, shape (count, size).

    Each one takes the centers of equally likely cells, so that it is symmetric, and is
    scaled to variance 1 for what the outermost cells lack.
    """
    points = next(sobol(count, size, replicates=1)).T
    normals = ndtri((np.floor(points * size) + 0.5) / size)
    return np.asarray(normals / normals.std(axis=1, keepdims=True))
