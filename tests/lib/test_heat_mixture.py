"""Mixtures of Gaussians on the line, against their equations and draws."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import kstest

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
def test_density_distribution_and_score_belong_together(law):
    x = np.linspace(-6, 6, 41)
    h = 1e-3 * np.sqrt(law.variances.min())
    slope = (law.cdf(x + h) - law.cdf(x - h)) / (2 * h)
    np.testing.assert_allclose(
        slope, law.pdf(x), atol=1e-5 * law.pdf(law.means).max(), rtol=0
    )
    logs = np.log(law.pdf(x))
    near = logs > -500
    rise = np.log(law.pdf(x + h)) - np.log(law.pdf(x - h))
    scale = np.abs(law.score(x[near])).max() + 1 / np.sqrt(law.variances.min())
    np.testing.assert_allclose(
        law.score(x[near]), rise[near] / (2 * h), atol=1e-5 * scale, rtol=0
    )
    reach = 6 * np.sqrt(law.variances)
    breaks = np.concatenate([law.means - reach, law.means, law.means + reach])
    mass = quad(law.pdf, -30, 30, points=np.unique(breaks), limit=500)[0]
    assert mass == pytest.approx(1, abs=1e-8)


@laws
def test_moments(law):
    x, w = heat.quadrature(law, 0.3 * np.sqrt(law.variances.min()))
    assert w @ x[:, 0] == pytest.approx(law.mean, abs=1e-9)
    assert w @ (x[:, 0] - law.mean) ** 2 == pytest.approx(law.variance, rel=1e-9, abs=0)


@laws
def test_quantile_is_the_inverse_of_the_distribution_function(law):
    """The exact quantile lies within 1e-12 of the one found, or F is flat there."""
    rng = np.random.default_rng(0)
    p = np.concatenate([rng.uniform(size=500), 10.0 ** -np.arange(1, 300, 7), [0.5]])
    q = law.ppf(p)
    width = 1e-12 * np.maximum(np.abs(q), np.sqrt(law.variances.min()))
    below, above = (law.cdf(q + sign * width) for sign in (-1, 1))
    assert ((below < p) & (p < above) | (np.abs(law.cdf(q) - p) < 3e-16)).all()
    # The upper tail, whose distance from 1 is exact for these levels.
    tail = 2.0 ** -np.arange(2, 53)
    mirror = GaussianMixture(-law.means, law.variances, law.weights)
    np.testing.assert_allclose(law.ppf(1 - tail), -mirror.ppf(tail), rtol=1e-13)


def test_quantile_is_found_between_narrow_components():
    # There the distribution function has plateaus, off which Newton's step leads far.
    rng = np.random.default_rng(11)
    for _ in range(200):
        count = rng.integers(2, 9)
        law = GaussianMixture(
            3 * rng.normal(size=count),
            10 ** rng.uniform(-7, 0, size=count),
            np.full(count, 1 / count),
        )
        p = np.arange(1, 2 * count) / (2 * count)  # every second one is a plateau
        x = law.ppf(p)
        # The rounding of x moves F by its density.
        slack = 1e-13 + 4e-16 * np.abs(x) * law.pdf(x)
        assert (np.abs(law.cdf(x) - p) <= slack).all()


def test_quantile_of_one_normal_law():
    """Φ(−1) and Φ(−8) to 16 digits, from tables, at mean 3 and variance 4."""
    law = GaussianMixture([3], [4], [1])
    p = [0.15865525393145705, 6.220960574271785e-16, 0.5, 0.8413447460685429]
    np.testing.assert_allclose(law.ppf(p), [1, -13, 3, 5], rtol=1e-14)
    np.testing.assert_array_equal(law.ppf([0, 1]), [-np.inf, np.inf])


def test_score_is_finite_far_in_the_tails():
    law = LAWS["uneven"]
    # Far out the widest component rules: (μ − x)/s with μ = 0, s = 3.
    x = np.array([1e3, -1e3, 1e9, -1e9, 1e99])
    np.testing.assert_allclose(law.score(x), -x / 3, rtol=1e-12)
    assert law.pdf(1e3) == 0
    closed = 2 * np.tanh(2 * x[:2]) - x[:2]
    np.testing.assert_allclose(MIXTURE.score(x[:2]), closed, rtol=1e-14)


@laws
def test_mixture_solves_the_heat_equation(law):
    """∂ρ/∂t = ½ρ″ by differences, and not with another factor."""
    t, x, h = 0.7, np.linspace(-5, 5, 21), 1e-3
    rise = (law.heat(t + h).pdf(x) - law.heat(t - h).pdf(x)) / (2 * h)
    now = law.heat(t)
    bend = (now.pdf(x + h) - 2 * now.pdf(x) + now.pdf(x - h)) / h**2
    np.testing.assert_allclose(rise, bend / 2, atol=1e-5, rtol=0)
    assert np.abs(rise - 0.99 * bend / 2).max() > 1e-4


def test_mixture_solves_the_fokker_planck_equation():
    t, s, x, h = 0.7, 1.7, np.linspace(-5, 5, 21), 1e-3
    law = LAWS["uneven"]
    later, earlier = (law.ornstein_uhlenbeck(t + d, s).pdf(x) for d in (h, -h))
    now = law.ornstein_uhlenbeck(t, s)
    bend = (now.pdf(x + h) - 2 * now.pdf(x) + now.pdf(x - h)) / h**2
    drift = ((x + h) * now.pdf(x + h) - (x - h) * now.pdf(x - h)) / (2 * h) / (2 * s)
    np.testing.assert_allclose(
        (later - earlier) / (2 * h), drift + bend / 2, atol=1e-5, rtol=0
    )
    rest = law.ornstein_uhlenbeck(1e4, s)
    np.testing.assert_allclose([rest.mean, rest.variance], [0, s], atol=1e-12, rtol=0)


def test_heat_goes_back_in_time_while_there_is_variance_left():
    back = MIXTURE.heat(3.0).heat(-3.0)
    np.testing.assert_allclose(back.variances, 1)
    with pytest.raises(ValueError, match="t must leave variances"):
        MIXTURE.heat(-1.0)


def test_transport_is_monotone_and_carries_one_law_to_the_other():
    law, later = LAWS["uneven"], LAWS["uneven"].heat(2)
    x = np.linspace(-9, 9, 301)
    y = law.transport(x, later)
    assert (np.diff(y) > 0).all()
    np.testing.assert_allclose(later.cdf(y), law.cdf(x), rtol=1e-12)
    # Far in both tails: the ratio of standard deviations of the widest component.
    far = np.array([-40.0, 40.0])
    ends = law.transport(far, later)
    np.testing.assert_allclose(later.transport(ends, law), far, rtol=1e-12)
    assert (np.abs(ends) > 45).all()


def test_transport_takes_a_median_to_the_one_of_the_quantile_function():
    """Where F = ½ to rounding between 2 and 4, the same of these points is found."""
    law = GaussianMixture([0, 2, 4, 8], np.full(4, 0.01), np.full(4, 0.25))
    assert GaussianMixture([0], [1], [1]).transport(0.0, law) == law.ppf(0.5)


def test_transport_along_the_heat_flow_solves_its_ordinary_equation():
    x, t, h = np.linspace(-6, 6, 25), 0.5, 1e-4
    now, ahead, behind = (MIXTURE.transport(x, MIXTURE.heat(t + d)) for d in (0, h, -h))
    speed = (ahead - behind) / (2 * h)
    np.testing.assert_allclose(
        speed, -MIXTURE.heat(t).score(now) / 2, atol=1e-7, rtol=0
    )


@laws
def test_draws_have_the_law(law):
    draws = law.sample(20_000, rng=np.random.default_rng(7))
    # Kolmogorov's critical value at 1e-6 / 6 tests.
    critical = np.sqrt(-np.log(0.5e-6 / 6) / 2 / len(draws))
    assert kstest(draws, law.cdf).statistic < critical
    assert kstest(draws, law.heat(0.5 * law.variance).cdf).statistic > critical


def test_mixtures_are_copies_that_do_not_change():
    means = np.array([0.0, 1.0])
    law = GaussianMixture(means, [1, 1], [0.5, 0.5])
    means[0] = 9
    assert law.means[0] == 0
    with pytest.raises(ValueError, match="read-only"):
        law.means[0] = 1
    assert ndtr(0.0) == law.cdf(0.0) + law.cdf(1.0) - 0.5  # symmetry about ½
