"""Sums of rows, whichever way they are taken."""

import numpy as np
import pytest

from lib.core.rows import row_sums


# Few rows, many, long ones; a single entry each; no row at all.
@pytest.mark.parametrize(
    "shape", [(3,), (2, 3, 4), (500, 1), (200, 7), (50, 4, 64), (128, 1025), (0, 5)]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_are_those_in_extended_precision(shape, dtype):
    values = np.random.default_rng(1).standard_normal(shape).astype(dtype)
    sums = row_sums(values)
    assert sums.shape == (*shape[:-1], 1) and sums.dtype == dtype
    exact = values.astype(np.longdouble).sum(axis=-1, keepdims=True)
    size = np.abs(values).sum(axis=-1, keepdims=True)
    # m − 1 additions in any order
    assert (np.abs(sums - exact) <= shape[-1] * np.finfo(dtype).eps * size).all()


def test_views_of_many_rows_have_the_sums_of_their_copies():
    block = np.random.default_rng(2).standard_normal((6, 40, 200))
    others = block.T, block[:, ::2], block[..., ::-3], np.broadcast_to(1.5, (300, 3))
    for view in others:
        np.testing.assert_array_equal(row_sums(view), row_sums(view.copy()))


def test_what_is_not_finite_stays_in_its_row():
    values = np.ones((300, 4))
    values[1, 2], values[2, 0] = np.inf, np.nan
    sums = row_sums(values)[:, 0]
    assert sums[1] == np.inf and np.isnan(sums[2])
    np.testing.assert_array_equal(np.delete(sums, [1, 2]), 4)
