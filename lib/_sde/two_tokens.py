r"""Two tokens under shaped attention: the squared distance is a diffusion by itself.

For m = 2 let :math:`\Delta = V_{11} + V_{22} - 2V_{12} = e^\top V e` with e = (1, −1).
Then :math:`\tilde V = \frac\Delta4 e e^\top`, and the drift and the covariance of
:class:`lib.sde.CovarianceSDE`, contracted with e, are functions of Δ alone.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lib._checks import (
    LARGEST,
    Array,
    require_count,
    require_generator,
    require_positive,
    require_within,
)
from lib._sde.march import RESOLUTION, Move, march
from lib._trajectory import Trajectory


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
    every: int = 1,
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
    every : int
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
    for name, value in (("steps", steps), ("paths", paths), ("every", every)):
        require_count(name, value)
    require_generator("rng", rng)
    push, linear, noise = _coefficients(branch, tau0, heads)
    if steps < 2 * linear * horizon:
        raise ValueError(
            f"steps must be at least {np.ceil(2 * linear * horizon):.17g} to the"
            f" horizon {horizon:g}, for a variance of log Δ of at most 1 in a step,"
            f" got {steps}"
        )

    move = _mover(push, linear, noise, top, rng)
    logs = np.full(paths, np.log(start))
    found = march(move, logs, horizon, steps, every=every, kept=np.exp)
    found.states[0] = start  # without the rounding of its logarithm
    return found


def _coefficients(branch: float, tau0: float, heads: int) -> tuple[float, float, float]:
    """a, q and h of :func:`simulate_distance`."""
    square = require_within("branch", branch, 0, 1) ** 2
    tau = require_within("tau0", tau0, 1e-50, LARGEST)
    require_count("heads", heads)
    push = square / tau / tau / 16
    return push, square * (2 - square), 4 * push * square / heads


def _mover(
    push: float, linear: float, noise: float, top: float, rng: np.random.Generator
) -> Move:
    """Steps of log Δ, which stops at ``top``."""

    def variance(logs: Array) -> Array:
        return 2 * linear + noise * np.exp(2 * logs)

    def ratio(logs: Array) -> Array:
        """Drift over variance of log Δ, a bounded function; 0 where nothing moves."""
        drift = (push - noise / 2) * np.exp(2 * logs) - linear
        return np.asarray(drift / np.maximum(variance(logs), np.finfo(float).tiny))

    def move(logs: Array, left: Array) -> tuple[Array, Array, npt.NDArray[np.bool_]]:
        rate = variance(logs) + push * np.exp(2 * logs)
        step = left / np.maximum(1, left * rate / RESOLUTION)
        # In the time s with ds = variance dt, log Δ has noise 1: a step of Heun's.
        clock, before = variance(logs) * step, ratio(logs)
        after = logs + before * clock + np.sqrt(clock) * rng.standard_normal(len(logs))
        after += (ratio(after) - before) * clock / 2
        # From a to b below 0, a bridge of variance s gets to 0 with exp(−2ab/s).
        room = (top - logs) * np.maximum(top - after, 0)
        hit = rng.exponential(size=len(logs)) * clock >= 2 * room
        return np.where(hit, top, after), step, hit

    return move
