"""The result of every simulation in time, and the loop over its steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import TypeVar

import numpy as np

from lib.core.checks import Array, require_count, require_positive

State = TypeVar("State")


@dataclass(frozen=True)
class Trajectory:
    """States at increasing times.

    Attributes
    ----------
    times : ndarray, shape (K,)
        The first one is 0.
    states : ndarray, shape (K, ...)
        One state for each time; the function that made it says of which shape.
    stopped : ndarray or None
        Time at which each path was stopped, ∞ for never, where a simulation stops
        paths.
    """

    times: Array
    states: Array
    stopped: Array | None = None

    @property
    def stopped_share(self) -> float:
        """Share of the paths that were stopped."""
        return 0.0 if self.stopped is None else float((self.stopped < inf).mean())


def step_times(eps: float, steps: int) -> Array:
    """Times 0, ε, ..., ``steps`` · ε."""
    return np.asarray(np.arange(require_count("steps", steps) + 1) * eps)


def step_length(horizon: float, steps: int, save_every: int) -> float:
    """Check how a simulation divides its time; the length of a step."""
    h = require_positive("horizon", horizon) / require_count("steps", steps)
    require_count("save_every", save_every)
    return h


def iterate(
    step: Callable[[State], State],
    state: State,
    h: float,
    steps: int,
    save_every: int,
    observe: Callable[[State], Array] | None = None,
) -> Trajectory:
    """Run a chain, and keep what ``observe`` makes of its state.

    It is kept at 0, every so many steps, and at the end; without ``observe`` the state
    itself is. Times are numbers of steps times h. States between are not stored.
    """
    observe = observe or np.asarray
    states = [observe(state)]
    for number in range(1, steps + 1):
        state = step(state)
        if number % save_every == 0 or number == steps:
            states.append(observe(state))
    numbers = np.append(np.arange(0, steps, save_every), steps)
    return Trajectory(np.asarray(h * numbers), np.stack(states))
