"""The chain of Gram matrices has the law of real weights, at the cost of none."""

import tracemalloc

import numpy as np
import pytest
from scipy.stats import ks_2samp

from lib import attention
from lib.attention import shaped_attention
from lib.gram import ShapedLayer, bartlett, dense_simulate, random_scores, simulate

RNG = np.random.default_rng(0)


def rng(key=0):
    return np.random.default_rng(key)


def layer(width, key_width=3, skip=0.8, branch=0.6, tau0=0.7):
    return ShapedLayer(width, key_width, skip, branch, tau0)


def statistics(states):
    """Numbers that a wrong law would change: a size, a cosine, a volume."""
    last = states[-1]
    size = np.einsum("pii->p", last)
    cosine = last[:, 0, 1] / np.sqrt(last[:, 0, 0] * last[:, 1, 1])
    spread = np.linalg.eigvalsh(last)[:, -1] / size
    return size, cosine, spread


# Below the first 2m is direct drawing, with tokens that span less than the width or all
# of it; one key column is less than the rank, eight are more.
@pytest.mark.parametrize(
    ("width", "m", "key_width"),
    [(5, 3, 3), (3, 3, 1), (2, 3, 2), (6, 3, 1), (12, 3, 8), (16, 2, 2), (1, 2, 4)],
)
def test_law_is_that_of_real_weights(width, m, key_width):
    x0 = np.random.default_rng(m).standard_normal((m, width))
    gram0, one, paths = x0 @ x0.T / width, layer(width, key_width), 4000
    fast = simulate(gram0, one, 4, paths=paths, rng=rng(1)).states
    slow = dense_simulate(x0, one, 4, paths=paths, rng=rng(2)).states
    for quick, real in zip(statistics(fast), statistics(slow), strict=True):
        comparison = ks_2samp(quick, real)
        # Critical value at 1e-6 / 21 tests.
        assert comparison.statistic < np.sqrt(-np.log(0.5e-6 / 21) / paths)


def test_law_would_notice_a_wrong_number_of_degrees_of_freedom():
    x0 = rng(3).standard_normal((3, 12))
    gram0, paths = x0 @ x0.T / 12, 4000
    wrong = simulate(gram0, layer(12), 4, paths=paths, rng=rng(1)).states * 12 / 9
    slow = dense_simulate(x0, layer(12), 4, paths=paths, rng=rng(2)).states
    comparison = ks_2samp(statistics(wrong)[0], statistics(slow)[0])
    assert comparison.statistic > np.sqrt(-np.log(0.5e-6 / 21) / paths)


def test_mean_of_one_layer():
    """E V' = λ²V + γ² E[A V Aᵀ] with the same scores, within four standard errors."""
    m, n, paths = 3, 40, 40_000
    root = np.tril(rng(4).standard_normal((m, m)))
    gram0, one = root @ root.T, layer(n, key_width=5)
    after = simulate(gram0, one, 1, paths=paths, rng=rng(5)).states[1]
    scores = [
        attention.random_scores(np.sqrt(m) * root, 5, rng=RNG) for _ in range(20_000)
    ]
    A = shaped_attention(np.array(scores), one.temperature)
    mixed = A @ gram0 @ A.swapaxes(-1, -2)
    expected = 0.64 * gram0 + 0.36 * mixed.mean(axis=0)
    noise = np.hypot(
        after.std(axis=0) / np.sqrt(paths), 0.36 * mixed.std(axis=0) / np.sqrt(20_000)
    )
    assert (np.abs(after.mean(axis=0) - expected) < 5 * noise).all()


@pytest.mark.parametrize("width", [2, 7, 1000])
def test_without_branch_the_skip_decides(width):
    gram0 = np.diag([1.0, 2.0])
    states = simulate(gram0, layer(width, branch=0.0), 3, paths=2, rng=rng()).states
    expected = gram0 * 0.64 ** np.arange(4)[:, None, None]
    np.testing.assert_allclose(
        states, np.stack([expected] * 2, axis=1), atol=1e-14, rtol=0
    )


def test_equal_tokens_stay_equal():
    states = simulate(np.ones((3, 3)), layer(50), 20, paths=5, rng=rng()).states
    np.testing.assert_allclose(states - states[..., :1, :1], 0, atol=1e-12, rtol=0)


@pytest.mark.parametrize("key_width", [1, 7])
def test_scores_have_the_covariance_of_the_gram_matrix(key_width):
    """E[Y_ij Y_kl] = n_k V_ik V_jl, here with a singular V, and E Y = 0."""
    draws, root = 100_000, np.array([[1.0, 0.0], [0.5, 1.0], [1.5, 1.0]])
    V = root @ root.T
    Y = random_scores(V, key_width, size=draws, rng=rng(9)).reshape(draws, -1)
    square, noise = Y.T @ Y / draws, np.sqrt((Y**2).T @ Y**2) / draws
    assert (np.abs(square - key_width * np.kron(V, V)) < 5 * noise).all()
    assert (np.abs(Y.mean(axis=0)) < 5 * Y.std(axis=0) / np.sqrt(draws)).all()


def test_states_are_gram_matrices_and_times_count_layers_over_width():
    run = simulate(np.eye(4), layer(64), 32, paths=7, rng=rng())
    assert run.states.shape == (33, 7, 4, 4) and run.stopped is None
    np.testing.assert_array_equal(run.times, np.arange(33) / 64)
    np.testing.assert_array_equal(run.states, run.states.swapaxes(-1, -2))
    assert np.linalg.eigvalsh(run.states).min() > -1e-12
    np.testing.assert_array_equal(run.states[0], np.broadcast_to(np.eye(4), (7, 4, 4)))


def test_states_are_kept_as_often_as_asked():
    every = [
        simulate(np.eye(2), layer(9), 7, paths=3, rng=rng(8), save_every=k)
        for k in (1, 3)
    ]
    np.testing.assert_array_equal(every[1].times, np.array([0, 3, 6, 7]) / 9)
    np.testing.assert_array_equal(every[1].states, every[0].states[[0, 3, 6, 7]])


@pytest.mark.parametrize("width", [4, 40])
def test_factors_are_roots_of_the_states(width):
    kept = [
        simulate(np.eye(3), layer(width), 5, paths=3, rng=rng(8), factors=f).states
        for f in (False, True)
    ]
    np.testing.assert_allclose(
        kept[1] @ kept[1].swapaxes(-1, -2), kept[0], atol=1e-13, rtol=0
    )


def test_same_seed_same_paths():
    one, two = (
        simulate(np.eye(2), layer(9), 3, paths=3, rng=rng(8)).states for _ in range(2)
    )
    np.testing.assert_array_equal(one, two)


def test_cost_does_not_depend_on_the_width():
    peaks = []
    for width in (64, 10**9):
        tracemalloc.start()
        simulate(np.eye(4), layer(width, 10**9), 16, paths=8, rng=rng())
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0] < 2e6


@pytest.mark.parametrize("degrees", [3, 4, 200])
def test_bartlett_has_the_moments_of_wishart(degrees):
    factor = bartlett(20_000, 3, degrees, rng(6))
    assert (np.triu(factor, 1) == 0).all()
    draws = factor @ factor.swapaxes(-1, -2)
    noise = draws.std(axis=0) / np.sqrt(len(draws))
    assert (np.abs(draws.mean(axis=0) - degrees * np.eye(3)) < 5 * noise).all()
    # Var S_ii = 2k and Var S_ij = k.
    variance = degrees * (np.ones((3, 3)) + np.eye(3))
    np.testing.assert_allclose(draws.var(axis=0), variance, rtol=0.1)


@pytest.mark.parametrize(
    ("gram0", "message"),
    [
        ([[1.0, 2.0], [2.0, 1.0]], "gram0 must be positive semidefinite"),
        ([[1.0, 0.5], [0.2, 1.0]], "gram0 must be symmetric"),
        (np.eye(3), "gram0 has rank 3, more than the width 2"),
        (np.ones((2, 3)), "gram0 must be square"),
    ],
)
def test_gram_matrix_is_checked(gram0, message):
    with pytest.raises(ValueError, match=message):
        simulate(gram0, layer(2), 1, paths=1, rng=rng())


def test_tokens_must_have_the_width():
    with pytest.raises(ValueError, match="x0 must have 4 columns, the width, got 3"):
        dense_simulate(np.eye(3), layer(4), 1, paths=1, rng=rng())


def test_singular_gram_matrix_is_accepted():
    """Attention mixes the tokens, so that the rank may grow, at most to the width."""
    token = rng(7).standard_normal((4, 1))
    states = simulate(token @ token.T, layer(3), 9, paths=2, rng=rng()).states
    values = np.linalg.eigvalsh(states) / np.einsum("tpii->tp", states)[..., None]
    assert values.min() > -1e-12 and values[..., 0].max() < 1e-12
    assert values[0, 0, 2] < 1e-12 < values[-1, 0, 2]
