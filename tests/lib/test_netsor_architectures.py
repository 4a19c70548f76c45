"""The architectures whose limit is Gaussian, and the one whose limit is not."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from lib.hierarchical import AttentionLimit, FiniteAttention
from lib.netsor import architectures

TOKENS = np.array([[1.0, 0.3, 0.0], [0.3, 1.0, -0.2], [0.0, -0.2, 1.5]])
GAUSSIAN = {
    "mlp": architectures.mlp(TOKENS),
    "rnn": architectures.rnn(TOKENS),
    "cnn": architectures.cnn(TOKENS),
    "lstm": architectures.lstm(TOKENS),
}


def rng(key=0):
    return np.random.default_rng(key)


def critical(tests, *sizes):
    """Critical value of the Kolmogorov-Smirnov distance at 1e-6 over some tests."""
    size = 1 / sum(1 / size for size in sizes)
    return np.sqrt(-np.log(0.5e-6 / tests) / (2 * size))


@pytest.mark.parametrize("name", GAUSSIAN)
def test_architectures_without_scalars_are_gaussian(name):
    program, outputs = GAUSSIAN[name]
    assert program.check() == [] and not program.scalars
    size = 400_000
    draws = program.limit(outputs, size=size, rng=rng(1))
    assert draws.shape == (size, 3)
    for column, out in zip(draws.T, outputs, strict=True):
        sd = np.sqrt(program.kernel(out, out))
        comparison = stats.ks_1samp(column / sd, stats.norm.cdf)
        assert comparison.statistic < critical(12, size)
        assert abs(stats.kurtosis(column)) < 5 * np.sqrt(24 / size)


@pytest.mark.parametrize("name", [*GAUSSIAN, "attention"])
def test_networks_of_width_100_are_near_the_limit(name):
    made = GAUSSIAN | {"attention": architectures.attention(TOKENS, 2, 1.5)}
    program, outputs = made[name]
    size = 1000
    finite = program.finite(100, outputs[1:2], size=size, rng=rng(2))[:, 0]
    limit = program.limit(outputs[1:2], size=100_000, rng=rng(3))[:, 0]
    assert stats.ks_2samp(finite, limit).statistic < critical(5, size, 100_000)


@pytest.mark.parametrize(("heads", "sigma"), [(1, 1.0), (1, 3.0), (3, 2.0)])
def test_attention_has_the_mixture_as_its_limit(heads, sigma):
    program, outputs = architectures.attention(TOKENS, heads, sigma)
    assert program.check() == [] and len(program.scalars) == 9 * heads
    size = 200_000
    draws = program.limit(outputs, size=size, rng=rng(4))
    law = AttentionLimit(TOKENS, heads, sigma)
    for row in range(3):
        comparison = stats.ks_1samp(draws[:, row], lambda y, row=row: law.cdf(y, row))
        assert comparison.statistic < critical(9, size)
    # Rows are jointly Gaussian given the same scores.
    direct = law.sample(size, rng=rng(5))
    product = stats.ks_2samp(draws[:, 0] * draws[:, 2], direct[:, 0] * direct[:, 2])
    assert product.statistic < critical(9, size, size)


def test_attention_is_not_gaussian():
    program, outputs = architectures.attention(np.eye(3), 1, 2.0)
    size = 400_000
    y = program.limit(outputs[:1], size=size, rng=rng(6))[:, 0]
    assert stats.kurtosis(y) == pytest.approx(0.262, abs=6 * np.sqrt(24 / size))


def test_finite_attention_program_has_the_exact_law():
    """Real matrices in the program against quadrature, for random inputs of width 12.

    The program draws its inputs too; so the exact law is one for each Gram matrix.
    """
    program, outputs = architectures.attention([[1.0]], 2, 1.5)
    size, width = 3000, 12
    y = program.finite(width, outputs, size=size, rng=rng(7))[:, 0]
    grams = rng(8).chisquare(width, 100) / width
    laws = [FiniteAttention([[g]], width, 2, 1.5) for g in grams]
    comparison = stats.ks_1samp(
        y, lambda y: np.mean([law.cdf(y) for law in laws], axis=0)
    )
    assert comparison.statistic < 2 * critical(1, size)


def test_tied_attention_is_refused_for_each_score():
    program, outputs = architectures.attention(np.eye(2), tied=True)
    assert len(program.check()) == 4
    with pytest.raises(ValueError, match="both factors use the matrix W1"):
        program.limit(outputs, size=1, rng=rng())
    # The finite network exists; its attention tends to the identity.
    y = program.finite(256, outputs, size=500, rng=rng(9))
    assert y.var() == pytest.approx(1, abs=0.2)


def test_perceptron_keeps_the_variance():
    program, outputs = GAUSSIAN["mlp"]
    variances = [program.kernel(out, out) for out in outputs]
    np.testing.assert_allclose(variances, np.diag(TOKENS), rtol=1e-3)


def test_recurrent_kernel_by_hand():
    """Two steps with tied weights: Var and Cov of the readouts by plain sampling."""
    cov = np.array([[1.0, 0.6], [0.6, 1.0]])
    program, outputs = architectures.rnn(cov)
    size = 400_000
    u = rng(10).standard_normal((size, 2)) @ np.linalg.cholesky(cov).T
    first = np.tanh(u[:, 0])
    state = np.sqrt(np.mean(first**2)) * rng(11).standard_normal(size)
    second = np.tanh(u[:, 1] + state)
    expected = np.cov([first, second])
    covariance = [[program.kernel(a, b) for a in outputs] for b in outputs]
    np.testing.assert_allclose(covariance, expected, atol=4e-3, rtol=0)


def test_lstm_first_state_by_hand():
    program, outputs = architectures.lstm([[1.0]])
    gates = rng(12).standard_normal((3, 1_000_000))
    cell = expit(gates[0]) * np.tanh(gates[1])
    expected = np.mean((expit(gates[2]) * np.tanh(cell)) ** 2)
    assert program.kernel(*outputs, *outputs) == pytest.approx(
        expected, rel=5e-3, abs=0
    )


def test_convolution_pads_with_nothing():
    """Variances of the first layer: two thirds at the ends, where a neighbor lacks."""
    program, outputs = architectures.cnn(np.eye(4), depth=1)
    variances = [program.kernel(out, out) for out in outputs]
    np.testing.assert_allclose(variances, [2 / 3, 1, 1, 2 / 3], rtol=1e-4)
    assert program.kernel(outputs[0], outputs[1]) == pytest.approx(0, abs=1e-4)
    # Shared filters: equal inputs give equal outputs.
    program, outputs = architectures.cnn(np.ones((4, 4)), depth=1)
    assert program.kernel(outputs[1], outputs[2]) == pytest.approx(1, rel=1e-4, abs=0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: architectures.mlp(np.eye(2), 0), "depth .* got 0"),
        (lambda: architectures.cnn(-np.eye(2)), "cov must be positive"),
        (lambda: architectures.attention(np.eye(2), 0), "heads .* got 0"),
        (lambda: architectures.attention(np.eye(2), 1, 0.0), "score_scale .* got 0.0"),
        (lambda: architectures.attention(np.eye(2), bound=-1.0), "bound .* got -1.0"),
        (lambda: architectures.attention(np.eye(2), tied=1), "tied must be True or"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
