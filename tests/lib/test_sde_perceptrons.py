"""Limits of perceptrons, against wide layers."""

import numpy as np
import pytest

from lib.sde import CovarianceSDE, LinearSDE, ReluSDE, SmoothSDE, simulate


def rng(key=0):
    return np.random.default_rng(key)


def random_gram(m, key=0):
    tokens = rng(key + 100 * m).standard_normal((m, m + 2))
    gram = tokens @ tokens.T
    return 1.5 * m * gram / np.trace(gram)


def covariance(draws):
    """Covariance of the upper triangles of matrices, and its largest standard error."""
    i, j = np.triu_indices(draws.shape[-1])
    flat = draws[:, i, j] - draws[:, i, j].mean(axis=0)
    products = flat[:, :, None] * flat[:, None, :]
    return products.mean(axis=0), products.std(axis=0).max() / np.sqrt(len(draws))


def far(values, expected):
    """Largest error relative to the largest entry."""
    return np.abs(values - expected).max() / np.abs(expected).max()


def wide_kernel(gram, activation, n):
    """n (c E[σ(x)σ(y)] − V) for x, y of law N(0, V), by an integral over the angle.

    For σ of degree 1, or by Gauss–Hermite for a smooth one; c makes E(√c σ(g))² = 1.
    """
    kernel = np.empty_like(gram)
    for i, j in np.ndindex(*gram.shape):
        kernel[i, j] = activation(gram[[i, j]][:, [i, j]], n)
    return n * (kernel / activation(np.ones((2, 2)), n) - gram)


def relu_moment(slopes):
    """E σ(x)σ(y) for slopes 1 + c/√n: homogeneous, so an integral of the angle."""

    def moment(gram, n):
        up, down = 1 + np.array(slopes) / np.sqrt(n)
        size = np.sqrt(gram[0, 0] * gram[1, 1])
        turn = np.arccos(np.clip(gram[0, 1] / size, -1, 1))
        # On each arc without a kink the integrand is a trigonometric polynomial.
        kinks = np.sort(
            np.mod(np.array([1, 3, 1, 3]) * np.pi / 2 + [0, 0, turn, turn], 2 * np.pi)
        )
        x, w = np.polynomial.legendre.leggauss(20)
        total = 0.0
        for a, b in zip(kinks, [*kinks[1:], kinks[0] + 2 * np.pi], strict=True):
            angle = (a + b) / 2 + (b - a) / 2 * x
            one, two = np.cos(angle), np.cos(angle - turn)
            values = (
                one * np.where(one > 0, up, down) * two * np.where(two > 0, up, down)
            )
            total += (b - a) / 2 * (w * values).sum()
        return size * total / np.pi  # E r² = 2 over the 2π of the angle

    return moment


def smooth_moment(function, scale):
    def moment(gram, n):
        s = scale * np.sqrt(n)
        x, w = np.polynomial.hermite_e.hermegauss(40)
        values, vectors = np.linalg.eigh(gram)
        root = vectors * np.sqrt(np.maximum(values, 0))
        one = root[0, 0] * x[:, None] + root[0, 1] * x
        two = root[1, 0] * x[:, None] + root[1, 1] * x
        products = s * function(one / s) * s * function(two / s)
        return w @ products @ w / (2 * np.pi)

    return moment


@pytest.mark.parametrize("branch", [None, 0.6])
def test_relu_drift_is_that_of_a_wide_layer(branch):
    gram, weight = random_gram(3), 1 if branch is None else 0.36
    sde = ReluSDE((1.5, -1.5), branch=branch)
    errors = [
        far(sde.drift(gram), weight * wide_kernel(gram, relu_moment((1.5, -1.5)), n))
        for n in 4.0 ** np.arange(5, 10)
    ]
    assert errors[-1] < 1e-5
    # Opposite slopes: the bias is exactly d²/(n + d²), d = (c₊ − c₋)/2.
    assert errors[0] == pytest.approx(1.5**2 / 1024, rel=0.01, abs=0)
    # Other slopes have the same limit, at the rate of a root.
    other = ReluSDE((0.0, -3.0), branch=branch).drift(gram)
    np.testing.assert_allclose(other, sde.drift(gram), rtol=1e-14)
    slow = weight * wide_kernel(gram, relu_moment((0.0, -3.0)), 1e12)
    assert far(sde.drift(gram), slow) < 1e-3


@pytest.mark.parametrize(
    ("function", "second", "third"),
    [(np.tanh, 0.0, -2.0), (np.expm1, 1.0, 1.0), (lambda x: x + x**2, 2.0, 0.0)],
    ids=["tanh", "expm1", "square"],
)
@pytest.mark.parametrize("branch", [None, 0.6])
def test_smooth_drift_is_that_of_a_wide_layer(function, second, third, branch):
    gram, weight = random_gram(3), 1 if branch is None else 0.36
    sde = SmoothSDE(second, third, 1.5, branch=branch)
    wide = weight * wide_kernel(gram, smooth_moment(function, 1.5), 1e5)
    assert far(sde.drift(gram), wide) < 1e-3
    growth = (0.75 * second**2 + third) / 1.5**2
    assert sde.drift([[2.0]]) == pytest.approx(weight * growth * 2)


@pytest.mark.parametrize(("second", "third"), [(3.0, 0.0), (0.0, 6.75), (0.0, -6.75)])
@pytest.mark.parametrize("branch", [None, 0.1])
def test_a_slow_branch_does_not_divide_the_steps(branch, second, third, monkeypatch):
    """An activation moves V as fast as γ² tells, and steps are divided as for that."""
    calls, advance = [], SmoothSDE._advance

    def recorded(self, root, step, rng):
        calls.append(step)
        return advance(self, root, step, rng)

    monkeypatch.setattr(SmoothSDE, "_advance", recorded)
    sde = SmoothSDE(second, third, branch=branch)
    simulate(sde, [[1.0]], 0.1, 4, paths=3, rng=rng(5), save_every=4)
    assert len(calls) == 4 if branch else len(calls) > 4


@pytest.mark.parametrize("activated", [True, False])
def test_two_matrices_in_the_branch_have_twice_the_noise(activated):
    """Real weights: q = 2γ² for a residual perceptron, and for an output matrix."""
    width, paths, gram = 64, 10_000, random_gram(2)
    x = np.sqrt(width) * np.linalg.cholesky(gram) @ np.eye(2, width)
    up, down = (1 + 1 / 8, 1 - 1 / 8) if activated else (1.0, 1.0)
    draws, source = [], rng(7)
    for _ in range(10):
        inner = x @ source.standard_normal((paths // 10, width, width)) / np.sqrt(width)
        inner = np.where(inner > 0, up, down) * inner * np.sqrt(2 / (up**2 + down**2))
        weights = source.standard_normal((paths // 10, width, width))
        x_next = 0.8 * x + 0.6 * inner @ weights / np.sqrt(width)
        draws.append(x_next @ x_next.swapaxes(-1, -2) / width)
    estimate, stderr = covariance(np.sqrt(width) * np.concatenate(draws))
    sde = (
        ReluSDE(branch=0.6)
        if activated
        else CovarianceSDE(0.6, 1e9, output_matrix=True)
    )
    expected = sde.diffusion(gram)
    tolerance = 0.12 * np.abs(expected).max()
    assert 4 * stderr < tolerance
    assert np.abs(estimate - expected).max() < tolerance
    single = LinearSDE(0.6).diffusion(gram)
    assert np.abs(estimate - single).max() > tolerance


@pytest.mark.parametrize("branch", [None, 0.6])
def test_one_token_under_a_smooth_activation_explodes_as_often_as_it_should(branch):
    sde = SmoothSDE(1.0, 0.25, branch=branch)
    expected = sde.explosion_probability([0.0, 1.0, np.inf and 1e300])
    assert expected[0] == 0 and expected[2] == 1
    if branch is None:
        assert expected[1] == pytest.approx(1 - 2 / np.e)  # P(2, 1)
    run = simulate(sde, [[1.0]], 12, 192, paths=4000, rng=rng(16), save_every=192)
    noise = np.sqrt(expected[1] * (1 - expected[1]) / 4000)
    assert abs(run.stopped_share - expected[1]) < 4 * noise + 0.01
    calm = SmoothSDE(0.0, -2.0, branch=branch)
    assert calm.explosion_probability(3.0) == 0
    run = simulate(calm, [[3.0]], 2, 64, paths=500, rng=rng(17), save_every=64)
    assert run.stopped_share == 0
