"""Gaussian mixtures on the line, exact under the heat flow."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.polynomial.hermite_e import hermeval
from scipy.special import log_ndtr, logsumexp, ndtr, ndtri_exp

from lib.core.checks import (
    LARGEST,
    Array,
    as_float,
    require_count,
    require_finite,
    require_generator,
    require_moderate,
    require_number,
    require_positive,
    require_weights,
)

_SQRT_2PI = np.sqrt(2 * np.pi)
_CLOSE = 1e-13  # relative step of Newton's method after which one more is exact
_MOST = 500  # bisections alone would need fewer


class Components(NamedTuple):
    """Means, variances and weights (C,); a first axis C meets the points."""

    means: Array
    variances: Array
    weights: Array

    def roots(self, x: Array) -> Array:
        """Standard deviations, shaped to meet x."""
        return _shaped(np.sqrt(self.variances), x)

    def standard(self, x: Array) -> Array:
        """(x − μ_c)/√s_c, shape (C, ...)."""
        standard = x - _shaped(self.means, x)
        standard /= self.roots(x)
        return standard

    def logs(self, x: Array) -> Array:
        """Logarithms of the terms of the density, shape (C, ...)."""
        return self._logs(self.standard(x))

    def _logs(self, standard: Array) -> Array:
        """The same at standardized points (C, ...)."""
        with np.errstate(over="ignore"):  # a square beyond the range has density 0
            logs = np.square(standard)
        logs *= -0.5
        scale = np.log(self.weights / _SQRT_2PI) - np.log(self.variances) / 2
        logs += _shaped(scale, standard[0])
        return logs

    def density(self, x: Array) -> Array:
        """Density of the mixture, of the shape of x."""
        return np.asarray(np.exp(self.logs(x)).sum(axis=0))

    def score(self, x: Array) -> Array:
        """Derivative of its logarithm, of the shape of x; not finite too far away."""
        pulls = self.standard(x)  # (C, ...)
        share = self._logs(pulls)
        with np.errstate(over="ignore", invalid="ignore"):
            share -= share.max(axis=0)
            np.exp(share, out=share)
            pulls /= -self.roots(x)
            pulls *= share
            return np.asarray(pulls.sum(axis=0) / share.sum(axis=0))

    def heated(self, t: float) -> Components:
        """The components after time t of the heat flow."""
        return self._replace(variances=self.variances + t)

    def log_tail(self, standard: Array) -> Array:
        """Logarithm of the lower tail at standardized points (C, ...)."""
        logs = log_ndtr(standard) + _shaped(np.log(self.weights), standard[0])
        return np.asarray(logsumexp(logs, axis=0))

    def quantile(self, logs: Array, upper: npt.NDArray[np.bool_]) -> Array:
        """Points where the lower tail, or the upper one, has that logarithm.

        A Newton step for log F or log(1 − F) that leaves the bracket is replaced by a
        bisection. One more step follows where the point is found, and the best is
        kept: between narrow components that step can leave a plateau of F.
        """
        side = np.where(upper, -1.0, 1.0)  # an upper tail is the lower one of −x
        roots = self.roots(logs)
        ends = side * _shaped(self.means, logs) + roots * ndtri_exp(logs)
        least = roots.min()
        slack = 1e-9 * (np.abs(ends).max(axis=0) + least)  # the ends are rounded
        low, high = ends.min(axis=0) - slack, ends.max(axis=0) + slack
        y = best = (low + high) / 2
        least_gap, done = np.full(y.shape, np.inf), np.zeros(y.shape, bool)
        for _ in range(_MOST):
            tail = self.log_tail(side * self.standard(side * y))
            gap = np.abs(tail - logs)
            best = np.where(gap < least_gap, y, best)
            least_gap = np.minimum(gap, least_gap)
            if done.all():
                return np.asarray(side * best)
            slope = logsumexp(self.logs(side * y), axis=0) - tail
            low, high = np.where(tail < logs, y, low), np.where(tail > logs, y, high)
            # On a plateau of F the step is infinite or undefined: bisection follows.
            with np.errstate(over="ignore", invalid="ignore"):
                newton = y - (tail - logs) * np.exp(-slope)
            # In the logarithm of the probability, or in the quantile itself.
            done |= gap <= _CLOSE * np.maximum(1, -logs)
            done |= np.abs(newton - y) <= _CLOSE * (np.abs(y) + least)
            inside = (newton > low) & (newton < high)
            y = np.where(inside, newton, np.where(done, y, (low + high) / 2))
        raise ArithmeticError("a quantile was not found")


def _shaped(values: Array, x: Array) -> Array:
    """Values (C,) of the components, ready to meet x along a first axis."""
    return values[(slice(None), *[None] * x.ndim)]


@dataclass(frozen=True, eq=False)
class GaussianMixture:
    r"""The density :math:`\rho = \sum_c \omega_c \mathcal N(\mu_c, s_c)` on the line.

    Parameters
    ----------
    means : array_like, shape (C,)
        Means :math:`\mu_c`.
    variances : array_like, shape (C,)
        Positive variances :math:`s_c`.
    weights : array_like, shape (C,)
        Positive weights :math:`\omega_c` of sum 1.

    Raises
    ------
    ValueError
        For vectors of different lengths, entries that are not finite or beyond 1e100,
        variances that are not positive, or weights that are not positive with sum 1.
    """

    means: Array
    variances: Array
    weights: Array

    def __post_init__(self) -> None:
        means = require_moderate("means", self.means)
        if means.ndim != 1 or not means.size:
            raise ValueError(
                f"means must be a non-empty vector, got shape {means.shape}"
            )
        variances = require_moderate("variances", self.variances)
        if variances.shape != means.shape:
            raise ValueError(
                f"variances must have shape {means.shape} as means has,"
                f" got {variances.shape}"
            )
        if not (variances > 0).all():
            raise ValueError(f"variances must be positive, got {variances.min():.3g}")
        weights = require_weights("weights", self.weights, means.size, "means")
        own = {"means": means, "variances": variances, "weights": weights}
        for name, array in own.items():
            kept = array.copy()
            kept.flags.writeable = False
            object.__setattr__(self, name, kept)

    @property
    def _components(self) -> Components:
        return Components(self.means, self.variances, self.weights)

    @property
    def mean(self) -> float:
        """Mean of the mixture."""
        return float(self.weights @ self.means)

    @property
    def variance(self) -> float:
        """Variance of the mixture."""
        return float(self.weights @ (self.variances + (self.means - self.mean) ** 2))

    def pdf(self, x: npt.ArrayLike) -> Array:
        """Density at x, of the shape of x. Raises ValueError as :meth:`score`."""
        return self._components.density(_points(x))

    def cdf(self, x: npt.ArrayLike) -> Array:
        """Distribution function at x, of the shape of x; raises as :meth:`score`."""
        shares = ndtr(self._components.standard(_points(x)))  # (C, ...)
        return np.asarray(np.tensordot(self.weights, shares, axes=1))

    def score(self, x: npt.ArrayLike) -> Array:
        r"""The score :math:`(\log\rho)'` at x, of the shape of x.

        It is the mean of :math:`(\mu_c - x)/s_c` under the probability of component c
        given x, taken in logarithms: far in the tails it tends to the score of the
        widest component and stays finite.

        Raises ValueError for an x that is not finite or beyond 1e100, or so far from
        all components in their unit that its square leaves the float range.
        """
        points = _points(x)
        score = self._components.score(points)
        if not np.isfinite(score).all():
            raise ValueError(
                f"x is too far from the components: {np.abs(points).max():.3g}"
            )
        return score

    def log_derivatives(self, x: npt.ArrayLike, order: int) -> Array:
        r"""Derivatives of :math:`\log\rho` at x, from the first to the given order.

        With :math:`r_k = \rho^{(k)}/\rho`, means of Hermite polynomials under the
        probability of component c given x, they solve
        :math:`r_k = \sum_{j=1}^k \binom{k-1}{j-1} (\log\rho)^{(j)} r_{k-j}`.

        Parameters
        ----------
        x : array_like
            Points, of any shape.
        order : int
            Highest derivative, at least 1.

        Returns
        -------
        ndarray, shape (order, ...)
            The first is :meth:`score`.

        Raises
        ------
        ValueError
            For an order that is not an integer ≥ 1, or an x as for :meth:`score`.
        """
        require_count("order", order)
        points, components = _points(x), self._components
        self.score(points)  # it refuses points that are too far
        logs, standard = components.logs(points), components.standard(points)
        share = np.exp(logs - logs.max(axis=0))
        share /= share.sum(axis=0)  # (C, ...)
        ratios: list[Array] = [np.ones(points.shape)]
        derivatives: list[Array] = []
        for k in range(1, order + 1):
            hermite = hermeval(-standard, [0] * k + [1])
            ratios.append((share * hermite / components.roots(points) ** k).sum(axis=0))
            known = (
                comb(k - 1, j) * one * ratios[k - 1 - j]
                for j, one in enumerate(derivatives)
            )
            derivatives.append(ratios[k] - sum(known))
        return np.stack(derivatives)

    def ppf(self, p: npt.ArrayLike) -> Array:
        """Quantile function, of the shape of p, as exact as the rounding of p allows.

        Each tail is solved from its own side in logarithms, by Newton steps kept in
        the bracket that the quantiles of the components make.

        Parameters
        ----------
        p : array_like
            Probabilities; 0 gives −``inf`` and 1 gives ``inf``.

        Raises
        ------
        ValueError
            For a p that is NaN or outside of [0, 1].
        """
        levels = require_finite("p", as_float("p", p))
        if ((levels < 0) | (levels > 1)).any():
            raise ValueError(
                f"p must be from 0 to 1, got {levels[(levels < 0) | (levels > 1)][0]}"
            )
        upper = levels > 0.5
        tail = np.where(upper, 1 - levels, levels)  # exact: 1 − p for p ≥ ½
        inner = tail > 0
        quantiles = np.where(upper, np.inf, -np.inf)
        quantiles[inner] = self._components.quantile(np.log(tail[inner]), upper[inner])
        return quantiles

    def heat(self, t: float) -> GaussianMixture:
        r"""The mixture after time t of :math:`\partial_t\rho = \frac12\rho''`.

        Each variance grows by t. A negative t goes back in time, as long as all
        variances stay positive.

        Raises ValueError for a t that is not finite or leaves no positive variance.
        """
        time = require_number("t", t)
        if not (self.variances + time > 0).all() or abs(time) > LARGEST:
            raise ValueError(
                f"t must leave variances from 0 to 1e100, got {t!r} for the least"
                f" variance {self.variances.min():.3g}"
            )
        return GaussianMixture(*self._components.heated(time))

    def ornstein_uhlenbeck(self, t: float, variance: float = 1.0) -> GaussianMixture:
        r"""The mixture after time t of the flow to :math:`\mathcal N(0, s)`.

        With s the ``variance``, it solves
        :math:`\partial_t\rho = \frac1{2s}(x\rho)' + \frac12\rho''`: means shrink by
        :math:`e^{-t/2s}`, and variances relax to s by :math:`e^{-t/s}`.

        Raises ValueError for a t that is not a number ≥ 0, or a variance that is not
        positive.
        """
        time = require_number("t", t)
        if time < 0:
            raise ValueError(f"t must not be negative, got {t!r}")
        s = require_moderate("variance", require_positive("variance", variance))
        # Halving twice keeps t/s of extreme numbers out of the float range's end.
        with np.errstate(over="ignore"):
            shrink = np.exp(-time / s / 2)
        return GaussianMixture(
            self.means * shrink, s + (self.variances - s) * shrink**2, self.weights
        )

    def transport(self, x: npt.ArrayLike, law: GaussianMixture) -> Array:
        r"""The monotone map :math:`x \mapsto F_{\text{law}}^{-1}(F(x))`.

        It carries this mixture to ``law`` at the least mean squared distance. From a
        mixture to its :meth:`heat` it is the flow map of
        :math:`\dot x = -\frac12(\log\rho_t)'(x)`.

        Parameters
        ----------
        x : array_like
            Points, of any shape.
        law : GaussianMixture
            The other mixture.

        Returns
        -------
        ndarray
            Of the shape of x. Each tail is matched from its own side.

        Raises
        ------
        ValueError
            For an x that is not finite or beyond 1e100, or so far in a tail of this
            mixture that the logarithm of its probability leaves the float range.
        """
        standard = self._components.standard(_points(x))
        below, above = (
            self._components.log_tail(standard),
            self._components.log_tail(-standard),
        )
        tails = np.minimum(below, above)
        if not np.isfinite(tails).all():
            raise ValueError("x is too far in a tail of the mixture")
        return require_mixture("law", law)._components.quantile(tails, above < below)

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Independent draws, shape (size,).

        Raises ValueError for a size that is not an integer ≥ 1, or an rng that is no
        generator.
        """
        require_count("size", size)
        require_generator("rng", rng)
        component = rng.choice(self.means.size, size=size, p=self.weights)
        noise = rng.standard_normal(size)
        spread = np.sqrt(self.variances[component])
        return np.asarray(self.means[component] + spread * noise)


def require_mixture(name: str, law: GaussianMixture) -> GaussianMixture:
    """Return ``law``; raise ValueError unless it is a GaussianMixture."""
    if not isinstance(law, GaussianMixture):
        raise ValueError(f"{name} must be a GaussianMixture, got {law!r}")
    return law


def _points(x: npt.ArrayLike) -> Array:
    return require_moderate("x", x)
