"""Roots of positive semidefinite matrices."""

import numpy as np
import pytest

from lib.core.psd import canonical_columns, gram_root, rank, require_grams


def rng(key=0):
    return np.random.default_rng(key)


def test_roots_do_not_depend_on_the_basis_of_an_eigenspace():
    """Another basis of equal eigenvalues, as another processor finds it."""
    turn = np.linalg.qr(rng().normal(size=(5, 5)))[0]
    columns = np.hstack([2 * np.eye(8)[:, :5] @ turn, np.eye(8)[:, 5:] * 0.5])
    settled = canonical_columns(columns)
    expected = np.hstack([2 * np.eye(8)[:, :5], np.eye(8)[:, 5:] * 0.5])
    assert np.abs(settled - expected).max() < 1e-14
    low = rng().normal(size=(6, 3))
    assert (
        np.abs(canonical_columns(low) @ canonical_columns(low).T - low @ low.T).max()
        < 1e-14
    )


def test_matrices_may_differ_from_their_transpose_by_one_part_in_1e12():
    for size in (1e-20, 1.0, 1e20):
        for excess in (0.9e-12, 1.1e-12):
            matrix = size * np.array([[1.0, 0.5], [0.5 + excess, 1.0]])
            if excess < 1e-12:
                np.testing.assert_array_equal(require_grams("x", matrix), matrix)
                continue
            with pytest.raises(ValueError, match="x must be symmetric"):
                require_grams("x", matrix)


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1]])
def test_rank_of_several_roots_is_the_largest(order):
    """Rounding has no part in it: the second one has eigenvalues of 1e-16."""
    tokens = rng().normal(size=(4, 2))
    grams = np.stack([np.ones((4, 4)), tokens @ tokens.T, np.zeros((4, 4))])
    roots = gram_root(grams)
    assert rank(roots[order]) == 2 and [rank(root) for root in roots] == [1, 2, 0]
