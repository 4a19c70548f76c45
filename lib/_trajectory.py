"""The result of every simulation in time."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from lib._checks import Array


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
