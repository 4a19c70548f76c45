"""Same-marginal transport: closed forms, another library, symmetries, iterations."""

import dataclasses
import subprocess
import sys
import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import ive, xlogy

from lib import sinkhorn
from lib.attention import softmax
from lib.sinkhorn import (
    ConvergenceWarning,
    FrozenFlowWarning,
    alternating_transport,
    bridge_step,
    gibbs_kernel,
    self_transport,
)
from lib.sinkhorn.transport import warn

RNG = np.random.default_rng(0)

X = RNG.standard_normal((40, 2))

W = RNG.dirichlet(np.full(40, 2.0))


def mixture_sample(n, key=0):
    """Draws of ½N(−2, 1) + ½N(2, 1), shape (n, 1)."""
    rng = np.random.default_rng(key)
    return rng.standard_normal((n, 1)) + 2 * rng.choice([-1, 1], size=(n, 1))


def test_plan_is_a_symmetric_coupling():
    transport = self_transport(X, 0.3, weights=W)
    plan = transport.plan()
    np.testing.assert_allclose(plan, plan.T, atol=1e-16, rtol=0)
    assert transport.converged and transport.error <= 1e-10
    np.testing.assert_allclose(
        np.abs(plan.sum(axis=1) - W).sum(), transport.error, 1e-3
    )
    np.testing.assert_allclose(plan.sum(), 1, atol=1e-10, rtol=0)
    np.testing.assert_allclose(
        transport.barycentric(),
        plan / plan.sum(axis=1, keepdims=True) @ X,
        atol=1e-14,
        rtol=0,
    )
    np.testing.assert_allclose(
        transport.effective_neighbors(), W**2 / (plan**2).sum(axis=1), rtol=1e-8
    )


def test_plan_minimizes_cost_plus_entropy():
    """Direct minimization over the couplings of four tokens, without scalings."""
    x, w, eps = X[:4], np.array([0.1, 0.2, 0.3, 0.4]), 0.4
    cost = ((x[:, None] - x) ** 2).sum(axis=-1) / 2

    def objective(free):
        plan = np.zeros((4, 4))
        plan[:3, :3] = free.reshape(3, 3)
        plan[:3, 3] = w[:3] - plan[:3].sum(axis=1)
        plan[3] = w - plan.sum(axis=0)
        if plan.min() < 0:
            return 1e3
        return (cost * plan).sum() + eps * xlogy(plan, plan / np.outer(w, w)).sum()

    start = np.outer(w, w)[:3, :3].ravel()
    options = {"xatol": 1e-10, "fatol": 1e-14, "maxiter": 40_000, "maxfev": 40_000}
    best = minimize(objective, start, method="Nelder-Mead", options=options)
    plan = self_transport(x, eps, weights=w).plan()
    np.testing.assert_allclose(best.x, plan[:3, :3].ravel(), atol=1e-6, rtol=0)
    # A factor of two in the cost or in ε would be seen.
    other = self_transport(x, 2 * eps, weights=w).plan()
    assert np.abs(best.x - other[:3, :3].ravel()).max() > 1e-2


@pytest.mark.parametrize(("scale", "factor"), [(0.5, 1), (1.0, 2)])
def test_plan_is_that_of_pot(scale, factor):
    """Cost ½|x − y|² with ε, and |x − y|² with 2ε."""
    ot = pytest.importorskip("ot")
    cost = scale * ot.dist(X, X)
    plan = ot.sinkhorn(W, W, cost, factor * 0.5, stopThr=1e-13, numItermax=100_000)
    np.testing.assert_allclose(
        self_transport(X, 0.5, weights=W, tol=1e-13).plan(), plan, atol=1e-12, rtol=0
    )
    doubled = self_transport(X, 1.0, weights=W).plan()
    assert np.abs(doubled - plan).max() > 1e-4


@pytest.mark.parametrize(("x", "eps"), [(0.3, 0.1), (1.0, 1.5), (2.0, 7.0), (1.5, 3.0)])
def test_two_tokens(x, eps):
    transport = self_transport([[x], [-x]], eps, tol=1e-14)
    value = x * np.tanh(x**2 / eps)
    np.testing.assert_allclose(transport.barycentric(), [[value], [-value]], rtol=1e-12)


@pytest.mark.parametrize("eps", [0.05, 1.0, 20.0])
def test_ring(eps):
    """Tokens on a circle of radius R: B = x I₁(R²/ε)/I₀(R²/ε)."""
    angle, radius = np.arange(200) * 2 * np.pi / 200, 1.3
    ring = radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    transport = self_transport(ring, eps)
    slope = ive(1, radius**2 / eps) / ive(0, radius**2 / eps)
    np.testing.assert_allclose(
        transport.barycentric(), slope * ring, atol=1e-13, rtol=0
    )
    assert transport.iterations <= 1
    np.testing.assert_allclose(
        bridge_step(ring, eps), (2 - slope) * ring, rtol=0, atol=1e-13
    )


@pytest.mark.parametrize("weights", [None, W])
def test_symmetries(weights):
    eps, base = 0.3, self_transport(X, 0.3, weights=weights).barycentric()
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])

    def again(x, eps=eps, weights=weights):
        return self_transport(x, eps, weights=weights).barycentric()

    np.testing.assert_allclose(again(X + [3, -7]), base + [3, -7], atol=1e-13, rtol=0)
    np.testing.assert_allclose(again(X @ turn), base @ turn, atol=1e-13, rtol=0)
    np.testing.assert_allclose(again(5 * X, 25 * eps), 5 * base, atol=1e-13, rtol=0)
    own = None if weights is None else weights[::-1]
    np.testing.assert_allclose(
        again(X[::-1], weights=own), base[::-1], atol=1e-13, rtol=0
    )
    wide = np.hstack([X, np.zeros((40, 30))])  # kernel by a product of matrices
    np.testing.assert_allclose(again(wide)[:, :2], base, atol=1e-12, rtol=0)


def test_far_from_the_origin_only_the_rounding_of_the_tokens_is_lost():
    step = bridge_step(X, 0.3) - X
    for offset in (1e4, 1e8):
        moved = bridge_step(X + offset, 0.3) - (X + offset)
        assert np.abs(moved - step).max() < 4 * np.spacing(offset)


def test_duplicates_equal_a_doubled_weight():
    twice = np.concatenate([X, X[:7]])
    weights = np.full(40, 1 / 47)
    weights[:7] *= 2
    one = self_transport(X, 0.2, weights=weights)
    two = self_transport(twice, 0.2)
    np.testing.assert_allclose(
        two.barycentric()[:40], one.barycentric(), atol=1e-10, rtol=0
    )
    np.testing.assert_allclose(
        two.barycentric()[40:], one.barycentric()[:7], atol=1e-10, rtol=0
    )


def test_one_token_and_one_place_stay_where_they_are():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x in ([[3.0, 4.0]], [[3.0, 4.0]] * 5):
            transport = self_transport(x, 0.1)
            np.testing.assert_array_equal(transport.barycentric(), x)
            assert transport.converged and not transport.frozen


def test_mean_is_kept_and_a_wrong_normalization_moves_it():
    x = np.concatenate([RNG.standard_normal((30, 1)), 3 + RNG.exponential(size=(9, 1))])
    transport = self_transport(x, 0.5, tol=1e-14)
    assert abs((transport.barycentric() - x).mean()) < 1e-14
    rows = gibbs_kernel(x, 0.5)
    rows /= rows.sum(axis=1, keepdims=True)
    assert abs((rows @ x - x).mean()) > 1e-3


def test_map_is_the_gradient_of_a_convex_function():
    """DB = Cov(X' | x)/ε, measured by probes without weight of their own."""
    h, eps, at = 1e-4, 0.4, np.array([0.3, -0.2])
    probes = at + h * np.array([[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1]])
    weights = np.append(np.full(40, 1 / 40), np.full(5, 1e-200))
    transport = self_transport(
        np.concatenate([X, probes]), eps, weights=weights, tol=1e-14
    )
    B = transport.barycentric()[-5:]
    slope = np.stack([B[1] - B[2], B[3] - B[4]], axis=1) / (2 * h)
    x = transport.x
    products = transport.barycentric(
        np.stack([x[:, 0] ** 2, x[:, 0] * x[:, 1], x[:, 1] ** 2], 1)
    )
    cov = products[-5][[0, 1, 1, 2]].reshape(2, 2) - np.outer(B[0], B[0])
    np.testing.assert_allclose(slope, cov / eps, atol=1e-7, rtol=0)
    assert np.linalg.eigvalsh(cov)[0] > 0


@pytest.mark.parametrize("eps", [1.0, 0.1, 0.01, 1e-4])
@pytest.mark.parametrize("n", [200, 1000])
def test_iterations_do_not_depend_on_eps(eps, n):
    x = mixture_sample(n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FrozenFlowWarning)
        counts = [self_transport(x, eps, tol=tol).iterations for tol in (1e-6, 1e-10)]
    assert counts[0] <= 18 and counts[1] <= 32


def test_all_kinds_of_problems_converge():
    """Heavy tails, far clusters, lattices with copies, weights over 250 decades."""
    rng = np.random.default_rng(9)
    for kind in range(300):
        n, d = rng.integers(1, 60), rng.integers(1, 12)
        x = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-3, 3)
        weights = rng.dirichlet(np.full(n, 10.0 ** rng.uniform(-0.5, 2)))
        match kind % 5:
            case 0:
                x = x**3
            case 1:
                x += 1e6 * rng.integers(0, 3, size=(n, 1))
            case 2:
                x = rng.integers(0, 4, size=(n, d)).astype(float)
            case 3:
                weights = 10.0 ** rng.uniform(-250, 0, size=n)
        weights = np.maximum(weights / weights.sum(), 1e-290)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", FrozenFlowWarning)
            transport = self_transport(x, 10.0 ** rng.uniform(-6, 6), weights=weights)
        assert transport.iterations <= 32


def test_alternation_needs_more_the_smaller_eps_is():
    x = mixture_sample(200)
    counts = [
        (
            self_transport(x, eps, tol=1e-6).iterations,
            alternating_transport(x, eps, tol=1e-6).iterations,
        )
        for eps in (1.0, 0.1, 0.01)
    ]
    ratios = [slow / fast for fast, slow in counts]
    assert ratios[0] > 3 and ratios[1] > 20 and ratios[2] > 100


def test_both_iterations_find_one_plan():
    slow = alternating_transport(X, 0.5, weights=W)
    fast = self_transport(X, 0.5, weights=W)
    np.testing.assert_allclose(slow.plan(), fast.plan(), atol=1e-11, rtol=0)
    np.testing.assert_allclose(slow.plan().sum(axis=0), W, atol=1e-16, rtol=0)
    rows = np.abs(slow.plan().sum(axis=1) - W).sum()
    np.testing.assert_allclose(rows, slow.error, rtol=1e-4)
    np.testing.assert_allclose(
        slow.barycentric(), fast.barycentric(), atol=1e-9, rtol=0
    )


def test_rates_are_those_of_the_spectrum():
    """Errors shrink by (1 − λ)/2 with the least λ, in alternation by λ₂²."""
    x = mixture_sample(60)
    eps = 4.0
    plan = self_transport(x, eps, tol=1e-15 * 4).plan() * 60
    values = np.linalg.eigvalsh(plan)

    def rate(transport, first, last):
        errors = []
        for k in (first, last):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                errors.append(transport(x, eps, tol=1e-16, max_iter=k).error)
        return (errors[1] / errors[0]) ** (1 / (last - first))

    assert abs(rate(self_transport, 25, 35) - (1 - values[0]) / 2) < 0.02
    assert abs(rate(alternating_transport, 5, 8) - values[-2] ** 2) < 2e-3
    assert (1 - values[0]) / 2 < 0.51 and values[0] > -1e-12


def test_an_error_equal_to_tol_is_small_enough():
    first = alternating_transport(X, 0.5, tol=1e-3)
    again = alternating_transport(X, 0.5, tol=first.error)
    assert again.iterations == first.iterations > 0 and again.converged


def test_unconverged_results_say_so():
    with pytest.warns(ConvergenceWarning, match="after 3 iterations.*raise max_iter"):
        attempt = self_transport(X, 0.1, max_iter=3)
    assert not attempt.converged and attempt.iterations == 3 and attempt.error > 1e-10
    np.testing.assert_allclose(
        np.abs(attempt.plan().sum(axis=1) - 1 / 40).sum(), attempt.error, rtol=1e-10
    )
    with pytest.warns(ConvergenceWarning, match="below what rounding allows"):
        attempt = self_transport(X, 0.1, tol=1e-18)
    assert not attempt.converged and attempt.iterations < 100 and attempt.error < 1e-15
    with pytest.warns(ConvergenceWarning, match="after 2 iterations"):
        assert not alternating_transport(X, 0.1, max_iter=2).converged


def test_what_rounding_allows_is_an_error_of_1e12():
    transport = dataclasses.replace(self_transport(X, 0.3), converged=False)
    for error, reason in (
        (0.9e-12, "below what rounding"),
        (1.1e-12, "raise max_iter"),
    ):
        with pytest.warns(ConvergenceWarning, match=reason):
            warn(dataclasses.replace(transport, error=error))


def test_frozen_flows_say_so_and_others_do_not():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not self_transport(X, 0.3).frozen
        assert not self_transport(X, 1e6).frozen
    with pytest.warns(
        FrozenFlowWarning, match="eps=1e-06.* nearest other token is about"
    ):
        transport = self_transport(X, 1e-6)
    assert transport.frozen and transport.effective_neighbors().max() < 1.01
    np.testing.assert_allclose(transport.barycentric(), X, atol=1e-15, rtol=0)
    lattice = np.arange(30.0)[:, None]
    with pytest.warns(FrozenFlowWarning, match=r"about 1, "):
        self_transport(lattice, 1e-3)
    # A token's share of its own attention, 1 / Σ e^{−k²/2ε}, is 0.71 and 0.93 there.
    assert not self_transport(lattice, 1 / 1.8**2).frozen
    with pytest.warns(FrozenFlowWarning):
        assert self_transport(lattice, 1 / 2.6**2).frozen
    # Copies share the attention, but they move no more for that.
    with pytest.warns(FrozenFlowWarning):
        transport = self_transport(np.concatenate([X, X, X]), 1e-6)
    np.testing.assert_allclose(transport.effective_neighbors(), 3, rtol=1e-12)


def test_half_of_the_weight_is_not_most_of_it():
    """Two tokens of four are alone, and the others share their attention."""
    x = [[-50.0], [0.0], [50.0], [50.5]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not self_transport(x, 1.0).frozen
    with pytest.warns(FrozenFlowWarning):
        assert self_transport(x, 1.0, weights=[0.25, 0.375, 0.1875, 0.1875]).frozen


def test_tiny_eps_and_tiny_weights_need_no_logarithms():
    """Against the iteration f ← ½(f + Sf) by logarithms, in the tails of a density."""
    x = np.linspace(-25, 25, 200)[:, None]
    weights = np.exp(-(x[:, 0] ** 2) / 2)
    weights /= weights.sum()
    assert weights.min() < 1e-130
    for eps in (0.5, 0.02):
        cost = (x - x.T) ** 2 / 2 / eps
        f = np.zeros(200)
        for _ in range(60):
            rows = np.logaddexp.reduce(f + np.log(weights) - cost, axis=1)
            f = (f - rows) / 2
        plan = softmax(f + np.log(weights) - cost)
        transport = self_transport(x, eps, weights=weights)
        # The marginal error does not control rows of weight 1e-130: relative to them.
        np.testing.assert_allclose(transport.barycentric(), plan @ x, rtol=1e-7)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": np.ones(3)}, r"x must be a non-empty matrix, got shape \(3,\)"),
        ({"x": np.ones((0, 2))}, r"x must be a non-empty matrix"),
        ({"x": [[1e101], [0]]}, r"x must not exceed 1e\+100, got 1e\+101"),
        ({"x": [[np.nan], [0]]}, r"x\[0, 0\] is nan"),
        ({"eps": 0}, "eps must be a positive finite number, got 0"),
        ({"eps": np.nan}, "eps must be a positive finite number, got nan"),
        ({"eps": -1.0}, "eps must be a positive finite number, got -1.0"),
        ({"tol": 0.0}, "tol must be a positive finite number"),
        ({"max_iter": 0}, "max_iter must be an integer from 1"),
        ({"weights": [0.5]}, r"weights must have shape \(2,\) as x has, got \(1,\)"),
        ({"weights": [1.5, -0.5]}, "weights must be positive.*got -0.5"),
        ({"weights": [1.0, 0.0]}, "weights must be positive.*got 0"),
        ({"weights": [0.5, 0.5 + 2e-12]}, r"weights must sum to 1, .* 1 \+ 2e-12"),
    ],
)
@pytest.mark.parametrize("transport", [self_transport, alternating_transport])
def test_bad_input_is_named(transport, change, message):
    good = {"x": [[0.0], [1.0]], "eps": 1.0, "weights": None}
    with pytest.raises(ValueError, match=message):
        transport(**(good | change))


def test_weights_may_miss_a_sum_of_one_by_rounding():
    weights = [0.5, 0.5 + 5e-13]
    assert self_transport([[0.0], [1.0]], 1.0, weights=weights, tol=1e-9).converged


def test_import_is_light():
    code = (
        "import sys, lib.sinkhorn, lib.heat;"
        "heavy = ('matplotlib', 'scipy.stats', 'scipy.spatial', 'ot', 'IPython');"
        "print([m for m in heavy if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert out.stdout.strip() == "[]"


def test_values_of_a_projection_are_checked():
    transport = self_transport(X, 1.0)
    np.testing.assert_allclose(transport.barycentric(np.ones((40, 1))), 1, rtol=1e-15)
    with pytest.raises(
        ValueError, match=r"values must have 40 rows, got shape \(3, 1\)"
    ):
        transport.barycentric(np.ones((3, 1)))


class TestValue:
    @staticmethod
    def cost(transport):
        plan, w = transport.plan(), transport.weights
        squares = ((transport.x[:, None] - transport.x) ** 2).sum(axis=-1)
        entropy = (plan * np.log(plan / np.outer(w, w))).sum()
        return (plan * squares).sum() / 2 + transport.eps * entropy

    @pytest.mark.parametrize(
        "transport", [sinkhorn.self_transport, sinkhorn.alternating_transport]
    )
    @pytest.mark.parametrize("eps", [0.3, 2.0])
    def test_is_the_cost_of_the_plan(self, transport, eps):
        rng = np.random.default_rng(5)
        x, w = rng.normal(size=(20, 3)), rng.dirichlet(np.full(20, 3.0))
        solution = transport(x, eps, weights=w, tol=1e-13)
        assert solution.value == pytest.approx(self.cost(solution), abs=1e-11)

    def test_one_token_costs_nothing(self):
        assert sinkhorn.self_transport([[3.0, 1.0]], 0.5).value == 0

    def test_gradient_is_twice_the_weighted_step(self):
        rng = np.random.default_rng(6)
        x, w = rng.normal(size=(8, 2)), rng.dirichlet(np.full(8, 3.0))

        def value(x):
            return sinkhorn.self_transport(x, 0.7, weights=w, tol=1e-14).value

        away = -sinkhorn.self_transport(x, 0.7, weights=w, tol=1e-14).displacement()
        for i in range(8):
            for k in range(2):
                shift = np.zeros_like(x)
                shift[i, k] = 1e-4
                slope = (value(x + shift) - value(x - shift)) / 2e-4
                assert slope == pytest.approx(2 * w[i] * away[i, k], abs=1e-8)

    def test_equal_tokens(self):
        """Copies count as one token of their weights together."""
        copies = sinkhorn.self_transport([[0.0], [0.0], [1.0]], 0.5, tol=1e-14)
        merged = sinkhorn.self_transport(
            [[0.0], [1.0]], 0.5, weights=[2 / 3, 1 / 3], tol=1e-14
        )
        assert copies.value == pytest.approx(merged.value, abs=1e-13)
