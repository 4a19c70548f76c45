"""Scale mixtures of Gaussians, against their moments."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr

from lib.hierarchical import ScaleMixture

POINTS = np.array([-2.5, -1.0, -0.3, 0.0, 0.2, 0.7, 1.9])


def rng(key=0):
    return np.random.default_rng(key)


def test_mixture_over_exponential_variances_is_laplace():
    """v ~ Exp with mean 2b² gives the Laplace law of scale b."""
    mixed = ScaleMixture(2 * rng(6).exponential(size=200_000))
    laplace = stats.laplace(scale=1.0)
    for name, exact in (("cdf", laplace.cdf), ("density", laplace.pdf)):
        gap = getattr(mixed, name)(POINTS) - exact(POINTS)
        error = mixed.error(name, POINTS)
        assert (np.abs(gap) <= 5.5 * error + 1e-9).all() and error.max() < 3e-3
    t = np.array([0.0, 0.5, 3.0])
    gap = mixed.characteristic(t) - 1 / (1 + t**2)
    assert (np.abs(gap) <= 5 * mixed.error("characteristic", t) + 1e-12).all()
    assert abs(mixed.variance() - 2) < 5 * mixed.error("variance")
    assert abs(mixed.moment(6) - 720) < 6 * mixed.error("moment", 6)
    assert abs(mixed.excess_kurtosis() - 3) < 6 * mixed.error("excess_kurtosis")


def test_mixture_of_given_variances_is_their_mean():
    v = np.array([0.0, 1.0, 1.0, 4.0])
    mixed = ScaleMixture(v)
    np.testing.assert_allclose(
        mixed.cdf([-1.0, 0.0, 2.0]),
        [(2 * ndtr(-1) + ndtr(-0.5)) / 4, 0.625, (1 + 2 * ndtr(2) + ndtr(1)) / 4],
        rtol=1e-13,
    )
    assert mixed.variance() == pytest.approx(1.5, rel=1e-13, abs=0)
    assert mixed.excess_kurtosis() == pytest.approx(3)
    with pytest.raises(ValueError, match="v is 0 with positive probability"):
        mixed.density(0.0)
    np.testing.assert_array_equal(ScaleMixture([2.0] * 40).variance(), 2.0)
    once = ScaleMixture([0.0, 2.0, 0.0, 0.0])  # besides the zeros a single value
    assert once.variance() == pytest.approx(0.5, rel=1e-14, abs=0)
    assert once.cdf(1.0) == pytest.approx((3 + ndtr(0.5**0.5)) / 4, rel=1e-14, abs=0)
