"""The backward pass against difference quotients, for every parameter and variant."""

import numpy as np
import pytest

from lib.sinkhorn import sinkhorn_attention
from lib.transformer import init, perceptron
from lib.transformer.layers import EPSILON, doubly_stochastic, root_mean_square

X = np.random.default_rng(1).standard_normal((2, 3, 2))
LABELS = [2, 0]
RNG = np.random.default_rng(5)
SMALL = dict(width=4, tokens=3, features=2, classes=3)


def loss_of(model, x):
    """Cross-entropy from the logits alone."""
    logits = model.forward(x)
    return np.mean(np.log(np.exp(logits).sum(axis=1)) - logits[[0, 1], LABELS])


def quotients(model, x, h=1e-5):
    """Central difference quotients for every entry of every parameter."""
    slopes = {}
    for name, array in model.params.items():
        slopes[name] = np.zeros(array.shape)
        for entry in np.ndindex(array.shape):
            sides = []
            for step in (h, -h):
                moved = array.copy()
                moved[entry] += step
                sides.append(loss_of(model.replace({**model.params, name: moved}), x))
            slopes[name][entry] = (sides[0] - sides[1]) / (2 * h)
    return slopes


def assert_gradient_is_right(model, x):
    loss, gradient = model.loss_and_gradient(x, LABELS)
    np.testing.assert_allclose(loss, loss_of(model, x), rtol=1e-13)
    expected = quotients(model, x)
    assert [*gradient] == [*model.params]
    for name, array in gradient.items():
        assert array.shape == model.params[name].shape and array.dtype == np.float64
        np.testing.assert_allclose(
            array, expected[name], rtol=0, atol=1e-7 * max(1, np.abs(array).max()),
            err_msg=name,
        )  # fmt: skip
        layers = array if array.ndim == 3 else array[None]
        assert layers.any(axis=tuple(range(1, layers.ndim))).all(), f"{name} has no use"


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("norm", ["pre", "post", "none"])
@pytest.mark.parametrize("attention", ["softmax", "shaped", "sinkhorn"])
def test_every_parameter_of_every_variant(attention, norm, heads, depth):
    rng = np.random.default_rng(7)
    kind = dict(attention=attention, norm=norm, heads=heads, depth=depth)
    assert_gradient_is_right(init(**kind, **SMALL, rng=rng), X)


@pytest.mark.parametrize(
    "more",
    [
        dict(attention="sinkhorn", iterations=1),
        dict(attention="sinkhorn", iterations=2),
        dict(attention="sinkhorn", iterations=30, temperature=0.3),
        dict(attention="shaped", temperature=0.5, slopes=(1.5, 0.25)),
        dict(temperature=2.0, slopes=(0.5, -1.0)),
        dict(norm="none", skip=1.0, branch=0.5),
        dict(norm="post", skip=0.3, branch=-1.0),
        dict(norm="pre", skip=0.0, branch=1.0),
    ],
)
def test_every_parameter_beyond_the_defaults(more):
    kind = dict(heads=2, depth=2) | more
    model = init(**kind, **SMALL, rng=np.random.default_rng(3))
    assert_gradient_is_right(model, X)


@pytest.mark.parametrize("hidden", [0, 5])
def test_every_parameter_of_the_simple_classifiers(hidden):
    rng = np.random.default_rng(2)
    model = perceptron(features=6, hidden=hidden, classes=3, rng=rng)
    noise = {k: 0.1 * rng.standard_normal(v.shape) for k, v in model.params.items()}
    shifted = {k: v + noise[k] for k, v in model.params.items()}
    assert_gradient_is_right(model.replace(shifted), X.reshape(2, 6))


def test_the_way_back_is_of_the_normalizations_that_were_made():
    """Two of them are far from the limit, and so is the derivative of the limit."""
    rng = np.random.default_rng(4)
    scores, grad = 3 * rng.standard_normal((2, 5, 5))
    ways = [doubly_stochastic(scores, k)[1](grad) for k in (2, 4000)]
    assert np.abs(ways[0] - ways[1]).max() > 0.05
    # In the limit no function of rows plus one of columns changes the value.
    for axis in (0, 1):
        np.testing.assert_allclose(ways[1].sum(axis=axis), 0, atol=1e-12)


@pytest.mark.parametrize("scale", [1.0, 30.0, 200.0, 1000.0])
@pytest.mark.parametrize("iterations", [1, 2, 3, 8, 9])
def test_scores_of_any_size_are_normalized(scale, iterations):
    """With large ones a column loses all its weight before it is normalized."""
    scores = scale * np.random.default_rng(8).standard_normal((3, 2, 5, 5))
    scores[..., 0] -= 5 * scale
    weights, back = doubly_stochastic(scores, iterations)
    np.testing.assert_allclose(
        weights, sinkhorn_attention(scores, iterations), rtol=1e-10, atol=1e-300
    )
    h, direction, grad = 1e-6, *RNG.standard_normal((2, *scores.shape))
    sides = [
        (doubly_stochastic(scores + step * direction, iterations)[0] * grad).sum()
        for step in (h, -h)
    ]
    slope = (back(grad) * direction).sum()
    np.testing.assert_allclose(
        (sides[0] - sides[1]) / (2 * h), slope, rtol=0, atol=1e-7
    )


def test_a_token_that_is_zero_has_a_gradient():
    x = np.zeros((1, 2, 4))
    value, back = root_mean_square(x)
    assert not value.any()
    np.testing.assert_allclose(back(np.ones(x.shape)), 1 / EPSILON**0.5)
