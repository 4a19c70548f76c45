"""Attention from general scores, normalized by rows and columns in turn."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from lib.core.checks import (
    LARGEST,
    Array,
    as_float,
    require_count,
    require_finite,
    require_square,
)
from lib.core.rows import row_sums

_MODERATE = 150.0  # scores up to this size are normalized without logarithms


def sinkhorn_attention(scores: npt.ArrayLike, iterations: int) -> Array:
    r"""Attention from general scores Y: rows and columns of :math:`e^Y` normalized.

    One iteration is one normalization, rows first. So 1 iteration is the softmax of
    each row; an odd number ends with rows that sum to 1, an even one with columns. As
    the number grows, both sums tend to 1, for finite scores.

    Parameters
    ----------
    scores : array_like, shape (..., n, n)
        Queries along rows; −inf masks a key.
    iterations : int
        Number of normalizations, at least 1.

    Returns
    -------
    ndarray, shape (..., n, n)

    Raises
    ------
    ValueError
        For scores that are not square, NaN, +inf or beyond 1e100; for a row or,
        with two or more iterations, a column of −inf only; for a number of iterations
        below 1.

    References
    ----------
    Sander, Ablin, Blondel, Peyré, *Sinkformers: transformers with doubly stochastic
    attention*, AISTATS 2022.
    """
    logs = require_square("scores", as_float("scores", scores))
    require_finite("scores", logs, masked=True)
    largest = _largest(logs)
    if largest > LARGEST:
        raise ValueError(f"scores must not exceed {LARGEST:.0e}, got {largest:.3g}")
    require_count("iterations", iterations)
    masked = np.isneginf(logs)
    for axis, side in ((-1, "row"), (-2, "column"))[:iterations]:
        if masked.all(axis=axis).any():
            raise ValueError(f"scores has a {side} of -inf only")
    return deque(normalizations(logs, iterations), maxlen=1).pop()


def normalizations(scores: Array, iterations: int) -> Iterator[Array]:
    r"""The weights after each normalization of :math:`e^Y`; nothing is checked.

    Scores up to 150 need no logarithms: :math:`e^Y` itself is divided, and no sum of it
    leaves the float range. For after its first normalization a row has an entry of at
    least 1/n, and a column sums to at least e^(−2·150)/n. From then on all sums are at
    least 1/n², however many entries a mask drives to 0.
    """
    if _largest(scores) > _MODERATE:
        yield from _by_logarithms(scores, iterations)
        return
    weights = np.exp(scores)
    for number in range(iterations):
        rows = number % 2 == 0
        sums = row_sums(weights) if rows else weights.sum(axis=-2, keepdims=True)
        weights = weights / sums
        yield weights


def _by_logarithms(logs: Array, iterations: int) -> Iterator[Array]:
    """The same for scores whose exponentials would leave the float range."""
    for number in range(iterations):
        axis = -1 - number % 2
        logs = logs - logs.max(axis=axis, keepdims=True)
        weights = np.exp(logs)
        sums = weights.sum(axis=axis, keepdims=True)
        logs = logs - np.log(sums)
        yield weights / sums


def _largest(scores: Array) -> float:
    """Size of the largest score, masked ones apart."""
    low, high = scores.min(initial=0.0), scores.max(initial=0.0)
    if np.isneginf(low):
        low = scores.min(initial=0.0, where=scores != -np.inf)
    return float(max(-low, high))
