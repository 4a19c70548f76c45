"""The bridge step of Gaussians, against its closed forms."""

import numpy as np
import pytest
from scipy.linalg import sqrtm

from lib import heat
from lib.heat import GaussianMixture
from lib.sinkhorn import self_transport


@pytest.mark.parametrize("eps", [0.01, 0.3, 1.0, 4.0])
@pytest.mark.parametrize("variance", [0.25, 1.0])
def test_slope_of_a_gaussian(variance, eps):
    law = GaussianMixture([0], [variance], [1])
    spacing = 0.3 * np.sqrt(min(eps, variance))
    x, w = heat.quadrature(law, spacing)
    projection = self_transport(x, eps, weights=w, tol=1e-14).barycentric()
    slope = heat.gaussian_slope(variance, eps)
    inner = np.abs(x[:, 0]) < 4 * np.sqrt(variance)
    np.testing.assert_allclose(projection[inner], slope * x[inner], atol=1e-9, rtol=0)
    assert slope**2 + eps / variance * slope == pytest.approx(1, abs=1e-15)


def test_slope_at_its_extremes():
    np.testing.assert_array_equal(heat.gaussian_slope([0.0, 1e100], 1e-300), [0, 1])
    # a = s/ε − (s/ε)³ + … for large ε, where the textbook formula is 0.
    assert heat.gaussian_slope(1.0, 1e9) == pytest.approx(1e-9, rel=1e-15, abs=0)


def test_several_dimensions():
    cov, eps = np.array([[1.0, 0.6, 0], [0.6, 0.8, 0.1], [0, 0.1, 0.3]]), 0.3
    A = heat.gaussian_barycentric(cov, eps)
    np.testing.assert_allclose(cov @ A @ A + eps * A, cov, atol=1e-15, rtol=0)
    root = sqrtm(cov @ cov + eps**2 / 4 * np.eye(3))
    inverse = np.linalg.inv(cov)
    np.testing.assert_allclose(
        A, root @ inverse - eps / 2 * inverse, atol=1e-13, rtol=0
    )
    flow = heat.gaussian_flow(cov, eps, 2)
    np.testing.assert_allclose(flow.times, [0, eps, 2 * eps])
    step = 2 * np.eye(3) - A
    np.testing.assert_allclose(flow.states[0], cov, atol=1e-15, rtol=0)
    np.testing.assert_allclose(flow.states[1], step @ cov @ step, atol=1e-14, rtol=0)


def test_two_dimensions_by_quadrature():
    cov, eps = np.array([[1.0, 0.5], [0.5, 0.7]]), 0.5
    line = np.arange(-8, 8.01, 0.25)
    x = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    w = np.exp(-np.einsum("ni,ij,nj->n", x, np.linalg.inv(cov), x) / 2)
    x, w = x[w > 1e-12], w[w > 1e-12] / w[w > 1e-12].sum()
    projection = self_transport(x, eps, weights=w).barycentric()
    error = projection - x @ heat.gaussian_barycentric(cov, eps)
    assert np.sqrt(w @ (error**2).sum(axis=1)) < 1e-7


def test_constants_of_the_gaussian_recursion():
    """The variance error at the time t is −(ε²/8)(1/s − 1/(s + t)) + O(ε³)."""
    for eps in (0.02, 0.01):
        last = heat.gaussian_flow([[1.0]], eps, round(1 / eps)).states[-1, 0, 0]
        assert (last - 2) / eps**2 == pytest.approx(-1 / 16, rel=eps, abs=0)
    # Printed in the notebook of the method's authors, at ε = 0.1 and 0.01.
    last = heat.gaussian_flow([[1.0]], 0.1, 10).states[-1, 0, 0]
    assert last == pytest.approx(1.99934, abs=5e-6)
    last = heat.gaussian_flow([[0.25]], 0.01, 100).states[-1, 0, 0]
    assert last == pytest.approx(1.249959, abs=5e-7)


def test_distance_of_gaussians():
    rng = np.random.default_rng(1)
    one, two = (np.cov(rng.standard_normal((3, 9))) for _ in range(2))
    root = sqrtm(one)
    squared = np.trace(one + two - 2 * sqrtm(root @ two @ root).real)
    assert heat.gaussian_w2(one, two) == pytest.approx(
        np.sqrt(squared), rel=1e-10, abs=0
    )
    assert heat.gaussian_w2([[4.0]], [[1.0]]) == pytest.approx(1, rel=1e-14, abs=0)
    # Close covariances do not cancel: |√(1 + δ) − 1| = δ/2.
    near = heat.gaussian_w2(np.eye(3), (1 + 1e-12) * np.eye(3))
    assert near == pytest.approx(np.sqrt(3) * 5e-13, rel=1e-3, abs=0)
    assert heat.gaussian_w2(np.diag([1.0, 0]), np.diag([0, 0.0])) == pytest.approx(1)
