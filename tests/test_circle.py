"""Fourier fields on the circle, against the sphere and against closed forms."""

import tracemalloc
import warnings

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import hyp0f1, ive

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
    found = circle.attention_field(THETA, beta, normalize)
    expected = by_sphere(THETA, beta, normalize)
    # The rounding of 3e-16 is divided by Z, which is at least 1/n.
    np.testing.assert_allclose(
        found, expected, atol=1e-15 * (50 if normalize else 1), rtol=0
    )


def test_no_harmonic_is_missing():
    """Tokens close together, for which all moments are near 1."""
    theta = RNG.uniform(0, 0.05, 8)
    at = np.linspace(0, 2 * np.pi, 33)
    for beta in (0.3, 2.0, 9.0, 200.0, -9.0):
        turn = at[:, None] - theta
        half = np.sin(turn / 2) if beta > 0 else np.cos(turn / 2)
        expected = np.exp(-2 * abs(beta) * half**2).mean(axis=1)
        found = circle.partition_function(theta, beta, at, shifted=True)
        np.testing.assert_allclose(found, expected, atol=1e-15, rtol=0)
        turn = theta[:, None] - theta
        half = np.sin(turn / 2) if beta > 0 else np.cos(turn / 2)
        expected = -(np.exp(-2 * abs(beta) * half**2) * np.sin(turn)).mean(axis=1)
        found = circle.attention_field(theta, beta, False)
        np.testing.assert_allclose(found, expected, atol=1e-15, rtol=0)


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
    found = circle.attention_field(theta, 9.0)
    some = RNG.integers(0, n, 200)
    turn = theta[some, None] - theta
    weights = np.exp(9 * (np.cos(turn) - 1))
    expected = -np.sum(weights * np.sin(turn), axis=1) / np.sum(weights, axis=1)
    np.testing.assert_allclose(found[some], expected, atol=2e-15, rtol=0)


def test_memory_grows_with_the_tokens_not_their_pairs():
    theta = RNG.uniform(0, 2 * np.pi, 10**6)
    tracemalloc.start()
    circle.attention_field(theta, 9.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.1e9


def test_huge_angles_count_modulo_a_turn():
    found = circle.attention_field([1e300, 2.0, 0.5], 2.0)
    expected = by_sphere(np.array([1e300, 2.0, 0.5]), 2.0, True)
    np.testing.assert_allclose(found, expected, atol=1e-15, rtol=0)


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
        found = circle.attention_field(theta, beta, normalize)
    assert [w.category for w in caught] == [circle.HiddenDriftWarning] * hidden
    if hidden and len(theta) == 2 and beta > 0:  # it is true that they are hidden
        turn = theta[1]
        weight = np.exp(beta * (np.cos(turn) - 1))
        speed = weight * np.sin(turn) / (1 + weight if normalize else 2)
        assert not np.isclose(found[0], speed, rtol=1e-4, atol=0)


def test_partition_function_is_its_sum():
    at = RNG.uniform(0, 7, 9)
    for beta in (2.0, -2.0, 0.0):
        found = circle.partition_function(THETA, beta, at)
        turn = at - THETA[..., None]
        expected = np.exp(beta * np.cos(turn)).mean(axis=1)
        np.testing.assert_allclose(found, expected, rtol=1e-14)
        shifted = circle.partition_function(THETA, beta, at, shifted=True)
        np.testing.assert_allclose(shifted * np.exp(abs(beta)), found, rtol=1e-14)


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
    found = circle.moments(THETA, 11)
    k = np.arange(12)
    expected = np.exp(-1j * k * THETA[..., None]).mean(axis=1)
    np.testing.assert_allclose(found, expected, atol=1e-15, rtol=0)


def test_growth_rate_is_the_formula_of_bessel_functions():
    k = np.arange(30)
    for beta in (0.5, 5.0, 100.0, 1e4):
        expected = k**2 * ive(k, beta) / (beta * ive(0, beta))
        found = circle.growth_rate(k, beta)
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-300)
        found = circle.growth_rate(k, beta, False)
        np.testing.assert_allclose(
            found, expected * ive(0, beta), rtol=1e-13, atol=1e-300
        )
        # The other sign of β: even modes shrink.
        np.testing.assert_allclose(
            circle.growth_rate(k, -beta), expected * (-1.0) ** (k + 1), rtol=1e-13
        )
    np.testing.assert_allclose(circle.growth_rate([1, 2], 0.0), [0.5, 0])


@pytest.mark.parametrize("d", [2, 3, 5, 64, 1024])
@pytest.mark.parametrize("beta", [0.3, 4.0, 60.0, -4.0])
def test_growth_rate_of_any_dimension_is_an_integral(d, beta):
    """Funk–Hecke: the factor of degree k is ∫ e^(βs) C_k(s)/C_k(1) over the sphere."""
    from numpy.polynomial.legendre import leggauss
    from scipy.special import eval_gegenbauer, gammaln

    s, weight = leggauss(400)
    density = np.exp(
        (d - 3) / 2 * np.log1p(-(s**2)) + gammaln(d / 2) - gammaln((d - 1) / 2)
    ) / np.sqrt(np.pi)
    if d == 2:  # the density is singular: use the angle
        u = np.pi * (np.arange(400) + 0.5) / 400
        s, weight, density = np.cos(u), np.full(400, 1 / 400), np.ones(400)
    factor = []
    for k in range(4):
        if d == 2:
            zonal = np.cos(k * np.arccos(s))
        else:
            nu = d / 2 - 1
            zonal = eval_gegenbauer(k, nu, s) / eval_gegenbauer(k, nu, 1.0)
        factor.append(np.sum(weight * density * np.exp(beta * s - abs(beta)) * zonal))
    k = np.arange(4)
    expected = k * (k + d - 2) * np.array(factor) / beta
    found = circle.growth_rate(k, beta, False, d=d)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-14)
    found = circle.growth_rate(k, beta, d=d)
    np.testing.assert_allclose(found, expected / factor[0], rtol=1e-7, atol=1e-10)


def test_mean_of_the_kernel_where_bessel_functions_underflow():
    for beta in (1e-3, 5.0, 60.0):
        rates = [circle.growth_rate(1, beta, own, d=1024) for own in (False, True)]
        expected = np.exp(-beta) * hyp0f1(512, beta**2 / 4)
        assert rates[0] / rates[1] == pytest.approx(expected, rel=1e-12, abs=0)


@pytest.mark.parametrize(("beta", "mode"), [(0.5, 1), (5.0, 3), (20.0, 6), (5.0, 1)])
def test_tokens_grow_at_the_rate(beta, mode):
    """512 tokens, displaced so that their density is 1 + ε cos kθ to first order."""
    grid = 2 * np.pi * (np.arange(512) + 0.5) / 512
    theta0 = grid - 2e-7 / mode * np.sin(mode * grid)
    for normalize in (True, False):
        run = circle.simulate(theta0, beta, 1, 50, normalize=normalize).states
        size = np.abs(circle.moments(run, mode)[:, mode])
        rate = np.log(size[-1] / size[0])
        expected = circle.growth_rate(mode, beta, normalize)
        assert rate == pytest.approx(expected, rel=1e-5, abs=0)


def test_fastest_mode_steps_where_rates_cross():
    for k, wanted in ((1, 1.0445), (2, 3.1654), (3, 6.2113), (4, 10.2285)):
        root = brentq(
            lambda b, k=k: circle.growth_rate(k, b) - circle.growth_rate(k + 1, b),
            wanted - 0.5,
            wanted + 0.5,
        )
        assert root == pytest.approx(wanted, abs=1e-4)
        assert list(circle.fastest_mode([root - 1e-6, root + 1e-6])) == [k, k + 1]
    many = np.array([1e3, 1e4, 1e5])
    np.testing.assert_allclose(circle.fastest_mode(many), np.sqrt(2 * many), rtol=0.01)
    for d in (2, 3, 8):
        top = circle.growth_rate(circle.fastest_mode(1e4, d=d), 1e4, d=d)
        assert top == pytest.approx(2 / np.e, abs=1e-4)


@pytest.mark.parametrize(("n", "m"), [(50, 50), (30, 70), (1, 5), (200, 1)])
def test_wasserstein_distance_is_that_of_pot(n, m):
    import ot

    one, two = RNG.uniform(-9, 9, n), RNG.vonmises(1, 3, m)
    turns = [(x / (2 * np.pi)) % 1 for x in (one, two)]
    expected = 2 * np.pi * ot.wasserstein_circle(*turns, p=1)[0]
    found = circle.wasserstein_distance(one, two)
    assert found == pytest.approx(expected, abs=1e-12)
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
