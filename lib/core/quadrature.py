r"""Nodes for means over a standard normal vector, in replicates that tell the error.

A mean is taken of functions of the scores, softmax(Bg) with g standard normal in d
dimensions. These are analytic, in a strip around the real axis whose width is inverse
to the slope of the scores, so that the trapezoid rule converges geometrically where
Gauss–Hermite nodes fail. Beyond some dimension and slope it has too many nodes, and
Sobol' points with digital shifts take over.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from scipy.special import chdtri, gammaln

from lib.core.checks import Array

REPLICATES = 16  # digital shifts of the Sobol' points
_COARSEST = 1e-4  # accuracy at which a grid is given up for Sobol' points
_BITS = 30
# Half a step apart, no mirror image of one another, and clear of 0, where a variance
# may vanish.
_OFFSETS = (0.1, 0.6)


def normal_grids(
    logits: Array, tol: float, most: int, zero: float | None = None
) -> list[tuple[Array, Array]]:
    """Two grids of the trapezoid rule, half a step apart, or none if too large.

    The leading errors of the two cancel in their mean. The second grid reaches
    further, so that their difference also knows what the first one cuts off.

    Parameters
    ----------
    logits : ndarray, shape (m, d)
        The matrix B.
    tol : float
        Relative accuracy wanted of each grid.
    most : int
        Number of nodes of both together.
    zero : float, optional
        Point on the line, for d = 1, where the variance vanishes.

    Returns
    -------
    list of (nodes (N, d), weights (N,))
        Weights sum to 1.
    """
    slopes = np.ptp(logits, axis=0)
    if slopes.size == 0:
        return [(np.zeros((1, 0)), np.ones(1))]
    if slopes.size == 1:
        return [_line(slopes[0], offset, zero) for offset in _OFFSETS]
    for accuracy in tol * 10.0 ** np.arange(16):
        steps, radius = _steps(slopes, accuracy), _radius(slopes.size, accuracy)
        size, edges = _count(steps, radius), np.zeros(0)
        if slopes.size == 2:
            edges = _tie_angles(logits)
            rings = edges.size * _ring_nodes(accuracy)
            if rings < size and 2 * rings <= most:
                return [
                    _rings(edges, accuracy / 10**k, offset)
                    for k, offset in enumerate(_OFFSETS)
                ]
        if 2 * size <= most:
            return [
                _ball(steps, radius + 0.7 * k, offset)
                for k, offset in enumerate(_OFFSETS)
            ]
        if accuracy > _COARSEST / 10:
            break
    return []


def sobol(dimension: int, count: int, replicates: int = REPLICATES) -> Iterator[Array]:
    """Replicates of points in the open unit cube, each (N, d) for a power of two N.

    N is at most ``count``, or 8 if that is less. The shifts are fixed: the same call
    yields the same points.
    """
    from scipy.stats import qmc

    bits = max(int(np.log2(max(count, 1))), 3)
    points = qmc.Sobol(dimension, scramble=False, bits=_BITS).random_base2(bits)
    integers = (points * 2**_BITS).astype(np.int64)
    rng = np.random.default_rng(0)
    for _ in range(replicates):
        yield ((integers ^ rng.integers(2**_BITS, size=dimension)) + 0.5) / 2**_BITS


def _line(slope: float, offset: float, zero: float | None) -> tuple[Array, Array]:
    """Grid on the line for scores of any slope: g = sinh(x)/slope is dense at 0.

    Around a zero of the variance, where the mixture has a logarithmic singularity, it
    is dense at that point, down to a scale far below that of the scores.
    """
    scale, step, center = max(slope, 1.0), 0.12, 0.0
    if zero is not None and abs(zero) < 9:
        step, center = step / max(1.0, abs(zero) * slope), zero
        scale *= 1e8
    last = np.arcsinh((9 + offset + abs(center)) * scale) // step + 1
    x = step * (np.arange(-last, last + 1) + offset)
    g = center + np.sinh(x) / scale
    weights = np.cosh(x) * np.exp(-(g**2) / 2)
    return g[:, None], weights / weights.sum()


def _tie_angles(logits: Array) -> Array:
    """Directions in the plane in which two scores are equal, rising from 0 to 2π."""
    first, second = np.triu_indices(len(logits), 1)
    across = logits[first] - logits[second]
    across = across[across.any(axis=-1)]
    angles = np.arctan2(across[:, 0], -across[:, 1]) % np.pi
    angles = np.unique(np.round(np.concatenate([angles, angles + np.pi]), 13))
    return np.asarray(angles)


def _ring_grids(accuracy: float, offset: float) -> tuple[Array, Array]:
    """Logarithms of radii, and logits of the places between two edges."""
    decay = -np.log(accuracy)
    step = 0.8 * np.pi**2 / decay
    low, high = -decay / 2 - 1, np.log(np.sqrt(2 * decay) + 1)
    radial = low + step / 2 * (np.arange(2 * (high - low) // step + 1) + offset)
    count = decay // step + 1
    return radial, step * (np.arange(-count, count + 1) + offset)


def _ring_nodes(accuracy: float) -> int:
    """Nodes of a sector."""
    radial, angular = _ring_grids(accuracy, 0.0)
    return radial.size * angular.size


def _rings(edges: Array, accuracy: float, offset: float) -> tuple[Array, Array]:
    """Polar grid in the plane for scores of any slope.

    Along a circle the softmax changes in thin layers, at the angles where two scores
    tie. Between two of these the angle is a logistic function, dense at both ends, of
    a variable in which no pole comes much closer than π/2, however thin the layers
    are. The radius is an exponential.
    """
    radial, angular = _ring_grids(accuracy, offset)
    radius, place = np.exp(radial), 1 / (1 + np.exp(-angular))
    widths = np.diff(edges, append=edges[0] + 2 * np.pi)
    angles = (edges[:, None] + widths[:, None] * place).ravel()
    arcs = (widths[:, None] * place * (1 - place)).ravel()
    weights = np.multiply.outer(radius**2 * np.exp(-(radius**2) / 2), arcs).ravel()
    directions = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    nodes = (radius[:, None, None] * directions).reshape(-1, 2)
    return nodes, weights / weights.sum()


def _steps(slopes: Array, accuracy: float) -> Array:
    """Steps whose error is the accuracy, from the strip that is free of poles.

    A trapezoid rule of step h errs by exp(−2πa/h + a²/2), where a is half the width of
    the strip; the Gaussian itself would have the best a = 2π/h.
    """
    decay = -np.log(accuracy)
    with np.errstate(divide="ignore", over="ignore"):
        strip = np.minimum(np.pi / (2 * slopes), np.sqrt(2 * decay))
    return np.asarray(2 * np.pi * strip / (decay + strip**2 / 2))


def _radius(dimension: int, accuracy: float) -> float:
    """Radius outside of which the normal vector falls with a smaller probability."""
    return float(np.sqrt(chdtri(dimension, accuracy / 100)))


def _count(steps: Array, radius: float) -> float:
    """Nodes of a grid in the ball, or in its cube by 16 where that is what costs."""
    d = steps.size
    ball = d / 2 * np.log(np.pi) - gammaln(d / 2 + 1)
    cube = d * np.log(2) - np.log(16)
    with np.errstate(over="ignore"):
        return float(np.exp(max(ball, cube) + np.sum(np.log(radius / steps))))


def _ball(steps: Array, radius: float, offset: float) -> tuple[Array, Array]:
    """Grid points in a ball with normal weights."""
    axes = []
    for step in steps:
        last = np.floor(radius / step) + 1
        axes.append(step * (np.arange(-last, last) + offset))
    squares = np.zeros(())
    for axis in axes:
        squares = np.add.outer(squares, axis**2)
    inside: npt.NDArray[np.bool_] = squares <= radius**2
    weights = np.exp(-squares[inside] / 2)
    places = np.nonzero(inside)
    pairs = zip(axes, places, strict=True)
    nodes = np.stack([axis[place] for axis, place in pairs], axis=-1)
    return nodes, weights / weights.sum()
