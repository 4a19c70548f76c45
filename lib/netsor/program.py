"""Programs of wide vectors, written line by line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from lib.core.checks import (
    Array,
    require_count,
    require_flag,
    require_generator,
    require_positive,
)
from lib.core.psd import canonical_root, require_gram
from lib.netsor.limit import Limit
from lib.netsor.lines import (
    AVERAGE,
    DOT,
    FUNCTION,
    INPUT,
    PRODUCT,
    Line,
    Output,
    roots_of,
    run_finite,
    violations,
)


@dataclass(frozen=True)
class Vector:
    """A vector of a program, made by its methods; ``line`` counts from 0."""

    program: Program = field(repr=False)
    line: int


@dataclass(frozen=True)
class Scalar:
    """A scalar of a program, made by :meth:`Program.dot`; ``line`` counts from 0."""

    program: Program = field(repr=False)
    line: int


@dataclass(frozen=True)
class Average:
    """An average over coordinates, made by :meth:`Program.average`."""

    program: Program = field(repr=False)
    line: Line


@dataclass(frozen=True)
class Matrix:
    """A random n × n matrix of a program, made by :meth:`Program.matrix`."""

    program: Program = field(repr=False)
    number: int


class Program:
    """A program of wide vectors, written by calling its methods in order.

    Printed, it lists its lines with their numbers.
    """

    def __init__(self) -> None:
        self._lines: list[Line] = []
        self._covariances: list[Array] = []
        self._variances: list[float] = []
        self._limit: Limit | None = None

    def __str__(self) -> str:
        return "\n".join(f"{k:3}  {line.text}" for k, line in enumerate(self._lines, 1))

    @property
    def scalars(self) -> list[Scalar]:
        """The scalars, in the order of their lines."""
        lines = enumerate(self._lines)
        return [Scalar(self, k) for k, line in lines if line.kind == DOT]

    def inputs(self, cov: npt.ArrayLike) -> list[Vector]:
        """Initial vectors whose coordinates are independent copies of N(0, cov).

        Parameters
        ----------
        cov : array_like, shape (k, k)
            Positive semidefinite.

        Returns
        -------
        list of Vector
            k of them.

        Raises
        ------
        ValueError
            For a matrix that is not such a covariance or has entries beyond 1e100.
        """
        covariance = require_gram("cov", cov).copy()
        block = len(self._covariances)
        self._covariances.append(covariance)
        made = []
        for place in range(len(covariance)):
            name = self._name("x", INPUT)
            text = f"{name} = input with variance {covariance[place, place]:g}"
            made.append(self._add(Line(INPUT, name, text, source=block, place=place)))
        return made

    def matrix(self, var: float = 1.0) -> Matrix:
        """A matrix of independent N(0, var/n); to use it twice ties the weights.

        Raises ValueError for a variance that is not a positive number up to 1e100.
        """
        variance = require_positive("var", var)
        if variance > 1e100:
            raise ValueError(f"var must not exceed 1e+100, got {var!r}")
        self._variances.append(variance)
        return Matrix(self, len(self._variances) - 1)

    def matmul(self, W: Matrix, h: Vector) -> Vector:
        """The vector g = Wh.

        Raises ValueError for a matrix or a vector that is not of this program.
        """
        if not isinstance(W, Matrix) or W.program is not self:
            raise ValueError(f"W must be a matrix of this program, got {W!r}")
        argument = self._require("h", h, (Vector,))
        name = self._name("g", PRODUCT)
        text = f"{name} = W{W.number + 1} {self._lines[argument].name}"
        return self._add(Line(PRODUCT, name, text, (argument,), W.number))

    def nonlin(
        self, f: Callable[..., Any], *args: Vector | Scalar, bounded: bool = False
    ) -> Vector:
        """The vector of all f(·), coordinate by coordinate; scalars go to each.

        Parameters
        ----------
        f : callable
            Called with arrays, one for each of ``args``, of shapes that broadcast; it
            must return one number for each coordinate. The theorem asks that it be
            pseudo-Lipschitz: its slope grows at most like a polynomial.
        args : Vector or Scalar
            At least one vector.
        bounded : bool
            Whether f is bounded; it is taken at its word.

        Returns
        -------
        Vector

        Raises
        ------
        ValueError
            For arguments that are not of this program, or no vector among them.
        """
        bounded = require_flag("bounded", bounded)
        name = self._name("h", FUNCTION)
        return self._add(self._called(FUNCTION, name, f, args, bounded))

    def average(self, f: Callable[..., Any], *args: Vector | Scalar) -> Average:
        r"""The average of f(·) over all coordinates, an output that is no line.

        .. math:: \frac1n \sum_{\alpha=1}^n f(h^1_\alpha, \dots, h^k_\alpha)

        :meth:`finite` computes it in networks, :meth:`limit` draws what it tends to:
        :math:`\mathbb E[f(Z^{h^1}, \dots, Z^{h^k}) \mid p^\circ]`, the mean given the
        scalars. The theorem asks that f be bounded and pseudo-Lipschitz.

        Parameters
        ----------
        f : callable
            As in :meth:`nonlin`.
        args : Vector or Scalar
            At least one vector.

        Returns
        -------
        Average

        Raises
        ------
        ValueError
            As :meth:`nonlin`.
        """
        return Average(self, self._called(AVERAGE, "average", f, args))

    def dot(self, g1: Vector, g2: Vector) -> Scalar:
        """The scalar p = ⟨g1, g2⟩/√n.

        Raises ValueError for a vector that is not of this program.
        """
        numbers = self._require("g1", g1, (Vector,)), self._require("g2", g2, (Vector,))
        name = self._name("p", DOT)
        text = f"{name} = dot({', '.join(self._lines[k].name for k in numbers)})"
        return Scalar(self, self._add(Line(DOT, name, text, numbers)).line)

    def check(self) -> list[str]:
        """The hypotheses of the theorem that the program violates; none if it applies.

        For each scalar: its factors are matrix products, of different matrices, with
        bounded vectors; their matrices serve for nothing but factors of scalars; and
        neither scalars nor matrix products depend on a scalar. That the functions
        are pseudo-Lipschitz, and bounded where they are said to be, is not checked.

        Returns
        -------
        list of str
            Each names a line, as it is numbered by ``print``.
        """
        return violations(self._lines)

    def finite(
        self,
        width: int,
        outputs: Sequence[Vector | Scalar | Average],
        *,
        size: int,
        rng: np.random.Generator,
    ) -> Array:
        """Networks of a width with real matrices.

        Of vectors their first coordinates; scalars and averages as they are.

        Parameters
        ----------
        width : int
            n, up to 8192.
        outputs : list of Vector, Scalar or Average
        size : int
            Number of networks.
        rng : numpy.random.Generator

        Returns
        -------
        ndarray, shape (size, len(outputs))

        Raises
        ------
        ValueError
            For counts below 1, outputs that are not of this program, or a function
            that returns something else than finite numbers of the right shape.
        """
        width = require_count("width", width, most=2**13)
        numbers = self._require_outputs(outputs)
        size = require_count("size", size)
        require_generator("rng", rng)
        roots = [canonical_root(covariance) for covariance in self._covariances]
        return run_finite(
            self._lines, roots, self._variances, numbers, width, size, rng
        )

    def limit(
        self,
        outputs: Sequence[Vector | Scalar | Average],
        *,
        size: int,
        strict: bool = True,
        rng: np.random.Generator,
    ) -> Array:
        """Joint draws of the limits of vectors (one coordinate), scalars and averages.

        Parameters
        ----------
        outputs : list of Vector, Scalar or Average
        size : int
            Number of draws.
        strict : bool
            Whether to refuse programs that :meth:`check` objects to. Else the formulas
            are evaluated as long as they make sense, proved or not.
        rng : numpy.random.Generator

        Returns
        -------
        ndarray, shape (size, len(outputs))

        Raises
        ------
        ValueError
            For a program that violates a hypothesis, a size below 1, outputs that are
            not of this program, or a function that returns something else than finite
            numbers of the right shape.
        """
        numbers = self._require_outputs(outputs)
        size = require_count("size", size)
        require_generator("rng", rng)
        return self._limiting(roots_of(numbers), strict).sample(numbers, size, rng)

    def kernel(
        self, one: Vector | Scalar, two: Vector | Scalar, *, strict: bool = True
    ) -> float:
        """E[Z Z'] of two vectors in the limit, or Cov(p, p') of two scalars.

        Parameters
        ----------
        one, two : Vector or Scalar
        strict : bool
            As in :meth:`limit`.

        Returns
        -------
        float
            Exact for inputs, products and scalars made of them; means of nonlinear
            functions are taken over 65,536 Sobol' points.

        Raises
        ------
        ValueError
            As :meth:`limit`.
        """
        first = self._require("one", one, (Vector, Scalar))
        second = self._require("two", two, (Vector, Scalar))
        return self._limiting((first, second), strict).moment(first, second)

    def _limiting(self, numbers: Sequence[int], strict: bool) -> Limit:
        strict = require_flag("strict", strict)
        violated = self.check()
        if strict and violated:
            more = f", and {len(violated) - 1} more" if len(violated) > 1 else ""
            raise ValueError(f"the theorem does not apply: {violated[0]}{more}")
        if self._limit is None:
            self._limit = Limit(
                tuple(self._lines), tuple(self._covariances), tuple(self._variances)
            )
        for number in numbers:
            self._limit.require(number)
        return self._limit

    def _require(
        self, name: str, value: object, kinds: tuple[type[Vector] | type[Scalar], ...]
    ) -> int:
        if isinstance(value, Vector | Scalar) and isinstance(value, kinds):
            if value.program is self:
                return value.line
            raise ValueError(f"{name} is {value!r} of another program")
        words = " or ".join(kind.__name__.lower() for kind in kinds)
        raise ValueError(f"{name} must be a {words} of this program, got {value!r}")

    def _require_outputs(self, outputs: object) -> list[Output]:
        if not isinstance(outputs, list | tuple) or not outputs:
            raise ValueError(f"outputs must be a list of vectors, got {outputs!r}")
        return [self._require_output(out) for out in outputs]

    def _require_output(self, output: object) -> Output:
        if isinstance(output, Average) and output.program is self:
            return output.line
        return self._require("outputs", output, (Vector, Scalar))

    def _called(
        self,
        kind: str,
        name: str,
        f: object,
        args: tuple[object, ...],
        bounded: bool = False,
    ) -> Line:
        """A function of vectors and scalars, as a line."""
        if not callable(f):
            raise ValueError(f"f must be a function, got {f!r}")
        numbers = tuple(self._require("args", arg, (Vector, Scalar)) for arg in args)
        if not any(isinstance(arg, Vector) for arg in args):
            raise ValueError(f"args must contain a vector, got {args!r}")
        word = getattr(f, "__name__", "f")
        text = f"{name} = {word}({', '.join(self._lines[k].name for k in numbers)})"
        return Line(kind, name, text, numbers, f=f, bounded=bounded)

    def _name(self, letter: str, kind: str) -> str:
        return f"{letter}{sum(line.kind == kind for line in self._lines) + 1}"

    def _add(self, line: Line) -> Vector:
        before = [self._lines[k] for k in line.args]
        random = any(arg.kind == DOT or arg.random for arg in before)
        self._lines.append(replace(line, random=random))
        self._limit = None
        return Vector(self, len(self._lines) - 1)
