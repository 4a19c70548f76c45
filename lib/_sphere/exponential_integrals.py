"""Exponential integrals with their factor e^(±x) taken out."""

from __future__ import annotations

import numpy as np

from lib._checks import Array

_TINY = 1e-17  # exponents so small that e^x is 1 to the last digit
_SHORT = 0.01  # ranges below this share of the distance to a pole of the integrand
_SERIES = 50.0  # where 25 terms of the asymptotic series leave an error below 1e-17


def log_quotient(delta: float, g: float, rest: float) -> float:
    """∫ from δ to g of (1/v + 1/(r − v)) dv, where r = g + ``rest``."""
    step = g - delta
    near = np.log1p(step / delta) if step < delta else np.log(g) - np.log(delta)
    return float(near + np.log1p(step / rest))


def scaled_integral(b: Array, delta: float, g: float, rest: float) -> Array:
    """e^(−βg) ∫ from δ to g of e^(βv) (1/v + 1/(r − v)) dv, for β ≥ 0.

    r is given by ``rest`` = r − g, which may be far below the rounding of g.
    """
    step = g - delta
    flat = b < _TINY
    positive = np.where(flat, 1.0, b)
    with np.errstate(over="ignore"):  # at infinity both functions are 0
        decay = np.exp(-positive * step)
        near = _ei(positive, g) - decay * _ei(positive, delta)
        far = _e1(positive * rest) - decay * _e1(positive * (rest + step))
        short = b * step <= 1
    value = np.where(flat, log_quotient(delta, g, rest), near + far)
    if step > _SHORT * min(delta, rest):
        return value
    # Next to g the differences cancel; the integrand hardly varies.
    nodes, weights = np.polynomial.legendre.leggauss(8)
    back = step * (1 - nodes) / 2  # g − v
    terms = np.exp(-np.where(short, b, 0)[..., None] * back)
    terms = terms * (1 / (g - back) + 1 / (rest + back))
    return np.where(short, step / 2 * (terms @ weights), value)


def _ei(b: Array, v: float) -> Array:
    """e^(−x) Ei(x) at x = bv > 0, where bv may underflow."""
    from scipy.special import expi

    x = b * v
    inner = np.clip(x, _TINY, _SERIES)
    value = np.exp(-inner) * expi(inner)
    # Ei(x) = γ + log x + O(x).
    value = np.where(x < _TINY, np.euler_gamma + np.log(b) + np.log(v), value)
    return np.where(x > _SERIES, _asymptotic(np.maximum(x, _SERIES), 1), value)


def _e1(x: Array) -> Array:
    """e^x E₁(x) at x > 0."""
    from scipy.special import exp1

    inner = np.minimum(x, _SERIES)
    value = np.exp(inner) * exp1(inner)
    return np.where(x > _SERIES, _asymptotic(np.maximum(x, _SERIES), -1), value)


def _asymptotic(x: Array, sign: int) -> Array:
    """Σ k! (sign/x)^k / x over k ≤ 25: e^(−x) Ei(x), or e^x E₁(x) with sign −1."""
    total = np.ones_like(x)
    for k in range(25, 0, -1):
        total = 1 + sign * k / x * total
    return total / x
