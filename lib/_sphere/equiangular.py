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

from lib._checks import (
    Array,
    as_float,
    require_count,
    require_finite,
    require_flag,
    require_number,
)

LARGEST_N = 2**53


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
    if t[-1] > 1e300:
        raise ValueError(f"times must be at most 1e300, got {t[-1]:.3g}")

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
    if start >= 1 or start <= -1 / (n - 1) or 1 + (n - 1) * start <= 0:
        raise ValueError(f"cosine0={cosine0!r} is an equilibrium of n={n} tokens")
    return start


def _share(b: float, gap: Array, n: int) -> Array:
    """1 / (e^(b gap) + n − 1), where the exponent and e^(b gap) may overflow."""
    with np.errstate(over="ignore"):
        z = np.asarray(b * gap)
    small = np.exp(-np.abs(z))
    return np.where(z > 0, small / (1 + (n - 1) * small), 1 / (small + n - 1))
