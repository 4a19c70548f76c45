"""Formulas on proportional limits: exact moments of a layer, Itô's formula, scales."""

from itertools import product
from math import prod

import numpy as np
import pytest
import sympy as sp
from digits import exp, fraction, normals
from mpmath import mp
from printed import formula

DIGITS = 60


def objects(entries, *shape):
    return np.array(list(entries), dtype=object).reshape(shape)


def settings(rng):
    """γ² and τ₀."""
    return mp.mpf(rng.uniform(0.05, 1)), mp.mpf(rng.uniform(0.3, 2))


def root_and_gram(rng, m):
    C = np.tril(normals(rng, m, m))
    return C, C @ C.T


def norm(M):
    return mp.sqrt(sum(x**2 for x in np.ravel(M)))


# --- What the chapter defines -----------------------------------------------------


def crossed(V, K):
    """V_ik K_jl + V_il K_jk + V_jk K_il + V_jl K_ik"""
    ikjl = np.multiply.outer(V, K)
    both = ikjl.transpose(0, 2, 1, 3) + ikjl.transpose(0, 2, 3, 1)
    return both + both.transpose(1, 0, 2, 3)


def linear_noise(V):
    ikjl = np.multiply.outer(V, V)
    return ikjl.transpose(0, 2, 1, 3) + ikjl.transpose(0, 2, 3, 1)


def centering(m):  # m J, of integers
    return m * np.eye(m, dtype=int).astype(object) - 1


def attention_noise(V):
    P, m = centering(len(V)), len(V)
    return crossed(V, V @ P @ V @ P @ V / m**2) / m**2


def drift_of(V, gamma2, tau0):
    P, m = centering(len(V)), len(V)
    Vc = P @ V @ P / m**2
    w, d = V @ P @ np.diag(Vc) / m, np.diag(V)
    b = (Vc**2).sum() * V / m**2 + (np.outer(d, w) + np.outer(w, d)) / (2 * m)
    return gamma2 / tau0**2 * b


def noise_of(V, gamma2, tau0):
    q = gamma2 * (2 - gamma2)
    return q * linear_noise(V) + gamma2**2 / tau0**2 * attention_noise(V)


# --- Moments of a layer -----------------------------------------------------------


def mean_move(V, K, gamma2):
    """E[V' − V], where the branch has the Gram matrix K before its value weights."""
    return gamma2 * (K - V)


def noise_given(V, K, gamma2):
    """n Cov(V'), given K: columns are independent normals about columns of λX."""
    return (1 - gamma2) * gamma2 * crossed(V, K) + gamma2**2 * linear_noise(K)


def normal_mean(polynomial, variance):
    """The mean over independent centered normal generators."""
    return sum(
        c * prod(int(sp.factorial2(p - 1)) * variance ** (p // 2) for p in powers)
        for powers, c in polynomial.terms()
        if not any(p % 2 for p in powers)
    )


def after_a_layer(A, X, skip, branch):
    """V' = X'X'ᵀ/n, X' = λX + γ A X W/√n, as polynomials in W/√n."""
    m, n = X.shape
    ring, *W = sp.ring(f"w:{n * n}", sp.QQ)
    A, X = (objects(map(ring, M.ravel()), *M.shape) for M in (A, X))
    after = skip * X + branch * (A @ X @ objects(W, n, n))
    return after @ after.T * sp.QQ(1, n)


def moments_of_a_layer(A, X, skip, branch):
    """Mean and covariance of V', expanded."""
    m, n = X.shape
    V, each = after_a_layer(A, X, skip, branch), sp.QQ(1, n)
    mean = objects((normal_mean(x, each) for x in V.ravel()), m, m)
    products = np.multiply.outer(V, V).ravel()
    both = objects((normal_mean(x, each) for x in products), m, m, m, m)
    return mean, both - np.multiply.outer(mean, mean)


def rationals(rng, *shape):
    return objects((sp.QQ.convert(fraction(rng)) for _ in range(prod(shape))), *shape)


def rational_layer(rng, m, n):
    X = rationals(rng, m, n)
    t = sp.QQ(int(rng.integers(1, 9)), 8)  # λ² + γ² = 1
    return X, X @ X.T / n, (1 - t**2) / (1 + t**2), 2 * t / (1 + t**2)


SIZES = [(1, 1), (1, 3), (2, 1), (2, 2), (3, 2)]


@formula(
    "prop-linear-layer",
    r"""\begin{aligned}
\mathbb E\, V' &= V, \\
n\, \mathrm{Cov}(V'_{ij}, V'_{kl}) &= q\, \Sigma^{\mathrm{lin}}_{ij,kl}, \\
\Sigma^{\mathrm{lin}}_{ij,kl} &= V_{ik} V_{jl} + V_{il} V_{jk} .
\end{aligned}""",
)
@pytest.mark.parametrize("m, n", SIZES)
def test_moments_of_a_linear_layer(rng, m, n):
    X, V, skip, branch = rational_layer(rng, m, n)
    mean, covariance = moments_of_a_layer(np.eye(m, dtype=int), X, skip, branch)
    q = branch**2 * (2 - branch**2)
    assert np.all(mean == V)
    for i, j, k, x in product(range(m), repeat=4):
        expected = q * (V[i, k] * V[j, x] + V[i, x] * V[j, k])
        assert n * covariance[i, j, k, x] == expected


def test_the_moments_that_the_tests_below_use(rng):
    X, V, skip, branch = rational_layer(rng, 2, 2)
    A, T = rationals(rng, 2, 2), rationals(rng, 2, 2)
    K, T = A @ V @ A.T, T + T.T
    mean, covariance = moments_of_a_layer(A, X, skip, branch)
    assert np.all(mean - V == mean_move(V, K, branch**2))
    assert np.all(2 * covariance == noise_given(V, K, branch**2))
    move = np.trace(T @ after_a_layer(A, X, skip, branch)) - np.trace(T @ V)
    fourth = normal_mean(move**4, sp.QQ(1, 2))
    assert fourth == fourth_moment(T, V, K, branch**2, 2)


@formula(
    "thm-log-normal",
    r"""\log\frac{\det V_t}{\det V_0} \sim
\mathcal N\Big( - \frac{q\, m(m+1)}2\, t,\; 2 m q\, t \Big) .""",
)
@pytest.mark.parametrize("m", [1, 2, 3])
def test_the_law_of_the_determinant(rng, m):
    """The generator multiplies det^s by the exponent of the normal's E e^{s·}."""
    C = sp.eye(m) + sp.Matrix(m, m, lambda i, j: fraction(rng) if i > j else 0)
    C[0, 0] = fraction(rng, 1)
    s, q, e = fraction(rng), fraction(rng, 1), sp.Symbol("e")
    growth = 0
    for a, b in product(range(m), repeat=2):  # along each of the m² Brownian motions
        N = sp.zeros(m)
        N[a, b] = 1
        det = (C * C.T + e * C * (N + N.T) * C.T).det() / C.det() ** 2
        growth += q / 2 * sp.diff(det**s, e, 2).subs(e, 0) / 2
    mean, variance = -q * m * (m + 1) / 2, 2 * m * q
    assert growth == s * mean + s**2 / 2 * variance


# --- One layer of shaped attention, at a width at which the limit has 30 digits ---

WIDTH = 10**40


def softmax(Y):
    return exp(Y) / exp(Y).sum(axis=1, keepdims=True)


def shaped(Y, tau):
    m = len(Y)
    return softmax(Y / tau) - mp.mpf(1) / m + np.eye(m, dtype=int).astype(object)


def with_signs(C, n, n_k, tau0):
    """Attention matrices for all signs in place of the normals in the scores.

    Signs have the moments of normals up to degree 3. The scores have degree 1 in each
    normal, so that the square of what they add to A has the right mean, and all that
    has another one is smaller by 1/n.
    """
    m, tau = len(C), tau0 * mp.sqrt(mp.mpf(n) * n_k)
    for each in product([mp.mpf(1), mp.mpf(-1)], repeat=2 * m * n_k):
        g, g2 = (C @ x for x in objects(each, 2, m, n_k))
        yield shaped(g @ g2.T, tau)


def moments_over(Ks, weights, V, gamma2, n):
    """n E[V' − V] and n Cov(V'), if the branch has the Gram matrix K by these odds."""
    weights = [mp.mpf(w) / sum(weights) for w in weights]
    mean = sum(w * K for w, K in zip(weights, Ks, strict=True))
    noise = sum(
        w * noise_given(V, K, gamma2)
        + w * n * gamma2**2 * np.multiply.outer(K - mean, K - mean)
        for w, K in zip(weights, Ks, strict=True)
    )
    return n * mean_move(V, mean, gamma2), noise


@formula(
    "thm-shaped-attention",
    r"\mathrm dV = b(V)\, \mathrm dt + \Sigma(V)^{1/2}\, \mathrm dB .",
)
@pytest.mark.parametrize("m, n_k", [(1, 1), (2, 1), (2, 2), (3, 1)])
def test_drift_and_noise_of_shaped_attention(rng, m, n_k):
    (gamma2, tau0), (C, V) = settings(rng), root_and_gram(rng, m)
    with mp.workdps(120):
        Ks = [A @ V @ A.T for A in with_signs(C, WIDTH, n_k, tau0)]
        drift, noise = moments_over(Ks, [1] * len(Ks), V, gamma2, WIDTH)
    assert norm(drift - drift_of(V, gamma2, tau0)) < 1e-28
    assert norm(noise - noise_of(V, gamma2, tau0)) < 1e-28


def two_tokens(C, n, n_k, tau0):
    """Attention matrices and weights, in place of the normals in the scores.

    Y₁₁ − Y₁₂ and Y₂₁ − Y₂₂ are C z (Δ χ²)^½ with normal z and χ² of n_k degrees. The
    Gauss rules are exact up to degree 5 in z and 3 in χ², for every n_k.
    """
    V, a, root = C @ C.T, mp.mpf(n_k) / 2, mp.sqrt(mp.mpf(n_k) / 2 + 1)
    D = V[0, 0] + V[1, 1] - 2 * V[0, 1]
    normal = [(mp.mpf(0), mp.mpf(2) / 3)]
    normal += [(x * mp.sqrt(3), mp.mpf(1) / 6) for x in (-1, 1)]
    square = [(2 * (a + 1 + x * root), (1 - x / root) / 2) for x in (-1, 1)]
    for (x, u), (y, v), (c, w) in product(normal, normal, square):
        column = C @ objects([x, y], 2, 1) * mp.sqrt(D * c)
        Y = column @ objects([1, 0], 1, 2)
        yield shaped(Y, tau0 * mp.sqrt(mp.mpf(n) * n_k)), u * v * w


def fourth_moment(T, V, K, gamma2, n):
    """E (tr T(V' − V))⁴, given K, by the cumulants of a quadratic form of normals."""
    L, N = gamma2 * K @ T, (1 - gamma2) * V @ T  # of the branch, of the skip
    k = np.trace(T @ mean_move(V, K, gamma2))
    k2 = 2 * np.trace((L + 2 * N) @ L) / n
    k3 = 8 * np.trace((L + 3 * N) @ L @ L) / n**2
    k4 = 48 * np.trace((L + 4 * N) @ L @ L @ L) / n**3
    return k**4 + 6 * k**2 * k2 + 3 * k2**2 + 4 * k * k3 + k4


def mean_of_fourth_power(V, gamma2, n, branches):
    """E ‖V' − V‖⁴, a third of the mean of (tr T(V' − V))⁴ over standard normal T."""
    values = [(mp.mpf(0), mp.mpf(2) / 3)]
    values += [(x * mp.sqrt(3), mp.mpf(1) / 6) for x in (-1, 1)]
    total = 0
    for (a, u), (b, v), (c, w) in product(values, repeat=3):
        T = objects([a, b / mp.sqrt(2), b / mp.sqrt(2), c], 2, 2)
        moments = (odds * fourth_moment(T, V, K, gamma2, n) for K, odds in branches)
        total += u * v * w * mp.fsum(moments)
    return total / 3


@formula(
    "prop-step",
    r"""\begin{aligned}
\big( \mathbb E \lVert V' - V \rVert_F^2 \big)^{1/2} &= O(n^{-1/2}), \\
\lVert \mathbb E[V' - V] \rVert_F &= O(n^{-1}), \\
\mathbb E \lVert V' - V \rVert_F^4 &= O(n^{-2}),
\end{aligned}""",
)
@pytest.mark.parametrize("key_width", [lambda n: 1, lambda n: 7, lambda n: n])
def test_the_size_of_one_step(rng, key_width):
    (gamma2, tau0), (C, V), sizes = settings(rng), root_and_gram(rng, 2), []
    for n in (WIDTH, 100 * WIDTH):
        with mp.workdps(220):
            attentions = list(two_tokens(C, n, key_width(n), tau0))
            Ks, odds = [A @ V @ A.T for A, _ in attentions], [w for _, w in attentions]
            mean, noise = (x / n for x in moments_over(Ks, odds, V, gamma2, n))
            branches = list(zip(Ks, odds, strict=True))
            square = norm(mean) ** 2 + np.einsum("ijij", noise)
            fourth = mean_of_fourth_power(V, gamma2, n, branches)
            # Both converge to the coefficients of the equation at the rate 1/n.
            rest = norm(n * mean - drift_of(V, gamma2, tau0))
            more = norm(n * noise - noise_of(V, gamma2, tau0))
            sizes.append([mp.sqrt(square), norm(mean), fourth, rest, more])
    powers = (mp.mpf(1) / 2, 1, 2, 1, 1)
    for size, wider, power in zip(*sizes, powers, strict=True):
        assert abs(wider / size * mp.mpf(100) ** power - 1) < 1e-28
    # The first order is attained, and the moments are those of the limit.
    first = mp.sqrt(WIDTH) * sizes[0][0]
    expected = np.einsum("ijij", noise_of(V, gamma2, tau0))
    assert first > 0 and abs(first**2 / expected - 1) < 1e-28
    assert abs(WIDTH * sizes[0][1] / norm(drift_of(V, gamma2, tau0)) - 1) < 1e-28


# --- Two tokens -------------------------------------------------------------------


def symbols():
    return sp.symbols("gamma tau_0", positive=True)


def generator(f, names, V):
    """Drift and variance of f(V₁₁, V₁₂, V₂₂), by Itô's formula."""
    gamma, tau0 = symbols()
    b, S = (part(V, gamma**2, tau0) for part in (drift_of, noise_of))
    pairs = [(0, 0), (0, 1), (1, 1)]
    first = [sp.diff(f, x) for x in names]
    drift = sum(f_x * b[p] for f_x, p in zip(first, pairs, strict=True))
    variance = 0
    for (x, p, f_x), (y, q, f_y) in product(
        zip(names, pairs, first, strict=True), repeat=2
    ):
        drift += sp.diff(f, x, y) * S[p + q] / 2
        variance += f_x * f_y * S[p + q]
    return drift, variance


@formula(
    "prop-distance",
    r"""\mathrm d\Delta = \tfrac{\gamma^2}{16 \tau_0^2}\, \Delta^3\, \mathrm dt
+ \sqrt{2 q\, \Delta^2 + \tfrac{\gamma^4}{4\tau_0^2}\, \Delta^4}\; \mathrm dB .""",
)
def test_the_distance_of_two_tokens():
    gamma, tau0 = symbols()
    x, y, z = names = sp.symbols("V_11 V_12 V_22")
    D, q = x + z - 2 * y, gamma**2 * (2 - gamma**2)
    drift, variance = generator(D, names, objects([x, y, y, z], 2, 2))
    assert sp.expand(drift - gamma**2 / (16 * tau0**2) * D**3) == 0
    printed = 2 * q * D**2 + gamma**4 / (4 * tau0**2) * D**4
    assert sp.expand(variance - printed) == 0


@formula(
    "thm-cosine",
    r"""\begin{aligned}
\mathrm dz &= \tfrac12 \big[ q\, \rho + h\, (1 - \rho)^2 (2 + \rho) \big]\,
\mathrm dt \\
&\quad + \sqrt{q + h\, (1 - \rho)^2}\; \mathrm dB .
\end{aligned}""",
)
def test_the_cosine_of_two_tokens():
    gamma, tau0 = symbols()
    x, y, z = names = sp.symbols("V_11 V_12 V_22")
    rho, at = sp.Symbol("rho"), {x: 1, z: 1, y: sp.Symbol("rho")}
    f = sp.atanh(y / sp.sqrt(x * z))  # as with normalization, which leaves it alone
    coefficients = generator(f, names, objects([x, y, y, z], 2, 2))
    drift, variance = (sp.cancel(each.subs(at)) for each in coefficients)
    q, h = gamma**2 * (2 - gamma**2), gamma**4 / (4 * tau0**2)
    printed = (q * rho + h * (1 - rho) ** 2 * (2 + rho)) / 2
    assert sp.cancel(drift - printed) == 0
    assert sp.cancel(variance - q - h * (1 - rho) ** 2) == 0


def scale_density(drift, variance, start, end):
    """p(end)/p(start), where ½ variance · p' + drift · p = 0."""
    return mp.exp(-2 * mp.quad(lambda y: drift(y) / variance(y), [start, end]))


def distance(gamma2, tau0):
    q, h = gamma2 * (2 - gamma2), gamma2**2 / (4 * tau0**2)
    return (
        lambda y: gamma2 / (16 * tau0**2) * y**3,
        lambda y: 2 * q * y**2 + h * y**4,
        lambda y: (
            (1 + gamma2 * y**2 / (8 * tau0**2 * (2 - gamma2))) ** (-1 / (4 * gamma2))
        ),
    )


@formula(
    "thm-explosion",
    r"""p(y) = \Big( 1 + \frac{\gamma^2\, y^2}{8 \tau_0^2 (2 - \gamma^2)}
\Big)^{-1/(4\gamma^2)}""",
)
def test_the_scale_function_of_the_distance(rng):
    drift, variance, p = distance(*settings(rng))
    y = mp.mpf(rng.uniform(0.1, 9))
    assert abs(p(y) / scale_density(drift, variance, mp.mpf(0), y) - 1) < 1e-28


@formula(
    "thm-explosion",
    r"""\mathbb P(T_* < \infty) =
\frac{\int_0^{\Delta_0} p(y)\, \mathrm dy}{\int_0^\infty p(y)\, \mathrm dy}""",
)
@pytest.mark.parametrize("gamma2", ["drawn", 0.25])
def test_the_probability_of_explosion(rng, gamma2):
    gamma2 = mp.mpf(rng.uniform(0.05, 0.45) if gamma2 == "drawn" else gamma2)
    tau0, D = mp.mpf(rng.uniform(0.3, 2)), mp.mpf(rng.uniform(0.1, 9))
    drift, variance, p = distance(gamma2, tau0)
    c = tau0 * mp.sqrt(8 * (2 - gamma2) / gamma2)
    r = mp.quad(p, [0, D]) / mp.quad(
        lambda v: p(c * mp.sinh(v)) * c * mp.cosh(v), [0, 1, 10, mp.inf]
    )

    # The function that is 0 at 0, 1 at infinity and has no drift, in closed form.
    def u(y):
        x = y**2 / (c**2 + y**2)
        return mp.betainc(0.5, 1 / (4 * gamma2) - 0.5, 0, x, regularized=True)

    assert u(mp.mpf(0)) == 0 and abs(u(mp.mpf(10) ** 5000) - 1) < 1e-28
    drifts = drift(D) * mp.diff(u, D) + variance(D) * mp.diff(u, D, 2) / 2
    assert abs(drifts) < 1e-28
    assert abs(r - u(D)) < 1e-28

    # Infinity is reached in finite time: what Feller's test integrates falls as y^-3.
    def density(y):
        x = c**2 / (c**2 + y**2)
        return mp.betainc(1 / (4 * gamma2) - 0.5, 0.5, 0, x) / (p(y) * variance(y))

    y = mp.mpf(10) ** 40
    assert abs(density(10 * y) / density(y) * 1000 - 1) < 1e-28
    if gamma2 == 0.25:
        assert abs(r - 2 / mp.pi * mp.atan(D / (mp.sqrt(56) * tau0))) < 1e-28


@formula(
    "thm-antipode",
    r"""\begin{aligned}
p(\rho) &= (1 - \rho)^{-\frac12} (1 + \rho)^{-\frac12 - \alpha} \\
&\quad \cdot \big( 1 + \tfrac hq (1 - \rho)^2 \big)^{\frac\alpha2} \\
&\quad \cdot \exp\Big( {-\tfrac\alpha2} \sqrt{\tfrac qh} \\
&\qquad \cdot \arctan\big( \sqrt{\tfrac hq}\, (1 - \rho) \big) \Big) .
\end{aligned}""",
)
def test_the_scale_function_of_the_cosine(rng):
    gamma2, tau0 = settings(rng)
    q, h = gamma2 * (2 - gamma2), gamma2**2 / (4 * tau0**2)
    alpha = 4 * h / (4 * h + q)

    def p(x, alpha=alpha, h=h):
        power = (1 - x) ** mp.mpf(-0.5) * (1 + x) ** (-mp.mpf(0.5) - alpha)
        power *= (1 + h / q * (1 - x) ** 2) ** (alpha / 2)
        angle = mp.atan(mp.sqrt(h / q) * (1 - x))
        return power * mp.exp(-alpha / 2 * mp.sqrt(q / h) * angle)

    # The equation of ρ = tanh z, where dρ/dz = 1 − ρ², d²ρ/dz² = −2ρ(1 − ρ²).
    def variance(x):
        return (1 - x**2) ** 2 * (q + h * (1 - x) ** 2)

    def drift(x):
        of_z = (q * x + h * (1 - x) ** 2 * (2 + x)) / 2
        return (1 - x**2) * of_z - x * (1 - x**2) * (q + h * (1 - x) ** 2)

    x, y = (mp.mpf(each) for each in rng.uniform(-0.95, 0.95, 2))
    assert abs(p(y) / p(x) / scale_density(drift, variance, x, y) - 1) < 1e-28
    assert (alpha < mp.mpf(1) / 2) == (gamma2**2 / tau0**2 < q)
    # Of linear layers the integral is the angle.
    small = mp.mpf(10) ** -30
    linear = p(x, 4 * small / (4 * small + q), small)
    assert abs(linear + mp.diff(mp.acos, x)) < 1e-25


# --- The whole block --------------------------------------------------------------


def relu_moment(angle, slopes, a, b):
    """E φ(g₁)ᵃ φ(g₂)ᵇ of two normals at this angle, in polar coordinates."""
    up, down = slopes

    def phi(x):
        return (up if x > 0 else down) * x

    kinks = sorted([-mp.pi / 2, angle - mp.pi / 2, mp.pi / 2, angle + mp.pi / 2])
    integral = mp.quad(
        lambda t: phi(mp.cos(t)) ** a * phi(mp.cos(t - angle)) ** b,
        [*kinks, kinks[0] + 2 * mp.pi],
    )
    radial = {2: 2, 4: 8}[a + b]
    return radial * integral / (2 * mp.pi)


@formula(
    "prop-relu",
    r"""\begin{aligned}
\mathbb E\, V'_{ij} - V_{ij} &= \frac{(s_+ - s_-)^2}{\pi (s_+^2 + s_-^2)}\,
\sqrt{V_{ii} V_{jj}} \\
&\cdot \Big( \sqrt{1 - \rho_{ij}^2} - \rho_{ij} \arccos \rho_{ij} \Big) .
\end{aligned}""",
)
@pytest.mark.parametrize("angle", [0, "drawn", "drawn", mp.pi])
def test_the_mean_of_a_shaped_relu(rng, angle):
    angle = mp.mpf(rng.uniform(0, 3.1) if angle == "drawn" else angle)
    n, (c, d) = int(rng.integers(1, 50)), normals(rng, 2)
    up, down = 1 + c / mp.sqrt(n), 1 + d / mp.sqrt(n)
    size = mp.sqrt(mp.mpf(rng.uniform(0.1, 3)) * mp.mpf(rng.uniform(0.1, 3)))
    rho, keeps_lengths = mp.cos(angle), 2 / (up**2 + down**2)
    mean = keeps_lengths * relu_moment(angle, (up, down), 1, 1) * size
    shape = (mp.sqrt(1 - rho**2) - rho * mp.acos(rho)) * size
    printed = (up - down) ** 2 / (mp.pi * (up**2 + down**2)) * shape
    assert abs(mean - rho * size - printed) < 1e-28


def attention_of_a_block(C, gamma2, tau0, heads, n):
    """Drift and noise of attention with heads and an output matrix, up to O(1/n)."""
    V, attentions = C @ C.T, list(two_tokens(C, n, 3, tau0))
    means, odds, columns = [], [], 0
    for several in product(attentions, repeat=heads):
        Ks = [A @ V @ A.T for A, _ in several]
        means.append(sum(Ks) / heads)
        odds.append(prod(w for _, w in several))
        # The columns of a head are normals with Gram matrix K, and n/H in number.
        columns = columns + odds[-1] * sum(linear_noise(K) for K in Ks) / heads
    drift, noise = moments_over(means, odds, V, gamma2, n)
    return drift, noise + gamma2**2 * columns


def perceptron_of_a_block(V, gamma2, slopes, n):
    """Drift and noise of the perceptron, up to O(1/n)."""
    lengths = [mp.sqrt(x) for x in np.diag(V)]
    angle = mp.acos(V[0, 1] / prod(lengths))
    slopes = [1 + c / mp.sqrt(mp.mpf(n)) for c in slopes]
    keeps_lengths = 2 / sum(x**2 for x in slopes)

    def moment(*indices):  # of what the activation returns
        b = sum(indices)
        size = prod(lengths[i] for i in indices) * keeps_lengths ** (len(indices) // 2)
        return size * moments[len(indices) - b, b]

    powers = [(a, d - a) for d in (2, 4) for a in range(d + 1)]
    moments = {each: relu_moment(angle, slopes, *each) for each in powers}
    pairs = list(product(range(2), repeat=2))
    K = objects((moment(*each) for each in pairs), 2, 2)
    fourth = objects((moment(*x, *y) for x, y in product(pairs, repeat=2)), 2, 2, 2, 2)
    columns = fourth - np.multiply.outer(K, K)
    return n * mean_move(V, K, gamma2), noise_given(V, K, gamma2) + gamma2**2 * columns


@formula(
    "thm-block",
    r"""\begin{aligned}
b_{\mathrm{block}} &= b(V) + \gamma^2 \Big( \nu(\rho_{ij}) \sqrt{V_{ii} V_{jj}}
\Big)_{ij}, \\
\Sigma_{\mathrm{block}} &= 4\gamma^2\, \Sigma^{\mathrm{lin}}
+ \frac{\gamma^4}{H \tau_0^2}\, \mathcal A .
\end{aligned}""",
)
@pytest.mark.parametrize("heads", [1, 2])
def test_drift_and_noise_of_a_block(rng, heads):
    (gamma2, tau0), (C, V), n = settings(rng), root_and_gram(rng, 2), 10**60
    c, d = slopes = normals(rng, 2)
    with mp.workdps(100):
        # The second layer starts where the first one ends, O(n^-½) from V.
        V = C @ C.T
        first = attention_of_a_block(C, gamma2, tau0, heads, n)
        second = perceptron_of_a_block(V, gamma2, slopes, n)
    rho = V[0, 1] / mp.sqrt(V[0, 0] * V[1, 1])
    nu = (c - d) ** 2 / (2 * mp.pi) * (mp.sqrt(1 - rho**2) - rho * mp.acos(rho))
    off_diagonal = nu * mp.sqrt(V[0, 0] * V[1, 1])  # and ν(1) = 0
    drift = drift_of(V, gamma2, tau0)
    drift = drift + gamma2 * off_diagonal * objects([0, 1, 1, 0], 2, 2)
    assert norm(first[0] + second[0] - drift) < 1e-25
    noise = 4 * gamma2 * linear_noise(V)
    noise = noise + gamma2**2 / (heads * tau0**2) * attention_noise(V)
    assert norm(first[1] + second[1] - noise) < 1e-25


# --- Gradients --------------------------------------------------------------------


def operator_norm(M):
    return max(mp.svd_r(mp.matrix(M.tolist()), compute_uv=False))


def top(M):
    """The unit vector a for which |aᵀM| is largest."""
    values, vectors = mp.eigsy(mp.matrix((M @ M.T).tolist()))
    best = max(range(len(values)), key=lambda i: values[i])
    return objects(vectors[:, best], len(values), 1)


def gradient(loss, W):
    """Entry by entry, by central differences: the error is of the order of h²."""
    h, slopes = mp.mpf(10) ** -20, W.copy()
    for each in np.ndindex(*W.shape):
        step = np.zeros(W.shape, dtype=int).astype(object)
        step[each] = h
        slopes[each] = (loss(W + step) - loss(W - step)) / (2 * h)
    return slopes


def shares_of_the_bounds(X, G, WV, WQ, WK, gamma, tau, identity):
    """The gradients of queries and keys over their bounds."""
    (m, n), skip = X.shape, mp.sqrt(1 - gamma**2)

    def loss(WQ, WK):
        A = softmax(X @ WQ @ (X @ WK).T / (n * tau))
        if identity:
            A = A + np.eye(m, dtype=int).astype(object) - mp.mpf(1) / m
        return (G * (skip * X + gamma / mp.sqrt(n) * (A @ X @ WV))).sum()

    JX = X - X.sum(axis=0) / m
    common = gamma / (2 * mp.mpf(n) ** mp.mpf(1.5) * tau) * norm(G)
    common *= operator_norm(JX @ WV)
    queries = common * operator_norm(X) * operator_norm(JX @ WK)
    keys = common * operator_norm(JX) * operator_norm(X @ WQ)
    query = norm(gradient(lambda W: loss(W, WK), WQ))
    return query / queries, norm(gradient(lambda W: loss(WQ, W), WK)) / keys


@formula(
    "prop-gradients",
    r"""\begin{aligned}
\lVert \partial W^Q \rVert_F &\le \frac{\gamma}{2 n^{3/2} \tau}\,
\lVert X \rVert\, \lVert \partial X' \rVert_F \\
&\quad \cdot \lVert JX\, W^V \rVert\, \lVert JX\, W^K \rVert ,
\end{aligned}""",
)
@pytest.mark.parametrize("identity", [False, True])
def test_the_gradients_of_queries_and_keys(rng, identity):
    mp.dps, gamma = 140, mp.sqrt(settings(rng)[0])  # for differences of 1e-50
    for m, n, n_k in [(2, 1, 1), (2, 3, 2), (3, 2, 2), (4, 3, 1)]:
        tau = mp.sqrt(n_k) * (settings(rng)[1] * mp.sqrt(n) if identity else 1)
        X, G, WV = normals(rng, m, n), normals(rng, m, n), normals(rng, n, n)
        WQ, WK = normals(rng, n, n_k), normals(rng, n, n_k)
        shares = shares_of_the_bounds(X, G, WV, WQ, WK, gamma, tau, identity)
        assert max(shares) <= 1
        if m > 2:
            continue
        # Two tokens with equal weights attain them, if G has the worst direction.
        e, WQ = objects([1, -1], 1, 2), WQ * mp.mpf(10) ** -30
        for k, a in enumerate([top(X), top(X @ WQ)]):
            G = a @ (e @ X @ WV)
            shares = shares_of_the_bounds(X, G, WV, WQ, WK, gamma, tau, identity)
            assert abs(shares[k] - 1) < 1e-25
