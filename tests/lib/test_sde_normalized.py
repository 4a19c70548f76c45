"""Two normalized tokens: Itô's formula, the scale function, paths and networks."""

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp

from lib.gram import ShapedLayer, layers, simulate
from lib.sde import CovarianceSDE, antipodal_probability, simulate_cosine
from lib.sde.normalized import _advanced


def rng(key=0):
    return np.random.default_rng(key)


def by_ito(cosine, branch, tau0, heads=1):
    """Drift and variance of artanh ρ by Itô's formula from b and Σ of all of V.

    Derivatives of artanh(V₁₂/√(V₁₁V₂₂)) are difference quotients of second order.
    """
    V = np.array([[1.0, cosine], [cosine, 1.0]])
    sde, eps = CovarianceSDE(branch, tau0, heads), 1e-4
    i, j = np.triu_indices(2)

    def f(change):
        moved = V + np.array([[change[0], change[1]], [change[1], change[2]]])
        return np.arctanh(moved[0, 1] / np.sqrt(moved[0, 0] * moved[1, 1]))

    unit = eps * np.eye(3)
    first = np.array([(f(u) - f(-u)) / (2 * eps) for u in unit])
    second = np.array(
        [
            [(f(u + v) - f(u - v) - f(v - u) + f(-u - v)) / (4 * eps**2) for v in unit]
            for u in unit
        ]
    )
    spread = sde.diffusion(V)
    drift = first @ sde.drift(V)[i, j] + (second * spread).sum() / 2
    return drift, first @ spread @ first


def coefficients(cosine, branch, tau0, heads=1):
    q, h = branch**2 * (2 - branch**2), branch**4 / (4 * heads * tau0**2)
    drift = (q * cosine + h * (1 - cosine) ** 2 * (2 + cosine)) / 2
    return drift, q + h * (1 - cosine) ** 2


PARAMETERS = [(0.7, 0.6, 1), (1.0, 0.3, 1), (0.4, 0.8, 3)]


@pytest.mark.parametrize(("branch", "tau0", "heads"), PARAMETERS)
@pytest.mark.parametrize("cosine", [-0.9, -0.4, 0.0, 0.7])
def test_the_equation_is_that_of_the_whole_matrix(cosine, branch, tau0, heads):
    derived = by_ito(cosine, branch, tau0, heads)
    expected = coefficients(cosine, branch, tau0, heads)
    np.testing.assert_allclose(derived, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("branch", "tau0", "heads"), PARAMETERS)
def test_one_step_has_the_moments_of_the_equation(branch, tau0, heads):
    step, paths = 1e-2, 100_000
    drift, variance = coefficients(-0.5, branch, tau0, heads)
    run = simulate_cosine(
        -0.5, branch, tau0, step, 1, paths=paths, rng=rng(1), heads=heads
    )
    moves = run.states[1] - np.arctanh(-0.5)
    noise = np.sqrt(variance * step / paths)
    # Right up to the square of the step, with constants of order 1.
    assert moves.mean() == pytest.approx(
        drift * step, abs=5 * noise + 0.2 * step**2 * variance**2
    )
    assert moves.var() == pytest.approx(variance * step, rel=0.02 + step * variance)


@pytest.mark.parametrize("power", [1, 2, 3])
def test_a_step_is_right_up_to_the_cube_of_its_length(power):
    """E zᵖ after a step, by quadrature, less z + hLz + h²L²z/2: weak order 2."""
    x, w = np.polynomial.hermite_e.hermegauss(40)
    branch, tau0, start, eps = 0.9, 0.5, -0.3, 2e-3
    q, h = branch**2 * (2 - branch**2), branch**4 / (4 * tau0**2)

    def generate(f):  # Lf, derivatives by differences of fourth order
        def image(z):
            drift, variance = coefficients(np.tanh(z), branch, tau0)
            near, far = (np.array([f(z - k * eps), f(z + k * eps)]) for k in (1, 2))
            slope = (8 * np.diff(near) - np.diff(far))[0] / (12 * eps)
            bend = (16 * near.sum() - far.sum() - 30 * f(z)) / (12 * eps**2)
            return drift * slope + variance * bend / 2

        return image

    first = generate(lambda z: z**power)
    second = generate(first)

    def error(step):
        after = _advanced(np.full(40, start), step, q, h, x)
        taylor = start**power + step * first(start) + step**2 / 2 * second(start)
        return w @ after**power / w.sum() - taylor

    assert error(0.02) / error(0.01) == pytest.approx(8, rel=0.25)


def scale_share(cosine, branch, tau0, heads=1):
    """The ratio of scale functions, from drift and variance of z alone."""

    def slope(z, state):
        drift, variance = coefficients(np.tanh(z), branch, tau0, heads)
        return [-2 * drift / variance, np.exp(state[0])]

    def integral(end):
        span, start = [np.arctanh(cosine), end], [0.0, 0.0]
        return solve_ivp(slope, span, start, rtol=1e-10, atol=1e-13).y[1, -1]

    drift, variance = coefficients(-1.0, branch, tau0, heads)
    above, below = integral(40.0), -integral(16 * variance / drift)
    return above / (above + below)


CASES = [
    (0.0, 0.7, 1.0, 1), (0.3, 0.7, 0.8, 1), (-0.7, 1.0, 1.3, 1), (0.95, 0.7, 0.7, 1),
    (-0.95, 0.9, 1.2, 1), (0.2, 0.7, 0.45, 3), (-0.2, 0.1, 0.3, 1),
]  # fmt: skip


@pytest.mark.parametrize(("cosine", "branch", "tau0", "heads"), CASES)
def test_probability_is_a_ratio_of_scale_functions(cosine, branch, tau0, heads):
    chance = antipodal_probability(cosine, branch, tau0, heads=heads)
    assert 0 < chance < 1
    assert chance == pytest.approx(scale_share(cosine, branch, tau0, heads), rel=1e-7)


def test_density_of_the_docstring_is_what_is_integrated():
    branch, tau0, cosine = 0.7, 0.9, -0.4
    q, h = branch**2 * (2 - branch**2), branch**4 / (4 * tau0**2)
    kappa, alpha = h / q, 4 * h / (4 * h + q)

    def smooth(r):
        bend = np.exp(-alpha / 2 / kappa**0.5 * np.arctan(kappa**0.5 * (1 - r)))
        return (1 + kappa * (1 - r) ** 2) ** (alpha / 2) * bend

    def inner(r):
        return (1 - r) ** -0.5 * (1 + r) ** (-0.5 - alpha) * smooth(r)

    left = quad(
        lambda r: (1 - r) ** -0.5 * smooth(r),
        -1,
        0,
        weight="alg",
        wvar=(-0.5 - alpha, 0),
    )[0]
    right = quad(
        lambda r: (1 + r) ** (-0.5 - alpha) * smooth(r),
        0,
        1,
        weight="alg",
        wvar=(0, -0.5),
    )[0]
    part = quad(inner, cosine, 0, epsabs=1e-13)[0] + right
    chance = antipodal_probability(cosine, branch, tau0)
    assert chance == pytest.approx(part / (left + right), rel=1e-10)


def test_probability_at_its_ends():
    cosines = np.array([-1.0, -0.9, 0.0, 0.5, 1.0])
    chances = antipodal_probability(cosines, 0.7, 1.0)
    assert chances[0] == 1 and chances[-1] == 0 and (np.diff(chances) < 0).all()
    # Linear layers: the angle over π.
    linear = antipodal_probability(cosines, 0.7, 1e200)
    np.testing.assert_allclose(linear, np.arccos(cosines) / np.pi, atol=1e-14)
    small = antipodal_probability(cosines, 1e-9, 1.0)
    np.testing.assert_allclose(small, np.arccos(cosines) / np.pi, atol=1e-14)
    # The threshold τ0² = γ²/(2 − γ²)/H, which is approached from above.
    for branch, heads in ((0.7, 1), (1.0, 1), (0.7, 4)):
        edge = branch / np.sqrt(heads * (2 - branch**2))
        above = edge * (1 + 10.0 ** -np.arange(1, 12))
        near = antipodal_probability(0.3, branch, above, heads=heads)
        assert (np.diff(near) < 0).all() and 0 < near[-1] < 1e-9
        below = antipodal_probability(0.3, branch, edge * (1 - 1e-12), heads=heads)
        assert below == 0
    assert antipodal_probability([-1.0, 0.0], 0.7, 1e-3).tolist() == [1, 0]
    assert antipodal_probability([-1.0, 0.0], 0.0, 1.0).tolist() == [1, 0]
    assert isinstance(antipodal_probability(0, 0.5, 0.9), float)
    assert antipodal_probability(np.zeros((2, 1)), 0.7, [1.0, 2.0, 3.0]).shape == (2, 3)


def test_opposite_ends_of_a_line_add_up_near_the_ends():
    """Near ±1 the probability behaves like a power of the distance."""
    gap = 10.0 ** -np.arange(6, 15, 2)
    high = antipodal_probability(1 - gap, 0.7, 1.0)
    np.testing.assert_allclose(high[1:] / high[:-1], 0.1, rtol=1e-2)
    q, h = 0.49 * 1.51, 0.49**2 / 4
    low = 1 - antipodal_probability(-1 + gap[:3], 0.7, 1.0)
    power = 0.5 - 4 * h / (4 * h + q)
    np.testing.assert_allclose(low[1:] / low[:-1], 0.01**power, rtol=1e-2)


def test_the_probability_is_a_martingale_along_paths():
    run = simulate_cosine(
        0.3, 0.7, 0.7, 8.0, 128, paths=40_000, rng=rng(3), save_every=32
    )
    seen = antipodal_probability(np.tanh(run.states), 0.7, 0.7)
    noise = seen.std(axis=1) / np.sqrt(seen.shape[1])
    np.testing.assert_array_less(
        np.abs(seen.mean(axis=1) - seen[0, 0]), 4 * noise + 1e-9
    )
    assert run.times.tolist() == [0, 2, 4, 6, 8]
    # Another temperature has another martingale.
    other = antipodal_probability(np.tanh(run.states), 0.7, 1.5)
    drift = other[-1].mean() - other[0, 0]
    assert abs(drift) > 8 * other[-1].std() / np.sqrt(other.shape[1])


def test_paths_below_the_threshold_end_equal():
    z = simulate_cosine(
        -0.9, 0.7, 0.3, 60.0, 400, paths=2000, rng=rng(4), save_every=400
    ).states[-1]
    assert (z > 0).mean() > 0.99
    assert z.mean() / 60 == pytest.approx(0.49 * 1.51 / 2, rel=0.1)  # q/2


def test_wide_networks_with_rmsnorm_have_the_law():
    """The mean of a bounded function at T = 1, from an obtuse angle."""
    n, start = 256, np.array([[1.0, -0.6], [-0.6, 1.0]])
    block = ShapedLayer(n, 8, np.sqrt(0.51), 0.7, 0.4), layers.RMSNorm(n)
    run = simulate(start, block, n, paths=4000, rng=rng(5), save_every=n)
    network_z = np.arctanh(np.clip(run.states[-1, :, 0, 1], -1 + 1e-15, 1 - 1e-15))
    z = simulate_cosine(
        -0.6, 0.7, 0.4, 1.0, 32, paths=40_000, rng=rng(6), save_every=32
    ).states[-1]
    noise = np.tanh(network_z).std() / np.sqrt(4000)
    assert np.tanh(network_z).mean() == pytest.approx(np.tanh(z).mean(), abs=5 * noise)
    assert network_z.std() == pytest.approx(z.std(), rel=0.06)


def test_nothing_moves_without_a_branch():
    run = simulate_cosine(0.3, 0.0, 1.0, 1.0, 4, paths=3, rng=rng())
    np.testing.assert_array_equal(run.states, np.arctanh(0.3))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(cosine0=1.0), "cosine0 must be from"),
        (dict(cosine0=-1), "cosine0 must be from"),
        (dict(steps=1, horizon=9.0), "steps must be at least"),
        (dict(tau0=0.0), "tau0 must be from"),
        (dict(branch=1.1), "branch must be from 0 to 1"),
    ],
)
def test_what_cannot_be_simulated(change, message):
    good = dict(cosine0=0.1, branch=0.7, tau0=0.5, horizon=1.0, steps=8)
    with pytest.raises(ValueError, match=message):
        simulate_cosine(**(good | change), paths=2, rng=rng())
