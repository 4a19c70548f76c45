"""Stationary laws with noise and their transition, against equations and dynamics."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import i0, i1, iv

from lib.circle import mean_field, noise
from lib.circle.mean_field import density_moments


def residual(density, beta, strength):
    """How far μ ∝ exp(Z/(ηβ)) is from holding: spread of log μ − Z/(ηβ)."""
    n = density.size
    kernel = np.exp(beta * (np.cos(2 * np.pi * np.arange(n) / n) - 1))
    potential = np.fft.irfft(np.fft.rfft(kernel) * np.fft.rfft(density), n) / n
    return np.ptp(np.log(density) - potential / (strength * beta))


@pytest.mark.parametrize("beta", [0.1, 1.0, 2.4469, 5.0, 40.0])
@pytest.mark.parametrize("order", [1e-3, 0.3, 0.9, 0.99])
def test_ordered_state_is_stationary_and_has_its_order(beta, order):
    strength, density = noise.ordered_state(order, beta)
    assert abs(density_moments(density, 1)[1] - order) < 1e-12
    assert residual(density, beta, strength) < 1e-8
    assert density.argmax() == 0 and np.isclose(density.mean(), 1, atol=1e-12)


@pytest.mark.parametrize(("order", "beta"), [(0.05, 300.0), (0.05, 1000.0)])
def test_newton_waits_until_all_modes_are_near(order, beta):
    """At large β the first mode is near long before those that the kernel sees."""
    strength, density = noise.ordered_state(order, beta)
    assert abs(density_moments(density, 1)[1] - order) < 1e-12
    assert residual(density, beta, strength) < 1e-6


@pytest.mark.parametrize("order", [0.01, 0.5, 0.95])
def test_the_scale_of_given_moments_is_that_of_the_order(order):
    """In the potential of a wrapped normal law the order grows with the scale."""
    gibbs = noise._Gibbs(3.0, 40.0)
    c = 0.7 ** (gibbs.k[1:] ** 2.0)
    scale, moments = gibbs.scale_for(order, c, 1.0)
    assert moments[0] == pytest.approx(order, rel=1e-9)
    assert gibbs.respond(c, scale)[1][0] == pytest.approx(order, rel=1e-8)


def test_small_beta_is_the_mean_field_of_rotators():
    """β → 0: the law is von Mises, and r = I₁(x)/I₀(x) with x = 2r/(2η)·…, x = r/η."""
    beta = 1e-6
    for x in (0.5, 2.0, 8.0):
        r = i1(x) / i0(x)
        strength, density = noise.ordered_state(r, beta)
        assert strength == pytest.approx(r / x, rel=1e-5, abs=0)
        angles = 2 * np.pi * np.arange(density.size) / density.size
        np.testing.assert_allclose(
            density, np.exp(x * np.cos(angles)) / i0(x), atol=1e-4, rtol=0
        )


@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0, 3.0, 5.0])
def test_bifurcation_has_the_curvature_of_the_landau_expansion(beta):
    """(1 − η/η#)/r² → ½(2 − 1/(1 − I₂/I₁)): its sign decides on the transition."""
    r = 3e-3
    strength, _ = noise.ordered_state(r, beta)
    curvature = (1 - strength / noise.critical_noise(beta, False)) / r**2
    q = iv(2, beta) / iv(1, beta)
    assert curvature == pytest.approx((2 - 1 / (1 - q)) / 2, abs=2e-4)


def test_order_grows_as_a_square_root_and_at_the_end_as_a_fourth_root():
    r = np.geomspace(5e-3, 2e-2, 4)
    for beta, exponent in ((1.0, 1 / 2), (noise.tricritical_beta(), 1 / 4)):
        critical = noise.critical_noise(beta, False)
        below = [1 - noise.ordered_state(x, beta)[0] / critical for x in r]
        slopes = np.diff(np.log(r)) / np.diff(np.log(below))
        np.testing.assert_allclose(slopes, exponent, atol=2e-3, rtol=0)


@pytest.mark.parametrize(("beta", "share"), [(1.0, 0.8), (1.0, 1.2), (5.0, 0.6)])
def test_equation_of_motion_relaxes_to_the_stationary_law(beta, share):
    """And the free energy never increases on the way."""
    strength = share * noise.critical_noise(beta, False)
    start = 1 + 0.5 * np.cos(2 * np.pi * np.arange(192) / 192)
    horizon = 13 / abs(strength * (1 - share))
    run = mean_field.simulate(
        start, beta, horizon, int(8 * horizon), normalize=False, noise=strength
    )
    energies = noise.free_energy(run.states, beta, strength)
    assert np.diff(energies).max() < 1e-15
    final = noise.stationary_density(beta, strength)
    order = abs(density_moments(final, 1)[1])
    assert abs(density_moments(run.states[-1], 1)[1]) == pytest.approx(order, abs=1e-5)
    assert (order > 0.5) == (share < 1)


@pytest.mark.parametrize("strength", [1e-3, 1e-4, 1e-5])
def test_little_noise_leaves_a_normal_law_of_that_variance(strength):
    """The potential next to its top is −θ²/(2η), to one part in η."""
    density = noise.stationary_density(1.0, strength)
    n = density.size
    angles = (2 * np.pi * np.arange(n) / n + np.pi) % (2 * np.pi) - np.pi
    assert density.mean() == pytest.approx(1, abs=1e-12)
    variance = np.mean(density * angles**2)
    assert variance == pytest.approx(strength, rel=5 * strength)
    assert np.mean(density * angles**4) == pytest.approx(3 * variance**2, rel=0.02)


def test_hysteresis_at_large_beta_and_none_at_small():
    def ends(beta, strength):
        for start in (1e-3, 0.95):
            density = noise.stationary_density(beta, strength, order0=start)
            yield abs(density_moments(density, 1)[1])

    for beta, share, orders in ((5.0, 1.05, (0.8, 0.9)), (1.0, 0.95, (0.2, 0.9))):
        strength = share * noise.critical_noise(beta, False)
        order = brentq(
            lambda r, b=beta, s=strength: noise.ordered_state(r, b)[0] - s, *orders
        )
        up, down = ends(beta, strength)
        assert down == pytest.approx(order, abs=1e-9)
        assert up == pytest.approx(0 if beta > 2.5 else order, abs=1e-9)
    strength = 1.2 * noise.critical_noise(5.0, False)  # beyond the fold
    density = noise.stationary_density(5.0, strength)
    np.testing.assert_allclose(density, 1, atol=1e-12, rtol=0)


def test_slow_growth_is_not_taken_for_rest():
    """Next to the transition the order grows by a hundredth in an iteration."""
    strength = 0.99 * noise.critical_noise(1.0, False)
    order = brentq(lambda r: noise.ordered_state(r, 1.0)[0] - strength, 0.05, 0.5)
    for start in (1e-4, 1e-3, 0.95):
        density = noise.stationary_density(1.0, strength, order0=start)
        assert abs(density_moments(density, 1)[1]) == pytest.approx(order, abs=1e-9)


def test_stationary_density_lies_on_the_branch():
    for order in (0.85, 0.9, 0.98):
        strength, expected = noise.ordered_state(order, 9.0)
        law = noise.stationary_density(9.0, strength)
        np.testing.assert_allclose(
            density_moments(law, 9), density_moments(expected, 9), atol=1e-10, rtol=0
        )


@pytest.mark.parametrize(
    ("beta", "quotient"), [(1.0, 1.0), (3.0, 0.9912), (5.0, 0.9149), (9.0, 0.7878)]
)
def test_at_the_transition_two_laws_have_one_free_energy(beta, quotient):
    strength = noise.transition_noise(beta)
    critical = noise.critical_noise(beta, False)
    assert critical / strength == pytest.approx(quotient, abs=1e-4)
    for share, ordered in ((0.999, True), (1.001, False)):
        density = noise.stationary_density(beta, share * strength)
        better = noise.free_energy(density, beta, share * strength)
        uniform = noise.free_energy(np.ones(64), beta, share * strength)
        if beta > 2.5:
            assert (better < uniform) == ordered


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: noise.ordered_state(1.0, 1.0), ["order", "1.0"]),
        (lambda: noise.ordered_state(0.5, -1.0), ["beta", "-1.0"]),
        (lambda: noise.stationary_density(1.0, 0.0), ["noise", "0.0"]),
        (lambda: noise.stationary_density(1.0, 1e-7), ["noise", "1e-07"]),
        (lambda: noise.stationary_density(1.0, 0.1, order0=1), ["order0", "1"]),
        (lambda: noise.transition_noise(0), ["beta", "0"]),
        (lambda: noise.transition_noise(2.44695), ["beta=2.44695", "2.44692"]),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises(ValueError, match=".") as error:
        call()
    assert all(word in str(error.value) for word in words), str(error.value)
