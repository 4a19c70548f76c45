"""The limits have the moments of wide layers; their paths have the laws of the limits.

Constants are protected by conditional moments of one layer or one step: laws at a later
time hardly feel them. Laws compare independent methods."""

import numpy as np
import pytest

from lib.attention import shaped_attention
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
    simulate,
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


def far(values, expected):
    """Largest error relative to the largest entry."""
    return np.abs(values - expected).max() / np.abs(expected).max()


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


def test_zero_tokens_are_fixed():
    gram = np.diag([1.0, 0.0, 2.0])
    for sde in LIMITS:
        assert (sde.drift(gram)[1] == 0).all()
        states = simulate(sde, gram, 0.1, 16, paths=3, rng=rng()).states
        np.testing.assert_array_equal(states[:, :, 1], 0)
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
        whole = getattr(BlockSDE(parts), name)(gram)
        np.testing.assert_allclose(whole, total, rtol=1e-14)


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
    estimate, stderr = covariance(groups)
    all_noise = CovarianceSDE(0.7, 0.8, heads=heads).diffusion(GRAM4)
    expected = all_noise - LinearSDE(0.7).diffusion(GRAM4)
    tolerance = 0.03 * np.sqrt(heads) * np.abs(expected).max()
    assert 4 * stderr < tolerance
    assert np.abs(estimate - expected).max() < tolerance
    # γ² for γ⁴.
    assert np.abs(estimate - expected / 0.49).max() > 2 * tolerance


def test_covariance_of_a_layer_is_that_of_the_chain():
    gram, sde = random_gram(3), CovarianceSDE(0.7, 0.4)
    layer = ShapedLayer(WIDE, 8, np.sqrt(0.51), 0.7, 0.4)
    chain = simulate_chain(gram, layer, 1, paths=150_000, rng=rng(6))
    estimate, stderr = covariance(np.sqrt(WIDE) * (chain.states[1] - gram))
    expected = sde.diffusion(gram)
    tolerance = 0.03 * np.abs(expected).max()
    assert 4 * stderr < tolerance
    assert np.abs(estimate - expected).max() < tolerance
    # Without attention noise, or with γ² or γ⁴ in place of q = γ²(2 − γ²).
    _, noise, linear = index_sums(gram, 0.7, 0.4)
    for q, share in ((0.49 * 1.51, 0), (0.49, 1), (0.49**2, 1)):
        wrong = vech(q * linear + share * noise)
        assert np.abs(estimate - wrong).max() > 2 * tolerance


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
