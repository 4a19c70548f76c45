"""Noise on the circle, against laws that are known and the loss of stability."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import ive

from lib import circle
from lib.circle import noise
from lib.circle.mean_field import density_moments
from lib.claims import convergence_order

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("d", [2, 3, 8])
@pytest.mark.parametrize("normalize", [True, False])
def test_critical_noise_balances_the_growth_of_every_mode(d, normalize):
    for beta in (0.0, 1.0, 9.0, -3.0):
        critical = noise.critical_noise(beta, normalize, d=d)
        k = np.arange(1, 20)
        rates = circle.growth_rate(k, beta, normalize, d=d) - critical * k * (k + d - 2)
        assert rates[0] == pytest.approx(0, abs=1e-15) and rates[1:].max() < 0
    assert noise.critical_noise(0.0, d=d) == pytest.approx(1 / d)
    assert noise.critical_noise(3.0, False) == pytest.approx(ive(1, 3.0) / 3)
    quotient = ive(1, 3.0) / ive(0, 3.0)
    assert noise.critical_noise(3.0) == pytest.approx(quotient / 3)


def test_tricritical_beta_is_where_the_curvature_vanishes():
    assert noise.tricritical_beta() == pytest.approx(2.4469, abs=1e-4)
    assert noise.tricritical_beta(3) == pytest.approx(1.8162, abs=1e-4)
    # q = b/(d + 2) (1 − b²/((d + 2)(d + 4)) + ...) = 1/d
    for d in (200, 1000):
        assert noise.tricritical_beta(d) == pytest.approx(1 + 2 / d, abs=2 / d**2)

    def curvature(beta):
        return 1 - noise.ordered_state(1e-2, beta)[0] / noise.critical_noise(
            beta, False
        )

    root = brentq(curvature, 2, 3)
    assert root == pytest.approx(noise.tricritical_beta(), abs=1e-3)


def test_tricritical_beta_of_the_sphere_by_its_own_expansion():
    """d = 3: Legendre modes by quadrature, fourth-order free energy by its minimum."""

    def mean(f):
        return quad(f, -1, 1, epsabs=1e-14)[0] / 2

    def quartic(beta):
        factors = [
            mean(lambda s, p=p: np.exp(beta * s) * p(s))
            for p in (lambda s: s, lambda s: (3 * s**2 - 1) / 2)
        ]
        q = factors[1] / factors[0]

        def h(s):
            return s**2 - 1 / 3

        spread, cubic = mean(lambda s: h(s) ** 2), mean(lambda s: s**2 * h(s))
        # min over b of (1 − q) b² spread/2 − b cubic/2, and + mean(s⁴)/12.
        return mean(lambda s: s**4) / 12 - cubic**2 / (8 * (1 - q) * spread)

    root = brentq(quartic, 1, 3)
    assert root == pytest.approx(noise.tricritical_beta(3), abs=1e-8)


def test_free_energy_is_its_definition():
    angles = 2 * np.pi * np.arange(64) / 64
    density = 1 + 0.4 * np.cos(angles) + 0.3 * np.sin(2 * angles)
    entropy = np.mean(density * np.log(density))
    kernel = np.exp(3 * np.cos(angles[:, None] - angles)) / 6
    energy = density @ kernel @ density / 64**2
    free_energy = noise.free_energy(density, 3.0, 0.07)
    assert free_energy == pytest.approx(
        0.07 * entropy - np.exp(-3) * energy, rel=1e-13, abs=0
    )
    holes = np.where(angles < np.pi, 2.0, 0.0)
    assert np.isclose(
        noise.free_energy(holes, 3.0, 1.0) - noise.free_energy(holes, 3.0, 0.0),
        np.log(2),
    )


@pytest.mark.parametrize("share", [0.7, 1.3])
def test_noisy_tokens_settle_in_the_stationary_law(share):
    """Order parameter of 4000 tokens; its noise is about 1/√4000 = 0.016."""
    strength = share * noise.critical_noise(1.0, False)
    run = noise.langevin(
        RNG.uniform(0, 2 * np.pi, 4000), 1.0, strength, 150, 600,
        normalize=False, save_every=20, rng=RNG,
    )  # fmt: skip
    orders = np.abs(circle.moments(run.states[-6:], 1)[:, 1])
    exact = abs(density_moments(noise.stationary_density(1.0, strength), 1)[1])
    assert orders.mean() == pytest.approx(exact, abs=0.06)
    assert exact < 1e-9 or exact > 0.7


def test_without_noise_steps_have_order_two():
    theta0 = np.array([0.0, 1.0, 2.5])
    exact = circle.simulate(theta0, 2.0, 3, 1000).states[-1]
    sizes = [16, 32, 64, 128, 256]
    errors = [
        np.abs(
            noise.langevin(theta0, 2.0, 1e-60, 3, n, rng=RNG).states[-1] - exact
        ).max()
        for n in sizes
    ]
    assert convergence_order(sizes, errors).order == pytest.approx(-2, abs=0.15)


def test_free_tokens_diffuse():
    """Tokens that do not interact: a normal law of variance 2ηt; KS at 1e-6."""
    from scipy.special import ndtr

    # One token in each system feels only itself.
    paths = 40_000
    run = noise.langevin(np.zeros((paths, 1)), 3.0, 0.2, 2, 4, rng=RNG)
    z = np.sort(run.states[-1, :, 0]) / np.sqrt(2 * 0.2 * 2)
    gap = np.abs(ndtr(z) - (np.arange(paths) + 0.5) / paths).max()
    assert gap < np.sqrt(-np.log(0.5e-6) / 2 / paths)
    assert abs(np.mean(z**2) - 1) < 5 * np.sqrt(2 / paths)


def test_two_noisy_tokens_have_the_law_of_their_difference():
    """Mean cosine of two tokens: the difference of their angles is a diffusion.

    Its backward equation is solved by Fourier modes, from the drift by hand.
    """
    beta, strength, horizon, paths = 1.0, 0.3, 2.0, 40_000
    u = 2 * np.pi * np.arange(256) / 256
    near = np.exp(beta * np.cos(u))
    drift = -2 * near * np.sin(u) / (near + np.exp(beta))
    wave = np.fft.fftfreq(256, 1 / 256)

    def rate(f):
        slope = np.fft.ifft(1j * wave * np.fft.fft(f)).real
        bend = np.fft.ifft(-(wave**2) * np.fft.fft(f)).real
        return drift * slope + 2 * strength * bend

    f, h = np.cos(u), 1e-3
    for _ in range(int(horizon / h)):
        ahead = np.fft.fft(f + h * rate(f + h / 2 * rate(f)))
        f = np.fft.ifft(ahead * (np.abs(wave) < 40)).real
    exact = np.interp(1.5, u, f)
    theta0 = np.tile([0.0, 1.5], (paths, 1))
    end = noise.langevin(theta0, beta, strength, horizon, 10, rng=RNG).states[-1]
    cosines = np.cos(end[:, 1] - end[:, 0])
    spread = cosines.std() / np.sqrt(paths)
    assert abs(cosines.mean() - exact) < 5 * spread < 0.02


@pytest.mark.parametrize(("beta", "steps"), [(1.0, 3), (-5.0, 18)])
def test_the_longest_step_is_allowed(beta, steps):
    """As many steps as the message of fewer asks for."""
    with pytest.raises(ValueError, match=f"steps must be at least {steps} for"):
        noise.langevin([0.0], beta, 0.1, 3.0, steps - 1, rng=RNG)
    run = noise.langevin([0.0], beta, 0.1, 3.0, steps, rng=RNG)
    assert run.times.size == steps + 1


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: noise.tricritical_beta(1), ["d", "1"]),
        (lambda: noise.free_energy(np.ones(9), 0.0, 1.0), ["beta", "0"]),
        (
            lambda: noise.langevin([0.0], -5.0, 0.1, 3.0, 6, rng=RNG),
            ["steps must be at least 18"],
        ),
        (lambda: noise.langevin([0.0], 1.0, 0.1, 3.0, 6, rng=None), ["rng", "None"]),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises(ValueError, match=".") as error:
        call()
    assert all(word in str(error.value) for word in words), str(error.value)
