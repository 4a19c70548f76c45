"""Fields, flows and energies on the sphere, against definitions and closed forms."""

from functools import partial

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import logsumexp, softmax

from lib import sphere
from lib.claims import convergence_order

RNG = np.random.default_rng(0)
X = sphere.uniform_tokens(7, 4, rng=RNG)
Q, K, V = RNG.standard_normal((3, 2, 4, 4))  # two heads
BETAS = (0.0, 0.7, 5.0, 1e4, -0.7, -5.0, -1e3)


def proj(x, y):
    return y - np.sum(x * y, axis=-1, keepdims=True) * x


def by_definition(x, beta, normalize, q=None, k=None, v=None, causal=False):
    """Token by token and head by head, from the formula in the docstring."""
    eye = np.eye(x.shape[1])
    heads = [
        [eye if w is None else w[a] for w in (q, k, v)]
        for a in range(1 if q is None else len(q))
    ]
    out = np.zeros_like(x)
    for i in range(len(x)):
        for w_q, w_k, w_v in heads:
            seen = range(i + 1) if causal else range(len(x))
            scores = [beta * (w_q @ x[i]) @ (w_k @ x[j]) for j in seen]
            if normalize:
                weights = softmax(scores)
            else:
                weights = np.exp(np.array(scores) - abs(beta)) / len(scores)
            out[i] += w_v @ sum(a * x[j] for a, j in zip(weights, seen, strict=True))
    return out


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("beta", BETAS)
def test_field_is_its_definition(beta, normalize):
    found = sphere.attention_field(X, beta, normalize)
    expected = proj(X, by_definition(X, beta, normalize))
    np.testing.assert_allclose(found, expected, atol=1e-12, rtol=0)  # scores up to 1e4
    np.testing.assert_allclose(np.sum(found * X, axis=-1), 0, atol=1e-15, rtol=0)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("causal", [True, False])
def test_heads_weights_and_mask_are_their_definition(causal, normalize):
    found = sphere.attention_output(
        X, 0.3, normalize, query=Q, key=K, value=V, causal=causal
    )
    expected = by_definition(X, 0.3, normalize, Q, K, V, causal)
    np.testing.assert_allclose(found, expected, atol=1e-13, rtol=0)
    one = [
        sphere.attention_output(
            X, 0.3, normalize, query=Q[a], key=K[a], value=V[a], causal=causal
        )
        for a in range(2)
    ]
    np.testing.assert_allclose(sum(one), found, atol=1e-14, rtol=0)


def test_weights_left_out_are_the_identity():
    eye = np.eye(4)
    for given in (dict(query=eye), dict(key=eye), dict(value=eye)):
        found = sphere.attention_field(X, 2.0, **given)
        np.testing.assert_allclose(
            found, sphere.attention_field(X, 2.0), atol=1e-15, rtol=0
        )
    narrow = sphere.attention_output(X, 2.0, query=Q[0, :2], key=K[0, :2])
    kernel = Q[0, :2].T @ K[0, :2]
    expected = softmax(2 * X @ kernel @ X.T, axis=-1) @ X
    np.testing.assert_allclose(narrow, expected, atol=1e-14, rtol=0)


def test_causal_token_sees_no_later_one():
    moved = X.copy()
    moved[5:] = -moved[5:]
    one, two = (sphere.attention_field(x, 3.0, causal=True) for x in (X, moved))
    np.testing.assert_array_equal(one[:5], two[:5])
    np.testing.assert_allclose(one[0], 0, atol=1e-16, rtol=0)  # the leader rests
    assert np.abs(one[5:] - two[5:]).max() > 0.1


@pytest.mark.parametrize("normalize", [True, False])
def test_field_is_equivariant(normalize):
    field = partial(sphere.attention_field, beta=3.0, normalize=normalize)
    rotation = np.linalg.qr(RNG.standard_normal((4, 4)))[0]
    order = RNG.permutation(7)
    np.testing.assert_allclose(
        field(X @ rotation), field(X) @ rotation, atol=1e-15, rtol=0
    )
    np.testing.assert_allclose(field(X[order]), field(X)[order], atol=1e-15, rtol=0)


def test_positions_and_mask_break_permutations():
    """Negative control: with a mask the order of the tokens matters."""
    flipped = sphere.attention_field(X[::-1], 3.0, causal=True)[::-1]
    assert np.abs(flipped - sphere.attention_field(X, 3.0, causal=True)).max() > 0.1


@pytest.mark.parametrize("shape", [(500, 3), (40, 90, 3), (3, 2, 5, 4)])
@pytest.mark.parametrize("causal", [True, False])
def test_blocks_and_batches_change_nothing(shape, causal):
    """500 tokens are parted by rows, 40 systems of 90 by systems."""
    *batch, n, d = shape
    x = sphere.uniform_tokens(int(np.prod(batch)) * n, d, rng=RNG).reshape(shape)
    found = sphere.attention_field(x, 2.0, causal=causal)
    scores = 2 * x @ x.mT
    if causal:
        scores = np.where(np.tri(n, dtype=bool), scores, -np.inf)
    expected = proj(x, softmax(scores, axis=-1) @ x)
    np.testing.assert_allclose(found, expected, atol=1e-14, rtol=0)
    energies = sphere.interaction_energy(x, 2.0)
    expected = np.exp(2 * x @ x.mT).mean(axis=(-2, -1)) / 4
    np.testing.assert_allclose(energies, expected, rtol=1e-13)
    assert np.shape(energies) == tuple(batch)


def energy_by_definition(x, beta):
    return np.exp(beta * x @ x.T).mean() / (2 * beta)


@pytest.mark.parametrize("beta", [2.0, -2.0])
def test_both_fields_are_gradients_of_the_energy(beta):
    """Central differences along tangent directions: n ∂E, over Z for the normalized."""
    h, n = 1e-5, len(X)
    gradient = np.zeros_like(X)
    for i in range(n):
        for a in range(4):
            step = np.zeros_like(X)
            step[i, a] = h
            rise = energy_by_definition(X + step, beta)
            gradient[i, a] = (rise - energy_by_definition(X - step, beta)) / (2 * h)
    gradient = n * proj(X, gradient)
    unnormalized = np.exp(abs(beta)) * sphere.attention_field(X, beta, False)
    np.testing.assert_allclose(unnormalized, gradient, atol=1e-8, rtol=0)
    z = np.exp(beta * X @ X.T).mean(axis=1, keepdims=True)
    np.testing.assert_allclose(sphere.partition_function(X, beta)[:, None], z, 1e-13)
    normalized = sphere.attention_field(X, beta)
    np.testing.assert_allclose(normalized, gradient / z, atol=1e-8, rtol=0)
    # A wrong metric would be seen.
    assert np.abs(normalized - gradient).max() > 0.1


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("beta", [3.0, -3.0, 1e-3])
def test_dissipation_is_the_derivative_of_the_energy(beta, normalize):
    energy = partial(sphere.interaction_energy, beta=beta, shifted=True)
    h = 1e-2
    states = sphere.simulate(X, beta, 4 * h, 4, normalize=normalize).states
    weights = np.array([1, -8, 0, 8, -1]) / (12 * h)  # fourth-order difference
    rate = sphere.dissipation(states[2], beta, normalize, shifted=True)
    assert weights @ energy(states) == pytest.approx(
        rate, rel=2e-7, abs=1e-11 / abs(beta)
    )
    plain = sphere.dissipation(states[2], beta, normalize)
    assert plain == pytest.approx(np.exp(abs(beta)) * rate, rel=1e-12, abs=0)


def test_energy_has_its_closed_forms():
    one = np.array([[1.0, 0.0]] * 3)
    antipodes = np.array([[1.0, 0.0], [-1.0, 0.0]])
    for beta in (0.5, 4.0, -4.0):
        assert sphere.interaction_energy(one, beta) == pytest.approx(
            np.exp(beta) / (2 * beta), rel=1e-14, abs=0
        )
        assert sphere.interaction_energy(antipodes, beta) == pytest.approx(
            np.cosh(beta) / (2 * beta), rel=1e-14, abs=0
        )
    squares = np.sum((X[:, None] - X) ** 2, axis=-1)
    height = np.exp(-3.0 / 2 * squares).sum() / 2
    shifted = sphere.interaction_energy(X, 3.0, shifted=True)
    assert height == pytest.approx(3 * len(X) ** 2 * shifted, rel=1e-13, abs=0)


def test_shifted_energy_survives_any_beta():
    for beta in (1e4, -1e3, 1e-3):
        log = logsumexp(beta * X @ X.T - abs(beta)) - 2 * np.log(len(X))
        expected = np.exp(log) / (2 * beta)
        found = sphere.interaction_energy(X, beta, shifted=True)
        assert found == pytest.approx(expected, rel=1e-9, abs=0)
    # Tokens that are off the sphere by rounding are put back: no factor e^(2e-8 β).
    found = sphere.interaction_energy((1 + 9e-9) * X, 1e8, shifted=True)
    assert found == pytest.approx(1 / (2e8 * len(X)), rel=1e-6, abs=0)
    # Near consensus at negative β the energy is tiny and keeps its digits.
    one = np.array([[1.0, 0.0]] * 3)
    assert sphere.interaction_energy(one, -600.0) == pytest.approx(
        np.exp(-600.0) / -1200, rel=1e-12, abs=0
    )


def angles_field(theta, beta, normalize):
    x = np.stack([np.cos(theta), np.sin(theta)], axis=1)
    tangent = np.stack([-np.sin(theta), np.cos(theta)], axis=1)
    return np.sum(sphere.attention_field(x, beta, normalize) * tangent, axis=1)


def test_normalized_model_is_no_plain_gradient_flow():
    """The Jacobian of a gradient flow is symmetric: one model's is, the other's not."""
    theta, h = np.array([0.3, 1.1, 2.9]), 1e-5
    parts = []
    for normalize in (True, False):
        steps = h * np.eye(3)
        columns = [
            angles_field(theta + s, 2.0, normalize)
            - angles_field(theta - s, 2.0, normalize)
            for s in steps
        ]
        jacobian = np.array(columns).T / (2 * h)
        odd = np.linalg.norm(jacobian - jacobian.T) / np.linalg.norm(jacobian)
        parts.append(odd)
    assert parts[0] > 0.1 and parts[1] < 1e-9


@pytest.mark.parametrize("normalize", [True, False])
def test_runge_kutta_has_order_four(normalize):
    x0 = sphere.uniform_tokens(6, 3, rng=np.random.default_rng(1))

    def slope(_, y):
        field = sphere.attention_field(y.reshape(6, 3) / norms(y), 3.0, normalize)
        return field.ravel()

    def norms(y):
        return np.linalg.norm(y.reshape(6, 3), axis=1, keepdims=True)

    exact = solve_ivp(slope, (0, 2), x0.ravel(), "DOP853", rtol=1e-13, atol=1e-13)
    sizes = 2 ** np.arange(3, 8)
    runs = [sphere.simulate(x0, 3.0, 2, int(n), normalize=normalize) for n in sizes]
    errors = [np.abs(r.states[-1].ravel() - exact.y[:, -1]).max() for r in runs]
    assert convergence_order(sizes, errors).order == pytest.approx(-4, abs=0.15)
    np.testing.assert_allclose(
        np.linalg.norm(runs[0].states, axis=-1), 1, rtol=1e-14
    )  # on the sphere at any step


def test_layers_have_order_one_and_need_fifty_times_the_evaluations():
    """Error at most 4e-4 at time 5: counts, of n = 64 tokens in d = 3 at β = 1."""
    x0 = sphere.uniform_tokens(64, 3, rng=np.random.default_rng(1))
    exact = sphere.simulate(x0, 1.0, 5, 1000, save_every=1000).states[-1]
    count = 0

    def attention(x):
        nonlocal count
        count += 1
        return sphere.attention_output(x, 1.0)

    def evaluations(error, sizes):
        """Calls of the field by the first run with an error of at most 4e-4."""
        nonlocal count
        for n in sizes:
            count = 0
            if error(n) <= 4e-4:
                return count
        raise AssertionError("no run is accurate enough")

    def layers(n):
        run = sphere.post_norm_layers(x0, attention, 5 / n, n, save_every=n)
        return np.abs(run.states[-1] - exact).max()

    def runge_kutta(n):
        return np.abs(sphere.flow(attention, x0, 5, n).states[-1] - exact).max()

    sizes = [20, 40, 80, 160, 320]
    errors = [layers(n) for n in sizes]
    assert convergence_order(sizes, errors).order == pytest.approx(-1, abs=0.1)
    few = evaluations(runge_kutta, range(5, 40))
    assert layers(50 * few) > 4e-4  # as many layers as 50 times that do not suffice


def test_alternating_layers_converge_to_the_sum_of_fields():
    """Lie–Trotter: attention and perceptron in turn are their sum, no composite."""
    rng = np.random.default_rng(2)
    x0 = sphere.uniform_tokens(6, 3, rng=rng)
    inner, outer = rng.standard_normal((2, 3, 3)) / 2
    attention = partial(sphere.attention_output, beta=2.0)
    mlp = partial(sphere.perceptron_output, inner=inner, outer=outer, bias=[1, 0, -1])
    exact = sphere.flow(lambda x: attention(x) + mlp(x), x0, 1, 100).states[-1]
    sizes = [20, 40, 80, 160, 320]
    ends = [
        sphere.post_norm_layers(x0, [attention, mlp], 1 / n, n).states[-1]
        for n in sizes
    ]
    errors = [np.abs(end - exact).max() for end in ends]
    assert convergence_order(sizes, errors).order == pytest.approx(-1, abs=0.1)

    def composite(x):
        a = attention(x)
        return mlp(a / np.linalg.norm(a, axis=-1, keepdims=True))

    other = sphere.flow(composite, x0, 1, 100).states[-1]
    assert np.abs(other - ends[-1]).max() > 0.1


def test_perceptron_is_its_formula():
    rng = np.random.default_rng(3)
    inner, outer, bias = (
        rng.normal(size=(9, 4)),
        rng.normal(size=(4, 9)),
        rng.normal(size=9),
    )
    found = sphere.perceptron_output(X, inner, outer, bias)
    expected = [outer @ np.maximum(inner @ x + bias, 0) for x in X]
    np.testing.assert_allclose(found, expected, atol=1e-14, rtol=0)
    smooth = sphere.perceptron_output(X, inner, outer, activation=np.tanh)
    expected = [outer @ np.tanh(inner @ x) for x in X]
    np.testing.assert_allclose(smooth, expected, atol=1e-14, rtol=0)


def test_normalization_decides_how_fast_tokens_meet():
    """1 − cos falls like e^(−2t) after the sum, and like t^(−2) before the branch."""
    x0 = np.eye(8)
    part = partial(sphere.attention_output, beta=2.0)
    after = sphere.post_norm_layers(x0, part, 0.01, 1000, save_every=100)
    gaps = np.sum((after.states[:, 0] - after.states[:, 1]) ** 2, axis=-1) / 2
    # At this step the multiplier of a layer is (1 + h)^(−2).
    slope = np.diff(np.log(gaps[-3:])) / np.diff(after.times[-3:])
    np.testing.assert_allclose(slope, -2 * np.log(1.01) / 0.01, rtol=1e-4)
    before = sphere.pre_norm_layers(x0, part, 0.1, 4000, save_every=1000)
    x = before.states / np.linalg.norm(before.states, axis=-1, keepdims=True)
    gaps = np.sum((x[1:, 0] - x[1:, 1]) ** 2, axis=-1) / 2
    slope = np.diff(np.log(gaps)) / np.diff(np.log(before.times[1:]))
    np.testing.assert_allclose(slope, -2, atol=0.03, rtol=0)
    assert np.linalg.norm(before.states[-1], axis=-1).min() > 300  # they grow


def test_repulsion_ends_in_an_octahedron_and_attraction_in_a_point():
    x0 = sphere.uniform_tokens(6, 3, rng=np.random.default_rng(4))
    apart = sphere.simulate(x0, 1.0, 400, 1600, value=-np.eye(3), save_every=1600)
    cosines = np.sort((apart.states[-1] @ apart.states[-1].T)[np.triu_indices(6, 1)])
    np.testing.assert_allclose(cosines, [-1] * 3 + [0] * 12, atol=1e-6, rtol=0)
    together = sphere.simulate(x0, 1.0, 40, 160, save_every=160).states[-1]
    np.testing.assert_allclose(together @ together.T, 1, atol=1e-12, rtol=0)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("beta", [3.0, -3.0])
def test_nothing_to_do(beta, normalize):
    """One token, the sphere of d = 1, and antipodes, an equilibrium of every model."""
    field = partial(sphere.attention_field, beta=beta, normalize=normalize)
    np.testing.assert_allclose(field(X[:1]), 0, atol=1e-16, rtol=0)
    np.testing.assert_allclose(field([[1.0], [-1.0], [1.0]]), 0, atol=1e-16, rtol=0)
    np.testing.assert_allclose(field(np.array([X[0], -X[0]])), 0, atol=1e-15, rtol=0)
    states = sphere.simulate([[1.0], [-1.0]], beta, 5, 20, normalize=normalize).states
    np.testing.assert_array_equal(states[-1], [[1], [-1]])


def test_states_are_saved_as_asked():
    every = sphere.simulate(X, 1.0, 2, 10)
    some = sphere.simulate(X, 1.0, 2, 10, save_every=4)
    np.testing.assert_allclose(every.times, np.arange(11) / 5)
    np.testing.assert_allclose(some.times, [0, 0.8, 1.6, 2])
    np.testing.assert_array_equal(some.states, every.states[[0, 4, 8, 10]])


def test_too_few_steps_are_refused_with_a_number_that_works():
    x0 = sphere.uniform_tokens(20, 3, rng=np.random.default_rng(5))
    push = partial(sphere.simulate, x0, 4.0, 100.0)
    with pytest.raises(ValueError, match=r"steps=20 is too small.*take about (\d+)"):
        push(20)
    try:
        push(20)
    except ValueError as error:
        suggested = int(str(error).split()[-1])
    assert suggested < 2000
    rest = push(suggested).states[-1]
    np.testing.assert_allclose(rest @ rest.T, 1, atol=1e-10, rtol=0)


def test_clusters_are_connected_components():
    theta = np.array([0, 0.1, 0.2, 1.0, 1.05, 3.0, 2 * np.pi - 0.1])
    x = np.stack([np.cos(theta), np.sin(theta)], axis=1)
    np.testing.assert_array_equal(sphere.cluster_labels(x, 0.11), [0, 0, 0, 1, 1, 2, 0])
    both = sphere.cluster_labels(np.stack([x, x[::-1]]), 0.11)
    np.testing.assert_array_equal(both[1], [0, 1, 2, 2, 0, 0, 0])
    assert sphere.cluster_labels(x, 0.01).max() == 6
    chord = 2 * np.sin(0.05)
    assert sphere.cluster_labels(x[:2], chord * (1 + 1e-9)).max() == 0
    assert sphere.cluster_labels(x[:2], chord * (1 - 1e-9)).max() == 1
    assert sphere.cluster_labels(x, 2.0).max() == 0
    # Below the rounding of a cosine: 1 − cos of 1e-10 is 5e-21.
    near = np.array([[1.0, 0.0], [1.0, 1e-10], [1.0, 3e-10]])
    np.testing.assert_array_equal(sphere.cluster_labels(near, 1.5e-10), [0, 0, 1])


def test_uniform_tokens_have_their_law():
    """A coordinate in d = 3 is uniform on [−1, 1] (Archimedes): KS at 1e-6."""
    x = sphere.uniform_tokens(20_000, 3, rng=np.random.default_rng(6))
    for a in range(3):
        sorted_ = np.sort(x[:, a])
        gap = np.abs((sorted_ + 1) / 2 - (np.arange(20_000) + 0.5) / 20_000).max()
        assert gap < np.sqrt(-np.log(0.5e-6 / 3) / 2 / 20_000)
    assert sphere.uniform_tokens(3, 2, systems=5, rng=RNG).shape == (5, 3, 2)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: sphere.attention_field(1.001 * X, 1.0), ["x[0] has norm 1.001"]),
        (lambda: sphere.attention_field((1 + 2e-8) * X, 1.0), ["x[0]", "1.00000002"]),
        (lambda: sphere.attention_field(X[0], 1.0), ["x", "(4,)"]),
        (lambda: sphere.attention_field(X * np.nan, 1.0), ["x[0, 0]", "nan"]),
        (lambda: sphere.attention_field(X, np.inf), ["beta", "inf"]),
        (lambda: sphere.attention_field(X, 1.0, None), ["normalize", "None"]),
        (lambda: sphere.attention_field(X, 1.0, query=Q[0, :3]), ["query", "3 and 4"]),
        (lambda: sphere.attention_field(X, 1.0, value=Q[0, :3]), ["value", "(3, 4)"]),
        (
            lambda: sphere.attention_field(X, 1.0, query=Q, value=V[:1]),
            ["query, value"],
        ),
        (lambda: sphere.attention_field(X, 1.0, key=K * 1e307, query=K * 1e9), ["key"]),
        (lambda: sphere.interaction_energy(X, 0), ["beta", "0"]),
        (lambda: sphere.interaction_energy(X, 1e3), ["beta=1000.0", "shifted=True"]),
        (lambda: sphere.partition_function(X, 1e3), ["beta=1000.0", "shifted=True"]),
        (lambda: sphere.dissipation(X, 1e3), ["beta=1000.0", "shifted=True"]),
        (lambda: sphere.simulate(X, 1.0, 1.0, 0), ["steps", "0"]),
        (lambda: sphere.simulate(X, 1.0, -1.0, 5), ["horizon", "-1.0"]),
        (lambda: sphere.simulate(2 * X, 1.0, 1.0, 5), ["x0", "norm 2"]),
        (lambda: sphere.flow(lambda x: x[0], X, 1.0, 5), ["field", "(4,)"]),
        (lambda: sphere.flow(lambda x: x * np.nan, X, 1.0, 5), ["field", "nan"]),
        (lambda: sphere.post_norm_layers(X, [], 0.1, 5), ["parts", "[]"]),
        (lambda: sphere.post_norm_layers(X, lambda x: -x, 1.0, 5), ["parts", "0"]),
        (lambda: sphere.pre_norm_layers(0 * X, lambda x: x, 0.1, 5), ["x0", "0 to 0"]),
        (lambda: sphere.uniform_tokens(0, 3, rng=RNG), ["n", "0"]),
        (lambda: sphere.cluster_labels(X, 0.0), ["radius", "0.0"]),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises(ValueError, match=".") as error:
        call()
    assert all(word in str(error.value) for word in words), str(error.value)
