"""The heat flow and its schemes: exact laws, closed forms, orders, warnings."""

import warnings
from functools import partial

import numpy as np
import pytest

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


def nodes_of(law, eps, share=0.35):
    return heat.quadrature(law, share * np.sqrt(eps))


def population_error(eps, horizon=1.0, flow=heat.bridge_flow, exact=None, law=MIXTURE):
    """W2 between the scheme for infinitely many particles and the exact law."""
    x, w = nodes_of(law, eps)
    last = flow(x, eps, round(horizon / eps), weights=w).states[-1]
    partners = law.transport(x, exact or law.heat(horizon))
    distance = heat.w2_of_pairs(last, partners, weights=w)
    assert not distance.upper_bound
    return distance.value


def test_one_step_expands_in_eps_without_a_cubic_term():
    """B = x + (ε/2)ℓ′ + (ε²/8)(ℓ″ + ½ℓ′²)′ + O(ε⁴), ℓ = log ρ."""
    sizes, rests, firsts = 0.2 * 2.0 ** -np.arange(5), [], []
    for eps in sizes:
        x, w = nodes_of(MIXTURE, eps)
        tanh = np.tanh(2 * x)
        first = 2 * tanh - x
        second = 4 * (1 - tanh**2) - 1
        third = -16 * tanh * (1 - tanh**2)
        transport = self_transport(x, eps, weights=w, tol=1e-14)
        move = transport.displacement() - eps / 2 * first
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
    states = heat.bridge_flow(x, 0.05, 10, weights=w, backward=True).states
    variances = np.einsum("n,kn->k", w, states[..., 0] ** 2)
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


def test_flow_warns_when_nodes_stretch_past_the_rule():
    law = GaussianMixture([0], [1], [1])
    x, w = heat.quadrature(law, 0.6 * np.sqrt(0.1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        heat.bridge_flow(x, 0.1, 10, weights=w)  # stretch √2
    with pytest.warns(heat.SpacingWarning, match=r"from time 1\.3 on, .* 0\.9 √eps"):
        run = heat.bridge_flow(x, 0.1, 30, weights=w)
    # The rule is where the stretch √(1 + t) passes 0.9/0.6.
    assert np.sqrt(1 + 1.2) < 1.5 < np.sqrt(1 + 1.3)
    variance = w @ run.states[-1, :, 0] ** 2
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
