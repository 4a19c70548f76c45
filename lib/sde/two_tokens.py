r"""Two tokens under shaped attention: the squared distance is a diffusion by itself.

For m = 2 let :math:`\Delta = V_{11} + V_{22} - 2V_{12} = e^\top V e` with e = (1, −1).
Then :math:`\tilde V = \frac\Delta4 e e^\top`, and the drift and the covariance of
:class:`lib.sde.CovarianceSDE`, contracted with e, are functions of Δ alone.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_banded

from lib.core.checks import (
    LARGEST,
    Array,
    as_float,
    require_count,
    require_finite,
    require_generator,
    require_positive,
    require_within,
)
from lib.core.trajectory import Trajectory
from lib.sde.stepping import divided, run_paths

_NODES = 32  # of the contour integral: its error is about 4^−32
_MARGIN = 9.0  # standard deviations of log Δ below its mean that the grid holds
_TOP = 300.0  # largest log Δ on the grid
# What arguments may be that need not be positive.
_RANGES = {"distance0": (0.0, np.inf), "cosine0": (-1.0, 1.0), "branch": (0.0, 1.0)}


def simulate_distance(
    distance0: float,
    branch: float,
    tau0: float,
    horizon: float,
    steps: int,
    *,
    paths: int,
    rng: np.random.Generator,
    heads: int = 1,
    save_every: int = 1,
    level: float = 1e6,
) -> Trajectory:
    r"""Squared distance of two tokens under shaped attention, explosions resolved.

    .. math:: d\Delta = a\Delta^3\, dt + \sqrt{2q\Delta^2 + h\Delta^4}\, dB, \qquad
              a = \frac{\gamma^2}{16\tau_0^2}, \quad q = \gamma^2(2 - \gamma^2), \quad
              h = \frac{\gamma^4}{4H\tau_0^2}.

    By Itô's formula log Δ has drift :math:`(a - h/2)\Delta^2 - q` and variance
    :math:`2q + h\Delta^2`, whose ratio is bounded. A step takes a small share of the
    time in which log Δ changes by 1, so that a path gets to a level in a number of
    steps proportional to the logarithm of the level. Whether it was there within a step
    is drawn from the law of the maximum of a Brownian bridge.

    Parameters
    ----------
    distance0 : float
        Δ at time 0, positive.
    branch : float
        γ, from 0 to 1.
    tau0 : float
        :math:`\tau_0 > 0`.
    horizon : float
        Last time, in layers over width.
    steps : int
        Number of equal steps to the horizon, at least 2 q · horizon; a path divides
        them where it must.
    paths : int
        Number of independent paths.
    rng : numpy.random.Generator
    heads : int
        H, number of heads.
    save_every : int
        States are kept after each so many steps; the last one always is.
    level : float
        A path stops where it reaches this distance, which is above ``distance0``.

    Returns
    -------
    Trajectory
        ``times`` (K,), ``states`` (K, paths), ``stopped`` (paths,) the time of reaching
        the level, where Δ then remains; ``inf`` for never.

    Raises
    ------
    ValueError
        For numbers out of these ranges.
    """
    start = require_within("distance0", distance0, 1 / LARGEST, LARGEST)
    top = np.log(require_within("level", level, 1 / LARGEST, LARGEST))
    if not start < level:
        raise ValueError(f"distance0 must be below level = {level!r}, got {start!r}")
    require_positive("horizon", horizon)
    for name, value in (("steps", steps), ("paths", paths), ("save_every", save_every)):
        require_count(name, value)
    require_generator("rng", rng)
    law = coefficients(branch, tau0, heads)
    linear = law[1]
    require_fine(horizon, steps, 2 * linear, "log Δ")

    def move(logs: Array, left: Array) -> tuple[Array, Array, npt.NDArray[np.bool_]]:
        normals, exponentials = rng.standard_normal(len(logs)), rng.exponential
        return advance(logs, left, law, top, normals, exponentials(size=len(logs)))

    logs = np.full(paths, np.log(start))
    run = run_paths(move, logs, horizon, steps, save_every=save_every, observe=np.exp)
    run.states[0] = start  # without the rounding of its logarithm
    return run


def require_fine(horizon: float, steps: int, rate: float, of: str) -> None:
    """Check that the variance ``of`` a number, at most ``rate`` per unit of time, is at
    most 1 in a step.
    """
    if steps < rate * horizon:
        raise ValueError(
            f"steps must be at least {np.ceil(rate * horizon):.17g} to the"
            f" horizon {horizon:g}, for a variance of {of} of at most 1 in a step,"
            f" got {steps}"
        )


def arguments(**values: npt.ArrayLike) -> list[Array]:
    """Arguments of a probability of two tokens, checked and of their common shape."""
    arrays = {n: require_finite(n, as_float(n, v)) for n, v in values.items()}
    for name, array in arrays.items():
        least, most = _RANGES.get(name, (np.nextafter(0, 1), np.inf))
        bad = (array < least) | (array > most)
        if bad.any():
            within = f"from {least:g} to {most:g}" if most < np.inf else "not negative"
            demand = within if name in _RANGES else "positive"
            raise ValueError(f"{name} must be {demand}, got {array[bad][0]}")
    try:
        return list(np.broadcast_arrays(*arrays.values()))
    except ValueError:
        shapes = [array.shape for array in arrays.values()]
        raise ValueError(
            f"{', '.join(arrays)} must have a common shape, got {shapes}"
        ) from None


def coefficients(branch: float, tau0: float, heads: int) -> tuple[float, float, float]:
    """a, q and h of :func:`simulate_distance`."""
    square = require_within("branch", branch, 0, 1) ** 2
    tau = require_within("tau0", tau0, 1e-50, LARGEST)
    require_count("heads", heads)
    push = square / tau / tau / 16
    return push, square * (2 - square), 4 * push * square / heads


def advance(
    logs: Array,
    left: Array,
    law: tuple[float, float, float],
    top: float,
    normals: Array,
    exponentials: Array,
) -> tuple[Array, Array, npt.NDArray[np.bool_]]:
    """A step of log Δ with given draws, one of either kind a path; it stops at ``top``.

    ``law`` is that of :func:`coefficients`, the result that of
    :data:`lib.sde.stepping.Move`.
    """
    push, linear, noise = law

    def variance(logs: Array) -> Array:
        return 2 * linear + noise * np.exp(2 * logs)

    def ratio(logs: Array) -> Array:
        """Drift over variance of log Δ, a bounded function; 0 where nothing moves."""
        drift = (push - noise / 2) * np.exp(2 * logs) - linear
        return np.asarray(drift / np.maximum(variance(logs), np.finfo(float).tiny))

    step = divided(left, variance(logs) + push * np.exp(2 * logs))
    # In the time s with ds = variance dt, log Δ has noise 1: a step of Heun's.
    clock, before = variance(logs) * step, ratio(logs)
    after = logs + before * clock + np.sqrt(clock) * normals
    after += (ratio(after) - before) * clock / 2
    # From a to b below 0, a bridge of variance s gets to 0 with exp(−2ab/s).
    room = (top - logs) * np.maximum(top - after, 0)
    hit = exponentials * clock >= 2 * room
    return np.where(hit, top, after), step, hit


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
    """Reach of the grid in log Δ, below and above the start.

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
    masses = np.zeros(len(up))
    for point, weight in zip(z, np.exp(z) * slope, strict=True):
        band[1] = point + horizon * (up + down)
        masses += 2 * (weight * solve_banded((1, 1), band, start)).imag
    return masses
