"""Single steps: softmax, and bridges to a surrogate measure."""

import numpy as np
import pytest

from lib import heat
from lib.claims import convergence_order
from lib.heat import GaussianMixture
from lib.sinkhorn import bridge_step

MIXTURE = GaussianMixture([-2, 2], [1, 1], [0.5, 0.5])


def nodes_of(law, eps, share=0.35):
    return heat.quadrature(law, share * np.sqrt(eps))


def test_softmax_of_distances_flows_at_twice_the_speed():
    variances = []
    for eps in (0.1, 0.05, 0.025):
        x, w = nodes_of(MIXTURE, eps, share=0.3)
        for _ in range(round(1 / eps)):
            x = heat.softmax_step(x, eps, weights=w)
        variances.append(w @ x[:, 0] ** 2)
    gains = np.array(variances) - 5
    np.testing.assert_allclose(gains, [1.939, 1.970, 1.985], atol=1e-3, rtol=0)


def test_softmax_steps_of_a_gaussian():
    """B = x s/(s + ε) for distances, and x s/ε for dot products."""
    law = GaussianMixture([0], [0.6], [1])
    x, w = heat.quadrature(law, 0.05)
    inner = np.abs(x[:, 0]) < 1.5
    moved = heat.softmax_step(x, 0.4, weights=w)
    np.testing.assert_allclose(moved[inner], (2 - 0.6) * x[inner], atol=1e-9, rtol=0)
    moved = heat.softmax_step(x, 0.8, weights=w, kernel="dot")
    np.testing.assert_allclose(moved[inner], (2 - 0.75) * x[inner], atol=1e-8, rtol=0)


def test_surrogate_of_the_heat_flow_is_the_law_itself():
    x, w = nodes_of(MIXTURE, 0.1)
    moved = heat.surrogate_step(x, 0.1, w)
    np.testing.assert_array_equal(moved, bridge_step(x, 0.1, weights=w))
    twice = heat.surrogate_step(x, 0.1, w, theta=-2.0)
    np.testing.assert_allclose(twice - x, 2 * (moved - x), atol=1e-14, rtol=0)


@pytest.mark.parametrize(("variance", "theta"), [(0.5, -1.0), (4.0, 1.0)])
def test_surrogate_of_a_gaussian_is_gaussian(variance, theta):
    """Precision |1/s − 1| for the target N(0, 1); its step contracts towards it."""
    eps, law = 0.05, GaussianMixture([0], [variance], [1])
    x, w = nodes_of(law, eps)
    surrogate, sign = heat.kl_surrogate(x, w)
    assert sign == theta and surrogate.sum() == pytest.approx(1, abs=1e-13)
    slope = heat.gaussian_slope(1 / abs(1 / variance - 1), eps)
    moved = heat.surrogate_step(x, eps, surrogate, theta=theta)
    inner = np.abs(x[:, 0]) < 2.5 * np.sqrt(variance)
    expected = x * (1 + theta * (slope - 1))
    np.testing.assert_allclose(moved[inner], expected[inner], atol=1e-6, rtol=0)


@pytest.mark.parametrize("variance", [0.5, 4.0])
def test_flow_of_the_relative_entropy_converges_at_order_one(variance):
    """To the law 1 + (s − 1)e^{−t} at t = 1."""
    sizes, errors = 0.2 * 2.0 ** -np.arange(5), []
    exact = np.sqrt(1 + (variance - 1) * np.exp(-1))
    for eps in sizes:
        x, w = nodes_of(GaussianMixture([0], [variance], [1]), eps)
        for _ in range(round(1 / eps)):
            surrogate, theta = heat.kl_surrogate(x, w)
            x = heat.surrogate_step(x, eps, surrogate, theta=theta)
        errors.append(abs(np.sqrt(w @ x[:, 0] ** 2) - exact))
    assert convergence_order(sizes, errors).order == pytest.approx(1, abs=0.1)


def test_surrogate_on_nodes_that_moved():
    """Its weight is ν/ρ times the width of the cell."""
    law = MIXTURE.heat(1)
    x, w = heat.quadrature(MIXTURE, 0.01)
    x = MIXTURE.transport(x, law)
    surrogate, theta = heat.kl_surrogate(x, w, variance=2.0)
    expected = np.gradient(x[:, 0]) * np.exp(-(x[:, 0] ** 2) / 4) / law.pdf(x[:, 0])
    assert theta == 1
    np.testing.assert_allclose(surrogate, expected / expected.sum(), atol=1e-7, rtol=0)
    assert np.ptp(np.gradient(x[:, 0])) > 0.5 * np.gradient(x[:, 0]).mean()


def test_surrogate_in_several_dimensions():
    x = 0.5 * np.random.default_rng(0).standard_normal((20, 2))
    w = np.full(20, 1 / 20)
    surrogate, theta = heat.kl_surrogate(x, w, variance=2.0)
    assert theta == -1
    expected = np.exp((x**2).sum(axis=1) / 4)
    np.testing.assert_allclose(surrogate, expected / expected.sum(), rtol=1e-13)
    with pytest.raises(ValueError, match="x must be nodes on the line"):
        heat.kl_surrogate(10 * x, w)
