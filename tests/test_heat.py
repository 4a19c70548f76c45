"""The heat flow and its schemes: exact laws, closed forms, orders, warnings."""

import warnings
from functools import partial

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.linalg import sqrtm
from scipy.special import ndtr
from scipy.stats import kstest

from lib import heat
from lib.claims import convergence_order
from lib.heat import GaussianMixture
from lib.sinkhorn import (
    ConvergenceWarning,
    FrozenFlowWarning,
    bridge_step,
    self_transport,
)

MIXTURE = GaussianMixture([-2, 2], [1, 1], [0.5, 0.5])
LAWS = {
    "one": GaussianMixture([0.3], [2.0], [1.0]),
    "even": MIXTURE,
    "uneven": GaussianMixture([-1, 0, 4], [0.2, 3, 0.5], [0.2, 0.7, 0.1]),
    "narrow": GaussianMixture([0, 1], [1e-6, 1], [0.5, 0.5]),
    "apart": GaussianMixture([-5, 5], [0.01, 0.04], [0.3, 0.7]),
}
laws = pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)


def nodes_of(law, eps, share=0.35):
    return heat.quadrature(law, share * np.sqrt(eps))


def population_error(eps, horizon=1.0, flow=heat.bridge_flow, exact=None, law=MIXTURE):
    """W2 between the scheme for infinitely many particles and the exact law."""
    x, w = nodes_of(law, eps)
    last = flow(x, eps, round(horizon / eps), weights=w).states[-1]
    partners = law.transport(x, exact or law.heat(horizon))
    found = heat.w2_of_pairs(last, partners, weights=w)
    assert not found.upper_bound
    return found.value


# Mixtures


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


# Gaussians in closed form


@pytest.mark.parametrize("eps", [0.01, 0.3, 1.0, 4.0])
@pytest.mark.parametrize("variance", [0.25, 1.0])
def test_slope_of_a_gaussian(variance, eps):
    law = GaussianMixture([0], [variance], [1])
    spacing = 0.3 * np.sqrt(min(eps, variance))
    x, w = heat.quadrature(law, spacing)
    found = self_transport(x, eps, weights=w, tol=1e-14).barycentric()
    slope = heat.gaussian_slope(variance, eps)
    inner = np.abs(x[:, 0]) < 4 * np.sqrt(variance)
    np.testing.assert_allclose(found[inner], slope * x[inner], atol=1e-9, rtol=0)
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
    found = self_transport(x, eps, weights=w).barycentric()
    error = found - x @ heat.gaussian_barycentric(cov, eps)
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


# Quadrature


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
    found = heat.node_density(moved, w)
    np.testing.assert_allclose(
        found, MIXTURE.heat(1).pdf(moved[:, 0]), atol=4e-5, rtol=0
    )
    mixed = np.random.default_rng(0).permutation(len(x))
    np.testing.assert_array_equal(
        heat.node_density(moved[mixed], w[mixed]), found[mixed]
    )
    with pytest.raises(ValueError, match="x must have distinct nodes"):
        heat.node_density([[1.0], [1.0]], [0.5, 0.5])


# Schemes


def test_one_step_expands_in_eps_without_a_cubic_term():
    """B = x + (ε/2)ℓ′ + (ε²/8)(ℓ″ + ½ℓ′²)′ + O(ε⁴), ℓ = log ρ."""
    sizes, rests, firsts = 0.2 * 2.0 ** -np.arange(5), [], []
    for eps in sizes:
        x, w = nodes_of(MIXTURE, eps)
        tanh = np.tanh(2 * x)
        first = 2 * tanh - x
        second = 4 * (1 - tanh**2) - 1
        third = -16 * tanh * (1 - tanh**2)
        found = self_transport(x, eps, weights=w, tol=1e-14)
        move = found.displacement() - eps / 2 * first
        firsts.append(np.sqrt(w @ move**2)[0])
        rest = move - eps**2 / 8 * (third + first * second)
        rests.append(np.sqrt(w @ rest**2)[0])
    np.testing.assert_allclose(firsts[-1] / sizes[-1] ** 2, 0.19791, rtol=1e-3)
    orders = np.diff(np.log(rests)) / np.diff(np.log(sizes))
    # The orders themselves increase to 4; a cubic term would bring them down to 3.
    assert (np.diff(orders) > 0).all() and orders[-1] > 3.8


def test_bridge_flow_has_order_two_and_euler_order_one():
    sizes = 0.2 * 2.0 ** -np.arange(5)
    bridge = [population_error(eps) for eps in sizes]
    assert convergence_order(sizes, bridge).order == pytest.approx(2, abs=0.1)
    assert bridge[-1] / sizes[-1] ** 2 == pytest.approx(0.0215, rel=0.01, abs=0)

    def euler(x, eps, steps, weights):
        return heat.euler_flow(x, eps, steps, MIXTURE)

    slow = [population_error(eps, flow=euler) for eps in sizes]
    assert convergence_order(sizes, slow).order == pytest.approx(1, abs=0.05)
    assert slow[-1] / sizes[-1] == pytest.approx(0.1035, rel=0.01, abs=0)


def test_flow_of_the_source_experiment_to_its_end():
    """½N(−2,1) + ½N(2,1) to T = 5; the error does not accumulate but decays."""
    assert population_error(0.05, horizon=5.0) == pytest.approx(
        3.69e-5, rel=0.01, abs=0
    )
    assert population_error(0.05, horizon=1.0) == pytest.approx(
        5.48e-5, rel=0.01, abs=0
    )


def test_flow_is_the_iterated_step_and_keeps_the_mean():
    rng = np.random.default_rng(3)
    x, w = rng.standard_normal((30, 2)), rng.dirichlet(np.full(30, 3.0))
    flow = heat.bridge_flow(x, 0.4, 3, weights=w, tol=1e-13)
    np.testing.assert_allclose(flow.times, [0, 0.4, 0.8, 1.2])
    np.testing.assert_array_equal(flow.states[0], x)
    step = x
    for state in flow.states[1:]:
        step = bridge_step(step, 0.4, weights=w, tol=1e-13)
        np.testing.assert_allclose(state, step, atol=1e-12, rtol=0)
        np.testing.assert_allclose(w @ state, w @ x, atol=1e-12, rtol=0)
    back = heat.bridge_flow(x, 0.4, 1, weights=w, backward=True).states[1]
    expected = self_transport(x, 0.4, weights=w).barycentric()
    np.testing.assert_allclose(back, expected, atol=1e-9, rtol=0)


def test_backward_flow_of_a_gaussian():
    x, w = heat.quadrature(GaussianMixture([0], [1], [1]), 0.02)
    found = heat.bridge_flow(x, 0.05, 10, weights=w, backward=True).states
    variances = np.einsum("n,kn->k", w, found[..., 0] ** 2)
    expected = [1.0]
    for _ in range(10):
        expected.append(expected[-1] * heat.gaussian_slope(expected[-1], 0.05) ** 2)
    np.testing.assert_allclose(variances, expected, rtol=1e-8)
    assert variances[-1] == pytest.approx(0.5, abs=0.03)  # s − t at t = ½


@pytest.mark.parametrize(("splitting", "order"), [("lie", 1), ("strang", 2)])
def test_order_of_the_splittings(splitting, order):
    sizes = 0.2 * 2.0 ** -np.arange(5)
    errors = [
        population_error(
            eps,
            flow=partial(
                heat.ornstein_uhlenbeck_flow, splitting=splitting, variance=1.5
            ),
            exact=MIXTURE.ornstein_uhlenbeck(1.0, 1.5),
        )
        for eps in sizes
    ]
    assert convergence_order(sizes, errors).order == pytest.approx(order, abs=0.12)


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
    found = heat.softmax_step(x, 0.4, weights=w)
    np.testing.assert_allclose(found[inner], (2 - 0.6) * x[inner], atol=1e-9, rtol=0)
    found = heat.softmax_step(x, 0.8, weights=w, kernel="dot")
    np.testing.assert_allclose(found[inner], (2 - 0.75) * x[inner], atol=1e-8, rtol=0)


def test_surrogate_of_the_heat_flow_is_the_law_itself():
    x, w = nodes_of(MIXTURE, 0.1)
    found = heat.surrogate_step(x, 0.1, w)
    np.testing.assert_array_equal(found, bridge_step(x, 0.1, weights=w))
    twice = heat.surrogate_step(x, 0.1, w, theta=-2.0)
    np.testing.assert_allclose(twice - x, 2 * (found - x), atol=1e-14, rtol=0)


@pytest.mark.parametrize(("variance", "theta"), [(0.5, -1.0), (4.0, 1.0)])
def test_surrogate_of_a_gaussian_is_gaussian(variance, theta):
    """Precision |1/s − 1| for the target N(0, 1); its step contracts towards it."""
    eps, law = 0.05, GaussianMixture([0], [variance], [1])
    x, w = nodes_of(law, eps)
    surrogate, found = heat.kl_surrogate(x, w)
    assert found == theta and surrogate.sum() == pytest.approx(1, abs=1e-13)
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
    found, theta = heat.kl_surrogate(x, w, variance=2.0)
    expected = np.gradient(x[:, 0]) * np.exp(-(x[:, 0] ** 2) / 4) / law.pdf(x[:, 0])
    assert theta == 1
    np.testing.assert_allclose(found, expected / expected.sum(), atol=1e-7, rtol=0)
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


# Distances


def test_distance_of_point_masses_to_a_law():
    """Against many quantiles, and against a law of two atoms by hand."""
    ot = pytest.importorskip("ot")
    rng = np.random.default_rng(2)
    x, w = rng.standard_normal((50, 1)), rng.dirichlet(np.ones(50))
    many = MIXTURE.ppf((np.arange(200_000) + 0.5) / 200_000)
    found = heat.w2_to_law(x, MIXTURE, weights=w)
    exact = ot.wasserstein_1d(x[:, 0], many, w, p=2) ** 0.5
    assert found == pytest.approx(exact, rel=1e-4, abs=0)
    # One token at a: W2² = variance + (mean − a)².
    one = heat.w2_to_law([[1.0]], LAWS["uneven"])
    law = LAWS["uneven"]
    assert one**2 == pytest.approx(law.variance + (law.mean - 1) ** 2, rel=1e-13, abs=0)
    narrow = GaussianMixture([-1, 1], [1e-12, 1e-12], [0.25, 0.75])
    assert heat.w2_to_law([[-1.0], [1.0]], narrow) == pytest.approx(1, rel=1e-5, abs=0)


def test_distance_of_pairs_says_when_it_is_only_a_bound():
    x, w = np.array([[0.0], [1.0], [3.0]]), np.array([0.2, 0.3, 0.5])
    found = heat.w2_of_pairs(x, x + [[1.0], [2.0], [3.0]], weights=w)
    assert found.value == pytest.approx(np.sqrt(0.2 + 1.2 + 4.5))
    assert not found.upper_bound and found.crossed == 0
    crossed = heat.w2_of_pairs(x[[1, 0, 2]], x, weights=w)
    assert crossed.upper_bound and crossed.crossed == pytest.approx(0.5)


def test_tokens_cross_where_modes_are_apart_and_eps_is_coarse():
    law = GaussianMixture([-2, 2], [0.09, 0.09], [0.5, 0.5])
    x, w = heat.quadrature(law, 0.02)
    found = self_transport(x, 0.5, weights=w)
    B = found.barycentric()
    slopes = np.diff(B[:, 0]) / np.diff(x[:, 0])
    assert slopes.max() == pytest.approx(5.6, rel=0.01, abs=0)  # monotone up to slope 2
    y = law.transport(x, law.heat(0.5))
    assert heat.w2_of_pairs(2 * x - B, y, weights=w).upper_bound
    fine = self_transport(x, 0.01, weights=w)
    y = law.transport(x, law.heat(0.01))
    assert not heat.w2_of_pairs(2 * x - fine.barycentric(), y, weights=w).upper_bound


# Warnings


def test_flow_warns_when_nodes_stretch_past_the_rule():
    law = GaussianMixture([0], [1], [1])
    x, w = heat.quadrature(law, 0.6 * np.sqrt(0.1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        heat.bridge_flow(x, 0.1, 10, weights=w)  # stretch √2
    with pytest.warns(heat.SpacingWarning, match=r"from time 1\.3 on, .* 0\.9 √eps"):
        found = heat.bridge_flow(x, 0.1, 30, weights=w)
    # The rule is where the stretch √(1 + t) passes 0.9/0.6.
    assert np.sqrt(1 + 1.2) < 1.5 < np.sqrt(1 + 1.3)
    variance = w @ found.states[-1, :, 0] ** 2
    exact = heat.gaussian_flow([[1.0]], 0.1, 30).states[-1, 0, 0]
    assert 1e-12 < abs(variance - exact) < 1e-4


def test_a_light_but_narrow_mode_counts_for_the_rule():
    law = GaussianMixture([0, 6], [1, 0.04], [0.99, 0.01])
    x, w = heat.quadrature(law, 0.035)
    with pytest.warns(heat.SpacingWarning):
        heat.bridge_flow(x, 0.01, 30, weights=w)


def test_particles_are_not_watched_for_gaps_and_warn_once_when_frozen():
    x = MIXTURE.sample(50, rng=np.random.default_rng(0))[:, None]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        heat.bridge_flow(x, 1e-6, 5)
    assert [w.category for w in caught] == [FrozenFlowWarning]
    assert "at 5 steps, first at time 0, most tokens" in str(caught[0].message)
    assert caught[0].filename == __file__
    with pytest.warns(ConvergenceWarning, match="at 2 steps the marginal error"):
        heat.bridge_flow(x, 1.0, 2, tol=1e-18)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: GaussianMixture([], [], []), "means must be a non-empty vector"),
        (
            lambda: GaussianMixture([0, 1], [1], [1]),
            r"variances must have shape \(2,\)",
        ),
        (lambda: GaussianMixture([0], [0], [1]), "variances must be positive, got 0"),
        (lambda: GaussianMixture([0, 1], [1, 1], [0.5, 0.6]), "weights must sum to 1"),
        (lambda: MIXTURE.ppf(1.5), "p must be from 0 to 1, got 1.5"),
        (lambda: MIXTURE.ppf(np.nan), "p is nan"),
        (lambda: MIXTURE.score(np.inf), "x is inf"),
        (lambda: MIXTURE.transport([0.0], "law"), "law must be a GaussianMixture"),
        (lambda: MIXTURE.sample(0, rng=np.random.default_rng()), "size must be"),
        (lambda: MIXTURE.ornstein_uhlenbeck(-1), "t must not be negative"),
        (lambda: heat.gaussian_slope(-1.0, 1.0), "variance must not be negative"),
        (lambda: heat.gaussian_w2(np.eye(2), np.eye(3)), "other must have shape"),
        (lambda: heat.bridge_flow([[0.0]], 1.0, 0), "steps must be an integer from 1"),
        (lambda: heat.bridge_flow([0.0], 1.0, 1), "x must be a non-empty matrix"),
        (lambda: heat.bridge_flow([[0.0]], -1.0, 1), "eps must be a positive"),
        (lambda: heat.softmax_step([[0.0]], 1.0, kernel="dots"), "kernel must be"),
        (lambda: heat.softmax_step([[1e60]], 1.0, kernel="dot"), "x is too large"),
        (
            lambda: heat.ornstein_uhlenbeck_flow([[0.0]], 1.0, 1, splitting="trotter"),
            "splitting must be 'strang' or 'lie', got 'trotter'",
        ),
        (lambda: heat.euler_flow([[0.0, 1.0]], 1.0, 1, MIXTURE), r"x must have shape"),
        (lambda: heat.euler_flow([[9.0]], 1e101, 3, MIXTURE), "eps is too large"),
        (lambda: heat.w2_to_law([0.0], MIXTURE), "x must be a non-empty matrix"),
        (lambda: heat.w2_of_pairs([[0.0]], [[0.0], [1.0]]), r"y must have shape"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_mixtures_are_copies_that_do_not_change():
    means = np.array([0.0, 1.0])
    law = GaussianMixture(means, [1, 1], [0.5, 0.5])
    means[0] = 9
    assert law.means[0] == 0
    with pytest.raises(ValueError, match="read-only"):
        law.means[0] = 1
    assert ndtr(0.0) == law.cdf(0.0) + law.cdf(1.0) - 0.5  # symmetry about ½
