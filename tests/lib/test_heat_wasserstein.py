"""Distances of weighted tokens to a law and to their partners."""

import numpy as np
import pytest

from lib import heat
from lib.heat import GaussianMixture
from lib.sinkhorn import self_transport

MIXTURE = GaussianMixture([-2, 2], [1, 1], [0.5, 0.5])

LAWS = {
    "one": GaussianMixture([0.3], [2.0], [1.0]),
    "even": MIXTURE,
    "uneven": GaussianMixture([-1, 0, 4], [0.2, 3, 0.5], [0.2, 0.7, 0.1]),
    "narrow": GaussianMixture([0, 1], [1e-6, 1], [0.5, 0.5]),
    "apart": GaussianMixture([-5, 5], [0.01, 0.04], [0.3, 0.7]),
}


def test_distance_of_point_masses_to_a_law():
    """Against many quantiles, and against a law of two atoms by hand."""
    ot = pytest.importorskip("ot")
    rng = np.random.default_rng(2)
    x, w = rng.standard_normal((50, 1)), rng.dirichlet(np.ones(50))
    many = MIXTURE.ppf((np.arange(200_000) + 0.5) / 200_000)
    distance = heat.w2_to_law(x, MIXTURE, weights=w)
    exact = ot.wasserstein_1d(x[:, 0], many, w, p=2) ** 0.5
    assert distance == pytest.approx(exact, rel=1e-4, abs=0)
    # One token at a: W2² = variance + (mean − a)².
    one = heat.w2_to_law([[1.0]], LAWS["uneven"])
    law = LAWS["uneven"]
    assert one**2 == pytest.approx(law.variance + (law.mean - 1) ** 2, rel=1e-13, abs=0)
    narrow = GaussianMixture([-1, 1], [1e-12, 1e-12], [0.25, 0.75])
    assert heat.w2_to_law([[-1.0], [1.0]], narrow) == pytest.approx(1, rel=1e-5, abs=0)


def test_distance_of_pairs_says_when_it_is_only_a_bound():
    x, w = np.array([[0.0], [1.0], [3.0]]), np.array([0.2, 0.3, 0.5])
    distance = heat.w2_of_pairs(x, x + [[1.0], [2.0], [3.0]], weights=w)
    assert distance.value == pytest.approx(np.sqrt(0.2 + 1.2 + 4.5))
    assert not distance.upper_bound and distance.crossed == 0
    crossed = heat.w2_of_pairs(x[[1, 0, 2]], x, weights=w)
    assert crossed.upper_bound and crossed.crossed == pytest.approx(0.5)


def test_tokens_cross_where_modes_are_apart_and_eps_is_coarse():
    law = GaussianMixture([-2, 2], [0.09, 0.09], [0.5, 0.5])
    x, w = heat.quadrature(law, 0.02)
    transport = self_transport(x, 0.5, weights=w)
    B = transport.barycentric()
    slopes = np.diff(B[:, 0]) / np.diff(x[:, 0])
    assert slopes.max() == pytest.approx(5.6, rel=0.01, abs=0)  # monotone up to slope 2
    y = law.transport(x, law.heat(0.5))
    assert heat.w2_of_pairs(2 * x - B, y, weights=w).upper_bound
    fine = self_transport(x, 0.01, weights=w)
    y = law.transport(x, law.heat(0.01))
    assert not heat.w2_of_pairs(2 * x - fine.barycentric(), y, weights=w).upper_bound
