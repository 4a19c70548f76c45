"""Distance between the laws of two samples of vectors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lib.core.checks import Array, require_matrix, require_moderate

_BLOCKS = 20  # parts of the samples that the jackknife leaves out in turn


class Gap(NamedTuple):
    """A distance of two laws and its standard error."""

    distance: float
    stderr: float


def energy_distance(one: npt.ArrayLike, other: npt.ArrayLike) -> Gap:
    r"""Energy distance of two laws, from independent samples of them.

    .. math:: \mathcal E = 2\,\mathbb E|X - Y| - \mathbb E|X - X'| - \mathbb E|Y - Y'|

    with independent X, X′ of the one law and Y, Y′ of the other: 0 if and only if the
    laws are equal, whatever they are, so that it sees joint laws and not the marginals
    alone. The estimate is without bias, hence it may be negative. Its standard error is
    the jackknife's, each time without a twentieth of both samples.

    Parameters
    ----------
    one, other : array_like, shape (k, d)
        Two samples of k vectors each, k a multiple of 20, at least 40.

    Returns
    -------
    Gap
        ``(distance, stderr)``.

    Raises
    ------
    ValueError
        For samples that are not finite matrices of one such shape.

    References
    ----------
    Székely and Rizzo, *Energy statistics: A class of statistics based on distances*,
    Journal of Statistical Planning and Inference 143, 2013, 1249–1272.
    """
    x, y = (
        require_matrix(name, require_moderate(name, value))
        for name, value in (("one", one), ("other", other))
    )
    if x.shape != y.shape:
        raise ValueError(
            f"one and other must have one shape, got {x.shape} and {y.shape}"
        )
    if len(x) % _BLOCKS or len(x) < 2 * _BLOCKS:
        raise ValueError(
            f"one and other must have a multiple of {_BLOCKS} rows, at least"
            f" {2 * _BLOCKS}, got {len(x)}"
        )
    cross, within = _block_sums(x, y), _block_sums(x, x) + _block_sums(y, y)
    kept = np.vstack([np.ones(_BLOCKS), 1 - np.eye(_BLOCKS)])  # all, then all but one
    sizes = kept.sum(axis=1) * (len(x) // _BLOCKS)

    def total(sums: Array) -> Array:
        return np.asarray(((kept @ sums) * kept).sum(axis=1))

    gaps = 2 * total(cross) / sizes**2 - total(within) / (sizes * (sizes - 1))
    spread = gaps[1:] - gaps[1:].mean()
    error = np.sqrt((_BLOCKS - 1) / _BLOCKS * (spread @ spread))
    return Gap(float(gaps[0]), float(error))


def _block_sums(x: Array, y: Array) -> Array:
    """Sums of distances between blocks of rows, (blocks, blocks)."""
    from scipy.spatial.distance import cdist

    parts = np.split(x, _BLOCKS)
    columns = [cdist(part, y).sum(axis=0) for part in parts]  # each (k,)
    sums = np.stack(columns).reshape(_BLOCKS, _BLOCKS, -1).sum(axis=-1)
    return np.asarray(sums)
