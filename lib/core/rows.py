"""Sums along the last axis, of many short rows at once."""

from __future__ import annotations

import numpy as np

from lib.core.checks import Array

# numpy's sum starts anew in each row, which costs as much as some 60 entries; a product
# with a vector of ones costs two calls more, and rounds more in long rows.
_FEW, _LONG = 128, 1024


def row_sums(values: Array) -> Array:
    """Sums of the rows, (..., m) to (..., 1), in the type of the values."""
    m = values.shape[-1]
    if values.size < _FEW * m or m > _LONG:
        return np.asarray(values.sum(axis=-1, keepdims=True))
    # Of other strides the sums would have other digits.
    rows = np.ascontiguousarray(values).reshape(-1, m)
    sums = rows @ np.ones(m, values.dtype)
    return np.asarray(sums.reshape(*values.shape[:-1], 1))
