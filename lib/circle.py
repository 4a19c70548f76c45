r"""Tokens on the circle: attention in a time proportional to their number.

A token is an angle :math:`\theta`, d = 2, :math:`x = (\cos\theta, \sin\theta)`. The
kernel is a short Fourier series,

.. math:: e^{\beta\cos u} = \sum_k I_k(\beta) e^{\mathrm iku}, \qquad
          Z_\mu(\theta) = \sum_k I_k(\beta)\, c_k e^{\mathrm ik\theta}, \qquad
          c_k = \int e^{-\mathrm ik\theta} \mu(\mathrm d\theta) ,

whose coefficients fall below :math:`10^{-17}` after about :math:`\sqrt{2\beta\log
10^{17}}` harmonics. Both models are its logarithmic and its plain derivative:

.. math:: \dot\theta = \frac1\beta \frac{Z_\mu'(\theta)}{Z_\mu(\theta)}
          \quad\text{(normalized)}, \qquad
          \frac{\mathrm d\theta}{\mathrm ds} = \frac{e^{-|\beta|}}\beta Z_\mu'(\theta)
          \quad\text{(unnormalized)} .
"""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt

from lib._checks import Array, require_flag
from lib._circle.growth import fastest_mode, growth_rate
from lib._circle.laws import moments, points, wasserstein_distance
from lib._circle.series import (
    Complex,
    Kernel,
    angular_velocity,
    as_angles,
    circle_points,
    fourier_values,
)
from lib._sphere.flow import StepCheck, runge_kutta
from lib._trajectory import Trajectory, iterate, step_length

__all__ = [
    "HiddenDriftWarning", "attention_field", "fastest_mode", "growth_rate", "moments",
    "partition_function", "points", "simulate", "wasserstein_distance",
]  # fmt: skip


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
    """Whether two clusters of a system do not feel each other above the rounding."""
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
