"""The probability that two tokens explode, in closed form."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, betaincc, erf

from lib.core.checks import Array, require_count
from lib.sde.two_tokens import arguments

_NARROW = 1e-8  # x² is nothing beside 1 in float64
_CLOSED = 0.51  # power k from which on the incomplete beta function is accurate


def explosion_probability(
    distance0: npt.ArrayLike,
    branch: npt.ArrayLike,
    tau0: npt.ArrayLike,
    *,
    heads: int = 1,
) -> Array:
    r"""Probability that the squared distance of two tokens explodes in finite time.

    With a, q, h of :func:`simulate_distance` and the density p of the scale function,

    .. math:: P(T_* < \infty) = \frac{\int_0^{\Delta_0} p}{\int_0^\infty p}, \qquad
              p(y) = \Big(1 + \frac{h y^2}{2q}\Big)^{-k}, \qquad
              k = \frac ah = \frac{H}{4\gamma^2},

    a regularized incomplete beta function. For :math:`\gamma^2 \ge H/2` the integral to
    ∞ is infinite, and the probability 0. On the other paths Δ tends to 0. As γ → 0 the
    limit is :math:`\mathrm{erf}(\Delta_0/8\tau_0)`, though with γ = 0 nothing moves.

    The time to ∞ is finite by Feller's test: with :math:`\sigma^2 = 2qx^2 + hx^4`, the
    integral of :math:`\int_x^\infty p\, dy \,/\, (p(x)\, \sigma^2(x))` to ∞ converges
    like that of :math:`x^{-3}`.

    Parameters
    ----------
    distance0 : array_like
        Δ at time 0, not negative.
    branch : array_like
        γ, from 0 to 1.
    tau0 : array_like
        :math:`\tau_0 > 0`.
    heads : int
        H, number of heads.

    Returns
    -------
    ndarray
        Of the common shape of the first three.

    Raises
    ------
    ValueError
        For numbers out of these ranges, or shapes that have no common one.
    """
    distance, gamma, tau = arguments(distance0=distance0, branch=branch, tau0=tau0)
    require_count("heads", heads)
    possible = (gamma > 0) & (gamma**2 < heads / 2)
    return np.asarray(np.where(possible, _share(distance, gamma, tau, heads), 0.0))[()]


def hitting_probability(
    distance0: npt.ArrayLike,
    level: npt.ArrayLike,
    branch: npt.ArrayLike,
    tau0: npt.ArrayLike,
    *,
    heads: int = 1,
) -> Array:
    r"""Probability that the squared distance of two tokens ever reaches a level.

    With p of :func:`explosion_probability`, it is
    :math:`\int_0^{\Delta_0} p / \int_0^{K} p` for a level K above Δ0. This is what a
    simulation that stops at K finds in the long run; for γ² near H/2 and above it tends
    slowly to the probability of explosion.

    Parameters
    ----------
    distance0 : array_like
        Δ at time 0, not negative.
    level : array_like
        K > 0; the probability is 1 where it is not above ``distance0``.
    branch, tau0, heads
        As in :func:`explosion_probability`.

    Returns
    -------
    ndarray
        Of the common shape of the first four.

    Raises
    ------
    ValueError
        For numbers out of these ranges, or shapes that have no common one.
    """
    distance, top, gamma, tau = arguments(
        distance0=distance0, level=level, branch=branch, tau0=tau0
    )
    require_count("heads", heads)
    # p is 1 up to a level far below τ0.
    known = [distance >= top, gamma == 0, top <= _NARROW * tau]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = _share(distance, gamma, tau, heads) / _share(top, gamma, tau, heads)
        probability = np.select(known, [1.0, 0.0, distance / top], ratio)
        logs = np.log(distance), np.log(top)
    unit = np.log(tau) + np.log(_unit(gamma, heads))
    k = _power(gamma, heads)
    for i in map(tuple, np.argwhere(~np.any(known, axis=0) & (k < _CLOSED))):
        end, last = (float(log[i] - unit[i]) for log in logs)
        probability[i] = _integral_ratio(end, last, 1 - 2 * float(k[i]))
    return np.asarray(probability)[()]


def _power(gamma: Array, heads: int) -> Array:
    """k, with 1e-8 for a smaller γ."""
    return np.asarray(heads / 4 / np.maximum(gamma, _NARROW) ** 2)


def _unit(gamma: Array, heads: int) -> Array:
    """√(2q/h)/τ0, with 1e-8 for a smaller γ."""
    root = np.sqrt(8 * heads * (2 - gamma**2))
    return np.asarray(root / np.maximum(gamma, _NARROW))


def _share(distance: Array, gamma: Array, tau: Array, heads: int) -> Array:
    """∫p to a distance over ∫p to ∞, where that is finite."""
    k = np.maximum(_power(gamma, heads), np.nextafter(0.5, 1))
    with np.errstate(over="ignore", under="ignore"):
        ratio = distance / tau
        square = (ratio / _unit(gamma, heads)) ** 2
        # Either form of the same number, with an argument of full relative accuracy.
        near = betainc(0.5, k - 0.5, square / (1 + np.minimum(square, 1)))
        far = betaincc(k - 0.5, 0.5, 1 / (1 + square))
    beta = np.where(square < 1, near, far)
    return np.asarray(np.where(gamma < _NARROW, erf(ratio / 8), beta))


def _integral_ratio(end: float, last: float, power: float) -> float:
    """∫₀^x (1 + y²)^(−k) dy over that to z, log x = end, log z = last, power = 1 − 2k.

    With y = sinh θ these are integrals of a power of cosh θ, for ends of any size.
    """
    from scipy.integrate import quad

    def angle(log: float) -> float:
        return float(np.arcsinh(np.exp(log)) if log < 20 else log + np.log(2))

    def log_power(theta: float) -> float:
        return float(power * (theta + np.log1p(np.exp(-2 * theta)) - np.log(2)))

    largest = max(log_power(angle(last)), 0.0)

    def integral(log: float) -> float:
        def integrand(theta: float) -> float:
            return float(np.exp(log_power(theta) - largest))

        return float(quad(integrand, 0, angle(log), epsabs=0, epsrel=1e-10)[0])

    return integral(end) / integral(last)
