"""Fields, flows and energies on the sphere, against definitions and closed forms."""

import tracemalloc
from functools import partial

import numpy as np
import pytest
from scipy.special import softmax

from lib import sphere

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
    field = sphere.attention_field(X, beta, normalize)
    expected = proj(X, by_definition(X, beta, normalize))
    np.testing.assert_allclose(field, expected, atol=1e-12, rtol=0)  # scores up to 1e4
    np.testing.assert_allclose(np.sum(field * X, axis=-1), 0, atol=1e-15, rtol=0)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("causal", [True, False])
def test_heads_weights_and_mask_are_their_definition(causal, normalize):
    output = sphere.attention_output(
        X, 0.3, normalize, query=Q, key=K, value=V, causal=causal
    )
    expected = by_definition(X, 0.3, normalize, Q, K, V, causal)
    np.testing.assert_allclose(output, expected, atol=1e-13, rtol=0)
    one = [
        sphere.attention_output(
            X, 0.3, normalize, query=Q[a], key=K[a], value=V[a], causal=causal
        )
        for a in range(2)
    ]
    np.testing.assert_allclose(sum(one), output, atol=1e-14, rtol=0)


def test_weights_left_out_are_the_identity():
    eye = np.eye(4)
    for given in (dict(query=eye), dict(key=eye), dict(value=eye)):
        field = sphere.attention_field(X, 2.0, **given)
        np.testing.assert_allclose(
            field, sphere.attention_field(X, 2.0), atol=1e-15, rtol=0
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
    field = sphere.attention_field(x, 2.0, causal=causal)
    scores = 2 * x @ x.mT
    if causal:
        scores = np.where(np.tri(n, dtype=bool), scores, -np.inf)
    expected = proj(x, softmax(scores, axis=-1) @ x)
    np.testing.assert_allclose(field, expected, atol=1e-14, rtol=0)
    energies = sphere.interaction_energy(x, 2.0)
    expected = np.exp(2 * x @ x.mT).mean(axis=(-2, -1)) / 4
    np.testing.assert_allclose(energies, expected, rtol=1e-13)
    assert np.shape(energies) == tuple(batch)


@pytest.mark.parametrize(("systems", "n"), [(1, 2000), (600, 60)])
def test_scores_of_many_tokens_are_never_held_at_once(systems, n):
    """Blocks of 1 MB and what is made of them, where all scores are 17 MB or more."""
    x = sphere.uniform_tokens(n, 2, systems=systems, rng=np.random.default_rng(1))
    tracemalloc.start()
    sphere.attention_output(x, 2.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8e6


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
        (
            lambda: sphere.pre_norm_layers(0 * X, lambda x: x, 0.1, 5),
            ["x0", "length 0"],
        ),
        (lambda: sphere.uniform_tokens(0, 3, rng=RNG), ["n", "0"]),
        (lambda: sphere.cluster_labels(X, 0.0), ["radius", "0.0"]),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises(ValueError, match=".") as error:
        call()
    assert all(word in str(error.value) for word in words), str(error.value)
