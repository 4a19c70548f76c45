"""Attention from general scores, normalized by rows and columns in turn."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lib.core.checks import (
    Array,
    as_float,
    require_count,
    require_finite,
    require_moderate,
    require_square,
)


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
    require_moderate("scores", logs[logs != -np.inf])
    require_count("iterations", iterations)
    for axis, side in ((-1, "row"), (-2, "column"))[:iterations]:
        if np.isneginf(logs).all(axis=axis).any():
            raise ValueError(f"scores has a {side} of -inf only")
    for number in range(iterations):
        axis = -1 - number % 2
        # Logarithms: the sums of e^Y would leave the float range.
        logs = logs - np.max(logs, axis=axis, keepdims=True)
        weights = np.exp(logs)
        sums = np.sum(weights, axis=axis, keepdims=True)
        logs = logs - np.log(sums)
    return np.asarray(weights / sums)
