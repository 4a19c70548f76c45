"""Hemispheres: a certificate for each answer, and Wendel's theorem."""

from itertools import product
from math import comb

import numpy as np
import pytest
from scipy.optimize import linprog

from lib import sphere
from lib.sphere import hemisphere_pole, hemisphere_probability

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(("n", "d"), [(5, 3), (8, 5), (3, 3), (6, 2)])
def test_pole_is_a_certificate_and_agrees_with_linear_programming(n, d):
    x = sphere.uniform_tokens(n, d, systems=60, rng=RNG)
    poles = hemisphere_pole(x)
    has_pole = poles.any(axis=-1)
    np.testing.assert_allclose(np.linalg.norm(poles[has_pole], axis=-1), 1, rtol=1e-12)
    assert (np.sum(x * poles[:, None], axis=-1)[has_pole] > 0).all()
    for tokens, inside in zip(x, has_pole, strict=True):
        program = linprog(np.zeros(d), -tokens, -np.ones(n), bounds=[(None, None)] * d)
        assert (program.status == 0) == inside


def test_wendel_holds_for_the_signs_of_any_tokens():
    """Of the 2^n sign patterns exactly 2 Σ C(n − 1, k) fit, whatever the tokens."""
    signs = np.array(list(product([-1.0, 1.0], repeat=8)))
    for d in (2, 3, 5, 8):
        x = sphere.uniform_tokens(8, d, rng=RNG)
        count = hemisphere_pole(signs[:, :, None] * x).any(axis=-1).sum()
        assert count == 2 * sum(comb(7, k) for k in range(d))
        assert count / 256 == pytest.approx(
            hemisphere_probability(8, d), rel=1e-12, abs=0
        )


def test_probability_is_the_sum_of_binomials():
    for n, d in ((1, 1), (5, 3), (40, 3), (60, 59)):
        exact = sum(comb(n - 1, k) for k in range(d)) / 2 ** (n - 1)
        assert hemisphere_probability(n, d) == pytest.approx(exact, rel=1e-12, abs=0)
    assert hemisphere_probability(5, 9) == 1


@pytest.mark.parametrize("lift", [1e-2, 3e-5, 1e-6])
def test_flat_hemispheres_are_found(lift):
    """Tokens hardly above an equator; pushed below it they lie in no hemisphere."""
    theta = np.array([0.1, 2.0, 4.5])
    circle = np.stack([np.cos(theta), np.sin(theta)], axis=1) * np.sqrt(1 - lift**2)
    x = np.column_stack([circle, np.full(3, lift)])
    np.testing.assert_allclose(hemisphere_pole(x) @ [0, 0, 1], 1, rtol=1e-7)
    around = np.vstack([x, [0, 0, -1.0]])
    np.testing.assert_array_equal(hemisphere_pole(around), 0)


def test_special_configurations():
    np.testing.assert_array_equal(hemisphere_pole([[1.0, 0], [-1, 0]]), [0, 0])
    np.testing.assert_array_equal(hemisphere_pole([[1.0], [1.0]]), [1])
    np.testing.assert_array_equal(hemisphere_pole([[1.0], [-1.0]]), [0])


def test_attention_keeps_tokens_in_their_hemisphere():
    """The least cosine with the pole never decreases, and increases at first."""
    x = sphere.uniform_tokens(9, 6, systems=40, rng=RNG)
    poles = hemisphere_pole(x)
    inside = poles.any(axis=-1)
    assert 5 < inside.sum() < 40
    for normalize in (True, False):
        run = sphere.simulate(x[inside], 3.0, 8, 80, normalize=normalize).states
        least = np.sum(run * poles[inside][:, None], axis=-1).min(axis=-1)
        assert np.diff(least, axis=0).min() > -1e-14
        assert (least[-1] > least[0] + 1e-4).all()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: hemisphere_pole([[2.0, 0]]), ["x", "norm 2"]),
        (lambda: hemisphere_probability(0, 2), ["n", "0"]),
        (lambda: hemisphere_probability(2, 0), ["d", "0"]),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises(ValueError, match=".") as error:
        call()
    assert all(word in str(error.value) for word in words)
