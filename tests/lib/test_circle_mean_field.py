"""The equation of the density, against tokens and exact solutions."""

import numpy as np
import pytest
from scipy.special import ive

from lib import circle
from lib.circle import mean_field
from lib.circle.mean_field import density_moments, quantile_tokens
from lib.claims import convergence_order

N = 192
NODES = 2 * np.pi * np.arange(N) / N
BUMPS = 1 + 0.5 * np.cos(3 * NODES) + 0.3 * np.sin(NODES)
NARROW = np.exp(50 * (np.cos(NODES) - 1))
NARROW /= NARROW.mean()


def cauchy(r, nodes=NODES):
    """Density of the wrapped Cauchy law, the Poisson kernel."""
    return (1 - r**2) / (1 - 2 * r * np.cos(nodes) + r**2)


def test_moments_are_fourier_coefficients():
    moments = density_moments(BUMPS, 4)
    np.testing.assert_allclose(moments, [1, -0.15j, 0, 0.25, 0], atol=1e-15, rtol=0)
    both = density_moments(np.stack([BUMPS, cauchy(0.3)]), 4)
    np.testing.assert_allclose(both[1], 0.3 ** np.arange(5), atol=1e-15, rtol=0)


@pytest.mark.parametrize("n", [1, 10, 4099])
def test_quantile_tokens_have_equal_shares_between_them(n):
    def share(x):
        return (x + 0.5 / 3 * np.sin(3 * x) + 0.3 * (1 - np.cos(x))) / (2 * np.pi)

    tokens = quantile_tokens(BUMPS, n)
    expected = (np.arange(n) + 0.5) / n
    np.testing.assert_allclose(share(tokens), expected, atol=3e-15, rtol=0)


def test_quantile_tokens_between_two_nodes_have_their_shares():
    """Cells of a hundred tokens each, with more density at either end of a cell."""
    nodes = 2 * np.pi * np.arange(5) / 5
    for slope in (0.9, -0.9):
        tokens = quantile_tokens(1 + slope * np.cos(nodes), 500)
        share = (tokens + slope * np.sin(tokens)) / (2 * np.pi)
        expected = (np.arange(500) + 0.5) / 500
        np.testing.assert_allclose(share, expected, atol=3e-15, rtol=0)
        assert (np.diff(tokens, prepend=0, append=2 * np.pi) > 0).all()


def test_quantile_tokens_represent_a_smooth_density_exponentially():
    errors = [
        np.abs(
            circle.moments(quantile_tokens(cauchy(0.3), n), 3)[1:]
            - 0.3 ** np.arange(1, 4)
        ).max()
        for n in (8, 16, 32)
    ]
    assert errors[0] < 0.05 and errors[1] < 1e-3 and errors[2] < 1e-6


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("beta", [2.0, -2.0, 0.0])
def test_density_moves_as_its_tokens(beta, normalize):
    run = mean_field.simulate(BUMPS, beta, 1, 200, normalize=normalize)
    tokens = circle.simulate(
        quantile_tokens(BUMPS, 2048), beta, 1, 60, normalize=normalize
    )
    moments = density_moments(run.states[-1], 9)
    expected = circle.moments(tokens.states[-1], 9)
    np.testing.assert_allclose(moments, expected, atol=2e-9, rtol=0)
    assert np.abs(moments - density_moments(BUMPS, 9)).max() > 0.03  # it did move


def test_oscillators_keep_their_cauchy_law():
    """β = 0: r(t)² = r₀²e^t / (1 − r₀² + r₀²e^t), and all moments are powers of r."""
    run = mean_field.simulate(cauchy(0.3), 0.0, 2, 200)
    grown = 0.09 * np.exp(run.times)
    r = np.sqrt(grown / (0.91 + grown))
    moments = density_moments(run.states, 4)
    expected = r[:, None] ** np.arange(5)
    np.testing.assert_allclose(moments, expected, atol=1e-10, rtol=0)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize(("beta", "mode"), [(5.0, 3), (20.0, 6), (-2.0, 1), (-2.0, 2)])
def test_small_waves_grow_at_the_rate_less_diffusion(beta, mode, normalize):
    wave = 1 + 1e-7 * np.cos(mode * NODES)
    run = mean_field.simulate(wave, beta, 1, 100, normalize=normalize, noise=0.05)
    size = 2e7 * np.abs(density_moments(run.states[-1], mode)[mode])
    expected = circle.growth_rate(mode, beta, normalize) - 0.05 * mode**2
    assert np.log(size) == pytest.approx(expected, abs=2e-6)


def test_pure_diffusion_is_exact():
    """At large noise the transport is a small correction that vanishes with it."""
    run = mean_field.simulate(BUMPS, 2.0, 1e-3, 1, noise=1e3)
    moments = density_moments(run.states[-1], 3)
    assert abs(moments[3]) < 0.25 * np.exp(-9) * 1.01
    assert abs(moments[1]) == pytest.approx(0.15 * np.exp(-1), rel=2e-3, abs=0)


@pytest.mark.filterwarnings("error")
def test_endless_noise_leaves_the_uniform_law():
    end = mean_field.simulate(BUMPS, 2.0, 1e-3, 1, noise=1e308).states[-1]
    np.testing.assert_allclose(end, 1, atol=1e-12, rtol=0)


def test_steps_have_order_four():
    exact = mean_field.simulate(BUMPS, 3.0, 1, 2000, noise=0.1, save_every=2000)
    sizes = [16, 24, 32, 64, 128]
    errors = [
        np.abs(
            mean_field.simulate(BUMPS, 3.0, 1, int(n), noise=0.1).states[-1]
            - exact.states[-1]
        ).max()
        for n in sizes
    ]
    assert convergence_order(sizes, errors).order == pytest.approx(-4, abs=0.2)


def test_mass_stays_and_three_bumps_stay_three():
    wave = 1 + 0.2 * np.cos(3 * NODES)
    run = mean_field.simulate(wave, 5.0, 4, 800, tail=1e-3)
    np.testing.assert_allclose(run.states.mean(axis=1), 1, rtol=1e-13)
    c = np.abs(density_moments(run.states[-1], 4))
    np.testing.assert_allclose(c[[1, 2, 4]], 0, atol=1e-13, rtol=0)
    assert c[3] > 0.5


def test_stationary_law_of_the_linear_problem():
    """With Z frozen to its first mode, von Mises laws are stationary for d = 2.

    A start at the solution of I₁(x)/I₀(x) = r, x = 2r I₁(β)/(βη), at small β where
    only that mode acts, stays there.
    """
    beta, x = 1e-4, 2.0
    r = ive(1, x) / ive(0, x)
    noise = 2 * r * ive(1, beta) / (beta * x)
    start = np.exp(x * np.cos(NODES))
    start /= start.mean()
    run = mean_field.simulate(start, beta, 5, 500, normalize=False, noise=noise)
    np.testing.assert_allclose(run.states[-1], start, atol=2e-4, rtol=0)


def test_a_mean_may_miss_one_by_one_part_in_1e8():
    assert density_moments((1 + 0.9e-8) * BUMPS, 1)[0] == pytest.approx(1)
    with pytest.raises(ValueError, match="mean 1, got 1.00000001"):
        density_moments((1 + 1.1e-8) * BUMPS, 1)


def test_the_last_tenth_of_few_modes_is_the_last_one():
    """With 24 nodes and 8 modes the 8th alone has to be below the tail."""
    start = 1 + np.cos(2 * np.pi * np.arange(24) / 24) / 2
    run = mean_field.simulate(start, 1.0, 0.5, 50, tail=1.0)
    modes = np.abs(density_moments(run.states, 8)).max(axis=0)
    tail = np.sqrt(modes[7] * modes[8])
    assert modes[8] < 0.9 * tail < tail < 0.9 * modes[7]
    kept = mean_field.simulate(start, 1.0, 0.5, 50, tail=tail)
    np.testing.assert_array_equal(kept.states, run.states)
    above = np.abs(density_moments(run.states, 8))[:, 8] > modes[8] / 2
    first = run.times[above.argmax()]
    with pytest.raises(ValueError, match=f"24 nodes: at time {first:.6g} its"):
        mean_field.simulate(start, 1.0, 0.5, 50, tail=modes[8] / 2)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: mean_field.simulate(2 * BUMPS, 1.0, 1, 9),
            ["density0", "mean 1", "2"],
        ),
        (lambda: mean_field.simulate(BUMPS - 2, 1.0, 1, 9), ["density0", "negative"]),
        (lambda: mean_field.simulate(BUMPS[None], 1.0, 1, 9), ["density0", "(1, 192)"]),
        (lambda: mean_field.simulate(BUMPS, 1.0, 9, 9), ["steps must be at least"]),
        (lambda: mean_field.simulate(BUMPS, 9.0, 9, 5000), ["density0", "192 nodes"]),
        (lambda: mean_field.simulate(BUMPS, 1.0, 1, 99, noise=-1), ["noise", "-1"]),
        (
            lambda: mean_field.simulate(1 + np.cos(90 * NODES), 1.0, 1, 99),
            ["density0", "192 nodes", "time 0 "],
        ),
        (lambda: mean_field.simulate(NARROW, -50.0, 1, 99, tail=1), ["beta=-50.0"]),
        (lambda: mean_field.simulate(NARROW, 20.0, 1, 99, tail=1), ["beta=20.0"]),
        (lambda: density_moments(BUMPS, 96), ["modes", "96"]),
        (
            lambda: density_moments(np.outer([1, 0.5], np.ones(9)), 1),
            ["density must have mean 1, got 0.5"],
        ),
        (lambda: quantile_tokens(1 + np.cos(NODES), 3), ["density", "positive"]),
        (  # positive at its nodes, but the interpolation of a peak swings below 0
            lambda: quantile_tokens([8.2, *8 * [0.1]], 3),
            ["density", "negative between its nodes"],
        ),
        (lambda: quantile_tokens(BUMPS, 0), ["n", "0"]),
        (lambda: quantile_tokens(BUMPS, 10**8 + 1), ["n", "100000001"]),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises(ValueError, match=".") as error:
        call()
    assert all(word in str(error.value) for word in words), str(error.value)
