"""Growth of harmonics at the uniform law, in any dimension."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import hyp0f1, ive

from lib import circle


def test_growth_rate_is_the_formula_of_bessel_functions():
    k = np.arange(30)
    for beta in (0.5, 5.0, 100.0, 1e4):
        expected = k**2 * ive(k, beta) / (beta * ive(0, beta))
        rates = circle.growth_rate(k, beta)
        np.testing.assert_allclose(rates, expected, rtol=1e-13, atol=1e-300)
        rates = circle.growth_rate(k, beta, False)
        np.testing.assert_allclose(
            rates, expected * ive(0, beta), rtol=1e-13, atol=1e-300
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
    rates = circle.growth_rate(k, beta, False, d=d)
    np.testing.assert_allclose(rates, expected, rtol=1e-7, atol=1e-14)
    rates = circle.growth_rate(k, beta, d=d)
    np.testing.assert_allclose(rates, expected / factor[0], rtol=1e-7, atol=1e-10)


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
