"""Formulas on the softmax expansion: derivatives, remainders, mean moves, redone."""

from fractions import Fraction
from itertools import product
from math import factorial, prod

import numpy as np
import pytest
import sympy as sp
from digits import fraction
from mpmath import mp
from printed import formula

DIGITS = 50


def reals(rng, count, scale=1.0):
    return [mp.mpf(x) for x in rng.normal(0, scale, count)]


def softmax(u):
    exponentials = [mp.exp(x) for x in u]
    return [x / mp.fsum(exponentials) for x in exponentials]


def centered(u):
    return [x - sum(u) / len(u) for x in u]


def along_the_ray(u, i, order, counts=None):
    """Taylor coefficients in t of s_i(tu), a quotient of two exponential series."""
    counts = counts or [1] * len(u)
    upper = [u[i] ** r / factorial(r) for r in range(order + 1)]
    lower = [
        sum(c * x**r for c, x in zip(counts, u, strict=True)) / factorial(r)
        for r in range(order + 1)
    ]
    terms = []
    for r in range(order + 1):
        known = sum(terms[k] * lower[r - k] for k in range(r))
        terms.append((upper[r] - known) / lower[0])
    return terms


def weights_and_slope(m):
    """The softmax in w_k = e^{z_k}, where the derivative in z_j is w_j d/dw_j."""
    w = sp.symbols(f"w:{m}")
    return w, [x / sum(w) for x in w], lambda f, j: w[j] * sp.diff(f, w[j])


@formula(
    "prop-softmax-derivative",
    r"\frac{\partial s_i}{\partial z_j} = s_i (\delta_{ij} - s_j),",
)
@pytest.mark.parametrize("m", [1, 2, 3, 5])
def test_the_first_derivative(rng, m):
    w, s, slope = weights_and_slope(m)
    point = {x: sp.Rational(fraction(rng, 1)) for x in w}
    at = [x.subs(point) for x in s]
    for i, j in product(range(m), repeat=2):
        assert slope(s[i], j).subs(point) == at[i] * (int(i == j) - at[j])


@formula(
    "prop-first-order",
    r"E_i(\tau) = s_i(y/\tau) - \frac1m - \frac{y_i - \bar y}{m \tau} .",
)
@pytest.mark.parametrize("m", [1, 2, 5])
def test_the_remainder_of_the_first_order(rng, m):
    y, tau, i = reals(rng, m), mp.mpf(rng.uniform(0.3, 3)), rng.integers(m)
    u = [x / tau for x in y]
    r = softmax(u)[i] - mp.mpf(1) / m - centered(y)[i] / (m * tau)

    # It is what Taylor's formula says of a remainder: an integral of f''.
    def second(t):
        return mp.diff(lambda s: softmax([s * x for x in u])[i], t, 2)

    assert abs(r - mp.quad(lambda t: (1 - t) * second(t), [0, 1])) < 1e-28
    assert abs(r) <= (max(y) - min(y)) ** 2 / (12 * mp.sqrt(3) * tau**2)


@formula(
    "prop-first-order", r"\tau^2\, E_i(\tau) \to \frac{(y_i - \bar y)^2 - v_y}{2m} ."
)
@pytest.mark.parametrize("m", [1, 2, 3, 6])
def test_the_remainder_at_a_high_temperature(rng, m):
    y, tau = reals(rng, m), mp.mpf(10) ** 40
    with mp.workdps(150):
        s, d = softmax([x / tau for x in y]), centered(y)
        r = [s[i] - mp.mpf(1) / m - d[i] / (m * tau) for i in range(m)]
    v = sum(x**2 for x in d) / m
    for i in range(m):
        assert abs(tau**2 * r[i] - (d[i] ** 2 - v) / (2 * m)) < 1e-35


@formula(
    "thm-cumulants",
    r"""\begin{aligned}
\frac{\partial s_i}{\partial z_j} &= \mathbb E[\hat\xi_i \hat\xi_j] = \Sigma_{ij}, \\
\frac{\partial^2 s_i}{\partial z_j \partial z_k} &=
\mathbb E[\hat\xi_i \hat\xi_j \hat\xi_k], \\
\frac{\partial^3 s_i}{\partial z_j \partial z_k \partial z_l} &=
\mathbb E[\hat\xi_i \hat\xi_j \hat\xi_k \hat\xi_l]
- \Sigma_{ij} \Sigma_{kl} \\
&\quad - \Sigma_{ik} \Sigma_{jl} - \Sigma_{il} \Sigma_{jk} .
\end{aligned}""",
)
@pytest.mark.parametrize("m", [2, 3])
def test_the_derivatives_are_cumulants(rng, m):
    w, s, slope = weights_and_slope(m)
    point = {x: sp.Rational(fraction(rng, 1)) for x in w}
    at = [x.subs(point) for x in s]

    def mean(*indices):  # over the m values of the one-hot vector
        return sum(at[a] * prod(int(a == i) - at[i] for i in indices) for a in range(m))

    sigma = sp.diag(*at) - sp.Matrix(at) * sp.Matrix(at).T
    for i, j, k in product(range(m), repeat=3):
        first = slope(s[i], j)
        assert first.subs(point) == mean(i, j) == sigma[i, j]
        second = slope(first, k)
        assert second.subs(point) == mean(i, j, k)
        for x in range(m):
            pairs = sigma[i, j] * sigma[k, x] + sigma[i, k] * sigma[j, x]
            pairs += sigma[i, x] * sigma[j, k]
            assert slope(second, x).subs(point) == mean(i, j, k, x) - pairs


@formula(
    "prop-third-order",
    r"""\begin{aligned}
s_i(u) = \frac1m \Big[ & 1 + \hat u_i + \tfrac12 (\hat u_i^2 - M_2) \\
& + \tfrac16 (\hat u_i^3 - 3 M_2 \hat u_i - M_3) \Big] \\
& + O(\tau^{-4}) .
\end{aligned}""",
)
@pytest.mark.parametrize("m", [1, 2, 3, 6])
def test_the_expansion_to_third_order(rng, m):
    y, rests = reals(rng, m), []
    with mp.workdps(220):
        for tau in (mp.mpf(10) ** 40, mp.mpf(10) ** 42):
            u = [x / tau for x in y]
            c = centered(u)
            M2, M3 = (sum(x**r for x in c) / m for r in (2, 3))
            terms = [
                [x / m, (x**2 - M2) / (2 * m), (x**3 - 3 * M2 * x - M3) / (6 * m)]
                for x in c
            ]
            rest = [
                s - mp.mpf(1) / m - sum(t)
                for s, t in zip(softmax(u), terms, strict=True)
            ]
            rests.append([tau**4 * x for x in rest])
            assert all(abs(sum(t)) < 1e-200 for t in zip(*terms, strict=True))
    # What is left, times τ⁴, has a limit: it is O(τ^-4), and of no higher order.
    fourth = [along_the_ray(y, i, 4)[4] for i in range(m)]
    for one, two, limit in zip(*rests, fourth, strict=True):
        assert abs(one - two) < 1e-35 and abs(two - limit) < 1e-35


def share_of_the_bound(u, counts, k):
    """The largest remainder of order k over its bound; value u_a occurs c_a times."""
    m = sum(counts)
    S = sum(c * mp.exp(x) for c, x in zip(counts, u, strict=True))
    top = max(u) - sum(c * x for c, x in zip(counts, u, strict=True)) / m
    C = [mp.mpf(1) / 4, 1 / (6 * mp.sqrt(3)), mp.mpf(1) / 8, mp.mpf(1) / 6][k]
    bound = (max(u) - min(u)) ** (k + 1) / factorial(k + 1)
    bound *= min(C, mp.exp(top) / m)
    rests = [
        abs(mp.exp(x) / S - sum(along_the_ray(u, i, k, counts)))
        for i, x in enumerate(u)
    ]
    return max(rests) / bound


@formula(
    "thm-remainder",
    r"""\frac{R^{k+1}}{(k+1)!}
\min \Big( C_{k+1}, \frac1m e^{\max_j \hat u_j} \Big),""",
)
@pytest.mark.parametrize("k", range(4))
def test_the_bound_on_the_remainder(rng, k):
    for scale in (0.01, 0.1, 0.5, 1, 2, 4, 8, 30):
        for m in (2, 3, 5, 9):
            u = reals(rng, m, scale)
            assert share_of_the_bound(u, [1] * m, k) <= 1
        # Two values, one of them rare: what comes nearest to the bound.
        for rare in ([1, 10], [10, 1], [1, 1], [1, 10**4], [10**4, 1]):
            u = [mp.mpf(0), mp.mpf(scale * rng.uniform(0.5, 1))]
            assert share_of_the_bound(u, rare, k) <= 1
    # Two tokens attain C₁ and C₃ as R → 0, and five nearly attain C₂.
    with mp.workdps(180):
        R = mp.mpf(10) ** -28
        least = [1 - R, mp.mpf("0.995"), 1 - R, 0][k]
        others = 4 if k == 1 else 1
        used = share_of_the_bound([R, mp.mpf(0)], [1, others], k)
    assert least <= used <= 1
    # The other branch is attained as m → ∞ and R → 0: no factor below 1 serves.
    with mp.workdps(180):
        R, m = mp.mpf(rng.uniform(1, 2)) * mp.mpf(10) ** -28, 10**28
        used = share_of_the_bound([-R, mp.mpf(0)], [1, m - 1], k)
    assert 1 - mp.mpf(10) ** -26 < used <= 1


def signs(*shape):
    """All arrays of signs: up to degree 3 in each, they have the moments of normals."""
    for each in product([Fraction(1), Fraction(-1)], repeat=prod(shape)):
        yield np.array(each, dtype=object).reshape(shape)


def scores(X, n_k):
    """For all signs in place of query and key weights, the scores."""
    n = X.shape[1]
    keys = [X @ W for W in signs(n, n_k)]
    return [Q @ K.T / n for Q in keys for K in keys]


def tokens(rng, m, n):
    X = np.array([fraction(rng) for _ in range(m * n)], dtype=object).reshape(m, n)
    return X, X @ X.T / n


@formula("prop-scores", r"\mathbb E[Y_{ij} Y_{ab}] = n_k V_{ia} V_{jb} .")
@pytest.mark.parametrize("m, n, n_k", [(1, 1, 1), (3, 1, 2), (2, 2, 2), (2, 3, 1)])
def test_the_covariance_of_the_scores(rng, m, n, n_k):
    X, V = tokens(rng, m, n)
    # A product of two scores is of degree 2 in every weight: signs suffice.
    Y = scores(X, n_k)
    assert not np.any(sum(Y))
    for i, j, k, x in product(range(m), repeat=4):
        mean = sum(y[i, j] * y[k, x] for y in Y) / len(Y)
        assert mean == n_k * V[i, k] * V[j, x]


@formula(
    "prop-drift",
    r"""\begin{aligned}
& n \tau_0^2\; \mathbb E\big[ A_1 V A_1^\top \big]
= \frac1{m^2} \lVert \tilde V \rVert_F^2\; V, \\
& n \tau_0^2\; \mathbb E\big[ A_2 V + V A_2^\top \big] \\
& \quad = \frac1{2m} \big( \mathrm{diag}(V)\, w^\top + w\, \mathrm{diag}(V)^\top \big) .
\end{aligned}""",
)
@pytest.mark.parametrize("m, n, n_k", [(1, 2, 1), (2, 1, 2), (3, 2, 2), (4, 3, 1)])
def test_the_two_contributions_to_the_drift(rng, m, n, n_k):
    (X, V), tau0 = tokens(rng, m, n), fraction(rng, 1)
    tau_squared = tau0**2 * n * n_k
    first, second = 0, 0
    for Y in (cases := scores(X, n_k)):  # degree 2 in every weight, as above
        terms = [[along_the_ray(list(y), i, 2) for i in range(m)] for y in Y]
        A1, A2 = (
            np.array([[term[r] for term in row] for row in terms]) for r in (1, 2)
        )
        first = first + A1 @ V @ A1.T / tau_squared
        second = second + (A2 @ V + V @ A2.T) / tau_squared
    J = np.array([[(i == j) - Fraction(1, m) for i in range(m)] for j in range(m)])
    Vc = J @ V @ J
    w, d = V @ J @ np.diag(Vc), np.diag(V)
    expected = (Vc**2).sum() * V / m**2
    assert np.all(n * tau0**2 * first / len(cases) == expected)
    expected = (np.outer(d, w) + np.outer(w, d)) / (2 * m)
    assert np.all(n * tau0**2 * second / len(cases) == expected)
