"""Laws of an attention layer, against one-dimensional integrals and real weights."""

import tracemalloc

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import expit, logsumexp, ndtr

from lib import hierarchical
from lib.attention import softmax
from lib.core.psd import canonical_columns
from lib.hierarchical import (
    AttentionLimit,
    FiniteAttention,
    ScaleMixture,
    dense,
    dense_experiment,
    experiment,
    experiment_variance,
    finite_width,
    orthonormal_constant,
    row_variance,
)

SCALES = (0.0, 0.1, 1.0, 5.0, 20.0)
PAIR = np.array([[1.5, 0.4], [0.4, 0.6]])
TRIPLE = np.array([[1.5, 0.4, 0.1], [0.4, 0.6, -0.2], [0.1, -0.2, 2.0]])
POINTS = np.array([-2.5, -1.0, -0.3, 0.0, 0.2, 0.7, 1.9])
LAWS = [
    AttentionLimit(TRIPLE, 2, 1.5),
    AttentionLimit(np.eye(9), 1, 2.0),
    FiniteAttention(TRIPLE, 5, 2, 1.5),
    FiniteAttention(TRIPLE, 50, 1, 1.5, head_width=2),
    FiniteAttention(PAIR, 40, 3, 4.0, output_matrix=False),
]


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


@pytest.mark.parametrize("gram", [np.eye(2), PAIR])
@pytest.mark.parametrize("sigma", SCALES)
def test_two_tokens_are_a_one_dimensional_integral(gram, sigma):
    for row in (0, 1):
        law = AttentionLimit(gram, 1, sigma)
        mean = pair_mean(gram, sigma, row, lambda u: u)
        square = pair_mean(gram, sigma, row, lambda u: u * u)
        assert law.variance(row) == pytest.approx(mean, rel=1e-11, abs=0)
        assert law.kurtosis_constant(row) == pytest.approx(
            3 * (square / mean**2 - 1), abs=1e-10
        )
        assert law.moment(4, row) == pytest.approx(3 * square, rel=1e-11, abs=0)
        for y in POINTS:
            density = pair_mean(
                gram, sigma, row, lambda u, y=y: stats.norm.pdf(y, 0, np.sqrt(u))
            )
            cdf = pair_mean(gram, sigma, row, lambda u, y=y: ndtr(y / np.sqrt(u)))
            assert law.density(y, row) == pytest.approx(density, abs=1e-11)
            assert law.cdf(y, row) == pytest.approx(cdf, abs=1e-11)


@pytest.mark.parametrize("sigma", SCALES[1:])
@pytest.mark.parametrize("m", [2, 3, 4, 8, 40])
def test_orthonormal_tokens_agree_with_their_laplace_integral(m, sigma):
    """Two methods that share nothing; the error estimate knows how far they differ."""
    law, exact = AttentionLimit(np.eye(m), 3, sigma), orthonormal_constant(m, sigma)
    error = 3 * law.error("excess_kurtosis")
    assert abs(law.kurtosis_constant() - exact) <= 4.5 * error + 1e-8
    wanted = {2: 1e-13, 3: 1e-6, 4: 1e-3, 8: 3e-3, 40: 0.02}[m]
    assert error <= wanted


def test_laplace_integral_agrees_with_quadrature_and_draws():
    for sigma in (0.3, 1.0, 2.0, 8.0, 50.0):
        mean = pair_mean(np.eye(2), sigma, 0, lambda u: u)
        square = pair_mean(np.eye(2), sigma, 0, lambda u: u * u)
        exact = 3 * (square / mean**2 - 1)
        assert orthonormal_constant(2, sigma) == pytest.approx(exact, abs=2e-13)
    s = softmax(1.3 * rng(1).standard_normal((400_000, 5)))
    u = ScaleMixture((s**2).sum(axis=-1))
    gap = u.excess_kurtosis() - orthonormal_constant(5, 1.3)
    assert abs(gap) <= 5 * u.error("excess_kurtosis") <= 0.01
    fine = AttentionLimit(np.eye(4), 1, 1.0, tol=1e-13, nodes=2**21)
    found = fine.kurtosis_constant()
    assert found == pytest.approx(orthonormal_constant(4, 1.0), abs=1e-12)
    assert found == pytest.approx(0.243318425220, abs=1e-11)
    assert orthonormal_constant(1, 3.0) == orthonormal_constant(7, 0.0) == 0


def test_kurtosis_constant_has_its_three_regimes():
    for m in (2, 5, 100):
        small = orthonormal_constant(m, 0.05) / (6 * 0.05**4 * (m - 1) / m**2)
        assert small == pytest.approx(1, abs=0.02)
    for sigma in (0.5, 1.0):
        a, b, c = np.exp(np.array([4, 2, 1]) * sigma**2)
        many = 2**22 * orthonormal_constant(2**22, sigma) / 3
        assert many == pytest.approx(a - 4 * b + 4 * c - 1, rel=1e-3, abs=0)
    # Freezing: c → θ/(1−θ) with θ = √(2 log m)/σ, slower than 1/log m.
    for theta, limit in ((1 / 2, 1.0), (1 / 3, 0.5)):
        logs = np.log(2.0) * np.array([10, 20, 40, 53])
        scales = np.sqrt(2 * logs) / theta
        sizes = np.round(np.exp(logs)).astype(int)
        pairs = zip(sizes, scales, strict=True)
        gaps = np.array([1 - orthonormal_constant(int(m), s) / limit for m, s in pairs])
        assert (np.diff(gaps) < 0).all() and (np.diff(gaps * logs) > 0).all()
        assert gaps[-1] < 0.3 * gaps[0]


@pytest.mark.parametrize("sigma", [0.1, 1.0, 5.0, 20.0])
def test_three_tokens_are_a_double_integral(sigma):
    """A plain sum over the two differences of scores, on a grid that resolves them."""
    differences = np.array([[1.0, 0.0, -1.0], [0.0, 1.0, -1.0]])
    covariance = differences @ TRIPLE @ differences.T * TRIPLE[2, 2] * sigma**2
    root = np.linalg.cholesky(covariance)
    step = min(0.2, 0.25 / sigma)
    g = np.arange(-7.5, 7.5, step)
    grid = np.stack(np.meshgrid(g, g, indexing="ij"), axis=-1).reshape(-1, 2)
    grid = grid[(grid**2).sum(axis=-1) < 56]
    scores = np.column_stack([grid @ root.T, np.zeros(len(grid))])
    s = np.exp(scores - logsumexp(scores, axis=-1, keepdims=True))
    u = ((s @ TRIPLE) * s).sum(axis=-1)
    weight = np.exp(-(grid**2).sum(axis=-1) / 2)
    weight /= weight.sum()
    mean, y = weight @ u, 0.4
    law = AttentionLimit(TRIPLE, 1, sigma)
    kurtosis = 3 * (weight @ (u - mean) ** 2) / mean**2
    assert law.variance(2) == pytest.approx(mean, abs=1e-6)
    assert law.kurtosis_constant(2) == pytest.approx(kurtosis, abs=1e-5)
    assert law.cdf(y, 2) == pytest.approx(weight @ ndtr(y / np.sqrt(u)), abs=1e-6)
    for name, at in (("variance", None), ("excess_kurtosis", None), ("cdf", y)):
        assert law.error(name, at, 2) < 1e-5


def test_error_of_coarse_grids_is_known_for_even_functions():
    """Opposite tokens make u even: no two grids may be mirror images of each other."""
    tokens = np.array([[1.0, 0.0], [-1.0, 0.0], [0.3, 1.0], [-0.3, -1.0]])
    exact, coarse = (
        AttentionLimit(tokens @ tokens.T, 1, 3.0, tol=accuracy, nodes=2**18)
        for accuracy in (1e-9, 1e-3)
    )
    for at in (0.3, 1.5):
        gap, error = abs(coarse.cdf(at) - exact.cdf(at)), coarse.error("cdf", at)
        assert 1e-8 < gap <= 4 * error < 0.01


@pytest.mark.parametrize("width", [None, 5, 40])
def test_grids_and_quasi_monte_carlo_agree(width, monkeypatch):
    def law():
        if width is None:
            return AttentionLimit(TRIPLE, 2, 1.5)
        return FiniteAttention(TRIPLE, width, 2, 1.5)

    grid = law()
    values = grid.variance(), grid.excess_kurtosis(), grid.cdf(POINTS)
    monkeypatch.setattr(row_variance, "normal_grids", lambda *arguments: [])
    quasi = law()
    found = quasi.variance(), quasi.excess_kurtosis(), quasi.cdf(POINTS)
    errors = [quasi.error(k) for k in ("variance", "excess_kurtosis")]
    errors.append(quasi.error("cdf", POINTS))
    for one, two, error in zip(values, found, errors, strict=True):
        assert (np.abs(one - two) <= 5 * error + 2e-6).all()
        assert 1e-9 < np.max(error) < 3e-4


@pytest.mark.parametrize("heads", [1, 2, 3, 16, 100])
def test_heads_are_powers_of_the_characteristic_function(heads):
    """φ(t) = L(t²/2H)^H, and its Fourier integral is the density."""
    one, law = AttentionLimit(PAIR, 1, 2.0), AttentionLimit(PAIR, heads, 2.0)
    t = 0.05 * np.arange(-1500, 1501)
    power = one.characteristic(t / np.sqrt(heads)) ** heads
    np.testing.assert_allclose(law.characteristic(t), power, atol=1e-13, rtol=0)
    wave = np.cos(np.multiply.outer(POINTS, t)) @ power * 0.05 / (2 * np.pi)
    np.testing.assert_allclose(law.density(POINTS), wave, atol=1e-12, rtol=0)
    assert law.excess_kurtosis() * heads == pytest.approx(one.excess_kurtosis(), 1e-12)
    assert law.kurtosis_constant() == pytest.approx(one.kurtosis_constant(), 1e-12)
    assert law.variance() == pytest.approx(one.variance(), 1e-13)


@pytest.mark.parametrize("law", LAWS)
def test_density_cdf_and_moments_belong_together(law):
    y = np.linspace(-30, 30, 6001)
    density, cdf = law.density(y, 1), law.cdf(y, 1)
    np.testing.assert_allclose(density, law.density(-y, 1), rtol=1e-12)
    np.testing.assert_allclose(cdf + law.cdf(-y, 1), 1, atol=1e-13, rtol=0)
    rising = integrate.cumulative_simpson(density, x=y, initial=0)
    np.testing.assert_allclose(rising[2000:4001], cdf[2000:4001], atol=3e-5, rtol=0)
    second = integrate.simpson(y**2 * density, x=y)
    fourth = integrate.simpson(y**4 * density, x=y)
    assert second == pytest.approx(law.variance(1), rel=1e-4, abs=0)
    assert fourth == pytest.approx(law.moment(4, 1), rel=1e-3, abs=0)
    kurtosis = law.moment(4, 1) / law.moment(2, 1) ** 2 - 3
    assert law.excess_kurtosis(1) == pytest.approx(kurtosis, rel=1e-9, abs=0)
    assert law.moment(0, 1) == pytest.approx(1) and law.moment(3, 1) == 0


@pytest.mark.parametrize("heads", [1, 5])
@pytest.mark.parametrize(
    ("gram", "sigma", "row", "variance"),
    [
        ([[2.5]], 3.0, 0, 2.5),
        (0.7 * np.ones((4, 4)), 3.0, 2, 0.7),
        (np.eye(6), 0.0, 1, 1 / 6),
        (np.diag([0.0, 1.0, 1.0]), 2.0, 0, 2 / 9),
        (1e-80 * np.ones((3, 3)), 1e80, 0, 1e-80),
    ],
)
def test_constant_mixing_variable_is_exactly_gaussian(
    gram, sigma, row, variance, heads
):
    law = AttentionLimit(gram, heads, sigma)
    assert law.excess_kurtosis(row) == pytest.approx(0, abs=1e-15)
    assert law.variance(row) == pytest.approx(variance, rel=1e-14, abs=0)
    sd = np.sqrt(variance)
    expected = stats.norm.pdf(POINTS * sd, scale=sd)
    np.testing.assert_allclose(law.density(POINTS * sd, row), expected, rtol=1e-12)
    assert law.error("density", POINTS * sd, row).max() <= 1e-13 / sd


def test_identical_tokens_count_as_one_with_more_weight():
    """Singular Gram: (x, x, z) mixes as two tokens whose first score has log 2 more."""
    gram = PAIR[np.ix_([0, 0, 1], [0, 0, 1])]
    for sigma in (0.5, 3.0, 20.0):
        spread = sigma * np.sqrt(PAIR[0, 0] * (np.array([1, -1]) @ PAIR @ [1, -1]))
        g = np.arange(-9, 9, 1e-3)
        s = expit(spread * g + np.log(2))
        u = s**2 * 1.5 + 2 * s * (1 - s) * 0.4 + (1 - s) ** 2 * 0.6
        weight = np.exp(-(g**2) / 2)
        mean = np.average(u, weights=weight)
        law = AttentionLimit(gram, 1, sigma)
        assert law.variance() == pytest.approx(mean, rel=1e-11, abs=0)
        expected = 3 * np.average((u - mean) ** 2, weights=weight) / mean**2
        assert law.excess_kurtosis() == pytest.approx(expected, rel=1e-9, abs=0)


def test_tokens_on_a_line_around_zero_have_an_infinite_density():
    line = np.array([1.0, -1.0, 0.5])
    law = AttentionLimit(np.outer(line, line), 1, 1.0)
    opposite = AttentionLimit([[1.0, -1.0], [-1.0, 1.0]])
    with pytest.raises(ValueError, match="y is 0, where the density is infinite"):
        law.density([1.0, 0.0])
    with pytest.raises(ValueError, match="at is 0, where the density is infinite"):
        opposite.error("density", 0.0)
    assert law.density(0.5) > 0 and law.cdf(0.0) == pytest.approx(0.5)
    # Two heads, or two directions, and it is finite.
    for pair in (line, line[:2]):
        assert AttentionLimit(np.outer(pair, pair), 2).density(0.0) < 5
    assert AttentionLimit(np.diag([1.0, 0.0]), 1).density(0.0) < 5
    # The value at 0.01 by a fine sum over the one direction.
    g = np.arange(-9, 9, 1e-5) + 0.5e-5
    u = (softmax(np.multiply.outer(g, line)) @ line) ** 2
    weight = np.exp(-(g**2) / 2)
    fine = np.average(stats.norm.pdf(0.01, 0, np.sqrt(u)), weights=weight)
    error = law.error("density", 0.01)
    assert abs(law.density(0.01) - fine) <= 4 * error + 1e-6


def test_output_that_is_always_zero():
    law = AttentionLimit(np.zeros((2, 2)))
    assert law.variance() == 0 and law.error("variance") == 0
    np.testing.assert_array_equal(law.cdf([-1.0, 0.0, 1.0]), [0, 1, 1])
    assert (law.sample(3, rng=rng()) == 0).all()
    for call in (law.excess_kurtosis, lambda: law.density(0.0)):
        with pytest.raises(ValueError, match="0"):
            call()


@pytest.mark.parametrize("factor", [1e-90, 1e-3, 7.0, 1e80])
def test_scaling_the_tokens_scales_the_output(factor):
    law = AttentionLimit(TRIPLE, 2, 1.3)
    other = AttentionLimit(factor * TRIPLE, 2, 1.3 / factor)
    root = np.sqrt(factor)
    np.testing.assert_allclose(other.cdf(root * POINTS), law.cdf(POINTS), rtol=1e-9)
    scaled = root * other.density(root * POINTS, 1)
    np.testing.assert_allclose(scaled, law.density(POINTS, 1), rtol=1e-9)
    assert other.variance(2) == pytest.approx(factor * law.variance(2), rel=1e-9, abs=0)


def test_permuting_the_tokens_permutes_the_rows():
    order = [2, 0, 1]
    law = AttentionLimit(TRIPLE, 1, 2.0)
    other = AttentionLimit(TRIPLE[np.ix_(order, order)], 1, 2.0)
    for place, row in enumerate(order):
        np.testing.assert_allclose(
            other.cdf(POINTS, place), law.cdf(POINTS, row), atol=1e-7, rtol=0
        )


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("row", [0, 1])
def test_draws_have_the_law_of_the_quadrature(law, row):
    size = 40_000
    y = law.sample(size, rng=rng(1))
    assert y.shape == (size, len(law.gram))
    found = stats.ks_1samp(y[:, row], lambda y: law.cdf(y, row))
    assert found.statistic < critical(20, size)
    variances = law.conditional_variance(size, row, rng=rng(2))
    mixed = ScaleMixture(variances)
    gap = np.abs(mixed.cdf(POINTS) - law.cdf(POINTS, row))
    assert (gap <= 5.5 * mixed.error("cdf", POINTS) + 1e-5).all()
    joint = law.conditional_covariance(size, rng=rng(3))
    found = stats.ks_2samp(joint[:, row, row], variances)
    assert found.statistic < critical(20, size, size)
    products = y[:, :, None] * y[:, None, :] - joint
    noise = products.std(axis=0) / np.sqrt(size)
    assert (np.abs(products.mean(axis=0)) < 5 * noise).all()


def test_law_would_notice_a_missing_factor_and_a_wrong_scale():
    size, law = 40_000, LAWS[2]
    limit = AttentionLimit(TRIPLE, 2, 1.5)
    scaled = AttentionLimit(TRIPLE, 2, 1.55)
    without = FiniteAttention(TRIPLE, 5, 2, 1.5, output_matrix=False)
    y = law.sample(size, rng=rng(1))[:, 0]
    assert stats.ks_1samp(y, limit.cdf).statistic > critical(20, size)
    assert stats.ks_1samp(y, without.cdf).statistic > critical(20, size)
    mixed = ScaleMixture(limit.conditional_variance(10 * size, rng=rng(2)))
    gap = np.abs(mixed.cdf(POINTS) - scaled.cdf(POINTS))
    assert (gap > 5.5 * mixed.error("cdf", POINTS)).any()


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


def test_fixed_inputs_see_the_width_of_a_head_only():
    wide = FiniteAttention(TRIPLE, 1000, 2, 1.5, head_width=5)
    np.testing.assert_array_equal(wide.cdf(POINTS), LAWS[2].cdf(POINTS))


@pytest.mark.parametrize("heads", [1, 2, 5])
@pytest.mark.parametrize(("gram", "sigma"), [(np.eye(2), 1.0), (PAIR, 3.0)])
def test_width_correction_is_the_limit_of_the_difference(gram, sigma, heads):
    limit = AttentionLimit(gram, heads, sigma)
    gaps = []
    for n in (200, 2000):
        law = FiniteAttention(gram, n, heads, sigma)
        difference = n * (law.cdf(POINTS, 1) - limit.cdf(POINTS, 1))
        gaps.append(np.abs(difference - limit.width_correction(POINTS, 1)).max())
    size = np.abs(limit.width_correction(POINTS, 1)).max()
    assert gaps[1] < 2e-3 * size and gaps[0] / gaps[1] == pytest.approx(
        10, rel=0.1, abs=0
    )


def test_width_correction_of_one_token_is_a_polynomial():
    """v = χ²_n/n only: ∂²Φ(y/√v)/∂v² = (3y − y³) φ(y)/4."""
    y = np.linspace(-4, 4, 9)
    expected = (3 * y - y**3) / 4 * stats.norm.pdf(y)
    found = AttentionLimit([[1.0]], 1, 2.0).width_correction(y)
    np.testing.assert_allclose(found, expected, atol=1e-15, rtol=0)
    half = AttentionLimit([[1.0]], 2, 2.0).width_correction(y)
    np.testing.assert_allclose(half, expected / 2, atol=1e-15, rtol=0)


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


def test_mixture_over_exponential_variances_is_laplace():
    """v ~ Exp with mean 2b² gives the Laplace law of scale b."""
    mixed = ScaleMixture(2 * rng(6).exponential(size=200_000))
    laplace = stats.laplace(scale=1.0)
    for name, exact in (("cdf", laplace.cdf), ("density", laplace.pdf)):
        gap = getattr(mixed, name)(POINTS) - exact(POINTS)
        error = mixed.error(name, POINTS)
        assert (np.abs(gap) <= 5.5 * error + 1e-9).all() and error.max() < 3e-3
    t = np.array([0.0, 0.5, 3.0])
    gap = mixed.characteristic(t) - 1 / (1 + t**2)
    assert (np.abs(gap) <= 5 * mixed.error("characteristic", t) + 1e-12).all()
    assert abs(mixed.variance() - 2) < 5 * mixed.error("variance")
    assert abs(mixed.moment(6) - 720) < 6 * mixed.error("moment", 6)
    assert abs(mixed.excess_kurtosis() - 3) < 6 * mixed.error("excess_kurtosis")


def test_mixture_of_given_variances_is_their_mean():
    v = np.array([0.0, 1.0, 1.0, 4.0])
    mixed = ScaleMixture(v)
    np.testing.assert_allclose(
        mixed.cdf([-1.0, 0.0, 2.0]),
        [(2 * ndtr(-1) + ndtr(-0.5)) / 4, 0.625, (1 + 2 * ndtr(2) + ndtr(1)) / 4],
        rtol=1e-13,
    )
    assert mixed.variance() == pytest.approx(1.5, rel=1e-13, abs=0)
    assert mixed.excess_kurtosis() == pytest.approx(3)
    with pytest.raises(ValueError, match="v is 0 with positive probability"):
        mixed.density(0.0)
    np.testing.assert_array_equal(ScaleMixture([2.0] * 40).variance(), 2.0)


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


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: AttentionLimit([[1.0, 2.0], [2.0, 1.0]]),
            ValueError,
            "gram must be p",
        ),
        (lambda: AttentionLimit(np.ones((2, 3))), ValueError, "gram must be square"),
        (lambda: AttentionLimit(1e200 * np.eye(2)), ValueError, "gram must not exceed"),
        (lambda: AttentionLimit(np.eye(2), 0), ValueError, "heads .* got 0"),
        (lambda: AttentionLimit(np.eye(2), 1, -1.0), ValueError, "score_scale .* -1.0"),
        (lambda: AttentionLimit(np.eye(2)).cdf(0.0, 2), IndexError, "row .* got 2"),
        (lambda: AttentionLimit(np.eye(2)).cdf(0.0, -1), IndexError, "row .* got -1"),
        (lambda: AttentionLimit(np.eye(2)).variance(0.5), ValueError, "row .* 0.5"),
        (lambda: AttentionLimit(np.eye(2)).sample(0, rng=rng()), ValueError, "size"),
        (lambda: AttentionLimit(np.eye(2)).error("mode"), ValueError, "'mode'"),
        (lambda: AttentionLimit(np.eye(2)).error("cdf"), ValueError, "at is None"),
        (lambda: FiniteAttention(np.eye(3), 2), ValueError, "rank 3, .* width 2"),
        (lambda: FiniteAttention(np.eye(3), 0), ValueError, "width .* got 0"),
        (
            lambda: finite_width(np.eye(2), 3, 1, 1, coordinates=4, rng=rng()),
            ValueError,
            "coordinates .* got 4",
        ),
        (lambda: finite_width(np.eye(2), 3, 1, -5, rng=rng()), ValueError, "size"),
        (
            lambda: FiniteAttention([[1.0]], 1).density(0.0),
            ValueError,
            "single head of width 1",
        ),
        (lambda: ScaleMixture([1.0, -1.0]), ValueError, "variances .* -1"),
        (lambda: ScaleMixture([1.0]), ValueError, r"variances .* \(1,\)"),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_the_facade_names_what_it_has():
    assert all(hasattr(hierarchical, name) for name in hierarchical.__all__)


def test_roots_do_not_depend_on_the_basis_of_an_eigenspace():
    """Another basis of equal eigenvalues, as another processor finds it."""
    turn = np.linalg.qr(rng().normal(size=(5, 5)))[0]
    columns = np.hstack([2 * np.eye(8)[:, :5] @ turn, np.eye(8)[:, 5:] * 0.5])
    settled = canonical_columns(columns)
    expected = np.hstack([2 * np.eye(8)[:, :5], np.eye(8)[:, 5:] * 0.5])
    assert np.abs(settled - expected).max() < 1e-14
    low = rng().normal(size=(6, 3))
    assert (
        np.abs(canonical_columns(low) @ canonical_columns(low).T - low @ low.T).max()
        < 1e-14
    )
