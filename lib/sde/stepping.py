"""Paths of a limit in time, with steps of their own between common times."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from lib.core.checks import (
    LARGEST,
    Array,
    as_float,
    require_count,
    require_generator,
    require_positive,
    require_within,
)
from lib.core.psd import gram_of, require_gram, require_grams, semidefinite_root
from lib.core.trajectory import Trajectory
from lib.sde.limits import Limit

#: States of some paths and the time left to each, to: their states after a step, the
#: time that took, at most the time left, and which of them stop there.
Move = Callable[[Array, Array], tuple[Array, Array, npt.NDArray[np.bool_]]]
RESOLUTION = 0.05  # share of the time in which V changes by itself that a step may take


def run_paths(
    move: Move,
    state: Array,
    horizon: float,
    steps: int,
    *,
    save_every: int,
    observe: Callable[[Array], Array],
) -> Trajectory:
    """Run paths to the horizon; a path that stops keeps its state.

    ``state``, (paths, ...), is overwritten. What ``observe`` makes of it is stored
    after each ``save_every`` of the equal steps and at the end. Paths do not wait for
    each other: one that divides its steps much more than the others is behind them at
    the end only.
    """
    steps = int(steps)
    times = np.linspace(0, horizon, steps + 1)
    stored = np.unique([*range(0, steps, save_every), steps])
    first = observe(state)
    states = np.empty((len(stored), *first.shape))
    states[0] = first
    clock, stopped = np.zeros(len(state)), np.full(len(state), np.inf)
    ahead = np.ones(len(state), dtype=int)  # number of the common time ahead
    moving = np.arange(len(state))
    while moving.size:
        goal = times[ahead[moving]]
        left = goal - clock[moving]
        state[moving], taken, stops = move(state[moving], left)
        ended = taken >= left
        clock[moving] = np.where(ended, goal, clock[moving] + taken)
        row = np.searchsorted(stored, ahead[moving])
        due = np.flatnonzero(ended & (stored[row] == ahead[moving]))
        states[row[due], moving[due]] = observe(state[moving[due]])
        for at in np.flatnonzero(stops):
            stopped[moving[at]] = clock[moving[at]]
            states[row[at] :, moving[at]] = observe(state[moving[at : at + 1]])
        ahead[moving] += ended
        moving = moving[~stops & (ahead[moving] <= steps)]
    return Trajectory(times[stored], states, stopped)


def divided(left: Array, rate: Array) -> Array:
    """The next step of each path: the time left, or a share of the time 1/rate."""
    return left / np.maximum(1, left * rate / RESOLUTION)


def simulate(
    sde: Limit,
    gram0: npt.ArrayLike,
    horizon: float,
    steps: int,
    *,
    paths: int,
    rng: np.random.Generator,
    save_every: int = 1,
    level: float = 1e6,
) -> Trajectory:
    r"""Paths of a limit whose Gram matrices stay positive definite.

    What moves is a root C of V = CCᵀ, so that V cannot leave the Gram matrices:
    attention multiplies it by a factor from the left, linear noise by a Bartlett factor
    from the right; an activation takes V to a mean of two Gram matrices. Mean and
    covariance of a step are those of the limit up to the square of its length, so that
    laws converge like the step (weak order 1). A path divides the steps where its drift
    is fast: it gets to the level in a number of steps proportional to its logarithm,
    and no explosion is made by a step too long.

    Parameters
    ----------
    sde : Limit
        Of linear noise q.
    gram0 : array_like, shape (m, m) or (paths, m, m)
        Gram matrix at time 0, or one for each path.
    horizon : float
        Last time, in layers over width.
    steps : int
        Number of equal steps to the horizon, at least m q · horizon.
    paths : int
        Number of independent paths.
    rng : numpy.random.Generator
    save_every : int
        States are kept after each so many steps; the last one always is.
    level : float
        A path whose trace exceeds this is taken for exploded and stops. The number is
        absolute: attention and smooth activations have a scale of their own, so that
        explosion does not depend on ``gram0`` otherwise than through the path.

    Returns
    -------
    Trajectory
        ``times`` (K,), ``states`` (K, paths, m, m), ``stopped`` (paths,) the time of
        exceeding the level, ``inf`` for never; ``stopped_share`` is their share.

    Raises
    ------
    ValueError
        For a matrix that is not a Gram matrix or has a trace of ``level`` or more,
        as many matrices as there are not paths, numbers that are not positive, or steps
        too few for the linear noise.
    """
    gram = _require_run(sde, gram0, horizon, steps, paths, rng, save_every, level)
    m = gram.shape[-1]
    _require_degrees(m, sde.linear_noise, float(horizon), int(steps))
    # Tokens that are equal in all paths stay so to the last digit: each has the row of
    # the first of them.
    size = np.diagonal(gram, axis1=-2, axis2=-1)[..., None, :]  # (..., 1, m)
    equal = (gram == size) & (size.mT == size)  # (..., m, m)
    first = np.argmax(equal.reshape(-1, m, m).all(axis=0), axis=1)  # (m,)

    def move(root: Array, left: Array) -> tuple[Array, Array, npt.NDArray[np.bool_]]:
        rate = sde._rate(root)
        if not np.isfinite(rate).all():
            raise ValueError(f"gram0 or level is too large for {sde}")
        step = divided(left, rate)
        root = sde._advance(root, step, rng)[:, first]
        return root, step, np.asarray((root * root).sum(axis=(-2, -1)) > level)

    def observe(root: Array) -> Array:
        return gram_of(root)[:, first][..., first]

    root = _to_paths(semidefinite_root(gram)[..., first, :], paths)
    run = run_paths(move, root, horizon, steps, save_every=save_every, observe=observe)
    run.states[0] = gram  # without the rounding of its root
    return run


def explicit_euler(
    sde: Limit,
    gram0: npt.ArrayLike,
    horizon: float,
    steps: int,
    *,
    paths: int,
    rng: np.random.Generator,
    save_every: int = 1,
    level: float = 1e6,
) -> Trajectory:
    r"""The explicit Euler–Maruyama scheme, to see it fail.

    .. math:: V \mapsto V + b(V)\, h + \sqrt h\, \Sigma(V)^{1/2} N .

    With :math:`V = CC^\top`, the step without drift is
    :math:`C(I + \sqrt h\,(S + S^\top))C^\top`, not positive semidefinite with positive
    probability whatever V is. Such a path has left what a Gram matrix can be and stops.

    Parameters
    ----------
    sde, gram0, horizon, steps, paths, rng, save_every
        As in :func:`simulate`; any number of steps.
    level : float
        Also a path whose trace exceeds this stops.

    Returns
    -------
    Trajectory
        As :func:`simulate`: ``stopped`` is ``inf`` for never. A stopped path keeps the
        first matrix that is not positive semidefinite, or has too large a trace.

    Raises
    ------
    ValueError
        As :func:`simulate`, and where a step leaves the float range.
    """
    gram = _require_run(sde, gram0, horizon, steps, paths, rng, save_every, level)

    def move(grams: Array, left: Array) -> tuple[Array, Array, npt.NDArray[np.bool_]]:
        root, step = semidefinite_root(grams), left[:, None, None]
        with np.errstate(over="ignore", invalid="ignore"):
            after = grams + step * sde._drift(gram_of(root))
            after += np.sqrt(step) * sde._noise(root, rng)
        if not np.isfinite(after).all():
            raise ValueError(f"gram0 or level is too large for {sde}")
        trace = np.trace(after, axis1=-2, axis2=-1)
        outside = np.linalg.eigvalsh(after)[:, 0] < -1e-12 * np.abs(trace)
        return after, left, outside | (trace > level)

    return run_paths(
        move, _to_paths(gram, paths), horizon, steps,
        save_every=save_every, observe=np.copy,
    )  # fmt: skip


def _to_paths(start: Array, paths: int) -> Array:
    """A copy of the start for each path, unless each has its own."""
    return np.broadcast_to(start, (int(paths), *start.shape[-2:])).copy()


def _require_run(
    sde: Limit,
    gram0: npt.ArrayLike,
    horizon: float,
    steps: int,
    paths: int,
    rng: np.random.Generator,
    save_every: int,
    level: float,
) -> Array:
    """Check the arguments of a simulation; gram0 as an array."""
    if not isinstance(sde, Limit):
        raise ValueError(f"sde must be a limit of lib.sde, got {sde!r}")
    gram = as_float("gram0", gram0)
    several = gram.ndim == 3
    gram = (require_grams if several else require_gram)("gram0", gram)
    for name, value in (("steps", steps), ("paths", paths), ("save_every", save_every)):
        require_count(name, value)
    require_generator("rng", rng)
    require_positive("horizon", horizon)
    require_within("level", level, 0, LARGEST)
    if several and len(gram) != paths:
        raise ValueError(
            f"gram0 must be one matrix, or one for each of {paths} paths, got"
            f" {len(gram)}"
        )
    trace = np.trace(gram, axis1=-2, axis2=-1).max()
    if not trace < level:
        raise ValueError(
            f"gram0 must have a trace below level = {level!r}, got {trace}"
        )
    return gram


def _require_degrees(m: int, q: float, horizon: float, steps: int) -> None:
    """Check that 1/(q · step), the degrees of freedom of a Bartlett factor, are m."""
    least = m * q * horizon
    if steps < least:
        raise ValueError(
            f"steps must be at least {np.ceil(least):.17g} to the horizon {horizon:g}:"
            f" the Bartlett factor of {m} tokens needs {m} degrees of freedom, and"
            f" steps = {steps} leave {m * steps / least:.3g}"
        )
