"""The limits have the moments of wide layers; their paths have the laws of the limits.

Constants are protected by conditional moments of one layer or one step: laws at a later
time hardly feel them. Laws compare independent methods.
"""

from itertools import product

import numpy as np
import pytest
from scipy.special import digamma, polygamma
from scipy.stats import ks_1samp, ks_2samp, norm

from lib.attention import shaped_attention
from lib.claims import convergence_order
from lib.core import wishart
from lib.gram import ShapedLayer
from lib.gram import simulate as simulate_chain
from lib.sde import (
    BlockSDE,
    CovarianceSDE,
    Limit,
    LinearSDE,
    ReluSDE,
    SmoothSDE,
    explicit_euler,
    hitting_probability,
    simulate,
    stepping,
)

ATTENTION = CovarianceSDE(0.7, 0.8)
LIMITS = [
    LinearSDE(0.7),
    ATTENTION,
    CovarianceSDE(0.7, 0.8, heads=4, output_matrix=True),
    ReluSDE((1.0, -2.0)),
    ReluSDE((1.0, -1.0), branch=0.6),
    SmoothSDE(1.0, 0.5, 1.5),
    SmoothSDE(0.3, -2.0, branch=0.6),
    BlockSDE((ATTENTION, ReluSDE((2.0, -1.0), branch=0.7))),
]


def rng(key=0):
    return np.random.default_rng(key)


def random_gram(m, key=0):
    tokens = rng(key + 100 * m).standard_normal((m, m + 2))
    gram = tokens @ tokens.T
    return 1.5 * m * gram / np.trace(gram)


def index_sums(gram, branch, tau0, heads=1):
    """Drift, attention noise and linear noise as sums over indices, in four indices.

    From E[Y_ad Y_bw] = n_k V_ab V_dw alone: S1 is the covariance of the first order of
    the softmax, S2 twice the mean of its second order, times n τ0².
    """
    m, v = len(gram), np.diag(gram)
    mean = gram.mean(axis=1)
    inner = gram - mean[:, None] - mean[None, :] + gram.mean()
    s1 = np.einsum("ab,dw->adbw", gram, inner) / m**2
    s2 = v[:, None] * (v - 2 * mean + 2 * gram.mean() - v.mean()) / m
    drift = np.einsum("nk,anbk->ab", gram, s1)
    second = np.einsum("bn,an->ab", gram, s2)
    drift = branch**2 / tau0**2 * (drift + (second + second.T) / 2)
    attention = (
        np.einsum("ak,dn,bkwn->abdw", gram, gram, s1)
        + np.einsum("ak,wn,bkdn->abdw", gram, gram, s1)
        + np.einsum("bn,dk,anwk->abdw", gram, gram, s1)
        + np.einsum("bn,wk,andk->abdw", gram, gram, s1)
    )
    linear = np.einsum("ad,bw->abdw", gram, gram) + np.einsum("aw,bd->abdw", gram, gram)
    return drift, branch**4 / tau0**2 / heads * attention, linear


def vech(tensor):
    """Four indices to rows and columns of the upper triangle, row by row."""
    pairs = [(i, j) for i in range(len(tensor)) for j in range(i, len(tensor))]
    return np.array([[tensor[(*row, *column)] for column in pairs] for row in pairs])


def covariance(draws):
    """Covariance of the upper triangles of matrices, and its largest standard error."""
    i, j = np.triu_indices(draws.shape[-1])
    flat = draws[:, i, j] - draws[:, i, j].mean(axis=0)
    products = flat[:, :, None] * flat[:, None, :]
    return products.mean(axis=0), products.std(axis=0).max() / np.sqrt(len(draws))


def far(found, expected):
    """Largest error relative to the largest entry."""
    return np.abs(found - expected).max() / np.abs(expected).max()


def critical(tests, *sizes):
    """Critical value of a Kolmogorov distance at 1e-6 over the number of tests."""
    return np.sqrt(-np.log(0.5e-6 / tests) / 2 * sum(1 / size for size in sizes))


# --- coefficients ---------------------------------------------------------------------


@pytest.mark.parametrize("m", [1, 2, 3, 5, 8])
def test_attention_has_its_index_sums(m):
    gram = random_gram(m)
    drift, attention, linear = index_sums(gram, 0.7, 0.8)
    assert far(ATTENTION.drift(gram), drift) < 1e-12 if m > 1 else True
    total = 0.49 * 1.51 * linear + attention
    assert far(ATTENTION.diffusion(gram), vech(total)) < 1e-12
    many = CovarianceSDE(0.7, 0.8, heads=5, output_matrix=True)
    np.testing.assert_allclose(many.drift(gram), drift, rtol=1e-11, atol=1e-15)
    total = 2 * 0.49 * linear + attention / 5
    assert far(many.diffusion(gram), vech(total)) < 1e-12


class Numbers(np.random.Generator):
    """A source of given normals in place of random ones, in the order of the calls."""

    def __init__(self, normals):
        super().__init__(np.random.PCG64(0))
        self.normals, self.used = normals, 0

    def standard_normal(self, size):
        count = int(np.prod(size[1:]))
        self.used += count
        return self.normals[:, self.used - count : self.used].reshape(size)


@pytest.mark.parametrize("sde", LIMITS, ids=str)
@pytest.mark.parametrize("m", [1, 2, 4])
def test_noise_has_the_covariance_exactly(sde, m):
    """The noise is linear in its normals: unit vectors in their place give its root."""
    gram, parts = random_gram(m), len(getattr(sde, "parts", [0]))
    count = 2 * parts * m**2
    given = Numbers(np.eye(count))
    grams = np.broadcast_to(gram, (count, m, m))
    draws = sde.noise(grams, rng=given)
    np.testing.assert_array_equal(draws, draws.swapaxes(-1, -2))
    i, j = np.triu_indices(m)
    flat = draws[:, i, j]
    assert far(flat.T @ flat, sde.diffusion(gram)) < 1e-12


@pytest.mark.parametrize("sde", LIMITS, ids=str)
def test_tokens_have_no_order_and_batches_no_memory(sde):
    gram, order = random_gram(4), [2, 0, 3, 1]
    moved = gram[order][:, order]
    np.testing.assert_allclose(
        sde.drift(moved), sde.drift(gram)[order][:, order], atol=1e-14, rtol=0
    )
    i, j = np.triu_indices(4)
    lookup = np.zeros((4, 4), int)
    lookup[i, j] = lookup[j, i] = np.arange(10)
    where = lookup[order][:, order][i, j]
    np.testing.assert_allclose(
        sde.diffusion(moved), sde.diffusion(gram)[where][:, where], atol=1e-14, rtol=0
    )
    stack = np.stack([[gram, moved], [2 * gram, np.eye(4)]])
    for function in (sde.drift, sde.diffusion):
        single = [[function(one) for one in row] for row in stack]
        np.testing.assert_allclose(function(stack), single, rtol=1e-13, atol=1e-14)
    # The same generator gives the same noise, another shape of batch another draw.
    one, two = sde.noise(stack, rng=rng(1)), sde.noise(stack, rng=rng(1))
    np.testing.assert_array_equal(one, two)


def test_attention_is_cubic_and_moves_only_differences():
    gram = random_gram(4)
    np.testing.assert_allclose(ATTENTION.drift(3 * gram), 27 * ATTENTION.drift(gram))
    token = rng(2).standard_normal((3, 1))
    collapsed = np.ones((3, 3)) * float((token.T @ token)[0, 0])
    np.testing.assert_allclose(ATTENTION.drift(collapsed), 0, atol=1e-13, rtol=0)
    linear = LinearSDE(0.7).diffusion(collapsed)
    np.testing.assert_allclose(ATTENTION.diffusion(collapsed), linear, rtol=1e-12)
    # m = 1, and m = 2 where only the first term is left.
    assert ATTENTION.drift([[2.0]]) == 0
    assert ATTENTION.diffusion([[2.0]]) == pytest.approx(0.49 * 1.51 * 8)
    gram = random_gram(2)
    distance = gram[0, 0] + gram[1, 1] - 2 * gram[0, 1]
    expected = 0.49 / (16 * 0.64) * distance**2 * gram
    np.testing.assert_allclose(ATTENTION.drift(gram), expected, rtol=1e-13)


@pytest.mark.parametrize("heads", [1, 3])
def test_distance_of_two_tokens_is_a_diffusion_by_itself(heads):
    """Drift and variance of Δ depend on Δ alone, as simulate_distance has it."""
    sde = CovarianceSDE(0.7, 0.8, heads=heads)
    for key in range(5):
        gram = random_gram(2, key)
        contrast = np.array([1.0, -2.0, 1.0])  # of V11, V12, V22
        d = contrast @ gram[np.triu_indices(2)]
        drift = contrast @ sde.drift(gram)[np.triu_indices(2)]
        assert drift == pytest.approx(0.49 / 16 / 0.64 * d**3, rel=1e-12, abs=0)
        variance = contrast @ sde.diffusion(gram) @ contrast
        q, h = 0.49 * 1.51, 0.49**2 / 4 / 0.64 / heads
        assert variance == pytest.approx(2 * q * d**2 + h * d**4, rel=1e-12, abs=0)


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


def test_zero_tokens_are_fixed():
    gram = np.diag([1.0, 0.0, 2.0])
    for sde in LIMITS:
        assert (sde.drift(gram)[1] == 0).all()
        found = simulate(sde, gram, 0.1, 16, paths=3, rng=rng()).states
        np.testing.assert_array_equal(found[:, :, 1], 0)
        # A rounding below 0 is no NaN.
        near = np.diag([1.0, -1e-15, 2.0])
        assert np.isfinite(sde.drift(near)).all()
        assert np.isfinite(sde.noise(near, rng=rng())).all()
        assert np.isfinite(simulate(sde, near, 0.1, 4, paths=2, rng=rng()).states).all()


def test_parts_of_a_block_add():
    parts = ATTENTION, ReluSDE((2.0, -1.0), branch=0.7), SmoothSDE(1.0, 0.5)
    gram = random_gram(3)
    for name in ("drift", "diffusion"):
        total = sum(getattr(part, name)(gram) for part in parts)
        found = getattr(BlockSDE(parts), name)(gram)
        np.testing.assert_allclose(found, total, rtol=1e-14)


# --- moments of one layer -------------------------------------------------------------


WIDE = 10**6  # a bias of order 1/n is not seen
GRAM4 = random_gram(4)


@pytest.fixture(scope="module")
def changes():
    """n γ²(AVAᵀ − V) for scores of both signs and wide keys: (2, draws, m, m)."""
    root = np.linalg.cholesky(GRAM4)
    scores = root @ rng(5).standard_normal((100_000, 4, 4)) @ root.T
    temperature = ShapedLayer(WIDE, 1, 0.0, 1.0, 0.8).temperature
    A = np.stack([shaped_attention(sign * scores, temperature) for sign in (1, -1)])
    return WIDE * 0.49 * (A @ GRAM4 @ A.swapaxes(-1, -2) - GRAM4)


def test_attention_drift_is_that_of_wide_layers(changes):
    """The mean of both signs has no first order left to average out."""
    each = changes.mean(axis=0)
    drift, stderr = each.mean(axis=0), each.std(axis=0).max() / np.sqrt(len(each))
    expected = ATTENTION.drift(GRAM4)
    tolerance = 0.03 * np.abs(expected).max()
    assert 4 * stderr < tolerance
    assert np.abs(drift - expected).max() < tolerance
    # No second order, its half forgotten, no centering, γ⁴: all are farther off.
    J, v = np.eye(4) - 0.25, np.diag(GRAM4)
    centered = J @ GRAM4 @ J
    outer = np.outer(v, GRAM4 @ J @ np.diag(centered)) / 8
    first, second = np.sum(centered**2) * GRAM4 / 16, outer + outer.T
    np.testing.assert_allclose(0.49 / 0.64 * (first + second), expected)
    bare = np.sum(GRAM4**2) * GRAM4 / 16
    for wrong in (first, first + 2 * second, bare + second, 0.49 * (first + second)):
        assert np.abs(drift - 0.49 / 0.64 * wrong).max() > 2 * tolerance


@pytest.mark.parametrize("heads", [1, 4])
def test_attention_noise_is_that_of_wide_layers(changes, heads):
    """Independent heads: the mean of their changes has less noise."""
    groups = changes[0].reshape(-1, heads, 4, 4).mean(axis=1) / np.sqrt(WIDE)
    found, stderr = covariance(groups)
    all_noise = CovarianceSDE(0.7, 0.8, heads=heads).diffusion(GRAM4)
    expected = all_noise - LinearSDE(0.7).diffusion(GRAM4)
    tolerance = 0.03 * np.sqrt(heads) * np.abs(expected).max()
    assert 4 * stderr < tolerance
    assert np.abs(found - expected).max() < tolerance
    # γ² for γ⁴.
    assert np.abs(found - expected / 0.49).max() > 2 * tolerance


def test_covariance_of_a_layer_is_that_of_the_chain():
    gram, sde = random_gram(3), CovarianceSDE(0.7, 0.4)
    layer = ShapedLayer(WIDE, 8, np.sqrt(0.51), 0.7, 0.4)
    chain = simulate_chain(gram, layer, 1, paths=150_000, rng=rng(6))
    found, stderr = covariance(np.sqrt(WIDE) * (chain.states[1] - gram))
    expected = sde.diffusion(gram)
    tolerance = 0.03 * np.abs(expected).max()
    assert 4 * stderr < tolerance
    assert np.abs(found - expected).max() < tolerance
    # Without attention noise, or with γ² or γ⁴ in place of q = γ²(2 − γ²).
    _, noise, linear = index_sums(gram, 0.7, 0.4)
    for q, share in ((0.49 * 1.51, 0), (0.49, 1), (0.49**2, 1)):
        wrong = vech(q * linear + share * noise)
        assert np.abs(found - wrong).max() > 2 * tolerance


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
    found, stderr = covariance(np.sqrt(width) * np.concatenate(draws))
    sde = (
        ReluSDE(branch=0.6)
        if activated
        else CovarianceSDE(0.6, 1e9, output_matrix=True)
    )
    expected = sde.diffusion(gram)
    tolerance = 0.12 * np.abs(expected).max()
    assert 4 * stderr < tolerance
    assert np.abs(found - expected).max() < tolerance
    single = LinearSDE(0.6).diffusion(gram)
    assert np.abs(found - single).max() > tolerance


# --- one step of the integrator -------------------------------------------------------


def silent(sde):
    """The same limit without linear noise, so that the rest can be seen exactly."""
    kind = type(sde)
    quiet = type(kind.__name__, (kind,), {"linear_noise": 0.0})
    return quiet(**vars(sde))


def step_moments(sde, gram, step):
    """Mean and covariance after one step: Gauss–Hermite in each of nine normals."""
    m = len(gram)
    points = product(*[range(3)] * m**2)
    nodes = np.array([np.array([-1, 0, 1]) * np.sqrt(3)])[0][np.array(list(points))]
    weights = np.where(nodes == 0, 2 / 3, 1 / 6).prod(axis=1)
    source = Numbers(np.hstack([nodes, np.zeros_like(nodes)]))
    root = np.broadcast_to(np.linalg.cholesky(gram), (len(nodes), m, m))
    after = sde._advance(root, np.full(len(nodes), step), source)
    after = after @ after.swapaxes(-1, -2)
    mean = np.einsum("p,pij->ij", weights, after)
    i, j = np.triu_indices(m)
    flat = (after - mean)[:, i, j]
    return mean, (flat * weights[:, None]).T @ flat


STEPS = 2.0 ** -np.arange(6, 11)


@pytest.mark.parametrize("heads", [1, 3])
def test_attention_step_has_the_moments_of_the_limit(heads):
    """Mean and covariance up to the square of the step: weak order 1."""
    sde, gram = silent(CovarianceSDE(0.7, 0.8, heads=heads)), random_gram(3)
    drift = covariance_ = ()
    for step in STEPS:
        mean, noise = step_moments(sde, gram, step)
        drift += (far((mean - gram) / step, sde.drift(gram)),)
        covariance_ += (far(noise / step, sde.diffusion(gram)),)
    for errors in (drift, covariance_):
        assert errors[-1] < 0.01
        assert convergence_order(STEPS, errors)[0] == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("sde", [LIMITS[3], *LIMITS[4:7]], ids=str)
def test_activation_step_has_the_drift_of_the_limit(sde):
    quiet, gram = silent(sde), random_gram(3)
    errors = []
    for step in STEPS:
        root = quiet._advance(np.linalg.cholesky(gram)[None], np.array([step]), rng())
        change = root[0] @ root[0].T - gram
        errors.append(far(change / step, sde.drift(gram)))
    assert errors[-1] < 0.01
    assert convergence_order(STEPS, errors)[0] == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("degrees", [2.3, 3.0, 17.8])
def test_bartlett_factor_takes_real_degrees(degrees):
    """Mean k and covariance k(δδ + δδ), by the same moments of chi-square."""
    factor = wishart.bartlett(200_000, 3, degrees, rng(8))
    assert (np.triu(factor, 1) == 0).all()
    draws = factor @ factor.swapaxes(-1, -2)
    noise = draws.std(axis=0) / np.sqrt(len(draws))
    assert (np.abs(draws.mean(axis=0) - degrees * np.eye(3)) < 5 * noise).all()
    found, stderr = covariance(draws)
    expected = degrees * LinearSDE().diffusion(np.eye(3))
    assert np.abs(found - expected).max() < 5 * stderr < 0.1 * 2 * degrees
    each = wishart.bartlett(3, 2, [1.5, 10.0, 1e16], rng(8))
    assert each[2, 1, 1] == pytest.approx(1e8, rel=1e-6, abs=0)


# --- laws of paths --------------------------------------------------------------------


def statistics(states):
    """Bounded numbers that a wrong law would change: a cosine, a size, a volume."""
    size = np.trace(states, axis1=-2, axis2=-1)
    cosine = states[:, 0, 1] / np.sqrt(states[:, 0, 0] * states[:, 1, 1])
    return cosine, size, np.linalg.slogdet(states)[1]


def test_volume_of_the_linear_limit_is_log_normal():
    """log det V ~ N(−½ q m (m + 1) t, 2 m q t): the law of the limit itself."""
    gram, paths, time = random_gram(3), 4000, 0.5
    found = simulate(
        LinearSDE(0.8), gram, time, 256, paths=paths, rng=rng(9), save_every=256
    )
    volume = np.linalg.slogdet(found.states[-1])[1] - np.linalg.slogdet(gram)[1]
    q = 0.64 * 1.36
    law = norm(-6 * q * time, np.sqrt(6 * q * time))
    assert ks_1samp(volume, law.cdf).statistic < critical(1, paths)
    wrong = norm(-6 * 0.64 * time, np.sqrt(6 * 0.64 * time))
    assert ks_1samp(volume, wrong.cdf).statistic > critical(1, paths)


def test_volume_has_weak_order_one():
    """With k = steps/(qT) degrees of freedom the law of log det is known exactly."""
    q, time, m, paths = 0.64 * 1.36, 0.5, 2, 20_000
    steps = 2 ** np.arange(2, 9)
    k = steps / (q * time)
    order = np.arange(m)[:, None]
    mean = steps * (digamma((k - order) / 2) + np.log(2 / k)).sum(axis=0)
    variance = steps * polygamma(1, (k - order) / 2).sum(axis=0)
    for errors in (mean + m * (m + 1) / 2 * q * time, variance - 2 * m * q * time):
        slope = convergence_order(steps[2:], np.abs(errors[2:]))[0]
        assert slope == pytest.approx(-1, abs=0.1)
    found = simulate(LinearSDE(0.8), np.eye(2), time, 8, paths=paths, rng=rng(10))
    volume = np.linalg.slogdet(found.states[-1])[1]
    at = list(steps).index(8)
    assert abs(volume.mean() - mean[at]) < 5 * np.sqrt(variance[at] / paths)
    assert volume.var() == pytest.approx(
        variance[at], rel=5 * np.sqrt(2 / paths), abs=0
    )


@pytest.mark.parametrize(
    "sde",
    [
        CovarianceSDE(0.8, 2.0),
        CovarianceSDE(0.8, 2.0, heads=3, output_matrix=True),
        ReluSDE((2.0, -1.0), branch=0.6),
        SmoothSDE(1.0, -2.0),
        BlockSDE((CovarianceSDE(0.6, 2.0), ReluSDE((2.0, -1.0), branch=0.6))),
    ],
    ids=str,
)
def test_paths_have_the_law_of_explicit_euler_with_small_steps(sde):
    gram, paths = random_gram(2), 2500
    good = simulate(sde, gram, 0.3, 48, paths=paths, rng=rng(11), save_every=48)
    other = explicit_euler(
        sde, gram, 0.3, 192, paths=paths, rng=rng(12), save_every=192
    )
    slack = max(good.stopped_share, other.stopped_share)
    assert slack < 0.01
    ends = [run.states[-1][run.stopped == np.inf] for run in (good, other)]
    for one, two in zip(*map(statistics, ends), strict=True):
        assert ks_2samp(one, two).statistic < critical(15, paths, paths) + slack


def test_paths_have_the_law_of_the_chain():
    gram, paths, sde = random_gram(3), 3000, CovarianceSDE(0.7, 1.5)
    layer = ShapedLayer(128, 128, np.sqrt(0.51), 0.7, 1.5)
    chain = simulate_chain(gram, layer, 64, paths=paths, rng=rng(13)).states[-1]
    found = simulate(
        sde, gram, 0.5, 64, paths=paths, rng=rng(14), save_every=64
    ).states[-1]
    wrong = simulate(
        LinearSDE(0.95), gram, 0.5, 64, paths=paths, rng=rng(14), save_every=64
    ).states[-1]
    distances = [
        [
            ks_2samp(one, two).statistic
            for one, two in zip(statistics(chain), s, strict=True)
        ]
        for s in (statistics(found), statistics(wrong))
    ]
    assert max(distances[0]) < critical(6, paths, paths)
    assert max(distances[1]) > critical(6, paths, paths)


def test_one_token_of_the_linear_limit_is_log_normal():
    found = simulate(LinearSDE(), [[2.0]], 0.5, 256, paths=4000, rng=rng(15))
    law = norm(np.log(2) - 0.5, 1.0)
    assert ks_1samp(np.log(found.states[-1, :, 0, 0]), law.cdf).statistic < critical(
        1, 4000
    )


@pytest.mark.parametrize("branch", [None, 0.6])
def test_one_token_under_a_smooth_activation_explodes_as_often_as_it_should(branch):
    sde = SmoothSDE(1.0, 0.25, branch=branch)
    expected = sde.explosion_probability([0.0, 1.0, np.inf and 1e300])
    assert expected[0] == 0 and expected[2] == 1
    if branch is None:
        assert expected[1] == pytest.approx(1 - 2 / np.e)  # P(2, 1)
    found = simulate(sde, [[1.0]], 12, 192, paths=4000, rng=rng(16), save_every=192)
    noise = np.sqrt(expected[1] * (1 - expected[1]) / 4000)
    assert abs(found.stopped_share - expected[1]) < 4 * noise + 0.01
    calm = SmoothSDE(0.0, -2.0, branch=branch)
    assert calm.explosion_probability(3.0) == 0
    found = simulate(calm, [[3.0]], 2, 64, paths=500, rng=rng(17), save_every=64)
    assert found.stopped_share == 0


# --- what holds on each path ----------------------------------------------------------


@pytest.mark.parametrize("sde", LIMITS, ids=str)
@pytest.mark.parametrize("m", [1, 4])
def test_states_are_gram_matrices(sde, m):
    gram = random_gram(m)
    found = simulate(sde, gram, 0.5, 32, paths=50, rng=rng(18))
    assert found.states.shape == (33, 50, m, m) and found.stopped.shape == (50,)
    np.testing.assert_array_equal(found.states[0], np.broadcast_to(gram, (50, m, m)))
    np.testing.assert_allclose(found.times, np.arange(33) / 64)
    np.testing.assert_array_equal(found.states, found.states.swapaxes(-1, -2))
    assert np.isfinite(found.states).all()
    least = np.linalg.eigvalsh(found.states)[..., 0]
    assert (least > -1e-12 * np.trace(found.states, axis1=-2, axis2=-1)).all()
    again = simulate(sde, gram, 0.5, 32, paths=50, rng=rng(18))
    np.testing.assert_array_equal(found.states, again.states)


@pytest.mark.parametrize("sde", LIMITS, ids=str)
def test_equal_tokens_stay_equal_to_the_last_digit(sde):
    which = [0, 1, 0, 2, 1]
    gram = random_gram(3)[which][:, which]
    states = simulate(sde, gram, 0.5, 32, paths=20, rng=rng(19)).states
    np.testing.assert_array_equal(states, states[:, :, [2, 4, 0, 3, 1]])
    np.testing.assert_array_equal(states[..., 0, 0], states[..., 0, 2])
    assert (states[-1, :, 0, 0] != states[-1, :, 0, 1]).all()
    ones = simulate(sde, np.ones((3, 3)), 0.5, 32, paths=20, rng=rng(19)).states
    np.testing.assert_array_equal(ones, np.broadcast_to(ones[..., :1, :1], ones.shape))


def test_equal_tokens_stay_equal_whatever_the_order_of_a_sum(monkeypatch):
    """A product of matrices may round equal rows apart; paths mend that at once."""

    def rounded(result):
        return result * (1 + 1e-16 * np.arange(len(result[0]))[:, None] * 7)

    class Rough(LinearSDE):
        def _advance(self, root, step, rng):
            assert (root == root[:, :1]).all()
            return rounded(super()._advance(root, step, rng))

    product_of = stepping.gram_of
    monkeypatch.setattr(stepping, "gram_of", lambda root: rounded(product_of(root)))
    rough = Rough(0.7)._advance(np.ones((1, 4, 4)), np.array([0.1]), rng())
    assert (rough[0, 0] != rough[0, 3]).any()
    ones = simulate(Rough(0.7), np.ones((4, 4)), 0.5, 8, paths=2, rng=rng()).states
    np.testing.assert_array_equal(ones, np.broadcast_to(ones[..., :1, :1], ones.shape))


@pytest.mark.parametrize(("square", "tau0"), [(0.25, 0.5), (0.6, 0.25)])
def test_few_steps_make_no_explosions(square, tau0):
    """γ² = ¼ explodes as often as it should, γ² = 0.6 reaches the level as often."""
    sde, horizon = CovarianceSDE(np.sqrt(square), tau0), 12 * 0.25 / square
    steps = int(2 * horizon) + 4
    found = simulate(
        sde,
        np.eye(2),
        horizon,
        steps,
        paths=2500,
        rng=rng(24),
        save_every=99,
        level=1e4,
    )
    expected = hitting_probability(2.0, 1e4, np.sqrt(square), tau0)
    noise = np.sqrt(expected * (1 - expected) / 2500)
    assert abs(found.stopped_share - expected) < 4 * noise + 0.02


def test_explicit_euler_leaves_the_cone_where_the_other_stays():
    run = dict(gram0=np.eye(4), horizon=1.0, steps=16, paths=500)
    failed = explicit_euler(LinearSDE(np.sqrt(0.5)), rng=rng(20), **run)
    assert failed.stopped_share > 0.3 and failed.states.shape == (17, 500, 4, 4)
    assert np.isfinite(failed.states).all()
    least = np.linalg.eigvalsh(failed.states[-1])[:, 0]
    np.testing.assert_array_equal(least < -1e-12, failed.stopped < np.inf)
    # A path stops at the first matrix that is none, and stays there.
    index = np.searchsorted(failed.times, failed.stopped[failed.stopped < np.inf])
    lost = failed.states[:, failed.stopped < np.inf]
    before = lost[index - 1, np.arange(len(index))]
    assert (np.linalg.eigvalsh(before)[:, 0] > -1e-12).all()
    np.testing.assert_array_equal(lost[index, np.arange(len(index))], lost[-1])
    assert simulate(LinearSDE(np.sqrt(0.5)), rng=rng(20), **run).stopped_share == 0


def test_exploded_paths_are_frozen_at_their_time():
    sde = CovarianceSDE(0.4, 0.5)
    run = dict(gram0=2 * np.eye(3), horizon=2.0, steps=32, paths=200)
    found = simulate(sde, rng=rng(21), level=1e4, **run)
    gone = found.stopped < np.inf
    assert 0.2 < found.stopped_share == gone.mean() < 1
    assert found.stopped.min() > 0 and found.stopped[gone].max() <= 2.0
    trace = np.trace(found.states, axis1=-2, axis2=-1)
    for path in np.flatnonzero(gone):
        after = found.times >= found.stopped[path]
        assert (trace[after, path] > 1e4).all() and (trace[~after, path] <= 1e4).all()
        frozen = found.states[after, path]
        np.testing.assert_array_equal(frozen, np.broadcast_to(frozen[0], frozen.shape))
    assert (trace[:, ~gone] <= 1e4).all()
    # An explosion takes as long to 1e4 as to 1e8, up to a small share.
    higher = simulate(sde, rng=rng(22), level=1e8, **run)
    assert abs(higher.stopped_share - found.stopped_share) < 0.15


def test_states_are_kept_as_asked():
    run = dict(gram0=np.eye(2), horizon=0.5, steps=10, paths=3)
    for function in (simulate, explicit_euler):
        every = function(ATTENTION, rng=rng(23), **run)
        some = function(ATTENTION, rng=rng(23), save_every=4, **run)
        np.testing.assert_array_equal(some.states, every.states[[0, 4, 8, 10]])
        np.testing.assert_array_equal(some.times, every.times[[0, 4, 8, 10]])
        last = function(ATTENTION, rng=rng(23), save_every=99, **run)
        np.testing.assert_array_equal(last.states, every.states[[0, 10]])


def test_too_few_steps_are_told_how_many():
    q, m = 0.49 * 1.51, 4
    least = int(np.ceil(m * q * 2.0))
    run = dict(gram0=np.eye(m), horizon=2.0, paths=2, rng=rng())
    with pytest.raises(
        ValueError, match=f"steps must be at least {least} to .* steps = "
    ):
        simulate(LinearSDE(0.7), steps=least - 1, **run)
    assert np.isfinite(simulate(LinearSDE(0.7), steps=least, **run).states).all()
    block = BlockSDE((LinearSDE(0.7), ReluSDE(branch=0.7)))
    with pytest.raises(ValueError, match=f"at least {int(np.ceil(m * 0.98 * 2))} to"):
        simulate(block, steps=least, **run)


def test_nothing_moves_without_a_branch():
    gram = random_gram(3)
    for sde in (LinearSDE(0), CovarianceSDE(0.0, 1.0), ReluSDE(branch=0.0)):
        assert (sde.drift(gram) == 0).all() and (sde.diffusion(gram) == 0).all()
        found = simulate(sde, gram, 1.0, 4, paths=2, rng=rng())
        np.testing.assert_allclose(
            found.states, np.broadcast_to(gram, found.states.shape), rtol=1e-13
        )


@pytest.mark.parametrize(
    ("gram", "message"),
    [
        ([[1.0, 2.0], [2.0, 1.0]], "must be positive semidefinite"),
        ([[1.0, 0.5], [0.2, 1.0]], "must be symmetric"),
        ([[1.0, np.nan], [np.nan, 1.0]], "must be finite"),
        (np.ones((2, 3)), "must (be square|have shape)"),
        (1e300 * np.eye(2), "must not exceed"),
    ],
)
def test_gram_matrices_are_checked(gram, message):
    for sde in LIMITS:
        for call in (sde.drift, sde.diffusion, lambda v, s=sde: s.noise(v, rng=rng())):
            with pytest.raises(ValueError, match=f"gram {message}"):
                call(gram)
            with pytest.raises(ValueError, match=f"gram {message}"):
                call([np.eye(np.shape(gram)[1])[: len(gram)], gram])
        for function in (simulate, explicit_euler):
            with pytest.raises(ValueError, match=f"gram0 {message}"):
                function(sde, gram, 1.0, 99, paths=1, rng=rng())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CovarianceSDE(0.5, 0.0), "tau0 must be from .*, got 0.0"),
        (lambda: CovarianceSDE(0.5, -1.0), "tau0 must be from .*, got -1.0"),
        (lambda: CovarianceSDE(1.5, 1.0), "branch must be from 0 to 1, got 1.5"),
        (lambda: CovarianceSDE(0.5, 1.0, heads=0), "heads must be an integer"),
        (
            lambda: CovarianceSDE(0.5, 1.0, output_matrix=1),
            "output_matrix must be True or False",
        ),
        (lambda: LinearSDE(-0.1), "branch must be from 0 to 1, got -0.1"),
        (lambda: ReluSDE(2.0), "slopes must be a pair"),
        (lambda: ReluSDE((1.0, np.nan)), "slopes must be from"),
        (lambda: ReluSDE(branch=2), "branch must be from 0 to 1, got 2"),
        (lambda: SmoothSDE(1.0, 1.0, 0.0), "scale must be from"),
        (lambda: SmoothSDE(np.inf, 1.0), "second must be from"),
        (lambda: BlockSDE(()), "parts must be a tuple of limits"),
        (lambda: BlockSDE((LinearSDE(), 1)), "parts must be a tuple of limits"),
        (lambda: simulate(1, np.eye(2), 1, 9, paths=1, rng=rng()), "sde must be a"),
        (
            lambda: simulate(ATTENTION, np.eye(2), 1, 9, paths=1, rng=rng(), level=2),
            "gram0 must have a trace below level = 2, got 2.0",
        ),
    ],
)
def test_bad_arguments_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_limits_share_one_face():
    assert all(isinstance(sde, Limit) for sde in LIMITS)
    with pytest.raises(TypeError):
        Limit()
