"""The time in which equiangular tokens merge, by exponential integrals."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lib._checks import (
    Array,
    as_float,
    require_count,
    require_finite,
    require_flag,
    require_number,
)
from lib._sphere.equiangular import LARGEST_N, require_start

LOG_LARGEST_TIME = float(np.log(np.finfo(np.float64).max))
_TINY = 1e-17  # exponents so small that e^x is 1 to the last digit
_SHORT = 0.01  # ranges below this share of the distance to a pole of the integrand
_SERIES = 50.0  # where 25 terms of the asymptotic series leave an error below 1e-17


def equiangular_time(
    n: int,
    beta: npt.ArrayLike,
    gap: float,
    normalize: bool = True,
    *,
    cosine0: float = 0.0,
) -> Array:
    r"""Time in which n equiangular tokens reach the cosine 1 − ``gap``.

    With :math:`a = n - 1`, :math:`\delta` = ``gap`` and :math:`g = 1 - \rho(0)`,

    .. math:: t_* = \frac a{2n} \log\frac{g (n - a\delta)}{\delta (n - a g)}
              + \frac{D}{2n}, \qquad s_* = \frac D2,

    .. math:: D = \operatorname{Ei}(\beta g) - \operatorname{Ei}(\beta\delta)
              + e^{\beta n/a} \big[\operatorname E_1(\beta(\tfrac na - g))
              - \operatorname E_1(\beta(\tfrac na - \delta))\big] ,

    from :math:`\int_\delta^g e^{\beta v} (\tfrac1v + \tfrac a{n - av})\,\mathrm dv`.
    The exponential integrals are evaluated with their factor :math:`e^{\pm x}` taken
    out, so that nothing overflows before the result does.

    Parameters
    ----------
    n : int
        Number of tokens, at least 2.
    beta : float or array_like
        Inverse temperature β ≥ 0.
    gap : float
        :math:`0 < \delta < 1`, below one minus ``cosine0``.
    normalize : bool
        False for the unnormalized model in its time :math:`s = e^{\beta} t`.
    cosine0 : float
        Cosine at time 0; orthonormal tokens by default. With n = 2 it gives the time in
        which two equal clusters merge.

    Returns
    -------
    ndarray
        Of the shape of ``beta``.

    Raises
    ------
    ValueError
        For a β below 0, a gap outside of its range, or a start without gap.
    OverflowError
        For times beyond the float range; the message gives the logarithm.
    """
    n = require_count("n", n, least=2, most=LARGEST_N)
    start = require_start(cosine0, n)
    delta = require_number("gap", gap)
    if not 0 < delta < min(1, 1 - start):
        raise ValueError(
            f"gap must lie between 0 and 1 and below 1 - cosine0, got {gap!r}"
        )
    b = require_finite("beta", as_float("beta", beta))
    if b.size and b.min() < 0:
        raise ValueError(f"beta must not be negative, got {b.min():.6g}")
    g, a = 1 - start, n - 1
    rest = (1 + a * start) / a  # n/a − g, which may be far below the rounding of g
    scaled = _scaled_integral(b, delta, g, rest)  # D e^{−βg}
    require_flag("normalize", normalize)
    log_time = b * g + np.log(scaled) - np.log(2 * n if normalize else 2)
    if b.size and log_time.max() > LOG_LARGEST_TIME:
        raise OverflowError(
            f"the time at beta={b.flat[log_time.argmax()]:.6g} exceeds the largest"
            f" float; its logarithm is {log_time.max():.12g}"
        )
    time = np.exp(log_time)
    if normalize:
        time = time + a / (2 * n) * _log_quotient(delta, g, rest)
    return np.asarray(time)[()]


def _log_quotient(delta: float, g: float, rest: float) -> float:
    """∫ from δ to g of (1/v + 1/(r − v)) dv, where r = g + ``rest``."""
    step = g - delta
    near = np.log1p(step / delta) if step < delta else np.log(g) - np.log(delta)
    return float(near + np.log1p(step / rest))


def _scaled_integral(b: Array, delta: float, g: float, rest: float) -> Array:
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
    value = np.where(flat, _log_quotient(delta, g, rest), near + far)
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
