"""Densities as quadrature nodes."""

import numpy as np
import pytest

from lib import heat
from lib.heat import GaussianMixture

MIXTURE = GaussianMixture([-2, 2], [1, 1], [0.5, 0.5])

LAWS = {
    "one": GaussianMixture([0.3], [2.0], [1.0]),
    "even": MIXTURE,
    "uneven": GaussianMixture([-1, 0, 4], [0.2, 3, 0.5], [0.2, 0.7, 0.1]),
    "narrow": GaussianMixture([0, 1], [1e-6, 1], [0.5, 0.5]),
    "apart": GaussianMixture([-5, 5], [0.01, 0.04], [0.3, 0.7]),
}


laws = pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)


@laws
def test_quadrature_integrates_gaussian_kernels(law):
    x, w = heat.quadrature(law, 0.3 * np.sqrt(law.variances.min()))
    assert w.sum() == pytest.approx(1, abs=1e-14) and w.min() > 0
    # ∫ e^{−(x − y)²/2ε} ρ(y) dy = √(2πε) · (ρ heated by ε)(x).
    eps, at = 1.3, np.linspace(-4, 4, 9)
    kernel = np.exp(-((at[:, None] - x[:, 0]) ** 2) / 2 / eps) @ w
    np.testing.assert_allclose(
        kernel, np.sqrt(2 * np.pi * eps) * law.heat(eps).pdf(at), rtol=1e-10
    )


def test_nodes_leave_out_what_lies_between_far_components():
    x, _ = heat.quadrature(LAWS["apart"], 0.05)
    assert len(x) < 100 and np.diff(x[:, 0]).max() > 7
    with pytest.raises(ValueError, match="spacing must not exceed the least standard"):
        heat.quadrature(LAWS["apart"], 0.2)
    with pytest.raises(ValueError, match="spacing must leave at most 1000000 nodes"):
        heat.quadrature(LAWS["apart"], 1e-9)


def test_density_of_nodes_that_moved():
    x, w = heat.quadrature(MIXTURE, 0.02)
    moved = MIXTURE.transport(x, MIXTURE.heat(1))
    density = heat.node_density(moved, w)
    np.testing.assert_allclose(
        density, MIXTURE.heat(1).pdf(moved[:, 0]), atol=4e-5, rtol=0
    )
    mixed = np.random.default_rng(0).permutation(len(x))
    np.testing.assert_array_equal(
        heat.node_density(moved[mixed], w[mixed]), density[mixed]
    )
    with pytest.raises(ValueError, match="x must have distinct nodes"):
        heat.node_density([[1.0], [1.0]], [0.5, 0.5])
