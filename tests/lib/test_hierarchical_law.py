"""Laws of an attention layer, against one-dimensional integrals and real weights."""

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import expit, logsumexp, ndtr

from lib import hierarchical
from lib.attention import softmax
from lib.hierarchical import (
    AttentionLimit,
    FiniteAttention,
    ScaleMixture,
    finite_width,
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
    estimates = quasi.variance(), quasi.excess_kurtosis(), quasi.cdf(POINTS)
    errors = [quasi.error(k) for k in ("variance", "excess_kurtosis")]
    errors.append(quasi.error("cdf", POINTS))
    for one, two, error in zip(values, estimates, errors, strict=True):
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
    comparison = stats.ks_1samp(y[:, row], lambda y: law.cdf(y, row))
    assert comparison.statistic < critical(20, size)
    variances = law.conditional_variance(size, row, rng=rng(2))
    mixed = ScaleMixture(variances)
    gap = np.abs(mixed.cdf(POINTS) - law.cdf(POINTS, row))
    assert (gap <= 5.5 * mixed.error("cdf", POINTS) + 1e-5).all()
    joint = law.conditional_covariance(size, rng=rng(3))
    comparison = stats.ks_2samp(joint[:, row, row], variances)
    assert comparison.statistic < critical(20, size, size)
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
    correction = AttentionLimit([[1.0]], 1, 2.0).width_correction(y)
    np.testing.assert_allclose(correction, expected, atol=1e-15, rtol=0)
    half = AttentionLimit([[1.0]], 2, 2.0).width_correction(y)
    np.testing.assert_allclose(half, expected / 2, atol=1e-15, rtol=0)


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
