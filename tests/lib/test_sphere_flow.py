"""Flows on the sphere: order, ends, and what is saved."""

from functools import partial

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from lib import sphere
from lib.claims import convergence_order

RNG = np.random.default_rng(0)

X = sphere.uniform_tokens(7, 4, rng=RNG)


@pytest.mark.parametrize("normalize", [True, False])
def test_runge_kutta_has_order_four(normalize):
    x0 = sphere.uniform_tokens(6, 3, rng=np.random.default_rng(1))

    def slope(_, y):
        field = sphere.attention_field(y.reshape(6, 3) / norms(y), 3.0, normalize)
        return field.ravel()

    def norms(y):
        return np.linalg.norm(y.reshape(6, 3), axis=1, keepdims=True)

    exact = solve_ivp(slope, (0, 2), x0.ravel(), "DOP853", rtol=1e-13, atol=1e-13)
    sizes = 2 ** np.arange(3, 8)
    runs = [sphere.simulate(x0, 3.0, 2, int(n), normalize=normalize) for n in sizes]
    errors = [np.abs(r.states[-1].ravel() - exact.y[:, -1]).max() for r in runs]
    assert convergence_order(sizes, errors).order == pytest.approx(-4, abs=0.15)
    np.testing.assert_allclose(
        np.linalg.norm(runs[0].states, axis=-1), 1, rtol=1e-14
    )  # on the sphere at any step


def test_normalization_decides_how_fast_tokens_meet():
    """1 − cos falls like e^(−2t) after the sum, and like t^(−2) before the branch."""
    x0 = np.eye(8)
    part = partial(sphere.attention_output, beta=2.0)
    after = sphere.post_norm_layers(x0, part, 0.01, 1000, save_every=100)
    gaps = np.sum((after.states[:, 0] - after.states[:, 1]) ** 2, axis=-1) / 2
    # At this step the multiplier of a layer is (1 + h)^(−2).
    slope = np.diff(np.log(gaps[-3:])) / np.diff(after.times[-3:])
    np.testing.assert_allclose(slope, -2 * np.log(1.01) / 0.01, rtol=1e-4)
    before = sphere.pre_norm_layers(x0, part, 0.1, 4000, save_every=1000)
    x = before.states / np.linalg.norm(before.states, axis=-1, keepdims=True)
    gaps = np.sum((x[1:, 0] - x[1:, 1]) ** 2, axis=-1) / 2
    slope = np.diff(np.log(gaps)) / np.diff(np.log(before.times[1:]))
    np.testing.assert_allclose(slope, -2, atol=0.03, rtol=0)
    assert np.linalg.norm(before.states[-1], axis=-1).min() > 300  # they grow


def test_repulsion_ends_in_an_octahedron_and_attraction_in_a_point():
    x0 = sphere.uniform_tokens(6, 3, rng=np.random.default_rng(4))
    apart = sphere.simulate(x0, 1.0, 400, 1600, value=-np.eye(3), save_every=1600)
    cosines = np.sort((apart.states[-1] @ apart.states[-1].T)[np.triu_indices(6, 1)])
    np.testing.assert_allclose(cosines, [-1] * 3 + [0] * 12, atol=1e-6, rtol=0)
    together = sphere.simulate(x0, 1.0, 40, 160, save_every=160).states[-1]
    np.testing.assert_allclose(together @ together.T, 1, atol=1e-12, rtol=0)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("beta", [3.0, -3.0])
def test_nothing_to_do(beta, normalize):
    """One token, the sphere of d = 1, and antipodes, an equilibrium of every model."""
    field = partial(sphere.attention_field, beta=beta, normalize=normalize)
    np.testing.assert_allclose(field(X[:1]), 0, atol=1e-16, rtol=0)
    np.testing.assert_allclose(field([[1.0], [-1.0], [1.0]]), 0, atol=1e-16, rtol=0)
    np.testing.assert_allclose(field(np.array([X[0], -X[0]])), 0, atol=1e-15, rtol=0)
    states = sphere.simulate([[1.0], [-1.0]], beta, 5, 20, normalize=normalize).states
    np.testing.assert_array_equal(states[-1], [[1], [-1]])


def test_states_are_saved_as_asked():
    every = sphere.simulate(X, 1.0, 2, 10)
    some = sphere.simulate(X, 1.0, 2, 10, save_every=4)
    np.testing.assert_allclose(every.times, np.arange(11) / 5)
    np.testing.assert_allclose(some.times, [0, 0.8, 1.6, 2])
    np.testing.assert_array_equal(some.states, every.states[[0, 4, 8, 10]])


def test_too_few_steps_are_refused_with_a_number_that_works():
    x0 = sphere.uniform_tokens(20, 3, rng=np.random.default_rng(5))
    push = partial(sphere.simulate, x0, 4.0, 100.0)
    with pytest.raises(ValueError, match=r"steps=20 is too small.*take about (\d+)"):
        push(20)
    try:
        push(20)
    except ValueError as error:
        suggested = int(str(error).split()[-1])
    assert suggested < 2000
    rest = push(suggested).states[-1]
    np.testing.assert_allclose(rest @ rest.T, 1, atol=1e-10, rtol=0)
