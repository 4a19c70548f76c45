"""Angular velocities of attention on the circle, and their laws."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.special import ive

from lib.core.checks import (
    Array,
    as_float,
    require_count,
    require_finite,
    require_flag,
    require_last_axis,
    require_number,
)
from lib.core.fourier import Complex, circle_points, fourier_sums, fourier_values
from lib.core.runge_kutta import StepCheck, runge_kutta
from lib.core.trajectory import Trajectory, iterate, step_length

FLOOR = 3e-16  # absolute error of a sum of the series, whatever its size
_LARGEST_BETA = 1e8


def as_angles(name: str, value: npt.ArrayLike) -> Array:
    """Check angles (..., n)."""
    array = require_last_axis(name, as_float(name, value))
    if array.size == 0:
        raise ValueError(f"{name} must not be empty, got shape {array.shape}")
    return require_finite(name, array)


class Kernel:
    """The Fourier coefficients of e^(β cos u − |β|), and what follows from them."""

    def __init__(self, beta: float):
        size = abs(require_number("beta", beta))
        if size > _LARGEST_BETA:
            raise ValueError(f"beta must be at most {_LARGEST_BETA:.0e}, got {beta!r}")
        self.beta = beta
        k = np.arange(30 + int(10 * np.sqrt(size)))
        bessel = ive(np.append(k, k.size), size)
        # 2k I_k/β is I_{k−1} − I_{k+1}, and 1 for k = 1 at β = 0.
        small = np.append(bessel[1], bessel[:-2]) - bessel[1:]
        slope = small if size < 1 else 2 * k * bessel[:-1] / size
        even, sign = k % 2 == 0, np.sign(beta)
        #: Coefficients of Z, as a sum over k ≥ 0, and of Z'/β but for its i.
        self.value = np.where(k, 2, 1) * np.where(even, 1, sign) * bessel[:-1]
        self.slope = np.where(even, sign, 1) * slope
        seen = np.abs([self.value / bessel[0], self.slope / slope.max()]) > 1e-17
        self.harmonics = int(np.flatnonzero(seen.any(axis=0))[-1])
        self.value = self.value[: self.harmonics + 1]
        self.slope = self.slope[: self.harmonics + 1]

    def moments(self, z: Complex) -> Complex:
        """Moments c_k of each row, for the k that the kernel sees."""
        return np.asarray(fourier_sums(z, self.harmonics) / z.shape[1])

    def velocity(self, z: Complex, normalize: bool) -> tuple[Array, Array]:
        """Velocities (systems, n), and their absolute error in each system."""
        c = self.moments(z)
        slope = 1j * self.slope * c
        if not normalize:
            return fourier_values(slope[:, None], z)[0], np.full(len(z), FLOOR)
        value, slope = fourier_values(np.stack([self.value * c, slope], axis=1), z)
        least = value.min(axis=1)
        if least.min() < 1e8 * FLOOR:
            raise ValueError(
                f"theta and beta={self.beta!r} make the partition function vanish in"
                " rounding; sphere.attention_field has no such limit"
            )
        return slope / value, FLOOR / least


def angular_velocity(beta: float, normalize: bool) -> Callable[[Array], Array]:
    """Velocities as a function of angles (..., n)."""
    kernel, normalize = Kernel(beta), require_flag("normalize", normalize)

    def velocity(theta: Array) -> Array:
        z = circle_points(theta.reshape(-1, theta.shape[-1]))
        return kernel.velocity(z, normalize)[0].reshape(theta.shape)

    return velocity


class HiddenDriftWarning(UserWarning):
    """The rounding of the Fourier series hides how clusters move."""


def attention_field(theta: npt.ArrayLike, beta: float, normalize: bool = True) -> Array:
    r"""Angular velocity of each token, at a cost of n times the number of harmonics.

    Exact but for rounding, which is absolute: about 3e-16 in
    :math:`e^{-|\beta|} Z_\mu` and its derivative. A warning says where this hides a
    drift: at β > 14 where clusters are so far apart that the kernel between them is
    below a thousand times the rounding, at β < 0 where all speeds are. Such drifts can
    be had from :func:`lib.sphere.coalesce`.

    Parameters
    ----------
    theta : array_like, shape (..., n)
        Angles in radians; leading axes hold several systems.
    beta : float
        Inverse temperature, of either sign, up to 1e8.
    normalize : bool
        False for the unnormalized model in its time :math:`s = e^{|\beta|}t`.

    Returns
    -------
    ndarray, shape (..., n)
        :math:`\dot\theta_i` in radians per unit of the model's time.

    Raises
    ------
    ValueError
        For angles that are not finite, a β beyond 1e8, or, at negative β, tokens so
        close together that the partition function is lost in rounding.

    Warns
    -----
    HiddenDriftWarning
        Where rounding hides how the clusters of a system move.
    """
    angles = as_angles("theta", theta)
    flat = angles.reshape(-1, angles.shape[-1])
    kernel, normalize = Kernel(beta), require_flag("normalize", normalize)
    z = circle_points(flat)
    velocity, floor = kernel.velocity(z, normalize)
    if _hides_drift(z, velocity, beta, float(floor.max())):
        warnings.warn(
            f"rounding of {floor.max():.0e} hides how clusters move at beta={beta!r};"
            " lib.sphere.coalesce follows such drifts",
            HiddenDriftWarning,
            stacklevel=2,
        )
    return velocity.reshape(angles.shape)


def partition_function(
    theta: npt.ArrayLike, beta: float, at: npt.ArrayLike, *, shifted: bool = False
) -> Array:
    r"""Partition function :math:`Z_\mu` of the tokens at any angles.

    Up to a factor it is an estimate of their density with a kernel of width
    :math:`\beta^{-1/2}`.

    Parameters
    ----------
    theta : array_like, shape (..., n)
        Tokens.
    beta : float
        Inverse temperature, of either sign.
    at : array_like, shape (m,)
        Where to evaluate.
    shifted : bool
        Whether to return :math:`e^{-|\beta|} Z_\mu`, which is finite for any β.

    Returns
    -------
    ndarray, shape (..., m)
        Exact to 3e-16, times :math:`e^{|\beta|}` if not shifted.

    Raises
    ------
    ValueError
        For angles that are not finite, or a β that overflows without the shift.
    """
    angles, places = as_angles("theta", theta), as_angles("at", at)
    if places.ndim != 1:
        raise ValueError(f"at must be a list of angles, got shape {places.shape}")
    flat = angles.reshape(-1, angles.shape[-1])
    kernel = Kernel(beta)
    c = kernel.moments(circle_points(flat))
    z = np.broadcast_to(circle_points(places), (len(flat), places.size))
    values = fourier_values((kernel.value * c)[:, None], z)[0]
    if not require_flag("shifted", shifted):
        with np.errstate(over="ignore", invalid="ignore"):
            values = values * np.exp(abs(beta))
    if not np.isfinite(values).all():
        raise ValueError(f"beta={beta!r} overflows; shifted=True gives a finite form")
    return np.reshape(values, (*angles.shape[:-1], places.size))


def simulate(
    theta0: npt.ArrayLike,
    beta: float,
    horizon: float,
    steps: int,
    *,
    normalize: bool = True,
    save_every: int = 1,
) -> Trajectory:
    """Angles along the flow of :func:`attention_field`, by Runge–Kutta of order 4.

    Parameters
    ----------
    theta0 : array_like, shape (..., n)
        Angles at time 0.
    beta : float
        Inverse temperature, of either sign.
    horizon : float
        End time, t or, with ``normalize=False``, s.
    steps : int
        Number of steps.
    normalize : bool
        Which model.
    save_every : int
        Steps between saved states; the first and the last state are saved always.

    Returns
    -------
    Trajectory
        ``states`` (K, ..., n), not reduced to one turn.

    Raises
    ------
    ValueError
        As :func:`attention_field`, and for too few steps, with a suggestion.
    """
    angles = as_angles("theta0", theta0)
    h = step_length(horizon, steps, save_every)
    velocity = angular_velocity(beta, normalize)
    check = StepCheck((-1,), steps, horizon, "theta0 and beta")
    return iterate(runge_kutta(velocity, h, check), angles, h, steps, save_every)


def _hides_drift(z: Complex, velocity: Array, beta: float, floor: float) -> bool:
    """Tell whether rounding hides the pull between two clusters of a system."""
    visible = 1e3 * floor
    if beta <= 0:
        together = np.abs(z - z[:, :1]).max(axis=1) < 1e-12
        return bool((~together & (np.abs(velocity).max(axis=1) < visible)).any())
    if -np.log(visible) >= 2 * beta:  # even antipodes feel each other
        return False
    # Gaps longer than this are runs of empty bins; two of them part the tokens.
    run = 8
    bins = int(2 * np.pi * run / np.arccos(1 + np.log(visible) / beta))
    place = np.floor((np.angle(z) / (2 * np.pi) + 0.5) * bins).astype(int) % bins
    empty = np.ones((len(z), bins), bool)
    empty[np.arange(len(z))[:, None], place] = False
    gap = np.logical_and.reduce([np.roll(empty, j, axis=1) for j in range(run)])
    return bool(((gap & ~np.roll(gap, 1, axis=1)).sum(axis=1) >= 2).any())


def points(theta: npt.ArrayLike) -> Array:
    """Tokens (cos θ, sin θ), shape (..., n, 2), for :mod:`lib.sphere`.

    Raises ValueError for angles that are not finite.
    """
    angles = as_angles("theta", theta)
    return np.stack([np.cos(angles), np.sin(angles)], axis=-1)


def moments(theta: npt.ArrayLike, modes: int) -> Complex:
    r"""Fourier moments :math:`c_k = \tfrac1n \sum_j e^{-\mathrm ik\theta_j}`, k from 0.

    Parameters
    ----------
    theta : array_like, shape (..., n)
        Angles.
    modes : int
        Largest k, at most 100,000.

    Returns
    -------
    complex ndarray, shape (..., modes + 1)
        The modulus of :math:`c_1` is the order parameter r.

    Raises
    ------
    ValueError
        For angles that are not finite, or modes below 1.
    """
    angles = as_angles("theta", theta)
    require_count("modes", modes, most=10**5)
    flat = angles.reshape(-1, angles.shape[-1])
    sums = fourier_sums(circle_points(flat), modes) / angles.shape[-1]
    return np.reshape(sums, (*angles.shape[:-1], modes + 1))


def wasserstein_distance(theta: npt.ArrayLike, other: npt.ArrayLike) -> float:
    r"""Wasserstein distance :math:`W_1` of two sets of tokens along the circle.

    With the distribution functions F and G from any origin, it is
    :math:`\min_a \int_0^{2\pi} |F - G - a|\,\mathrm d\theta`; the best a is a median.

    Parameters
    ----------
    theta, other : array_like, shape (n,), (m,)
        Angles of equal weights.

    Returns
    -------
    float
        Mean length of arc, at most π.

    Raises
    ------
    ValueError
        For arrays that are not lists of finite angles.
    """
    sides = [as_angles("theta", theta), as_angles("other", other)]
    for name, side in zip(("theta", "other"), sides, strict=True):
        if side.ndim != 1:
            raise ValueError(f"{name} must be a list of angles, got {side.shape}")
    places = np.concatenate([np.angle(circle_points(side)) for side in sides])
    jumps = np.repeat([1 / sides[0].size, -1 / sides[1].size], [s.size for s in sides])
    order = np.argsort(places)
    places = places[order]
    lengths = np.diff(places, append=places[0] + 2 * np.pi)
    difference = np.cumsum(jumps[order])  # F − G after each jump
    rank = np.argsort(difference)
    half = np.searchsorted(np.cumsum(lengths[rank]), np.pi)
    median = difference[rank[min(int(half), rank.size - 1)]]
    return float(np.sum(lengths * np.abs(difference - median)))
