"""Systems of tokens: drawn at random, and parted into clusters."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lib._checks import Array, require_count, require_generator, require_positive
from lib._sphere.geometry import require_unit, unit


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
    if n * d * (batch[0] if batch else 1) > 2**40:
        raise ValueError(f"n={n}, d={d}, systems={systems} is more than fits in memory")
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
        found = connected_components(cdist(tokens, tokens) <= radius, directed=False)
        row[:] = found[1]
    return labels.reshape(*batch, n)
