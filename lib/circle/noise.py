r"""Tokens with noise on the circle, and where they cease to be uniform.

With noise of strength :math:`\eta` the unnormalized model is a gradient flow of the
free energy

.. math:: F[\mu] = \eta \int \mu\log\mu - E_\beta[\mu] .

The uniform law is stationary, and stable for :math:`\eta > \eta_\# = \Lambda_1/\beta`.
Below a noise next to it the tokens order: continuously for :math:`\beta \le \beta_*`,
with a jump and hysteresis above, which :func:`ordered_state` follows.

All noises are per unit of the model's own time, for the unnormalized model
:math:`e^{-|\beta|}` times the :math:`\eta` of the time t, and energies have that factor
too. Quotients such as :math:`\eta/\eta_\#` do not depend on this.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lib.circle.field import Kernel, angular_velocity, as_angles
from lib.circle.growth import growth_rate
from lib.circle.mean_field import as_density, density_moments
from lib.core.checks import (
    Array,
    require_count,
    require_generator,
    require_number,
    require_positive,
    require_within,
)
from lib.core.trajectory import Trajectory, iterate, step_length

__all__ = [
    "critical_noise", "free_energy", "langevin", "ordered_state", "stationary_density",
    "transition_noise", "tricritical_beta",
]  # fmt: skip
_SMALLEST_BETA = 1e-100
_ITERATIONS = 20_000
_LARGEST_BETA = 1e4
_LEAST_JUMP = 1e-2  # free energies differ by its sixth power
_NEWTON = 50


def critical_noise(beta: npt.ArrayLike, normalize: bool = True, *, d: int = 2) -> Array:
    r"""Noise :math:`\eta_\#` below which the uniform law is unstable.

    A harmonic of degree k grows at the rate :math:`\lambda_k - \eta k(k + d - 2)`. The
    first one is the last to become stable, at :math:`\eta_\# = \Lambda_1/\beta`, or
    :math:`\Lambda_1/(\beta\Lambda_0)` for the normalized model.

    Parameters
    ----------
    beta : float or array_like
        Inverse temperature, of either sign.
    normalize : bool
        False for the unnormalized model: :math:`e^{-|\beta|}\Lambda_1/\beta`.
    d : int
        Dimension, at least 2.

    Returns
    -------
    ndarray
        Of the shape of ``beta``.

    Raises
    ------
    ValueError
        As :func:`lib.circle.growth_rate`.
    """
    return np.asarray(growth_rate(1, beta, normalize, d=d) / (d - 1))[()]


def tricritical_beta(d: int = 2) -> float:
    r"""Inverse temperature :math:`\beta_*` above which the transition has a jump.

    With the density :math:`1 + ax + b(x^2 - \tfrac1d)` in one coordinate x, the free
    energy at :math:`\eta_\#`, taken at the best b, is a constant plus

    .. math:: \frac{\eta a^4}{4d(d + 2)} \Big(1 - \frac{1 - 1/d}{1 - q}\Big) , \qquad
              q = \frac{\Lambda_2}{\Lambda_1}
              = \frac{I_{d/2+1}(\beta)}{I_{d/2}(\beta)} ,

    which changes its sign at :math:`q = 1/d`.

    Parameters
    ----------
    d : int
        Dimension, at least 2.

    Returns
    -------
    float
        2.4469 on the circle.

    Raises
    ------
    ValueError
        For a dimension below 2 or above 1000.

    References
    ----------
    Mun and Rosenzweig, 2026, arXiv:2606.05140: the transition is continuous if and
    only if :math:`\beta \le \beta_*`.
    """
    from scipy.optimize import brentq

    require_count("d", d, least=2, most=1000)

    def excess(b: float) -> float:
        # In d + 2 dimensions the rate of the first harmonic has the same quotient.
        return float(b * growth_rate(1, b, d=d + 2) / (d + 1)) - 1 / d

    return float(brentq(excess, 0.5, 5, xtol=1e-13))


def free_energy(density: npt.ArrayLike, beta: float, noise: float) -> Array:
    r"""Free energy :math:`\eta\int\mu\log\mu - e^{-|\beta|}E_\beta[\mu]`.

    Parameters
    ----------
    density : array_like, shape (..., N)
        With respect to the uniform law, at N equally spaced angles.
    beta : float
        Inverse temperature, of either sign but not 0.
    noise : float
        η ≥ 0 of the unnormalized model in its time s.

    Returns
    -------
    ndarray, shape (...)
        The entropy is 0 for the uniform law.

    Raises
    ------
    ValueError
        For a density that is negative or has another mean, or β = 0.
    """
    if abs(require_number("beta", beta)) < _SMALLEST_BETA:
        raise ValueError(f"beta must not be 0 for an energy, got {beta!r}")
    if require_number("noise", noise) < 0:
        raise ValueError(f"noise must not be negative, got {noise!r}")
    kernel, f = Kernel(beta), as_density("density", density)
    most = min(kernel.harmonics, (f.shape[-1] - 1) // 2)
    c = density_moments(f, most)
    energy = np.sum(kernel.value[: most + 1] * np.abs(c) ** 2, axis=-1) / (2 * beta)
    positive = np.maximum(f, 0)
    entropy = np.mean(positive * np.log(np.where(positive > 0, positive, 1)), axis=-1)
    return np.asarray(noise * entropy - energy)[()]


def langevin(
    theta0: npt.ArrayLike,
    beta: float,
    noise: float,
    horizon: float,
    steps: int,
    *,
    normalize: bool = True,
    save_every: int = 1,
    rng: np.random.Generator,
) -> Trajectory:
    r"""Tokens with noise, :math:`\mathrm d\theta_i = v_i\,\mathrm dt +
    \sqrt{2\eta}\,\mathrm dB_{i,t}` with v from
    :func:`lib.circle.attention_field`.

    Heun's method, of weak order 2 for noise that does not depend on the state.

    Parameters
    ----------
    theta0 : array_like, shape (..., n)
        Angles at time 0.
    beta : float
        Inverse temperature, of either sign.
    noise : float
        η > 0, per unit of the model's own time: with ``normalize=False`` it is
        :math:`e^{-|\beta|}` times the η of the time t.
    horizon, steps, normalize, save_every
        As for :func:`lib.circle.simulate`.
    rng : numpy.random.Generator

    Returns
    -------
    Trajectory
        ``states`` (K, ..., n), not reduced to one turn.

    Raises
    ------
    ValueError
        As :func:`lib.circle.attention_field`, and for steps longer than 1 or, at
        negative β, 1/(1 + \|β\|).
    """
    angles = as_angles("theta0", theta0)
    h = step_length(horizon, steps, save_every)
    require_generator("rng", rng)
    velocity = angular_velocity(beta, normalize)
    fastest = 1 + max(0.0, -beta)
    if h * fastest > 1:
        raise ValueError(
            f"steps must be at least {np.ceil(horizon * fastest):.0f} for"
            f" horizon={horizon!r} and beta={beta!r}, got {steps}"
        )
    scale = np.sqrt(2 * require_positive("noise", noise)) * np.sqrt(h)

    def step(x: Array) -> Array:
        kick = scale * rng.standard_normal(x.shape)
        v1 = velocity(x)
        v2 = velocity(x + h * v1 + kick)
        return np.asarray(x + h / 2 * (v1 + v2) + kick)

    return iterate(step, angles, h, steps, save_every)


def ordered_state(order: float, beta: float) -> tuple[float, Array]:
    r"""The noise at which a stationary law has a given order, and its density.

    As a function of r it follows the branch of ordered laws through its fold, unstable
    part included: the whole diagram of the transition.

    Parameters
    ----------
    order : float
        :math:`0 < r < 1`, the modulus of the first moment.
    beta : float
        Inverse temperature β > 0.

    Returns
    -------
    noise : float
        η of the unnormalized model in its time s.
    density : ndarray, shape (N,)
        With respect to the uniform law, at N equally spaced angles, largest at 0.

    Raises
    ------
    ValueError
        For an order not between 1e-4 and 0.9999, or a β that is not positive or
        beyond 1e4.

    Notes
    -----
    The moments that the kernel sees are iterated, each time at the noise that gives the
    law its order, until Newton's method takes over.
    """
    r = require_within("order", order, 1e-4, 0.9999)
    # A wrapped normal law of order r has the variance −2 log r and moments r^(k²).
    gibbs = _Gibbs(_require_beta(beta), np.sqrt(40 / -np.log(r)))
    c: Array = np.asarray(r ** (gibbs.k[1:] ** 2.0))
    scale = (1 / critical_noise(beta, False) - 0.5 / np.log(r)) / beta
    for _ in range(_ITERATIONS // 100):
        for _ in range(10):
            scale, moments = gibbs.scale_for(r, c, scale)
            c = np.append(r, moments[1:])
        solved = _newton_at_order(gibbs, c, scale)
        if solved is not None:
            return 1 / (solved[1] * beta), gibbs.respond(*solved)[0]
    raise ValueError(f"order={order!r} at beta={beta!r} is not found")


def stationary_density(beta: float, noise: float, *, order0: float = 0.9) -> Array:
    r"""The stable stationary law that is reached from a given order.

    Iterates :math:`\mu \leftarrow \exp(Z_\mu/(\eta\beta))`, normalized, which never
    increases the free energy, then Newton's method. Where two laws are stable, between
    the fold and :math:`\eta_\#`, the start decides: this is the hysteresis.

    Parameters
    ----------
    beta : float
        Inverse temperature β > 0.
    noise : float
        η of the unnormalized model in its time s.
    order0 : float
        Order r of the start, from 0 (which stays) to 0.9999.

    Returns
    -------
    ndarray, shape (N,)
        Density with respect to the uniform law, at N equally spaced angles.

    Raises
    ------
    ValueError
        For a β beyond 1e4, a noise too small to be resolved, or one so near to a
        transition that the iteration does not end.
    """
    r = require_within("order0", order0, 0, 0.9999)
    noise = require_positive("noise", noise)
    if noise < 1e-6:
        raise ValueError(f"noise must be at least 1e-6 to be resolved, got {noise!r}")
    # The narrowest law has the variance η, hence moments e^(−ηk²/2).
    gibbs = _Gibbs(_require_beta(beta), np.sqrt(80 / noise))
    scale = 1 / (noise * beta)
    c: Array = np.asarray(r ** (gibbs.k[1:] ** 2.0))
    for number in range(_ITERATIONS):
        density, moments, _ = gibbs.respond(c, scale)
        error = np.abs(moments - c).max()
        if error < 1e-15:
            return density
        if number % 50 == 49 and error < 1e-4:
            polished = _polish(gibbs, moments, scale)
            if polished is not None:
                return polished
        c = moments
    raise ValueError(f"noise={noise!r} is too close to a transition at beta={beta!r}")


def transition_noise(beta: float) -> float:
    r"""Noise at which the law of least free energy ceases to be the uniform one.

    It is :math:`\eta_\#` for :math:`\beta \le \beta_*`. Above, an ordered law has the
    same free energy there, and r jumps.

    Parameters
    ----------
    beta : float
        Inverse temperature β > 0.

    Returns
    -------
    float
        η of the unnormalized model in its time s.

    Raises
    ------
    ValueError
        For a β that is not positive or beyond 1e4, or so little above
        :math:`\beta_*` that the jump is below 0.01.
    """
    from scipy.optimize import brentq

    if _require_beta(beta) <= tricritical_beta():
        return float(critical_noise(beta, False))

    def difference(order: float) -> float:
        noise, density = ordered_state(order, beta)
        return float(
            free_energy(density, beta, noise)
            - free_energy(np.ones_like(density), beta, noise)
        )

    # Of ordered laws the unstable ones, of small order, have more free energy.
    if difference(_LEAST_JUMP) <= 0:
        raise ValueError(
            f"beta={beta!r} is too close to {tricritical_beta():.6g}: the jump is below"
            f" {_LEAST_JUMP}"
        )
    order = brentq(difference, _LEAST_JUMP, 0.999, xtol=1e-12)
    return ordered_state(order, beta)[0]


def _require_beta(beta: float) -> float:
    return require_within("beta", beta, _SMALLEST_BETA, _LARGEST_BETA)


class _Gibbs:
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
        moments = self.cosines[1:] @ shares
        jacobian = np.empty((0, 0))
        if derive:
            second = (self.cosines[1:] * shares) @ self.cosines[1:].T
            jacobian = (second - np.outer(moments, moments)) * scale * self.weight[1:]
        return np.concatenate([f, f[-2:0:-1]]), moments, jacobian

    def scale_for(self, r: float, c: Array, scale: float) -> tuple[float, Array]:
        """Scale at which the law of the moments c has order r, and its moments."""
        potential = (self.weight[1:] * c) @ self.cosines[1:]
        for _ in range(200):
            f, moments, _ = self.respond(c, scale)
            shares = self.mean * f[: self.mean.size]
            # The order grows with the scale at the rate Cov(cos θ, potential).
            slope = shares @ ((self.cosines[1] - moments[0]) * potential)
            step = (r - moments[0]) / (scale * slope)
            scale *= float(np.exp(np.clip(step, -1, 1)))
            if abs(step) < 1e-9:
                break
        return scale, moments


def _newton_at_order(
    gibbs: _Gibbs, c: Array, scale: float
) -> tuple[Array, float] | None:
    """Moments and scale of a stationary law near, with the first moment of c."""
    log_scale = np.log(scale)
    for _ in range(_NEWTON):
        _, moments, jacobian = gibbs.respond(c, float(np.exp(log_scale)), True)
        # The unknown in the place of c_1 = r is the logarithm of the scale.
        matrix = jacobian - np.eye(c.size)
        matrix[:, 0] = jacobian @ c
        step = np.linalg.solve(matrix, c - moments)
        if not np.abs(step).max() < 0.1:
            return None
        log_scale += step[0]
        c = np.append(c[0], c[1:] + step[1:])
        if np.abs(step).max() < 1e-9:  # the next step is its square
            return c, float(np.exp(log_scale))
    return None


def _polish(gibbs: _Gibbs, c: Array, scale: float) -> Array | None:
    """Density by Newton's method, if it leads to a stable law near the moments c."""
    start = c
    for _ in range(_NEWTON):
        density, moments, jacobian = gibbs.respond(c, scale, True)
        if np.abs(moments - c).max() < 1e-14:
            stable = np.abs(np.linalg.eigvals(jacobian)).max() < 1
            return density if stable and np.abs(c - start).max() < 0.01 else None
        c = np.asarray(c + np.linalg.solve(np.eye(c.size) - jacobian, moments - c))
        if not np.abs(c).max() <= 1:
            return None
    return None
