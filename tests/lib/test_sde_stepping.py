"""Paths of a limit: order, cone, and what stops them."""

from itertools import product

import numpy as np
import pytest
from scipy.special import digamma, polygamma
from scipy.stats import ks_1samp, ks_2samp, norm

from lib.claims import convergence_order
from lib.core import wishart
from lib.gram import ShapedLayer
from lib.gram import simulate as simulate_chain
from lib.sde import (
    BlockSDE,
    CovarianceSDE,
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


def covariance(draws):
    """Covariance of the upper triangles of matrices, and its largest standard error."""
    i, j = np.triu_indices(draws.shape[-1])
    flat = draws[:, i, j] - draws[:, i, j].mean(axis=0)
    products = flat[:, :, None] * flat[:, None, :]
    return products.mean(axis=0), products.std(axis=0).max() / np.sqrt(len(draws))


def far(values, expected):
    """Largest error relative to the largest entry."""
    return np.abs(values - expected).max() / np.abs(expected).max()


def critical(tests, *sizes):
    """Critical value of a Kolmogorov distance at 1e-6 over the number of tests."""
    return np.sqrt(-np.log(0.5e-6 / tests) / 2 * sum(1 / size for size in sizes))


class Numbers(np.random.Generator):
    """A source of given normals in place of random ones, in the order of the calls."""

    def __init__(self, normals):
        super().__init__(np.random.PCG64(0))
        self.normals, self.used = normals, 0

    def standard_normal(self, size):
        count = int(np.prod(size[1:]))
        self.used += count
        return self.normals[:, self.used - count : self.used].reshape(size)


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
    estimate, stderr = covariance(draws)
    expected = degrees * LinearSDE().diffusion(np.eye(3))
    assert np.abs(estimate - expected).max() < 5 * stderr < 0.1 * 2 * degrees
    each = wishart.bartlett(3, 2, [1.5, 10.0, 1e16], rng(8))
    assert each[2, 1, 1] == pytest.approx(1e8, rel=1e-6, abs=0)


def statistics(states):
    """Bounded numbers that a wrong law would change: a cosine, a size, a volume."""
    size = np.trace(states, axis1=-2, axis2=-1)
    cosine = states[:, 0, 1] / np.sqrt(states[:, 0, 0] * states[:, 1, 1])
    return cosine, size, np.linalg.slogdet(states)[1]


def test_volume_of_the_linear_limit_is_log_normal():
    """log det V ~ N(−½ q m (m + 1) t, 2 m q t): the law of the limit itself."""
    gram, paths, time = random_gram(3), 4000, 0.5
    run = simulate(
        LinearSDE(0.8), gram, time, 256, paths=paths, rng=rng(9), save_every=256
    )
    volume = np.linalg.slogdet(run.states[-1])[1] - np.linalg.slogdet(gram)[1]
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
    run = simulate(LinearSDE(0.8), np.eye(2), time, 8, paths=paths, rng=rng(10))
    volume = np.linalg.slogdet(run.states[-1])[1]
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
    limit = simulate(
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
        for s in (statistics(limit), statistics(wrong))
    ]
    assert max(distances[0]) < critical(6, paths, paths)
    assert max(distances[1]) > critical(6, paths, paths)


def test_one_token_of_the_linear_limit_is_log_normal():
    run = simulate(LinearSDE(), [[2.0]], 0.5, 256, paths=4000, rng=rng(15))
    law = norm(np.log(2) - 0.5, 1.0)
    assert ks_1samp(np.log(run.states[-1, :, 0, 0]), law.cdf).statistic < critical(
        1, 4000
    )


@pytest.mark.parametrize("sde", LIMITS, ids=str)
@pytest.mark.parametrize("m", [1, 4])
def test_states_are_gram_matrices(sde, m):
    gram = random_gram(m)
    run = simulate(sde, gram, 0.5, 32, paths=50, rng=rng(18))
    assert run.states.shape == (33, 50, m, m) and run.stopped.shape == (50,)
    np.testing.assert_array_equal(run.states[0], np.broadcast_to(gram, (50, m, m)))
    np.testing.assert_allclose(run.times, np.arange(33) / 64)
    np.testing.assert_array_equal(run.states, run.states.swapaxes(-1, -2))
    assert np.isfinite(run.states).all()
    least = np.linalg.eigvalsh(run.states)[..., 0]
    assert (least > -1e-12 * np.trace(run.states, axis1=-2, axis2=-1)).all()
    again = simulate(sde, gram, 0.5, 32, paths=50, rng=rng(18))
    np.testing.assert_array_equal(run.states, again.states)


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
    run = simulate(
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
    assert abs(run.stopped_share - expected) < 4 * noise + 0.02


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
    lower = simulate(sde, rng=rng(21), level=1e4, **run)
    gone = lower.stopped < np.inf
    assert 0.2 < lower.stopped_share == gone.mean() < 1
    assert lower.stopped.min() > 0 and lower.stopped[gone].max() <= 2.0
    trace = np.trace(lower.states, axis1=-2, axis2=-1)
    for path in np.flatnonzero(gone):
        after = lower.times >= lower.stopped[path]
        assert (trace[after, path] > 1e4).all() and (trace[~after, path] <= 1e4).all()
        frozen = lower.states[after, path]
        np.testing.assert_array_equal(frozen, np.broadcast_to(frozen[0], frozen.shape))
    assert (trace[:, ~gone] <= 1e4).all()
    # An explosion takes as long to 1e4 as to 1e8, up to a small share.
    higher = simulate(sde, rng=rng(22), level=1e8, **run)
    assert abs(higher.stopped_share - lower.stopped_share) < 0.15


def test_states_are_kept_as_asked():
    run = dict(gram0=np.eye(2), horizon=0.5, steps=10, paths=3)
    for function in (simulate, explicit_euler):
        every = function(ATTENTION, rng=rng(23), **run)
        some = function(ATTENTION, rng=rng(23), save_every=4, **run)
        np.testing.assert_array_equal(some.states, every.states[[0, 4, 8, 10]])
        np.testing.assert_array_equal(some.times, every.times[[0, 4, 8, 10]])
        last = function(ATTENTION, rng=rng(23), save_every=99, **run)
        np.testing.assert_array_equal(last.states, every.states[[0, 10]])


@pytest.mark.parametrize("sde", LIMITS, ids=str)
@pytest.mark.parametrize("function", [simulate, explicit_euler])
def test_each_path_may_have_a_start_of_its_own(sde, function):
    """With the same numbers at hand it is the path of its start, given alone."""
    starts = np.array([random_gram(3, key) for key in range(4)])
    run = dict(horizon=0.02, steps=4, paths=4)
    several = function(sde, starts, rng=rng(25), **run)
    np.testing.assert_array_equal(several.states[0], starts)
    for path, start in enumerate(starts):
        alone = function(sde, start, rng=rng(25), **run)
        np.testing.assert_allclose(
            several.states[:, path], alone.states[:, path], rtol=1e-12
        )
    same = function(sde, starts[:1].repeat(4, axis=0), rng=rng(25), **run)
    alone = function(sde, starts[0], rng=rng(25), **run)
    np.testing.assert_array_equal(same.states, alone.states)


def test_tokens_that_are_equal_in_all_paths_stay_so():
    starts = np.array([random_gram(3, key)[[0, 1, 1, 2]] for key in range(5)])
    starts = starts[..., [0, 1, 1, 2]]
    starts[0] = starts[0][[0, 1, 1, 1]][:, [0, 1, 1, 1]]  # here the last one as well
    states = simulate(ATTENTION, starts, 1.0, 16, paths=5, rng=rng(26)).states
    np.testing.assert_array_equal(states[..., 1, :], states[..., 2, :])
    np.testing.assert_array_equal(states[..., 1], states[..., 2])
    np.testing.assert_allclose(states[:, 0, 3], states[:, 0, 1], rtol=1e-8)
    assert (states[1:, 1:, 3] != states[1:, 1:, 1]).any(axis=-1).all()


def test_starts_are_as_many_as_paths_and_all_are_checked():
    for function in (simulate, explicit_euler):
        run = dict(horizon=0.5, steps=10, rng=rng())
        for starts, message in (
            (np.stack([np.eye(2)] * 2), "one for each of 3 paths, got 2"),
            (np.eye(2)[None], "one for each of 3 paths, got 1"),
            (np.stack([np.eye(2), np.eye(2), -np.eye(2)]), "positive semidefinite"),
            (np.stack([np.eye(2), np.eye(2), 1e6 * np.eye(2)]), "trace below level"),
            (np.eye(2)[None, None], "gram0 must be a non-empty matrix"),
            ([[[1.0]], [[1.0, 0.0], [0.0, 1.0]], [[1.0]]], "gram0"),
        ):
            with pytest.raises(ValueError, match=message):
                function(ATTENTION, starts, paths=3, **run)


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
        run = simulate(sde, gram, 1.0, 4, paths=2, rng=rng())
        np.testing.assert_allclose(
            run.states, np.broadcast_to(gram, run.states.shape), rtol=1e-13
        )
