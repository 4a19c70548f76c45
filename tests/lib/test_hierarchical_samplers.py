"""Samplers of an attention layer, against real weights."""

import tracemalloc

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import expit, ndtr

from lib.hierarchical import (
    AttentionLimit,
    FiniteAttention,
    ScaleMixture,
    dense,
    dense_experiment,
    experiment,
    experiment_variance,
    finite_width,
)

TRIPLE = np.array([[1.5, 0.4, 0.1], [0.4, 0.6, -0.2], [0.1, -0.2, 2.0]])

POINTS = np.array([-2.5, -1.0, -0.3, 0.0, 0.2, 0.7, 1.9])


def rng(key=0):
    return np.random.default_rng(key)


def critical(tests, *sizes):
    """Critical value of the Kolmogorov-Smirnov distance at 1e-6 over some tests."""
    size = 1 / sum(1 / size for size in sizes)
    return np.sqrt(-np.log(0.5e-6 / tests) / (2 * size))


def pair_mean(gram, sigma, row, of):
    """E of a function of u for two tokens: one sigmoid of one normal number."""
    spread = sigma * np.sqrt(gram[row, row] * (np.array([1, -1]) @ gram @ [1, -1]))

    def integrand(g):
        s = expit(spread * g)
        u = s**2 * gram[0, 0] + 2 * s * (1 - s) * gram[0, 1] + (1 - s) ** 2 * gram[1, 1]
        return of(u) * np.exp(-(g**2) / 2) / np.sqrt(2 * np.pi)

    edges = [-12, -1, -0.1, -0.01, 0, 0.01, 0.1, 1, 12]
    pieces = zip(edges[:-1], edges[1:], strict=True)
    parts = [
        integrate.quad(integrand, *piece, epsabs=1e-14, limit=200)[0]
        for piece in pieces
    ]
    return sum(parts)


def functionals(y):
    """Numbers of a block (size, m, coordinates) that a wrong joint law would change."""
    first, second = y[:, 0], y[:, -1]
    yield first[:, 0]
    yield second[:, -1]
    yield first[:, 0] * second[:, 0]
    yield first[:, 0] * first[:, 1]
    yield first[:, 0] ** 2 + first[:, 1] ** 2
    yield np.linalg.det(y[:, :2, :2])


# Low-rank heads of fewer columns than tokens, tokens that are linearly dependent, and a
# layer without output matrix.
@pytest.mark.parametrize(
    ("m", "n", "options"),
    [
        (3, 6, {}),
        (2, 2, {}),
        (3, 8, {"head_width": 2}),
        (2, 7, {"head_width": 4}),
        (4, 3, {"score_scale": 2.0}),
        (3, 5, {"output_matrix": False}),
    ],
)
def test_block_has_the_law_of_real_weights(m, n, options):
    x, size = rng(m + n).standard_normal((m, n)), 20_000
    fast = finite_width(x @ x.T / n, n, 2, size, coordinates=2, rng=rng(1), **options)
    slow = dense(x, 2, size, rng=rng(2), **options)
    assert fast.shape == (size, m, 2) and slow.shape == (
        (size, m, n) if options.get("output_matrix", True) else (size, m, n)
    )
    for one, two in zip(functionals(fast), functionals(slow), strict=True):
        assert stats.ks_2samp(one, two).statistic < critical(36, size, size)


def test_block_would_notice_independent_coordinates():
    """The limit law, or coordinates of different networks, are told apart."""
    x, size = rng(9).standard_normal((3, 6)), 80_000
    slow = [*functionals(dense(x, 2, size, rng=rng(2)))]
    limit = AttentionLimit(x @ x.T / 6, 2).sample(size, coordinates=2, rng=rng(1))
    mixed = finite_width(x @ x.T / 6, 6, 2, size, coordinates=2, rng=rng(3))
    mixed[:, :, 1] = mixed[::-1, :, 1]
    for wrong in (limit, mixed):
        distances = [
            stats.ks_2samp(one, two).statistic
            for one, two in zip(functionals(wrong), slow, strict=True)
        ]
        assert max(distances) > critical(36, size, size)


@pytest.mark.parametrize(
    ("m", "n", "options"), [(3, 5, {}), (2, 6, {"head_width": 3}), (4, 3, {})]
)
def test_experiment_has_the_law_of_real_weights(m, n, options):
    size = 20_000
    fast = experiment(m, n, 2, size, coordinates=2, rng=rng(1), **options)
    slow = dense_experiment(m, n, 2, size, rng=rng(2), **options)
    assert slow.shape == (size, m, n)
    for one, two in zip(functionals(fast), functionals(slow), strict=True):
        assert stats.ks_2samp(one, two).statistic < critical(18, size, size)
    row = ScaleMixture(experiment_variance(m, n, 2, size, rng=rng(3), **options))
    assert stats.ks_1samp(slow[:, 0, 0], row.cdf).statistic < 2 * critical(18, size)
    single = experiment(m, n, 2, 10, rng=rng(1), **options)
    assert single.shape == (10, m)


def test_experiment_tends_to_orthonormal_tokens():
    limit = AttentionLimit(np.eye(4), 2)
    gaps = []
    for n in (8, 64, 512):
        law = ScaleMixture(experiment_variance(4, n, 2, 100_000, rng=rng(n)))
        gaps.append(np.abs(law.cdf(POINTS) - limit.cdf(POINTS)).max() * n)
    assert min(gaps) > 0.15 and max(gaps) < 0.6


@pytest.mark.parametrize("n", [1, 2, 3, 12, 31, 32, 64, 10**4])
def test_one_token_has_the_kurtosis_of_chi_square(n):
    """v = V χ²_n/n: excess kurtosis 3·2/(nH), and the density of the product law."""
    for heads in (1, 4):
        law = FiniteAttention([[2.0]], n, heads, 3.0)
        assert law.excess_kurtosis() == pytest.approx(6 / (n * heads), rel=1e-8, abs=0)
        assert law.variance() == pytest.approx(2.0, rel=1e-10, abs=0)
        v = stats.gamma(n * heads / 2, scale=2 * 2.0 / (n * heads))
        for y in (0.3, 2.0):
            exact = v.expect(lambda v, y=y: ndtr(y / np.sqrt(v)), epsabs=1e-12)
            assert law.cdf(y) == pytest.approx(exact, abs=1e-8)


def test_finite_kurtosis_has_its_factor():
    """κ_n = (3/H)[(1 + 2/n) E u²/(E u)² − 1]; without output matrix the 2/n is gone."""
    with_w = FiniteAttention(np.eye(2), 16, 2, 1.0)
    without = FiniteAttention(np.eye(2), 16, 2, 1.0, output_matrix=False)
    ratio = without.excess_kurtosis() * 2 / 3 + 1
    expected = 3 / 2 * ((1 + 2 / 16) * ratio - 1)
    assert with_w.excess_kurtosis() == pytest.approx(expected, rel=1e-8, abs=0)
    # The ratio itself by a sum over the norm of the query.
    t, weight = np.polynomial.legendre.leggauss(400)
    t, weight = 3 * (t + 1), weight * stats.gamma.pdf(3 * (t + 1), 8, scale=1 / 8)
    first, second = (
        np.array([pair_mean(np.eye(2), np.sqrt(x), 0, lambda u, k=k: u**k) for x in t])
        for k in (1, 2)
    )
    total = weight.sum()
    exact = (weight @ second) * total / (weight @ first) ** 2
    assert ratio == pytest.approx(exact, rel=1e-8, abs=0)


def test_coordinates_of_a_network_are_dependent_but_not_correlated():
    """Corr(y², y'²) = Var(v)/(3 E v² − (E v)²) for two coordinates of a row."""
    law, size = AttentionLimit(np.eye(4), 1, 2.0), 200_000
    y = law.sample(size, coordinates=2, rng=rng(4))[:, 0]
    mean, square = law.variance(), law.moment(4) / 3
    expected = (square - mean**2) / (3 * square - mean**2)
    assert np.corrcoef(y.T**2)[0, 1] == pytest.approx(expected, abs=0.015)
    assert abs(np.corrcoef(y.T)[0, 1]) < 5 / np.sqrt(size)
    many = law.sample(300, coordinates=4000, rng=rng(5))[:, 0]
    within = stats.kurtosis(many, axis=1)
    assert abs(within.mean()) < 5 * within.std() / np.sqrt(300) + 2e-3
    assert expected > 0.04


def test_cost_does_not_depend_on_the_width():
    peaks = []
    for width in (64, 10**9):
        tracemalloc.start()
        finite_width(np.eye(4), width, 2, 2000, rng=rng())
        experiment_variance(4, width, 2, 2000, rng=rng())
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0] < 2e7


def test_same_seed_same_draws_and_input_left_alone():
    gram = TRIPLE.copy()
    law = AttentionLimit(gram, 2)
    np.testing.assert_array_equal(law.sample(5, rng=rng(7)), law.sample(5, rng=rng(7)))
    gram[:] = 0
    assert law.gram[0, 0] == 1.5 and law.variance() > 0
    with pytest.raises(ValueError, match="read-only"):
        law.gram[0, 0] = 2
