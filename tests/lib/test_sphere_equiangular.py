"""Equiangular tokens: the equation, its times in closed form, and one layer."""

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp

from lib import sphere
from lib.sphere import equiangular_gap, equiangular_time


def tokens(n, cosine):
    """n tokens that all have one cosine with one another."""
    return np.linalg.cholesky((1 - cosine) * np.eye(n) + cosine)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("beta", [0.0, 2.0, 5.0, -3.0, 1e4])
@pytest.mark.parametrize(("n", "cosine"), [(2, -0.4), (5, 0.0), (7, 0.6)])
def test_speed_is_that_of_tokens(n, cosine, beta, normalize):
    x = tokens(n, cosine)
    field = sphere.attention_field(x, beta, normalize)
    rates = field @ x.T + x @ field.T
    expected = rates[np.triu_indices(n, 1)]
    speed = sphere.equiangular_field(cosine, n, beta, normalize)
    np.testing.assert_allclose(expected, speed, atol=1e-14, rtol=0)
    for end in (-1 / (n - 1), 1):
        rest = sphere.equiangular_field(end, n, beta, normalize)
        assert abs(rest) < 1e-15


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("beta", [0.0, 5.0, -2.0])
@pytest.mark.parametrize("cosine0", [0.0, -0.1, 0.3])
def test_gap_is_that_of_tokens(beta, normalize, cosine0):
    run = sphere.simulate(tokens(8, cosine0), beta, 6, 240, normalize=normalize)
    keep = slice(40, None, 40)
    x = run.states[keep]
    squares = np.sum((x[:, 0] - x[:, 1]) ** 2, axis=-1) / 2
    gaps = equiangular_gap(
        8, beta, run.times[keep], cosine0=cosine0, normalize=normalize
    )
    np.testing.assert_allclose(gaps, squares, rtol=2e-7)


def test_without_temperature_the_gap_is_rational_in_exponentials():
    t = np.array([0.0, 0.5, 3.0, 40.0, 300.0])
    for n in (2, 7):
        expected = n / (np.exp(2 * t) + n - 1)
        np.testing.assert_allclose(equiangular_gap(n, 0.0, t), expected, rtol=1e-9)


def by_quadrature(n, beta, gap, normalize, cosine0=0.0):
    """The time as an integral over the variable u that moves at a regular speed."""
    a = n - 1

    def at(u):
        g = n / (np.exp(u) + a)
        return (np.exp(beta * g) + a) / (2 * n) if normalize else np.exp(beta * g) / 2

    start = np.log((1 + a * cosine0) / (1 - cosine0))
    end = np.log((n - a * gap) / gap)
    cuts = np.linspace(start, end, 20)
    return sum(
        quad(at, *ends, epsabs=0, epsrel=1e-13)[0]
        for ends in zip(cuts, cuts[1:], strict=False)
    )


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize(
    ("n", "cosine0"),
    [(2, 0.0), (2, -0.5), (3, -0.3), (3, 0.4), (32, 0.0), (32, 0.4), (10**6, 0.0)],
)
def test_time_is_its_integral(n, cosine0, normalize):
    betas = [0, 1e-300, 1e-18, 1e-16, 5e-11, 1e-5, 0.3, 5, 31, 48, 52, 170, 450]
    for gap in (1e-12, 1e-3, 0.2):
        times = equiangular_time(n, betas, gap, normalize, cosine0=cosine0)
        expected = [by_quadrature(n, b, gap, normalize, cosine0) for b in betas]
        np.testing.assert_allclose(times, expected, rtol=5e-13)


@pytest.mark.parametrize(
    ("n", "cosine0"),
    [(10**9, 0.0), (2**53, 0.0), (2, -1 + 1e-12), (2, -1 + 2**-53), (3, 1e-12 - 1 / 2)],
)
def test_time_keeps_its_digits_next_to_an_equilibrium(n, cosine0):
    betas = np.array([0, 1e-5, 0.3, 5, 50])
    for normalize in (True, False):
        times = equiangular_time(n, betas, 0.1, normalize, cosine0=cosine0)
        expected = [by_quadrature(n, b, 0.1, normalize, cosine0) for b in betas]
        np.testing.assert_allclose(times, expected, rtol=1e-12)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("step", [2.0**-52, 1e-9, 1e-5, 5e-3, 2e-2])
def test_short_times_keep_their_digits(step, normalize):
    """Against the integral of 1/speed by Simpson's rule."""
    gap = 1 - step
    betas = np.array([0, 1e-18, 1e-5, 1.0, 20.0])
    cosines = np.linspace(0, 1 - gap, 201)
    weights = np.array([1, *([4, 2] * 99), 4, 1]) / 600 * (1 - gap)
    speeds = [sphere.equiangular_field(cosines, 7, b, normalize) for b in betas]
    expected = (1 / np.array(speeds)) @ weights
    times = equiangular_time(7, betas, gap, normalize)
    np.testing.assert_allclose(times, expected, rtol=1e-11)


@pytest.mark.parametrize("normalize", [True, False])
def test_short_times_keep_their_digits_where_the_speed_varies(normalize):
    """By a factor of e^(β step), up to 1000, within the step."""
    betas = [100.0, 300.0, 700.0]
    for gap in (0.991, 0.995):
        times = equiangular_time(2, betas, gap, normalize)
        expected = [by_quadrature(2, b, gap, normalize) for b in betas]
        np.testing.assert_allclose(times, expected, rtol=1e-12)


@pytest.mark.filterwarnings("error")
def test_rounding_beyond_an_end_is_the_end():
    for end, n in ((1, 3), (-1, 2)):
        for beta in (1e16, -1e16, 1.79e308):
            for normalize in (True, False):
                beyond = end * (1 + 1e-12)
                assert sphere.equiangular_field(beyond, n, beta, normalize) == 0
    with pytest.raises(ValueError, match="cosine0=.* is an equilibrium"):
        equiangular_time(50, 1.0, 0.1, cosine0=-1 / 49)


def test_equilibria_are_refused_however_they_are_rounded():
    """The simplex, and what is nearer to it than the rounding of its determinant."""
    for n in range(2, 300):
        end = -1 / (n - 1)
        inner = np.nextafter(end, 1)
        starts = [1.0, end] + [inner] * bool(1 + (n - 1) * inner == 0)
        for start in starts:
            with pytest.raises(ValueError, match="is an equilibrium"):
                equiangular_time(n, 1.0, 0.1, cosine0=start)


def test_time_is_when_the_equation_gets_there():
    """An event of an integrator, which knows no exponential integral."""
    for normalize, expected in ((True, 9.544329), (False, 0.974607 * np.exp(5))):

        def slope(_, rho, own=normalize):
            return sphere.equiangular_field(rho, 32, 5.0, own)

        def reached(_, rho):
            return rho[0] - 0.999

        reached.terminal = True
        run = solve_ivp(
            slope, (0, 1e3), [0.0], "DOP853", events=reached, rtol=1e-12, atol=1e-14
        )
        time = equiangular_time(32, 5.0, 1e-3, normalize)
        assert time == pytest.approx(run.t_events[0][0], rel=1e-10, abs=0)
        assert time == pytest.approx(expected, rel=1e-6, abs=0)


def test_time_inverts_the_gap():
    times = equiangular_time(16, np.array([0.0, 2.0, 6.0]), 1e-4, False)
    for beta, time in zip((0.0, 2.0, 6.0), times, strict=True):
        gap = equiangular_gap(16, beta, [time], normalize=False)
        assert gap[0] == pytest.approx(1e-4, rel=1e-8, abs=0)


def test_large_beta_asymptotics():
    """Two clusters at a right angle: T ~ e^β/(2β), with a correction of order 1/β."""
    for beta, allowed in ((50.0, 0.03), (400.0, 0.003)):
        quotient = equiangular_time(2, beta, 1e-3) * 2 * beta * np.exp(-beta)
        assert quotient == pytest.approx(1, abs=allowed)


@pytest.mark.parametrize("normalize", [True, False])
def test_overflow_gives_the_logarithm(normalize):
    """The largest time that fits continues into the logarithm that is given."""
    for beta in (800.0, 1e4, 1e50):
        with pytest.raises(OverflowError, match="logarithm is ") as error:
            equiangular_time(32, np.array([1.0, beta]), 1e-3, normalize)
        logarithm = float(str(error.value).split()[-1])
        # D e^−β at leading orders: Σ k!/β^k/β + e^x E₁(x), x = β/31 > 25.
        x = beta / 31
        series = (1 + 1 / beta + 2 / beta**2) / beta
        series += (1 - 1 / x + 2 / x**2 - 6 / x**3 + 24 / x**4) / x
        expected = beta + np.log(series) - np.log(64 if normalize else 2)
        assert logarithm == pytest.approx(expected, rel=1e-7, abs=0)
    assert 1e300 < equiangular_time(32, 705.0, 1e-3, normalize) < np.inf


@pytest.mark.parametrize("beta", [0.0, 3.0, -3.0])
@pytest.mark.parametrize(("n", "cosine"), [(2, -0.4), (7, 0.3)])
def test_one_layer_of_attention(n, cosine, beta):
    y = sphere.attention_output(tokens(n, cosine), beta)
    y /= np.linalg.norm(y, axis=1, keepdims=True)
    next_cosine = sphere.attention_cosine(cosine, n, beta)
    assert next_cosine == pytest.approx((y @ y.T)[0, 1], abs=1e-14)


def test_long_contexts_have_three_phases():
    """β = c log n: all alike, something between, or nothing happens."""
    n, log = 10**12, np.log(1e12)
    for rho in (0.2, 0.5):
        cosines = [
            sphere.attention_cosine(rho, n, c / (1 - rho) * log) for c in (0.5, 1, 2)
        ]
        np.testing.assert_allclose(
            cosines, [1, 4 * rho / (1 + 3 * rho), rho], atol=1e-5, rtol=0
        )


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: equiangular_time(1, 1.0, 0.1), ["n", "1"]),
        (lambda: equiangular_time(3, -1.0, 0.1), ["beta", "-1"]),
        (lambda: equiangular_time(3, [1.0, np.nan], 0.1), ["beta[1]", "nan"]),
        (lambda: equiangular_time(3, 1.0, 0), ["gap", "0"]),
        (lambda: equiangular_time(3, 1.0, 1), ["gap", "1"]),
        (lambda: equiangular_time(3, 1.0, 0.6, cosine0=0.5), ["gap", "0.6", "cosine0"]),
        (lambda: equiangular_time(3, 1.0, 0.1, cosine0=-0.5), ["cosine0", "n=3"]),
        (lambda: equiangular_gap(3, 1.0, [1.0, 0.5]), ["times", "increasing"]),
        (lambda: equiangular_gap(3, 1.0, [1.0], cosine0=1.0), ["cosine0", "n=3"]),
        (lambda: sphere.equiangular_field(-0.6, 3, 1.0), ["cosine", "-0.6"]),
        (lambda: sphere.attention_cosine(1.1, 3, 1.0), ["cosine", "1.1"]),
        (lambda: sphere.attention_cosine(-0.5, 3, 0.0), ["cosine", "0"]),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises(ValueError, match=".") as error:
        call()
    assert all(word in str(error.value) for word in words), str(error.value)
