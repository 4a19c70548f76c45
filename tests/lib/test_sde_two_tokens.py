"""Two tokens: the probabilities are their integrals, and paths explode as often."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import erf
from scipy.stats import ks_1samp, ks_2samp, norm

from lib.sde import (
    CovarianceSDE,
    explosion_probability,
    hitting_probability,
    simulate,
    simulate_distance,
    stepping,
)


def rng(key=0):
    return np.random.default_rng(key)


def scale_integral(end, branch, tau0, heads=1):
    """∫₀^end of exp(−∫ 2 drift/variance), from drift and variance of Δ: for y = eˣ."""
    a, h = branch**2 / 16 / tau0**2, branch**4 / 4 / tau0**2 / heads
    q = branch**2 * (2 - branch**2)

    def density(x):  # p(y) y, with ∫ 2ay/(2q + hy²) dy = (a/h) log(2q + hy²)
        return np.exp(x - a / h * np.log1p(h / (2 * q) * np.exp(2 * x)))

    cuts = [*np.arange(-40, np.log(end), 2.0), np.log(end)]
    parts = [
        quad(density, *cut, epsrel=1e-12)[0]
        for cut in zip(cuts[:-1], cuts[1:], strict=True)
    ]
    return sum(parts)


CASES = [
    (2.0, 0.5, 0.5, 1),
    (2.0, 0.1, 0.5, 1),
    (0.3, 0.65, 0.1, 1),
    (1e-4, 0.6, 1.0, 1),
    (2.0, 0.9, 0.5, 2),
    (50.0, 1.0, 20.0, 5),
]


@pytest.mark.parametrize(("distance0", "branch", "tau0", "heads"), CASES)
def test_explosion_probability_is_a_ratio_of_integrals(distance0, branch, tau0, heads):
    part = scale_integral(distance0, branch, tau0, heads)
    whole = scale_integral(1e60, branch, tau0, heads)
    chance = explosion_probability(distance0, branch, tau0, heads=heads)
    assert chance == pytest.approx(part / whole, rel=1e-9, abs=0) and 0 < chance < 1


def test_explosion_probability_has_its_special_values():
    chances = explosion_probability([0.0, 2.0, 1e300], 0.5, 0.5)
    np.testing.assert_allclose(chances, [0, 2 / np.pi * np.arctan(4 / np.sqrt(56)), 1])
    # 0 from γ² = ½ on, which it approaches, erf for small γ, but nothing for γ = 0.
    edge = np.sqrt(0.5)
    branch = [edge * (1 + 1e-15), 0.9, 1.0, 0.0]
    np.testing.assert_array_equal(explosion_probability(9.0, branch, 0.1), 0)
    near = explosion_probability(9.0, edge * (1 - 10.0 ** -np.arange(3, 12)), 0.1)
    assert (np.diff(near) < 0).all() and 0 < near[-1] < 1e-9
    small = explosion_probability(2.0, 10.0 ** -np.arange(2, 18), 0.5)
    np.testing.assert_allclose(small[1:], erf(0.5), rtol=2e-6)
    np.testing.assert_allclose(small[6:], erf(0.5), rtol=1e-14)
    # Two heads explode up to γ = 1, three always.
    assert explosion_probability(2.0, 1.0, 0.5, heads=2) == 0
    assert explosion_probability(2.0, 1.0, 0.5, heads=3) > 0.1
    grid = explosion_probability(2.0, np.array([[0.3], [0.6]]), [0.2, 0.5, 3.0])
    assert grid.shape == (2, 3) and (np.diff(grid, axis=1) < 0).all()
    assert isinstance(explosion_probability(2, 0.5, 0.5), float)


@pytest.mark.parametrize(("distance0", "branch", "tau0", "heads"), CASES)
@pytest.mark.parametrize("square", [None, 0.5, 0.4999999, 0.51, 0.8, 1.0])
def test_hitting_probability_is_a_ratio_of_integrals(
    distance0, branch, tau0, heads, square
):
    branch = branch if square is None else np.sqrt(square)
    for level in (1.5, 1e4, 1e12):
        part = scale_integral(distance0, branch, tau0, heads)
        whole = scale_integral(level * distance0, branch, tau0, heads)
        chance = hitting_probability(
            distance0, level * distance0, branch, tau0, heads=heads
        )
        assert chance == pytest.approx(part / whole, rel=1e-9, abs=0)


def test_hitting_probability_at_its_ends():
    chances = hitting_probability([0.0, 1.0, 3.0, 9.0], 3.0, 0.8, 0.5)
    assert chances[0] == 0 < chances[1] < 1 == chances[2] == chances[3]
    assert hitting_probability(1.0, 3.0, 0.0, 0.5) == 0
    # Where attention is nothing, Δ is a martingale.
    for branch in (0.3, 0.9):
        assert hitting_probability(1.0, 3.0, branch, 1e200) == pytest.approx(1 / 3)
        assert hitting_probability(1e-200, 3e-200, branch, 1.0) == pytest.approx(1 / 3)
    high = hitting_probability(2.0, 1e250, [0.1, 0.5], 0.5)
    np.testing.assert_allclose(high, explosion_probability(2.0, [0.1, 0.5], 0.5))
    levels = hitting_probability(2.0, 10.0 ** np.arange(1, 300, 20), 0.9, 1e-3)
    assert (np.diff(levels) < 0).all() and levels[-1] > 0


def share(run, expected, bias=0.0):
    """Whether a share of paths is as expected, to four standard errors."""
    noise = np.sqrt(expected * (1 - expected) / len(run.stopped))
    return abs(run.stopped_share - expected) < 4 * noise + bias


@pytest.mark.parametrize(
    ("branch", "tau0", "level", "heads"),
    [(0.5, 0.5, 1e4, 1), (np.sqrt(0.4), 0.25, 1e4, 1), (np.sqrt(0.6), 0.25, 1e4, 1),
     (0.8, 0.5, 1e4, 3), (0.9, 0.5, 3.0, 1)],
)  # fmt: skip
def test_paths_reach_a_level_as_often_as_they_should(branch, tau0, level, heads):
    run = simulate_distance(
        2.0, branch, tau0, 20, 40, paths=4000, rng=rng(1),
        heads=heads, save_every=40, level=level,
    )  # fmt: skip
    expected = hitting_probability(2.0, level, branch, tau0, heads=heads)
    assert share(run, expected)
    assert not share(run, 0.6 * expected)
    gone = run.stopped < np.inf
    np.testing.assert_allclose(run.states[-1, gone], level)
    assert (run.states[:, ~gone] < level).all() and (run.states > 0).all()


class Signs(np.random.Generator):
    """Normals 1 and −1 in turn, and bridges that stay near their ends."""

    def __init__(self):
        super().__init__(np.random.PCG64(0))

    def standard_normal(self, size):
        return np.resize([1.0, -1.0], size)

    def exponential(self, size):
        return np.zeros(size)


@pytest.mark.parametrize("heads", [1, 3])
def test_a_short_step_has_the_moments_of_the_diffusion(heads):
    """Of log Δ, by Itô: drift (a − h/2)Δ² − q and variance 2q + hΔ²."""
    step = 1e-7
    run = simulate_distance(1.5, 0.7, 0.4, step, 1, paths=2, rng=Signs(), heads=heads)
    change = np.log(run.states[1] / 1.5)
    a, q, h = 0.49 / 16 / 0.16, 0.49 * 1.51, 0.49**2 / 4 / 0.16 / heads
    drift, deviation = change.mean() / step, (change[0] - change[1]) / 2
    assert drift == pytest.approx((a - h / 2) * 2.25 - q, rel=1e-4, abs=0)
    assert deviation**2 / step == pytest.approx(2 * q + h * 2.25, rel=1e-4, abs=0)


def test_drift_is_taken_over_the_whole_step(monkeypatch):
    """With coarse steps: those of Euler would miss 5 % of the explosions."""
    monkeypatch.setattr(stepping, "RESOLUTION", 0.3)
    branch = np.sqrt(0.05)
    run = simulate_distance(
        2.0, branch, 0.5, 100, 60, paths=20_000, rng=rng(6), save_every=60, level=1e4
    )
    assert share(run, hitting_probability(2.0, 1e4, branch, 0.5))


def test_without_attention_the_distance_is_log_normal():
    run = simulate_distance(2.0, 0.8, 1e9, 0.5, 16, paths=4000, rng=rng(2), level=1e9)
    assert run.stopped_share == 0 and run.states.shape == (17, 4000)
    q = 0.64 * 1.36
    law = norm(np.log(2) - q / 2, np.sqrt(q))
    critical = np.sqrt(-np.log(0.5e-6) / 2 / 4000)
    assert ks_1samp(np.log(run.states[-1]), law.cdf).statistic < critical
    wrong = norm(np.log(2), np.sqrt(q))
    assert ks_1samp(np.log(run.states[-1]), wrong.cdf).statistic > critical


@pytest.mark.parametrize("heads", [1, 2])
def test_distance_of_simulated_gram_matrices_has_the_same_law(heads):
    """Two codes: a scalar diffusion, and factors of matrices. Explosions included."""
    gram = np.array([[1.5, 0.5], [0.5, 1.0]])  # Δ = 1.5
    paths, sde = 3000, CovarianceSDE(0.6, 0.5, heads=heads)
    run = dict(paths=paths, save_every=48)
    grams = simulate(sde, gram, 1.5, 48, rng=rng(3), level=1e4, **run)
    last = grams.states[-1]
    one = np.where(
        grams.stopped < np.inf, 1e5, last[:, 0, 0] + last[:, 1, 1] - 2 * last[:, 0, 1]
    )
    distances = simulate_distance(
        1.5, 0.6, 0.5, 1.5, 48, rng=rng(4), level=1e4, heads=heads, **run
    )
    two = np.where(distances.stopped < np.inf, 1e5, distances.states[-1])
    assert distances.stopped_share > 0.02
    critical = np.sqrt(-np.log(0.5e-6 / 4) / paths)
    assert ks_2samp(one, two).statistic < critical
    other = simulate_distance(1.5, 0.7, 0.5, 1.5, 48, rng=rng(4), level=1e4, **run)
    assert ks_2samp(one, other.states[-1]).statistic > critical


def test_distances_are_kept_as_asked():
    run = dict(distance0=2.0, branch=0.5, tau0=0.5, horizon=1.0, steps=7, paths=5)
    every = simulate_distance(rng=rng(5), **run)
    np.testing.assert_array_equal(every.states[0], 2.0)
    some = simulate_distance(rng=rng(5), save_every=3, **run)
    np.testing.assert_array_equal(some.states, every.states[[0, 3, 6, 7]])
    np.testing.assert_array_equal(some.times, every.times[[0, 3, 6, 7]])
    still = simulate_distance(rng=rng(5), **(run | dict(branch=0.0)))
    np.testing.assert_allclose(still.states, 2.0)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (dict(distance0=0.0), "distance0 must be from 1e-100 to 1e"),
        (dict(distance0=2e6), "distance0 must be below level = 1000000.0, got 2000000"),
        (dict(tau0=0.0), "tau0 must be from .*, got 0.0"),
        (dict(tau0=-1.0), "tau0 must be from .*, got -1.0"),
        (dict(branch=1.1), "branch must be from 0 to 1, got 1.1"),
        (dict(horizon=0.0), "horizon must be a positive finite number, got 0.0"),
        (dict(steps=0), "steps must be an integer"),
        (dict(horizon=99.0), "steps must be at least 87 to the horizon 99"),
        (dict(paths=0), "paths must be an integer"),
        (dict(heads=0), "heads must be an integer"),
        (dict(rng=None), "rng must be a numpy.random.Generator"),
    ],
)
def test_bad_arguments_are_named(changed, message):
    good = dict(distance0=2.0, branch=0.5, tau0=0.5, horizon=1.0, steps=4, paths=2)
    with pytest.raises(ValueError, match=message):
        simulate_distance(**(good | dict(rng=rng()) | changed))


@pytest.mark.parametrize("function", [explosion_probability, hitting_probability])
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (dict(distance0=[1.0, -1.0]), "distance0 must be not negative, got -1.0"),
        (dict(distance0=np.nan), "distance0 must be finite"),
        (dict(branch=1.1), "branch must be from 0 to 1, got 1.1"),
        (dict(tau0=0.0), "tau0 must be positive, got 0.0"),
        (dict(tau0=[1.0, -2.0]), "tau0 must be positive, got -2.0"),
        (dict(tau0=[1.0, 2.0], distance0=[1.0, 1.0, 1.0]), "must have a common shape"),
        (dict(heads=0), "heads must be an integer"),
    ],
)
def test_bad_arguments_of_probabilities_are_named(function, changed, message):
    good = dict(distance0=2.0, branch=0.5, tau0=0.5)
    if function is hitting_probability:
        good |= dict(level=9.0)
    with pytest.raises(ValueError, match=message):
        function(**(good | changed))


def test_a_path_starts_below_its_level():
    for level in (2.0, 1.9):
        with pytest.raises(ValueError, match="distance0 must be below level"):
            simulate_distance(2.0, 0.5, 0.5, 0.1, 9, paths=2, rng=rng(), level=level)
