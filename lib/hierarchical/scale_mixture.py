"""Scale mixtures of Gaussians: the law of √v ξ for a random variance v."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from lib.core.checks import Array, as_float, require_count, require_finite
from lib.hierarchical.gauss_rule import Rule, gauss_rule

_BATCHES = 16  # parts of a sample, whose spread is its standard error
_LARGEST = 1e150  # larger variances overflow when squared


class ScaleMixture:
    r"""Law of :math:`y = \sqrt v\,\xi`, where v is random and ξ an independent N(0, 1).

    Its functions are means over v of those of a normal law,

    .. math:: f(y) = E\,\mathcal N(y; 0, v), \qquad F(y) = E\,\Phi(y/\sqrt v), \qquad
              E e^{\mathrm i t y} = E\,e^{-t^2 v/2}, \qquad
              E y^{2k} = (2k-1)!!\; E v^k ,

    so that draws of v give them with far less noise than draws of y.

    Parameters
    ----------
    variances : array_like, shape (k,)
        At least two draws of v, not negative.

    Raises
    ------
    ValueError
        For anything but a vector of two or more numbers between 0 and 1e150.

    References
    ----------
    Andrews and Mallows, *Scale mixtures of normal distributions*, 1974.
    """

    def __init__(self, variances: npt.ArrayLike) -> None:
        v = require_finite("variances", as_float("variances", variances))
        if v.ndim != 1 or v.size < 2:
            raise ValueError(
                f"variances must be a vector of draws, got shape {v.shape}"
            )
        if v.min() < 0 or v.max() > _LARGEST:
            raise ValueError(
                f"variances must lie between 0 and {_LARGEST:.0e},"
                f" got {v.min():.3g} to {v.max():.3g}"
            )
        parts = np.array_split(v, min(_BATCHES, v.size))
        shares = np.array([part.size / v.size for part in parts])
        self._set([gauss_rule(p, np.full(p.size, 1 / p.size)) for p in parts], shares)

    @classmethod
    def _of(
        cls, rules: Sequence[Rule], unit: float, at_zero: str | None
    ) -> ScaleMixture:
        """Mixture over ``unit`` times v, from equally good replicates of a rule for v.

        ``at_zero`` says why the density is infinite at 0, where it is.
        """
        mixture = cls.__new__(cls)
        scaled = [rule._replace(values=unit * rule.values) for rule in rules]
        mixture._set(scaled, np.full(len(rules), 1 / len(rules)), at_zero)
        return mixture

    def _set(
        self, rules: list[Rule], shares: Array, at_zero: str | None = None
    ) -> None:
        self._replicates = rules
        pairs = zip(shares, rules, strict=True)
        weights = np.concatenate([share * rule.weights for share, rule in pairs])
        values = np.concatenate([rule.values for rule in rules])
        self._rule = gauss_rule(values, weights)
        if at_zero is None and not values.all():
            at_zero = "v is 0 with positive probability"
        self._at_zero = at_zero

    def density(self, y: npt.ArrayLike) -> Array:
        """Density f at the points ``y``, an array of their shape.

        Raises ValueError for points that are not finite numbers, or where the density
        is infinite.
        """
        return self._functional("density", y, "y")(self._rule)

    def cdf(self, y: npt.ArrayLike) -> Array:
        """Distribution function F at the points ``y``, an array of their shape.

        Raises ValueError for points that are not finite numbers.
        """
        return self._functional("cdf", y, "y")(self._rule)

    def characteristic(self, t: npt.ArrayLike) -> Array:
        """Characteristic function E exp(ity) at ``t``, an array of its shape; real.

        Raises ValueError for arguments that are not finite numbers.
        """
        return self._functional("characteristic", t, "t")(self._rule)

    def moment(self, order: int) -> float:
        """E y^order.

        Raises ValueError for an order that is not an integer from 0 to 300, or a
        moment beyond the float range.
        """
        return float(self._functional("moment", order, "order")(self._rule))

    def variance(self) -> float:
        """E y² = E v."""
        return float(_variance(self._rule))

    def excess_kurtosis(self) -> float:
        """E y⁴/(E y²)² − 3 = 3 Var(v)/(E v)², never negative.

        Raises ValueError where y is always 0.
        """
        return float(_excess_kurtosis(self._rule))

    def error(self, quantity: str, at: npt.ArrayLike | None = None) -> Array:
        """Estimated error of what another method returns.

        By quadrature it is half the difference of two grids, as a rule an
        overestimate; by quasi-Monte Carlo or from draws, the standard error of the
        mean of independent replicates.

        Parameters
        ----------
        quantity : str
            Name of the method.
        at : array_like, optional
            Its argument, where it has one.

        Returns
        -------
        ndarray
            Of the shape of what the method returns.

        Raises
        ------
        ValueError
            For another name, an argument too many or too few, or one that the method
            refuses.
        """
        of = self._functional(quantity, at, "at")
        values = np.stack([of(rule) for rule in self._replicates])
        if len(values) == 1:  # v is constant
            return np.zeros_like(values[0])
        return np.asarray(values.std(axis=0, ddof=1) / np.sqrt(len(values)))

    def _functional(
        self, quantity: str, at: npt.ArrayLike | None, name: str
    ) -> Callable[[Rule], Array]:
        """The function of a rule that a method computes, its argument checked."""
        plain = {"variance": _variance, "excess_kurtosis": _excess_kurtosis}
        at_points = {
            "density": _density,
            "cdf": _cdf,
            "characteristic": _characteristic,
        }
        known = [*plain, "moment", *at_points]
        if not isinstance(quantity, str) or quantity not in known:
            raise ValueError(
                f"quantity must be one of {', '.join(known)}, got {quantity!r}"
            )
        if (quantity in plain) != (at is None):
            raise ValueError(f"{name} is {at!r}, which does not go with {quantity}")
        if quantity in plain:
            return plain[quantity]
        if quantity == "moment":
            order = require_count(name, at, least=0, most=300)  # type: ignore[arg-type]
            return partial(_moment, order=order)
        points = require_finite(name, as_float(name, at))  # type: ignore[arg-type]
        if quantity == "density" and self._at_zero and (points == 0).any():
            raise ValueError(
                f"{name} is 0, where the density is infinite: {self._at_zero}"
            )
        return partial(at_points[quantity], points=points)


def _density(rule: Rule, points: Array) -> Array:
    positive = rule.values > 0
    return mean_density(rule.values[positive], rule.weights[positive], points)


def mean_density(variances: Array, weights: Array, points: Array) -> Array:
    """Weighted sum of normal densities of positive variances, at the points."""
    sd = np.sqrt(variances)
    with np.errstate(over="ignore", under="ignore"):
        normal = np.exp(-((points[..., None] / sd) ** 2) / 2) / sd  # (..., k)
    return np.asarray(normal @ weights / np.sqrt(2 * np.pi))


def _cdf(rule: Rule, points: Array) -> Array:
    sd = np.sqrt(rule.values)
    # Where v is 0, so is y: its distribution function steps from 0 to 1 at 0.
    step = np.where(points >= 0, np.inf, -np.inf)[..., None]
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        x = np.where(sd > 0, points[..., None] / sd, step)
    return np.asarray(ndtr(x) @ rule.weights)


def _characteristic(rule: Rule, points: Array) -> Array:
    with np.errstate(over="ignore", under="ignore"):
        decay = np.exp(-((points[..., None] * np.sqrt(rule.values)) ** 2) / 2)
    return np.asarray(decay @ rule.weights)


def _moment(rule: Rule, order: int) -> Array:
    if order % 2:
        return np.zeros(())
    total = rule.weights
    with np.errstate(over="ignore"):
        for k in range(1, order, 2):  # E y² is E v, each further pair a factor k·v
            total = total * rule.values * k
    if not np.isfinite(total).all():
        raise ValueError(f"order is too high: the moment {order} is beyond the floats")
    return np.asarray(total.sum())


def _variance(rule: Rule) -> Array:
    return np.asarray(rule.weights @ rule.values)


def _excess_kurtosis(rule: Rule) -> Array:
    center = rule.weights @ rule.values
    if center == 0:
        raise ValueError("y is always 0: it has no excess kurtosis")
    return np.asarray(3 * (rule.weights @ (rule.values / center - 1) ** 2))
