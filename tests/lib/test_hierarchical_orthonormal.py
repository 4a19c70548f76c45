"""The kurtosis constant of orthonormal tokens."""

import numpy as np
import pytest
from scipy import integrate
from scipy.special import expit

from lib.attention import softmax
from lib.hierarchical import AttentionLimit, ScaleMixture, orthonormal_constant

SCALES = (0.0, 0.1, 1.0, 5.0, 20.0)


def rng(key=0):
    return np.random.default_rng(key)


def pair_mean(gram, sigma, row, of):
    """E of a function of u for two tokens: one sigmoid of one normal number."""
    spread = sigma * np.sqrt(gram[row, row] * (np.array([1, -1]) @ gram @ [1, -1]))

    def integrand(g):
        s = expit(spread * g)
        u = s**2 * gram[0, 0] + 2 * s * (1 - s) * gram[0, 1] + (1 - s) ** 2 * gram[1, 1]
        return of(u) * np.exp(-(g**2) / 2) / np.sqrt(2 * np.pi)

    edges = [-12, -1, -0.1, -0.01, 0, 0.01, 0.1, 1, 12]
    pieces = zip(edges[:-1], edges[1:], strict=True)
    parts = [
        integrate.quad(integrand, *piece, epsabs=1e-14, limit=200)[0]
        for piece in pieces
    ]
    return sum(parts)


@pytest.mark.parametrize("sigma", SCALES[1:])
@pytest.mark.parametrize("m", [2, 3, 4, 8, 40])
def test_orthonormal_tokens_agree_with_their_laplace_integral(m, sigma):
    """Two methods that share nothing; the error estimate knows how far they differ."""
    law, exact = AttentionLimit(np.eye(m), 3, sigma), orthonormal_constant(m, sigma)
    error = 3 * law.error("excess_kurtosis")
    assert abs(law.kurtosis_constant() - exact) <= 4.5 * error + 1e-8
    wanted = {2: 1e-13, 3: 1e-6, 4: 1e-3, 8: 3e-3, 40: 0.02}[m]
    assert error <= wanted


def test_laplace_integral_agrees_with_quadrature_and_draws():
    for sigma in (0.3, 1.0, 2.0, 8.0, 50.0):
        mean = pair_mean(np.eye(2), sigma, 0, lambda u: u)
        square = pair_mean(np.eye(2), sigma, 0, lambda u: u * u)
        exact = 3 * (square / mean**2 - 1)
        assert orthonormal_constant(2, sigma) == pytest.approx(exact, abs=2e-13)
    s = softmax(1.3 * rng(1).standard_normal((400_000, 5)))
    u = ScaleMixture((s**2).sum(axis=-1))
    gap = u.excess_kurtosis() - orthonormal_constant(5, 1.3)
    assert abs(gap) <= 5 * u.error("excess_kurtosis") <= 0.01
    fine = AttentionLimit(np.eye(4), 1, 1.0, tol=1e-13, nodes=2**21)
    constant = fine.kurtosis_constant()
    assert constant == pytest.approx(orthonormal_constant(4, 1.0), abs=1e-12)
    assert constant == pytest.approx(0.243318425220, abs=1e-11)
    assert orthonormal_constant(1, 3.0) == orthonormal_constant(7, 0.0) == 0


def test_kurtosis_constant_has_its_three_regimes():
    for m in (2, 5, 100):
        small = orthonormal_constant(m, 0.05) / (6 * 0.05**4 * (m - 1) / m**2)
        assert small == pytest.approx(1, abs=0.02)
    for sigma in (0.5, 1.0):
        a, b, c = np.exp(np.array([4, 2, 1]) * sigma**2)
        many = 2**22 * orthonormal_constant(2**22, sigma) / 3
        assert many == pytest.approx(a - 4 * b + 4 * c - 1, rel=1e-3, abs=0)
    # Freezing: c → θ/(1−θ) with θ = √(2 log m)/σ, slower than 1/log m.
    for theta, limit in ((1 / 2, 1.0), (1 / 3, 0.5)):
        logs = np.log(2.0) * np.array([10, 20, 40, 53])
        scales = np.sqrt(2 * logs) / theta
        sizes = np.round(np.exp(logs)).astype(int)
        pairs = zip(sizes, scales, strict=True)
        gaps = np.array([1 - orthonormal_constant(int(m), s) / limit for m, s in pairs])
        assert (np.diff(gaps) < 0).all() and (np.diff(gaps * logs) > 0).all()
        assert gaps[-1] < 0.3 * gaps[0]
