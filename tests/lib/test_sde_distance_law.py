"""The law of the distance of two tokens on a grid: limits that are known in full."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from lib.sde import distance_law, explosion_probability


def distribution(masses):
    return np.cumsum(masses) - masses / 2


def test_without_attention_the_distance_is_log_normal():
    """As τ0 → ∞, log Δ is a Brownian motion with drift −q and variance 2q."""
    q, T = 0.75, 0.5
    points, masses = distance_law(1.6, np.sqrt(0.5), 1e6, T)
    exact = norm.cdf(np.log(points), np.log(1.6) - q * T, np.sqrt(2 * q * T))
    assert np.abs(distribution(masses) - exact).max() < 3e-5
    assert masses.sum() == pytest.approx(1, abs=1e-10) and masses.min() > -1e-12


@pytest.mark.parametrize(("square", "heads"), [(0.1, 1), (0.25, 1), (0.4, 1), (0.8, 2)])
def test_what_is_gone_has_exploded(square, heads):
    """In the long run the missing mass is the probability of explosion."""
    _, masses = distance_law(2.0, np.sqrt(square), 0.5, 60 / square, heads=heads)
    expected = explosion_probability(2.0, np.sqrt(square), 0.5, heads=heads)
    assert 1 - masses.sum() == pytest.approx(expected, abs=3e-4)


@pytest.mark.parametrize("square", [0.5, 0.7, 1.0])
def test_nothing_is_lost_where_nothing_explodes(square):
    _, masses = distance_law(2.0, np.sqrt(square), 0.5, 3.0)
    assert masses.sum() == pytest.approx(1, abs=1e-10)


def test_error_is_of_second_order_in_the_spacing():
    def mean(spacing):
        points, masses = distance_law(1.6, 0.8, 0.7, 0.5, spacing=spacing)
        return masses @ (points / (1 + points))

    finest = mean(0.005)
    errors = [abs(mean(spacing) - finest) for spacing in (0.08, 0.04, 0.02)]
    assert 3 < errors[0] / errors[1] < 5 and 3 < errors[1] / errors[2] < 5.5
    assert errors[2] < 1e-4


def test_scale_function_is_a_martingale():
    """E s(Δ_T) = s(Δ_0) for s = ∫p, which is finite at ∞ where γ² < 1/2."""
    square, tau0 = 0.25, 0.5
    k, unit = 1 / (4 * square), 8 * tau0**2 * (2 - square) / square
    points, masses = distance_law(2.0, np.sqrt(square), tau0, 0.7)

    def scale(top):
        return quad(lambda y: (1 + y * y / unit) ** -k, 0, top)[0]

    whole = unit**0.5 * np.pi / 2  # k = 1: an arctangent
    values = np.sqrt(unit) * np.arctan(points / np.sqrt(unit))
    assert values[0] == pytest.approx(scale(points[0]))
    kept = masses @ values + (1 - masses.sum()) * whole
    assert kept == pytest.approx(scale(2.0), abs=1e-4)


@pytest.mark.parametrize("scale", [1e-40, 1e-6, 1e40])
def test_distances_scale_like_tau0(scale):
    """The diffusion of Δ/τ0 is that of τ0 = 1: the same masses, far from 1 too."""
    points, masses = distance_law(2.0, 0.5, 0.5, 1.0)
    scaled, scaled_masses = distance_law(2.0 * scale, 0.5, 0.5 * scale, 1.0)
    np.testing.assert_allclose(scaled / scale, points, rtol=1e-12)
    np.testing.assert_allclose(scaled_masses, masses, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["distance0", "branch", "tau0", "horizon", "spacing"])
def test_bad_numbers_are_named(name):
    good = dict(distance0=1.0, branch=0.5, tau0=1.0, horizon=1.0, spacing=0.1)
    for bad in (0.0, -1.0, np.nan, np.inf, "1"):
        with pytest.raises(ValueError, match=name):
            distance_law(**{**good, name: bad})
