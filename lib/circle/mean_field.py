r"""Infinitely many tokens on the circle: their density, and its equation.

A law is given by its density :math:`f` with respect to the uniform law at equally
spaced angles :math:`2\pi j/N`: positive numbers with mean 1, whose moments :math:`c_k =
\int e^{-\mathrm ik\theta}\mu(\mathrm d\theta)` are their discrete Fourier transform. It
moves by

.. math:: \partial_t \mu + \partial_\theta(\mu v_\mu) = \eta\,\partial_\theta^2\mu,
          \qquad v_\mu = \frac{Z_\mu'}{\beta Z_\mu} \text{ (normalized)}, \quad
          \frac{e^{-|\beta|}}\beta Z_\mu' \text{ (unnormalized, time } s) .
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from lib.circle.field import FLOOR, Kernel
from lib.core.checks import (
    Array,
    as_float,
    require_count,
    require_finite,
    require_flag,
    require_number,
    require_positive,
)
from lib.core.fourier import Complex, circle_points, fourier_values
from lib.core.trajectory import Trajectory, iterate, step_length

__all__ = ["density_moments", "quantile_tokens", "simulate"]

_FLUX_ERROR = 1e-6  # by rounding of the partition function
_STABLE = 2.7  # RK4 is stable for step times frequency below 2.8 on the imaginary axis


def as_density(name: str, value: npt.ArrayLike) -> Array:
    """Check a density (..., N); raises ValueError for another mean than 1."""
    f = require_finite(name, as_float(name, value))
    if f.ndim == 0 or f.size == 0 or f.shape[-1] < 4:
        raise ValueError(f"{name} must have at least 4 nodes, got shape {f.shape}")
    if f.min() < -1e-8:
        raise ValueError(f"{name} must not be negative, got {f.min():.6g}")
    if f.max() > f.shape[-1] * 1.1 or np.abs(f.mean(axis=-1) - 1).max() > 1e-8:
        means = f.mean(axis=-1).ravel() if f.max() < 1e300 else f.max(keepdims=True)
        worst = means.flat[np.abs(means - 1).argmax()]
        raise ValueError(f"{name} must have mean 1, got {worst:.9g}")
    return f


def density_moments(density: npt.ArrayLike, modes: int) -> Complex:
    r"""Fourier moments :math:`c_0, \dots, c_{\text{modes}}` of a density.

    Parameters
    ----------
    density : array_like, shape (..., N)
        At N equally spaced angles from 0 on, with mean 1.
    modes : int
        Largest k, below N/2.

    Returns
    -------
    complex ndarray, shape (..., modes + 1)
        The modulus of :math:`c_1` is the order parameter r.

    Raises
    ------
    ValueError
        For a density that is negative or has another mean, or too many modes.
    """
    f = as_density("density", density)
    n = f.shape[-1]
    if require_count("modes", modes) >= n / 2:
        raise ValueError(f"modes must be below half of {n} nodes, got {modes}")
    return np.asarray(np.fft.rfft(f, axis=-1)[..., : modes + 1] / n)


def quantile_tokens(density: npt.ArrayLike, n: int) -> Array:
    r"""Tokens :math:`\theta_i = F^{-1}((i - \tfrac12)/n)` of a density.

    Unlike random ones they represent a smooth density with an error that is
    exponentially small in their number, also after they have moved.

    Parameters
    ----------
    density : array_like, shape (N,)
        Positive, at N equally spaced angles from 0 on, with mean 1; between them it is
        its trigonometric interpolation by the modes below N/2.
    n : int
        Number of tokens.

    Returns
    -------
    ndarray, shape (n,)
        Increasing angles between 0 and 2π.

    Raises
    ------
    ValueError
        For a density that is not positive or has another mean.
    """
    f = as_density("density", density)
    if f.ndim != 1 or f.min() <= 0:
        raise ValueError(
            f"density must be one list of positive numbers, got shape {f.shape}"
            f" and a minimum of {f.min():.3g}"
        )
    target = (np.arange(require_count("n", n, most=10**8)) + 0.5) / n
    modes = np.arange(1, (f.size + 1) // 2)
    c = density_moments(f, modes[-1])[1:]
    rate = np.append(1, 2 * c)  # density
    share = np.append(0, 2 * c / (1j * modes)) / (2 * np.pi)  # F − θ/2π + constant

    def both(theta: Array) -> Array:
        series = np.stack([rate, share])[None]
        return fourier_values(series, circle_points(theta)[None])[:, 0]

    nodes = 2 * np.pi * np.arange(f.size + 1) / f.size
    start = share.real.sum()
    grid = nodes / (2 * np.pi) + both(nodes)[1] - start
    if (np.diff(grid) <= 0).any():
        raise ValueError("density is negative between its nodes: it needs more of them")
    cell = np.clip(np.searchsorted(grid, target), 1, f.size)
    low, high = nodes[cell - 1], nodes[cell]
    theta = np.interp(target, grid, nodes)
    for _ in range(60):
        slope, value = both(theta)
        excess = theta / (2 * np.pi) + value - start - target
        low, high = np.where(excess < 0, theta, low), np.where(excess < 0, high, theta)
        if np.abs(excess).max() < 1e-15:
            break
        newton = theta - 2 * np.pi * excess / slope
        inside = (low < newton) & (newton < high)
        theta = np.where(inside, newton, (low + high) / 2)
    return np.asarray(theta)


def simulate(
    density0: npt.ArrayLike,
    beta: float,
    horizon: float,
    steps: int,
    *,
    normalize: bool = True,
    noise: float = 0.0,
    tail: float = 1e-8,
    save_every: int = 1,
) -> Trajectory:
    r"""Solve the equation of the density by Fourier modes.

    Two thirds of the modes that the nodes resolve are kept; diffusion is solved
    exactly, the rest by Runge–Kutta of order 4. The error is exponentially small in the
    number of nodes as long as the density is smooth on their scale. A density without
    noise concentrates, and once its last modes are not small the run is refused:
    :func:`quantile_tokens` go on where it stops.

    Parameters
    ----------
    density0 : array_like, shape (N,)
        Density at time 0 at N equally spaced angles from 0 on, with mean 1.
    beta : float
        Inverse temperature, of either sign.
    horizon : float
        End time, t or, with ``normalize=False``, s.
    steps : int
        Number of steps.
    normalize : bool
        Which model.
    noise : float
        η ≥ 0, per unit of the model's own time.
    tail : float
        Largest modulus that the last tenth of the modes may have, and at time 0 those
        that are left out.
    save_every : int
        Steps between saved states; the first and the last state are saved always.

    Returns
    -------
    Trajectory
        ``states`` (K, N).

    Raises
    ------
    ValueError
        For a density that is negative or has another mean, too few steps, too few
        nodes for what the density becomes, or, at large \|β\|, a partition function
        that is lost in rounding where the density is not.
    """
    f = as_density("density0", density0)
    if f.ndim != 1 or f.size < 8:
        raise ValueError(f"density0 must be a list of at least 8, got shape {f.shape}")
    h = step_length(horizon, steps, save_every)
    require_positive("tail", tail)
    if require_number("noise", noise) < 0:
        raise ValueError(f"noise must not be negative, got {noise!r}")
    n, cut = f.size, f.size // 3
    slope = _transport(Kernel(beta), n, cut, require_flag("normalize", normalize))
    with np.errstate(over="ignore"):  # over half a step
        damping = np.exp(-h / 2 * (noise * np.arange(cut + 1.0) ** 2))
    c, left_out = np.split(np.fft.rfft(f) / n, [cut + 1])
    _require_tail(left_out, tail, n, 0.0)

    def step(state: tuple[int, Complex]) -> tuple[int, Complex]:
        number, c = state
        k1, speed = slope(c)
        if h * cut * speed > _STABLE:
            raise ValueError(
                f"steps must be at least {np.ceil(horizon * cut * speed / 2):.0f} for"
                f" horizon={horizon!r} and {n} nodes of density0, got {steps}"
            )
        k2, _ = slope(damping * (c + h / 2 * k1))
        k3, _ = slope(damping * c + h / 2 * k2)
        k4, _ = slope(damping * (damping * c + h * k3))
        c = damping * (damping * (c + h / 6 * k1) + h / 3 * (k2 + k3)) + h / 6 * k4
        _require_tail(c[-max(1, cut // 10) :], tail, n, (number + 1) * h)
        return number + 1, c

    run = iterate(
        step, (0, c), h, steps, save_every, lambda state: np.fft.irfft(state[1] * n, n)
    )
    run.states[0] = f  # with the modes that are left out
    return run


def _require_tail(modes: Complex, tail: float, n: int, time: float) -> None:
    last = float(np.abs(modes).max())
    if not last <= tail:
        raise ValueError(
            f"density0 needs more than {n} nodes: at time {time:.6g} its"
            f" last modes are {last:.1e}, more than the tail={tail!r}"
        )


def _transport(
    kernel: Kernel, n: int, cut: int, normalize: bool
) -> Callable[[Complex], tuple[Complex, float]]:
    """The function from moments to their rate of change and the largest speed."""
    most = min(cut, kernel.harmonics) + 1
    # irfft counts each mode but the 0th twice.
    value, slope = np.zeros(cut + 1), np.zeros(cut + 1)
    value[:most], slope[:most] = kernel.value[:most] / 2, kernel.slope[:most] / 2
    value[0] *= 2
    k = np.arange(cut + 1)

    def rate(c: Complex) -> tuple[Complex, float]:
        density = np.fft.irfft(c * n, n)
        velocity = np.fft.irfft(1j * slope * c * n, n)
        if normalize:
            z = np.fft.irfft(value * c * n, n)
            if not (np.abs(density) * FLOOR < _FLUX_ERROR * z).all():
                raise ValueError(
                    f"density0 and beta={kernel.beta!r} make the partition function"
                    " vanish in rounding; sphere.simulate of its quantile_tokens has no"
                    " such limit"
                )
            velocity = velocity / z
        flux = np.fft.rfft(density * velocity)[: cut + 1] / n
        return -1j * k * flux, float(np.abs(velocity).max())

    return rate
