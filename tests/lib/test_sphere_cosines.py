"""The closed equation of the cosines, against tokens of any dimension."""

import numpy as np
import pytest

from lib import sphere
from lib.sphere import cosines, equiangular_gap

RNG = np.random.default_rng(0)
X = sphere.uniform_tokens(9, 40, systems=3, rng=RNG)
G = X @ X.mT


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("beta", [2.0, -2.0, 0.0])
def test_drift_is_that_of_the_tokens(beta, normalize):
    field = sphere.attention_field(X, beta, normalize)
    expected = field @ X.mT + X @ field.mT
    drift = cosines.cosine_drift(G, beta, normalize)
    np.testing.assert_allclose(drift, expected, atol=1e-14, rtol=0)
    np.testing.assert_allclose(
        np.diagonal(drift, axis1=1, axis2=2), 0, atol=1e-15, rtol=0
    )


@pytest.mark.parametrize("d", [2, 8, 40, 1024])
@pytest.mark.parametrize("normalize", [True, False])
def test_cosines_move_as_those_of_tokens(d, normalize):
    """The same numbers in fewer coordinates, or in as many, for flow and layers."""
    x = sphere.uniform_tokens(9, d, systems=2, rng=RNG)
    tokens = sphere.simulate(x, 3.0, 4, 16, normalize=normalize)
    run = cosines.simulate(x @ x.mT, 3.0, 4, 16, normalize=normalize)
    np.testing.assert_array_equal(run.times, tokens.times)
    expected = tokens.states @ tokens.states.mT
    np.testing.assert_allclose(run.states, expected, atol=3e-14, rtol=0)
    tokens = sphere.post_norm_layers(
        x, lambda y: sphere.attention_output(y, 3.0, normalize), 0.1, 50
    )
    run = cosines.post_norm_layers(x @ x.mT, 3.0, 0.1, 50, normalize=normalize)
    expected = tokens.states @ tokens.states.mT
    np.testing.assert_allclose(run.states, expected, atol=3e-14, rtol=0)


def test_a_layer_is_a_congruence():
    after = cosines.post_norm_layers(G[0], 3.0, 0.1, 1).states[1]
    weights = np.exp(3 * G[0])
    step = np.eye(9) + 0.1 * weights / weights.sum(axis=1, keepdims=True)
    product = step @ G[0] @ step.T
    scale = np.sqrt(np.diag(product))
    np.testing.assert_allclose(
        after, product / np.outer(scale, scale), atol=1e-14, rtol=0
    )


def test_flow_solves_the_closed_equation():
    """A central difference of the states is the drift at the one between."""
    states = cosines.simulate(G, 3.0, 2e-3, 2).states
    quotient = (states[2] - states[0]) / 2e-3
    np.testing.assert_allclose(
        quotient, cosines.cosine_drift(states[1], 3.0), atol=1e-5, rtol=0
    )


def test_states_stay_matrices_of_cosines():
    states = cosines.simulate(G, 8.0, 60, 240, save_every=40).states
    np.testing.assert_array_equal(np.diagonal(states, axis1=-2, axis2=-1), 1)
    assert np.linalg.eigvalsh(states).min() > -1e-13


@pytest.mark.parametrize("d", [1, 2, 5, 40])
def test_root_has_the_rank_as_dimension(d):
    x = sphere.uniform_tokens(9, d, rng=RNG)
    root = cosines.root(x @ x.T)
    assert root.shape == (9, min(9, d))
    np.testing.assert_allclose(root @ root.T, x @ x.T, atol=1e-13, rtol=0)


def test_root_keeps_small_gaps():
    for gap in (1e-6, 1e-9, 1e-11):
        gram = np.array([[1, 1 - gap], [1 - gap, 1]])
        root = cosines.root(gram)
        np.testing.assert_allclose(root @ root.T, gram, atol=1e-15, rtol=0)


def test_merged_share_counts_pairs():
    theta = np.array([0, 1e-3, 2e-3, 2.0])
    x = np.stack([np.cos(theta), np.sin(theta)], axis=1)
    gram = x @ x.T
    # Cosine 1 − 5e-7 for neighbors, 1 − 2e-6 across.
    shares = [cosines.merged_share(gram, gap) for gap in (1e-7, 1e-6, 1e-5, 2.0)]
    assert shares == [0, 2 / 6, 3 / 6, 1]
    batch = cosines.merged_share(np.stack([gram, np.ones((4, 4))]), 1e-6)
    np.testing.assert_allclose(batch, [2 / 6, 1])


def test_infinite_dimension_is_the_equiangular_curve():
    run = cosines.simulate(np.eye(12), 4.0, 10, 400)
    gaps = 1 - run.states[1:, 0, 1]
    np.testing.assert_allclose(
        gaps, equiangular_gap(12, 4.0, run.times[1:]), atol=1e-8, rtol=0
    )
    spread = np.ptp(run.states[:, *np.triu_indices(12, 1)], axis=1)
    assert spread.max() < 1e-12


@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 3), (2, 1, 3, 3)])
def test_eigenvalues_down_to_1e10_a_token_are_rounding(shape):
    """Of three equal cosines c the least eigenvalue is 1 + 2c, also in a stack."""
    for excess, fits in ((1e-10, True), (2e-10, False)):
        c = -0.5 - excess
        g = np.broadcast_to(np.full((3, 3), c) + (1 - c) * np.eye(3), shape)
        if fits:
            root = cosines.root(g)
            np.testing.assert_allclose(root @ root.mT, g, atol=1e-9, rtol=0)
            continue
        with pytest.raises(ValueError, match="positive semidefinite"):
            cosines.root(g)


def test_entries_may_differ_by_the_tolerance_and_no_more():
    assert cosines.merged_share([[1, 1e-8], [0, 1]], 0.1) == 0
    with pytest.raises(ValueError, match="symmetric"):
        cosines.merged_share([[1, 1.01e-8], [0, 1]], 0.1)


def test_cosines_may_exceed_one_by_the_tolerance_and_no_more():
    def pair(cosine):
        return [[1, cosine], [cosine, 1]]

    assert cosines.merged_share(pair(1 + 0.99e-8), 0.1) == 1
    for excess in (1.01e-8, 1e-6):
        with pytest.raises(ValueError, match="must be at most 1, got 1.00000"):
            cosines.merged_share(pair(1 + excess), 0.1)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: cosines.simulate(2 * np.eye(3), 1.0, 1, 1), ["cosines0", "2"]),
        (lambda: cosines.root(np.diag([1, 0.5, 1])), ["ones on the", "got 0.5"]),
        (lambda: cosines.simulate(np.ones((2, 3)), 1.0, 1, 1), ["cosines0", "(2, 3)"]),
        (lambda: cosines.root(np.eye(3) + np.tri(3, k=-1)), ["cosines", "symmetric"]),
        (lambda: cosines.root([[1, 2.0], [2, 1]]), ["cosines", "2"]),
        (
            lambda: cosines.root([[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]]),
            ["cosines", "semidefinite", "-0.8"],
        ),
        (lambda: cosines.merged_share([[1.0]], 0.1), ["cosines", "two tokens"]),
        (
            lambda: cosines.simulate(np.eye(3), 1.0, 20, 1),
            ["steps=1", "take about", "cosines0"],
        ),
        (
            lambda: cosines.cosine_drift((1 + 9e-9) * np.eye(3), 1e12, False),
            ["beta=1000000000000.0"],
        ),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises(ValueError, match=".") as error:
        call()
    assert all(word in str(error.value) for word in words), str(error.value)
