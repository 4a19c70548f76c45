"""The classical Runge–Kutta step, and the check that it is short enough."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

import numpy as np

from lib.core.checks import Array

Field = Callable[[Array], Array]
_COLLATZ = 0.6
_QUIET = 1e-9  # stages that differ by less say nothing about the step


def _unchanged(x: Array) -> Array:
    return x


def runge_kutta(
    slope: Field, h: float, check: StepCheck, retract: Field = _unchanged
) -> Field:
    """The step of the classical method of order 4, with ``retract`` after each sum."""

    def step(x: Array) -> Array:
        k1 = slope(x)
        check.speed(k1)
        k2 = slope(retract(x + h / 2 * k1))
        k3 = slope(retract(x + h / 2 * k2))
        k4 = slope(retract(x + h * k3))
        check.stages(k1, k2, k3)
        return retract(x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4))

    return step


class StepCheck:
    """Raises ValueError, with a number of steps to take, where a step is too long."""

    def __init__(self, axes: tuple[int, ...], steps: int, horizon: float, names: str):
        self.axes, self.steps, self.horizon, self.names = axes, steps, horizon, names

    def stages(self, k1: Array, k2: Array, k3: Array) -> None:
        """Check Collatz's quotient of the stages of each system."""
        first, second, moving = (
            np.sqrt(np.sum(k * k, axis=self.axes)) for k in (k2 - k1, k3 - k2, k1)
        )
        bad = (second > _COLLATZ * first) & (second > 0.1 * moving) & (second > _QUIET)
        if bad.any():
            quotient = second[bad] / np.maximum(first[bad], 0.01 * second[bad])
            self._refuse(4 * np.max(quotient))

    def speed(self, k1: Array) -> None:
        """Check that no token goes half round in a step, where stages say nothing."""
        fastest = np.abs(k1).max()
        turns = fastest * self.horizon / self.steps / (2 * np.pi)
        if turns > 0.5:
            self._refuse(10 * turns)

    def _refuse(self, factor: float) -> None:
        raise ValueError(
            f"steps={self.steps} is too small for horizon={self.horizon!r} with these"
            f" {self.names}: take about {ceil(min(factor, 1e9) * self.steps)}"
        )
