"""The result of every simulation in time."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from lib._checks import Array, require_count


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
    """Times 0, ε, ..., ``steps`` · ε; raises ValueError beyond the float range."""
    require_count("steps", steps)
    if not eps * float(steps) < np.inf:
        raise ValueError(f"steps of eps must end in the float range, got {eps!r}")
    return np.asarray(np.arange(steps + 1) * eps, dtype=np.float64)
