"""Each layer has one law in its three forms: Gram matrices, tokens, dense weights."""

import numpy as np
import pytest
from scipy.stats import ks_2samp

from lib.gram import dense_simulate, simulate, simulate_tokens
from lib.gram.layers import (
    LinearLayer,
    MultiHeadLayer,
    PlainLayer,
    ReluLayer,
    ResidualReluLayer,
    RMSNorm,
    ShapedLayer,
)
from lib.hierarchical import AttentionLimit, dense

PATHS = 4000
# Widths that are drawn directly, the edge n = 2m, and some above, for three tokens.
CASES = {
    "linear": LinearLayer(12),
    "linear, skip": LinearLayer(6, 0.8, 0.6),
    "linear, narrow": LinearLayer(2, 0.8, 0.6),
    "plain": PlainLayer(12, 4, 0.6, 0.8),
    "plain, no skip": PlainLayer(9, 4, 0.0, 1.0, tau0=2.0),
    "heads with output": PlainLayer(12, 8, 0.8, 0.6, heads=2, value_width=5),
    "heads with output, narrow": PlainLayer(4, 3, 0.6, 0.8, 0.3, 3, value_width=2),
    "a head with output, thin": PlainLayer(12, 8, 0.8, 0.6, value_width=1),
    "shaped": ShapedLayer(12, 8, 0.8, 0.6, 0.2),
    "shaped, three heads": ShapedLayer(12, 2, 0.0, 1.0, 0.1, heads=3),
    "shaped, narrow heads": ShapedLayer(4, 2, 0.8, 0.6, 0.5, heads=2),
    "shaped, normalized": ShapedLayer(12, 2, 0.8, 0.6, 0.5, pre_norm=True),
    "concatenated": MultiHeadLayer(12, 3, 0.8, 0.6, 0.5, heads=2),
    "concatenated, thin": MultiHeadLayer(12, 3, 0.0, 1.0, 0.1, heads=6),
    "concatenated, narrow": MultiHeadLayer(4, 3, 0.8, 0.6, 0.5, heads=2),
    "ReLU": ReluLayer(12),
    "ReLU, narrow": ReluLayer(4, (0.0, -1.0)),
    "perceptron": ResidualReluLayer(12, 0.8, 0.6),
    "perceptron, narrow": ResidualReluLayer(3, 0.8, 0.6, (1.0, -1.5)),
    "block": (ShapedLayer(12, 3, 0.8, 0.6, 0.7), ResidualReluLayer(12, 0.8, 0.6)),
    "post-norm": (PlainLayer(12, 3, 0.8, 0.6), RMSNorm(12)),
    "post-norm, output": (PlainLayer(12, 12, 0.8, 0.6, value_width=12), RMSNorm(12)),
}
# Two statistics of two comparisons each: critical value of the KS distance at 1e-6.
CRITICAL = np.sqrt(-np.log(0.5e-6 / (6 * len(CASES) + 12)) / PATHS)


def start(width):
    return np.random.default_rng(width).standard_normal((3, width))


def statistics(states):
    """A mixed size, a cosine and a volume: what a wrong law would change."""
    last = states[-1]
    size = last[:, 0, 0] + 2 * last[:, 1, 1] + last[:, 0, 2]
    cosine = last[:, 0, 1] / np.sqrt(last[:, 0, 0] * last[:, 1, 1])
    values = np.linalg.eigvalsh(last)
    return size, cosine, values[:, -1] / values.sum(axis=-1)


def distances(one, other):
    pairs = zip(statistics(one), statistics(other), strict=True)
    return [ks_2samp(a, b).statistic for a, b in pairs]


def forms(layer):
    # Without skip connection plain attention soon leaves no cosine but rounding.
    depth = 1 if getattr(layer, "skip", 1) == 0 else 3
    width = layer[0].width if isinstance(layer, tuple) else layer.width
    x0 = start(width)
    runs = [(simulate, x0 @ x0.T / width), (simulate_tokens, x0), (dense_simulate, x0)]
    for key, (run, first) in enumerate(runs):
        rng = np.random.default_rng(key)
        yield run(first, layer, depth, paths=PATHS, rng=rng).states


@pytest.mark.parametrize("name", CASES)
def test_three_forms_have_one_law(name):
    quick, tokens, dense = forms(CASES[name])
    assert max(distances(quick, dense) + distances(tokens, dense)) < CRITICAL


@pytest.mark.parametrize("pre_norm", [False, True])
def test_concatenated_heads_without_output_keep_the_tokens(pre_norm):
    layer = MultiHeadLayer(
        8, 2, 0.8, 0.6, 0.3, 2, output_matrix=False, pre_norm=pre_norm
    )
    x0 = start(8)
    runs = [
        run(x0, layer, 3, paths=PATHS, rng=np.random.default_rng(key)).states
        for key, run in enumerate([simulate_tokens, dense_simulate])
    ]
    assert max(distances(*runs)) < CRITICAL
    with pytest.raises(ValueError, match="no output matrix.*simulate_tokens"):
        simulate(x0 @ x0.T / 8, layer, 1, paths=1, rng=np.random.default_rng())


def test_without_output_the_gram_matrix_does_not_decide():
    """Two inputs of one Gram matrix: a token inside one head's columns, or in both.

    To first order in the branch V' - V is normal given the attention matrices, with a
    variance v of head 1, or the mean of two independent ones: the excess kurtosis,
    3 Var(v)/(E v)², is twice as large in the first case.
    """
    layer = MultiHeadLayer(4, 2, 1.0, 1e-3, 0.1, heads=2, output_matrix=False)
    inside = np.array([[2.0, 0, 0, 0], [0, 2.0, 0, 1.0], [0, 1.0, 2.0, 0]])
    mix = np.array([[1, 1], [1, -1]]) / np.sqrt(2)
    both = inside.copy()
    both[:, [0, 2]] = inside[:, [0, 2]] @ mix
    np.testing.assert_allclose(inside @ inside.T, both @ both.T, atol=1e-15, rtol=0)
    excess = []
    for key, x in enumerate((inside, both)):
        rng = np.random.default_rng(key)
        norms = simulate_tokens(x, layer, 1, paths=400_000, rng=rng).states[:, :, 0, 0]
        moved = norms[1] - norms[1].mean()
        excess.append((moved**4).mean() / (moved**2).mean() ** 2 - 3)
    assert excess[0] == pytest.approx(2 * excess[1], rel=0.1, abs=0) and excess[1] > 0.1


def test_heads_with_output_are_those_of_a_single_attention_layer():
    """One layer adds the output of lib.hierarchical; a very wide one adds its Γ."""
    layer, paths, x0 = (
        PlainLayer(5, 5, 0.8, 0.6, 0.5, 2, value_width=5),
        20_000,
        start(5),
    )
    law = dict(heads=2, size=paths, score_scale=2 / np.sqrt(5))
    y = dense(x0, **law, rng=np.random.default_rng(1))
    real = 0.8 * x0 + 0.6 * y
    runs = [
        simulate(x0 @ x0.T / 5, layer, 1, paths=paths, rng=np.random.default_rng(2))
    ]
    assert max(distances(runs[0].states, [real @ real.swapaxes(1, 2) / 5])) < CRITICAL
    wide, V = (
        PlainLayer(2**40, 2**40, 0.6, 0.8, heads=2, value_width=2**40),
        x0 @ x0.T / 5,
    )
    grams = simulate(V, wide, 1, paths=paths, rng=np.random.default_rng(3)).states
    gamma = AttentionLimit(V, 2).conditional_covariance(
        paths, rng=np.random.default_rng(4)
    )
    assert max(distances(grams, [0.36 * V + 0.64 * gamma])) < CRITICAL


def test_attention_alone_collapses_in_a_few_layers():
    for width in (256, 2**40):
        layer = PlainLayer(width, width, 0.0, 1.0, value_width=width)
        rng = np.random.default_rng(0)
        states = simulate(np.eye(4), layer, 4, paths=500, rng=rng).states
        cosine = states[..., 0, 1] / np.sqrt(states[..., 0, 0] * states[..., 1, 1])
        gap = 1 - cosine.mean(axis=1)
        assert gap[1] > 0.2 and gap[2] < 0.02 and abs(gap[4]) < 1e-6


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        (ShapedLayer(12, 8, 0.8, 0.6, 0.7), "shaped"),
        (ShapedLayer(12, 2, 0.0, 1.0, 0.1), "shaped, three heads"),
        (PlainLayer(12, 4, 0.8, 0.6), "plain"),
        (MultiHeadLayer(12, 3, 0.0, 1.0, 0.1, heads=1), "concatenated, thin"),
        (PlainLayer(12, 8, 0.8, 0.6, heads=2, value_width=1), "heads with output"),
        (ReluLayer(12, (1.0, 0.0)), "ReLU"),
        (ResidualReluLayer(12, 0.8, 0.6, (4.0, -1.0)), "perceptron"),
    ],
)
def test_the_comparison_notices_another_layer(wrong, name):
    quick = next(forms(wrong))
    *_, dense = forms(CASES[name])
    assert max(distances(quick, dense)) > CRITICAL


def test_one_token_of_a_shaped_relu_is_a_mixture_of_chi_squares():
    """V' = (cV/n)(s₊² χ²_B + s₋² χ²_{n−B}) with a binomial B of n fair coins."""
    n, layer, rng = 7, ReluLayer(7, (1.0, -2.0)), np.random.default_rng(3)
    lengths = simulate([[2.0]], layer, 1, paths=PATHS, rng=rng).states[-1, :, 0, 0]
    up, down = 1 + 1 / np.sqrt(n), 1 - 2 / np.sqrt(n)
    positive = rng.binomial(n, 0.5, PATHS)
    draws = rng.standard_normal((PATHS, n)) ** 2
    first = np.arange(n) < positive[:, None]
    mixed = (draws * np.where(first, up**2, down**2)).sum(axis=1)
    expected = 2 / (up**2 + down**2) * 2.0 / n * mixed
    assert ks_2samp(lengths, expected).statistic < CRITICAL


def test_rms_norm_puts_ones_on_the_diagonal():
    rng = np.random.default_rng(0)
    block = (ShapedLayer(30, 4, 0.8, 0.6, 1.0), RMSNorm(30))
    states = simulate(np.diag([1.0, 4.0]), block, 5, paths=3, rng=rng).states
    np.testing.assert_allclose(
        np.einsum("tpii->tpi", states[1:]), 1, atol=1e-14, rtol=0
    )
    np.testing.assert_array_equal(states[0, 0], np.diag([1.0, 4.0]))


def test_zero_token_cannot_be_normalized():
    gram0, rng = np.diag([1.0, 0.0]), np.random.default_rng(0)
    with pytest.raises(ValueError, match="a token that is 0"):
        simulate(gram0, RMSNorm(30), 1, paths=1, rng=rng)


def test_one_linear_layer_is_wishart():
    """V' of X' = XW/√n is Wishart with n degrees of freedom over n: its moments."""
    n, rng = 5, np.random.default_rng(1)
    V = np.array([[2.0, 0.5], [0.5, 1.0]])
    grams = simulate(V, LinearLayer(n), 1, paths=200_000, rng=rng).states[-1]
    noise = grams.std(axis=0) / np.sqrt(len(grams))
    assert (np.abs(grams.mean(axis=0) - V) < 5 * noise).all()
    diagonal = np.diag(V)
    variance = (np.outer(diagonal, diagonal) + V**2) / n
    np.testing.assert_allclose(grams.var(axis=0), variance, rtol=0.03)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MultiHeadLayer(8, 2, 1.0, 1.0, 1.0, 3), "heads must divide .* 8"),
        (lambda: ReluLayer(4, (-2.0, -2.0)), "slopes make the activation 0"),
        (lambda: ReluLayer(4, 1.0), "slopes must be a pair"),
        (lambda: ShapedLayer(4, 2, 1.0, 1.0, 0.0), "tau0 must be a positive"),
        (lambda: PlainLayer(4, 2, 1.0, 1.0, -1.0), "tau0 must be a positive"),
        (lambda: PlainLayer(4, 2, 1.0, 1.0, value_width=0), "value_width must be an"),
        (lambda: LinearLayer(4, pre_norm=1), "pre_norm must be True or False, got 1"),
    ],
)
def test_layers_are_checked(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_layers_of_a_block_have_one_width():
    block = (LinearLayer(4), RMSNorm(5))
    with pytest.raises(ValueError, match=r"layer must have one width, got \[4, 5\]"):
        simulate(np.eye(2), block, 1, paths=1, rng=np.random.default_rng())
