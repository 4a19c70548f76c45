"""The law of the squared distance of two tokens, without sampling."""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_banded

from lib._checks import Array, require_count, require_positive, require_within

_NODES = 32  # of the contour integral: its error is about 4^−32
_MARGIN = 9.0  # standard deviations of log Δ below its mean that the grid holds
_TOP = 300.0  # largest log Δ on the grid


def distance_law(
    distance0: float,
    branch: float,
    tau0: float,
    horizon: float,
    *,
    heads: int = 1,
    spacing: float = 0.02,
) -> tuple[Array, Array]:
    r"""Law of the squared distance of two tokens at a time, on a grid.

    The diffusion of :func:`lib.sde.simulate_distance` in :math:`x = \log\Delta` is
    replaced by a chain on the grid :math:`x_k = \log\Delta_0 + k\delta` with rates

    .. math:: \frac{\sigma^2}{2\delta^2} B\big(\pm 2\mu\delta/\sigma^2\big), \qquad
              B(r) = \frac{r}{1 - e^{-r}},

    which have the drift μ and the variance σ² up to relative errors of order δ². Its
    law at the horizon T is :math:`e^{TQ^\top}` times the start, a contour integral of
    resolvents: each is one tridiagonal system. Above the grid nothing returns if
    γ² < H/2, and that mass has exploded; otherwise nothing leaves.

    Parameters
    ----------
    distance0 : float
        Δ at time 0, from 1e-100 to 1e100.
    branch : float
        γ, from 1e-3 to 1.
    tau0 : float
        :math:`\tau_0`, from 1e-50 to 1e50.
    horizon : float
        T > 0, in layers over width, at most 1e3.
    heads : int
        H, number of heads.
    spacing : float
        δ, from 1e-3 to 0.5.

    Returns
    -------
    distances, masses : ndarray, shape (k,)
        Grid of Δ, and the probability of each; what is missing to 1 has exploded. The
        distribution function at a grid point is the sum of the masses below it and half
        of its own.

    Raises
    ------
    ValueError
        For numbers out of these ranges.

    References
    ----------
    The contour is that of Trefethen, Weideman and Schmelzer, *Talbot quadratures and
    rational approximations*, BIT 46, 2006, 653–670.
    """
    start = float(np.log(require_within("distance0", distance0, 1e-100, 1e100)))
    square = require_within("branch", branch, 1e-3, 1) ** 2
    tau = require_within("tau0", tau0, 1e-50, 1e50)
    require_within("horizon", require_positive("horizon", horizon), 1e-12, 1e3)
    require_count("heads", heads)
    require_within("spacing", spacing, 1e-3, 0.5)
    push, linear = square / tau**2 / 16, square * (2 - square)
    noise = 4 * push * square / heads
    below, above = _extent(start, push, linear, noise, horizon)
    steps = np.arange(-np.ceil(below / spacing), np.ceil(above / spacing) + 1)
    x = start + spacing * steps
    up, down = _rates(x, push, linear, noise, spacing)
    down[0] = 0.0
    if push <= noise / 2:
        up[-1] = 0.0
    return np.exp(x), _propagated(up, down, (steps == 0).astype(float), horizon)


def _extent(
    start: float, push: float, linear: float, noise: float, horizon: float
) -> tuple[float, float]:
    """How far below and above the start the grid reaches in log Δ.

    Below, log Δ is a Brownian motion with drift −q and variance 2q. Above, so far that
    the noise term in Δ⁴ rules, that the rest of an explosion takes a millionth of the
    horizon, and that a return has a probability of about 1e-6.
    """
    below = linear * horizon + _MARGIN * np.sqrt(2 * linear * horizon)
    unit = 0.5 * np.log(max(2 * linear / noise, 1 / (noise * horizon))) - start
    above = max(unit, 0.0) + np.log(1e3)
    k = push / noise
    if k > 0.5:
        above += 14 / (2 * k - 1)
    return float(below), float(min(above, _TOP - start))


def _rates(
    x: Array, push: float, linear: float, noise: float, spacing: float
) -> tuple[Array, Array]:
    """Rates up and down at each grid point."""
    square = np.exp(2 * x)
    variance = 2 * linear + noise * square
    drift = (push - noise / 2) * square - linear
    r = 2 * spacing * drift / variance
    slow = np.abs(r) < 1e-8
    safe = np.where(slow, 1.0, r)
    up = np.where(slow, 1 + r / 2, safe / -np.expm1(-safe))
    scale = variance / (2 * spacing**2)
    return scale * up, scale * (up - r)  # B(−r) = B(r) − r


def _propagated(up: Array, down: Array, start: Array, horizon: float) -> Array:
    """exp(T Qᵀ) start for the chain with these rates, by Talbot's contour."""
    angle = np.pi * np.arange(1, _NODES, 2) / _NODES  # the upper half
    turned = 0.6407 * angle
    z = _NODES * (0.5017 * angle / np.tan(turned) - 0.6122 + 0.2645j * angle)
    slope = 0.5017 / np.tan(turned) - 0.5017 * turned / np.sin(turned) ** 2 + 0.2645j
    band = np.zeros((3, len(up)), complex)
    band[0, 1:] = -horizon * down[1:]
    band[2, :-1] = -horizon * up[:-1]
    found = np.zeros(len(up))
    for point, weight in zip(z, np.exp(z) * slope, strict=True):
        band[1] = point + horizon * (up + down)
        found += 2 * (weight * solve_banded((1, 1), band, start)).imag
    return found
