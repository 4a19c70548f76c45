"""Gradients are difference quotients, and queries learn from differences of tokens."""

from dataclasses import replace

import numpy as np
import pytest

from lib.gram import gradients
from lib.gram.layers import LinearLayer, PlainLayer, ShapedLayer


def rng(key=0):
    return np.random.default_rng(key)


M, N, PATHS = 4, 12, 3
LAYERS = {
    "plain": PlainLayer(N, 5, 0.8, 0.6),
    "plain, no skip": PlainLayer(N, 5, 0.0, 1.0, tau0=0.2),
    "plain, two heads, normalized": PlainLayer(N, 5, 0.8, 0.6, heads=2, pre_norm=True),
    "shaped": ShapedLayer(N, 5, 0.8, 0.6, 0.3),
    "shaped, three heads": ShapedLayer(N, 2, 0.8, 0.6, 0.3, heads=3),
    "shaped, normalized": ShapedLayer(N, 5, 0.6, 0.8, 0.3, pre_norm=True),
}


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("part", ["x", "query", "key", "value"])
def test_gradients_are_difference_quotients(name, part):
    layer, draws = LAYERS[name], rng(1)
    x = 1.5 * draws.standard_normal((PATHS, M, N))
    weights = gradients.draw(layer, paths=PATHS, rng=draws)
    cotangent = draws.standard_normal(x.shape)
    before, grads = gradients.backward(x, weights, layer, cotangent)
    gradient = before if part == "x" else getattr(grads, part)
    turn = draws.standard_normal(gradient.shape)

    def loss(step):
        at, moved = x, weights
        if part == "x":
            at = x + step * turn
        else:
            moved = replace(weights, **{part: getattr(weights, part) + step * turn})
        after = gradients.forward(at, moved, layer)
        return (cotangent * after).sum(axis=(1, 2))  # each network by itself

    # Of fourth order: the error of both is far below 1e-7.
    h = 1e-3
    slope = (8 * (loss(h) - loss(-h)) - (loss(2 * h) - loss(-2 * h))) / (12 * h)
    exact = (gradient * turn).reshape(PATHS, -1).sum(axis=1)
    np.testing.assert_allclose(exact, slope, rtol=1e-7, atol=1e-7 * np.abs(slope).max())


@pytest.mark.parametrize("name", LAYERS)
def test_forward_is_the_layer_of_the_simulations(name):
    """The same weights in the same order give the same tokens."""
    layer = LAYERS[name]
    x = rng(2).standard_normal((PATHS, M, N))
    heads, draws = [], rng(3)
    for _ in range(layer.heads):
        heads.append(draws.standard_normal((2, PATHS, N, layer.key_width)))
    value = draws.standard_normal((PATHS, layer.heads * N, N))
    expected = layer._dense_step(x, rng(3))
    weights = gradients.Weights(
        np.stack([one[0] for one in heads], axis=1),
        np.stack([one[1] for one in heads], axis=1),
        value.reshape(PATHS, layer.heads, N, N),
    )
    tokens = gradients.forward(x, weights, layer)
    np.testing.assert_allclose(tokens, expected, rtol=1e-12, atol=1e-12)


def test_sizes_are_those_of_the_gradients_through_all_layers():
    """Two layers by hand, with the weights that the seeds give."""
    layer, x0 = LAYERS["shaped"], rng(4).standard_normal((M, N))
    sizes = gradients.sizes(x0, layer, 2, paths=PATHS, rng=rng(5))
    again = rng(5)
    seeds = again.integers(2**63, size=2)
    first, second = (
        gradients.draw(layer, paths=PATHS, rng=np.random.default_rng(seed))
        for seed in seeds
    )
    start = np.repeat(x0[None], PATHS, axis=0)
    middle = gradients.forward(start, first, layer)
    loss = again.standard_normal(start.shape)
    half, late = gradients.backward(middle, second, layer, loss)
    whole, early = gradients.backward(start, first, layer, half)

    def rms(array):
        return np.sqrt((array**2).reshape(PATHS, -1).mean(axis=1))

    np.testing.assert_allclose(sizes.tokens, [rms(whole), rms(half), rms(loss)])
    for part in ("query", "key", "value"):
        both = [rms(getattr(early, part)), rms(getattr(late, part))]
        np.testing.assert_allclose(getattr(sizes, part), both)


@pytest.mark.parametrize("name", ["plain", "shaped"])
def test_queries_see_differences_twice(name):
    layer, draws = LAYERS[name], rng(6)
    weights = gradients.draw(layer, paths=PATHS, rng=draws)
    common = draws.standard_normal((PATHS, 1, N))
    apart, cotangent = draws.standard_normal((2, PATHS, M, N))

    def grads(size):
        x = common + size * apart
        return gradients.backward(x, weights, layer, cotangent)[1]

    near, nearer, equal = grads(1e-3), grads(1e-4), grads(0.0)
    for part in ("query", "key"):
        ratio = np.linalg.norm(getattr(nearer, part)) / np.linalg.norm(
            getattr(near, part)
        )
        assert ratio == pytest.approx(0.01, rel=0.02)
        assert np.abs(getattr(equal, part)).max() < 1e-15
    scale = layer.branch / np.sqrt(N)
    summed = cotangent.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(
        equal.value[:, 0], scale * common.mT @ summed, rtol=1e-12, atol=1e-13
    )


def test_plain_attention_loses_the_queries_and_shaped_does_not():
    n, depth, half = 32, 24, np.sqrt(0.5)
    x0 = np.sqrt(n) * np.eye(4, n)
    plain, shaped = PlainLayer(n, n, half, half), ShapedLayer(n, n, half, half, 1.0)
    falls = {}
    for name, layer in {"plain": plain, "shaped": shaped}.items():
        sizes = gradients.sizes(x0, layer, depth, paths=40, rng=rng(7))
        for part in ("query", "key"):
            share = np.log(getattr(sizes, part) / sizes.value)
            falls[name, part] = np.mean((share[-1] - share[9]) / (depth - 10))
    for part in ("query", "key"):
        # Differences shrink like λ in each layer, and enter twice: λ² = 1/2.
        assert falls["plain", part] == pytest.approx(-np.log(2), abs=0.08)
        assert abs(falls["shaped", part]) < 0.08


WEIGHTS = gradients.draw(LAYERS["plain"], paths=2, rng=rng())
TOKENS = np.ones((2, M, N))
GROWING = PlainLayer(N, 5, 3.0, 3.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gradients.draw(LinearLayer(4), paths=2, rng=rng()), "layer must be a"),
        (
            lambda: gradients.draw(
                PlainLayer(4, 2, 0.0, 1.0, value_width=2), paths=2, rng=rng()
            ),
            "without value_width",
        ),
        (
            lambda: gradients.forward(TOKENS[0], WEIGHTS, LAYERS["plain"]),
            "x must have shape",
        ),
        (
            lambda: gradients.forward(TOKENS[:1], WEIGHTS, LAYERS["plain"]),
            r"weights must have a query of shape \(1, 1, 12, 5\), got \(2, 1, 12, 5\)",
        ),
        (
            lambda: gradients.forward(TOKENS, WEIGHTS, LAYERS["shaped, three heads"]),
            "weights must have a query of shape",
        ),
        (
            lambda: gradients.forward(
                TOKENS, replace(WEIGHTS, key=np.nan * WEIGHTS.key), LAYERS["plain"]
            ),
            "weights must be finite, its key is not",
        ),
        (
            lambda: gradients.backward(TOKENS, WEIGHTS, LAYERS["plain"], TOKENS[:1]),
            "cotangent must have the shape",
        ),
        (
            lambda: gradients.sizes(
                np.ones((M, 3)), LAYERS["plain"], 2, paths=2, rng=rng()
            ),
            "x0 must have 12 columns",
        ),
        (
            lambda: gradients.sizes(
                1e90 * np.ones((M, N)), GROWING, 60, paths=2, rng=rng()
            ),
            "left the float range",
        ),
        (
            lambda: gradients.sizes(
                np.zeros((M, N)), LAYERS["shaped, normalized"], 2, paths=2, rng=rng()
            ),
            "it cannot be normalized",
        ),
    ],
)
def test_what_has_no_gradients(call, message):
    with pytest.raises(ValueError, match=message):
        call()
