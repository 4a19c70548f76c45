r"""Tokens on the line whose step and spacing vanish together: between frozen and heat.

With m tokens and :math:`\varepsilon = c/m^2` a token sees only finitely many others. In
the limit the density moves by :math:`\partial_t \rho = \frac12 \partial_{xx}
[\rho\, g(c\rho^2)]`, formally; g is the variance of a discrete Gaussian.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lib.core.checks import (
    Array,
    as_float,
    require_count,
    require_finite,
    require_line,
    require_positive,
)
from lib.core.trajectory import Trajectory

_REACH = 20  # neighbors on either side that have any weight for a ≤ 2
_SMOOTH = 2.0  # from here on, g is 1 to rounding


def grid_share(a: npt.ArrayLike) -> Array:
    r"""Variance of a Gaussian on the integers, over that of the continuous one.

    .. math:: g(a) = \frac1a\, \frac{\sum_k k^2 e^{-k^2/2a}}{\sum_k e^{-k^2/2a}} .

    It rises from 0, as :math:`\frac2a e^{-1/2a}`, to 1.

    Parameters
    ----------
    a : array_like
        Positive: variance of the continuous law in units of the squared spacing.

    Returns
    -------
    ndarray
        Of the shape of ``a``.

    Raises
    ------
    ValueError
        For numbers that are not positive and finite.
    """
    array = require_finite("a", as_float("a", a))
    if not (array > 0).all():
        raise ValueError(f"a must be positive, got {array.min():g}")
    return _share(array)


def joint_flow(
    x0: npt.ArrayLike, scale: float, horizon: float, *, times: int = 11
) -> Trajectory:
    r"""Joint limit of Sinkhorn layers on the line, for tokens at the quantiles.

    For the quantile function x(u) the equation is
    :math:`\partial_t x = -\frac12 \partial_u F(1/\partial_u x)` with
    :math:`F(\rho) = \rho\, g(c\rho^2)`; between neighbors of n tokens the density is
    :math:`1/(n(x_{i+1} - x_i))`, and 0 outside. As :math:`c \to \infty` it is the heat
    flow, by particles.

    Parameters
    ----------
    x0 : array_like, shape (n, 1)
        Tokens in increasing order, each of mass 1/n; at least two.
    scale : float
        c > 0.
    horizon : float
        Last time.
    times : int
        Number of saved times, from 0 to the horizon.

    Returns
    -------
    Trajectory
        ``times`` (times,), ``states`` (times, n, 1).

    Raises
    ------
    ValueError
        For tokens that do not increase, or numbers that are not positive.
    """
    from scipy.integrate import solve_ivp

    x = require_line("x0", x0)[:, 0]
    if len(x) < 2 or not (np.diff(x) > 0).all():
        raise ValueError("x0 must have at least two tokens in increasing order")
    c = require_positive("scale", scale)
    last = require_positive("horizon", horizon)
    times = require_count("times", times, least=2)
    n = len(x)

    def velocity(_: float, x: Array) -> Array:
        density = 1 / (n * np.maximum(np.diff(x), 1e-300))
        flux = density * _share(c * density**2)
        return np.asarray(-n / 2 * np.diff(flux, prepend=0.0, append=0.0))

    saved = np.linspace(0, last, times)
    run = solve_ivp(
        velocity, (0, last), x, method="LSODA", t_eval=saved, rtol=1e-9,
        atol=1e-11 * (x[-1] - x[0]), lband=1, uband=1,
    )  # fmt: skip
    return Trajectory(saved, run.y.T[:, :, None])


def _share(a: Array) -> Array:
    k = np.arange(1.0, _REACH + 1)
    near = np.clip(a, 1e-4, _SMOOTH)[..., None]
    weights = np.exp(-(k**2) / (2 * near))
    share = 2 * np.sum(k**2 * weights, axis=-1) / (1 + 2 * np.sum(weights, axis=-1))
    return np.asarray(share / near[..., 0])
