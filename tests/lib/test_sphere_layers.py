"""Layers with normalization, and the flows that they approach."""

from functools import partial

import numpy as np
import pytest

from lib import sphere
from lib.claims import convergence_order

RNG = np.random.default_rng(0)

X = sphere.uniform_tokens(7, 4, rng=RNG)


def test_layers_have_order_one_and_need_fifty_times_the_evaluations():
    """Error at most 4e-4 at time 5: counts, of n = 64 tokens in d = 3 at β = 1."""
    x0 = sphere.uniform_tokens(64, 3, rng=np.random.default_rng(1))
    exact = sphere.simulate(x0, 1.0, 5, 1000, save_every=1000).states[-1]
    count = 0

    def attention(x):
        nonlocal count
        count += 1
        return sphere.attention_output(x, 1.0)

    def evaluations(error, sizes):
        """Calls of the field by the first run with an error of at most 4e-4."""
        nonlocal count
        for n in sizes:
            count = 0
            if error(n) <= 4e-4:
                return count
        raise AssertionError("no run is accurate enough")

    def layers(n):
        run = sphere.post_norm_layers(x0, attention, 5 / n, n, save_every=n)
        return np.abs(run.states[-1] - exact).max()

    def runge_kutta(n):
        return np.abs(sphere.flow(attention, x0, 5, n).states[-1] - exact).max()

    sizes = [20, 40, 80, 160, 320]
    errors = [layers(n) for n in sizes]
    assert convergence_order(sizes, errors).order == pytest.approx(-1, abs=0.1)
    few = evaluations(runge_kutta, range(5, 40))
    assert layers(50 * few) > 4e-4  # as many layers as 50 times that do not suffice


def test_alternating_layers_converge_to_the_sum_of_fields():
    """Lie–Trotter: attention and perceptron in turn are their sum, no composite."""
    rng = np.random.default_rng(2)
    x0 = sphere.uniform_tokens(6, 3, rng=rng)
    inner, outer = rng.standard_normal((2, 3, 3)) / 2
    attention = partial(sphere.attention_output, beta=2.0)
    mlp = partial(sphere.perceptron_output, inner=inner, outer=outer, bias=[1, 0, -1])
    exact = sphere.flow(lambda x: attention(x) + mlp(x), x0, 1, 100).states[-1]
    sizes = [20, 40, 80, 160, 320]
    ends = [
        sphere.post_norm_layers(x0, [attention, mlp], 1 / n, n).states[-1]
        for n in sizes
    ]
    errors = [np.abs(end - exact).max() for end in ends]
    assert convergence_order(sizes, errors).order == pytest.approx(-1, abs=0.1)

    def composite(x):
        a = attention(x)
        return mlp(a / np.linalg.norm(a, axis=-1, keepdims=True))

    other = sphere.flow(composite, x0, 1, 100).states[-1]
    assert np.abs(other - ends[-1]).max() > 0.1


def test_perceptron_is_its_formula():
    rng = np.random.default_rng(3)
    inner, outer, bias = (
        rng.normal(size=(9, 4)),
        rng.normal(size=(4, 9)),
        rng.normal(size=9),
    )
    output = sphere.perceptron_output(X, inner, outer, bias)
    expected = [outer @ np.maximum(inner @ x + bias, 0) for x in X]
    np.testing.assert_allclose(output, expected, atol=1e-14, rtol=0)
    smooth = sphere.perceptron_output(X, inner, outer, activation=np.tanh)
    expected = [outer @ np.tanh(inner @ x) for x in X]
    np.testing.assert_allclose(smooth, expected, atol=1e-14, rtol=0)


@pytest.mark.parametrize("layers", [sphere.post_norm_layers, sphere.pre_norm_layers])
def test_one_token_that_leaves_the_float_range_is_enough(layers):
    x0 = np.array([[1.0, 0.0], [0.0, 1.0]])
    huge = np.array([[1e200, 0.0], [0.0, 0.0]])
    with pytest.raises(ValueError, match="step=.* times parts leaves the float range"):
        layers(x0, lambda x: huge, 1e200, 1)
