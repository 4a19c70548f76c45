r"""Tokens that all have one cosine :math:`\rho(t)` with one another.

Such a configuration keeps its shape: n tokens started there obey

.. math:: \dot\rho = \frac{2 (1 - \rho)\,((n - 1)\rho + 1)}
          {e^{\beta(1 - \rho)} + n - 1}
          \quad\text{(normalized)}, \qquad
          \frac{\mathrm d\rho}{\mathrm ds} = \frac2n\, e^{-\beta(1 - \rho)}
          (1 - \rho)\,((n - 1)\rho + 1) \quad\text{(unnormalized)} .

It is where independent uniform tokens start when the dimension goes to infinity
(:math:`\rho = 0`), and for n = 2 it is any pair of equal clusters.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lib.core.checks import (
    Array,
    as_float,
    require_count,
    require_finite,
    require_flag,
    require_number,
)

LARGEST_N = 2**53
LOG_LARGEST_TIME = float(np.log(np.finfo(np.float64).max))
_TINY = 1e-17  # exponents so small that e^x is 1 to the last digit
_SHORT = 0.01  # ranges below this share of the distance to a pole of the integrand
_SERIES = 50.0  # where 25 terms of the asymptotic series leave an error below 1e-17


def equiangular_field(
    cosine: npt.ArrayLike, n: int, beta: float, normalize: bool = True
) -> Array:
    r"""Speed :math:`\dot\rho` of the common cosine of n tokens.

    Parameters
    ----------
    cosine : array_like
        :math:`-1/(n - 1) \le \rho \le 1`; an end that is missed by 1e-12 is the end.
    n : int
        Number of tokens, at least 2.
    beta : float
        Inverse temperature, of either sign.
    normalize : bool
        False for the unnormalized model in its time :math:`s = e^{|\beta|}t`.

    Returns
    -------
    ndarray
        Of the shape of ``cosine``; 0 at both ends of its range.

    Raises
    ------
    ValueError
        For a cosine that n tokens cannot have in common.
    """
    n = require_count("n", n, least=2, most=LARGEST_N)
    cosine = _require_cosine("cosine", cosine, n)
    b = require_number("beta", beta)
    geometry = 2 * (1 - cosine) * ((n - 1) * cosine + 1)
    if require_flag("normalize", normalize):
        return np.asarray(geometry * _share(b, 1 - cosine, n))
    with np.errstate(over="ignore"):
        return np.asarray(geometry / n * np.exp(b * cosine - abs(b)))


def equiangular_gap(
    n: int,
    beta: float,
    times: npt.ArrayLike,
    *,
    cosine0: float = 0.0,
    normalize: bool = True,
) -> Array:
    r"""Gap :math:`1 - \rho(t)` at given times, from :math:`\rho(0)` = ``cosine0``.

    The variable :math:`u = \log\frac{1 + (n - 1)\rho}{1 - \rho}` obeys :math:`\dot u =
    2n / (e^{\beta(1 - \rho)} + n - 1)`, or :math:`2 e^{-\beta(1 - \rho)}` unnormalized,
    and is solved for to 1e-12, so that gaps keep their digits however small they are.

    Parameters
    ----------
    n : int
        Number of tokens, at least 2.
    beta : float
        Inverse temperature, of either sign.
    times : array_like, shape (k,)
        Increasing, not negative.
    cosine0 : float
        :math:`-1/(n - 1) < \rho(0) < 1`.
    normalize : bool
        False for the unnormalized model in its time s.

    Returns
    -------
    ndarray, shape (k,)
        One minus the cosine, with full relative precision.

    Raises
    ------
    ValueError
        For times that do not increase, or a start that is an equilibrium.
    """
    from scipy.integrate import solve_ivp

    n = require_count("n", n, least=2, most=LARGEST_N)
    start = require_start(cosine0, n)
    b, normalize = require_number("beta", beta), require_flag("normalize", normalize)
    t = require_finite("times", as_float("times", times))
    if t.ndim != 1 or t.size == 0 or t[0] < 0 or (t[1:] <= t[:-1]).any():
        raise ValueError(f"times must be an increasing list from 0 on, got {t}")

    def gap(u: Array) -> Array:  # n / (e^u + n − 1), whatever the size of u
        small = np.exp(-np.abs(u))
        return n * np.where(u > 0, small / (1 + (n - 1) * small), 1 / (small + n - 1))

    def slope(_: float, u: Array) -> Array:
        if normalize:
            return 2 * n * _share(b, gap(u), n)
        return np.asarray(2 * np.exp(b * (1 - gap(u)) - abs(b)))

    u0 = np.log1p((n - 1) * start) - np.log1p(-start)
    if t[-1] == 0:
        return np.full(t.shape, float(gap(u0)))
    solution = solve_ivp(slope, (0, t[-1]), [u0], "DOP853", t, rtol=1e-12, atol=1e-12)
    if not solution.success:
        raise ValueError(f"times or beta={b!r} cannot be solved: {solution.message}")
    return gap(solution.y[0])


def attention_cosine(cosine: npt.ArrayLike, n: int, beta: float) -> Array:
    r"""Common cosine of the outputs of one attention layer without skip connection.

    A token has the weight p on itself and q on each other one. Attention multiplies
    the centered tokens by p − q and keeps their mean :math:`\bar x`, hence

    .. math:: 1 - \rho' = \frac{(p - q)^2 (1 - \rho)}
              {|\bar x|^2 + (1 - \tfrac1n)(p - q)^2 (1 - \rho)} , \qquad
              |\bar x|^2 = \tfrac1n (1 + (n - 1)\rho) .

    Parameters
    ----------
    cosine : array_like
        Common cosine ρ of n tokens.
    n : int
        Number of tokens, at least 2.
    beta : float
        Inverse temperature, of either sign; :math:`\beta = c\log n` is the scale on
        which the limit of long contexts depends on c.

    Returns
    -------
    ndarray
        Of the shape of ``cosine``.

    Raises
    ------
    ValueError
        For a cosine that n tokens cannot have in common, or outputs that are 0.
    """
    n = require_count("n", n, least=2, most=LARGEST_N)
    rho = _require_cosine("cosine", cosine, n)
    b = require_number("beta", beta)
    contrast = 1 - n * _share(b, 1 - rho, n)  # p − q, where p + (n − 1) q = 1
    apart = (1 - rho) * contrast**2
    norm = (1 + (n - 1) * rho) / n + (1 - 1 / n) * apart
    if not (norm > 0).all():
        raise ValueError(f"cosine={cosine!r} and beta={b!r} give outputs that are 0")
    return np.asarray(1 - apart / norm)


def _require_cosine(name: str, cosine: npt.ArrayLike, n: int) -> Array:
    array = require_finite(name, as_float(name, cosine))
    bad = (array > 1 + 1e-12) | (array < (-1 - 1e-12) / (n - 1))
    if bad.any():
        raise ValueError(
            f"{name} must lie between -1/(n - 1) and 1 for n={n}, got"
            f" {array[bad][0]:.6g}"
        )
    return np.asarray(np.clip(array, -1 / (n - 1), 1))


def require_start(cosine0: float, n: int) -> float:
    """Return a cosine that changes, between the two equilibria."""
    start = float(_require_cosine("cosine0", require_number("cosine0", cosine0), n))
    if start >= 1 or start <= -1 / (n - 1):
        raise ValueError(f"cosine0={cosine0!r} is an equilibrium of n={n} tokens")
    return start


def _share(b: float, gap: Array, n: int) -> Array:
    """1 / (e^(b gap) + n − 1), where the exponent and e^(b gap) may overflow."""
    with np.errstate(over="ignore"):
        z = np.asarray(b * gap)
    small = np.exp(-np.abs(z))
    return np.where(z > 0, small / (1 + (n - 1) * small), 1 / (small + n - 1))


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
