"""The energy and its growth, against derivatives and closed forms."""

from functools import partial

import numpy as np
import pytest
from scipy.special import logsumexp

from lib import sphere

RNG = np.random.default_rng(0)

X = sphere.uniform_tokens(7, 4, rng=RNG)


def proj(x, y):
    return y - np.sum(x * y, axis=-1, keepdims=True) * x


def energy_by_definition(x, beta):
    return np.exp(beta * x @ x.T).mean() / (2 * beta)


@pytest.mark.parametrize("beta", [2.0, -2.0])
def test_both_fields_are_gradients_of_the_energy(beta):
    """Central differences along tangent directions: n ∂E, over Z for the normalized."""
    h, n = 1e-5, len(X)
    gradient = np.zeros_like(X)
    for i in range(n):
        for a in range(4):
            step = np.zeros_like(X)
            step[i, a] = h
            rise = energy_by_definition(X + step, beta)
            gradient[i, a] = (rise - energy_by_definition(X - step, beta)) / (2 * h)
    gradient = n * proj(X, gradient)
    unnormalized = np.exp(abs(beta)) * sphere.attention_field(X, beta, False)
    np.testing.assert_allclose(unnormalized, gradient, atol=1e-8, rtol=0)
    z = np.exp(beta * X @ X.T).mean(axis=1, keepdims=True)
    np.testing.assert_allclose(sphere.partition_function(X, beta)[:, None], z, 1e-13)
    normalized = sphere.attention_field(X, beta)
    np.testing.assert_allclose(normalized, gradient / z, atol=1e-8, rtol=0)
    # A wrong metric would be seen.
    assert np.abs(normalized - gradient).max() > 0.1


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("beta", [3.0, -3.0, 1e-3])
def test_dissipation_is_the_derivative_of_the_energy(beta, normalize):
    energy = partial(sphere.interaction_energy, beta=beta, shifted=True)
    h = 1e-2
    states = sphere.simulate(X, beta, 4 * h, 4, normalize=normalize).states
    weights = np.array([1, -8, 0, 8, -1]) / (12 * h)  # fourth-order difference
    rate = sphere.dissipation(states[2], beta, normalize, shifted=True)
    assert weights @ energy(states) == pytest.approx(
        rate, rel=2e-7, abs=1e-11 / abs(beta)
    )
    plain = sphere.dissipation(states[2], beta, normalize)
    assert plain == pytest.approx(np.exp(abs(beta)) * rate, rel=1e-12, abs=0)


def test_energy_has_its_closed_forms():
    one = np.array([[1.0, 0.0]] * 3)
    antipodes = np.array([[1.0, 0.0], [-1.0, 0.0]])
    for beta in (0.5, 4.0, -4.0):
        assert sphere.interaction_energy(one, beta) == pytest.approx(
            np.exp(beta) / (2 * beta), rel=1e-14, abs=0
        )
        assert sphere.interaction_energy(antipodes, beta) == pytest.approx(
            np.cosh(beta) / (2 * beta), rel=1e-14, abs=0
        )
    squares = np.sum((X[:, None] - X) ** 2, axis=-1)
    height = np.exp(-3.0 / 2 * squares).sum() / 2
    shifted = sphere.interaction_energy(X, 3.0, shifted=True)
    assert height == pytest.approx(3 * len(X) ** 2 * shifted, rel=1e-13, abs=0)


def test_shifted_energy_survives_any_beta():
    for beta in (1e4, -1e3, 1e-3):
        log = logsumexp(beta * X @ X.T - abs(beta)) - 2 * np.log(len(X))
        expected = np.exp(log) / (2 * beta)
        energy = sphere.interaction_energy(X, beta, shifted=True)
        assert energy == pytest.approx(expected, rel=1e-9, abs=0)
    # Tokens that are off the sphere by rounding are put back: no factor e^(2e-8 β).
    energy = sphere.interaction_energy((1 + 9e-9) * X, 1e8, shifted=True)
    assert energy == pytest.approx(1 / (2e8 * len(X)), rel=1e-6, abs=0)
    # Near consensus at negative β the energy is tiny and keeps its digits.
    one = np.array([[1.0, 0.0]] * 3)
    assert sphere.interaction_energy(one, -600.0) == pytest.approx(
        np.exp(-600.0) / -1200, rel=1e-12, abs=0
    )


def angles_field(theta, beta, normalize):
    x = np.stack([np.cos(theta), np.sin(theta)], axis=1)
    tangent = np.stack([-np.sin(theta), np.cos(theta)], axis=1)
    return np.sum(sphere.attention_field(x, beta, normalize) * tangent, axis=1)


def test_normalized_model_is_no_plain_gradient_flow():
    """The Jacobian of a gradient flow is symmetric: one model's is, the other's not."""
    theta, h = np.array([0.3, 1.1, 2.9]), 1e-5
    parts = []
    for normalize in (True, False):
        steps = h * np.eye(3)
        columns = [
            angles_field(theta + s, 2.0, normalize)
            - angles_field(theta - s, 2.0, normalize)
            for s in steps
        ]
        jacobian = np.array(columns).T / (2 * h)
        odd = np.linalg.norm(jacobian - jacobian.T) / np.linalg.norm(jacobian)
        parts.append(odd)
    assert parts[0] > 0.1 and parts[1] < 1e-9
