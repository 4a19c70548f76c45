"""Which limit a model is in: every number against simulations at three sizes."""

import json
import subprocess
import sys

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy.special import polygamma
from scipy.stats import norm

from lib import attention, gram, regimes, sde, sphere
from lib.gram.layers import LinearLayer, PlainLayer
from lib.hierarchical import FiniteAttention, orthonormal_constant
from lib.regimes import PRESETS, describe, numbers
from lib.regimes.__main__ import main
from lib.regimes.overlap import overlap, random_overlap
from tools.command import ROOT

GPT2 = dict(width=768, depth=12, heads=12, tokens=1024)
KEYS = ["quantity", "value", "limit", "predicts", "correction", "statement"]
NODES = numbers.gauss_nodes()


def row(quantity, **sizes):
    return next(each for each in describe(**sizes) if each.quantity == quantity)


def rng(seed):
    return np.random.default_rng(seed)


# Depth over width.


@pytest.mark.parametrize("n", [16, 64, 256])
@pytest.mark.parametrize("branch", [0.5**0.5, 1.0, 0.4])
def test_the_spread_of_log_length_is_that_of_networks(n, branch):
    paths, layer = 40_000, LinearLayer(n, (1 - branch**2) ** 0.5, branch)
    run = gram.simulate(np.eye(1), layer, n, paths=paths, rng=rng(n), save_every=n)
    logs = np.log(run.states[-1, :, 0, 0])
    law = numbers.log_length(n, n, branch)
    variance = law["spread"] ** 2 * (1 + law["excess"])
    # What is left is of the order of 1/n² for the variance, and of 1/n for the mean.
    noise = 4 * variance * np.sqrt(2 / paths)
    assert logs.var() == pytest.approx(variance, abs=noise + 4 * variance / n**2)
    noise = 4 * np.sqrt(variance / paths)
    assert logs.mean() == pytest.approx(law["mean"], abs=noise + 2 / n)


@pytest.mark.parametrize(("n", "depth"), [(256, 1), (256, 12), (512, 64)])
def test_the_spread_of_normalized_branches_is_that_of_networks(n, depth):
    paths, layer = 20_000, LinearLayer(n, 1.0, 1.0, pre_norm=True)
    run = gram.simulate(
        np.eye(1), layer, depth, paths=paths, rng=rng(n + depth), save_every=depth
    )
    spread = np.log(run.states[-1, :, 0, 0]).std()
    law = numbers.pre_norm_spread(n, depth)
    noise = 4 * law / np.sqrt(2 * paths)
    # What is left is of the next order in 1/n.
    assert spread == pytest.approx(law, abs=noise + 4 * law / n)
    assert law < np.sqrt(2 / n)


@pytest.mark.parametrize("n", [16, 64, 256])
def test_the_next_order_is_that_of_chi_square_variables(n):
    law = numbers.log_length(n, 1, 1.0)
    exact = polygamma(1, n / 2)
    assert law["spread"] ** 2 * (1 + law["excess"]) == pytest.approx(
        exact, rel=2 / n**2
    )
    # Without the correction it would not be.
    assert abs(law["spread"] ** 2 - exact) > 0.9 / n * exact


# Explosion.


@pytest.mark.parametrize("heads", [1, 2, 12])
@pytest.mark.parametrize("tau0", [1e-4, 0.03, 0.5, 3.0, 1e4])
def test_explosion_is_the_probability_of_sde(heads, tau0):
    for branch in (1e-6, 0.05, 0.5, 0.69, 0.7072, 0.9, 1.0):
        probability = numbers.explosion(2.0, branch, tau0, heads, *NODES)
        wanted = sde.explosion_probability(2.0, branch, tau0, heads=heads)
        assert probability == pytest.approx(float(wanted), abs=1e-9), branch


@pytest.mark.parametrize("width", [64, 256, 1024])
def test_explosion_is_that_of_simulated_pairs(width):
    temperature, branch = 16.0, 0.5  # τ0 = 16/√(n n_k), with 16 heads of n/16
    given = dict(width=width, depth=4, tokens=8, temperature=temperature)
    said = row("explosion probability", heads=16, residual_scale=branch, **given)
    tau0 = temperature / (width * width / 16) ** 0.5
    run = sde.simulate_distance(
        2.0, branch, tau0, 40.0, 64, paths=4000, rng=rng(width), heads=16, level=1e4
    )
    share = run.stopped_share
    assert share == pytest.approx(said.value, abs=4 * np.sqrt(0.25 / 4000))


# Kurtosis.


@pytest.mark.parametrize("m", [1, 2, 16, 1024])
@pytest.mark.parametrize("spread", [0.1, 1.0, 4.0, 10.0])
def test_the_constant_is_that_of_hierarchical(m, spread):
    mean, variance, _ = overlap(m, spread, numbers.score_nodes(m, spread))
    wanted = orthonormal_constant(m, spread)
    assert 3 * variance / mean**2 == pytest.approx(wanted, abs=1e-11)


def digits_of_the_constant(m, spread):
    """3 Var(u)/(E u)² by the moments themselves, with forty digits."""
    with mp.workdps(40):
        scores = [mpf(k) / 2 for k in range(-26, 27)]
        chances = [mp.exp(-z * z / 2) for z in scores]
        one = sum(chances)
        factors = [mp.exp(mpf(spread) * z) for z in scores]
        first = second = mpf(0)
        for k in range(-400, 50):
            x = [mp.exp(mpf(k) / 8) / m * factor for factor in factors]
            left = [p / one * mp.exp(-y) for p, y in zip(chances, x, strict=True)]
            none, two, four = (
                sum(p * y**power for p, y in zip(left, x, strict=True))
                for power in (0, 2, 4)
            )
            first += m * two * none ** (m - 1)
            second += four * none ** (m - 1) + (m - 1) * two**2 * none ** (m - 2)
        return float(3 * (mpf(m) / 6 * second / 8 / (first / 8) ** 2 - 1))


@pytest.mark.parametrize(("m", "spread"), [(2, 0.05), (1000, 0.05), (300, 0.2)])
def test_no_digits_of_the_constant_are_lost(m, spread):
    """The two moments agree to up to eight digits where weights are nearly equal."""
    mean, variance, _ = overlap(m, spread, numbers.score_nodes(m, spread))
    wanted = digits_of_the_constant(m, spread)
    assert 3 * variance / mean**2 == pytest.approx(wanted, rel=1e-13, abs=0)


@pytest.mark.parametrize("n", [8, 64, 512])
def test_kurtosis_is_that_of_a_layer_of_finite_width(n):
    nodes = numbers.score_nodes(4, 1.0)
    law = numbers.kurtosis(n, 2, n, 4.0, 1.0, nodes)
    wanted = FiniteAttention(np.eye(4), n, 2).excess_kurtosis()
    # The nodes leave an error of a thousandth.
    assert law["given"] == pytest.approx(wanted, rel=1e-3)
    assert abs(law["c"] / 2 - wanted) > 1 / n


def variances(n, heads, key_width, tokens, spread, size, rng, *, fixed):
    """Conditional variances of an output with real key widths, by its definition."""
    V = np.broadcast_to(np.eye(tokens), (size, tokens, tokens))
    if not fixed:  # uniform on the sphere: normal tokens over their norms
        R = gram.bartlett(size, tokens, n, rng)
        R /= np.linalg.norm(R, axis=-1, keepdims=True)
        V = R @ R.mT
    C, total = np.linalg.cholesky(V), 0.0
    for _ in range(heads):
        t, value = rng.chisquare(key_width, (2, size)) / key_width
        scores = (C @ rng.standard_normal((size, tokens, 1)))[..., 0]
        s = attention.softmax(spread * np.sqrt(V[:, 0, 0] * t)[:, None] * scores)
        total = total + value * np.einsum("pi,pij,pj->p", s, V, s) / heads
    return total


@pytest.mark.parametrize("key_width", [4, 16, 64])
@pytest.mark.parametrize("tokens", [6, 20])
def test_kurtosis_of_narrow_heads_is_the_exact_one(key_width, tokens):
    nodes = numbers.score_nodes(tokens, 1.0)
    kurtosis = numbers.kurtosis(64, 3, key_width, float(tokens), 1.0, nodes)["given"]
    wanted = FiniteAttention(np.eye(tokens), 64, 3, head_width=key_width)
    # Their law is accurate to 2e-3 by itself.
    assert kurtosis == pytest.approx(wanted.excess_kurtosis(), rel=3e-3)


def test_what_random_tokens_add_where_there_are_many():
    nodes = numbers.score_nodes(10**6, 0.5)
    added = numbers.kurtosis(64, 3, 4, 1e6, 0.5, nodes)["a"]
    assert added == pytest.approx(6 * np.exp(-0.5), rel=1e-3)


@pytest.mark.parametrize("n", [48, 96, 192])
@pytest.mark.parametrize("fixed", [True, False])
def test_kurtosis_of_narrow_heads_and_of_random_tokens(n, fixed):
    heads, tokens, spread, size = 16, 6, 0.8, 100_000
    v = variances(n, heads, n // 4, tokens, spread, size, rng(n), fixed=fixed)
    kurtosis = 3 * v.var() / v.mean() ** 2
    noise = 3 * np.std((v - v.mean()) ** 2) / v.mean() ** 2 / np.sqrt(size)
    given = dict(width=n, depth=1, heads=heads, tokens=tokens, key_width=n // 4)
    law = numbers.kurtosis(
        n, heads, n // 4, float(tokens), spread, numbers.score_nodes(tokens, spread)
    )
    wanted = law["given"] if fixed else law["kurtosis"]
    # Random tokens add a term of the order of 1/(nH) that is left out.
    rest = 15 / (n * heads) if not fixed else 40 / (n**2 * heads)
    assert kurtosis == pytest.approx(wanted, abs=5 * noise + rest)
    temperature = (n // 4) ** 0.5 / spread
    said = row("excess kurtosis", temperature=temperature, **given)
    assert said.value == pytest.approx(law["kurtosis"])
    if not fixed:  # and what random tokens add is seen
        assert kurtosis - law["given"] > 0.7 * law["a"] / n > 5 * noise


def of_random_tokens(n, heads, tokens, spread, draws, rng, queries=400):
    """Kurtosis with many random tokens, and its error; all heads see the same ones."""
    key_width, sums = n / heads, []
    for _ in range(draws):
        x = rng.standard_normal((tokens, n))
        x *= np.sqrt(n) / np.linalg.norm(x, axis=1, keepdims=True)
        seeks = rng.standard_normal((n, queries))
        length = spread * np.sqrt(rng.chisquare(key_width, queries) / key_width)
        seeks *= length / np.linalg.norm(seeks, axis=0)
        s = attention.softmax((x @ seeks).T)  # (queries, m)
        u = np.sum((s @ x) ** 2, axis=1) / n
        square = np.mean(u**2)
        pairs = (np.mean(u) ** 2 * queries - square) / (queries - 1)
        sums.append((np.mean(u), square, pairs))  # of one, of one, of two queries
    sums = np.array(sums)

    def kurtosis(kept):
        mean, square, pairs = sums[kept].mean(axis=0)
        each = ((1 + 2 / key_width) * square - pairs) / heads
        return 3 * ((each + pairs) / mean**2 - 1)

    left = [kurtosis(np.arange(draws) != k) for k in range(draws)]  # the jackknife
    return kurtosis(slice(None)), np.std(left) * np.sqrt(draws - 1)


@pytest.mark.parametrize(
    ("n", "heads", "tokens", "spread"),
    [
        (256, 4, 256, 0.3), (512, 8, 1024, 1.0), (128, 8, 4096, 1.0),
        (256, 64, 8192, 1.0), (64, 4, 4096, 0.5),
    ],
)  # fmt: skip
def test_kurtosis_with_more_tokens_than_dimensions(n, heads, tokens, spread):
    found, noise = of_random_tokens(n, heads, tokens, spread, 32, rng(tokens + n))
    nodes = numbers.score_nodes(tokens, spread)
    law = numbers.kurtosis(float(n), heads, n / heads, float(tokens), spread, nodes)
    # A coordinate of a token on the sphere has the fourth cumulant −6/n. That takes
    # 3.5σ⁴/n off log E p_2, and 10.5σ⁴/n off that of its square.
    rest = 10.5 * spread**4 / n * found
    assert law["kurtosis"] == pytest.approx(found, abs=4 * noise + rest)
    # Tokens are far from orthogonal: the test would see it.
    assert abs(law["given"] + law["a"] / n - found) > 4 * noise + rest or n >= tokens


@pytest.mark.parametrize("tokens", [4.0, 1024.0, 131072.0])
@pytest.mark.parametrize("spread", [0.05, 0.3, 1.0, 2.0])
def test_spacing_of_nodes_is_enough_for_what_it_promises(tokens, spread):
    kept, wide, wider = (
        np.array(overlap(tokens, spread, numbers.score_nodes(tokens, spread, h)))
        for h in (0.5, 1.0, 2.0)
    )
    assert wide == pytest.approx(kept, rel=1e-11)
    assert wider == pytest.approx(kept, rel=3e-4)


@pytest.mark.parametrize("m", [8, 64, 512])
def test_number_of_tokens_seen(m):
    scores = rng(m).standard_normal((20_000, m))
    overlaps = np.sum(attention.softmax(scores) ** 2, axis=1)
    mean, _, _ = overlap(float(m), 1.0, numbers.score_nodes(m, 1.0))
    noise = overlaps.std() / np.sqrt(len(overlaps))
    assert overlaps.mean() == pytest.approx(mean, abs=4 * noise)


@pytest.mark.parametrize("m", [2, 3, 8, 32])
def test_equal_weights_see_the_mean_of_random_tokens(m):
    """Its squared length varies as m (m − 1) cosines do, each by 1/n, in m² of them."""
    n, spread = 10_000.0, 0.01
    law = overlap(float(m), spread, numbers.score_nodes(m, spread))
    mean, variance = random_overlap(n, spread, law)
    # Weights still differ by σ, and terms beyond 1/n are left out.
    assert mean == pytest.approx(1 / m, rel=1e-3)
    assert variance == pytest.approx(2 * (m - 1) / (m**3 * n), rel=2e-3)


@pytest.mark.parametrize(("m", "spread"), [(4, 0.7), (8, 1.5), (32, 1.0)])
def test_terms_of_random_tokens_are_moments_of_their_weights(m, spread):
    """Mean and variance are polynomials in 1/n, whose coefficients can be drawn."""
    law = overlap(float(m), spread, numbers.score_nodes(m, spread))
    one, half = (np.array(random_overlap(n, spread, law)) for n in (1.0, 2.0))
    second = 2 * (one + law[:2] - 2 * half)  # of f(0), f(1/2) and f(1)
    first = one - law[:2] - second

    z = rng(m).standard_normal((40, 10_000, m))
    s = attention.softmax(spread * z)
    p2, p3 = (np.sum(s**k, axis=-1) for k in (2, 3))
    along = np.sum(s * z, axis=-1)  # (40, 10_000), the M of a draw
    mean, var = along.mean(axis=1), along.var(axis=1)
    both = np.mean(along * p2, axis=1) - mean * p2.mean(axis=1)
    pairs = 2 * (np.mean(p2**2, axis=1) - p3.mean(axis=1) ** 2 / p2.mean(axis=1))
    own = (1 + 4 * spread**2) * p2 - 4 * spread**2 * p3  # for many tokens
    drawn = np.stack([
        np.mean(along**2 - own, axis=1),
        4 * mean * both + pairs,
        4 * mean**2 * var + 2 * var**2,
    ])  # fmt: skip
    noise = drawn.std(axis=1) / np.sqrt(40)
    wanted = [first[0], first[1], second[1]]
    assert second[0] == pytest.approx(0, abs=1e-12)
    assert np.all(np.abs(wanted - drawn.mean(axis=1)) < 4 * noise + 1e-4)


@pytest.mark.parametrize("width", [8, 32, 128])
def test_number_of_tokens_seen_by_narrow_heads(width):
    overlaps = []
    for seed in range(40):
        keys, queries = rng([width, seed]).standard_normal((2, 512, width))
        weights = attention.softmax(queries @ keys.T / width**0.5)
        overlaps.append(np.mean(np.sum(weights**2, axis=1)))
    nodes = numbers.score_nodes(512, 1.0)
    law = numbers.kurtosis(8.0 * width, 8, width, 512.0, 1.0, nodes)
    noise = 4 * np.std(overlaps) / np.sqrt(len(overlaps))
    # That the queries of a head have the same keys is of the order of 1/m.
    assert np.mean(overlaps) == pytest.approx(1 / law["seen"], abs=noise + 2e-5)


@pytest.mark.parametrize("cosine_of", [numbers.tied_cosine, numbers.layer_cosine])
def test_tokens_that_have_met_stay_together_in_every_layer(cosine_of):
    """Rounding must not lead beyond a cosine of 1, which has no next one."""
    tokens, cosine = np.geomspace(16, 131_072, 3001), 0.0
    sizes = (8.0, 64) if cosine_of is numbers.tied_cosine else (8.0,)
    for _ in range(128):
        cosine = cosine_of(cosine, tokens, *sizes, 0.5**0.5)
        assert np.all(cosine <= 1)
    assert np.all(cosine[-100:] > 0.99)


def test_slope_of_the_overlap():
    for m, spread in ((3, 0.5), (100, 2.0)):
        nodes = numbers.score_nodes(m, spread)
        ends = [overlap(m, spread + h, nodes)[0] for h in (-1e-5, 1e-5)]
        slope = overlap(m, spread, nodes)[2]
        assert slope == pytest.approx(np.diff(ends)[0] / 2e-5, rel=1e-6)


# β/log m, m/d.


@pytest.mark.parametrize("m", [16, 128, 1024])
def test_weight_on_itself(m):
    given = dict(width=1024, depth=2, heads=16, tokens=m)
    said = row("β/log m", **given)
    beta = said.value * np.log(m)
    assert beta == pytest.approx(8)  # √64
    weight = attention.softmax(beta * np.eye(m))[0, 0]
    assert numbers.own_weight(m, beta) == pytest.approx(weight)


@pytest.mark.parametrize(("m", "width"), [(256, 32), (1024, 64), (2048, 128)])
@pytest.mark.parametrize("spread", [0.5, 1.0])
def test_weight_on_itself_with_tied_random_weights(m, width, spread):
    weights = []
    for seed in range(3):
        keys = rng(seed).standard_normal((m, width))  # of orthogonal tokens
        logits = spread / width**0.5 * keys @ keys.T
        weights.append(np.diag(attention.softmax(logits)).mean())
    wanted = numbers.tied_weight(m, spread * width**0.5, width)
    assert np.mean(weights) == pytest.approx(wanted, abs=0.02)


@pytest.mark.parametrize(("m", "d"), [(8, 5), (24, 12), (60, 28)])
def test_hemisphere(m, d):
    said = row("m/d", width=d, depth=1, tokens=m)
    assert said.value == m / d
    chance = numbers.hemisphere(float(m), float(d), *NODES)
    assert chance == pytest.approx(sphere.hemisphere_probability(m, d), abs=1e-9)
    x = sphere.uniform_tokens(m, d, systems=1500, rng=rng(m))
    share = sphere.hemisphere_pole(x).any(axis=-1).mean()
    assert share == pytest.approx(chance, abs=4 * np.sqrt(0.25 / 1500))


@pytest.mark.parametrize(
    ("m", "d"), [(2, 1), (3, 3), (1500, 768), (4096, 768), (10**6, 500_100)]
)
def test_hemisphere_is_wendels(m, d):
    chance = numbers.hemisphere(float(m), float(d), *NODES)
    assert chance == pytest.approx(sphere.hemisphere_probability(m, d), abs=1e-8)


@pytest.mark.parametrize(("m", "width"), [(256, 32), (512, 64), (1024, 128)])
@pytest.mark.parametrize("cosine", [0.3, 0.8])
def test_weight_on_itself_at_a_common_cosine(m, width, cosine):
    weights = []
    for seed in range(40):
        keys = (1 - cosine) ** 0.5 * rng(seed).standard_normal((m, width))
        keys += cosine**0.5 * rng(seed + 99).standard_normal(width)
        logits = width**-0.5 * keys[:100] @ keys.T
        weights.append(np.diag(attention.softmax(logits)).mean())
    wanted = numbers.tied_weight(m, width**0.5, width, cosine)
    noise = 4 * np.std(weights) / len(weights) ** 0.5
    assert np.mean(weights) == pytest.approx(wanted, abs=noise)
    if width > 32 and cosine < 0.5:  # that keys are random is seen
        without = numbers.own_weight(m, width**0.5 * (1 - cosine))
        assert without - wanted > noise


# Clusters, differences, orders.


@pytest.mark.parametrize("m", [4, 16, 64])
@pytest.mark.parametrize("branch", [0.3, 0.5**0.5, 1.0])
def test_layers_of_equiangular_tokens(m, branch):
    beta, skip = 2.0, (1 - branch**2) ** 0.5

    def layer(x):
        y = skip * x + branch * sphere.attention_output(x, beta)
        return y / np.linalg.norm(y, axis=-1, keepdims=True)

    x, cosine = np.eye(m), 0.0
    for _ in range(6):
        x, cosine = layer(x), numbers.layer_cosine(cosine, m, beta, branch)
        assert x[0] @ x[1] == pytest.approx(cosine, abs=1e-12)
        assert x[0] @ x[-1] == pytest.approx(cosine, abs=1e-12)


@pytest.mark.parametrize("d", [256, 1024, 4096])
def test_clusters_of_random_tokens(d):
    given = dict(width=d, heads=d, tokens=16, temperature=0.5, layers_shared=True)
    x = sphere.uniform_tokens(16, d, rng=rng(d))
    pairs = np.triu_indices(16, 1)
    for depth in (2, 20):
        run = sphere.post_norm_layers(
            x, lambda x: sphere.attention_output(x, 2.0), 1.0, depth
        )
        cosines = (run.states[-1] @ run.states[-1].T)[pairs]
        said = row("clusters", depth=depth, **given)
        assert said.value == (1 if cosines.mean() > 0.5 else 16)
        cosine = 0.0
        for _ in range(depth):
            cosine = numbers.layer_cosine(cosine, 16, 2.0, 0.5**0.5)
        assert np.abs(cosines - cosine).max() < 5 / np.sqrt(d)


@pytest.mark.parametrize(
    ("m", "heads", "width"), [(128, 32, 32), (256, 32, 64), (512, 64, 64)]
)
@pytest.mark.parametrize("spread", [0.5, 1.0])
def test_cosines_of_layers_with_random_keys(m, heads, width, spread):
    """The same keys in each layer; many heads make that negligible."""
    x, cosine, exact = np.eye(m), 0.0, 0.0
    W = rng(m).standard_normal((heads, m, width))
    beta, branch = spread * width**0.5, 0.5**0.5
    for _ in range(8):
        keys = x @ W
        weights = attention.softmax(spread / width**0.5 * keys @ keys.mT)
        x = x + weights.mean(axis=0) @ x
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        mean_cosine = (np.sum(x @ x.T) - m) / (m * (m - 1))
        cosine = numbers.tied_cosine(cosine, m, beta, width, branch)
        exact = numbers.layer_cosine(exact, m, beta, branch)
        assert mean_cosine == pytest.approx(cosine, abs=1.6 / heads)
    if spread == 1:  # without the noise of the keys it would be far less
        assert exact < 0.6 * mean_cosine < 0.7 * cosine


def test_cosines_of_layers_that_are_alike_end_where_they_stay():
    sizes, cosine = (512.0, 6.0, 64.0, 0.5**0.5), 0.0
    layers = numbers.tied_cosines(10**6, *sizes)
    assert 20 < len(layers) < 1000 and layers[-1] == layers[-2] > 0.999
    for k, each in enumerate(layers):
        assert each == cosine
        assert numbers.tied_cosines(k, *sizes) == layers[: k + 1]
        cosine = float(numbers.tied_cosine(cosine, *sizes))


def test_few_heads_bring_tokens_together_later():
    m, width, cosine = 256, 64, 0.0
    for heads in (2, 8):
        x, cosine = np.eye(m), 0.0
        W = rng(heads).standard_normal((heads, m, width))
        for _ in range(12):
            keys = x @ W
            x = x + attention.softmax(keys @ keys.mT / 8).mean(axis=0) @ x
            x /= np.linalg.norm(x, axis=1, keepdims=True)
            cosine = numbers.tied_cosine(cosine, m, 8.0, width, 0.5**0.5)
        mean_cosine = (np.sum(x @ x.T) - m) / (m * (m - 1))
        assert 0.4 * cosine < mean_cosine < 0.9 * cosine


@pytest.mark.parametrize("n", [32, 128, 512])
def test_differences_left_by_attention(n):
    m, J = 8, np.eye(8) - 1 / 8
    layer = PlainLayer(n, n, 0.5**0.5, 0.5**0.5, tau0=1e6)
    run = gram.simulate(np.eye(m), layer, 5, paths=4, rng=rng(n), save_every=5)
    share = np.trace(J @ run.states[-1] @ J, axis1=1, axis2=2) / (m - 1)
    assert share == pytest.approx(row(
        "differences left", width=n, depth=5, tokens=m
    ).value, rel=1e-3)  # fmt: skip
    # What attention with logits of standard deviation 1 gives back in one layer.
    layer = PlainLayer(n, n, 0.5**0.5, 0.5**0.5)
    run = gram.simulate(np.eye(m), layer, 1, paths=20_000, rng=rng(n))
    share = np.trace(J @ run.states[-1] @ J, axis1=1, axis2=2) / (m - 1)
    mean, _, _ = overlap(float(m), 1.0, numbers.score_nodes(m, 1.0))
    noise = 4 * share.std() / np.sqrt(len(share))
    assert share.mean() == pytest.approx(0.5 + 0.5 * (mean - 1 / m), abs=noise + 1 / n)


@pytest.mark.parametrize(("m", "spread"), [(256, 0.2), (1024, 0.4), (4096, 0.7)])
def test_order_of_the_expansion(m, spread):
    logits = spread * rng(m).standard_normal((400, m))
    exact = attention.softmax(logits)
    errors = numbers.order_errors(spread, *numbers.factorials())
    base = np.sum((exact - 1 / m) ** 2)
    measured = [
        np.sqrt(np.sum((exact - attention.softmax_expansion(logits, k)) ** 2) / base)
        for k in range(4)
    ]
    assert measured == pytest.approx(errors[:4], rel=0.15)
    said = row("softmax order", width=64, depth=1, tokens=m, temperature=8 / spread)
    assert said.value == np.sum(np.array(measured) > 0.05)


# The answers.


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_answers(name):
    rows = describe(**regimes.preset(name).sizes)
    assert [*vars(rows[0])] == KEYS
    assert all(np.isfinite(each.value) for each in rows if each.value is not None)
    assert not [each for each in rows if each.value is None and each.limit == ""]
    uncovered = {"trained weights", "RoPE, ALiBi", "GELU, SwiGLU"}
    assert uncovered <= {each.quantity for each in rows if each.value is None}


def test_shared_layers_have_clusters_and_no_proportional_limit():
    rows = {each.quantity: each for each in describe(**GPT2, layers_shared=True)}
    assert rows["clusters"].value == 1024 and rows["clusters"].statement
    assert rows["depth/width"].statement == ""
    assert rows["explosion probability"].value is None
    assert row("clusters", **GPT2).value is None


def test_the_answer_for_gpt2():
    """Each number by a way of its own."""
    rows = {each.quantity: each.value for each in describe(**GPT2)}
    assert rows["depth/width"] == 12 / 768
    assert rows["β/log m"] == pytest.approx(8 / np.log(1024))
    assert rows["m/d"] == 1024 / 768
    assert rows["differences left"] == pytest.approx(2.0**-12)
    assert rows["explosion probability"] == pytest.approx(
        float(sde.explosion_probability(2.0, 0.5**0.5, 768**-0.5, heads=12))
    )
    z = norm.ppf((np.arange(200_000) + 0.5) / 200_000)
    weights, terms = np.exp(z - 0.5), [np.ones_like(z), z]
    for r in range(2, 12):
        terms.append((z * terms[-1] - terms[-2] * 1.0) / r)
    sums = np.cumsum(terms, axis=0)
    gaps = np.sqrt(np.mean((weights - sums) ** 2, axis=1) / np.var(weights))
    assert rows["softmax order"] == np.argmax(gaps <= 0.05)


# The command.


def run(*arguments):
    command = [sys.executable, "-m", "lib.regimes", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, check=False
    )


def test_the_command_prints_rows_and_json(capsys):
    sizes = ["--width", "768", "--depth", "12", "--heads", "12", "--tokens", "1024"]
    assert main([*sizes, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [[*each] for each in rows] == [KEYS] * len(rows)
    assert rows == [vars(each) for each in describe(**GPT2)]
    assert {"depth/width", "excess kurtosis"} <= {each["quantity"] for each in rows}
    assert main(sizes) == 0
    text = capsys.readouterr().out
    assert all(each["quantity"] in text for each in rows)
    assert main(["--preset", "gpt2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == rows
    assert main(["--preset", "gpt2", "--tokens", "64", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[4]["value"] == 64 / 768
    assert main(["--list"]) == 0
    assert capsys.readouterr().out.count("\n") == len(PRESETS) >= 10


def test_the_command_as_a_program():
    done = run("--preset", "gpt2")
    assert done.returncode == 0 and "radford2019language" in done.stdout
    assert done.stderr == ""
    done = run("--preset", "gtp2")
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr == (
        "lib.regimes: preset must be the name of a model, got 'gtp2':"
        " did you mean gpt2, gpt2-xl, gpt3?\n"
    )


def test_the_answer_needs_neither_scipy_nor_matplotlib():
    code = (
        "import sys; from lib.regimes import describe;"
        "describe(width=768, depth=12, heads=12, tokens=1024);"
        "assert not {'scipy', 'matplotlib', 'IPython'} & {*sys.modules}"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


BAD = [
    ("--width 0 --depth 1 --tokens 4", "width must be an integer from 1 to 1000000000"),
    ("--width -8 --depth 1 --tokens 4", "width must be an integer from 1"),
    ("--width 8.5 --depth 1 --tokens 4", "width must be an integer, got '8.5'"),
    ("--width 8 --depth 0 --tokens 4", "depth must be an integer from 1 to 100000"),
    ("--width 8 --depth 1 --tokens 1", "tokens must be an integer from 2"),
    ("--width 8 --depth 1 --tokens 1e3", "tokens must be an integer, got '1e3'"),
    (f"--width 8 --depth {10**30} --tokens 4", "depth must be an integer from 1"),
    (f"--width 1{'0' * 9000} --depth 1 --tokens 4", "(9001 characters)"),
    ("--width 768 --depth 1 --tokens 4 --heads 7", "heads must divide the width"),
    ("--width 8 --depth 1 --tokens 4 --heads 0", "heads must be an integer from 1"),
    ("--width 8 --depth 1 --tokens 4 --key-width 0", "key_width must be an integer"),
    ("--width 8 --depth 1 --tokens 4 --temperature 0", "temperature must be a pos"),
    ("--width 8 --depth 1 --tokens 4 --temperature inf", "temperature must be a pos"),
    ("--width 8 --depth 1 --tokens 4 --temperature 1e200", "temperature must be from"),
    ("--width 8 --depth 1 --tokens 4 --temperature x", "temperature must be a number"),
    ("--width 8 --depth 1 --tokens 4 --residual-scale 2", "residual_scale must be"),
    ("--width 8 --depth 1 --tokens 4 --residual-scale nan", "residual_scale must be"),
    ("--width 8 --depth 1", "the sizes of a model are needed: --tokens, or --preset"),
    ("", "the sizes of a model are needed: --width, --depth, --tokens"),
    ("--preset zzz", "known: bert-base"),
    (f"--preset {'x' * 500}", "(500 characters)"),
    ("--size 3", "unrecognized arguments"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_misuse_is_one_sentence(arguments, message, capsys):
    with pytest.raises(SystemExit) as end:
        main(arguments.split())
    said = capsys.readouterr()
    assert end.value.code == 2 and said.out == ""
    assert message in said.err and said.err.count("\n") == 1
    assert len(said.err) < 400


def test_enormous_sizes_that_are_accepted():
    most = dict(width=10**9, depth=10**5, heads=10**6, tokens=10**12)
    for extra in ({}, {"layers_shared": True}, {"temperature": 1e-99},
                  {"temperature": 1e99}, {"residual_scale": 1e-6}):  # fmt: skip
        for sizes in (most, dict(width=1, depth=1, tokens=2), GPT2):
            for each in describe(**sizes, **extra):
                assert each.value is None or np.isfinite(each.value), each
                assert "nan" not in " ".join(map(str, vars(each).values()))
