"""Laws on the circle proportional to the exponential of their own potential."""

from __future__ import annotations

import numpy as np

from lib._checks import Array
from lib._circle.series import Kernel

_NEWTON = 50


class Gibbs:
    """Even densities exp(scale·Z)/mean of it, on the upper half of the circle."""

    def __init__(self, beta: float, width: float):
        kernel = Kernel(beta)
        half = 16 + 2 * (kernel.harmonics + int(width))
        self.k = np.arange(kernel.harmonics + 1)
        self.weight = kernel.value
        self.cosines = np.cos(np.pi * np.outer(self.k, np.arange(half + 1)) / half)
        self.mean = np.full(half + 1, 1 / half)  # trapezoidal rule
        self.mean[[0, -1]] /= 2

    def respond(
        self, c: Array, scale: float, derive: bool = False
    ) -> tuple[Array, Array, Array]:
        """Density of the moments c_1, c_2, ..., its moments, and their Jacobian."""
        exponents = scale * ((self.weight[1:] * c) @ self.cosines[1:])
        f = np.exp(exponents - exponents.max())
        f /= self.mean @ f
        shares = self.mean * f
        found = self.cosines[1:] @ shares
        jacobian = np.empty((0, 0))
        if derive:
            second = (self.cosines[1:] * shares) @ self.cosines[1:].T
            jacobian = (second - np.outer(found, found)) * scale * self.weight[1:]
        return np.concatenate([f, f[-2:0:-1]]), found, jacobian

    def scale_for(self, r: float, c: Array, scale: float) -> tuple[float, Array]:
        """Scale at which the law of the moments c has order r, and its moments."""
        potential = (self.weight[1:] * c) @ self.cosines[1:]
        for _ in range(200):
            f, found, _ = self.respond(c, scale)
            shares = self.mean * f[: self.mean.size]
            # The order grows with the scale at the rate Cov(cos θ, potential).
            slope = shares @ ((self.cosines[1] - found[0]) * potential)
            step = (r - found[0]) / (scale * slope)
            scale *= float(np.exp(np.clip(step, -1, 1)))
            if abs(step) < 1e-9:
                break
        return scale, found


def newton_at_order(gibbs: Gibbs, c: Array, scale: float) -> tuple[Array, float] | None:
    """Moments and scale of a stationary law near, with the first moment of c."""
    log_scale = np.log(scale)
    for _ in range(_NEWTON):
        _, found, jacobian = gibbs.respond(c, float(np.exp(log_scale)), True)
        # The unknown in the place of c_1 = r is the logarithm of the scale.
        matrix = jacobian - np.eye(c.size)
        matrix[:, 0] = jacobian @ c
        step = np.linalg.solve(matrix, c - found)
        if not np.abs(step).max() < 0.1:
            return None
        log_scale += step[0]
        c = np.append(c[0], c[1:] + step[1:])
        if np.abs(step).max() < 1e-9:  # the next step is its square
            return c, float(np.exp(log_scale))
    return None


def polish(gibbs: Gibbs, c: Array, scale: float) -> Array | None:
    """Density by Newton's method, if it leads to a stable law near the moments c."""
    start = c
    for _ in range(_NEWTON):
        density, found, jacobian = gibbs.respond(c, scale, True)
        if np.abs(found - c).max() < 1e-14:
            stable = np.abs(np.linalg.eigvals(jacobian)).max() < 1
            return density if stable and np.abs(c - start).max() < 0.01 else None
        c = np.asarray(c + np.linalg.solve(np.eye(c.size) - jacobian, found - c))
        if not np.abs(c).max() <= 1:
            return None
    return None
