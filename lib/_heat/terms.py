"""The components of a Gaussian mixture at points: logarithms, tails, quantiles."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr, logsumexp, ndtri_exp

from lib._checks import Array

_SQRT_2PI = np.sqrt(2 * np.pi)
_CLOSE = 1e-13  # relative step of Newton's method after which one more is exact
_MOST = 500  # bisections alone would need fewer


class Terms(NamedTuple):
    """Means, variances and weights (C,); a first axis C meets the points."""

    means: Array
    variances: Array
    weights: Array

    def roots(self, x: Array) -> Array:
        """Standard deviations, shaped to meet x."""
        return _shaped(np.sqrt(self.variances), x)

    def standard(self, x: Array) -> Array:
        """(x − μ_c)/√s_c, shape (C, ...)."""
        return np.asarray((x - _shaped(self.means, x)) / self.roots(x))

    def logs(self, x: Array) -> Array:
        """Logarithms of the terms of the density, shape (C, ...)."""
        with np.errstate(over="ignore"):  # a square beyond the range has density 0
            squares = np.square(self.standard(x))
        scale = np.log(self.weights / _SQRT_2PI) - np.log(self.variances) / 2
        return np.asarray(_shaped(scale, x) - squares / 2)

    def log_tail(self, standard: Array) -> Array:
        """Logarithm of the lower tail at standardized points (C, ...)."""
        logs = log_ndtr(standard) + _shaped(np.log(self.weights), standard[0])
        return np.asarray(logsumexp(logs, axis=0))

    def quantile(self, logs: Array, upper: npt.NDArray[np.bool_]) -> Array:
        """Where the lower tail, or the upper one, has a probability of that logarithm.

        A Newton step for log F or log(1 − F) that leaves the bracket is replaced by a
        bisection.
        """
        side = np.where(upper, -1.0, 1.0)  # an upper tail is the lower one of −x
        roots = self.roots(logs)
        ends = side * _shaped(self.means, logs) + roots * ndtri_exp(logs)
        least = roots.min()
        slack = 1e-9 * (np.abs(ends).max(axis=0) + least)  # the ends are rounded
        low, high = ends.min(axis=0) - slack, ends.max(axis=0) + slack
        y = (low + high) / 2
        for _ in range(_MOST):
            tail = self.log_tail(side * self.standard(side * y))
            slope = logsumexp(self.logs(side * y), axis=0) - tail
            low, high = np.where(tail < logs, y, low), np.where(tail > logs, y, high)
            # On a plateau of F the step is infinite or undefined: bisection follows.
            with np.errstate(over="ignore", invalid="ignore"):
                newton = y - (tail - logs) * np.exp(-slope)
            # In the logarithm of the probability, or in the quantile itself.
            done = np.abs(tail - logs) <= _CLOSE * np.maximum(1, -logs)
            done |= np.abs(newton - y) <= _CLOSE * (np.abs(y) + least)
            inside = (newton > low) & (newton < high)
            y = np.where(inside, newton, np.where(done, y, (low + high) / 2))
            if done.all():
                return np.asarray(side * y)
        raise ArithmeticError("a quantile was not found")


def _shaped(values: Array, x: Array) -> Array:
    """Values (C,) of the components, ready to meet x along a first axis."""
    return values.reshape(-1, *[1] * x.ndim)
