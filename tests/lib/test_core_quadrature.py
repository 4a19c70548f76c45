"""Grids for normal vectors: how fine they are, and when they are given up."""

import numpy as np

from lib.core.quadrature import normal_grids

LOGITS = np.random.default_rng(1).standard_normal((4, 3))


def nodes(tol, most):
    return [len(weights) for _, weights in normal_grids(LOGITS, tol, most)]


def test_the_finest_grid_that_fits_is_taken_down_to_the_coarsest():
    """Each is ten times coarser than the one before; the coarsest is below 1e-4."""
    fine, coarse = nodes(9.5e-6, 10**6), nodes(9.5e-5, 10**6)
    assert sum(coarse) < sum(fine)
    assert nodes(9.5e-6, 2 * sum(coarse)) == fine
    assert nodes(9.5e-6, sum(coarse)) == coarse == nodes(9.5e-5, sum(coarse))
    too_coarse = nodes(9.5e-4, 10**6)
    assert sum(too_coarse) < sum(coarse) / 2
    assert nodes(9.5e-5, sum(too_coarse)) == []
    assert nodes(9.5e-4, 10**6) == too_coarse  # where it is what was asked


def test_leading_errors_of_the_two_grids_cancel():
    """In the covariance of a normal vector, which is the identity."""
    for tol in (1e-4, 1e-6, 1e-8):
        errors = [
            points.T * weights @ points - np.eye(3)
            for points, weights in normal_grids(LOGITS, tol, 10**6)
        ]
        assert np.abs(np.mean(errors, axis=0)).max() < tol < np.abs(errors).max() / 10
