"""What a set of angles says as a law: its points, its moments, its distances."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lib._checks import Array, require_count
from lib._circle.series import Complex, as_angles, circle_points, fourier_sums


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
