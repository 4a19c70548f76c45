"""Distances between tokens far below what a difference of floats resolves."""

from decimal import Decimal, localcontext

import numpy as np
import pytest

from lib.core.wishart import bartlett, product
from lib.gram import dense_simulate, simulate
from lib.gram.collapse import _collapsing, log_residual
from lib.gram.layers import LinearLayer, PlainLayer

M, N = 4, 64
LAYER = PlainLayer(N, 16, 0.0, 1.0)


def residual_of(grams):
    """log ‖JX‖/‖X‖ from Gram matrices: right while it is far above rounding."""
    J = np.eye(M) - 1 / M
    centered = np.einsum("ij,...jk,ki->...", J, grams, J)
    return 0.5 * np.log(centered / np.einsum("...ii->...", grams))


def test_agrees_with_the_chain_while_that_resolves_it():
    """The median of the log residual after 0, 1, 2 layers, by three programs."""
    paths, rng = 4000, np.random.default_rng
    ours = log_residual(np.eye(M), LAYER, 2, paths=paths, rng=rng(0))
    quick = simulate(np.eye(M), LAYER, 2, paths=paths, rng=rng(1)).states
    x0 = np.sqrt(N) * np.eye(M, N)
    dense = dense_simulate(x0, LAYER, 2, paths=500, rng=rng(2)).states
    for layer in range(3):
        spread = ours[layer].std() / np.sqrt(500)
        medians = [np.median(residual_of(g[layer])) for g in (quick, dense)]
        assert np.abs(medians - np.median(ours[layer])).max() < 6 * spread + 1e-12


def test_three_layers_agree_in_law_by_factors():
    """Roots resolve a residual of 1e-10, which Gram matrices do not."""
    rng, gram0 = np.random.default_rng, 0.4 * np.eye(M) + 0.6
    ours = log_residual(gram0, LAYER, 3, paths=4000, rng=rng(0))[-1]
    roots = simulate(gram0, LAYER, 3, paths=4000, rng=rng(1), factors=True)
    last = roots.states[-1]
    apart = np.linalg.norm(last - last.mean(axis=1, keepdims=True), axis=(1, 2))
    theirs = np.log(apart / np.linalg.norm(last, axis=(1, 2)))
    # Quantiles that roots resolve: above e^−32.
    ours, theirs = np.quantile([ours, theirs], [0.3, 0.5, 0.8], axis=1).T
    assert ours[0] > -32 and ours[1] < np.log(1e-10)
    assert np.abs(ours - theirs).max() < 0.5


def test_same_layer_by_exact_arithmetic():
    """One step of the deviations against 60-digit arithmetic with the same draws."""
    rng = np.random.default_rng(5)
    mean, apart = rng.standard_normal((1, 1, M)), rng.standard_normal((1, M, M))
    apart -= apart.mean(axis=1, keepdims=True)
    for size in (0.0, -5.0, -30.0):
        _, deviations, after = _collapsing(
            mean, apart, np.full((1, 1, 1), size), LAYER, np.random.default_rng(6)
        )
        exact = exact_step(mean[0, 0], apart[0], size)
        np.testing.assert_allclose(deviations[0] * np.exp(after[0]), exact, rtol=1e-9)


def exact_step(mean, apart, size):
    """Deviations of softmax(C M Cᵀ) C G, with the draws of the generator of seed 6."""
    rng = np.random.default_rng(6)
    middle = exact(product(1, M, M, LAYER.key_width, rng)[0] / LAYER.temperature)
    weights = exact(bartlett(1, M, N, rng)[0] / np.sqrt(N))
    with localcontext(prec=60):
        small = Decimal(size).exp()
        C = exact(mean) + exact(apart - apart.mean(axis=0)) * small
        scores = C @ middle @ C.T
        powers = np.vectorize(Decimal.exp)(scores)
        out = (powers / powers.sum(axis=1, keepdims=True)) @ C @ weights
        return (out - out.sum(axis=0) / M).astype(float)


def exact(array):
    """The same numbers as decimals."""
    return np.vectorize(Decimal)(array)


def test_each_layer_triples_the_logarithm():
    """Rows of A differ bilinearly in the deviations: the residual is cubed."""
    logs = log_residual(np.eye(M), LAYER, 12, paths=200, rng=np.random.default_rng(3))
    middle = np.median(logs, axis=1)
    assert middle[-1] < -1e5
    ratios = np.diff(middle)[1:] / np.diff(middle)[:-1]
    assert np.abs(ratios[2:] - 3).max() < 0.2 and np.abs(ratios[-1] - 3) < 1e-3


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (PlainLayer(N, 16, 0.5, 1.0), "layer must have skip 0"),
        (PlainLayer(N, 16, 0.0, 1.0, heads=2), "layer must have skip 0"),
        (PlainLayer(N, 16, 0.0, 1.0, value_width=N), "layer must have skip 0"),
        (LinearLayer(N), "layer must be a PlainLayer"),
        (PlainLayer(3, 16, 0.0, 1.0), "layer must have a width of at least 4"),
    ],
)
def test_other_layers_are_refused(layer, message):
    with pytest.raises(ValueError, match=message):
        log_residual(np.eye(M), layer, 2, paths=1, rng=np.random.default_rng())


def test_equal_tokens_have_no_residual():
    with pytest.raises(ValueError, match="tokens that are all equal"):
        log_residual(np.zeros((M, M)), LAYER, 2, paths=1, rng=np.random.default_rng())


@pytest.mark.parametrize(
    ("size", "layer"),
    [(1e6, LAYER), (1e-100, PlainLayer(N, 16, 0.0, 1e300, tau0=1e-20))],
)
def test_tokens_that_leave_the_float_range_are_refused(size, layer):
    """Also where that is one direction of the deviations, and the mean stays within."""
    gram0, rng = size * np.outer([1, -1, 2, 3], [1, -1, 2, 3]), np.random.default_rng(4)
    with pytest.raises(ValueError, match="left the float range"):
        log_residual(gram0, layer, 2, paths=3, rng=rng)
