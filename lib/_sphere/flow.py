"""Flows on the sphere by Runge–Kutta, and what they share with layers."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt

from lib._checks import Array, as_float, require_finite
from lib._sphere.geometry import require_unit, tangent, unit
from lib._trajectory import Trajectory, iterate, step_length

Field = Callable[[Array], Array]

_COLLATZ = 0.6
_QUIET = 1e-9  # stages that differ by less say nothing about the step


def flow(
    field: Field, x0: npt.ArrayLike, horizon: float, steps: int, *, save_every: int = 1
) -> Trajectory:
    r"""Solve :math:`\dot x_i = \operatorname{Proj}_{x_i} f_i(X)` on the sphere.

    Classical Runge–Kutta of order 4 with all stages normalized. Fields may be sums of
    outputs of attention and perceptrons; the projection is made here.

    Parameters
    ----------
    field : callable
        f, from unit tokens (..., n, d) to vectors of the same shape.
    x0 : array_like, shape (..., n, d)
        Unit tokens.
    horizon : float
        End time.
    steps : int
        Number of steps, each of four calls of ``field``.
    save_every : int
        Steps between saved states; the first and the last state are saved always.

    Returns
    -------
    Trajectory
        ``states`` (K, ..., n, d).

    Raises
    ------
    ValueError
        For tokens off the sphere, a field with other values than vectors of the
        tokens' shape, or too few steps. They are too few when Collatz's quotient
        :math:`|k_3 - k_2| / |k_2 - k_1|` of a system's stages, which is about half of
        step times rate, exceeds 0.6: errors are then of the order of percents. Or when
        a token would go half round the sphere in a step.
    """
    if not callable(field):
        raise ValueError(f"field must be a function of the tokens, got {field!r}")
    return solve(field, x0, horizon, steps, save_every, "field and x0")


def solve(
    field: Field,
    x0: npt.ArrayLike,
    horizon: float,
    steps: int,
    save_every: int,
    names: str,
) -> Trajectory:
    """The work of :func:`flow`; ``names`` are those of what makes the field."""
    x = unit(require_unit("x0", x0))
    h = step_length(horizon, steps, save_every)
    check = StepCheck((-2, -1), steps, horizon, names)

    def slope(y: Array) -> Array:
        return tangent(y, vectors("field", field(y), y.shape))

    step = runge_kutta(slope, h, check, unit)
    return iterate(step, x, h, steps, save_every)


def runge_kutta(
    slope: Field, h: float, check: StepCheck, retract: Field = np.asarray
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
            self._refuse(4 * float(np.max(quotient)))

    def speed(self, k1: Array) -> None:
        """Check that no token goes half round in a step, where stages say nothing."""
        fastest = float(np.abs(k1).max())
        turns = fastest * self.horizon / self.steps / (2 * np.pi)
        if turns > 0.5:
            self._refuse(10 * turns)

    def _refuse(self, factor: float) -> None:
        raise ValueError(
            f"steps={self.steps} is too small for horizon={self.horizon!r} with these"
            f" {self.names}: take about {ceil(min(factor, 1e9) * self.steps)}"
        )


def vectors(name: str, value: Any, shape: tuple[int, ...]) -> Array:
    """Check what a field gives for each token."""
    array = as_float(name, value)
    if array.shape != shape:
        raise ValueError(
            f"{name} must give vectors of shape {shape}, got shape {array.shape}"
        )
    return require_finite(name, array)
