"""Attention from general scores, by normalizing rows and columns."""

import numpy as np
import pytest

from lib.attention import softmax
from lib.sinkhorn import gibbs_kernel, self_transport, sinkhorn_attention

RNG = np.random.default_rng(0)

X = RNG.standard_normal((40, 2))


def test_one_normalization_is_the_softmax():
    scores = RNG.standard_normal((3, 5, 5))
    np.testing.assert_allclose(
        sinkhorn_attention(scores, 1), softmax(scores), rtol=1e-13
    )


@pytest.mark.parametrize("iterations", [1, 2, 3, 4, 7, 8])
def test_odd_numbers_end_on_rows_and_even_ones_on_columns(iterations):
    scores = 3 * np.random.default_rng(3).standard_normal((2, 6, 6))
    weights = sinkhorn_attention(scores, iterations)
    exact, other = (-1, -2) if iterations % 2 else (-2, -1)
    np.testing.assert_allclose(weights.sum(axis=exact), 1, rtol=1e-13)
    assert np.abs(weights.sum(axis=other) - 1).max() > 1e-3
    # D₁ e^Y D₂: what is left of the logarithm is a function of i plus one of j.
    rest = np.log(weights) - scores
    rest -= rest[:, :1] + rest[:, :, :1] - rest[:, :1, :1]
    np.testing.assert_allclose(rest, 0, atol=1e-12, rtol=0)


def test_many_normalizations_are_doubly_stochastic():
    scores = np.random.default_rng(4).standard_normal((6, 6))
    weights = sinkhorn_attention(scores, 200)
    np.testing.assert_allclose(weights.sum(axis=0), 1, rtol=1e-12)
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-12)


def test_dot_products_and_distances_agree_after_sinkhorn_but_not_after_softmax():
    x, eps = X[:20] / 2, 0.3
    dots = x @ x.T / eps
    plan = 20 * self_transport(x, eps, tol=1e-14).plan()
    np.testing.assert_allclose(sinkhorn_attention(dots, 5000), plan, atol=1e-12, rtol=0)
    distances = np.log(gibbs_kernel(x, eps))
    np.testing.assert_allclose(
        sinkhorn_attention(distances, 5000), plan, atol=1e-12, rtol=0
    )
    assert np.abs(softmax(dots) - softmax(distances)).max() > 0.1


def plain(scores, iterations):
    """Normalizations of the logarithms in long double."""
    logs = np.asarray(scores, np.longdouble)
    for number in range(iterations):
        axis = -1 - number % 2
        top = logs.max(axis=axis, keepdims=True)
        logs = logs - top - np.log(np.exp(logs - top).sum(axis=axis, keepdims=True))
    return np.exp(logs)


@pytest.mark.parametrize("size", [149.999, 150.001])
@pytest.mark.parametrize("iterations", [1, 2, 5, 500])
def test_the_largest_scores_that_need_no_logarithms(size, iterations):
    """Entries too small for the floats among them, beside the first that need them."""
    rng = np.random.default_rng(5)
    for scores in (
        rng.uniform(-size, size, (3, 7, 7)),
        size * rng.choice([-1.0, 1.0], (3, 7, 7)),
        size * np.where(np.eye(7) > 0, -1.0, 1.0),
        size * np.array([[1.0, 1.0, -1.0]] * 2 + [[-1.0, -1.0, -1.0]]),
        np.where(np.tri(7) > 0, rng.uniform(-size, size, (7, 7)), -np.inf),
        # Under this mask the last row loses its first entry: it halves at each turn.
        np.array([[size, -np.inf, -np.inf]] * 2 + [[size, -size, 0.0]]),
    ):
        weights = sinkhorn_attention(scores, iterations)
        exact = plain(scores, iterations)
        np.testing.assert_allclose(weights, exact, rtol=2e-12, atol=1e-290)
        np.testing.assert_array_equal(weights == 0, exact < 1e-308)


def test_attention_leaves_its_scores_as_they_are():
    scores = RNG.standard_normal((4, 4))
    kept = scores.copy()
    sinkhorn_attention(scores, 3)
    np.testing.assert_array_equal(scores, kept)


def test_attention_masks_and_extremes():
    causal = np.where(np.tri(3) > 0, 0.0, -np.inf)
    np.testing.assert_allclose(sinkhorn_attention(causal, 1)[2], 1 / 3)
    # The only doubly stochastic matrix under that mask is the identity.
    np.testing.assert_allclose(
        sinkhorn_attention(causal, 4001), np.eye(3), atol=2e-3, rtol=0
    )
    far = [[0.0, 1e90], [-1e90, 3.0]]
    np.testing.assert_array_equal(sinkhorn_attention(far, 1), [[0, 1], [0, 1]])
    np.testing.assert_array_equal(sinkhorn_attention([[7.0]], 3), [[1.0]])
    for wrong in ([[0.0, -np.inf], [-2e100, 0.0]], [[0.0, 2e100], [0.0, 0.0]]):
        with pytest.raises(ValueError, match=r"must not exceed 1e\+100, got 2e\+100"):
            sinkhorn_attention(wrong, 1)
    with pytest.raises(ValueError, match="scores has a column of -inf only"):
        sinkhorn_attention([[0.0, -np.inf], [1.0, -np.inf]], 2)
    with pytest.raises(ValueError, match="scores has a row of -inf only"):
        sinkhorn_attention([[0.0, 1.0], [-np.inf, -np.inf]], 1)


def test_masked_rows_and_columns_of_a_batch():
    """A key that is masked for all queries is no error of one softmax."""
    scores = np.zeros((2, 3, 3))
    scores[1, :, 0] = -np.inf
    np.testing.assert_array_equal(sinkhorn_attention(scores, 1)[1], [[0, 0.5, 0.5]] * 3)
    with pytest.raises(ValueError, match="scores has a row of -inf only"):
        sinkhorn_attention(scores.mT, 1)
