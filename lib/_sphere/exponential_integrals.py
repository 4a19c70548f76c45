"""Exponential integrals with their factor e^(±x) taken out."""

from __future__ import annotations

import numpy as np

from lib._checks import Array

_TINY = 1e-17  # exponents so small that e^x is 1 to the last digit
_SERIES = 50.0  # where 25 terms of the asymptotic series leave an error below 1e-17


def scaled_integral(b: Array, delta: float, g: float, r: float) -> Array:
    """e^(−βg) ∫ from δ to g of e^(βv) (1/v + 1/(r − v)) dv, for β ≥ 0."""
    without = np.log(g) - np.log(delta) + np.log(r - delta) - np.log(r - g)
    flat = b < _TINY
    b = np.where(flat, 1.0, b)
    with np.errstate(over="ignore"):  # at infinity both functions are 0
        decay = np.exp(-b * (g - delta))
        near = _ei(b, g) - decay * _ei(b, delta)
        far = _e1(b * (r - g)) - decay * _e1(b * (r - delta))
    return np.where(flat, without, near + far)


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
