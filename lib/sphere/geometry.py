"""Unit tokens: their check, tangent spaces, random systems, and clusters."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lib.core.checks import (
    Array,
    as_float,
    require_count,
    require_finite,
    require_generator,
    require_positive,
)


def require_unit(name: str, value: npt.ArrayLike) -> Array:
    """Return ``value`` as tokens ``(..., n, d)``; raise ValueError off the sphere.

    A norm may differ from 1 by 1e-8 at most.
    """
    array = as_float(name, value)
    if array.ndim < 2 or array.size == 0:
        raise ValueError(f"{name} must have shape (..., n, d), got {array.shape}")
    norms = np.sqrt(np.einsum("...i,...i->...", array, array))
    near = np.abs(norms - 1) <= 1e-8
    if not near.all():
        require_finite(name, array)
        off = ~near
        first = np.argwhere(off)[0].tolist()
        raise ValueError(
            f"{name} must lie on the unit sphere, but {name}{first} has norm"
            f" {norms[off][0]:.9g}"
        )
    return array


def project(x: npt.ArrayLike, y: npt.ArrayLike) -> Array:
    r"""Part of y tangent to the sphere, :math:`\operatorname{Proj}_x y = y - \langle
    x, y\rangle x`.

    Parameters
    ----------
    x : array_like, shape (..., n, d)
        Unit vectors.
    y : array_like, shape (..., n, d)
        A vector at each of them.

    Returns
    -------
    ndarray, shape (..., n, d)
        Orthogonal to x, row by row.

    Raises
    ------
    ValueError
        For vectors x off the sphere, or y that are not finite or do not fit.
    """
    x = require_unit("x", x)
    y = require_finite("y", as_float("y", y))
    if y.shape != x.shape:
        raise ValueError(f"y must have the shape {x.shape} of x, got {y.shape}")
    return tangent(x, y)


def unit(y: Array) -> Array:
    """Rows divided by their lengths."""
    with np.errstate(over="ignore"):
        length: Array = np.sqrt(np.sum(y * y, axis=-1, keepdims=True))
    if not ((length > 0) & np.isfinite(length)).all():  # squares left the range
        largest: Array = np.abs(y).max(axis=-1, keepdims=True)
        if not (largest > 0).all():
            raise ValueError("parts or x0 make a token 0, which has no direction")
        return unit(y / largest)
    return y / length


def unit_tokens(name: str, value: npt.ArrayLike) -> Array:
    """Return tokens as :func:`require_unit`, on the sphere to the last digit."""
    return unit(require_unit(name, value))


def tangent(x: Array, y: Array) -> Array:
    """Projection of y on the tangent spaces at unit vectors x, unchecked."""
    radial: Array = (x * y).sum(axis=-1, keepdims=True) * x
    return np.subtract(y, radial, out=radial)


def uniform_tokens(
    n: int, d: int, *, systems: int | None = None, rng: np.random.Generator
) -> Array:
    """Independent uniform points of the sphere, shape (n, d) or (systems, n, d).

    Raises ValueError for counts below 1.
    """
    require_count("n", n)
    require_count("d", d)
    require_generator("rng", rng)
    batch = () if systems is None else (require_count("systems", systems),)
    return unit(rng.standard_normal((*batch, n, d)))


def cluster_labels(x: npt.ArrayLike, radius: float) -> npt.NDArray[np.int64]:
    """Clusters: tokens joined by a chain of steps no longer than ``radius``.

    Parameters
    ----------
    x : array_like, shape (..., n, d)
        Unit tokens.
    radius : float
        Largest chord :math:`|x_i - x_j|` of a step. Chords are differences of
        coordinates, so that radii far below 1e-8 can be told apart.

    Returns
    -------
    ndarray of int, shape (..., n)
        Labels 0, 1, ... in the order in which clusters first appear, for each system.

    Raises
    ------
    ValueError
        For tokens off the sphere, or a radius that is not positive.
    """
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial.distance import cdist

    x = require_unit("x", x)
    require_positive("radius", radius)
    *batch, n, d = x.shape
    labels = np.empty((int(np.prod(batch)), n), dtype=np.int64)
    for row, tokens in zip(labels, x.reshape(-1, n, d), strict=True):
        components = connected_components(
            cdist(tokens, tokens) <= radius, directed=False
        )
        row[:] = components[1]
    return labels.reshape(*batch, n)


def neighbors(x: npt.ArrayLike, radius: float) -> Array:
    """Number of tokens within a chord of ``radius`` of each token, itself included.

    Parameters
    ----------
    x : array_like, shape (..., n, d)
        Unit tokens.
    radius : float
        Largest chord :math:`|x_i - x_j|` of a neighbor.

    Returns
    -------
    ndarray, shape (..., n)
        Whole numbers from 1 to n.

    Raises
    ------
    ValueError
        For tokens off the sphere, or a radius that is not positive.
    """
    x = require_unit("x", x)
    require_positive("radius", radius)
    apart = x[..., :, None, :] - x[..., None, :, :]  # (..., n, n, d)
    near = np.sum(apart * apart, axis=-1) <= radius * radius
    return np.asarray(np.sum(np.where(near, 1.0, 0.0), axis=-1))


def shares(near: Array) -> Array:
    """Sum over tokens of 1 / ``near``, where each is one of so many in a cluster."""
    total: Array = np.sum(1 / near, axis=-1)
    return total


def cluster_count(x: npt.ArrayLike, radius: float) -> Array:
    r"""Effective number of clusters :math:`\sum_i 1 / n_i`, :math:`n_i` the neighbors.

    Where clusters are narrower than ``radius`` and farther apart, each token counts as
    one share of its cluster, and the sum is exactly the number of clusters. Of tokens
    that still move it is a number between, and by the bound of Caro and Wei at most
    the number of tokens that can be chosen farther apart than ``radius``. Unlike
    :func:`cluster_labels` it takes no chain of steps for one cluster: 256 uniform
    tokens on the sphere are a dozen chains of steps of 1/4, and no cluster.

    Parameters
    ----------
    x : array_like, shape (..., n, d)
        Unit tokens.
    radius : float
        Largest chord within a cluster.

    Returns
    -------
    ndarray, shape (...)
        From 1 to n; one number for each system.

    Raises
    ------
    ValueError
        As :func:`neighbors`.
    """
    return np.asarray(shares(neighbors(x, radius)))[()]
