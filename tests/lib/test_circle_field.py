"""Fourier fields on the circle, against the sphere and against closed forms."""

import tracemalloc
import warnings

import numpy as np
import pytest

from lib import circle, sphere
from lib.claims import convergence_order

RNG = np.random.default_rng(0)

THETA = RNG.uniform(-9, 9, (3, 50))


def by_sphere(theta, beta, normalize):
    """The definition, with a matrix of all pairs."""
    field = sphere.attention_field(circle.points(theta), beta, normalize)
    tangent = np.stack([-np.sin(theta), np.cos(theta)], axis=-1)
    return np.sum(field * tangent, axis=-1)


@pytest.mark.filterwarnings("ignore::lib.circle.HiddenDriftWarning")
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize(
    "beta", [0.0, 1e-9, 0.3, 1.0, 9.0, 100.0, 1e4, -0.3, -1.0, -5.0, -12.0]
)
def test_field_is_that_of_all_pairs(beta, normalize):
    field = circle.attention_field(THETA, beta, normalize)
    expected = by_sphere(THETA, beta, normalize)
    # The rounding of 3e-16 is divided by Z, which is at least 1/n.
    np.testing.assert_allclose(
        field, expected, atol=1e-15 * (50 if normalize else 1), rtol=0
    )


def test_no_harmonic_is_missing():
    """Tokens close together, for which all moments are near 1."""
    theta = RNG.uniform(0, 0.05, 8)
    at = np.linspace(0, 2 * np.pi, 33)
    for beta in (0.3, 2.0, 9.0, 200.0, -9.0):
        turn = at[:, None] - theta
        half = np.sin(turn / 2) if beta > 0 else np.cos(turn / 2)
        expected = np.exp(-2 * abs(beta) * half**2).mean(axis=1)
        partition = circle.partition_function(theta, beta, at, shifted=True)
        # The harmonics have weights of sum 1, each exact to a few units of rounding.
        np.testing.assert_allclose(partition, expected, atol=8 * 2.2e-16, rtol=0)
        turn = theta[:, None] - theta
        half = np.sin(turn / 2) if beta > 0 else np.cos(turn / 2)
        expected = -(np.exp(-2 * abs(beta) * half**2) * np.sin(turn)).mean(axis=1)
        field = circle.attention_field(theta, beta, False)
        np.testing.assert_allclose(field, expected, atol=1e-15, rtol=0)


def test_steps_of_half_a_turn_are_refused_with_a_number_that_works():
    for horizon, theta in ((50.0, [0.0, 0.6]), (1e3, [0.0, 0.01])):
        with pytest.raises(ValueError, match="steps=1 is too small") as error:
            circle.simulate(theta, 1.0, horizon, 1)
        suggested = int(str(error.value).split()[-1])
        rest = circle.simulate(theta, 1.0, 50, max(suggested, 100)).states[-1]
        assert np.ptp(rest) < 1e-6 and suggested < 100 * horizon


@pytest.mark.parametrize("n", [1, 7, 2047, 2049, 5000])
def test_field_of_many_tokens_is_exact(n):
    """On both sides of a block; 200 sampled tokens against their sums over all."""
    theta = RNG.vonmises(0, 0.5, n)
    field = circle.attention_field(theta, 9.0)
    some = RNG.integers(0, n, 200)
    turn = theta[some, None] - theta
    weights = np.exp(9 * (np.cos(turn) - 1))
    expected = -np.sum(weights * np.sin(turn), axis=1) / np.sum(weights, axis=1)
    np.testing.assert_allclose(field[some], expected, atol=2e-15, rtol=0)


def test_memory_grows_with_the_tokens_not_their_pairs():
    theta = RNG.uniform(0, 2 * np.pi, 10**6)
    tracemalloc.start()
    circle.attention_field(theta, 9.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.1e9


def test_huge_angles_count_modulo_a_turn():
    field = circle.attention_field([1e300, 2.0, 0.5], 2.0)
    expected = by_sphere(np.array([1e300, 2.0, 0.5]), 2.0, True)
    np.testing.assert_allclose(field, expected, atol=1e-15, rtol=0)


def test_one_place_is_at_rest():
    for beta in (0.0, 9.0, 1e3):
        np.testing.assert_allclose(
            circle.attention_field([1.0], beta), 0, atol=1e-15, rtol=0
        )
        np.testing.assert_allclose(
            circle.attention_field(np.ones(5), beta), 0, atol=1e-15, rtol=0
        )


@pytest.mark.parametrize(
    ("theta", "beta", "normalize", "hidden"),
    [
        ([0.0, np.pi], 14.0, True, False),  # e^−28 is still above the rounding
        ([0.0, np.pi - 0.5], 18.0, True, True),
        ([0.0, 0.3], 40.0, True, False),
        ([0.0, 1.5], 40.0, False, True),
        ([0.0, 0.1, 1.5, 1.6], 60.0, True, True),  # though both clusters contract
        ([1.0, 1.0, 1.0], 1e4, True, False),
        ([0.0, 0.5], -40.0, False, True),
        ([0.0, 3.0], -40.0, False, False),
    ],
)
def test_hidden_drifts_are_said(theta, beta, normalize, hidden):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        field = circle.attention_field(theta, beta, normalize)
    assert [w.category for w in caught] == [circle.HiddenDriftWarning] * hidden
    if hidden and len(theta) == 2 and beta > 0:  # it is true that they are hidden
        turn = theta[1]
        weight = np.exp(beta * (np.cos(turn) - 1))
        speed = weight * np.sin(turn) / (1 + weight if normalize else 2)
        assert not np.isclose(field[0], speed, rtol=1e-4, atol=0)


def test_partition_function_is_its_sum():
    at = RNG.uniform(0, 7, 9)
    for beta in (2.0, -2.0, 0.0):
        partition = circle.partition_function(THETA, beta, at)
        turn = at - THETA[..., None]
        expected = np.exp(beta * np.cos(turn)).mean(axis=1)
        np.testing.assert_allclose(partition, expected, rtol=1e-14)
        shifted = circle.partition_function(THETA, beta, at, shifted=True)
        np.testing.assert_allclose(shifted * np.exp(abs(beta)), partition, rtol=1e-14)


def test_simulation_is_that_on_the_sphere():
    x0 = circle.points(THETA)
    for normalize in (True, False):
        mine = circle.simulate(THETA, 3.0, 4, 200, normalize=normalize, save_every=200)
        other = sphere.simulate(x0, 3.0, 4, 200, normalize=normalize, save_every=200)
        np.testing.assert_allclose(
            circle.points(mine.states), other.states, atol=1e-8, rtol=0
        )
        np.testing.assert_array_equal(mine.states[0], THETA)


def test_simulation_has_order_four():
    sizes = 2 ** np.arange(3, 8)
    ends = [circle.simulate(THETA[0], 2.0, 3, int(n)).states[-1] for n in sizes]
    exact = circle.simulate(THETA[0], 2.0, 3, 2000, save_every=2000).states[-1]
    errors = [np.abs(end - exact).max() for end in ends]
    assert convergence_order(sizes, errors).order == pytest.approx(-4, abs=0.2)


def test_equal_oscillators_follow_their_conserved_quantities():
    """β = 0 moves tokens by Möbius maps: cross-ratios of chords stay."""
    theta = RNG.uniform(0, 2 * np.pi, 6)
    run = circle.points(circle.simulate(theta, 0.0, 5, 500).states)

    def ratio(x, i, j, k, l):  # noqa: E741
        def chord(a, b):
            return np.linalg.norm(x[:, a] - x[:, b], axis=-1)

        return chord(i, j) * chord(k, l) / (chord(i, k) * chord(j, l))

    values = ratio(run, 0, 1, 2, 3)
    np.testing.assert_allclose(values, values[0], rtol=1e-9)
    moved = circle.points(circle.simulate(theta, 0.5, 5, 500).states)
    assert np.ptp(ratio(moved, 0, 1, 2, 3)) > 0.01  # and not at other β


def test_moments_are_means_of_powers():
    moments = circle.moments(THETA, 11)
    k = np.arange(12)
    expected = np.exp(-1j * k * THETA[..., None]).mean(axis=1)
    np.testing.assert_allclose(moments, expected, atol=1e-15, rtol=0)


@pytest.mark.parametrize(("n", "m"), [(50, 50), (30, 70), (1, 5), (200, 1)])
def test_wasserstein_distance_is_that_of_pot(n, m):
    import ot

    rng = np.random.default_rng([n, m])
    one, two = rng.uniform(-9, 9, n), rng.vonmises(1, 3, m)
    if min(n, m) == 1:  # then there is one plan; POT is off by up to 1e-7 here
        expected = np.abs((one - two + np.pi) % (2 * np.pi) - np.pi).mean()
    else:
        turns = [(x / (2 * np.pi)) % 1 for x in (one, two)]
        expected = 2 * np.pi * ot.wasserstein_circle(*turns, p=1)[0]
    distance = circle.wasserstein_distance(one, two)
    assert distance == pytest.approx(expected, abs=1e-12)
    assert circle.wasserstein_distance(one, one + 2 * np.pi) < 1e-13
    assert circle.wasserstein_distance([0.0], [np.pi]) == pytest.approx(np.pi)
    assert circle.wasserstein_distance([0.1], [-0.1]) == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: circle.attention_field([0, np.nan], 1.0), ["theta[1]", "nan"]),
        (lambda: circle.attention_field(1.0, 1.0), ["theta", "()"]),
        (lambda: circle.attention_field([0, 1], np.inf), ["beta", "inf"]),
        (lambda: circle.attention_field([0, 1], 1e9), ["beta", "1e+08"]),
        (lambda: circle.attention_field([0, 0.1], -50.0), ["theta", "sphere"]),
        (lambda: circle.growth_rate(-1, 1.0), ["mode", "-1"]),
        (lambda: circle.growth_rate(1.5, 1.0), ["mode", "1.5"]),
        (lambda: circle.growth_rate(1, 1.0, d=1), ["d", "1"]),
        (lambda: circle.fastest_mode(0.0), ["beta", "0"]),
        (lambda: circle.simulate([0, 1], 1.0, 1.0, -1), ["steps", "-1"]),
        (lambda: circle.simulate(THETA, 1.0, 90.0, 9), ["steps=9", "take about"]),
        (lambda: circle.simulate([0, 1], 1.0, 1e6, 1), ["steps=1", "take about"]),
        (lambda: circle.simulate([0, 0.1], -50.0, 1, 9), ["theta", "beta=-50.0"]),
        (lambda: circle.partition_function([0], 1e3, [0.0]), ["beta", "shifted"]),
        (lambda: circle.moments([0], 0), ["modes", "0"]),
        (lambda: circle.wasserstein_distance([[0]], [0]), ["theta", "(1, 1)"]),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises(ValueError, match=".") as error:
        call()
    assert all(word in str(error.value) for word in words), str(error.value)
