"""Tokens on a sphere: each displayed formula of a statement, recomputed."""

import math
from itertools import combinations

import mpmath as mp
import numpy as np
import pytest
from digits import drawn, exp, gap, normals, root
from printed import formula

DIGITS = 40


def unit(x):
    return x / root((x**2).sum(axis=-1, keepdims=True))


def tokens(rng, n, d):
    return unit(normals(rng, n, d))


def tangent(x, y):
    """Proj of each y at its x."""
    return y - (x * y).sum(axis=-1, keepdims=True) * x


def attention(x, beta, w=1):
    pull = exp(beta * x @ x.T) * w
    return pull / pull.sum(axis=1, keepdims=True)


def field(x, beta, w=1):
    """The normalized model: 𝒳[μ] at each of the tokens x with weights w."""
    return tangent(x, attention(x, beta, w) @ x)


def derivative(f, x, i):
    """By coordinate i at the point x."""
    along = np.arange(len(x)) == i
    return mp.diff(lambda s: f(x + s * along.astype(int)), 0)


def extrapolated(values, sizes):
    """The value at 1/size = 0 of the polynomial in 1/size through these values."""
    row, x = list(values), [mp.mpf(1) / K for K in sizes]
    for k in range(1, len(row)):
        row = [(x[i] * row[i + 1] - x[i + k] * row[i]) / (x[i] - x[i + k])
               for i in range(len(row) - 1)]  # fmt: skip
    return row[0]


@formula(
    "prop-splitting",
    r"\dot x_i = \operatorname{Proj}_{x_i} \big( f_{1,i} + f_{2,i} \big) .",
)
def test_blocks_follow_the_sum(rng):
    n, d, T = int(rng.integers(1, 3)), int(rng.integers(2, 4)), mp.mpf(1) / 2
    A, B, C = drawn(rng, -1, 1, n, n), drawn(rng, -1, 1, d, d), drawn(rng, -1, 1, n, d)
    parts = (lambda t, x: A @ x @ (B + t), lambda t, x: x**2 @ B.T + (1 - t**2) * C)

    def blocks(L):
        x = start
        for i in range(L):
            for f in parts:
                x = unit(x + T / L * f(i * T / L, x))
        return x

    def velocity(t, x):
        return tangent(x, parts[0](t, x) + parts[1](t, x))

    def midpoints(L):  # Gragg's rule, with even powers of 1/L only
        h = T / L
        last, x = start, start + h * velocity(0, start)
        for i in range(1, L):
            last, x = x, last + 2 * h * velocity(i * h, x)
        return (last + x + h * velocity(T, x)) / 2

    start = tokens(rng, n, d)
    sizes = [4 * 2**i for i in range(7)]
    end = extrapolated([midpoints(L) for L in sizes], [L**2 for L in sizes])
    layers = [blocks(L) for L in sizes]
    # Seven sizes give some eight digits, and L times the error of blocks settles.
    assert gap(extrapolated(layers, sizes), end) < 1e-8
    last, but_one = ((layers[i] - end) * sizes[i] for i in (-1, -2))
    assert gap(last, but_one) < 0.02

    # One block, to first order in h, at any time: to all digits.
    def block(h, t, x):
        for f in parts:
            x = unit(x + h * f(t, x))
        return x

    t, x = drawn(rng, 0, 1), tokens(rng, n, d)
    assert gap(mp.diff(lambda h: block(h, t, x), 0), velocity(t, x)) < 1e-25


@formula(
    "prop-divergence",
    r"""\frac{\mathrm d}{\mathrm dt} \log \mu_t(x(t))
    = - \big( \nabla\!\cdot \mathcal X[\mu_t] \big)(x(t)) .""",
)
@pytest.mark.parametrize("d", [2, 3])
def test_what_the_divergence_says(rng, d):
    # The density e^⟨m,x⟩ up to a factor, under attention. Its Z depends on r = |βx + m|
    # as the mean of e^(r y₁) under the uniform law: I₀(r) or sinh(r)/r.
    beta, m = drawn(rng, 0.3, 2), drawn(rng, -1, 1, d)

    def X(x):
        a = beta * x + m
        r = mp.sqrt(a @ a)
        slope = mp.besseli(1, r) / mp.besseli(0, r) if d == 2 else mp.coth(r) - 1 / r
        return tangent(x, slope * a / r)

    # Lagrange: mass is kept, so a density falls as areas grow, here by the step h.
    def step(h, y):  # keeps lengths, so that its Jacobian is that of areas
        r = mp.sqrt(y @ y)
        return r * unit(y / r + h * X(y / r))

    def area(h, x):
        sides = [derivative(lambda y: step(h, y), x, i).tolist() for i in range(d)]
        return mp.det(mp.matrix(sides))

    # Euler: the divergence in coordinates, angles with the lengths of their circles.
    def place(a):
        c, s = mp.cos(a[0]), mp.sin(a[0])
        return np.array([c, s] if d == 2 else [c, s * mp.cos(a[1]), s * mp.sin(a[1])])

    def volume(a):
        return mp.sin(a[0]) ** (d - 2)

    def flux(a, i):
        side = derivative(place, a, i)
        return volume(a) * (X(place(a)) @ side) / (side @ side)

    angles = drawn(rng, 0.3, 2.8, d - 1)
    flows = [derivative(lambda a, i=i: flux(a, i), angles, i) for i in range(d - 1)]
    divergence = sum(flows) / volume(angles)
    change = mp.diff(lambda h: -mp.log(area(h, place(angles))), 0)
    assert abs(change + divergence) < 1e-25


@formula(
    "prop-energy",
    r"""\begin{aligned}
\tfrac{\mathrm d}{\mathrm dt} E_\beta[\mu_t] &=
\int |\mathcal X^{\mathrm u}[\mu_t]|^2\, \mathrm d\mu_t , \\
\tfrac{\mathrm d}{\mathrm dt} E_\beta[\mu_t] &=
\int Z_{\mu_t}\, |\mathcal X[\mu_t]|^2\, \mathrm d\mu_t .
\end{aligned}""",
)
def test_both_models_climb(rng):
    n, d = int(rng.integers(2, 6)), int(rng.integers(2, 5))
    beta = drawn(rng, 0.3, 3) * int(rng.choice([-1, 1]))
    x, w = tokens(rng, n, d), drawn(rng, 0.5, 1.5, n)
    w = w / w.sum()

    def energy(y):
        return w @ exp(beta * y @ y.T) @ w / (2 * beta)

    Z, X = exp(beta * x @ x.T) @ w, field(x, beta, w)
    squares = (X**2).sum(axis=1)
    first = mp.diff(lambda h: energy(unit(x + h * Z[:, None] * X)), 0)
    second = mp.diff(lambda h: energy(unit(x + h * X)), 0)
    assert abs(first - w @ (Z**2 * squares)) < 1e-25
    assert abs(second - w @ (Z * squares)) < 1e-25


def equal_cosines(n, rho):
    """Gram matrix."""
    return rho + (1 - rho) * np.eye(n, dtype=int)


def cosine_speed(G, beta):
    """Derivatives of all cosines in the normalized model, from the cosines G."""
    A = exp(beta * G)
    A = A / A.sum(axis=1, keepdims=True)
    pull = A @ G - np.diag(A @ G)[:, None] * G  # ⟨Proj of the output of i, token j⟩
    return pull + pull.T


@formula(
    "prop-equiangular",
    r"\dot\rho = \frac{2 (1 - \rho)\, (1 + (n-1) \rho)}{e^{\beta(1 - \rho)} + n - 1} .",
)
def test_equal_cosines_stay_equal(rng):
    n, beta = int(rng.integers(2, 7)), drawn(rng, -3, 5)
    rho = drawn(rng, -1 / (n - 1) + 0.01, 0.99)
    G = equal_cosines(n, rho)
    x = np.array(mp.cholesky(mp.matrix(G.tolist())).tolist()).reshape(n, n)
    moved = field(x, beta)
    speed = moved @ x.T + x @ moved.T
    right = 2 * (1 - rho) * (1 + (n - 1) * rho) / (mp.exp(beta * (1 - rho)) + n - 1)
    assert gap(speed, cosine_speed(G, beta)) < 1e-25
    assert gap(speed[~np.eye(n, dtype=bool)], right) < 1e-25


@formula(
    "prop-equiangular-time",
    r"""\begin{aligned}
t_*(\delta) &= \frac{n-1}{2n} \log \frac{n - (n-1)\delta}\delta \\
&\; + \frac1{2n} \Big( \operatorname{Ei}(\beta)
- \operatorname{Ei}(\beta\delta) \Big) \\
&\; + \frac{e^{\beta n/(n-1)}}{2n} \Big(
\operatorname E_1\big(\tfrac{\beta}{n-1}\big) \\
&\qquad - \operatorname E_1\big(\tfrac{\beta n}{n-1} - \beta\delta\big) \Big)
\end{aligned}""",
)
def test_time_to_a_cosine(rng):
    n, beta = int(rng.integers(2, 7)), drawn(rng, 0.1, 8)
    delta = drawn(rng, 0.01, 0.9)

    def slowness(rho):
        return 1 / cosine_speed(equal_cosines(n, rho), beta)[0, 1]

    time = mp.quad(slowness, mp.linspace(0, 1 - delta, 4), maxdegree=5)
    b = beta / (n - 1)
    closed = (n - 1) * mp.log((n - (n - 1) * delta) / delta) / (2 * n)
    closed += (mp.ei(beta) - mp.ei(beta * delta)) / (2 * n)
    closed += mp.exp(n * b) * (mp.e1(b) - mp.e1(n * b - beta * delta)) / (2 * n)
    assert abs(time / closed - 1) < 1e-25


def moment(d, *powers):
    """Of the coordinates of a uniform point of the sphere."""
    if any(p % 2 for p in powers):
        return mp.mpf(0)
    top = mp.fprod(mp.gamma(mp.mpf(p + 1) / 2) / mp.sqrt(mp.pi) for p in powers)
    return mp.gamma(mp.mpf(d) / 2) / mp.gamma(mp.mpf(d + sum(powers)) / 2) * top


@formula(
    "prop-growth",
    r"""\begin{aligned}
\lambda_k &= \frac{k (k + d - 2)}\beta \cdot \frac{\Lambda_k}{\Lambda_0} , \\
\Lambda_k &= \Gamma\big(\tfrac d2\big) \Big(\frac2\beta\Big)^{d/2 - 1}
I_{k + d/2 - 1}(\beta) ,
\end{aligned}""",
)
def test_growth_of_modes(rng):
    d, k, beta = int(rng.integers(2, 9)), int(rng.integers(1, 6)), drawn(rng, 0.2, 6)
    # Y = Re (y₁ + i y₂)ᵏ as coefficients and exponents. We look at e₁, where Y is 1.
    even = range(0, k + 1, 2)
    Y = [((-1) ** (j // 2) * mp.binomial(k, j), k - j, j) for j in even]

    def mean(Y, a=0, b=0, c=0):
        """Of e^(βy₁) y₁ᵃ y₂ᵇ y₃ᶜ Y under the uniform law, by the series of e."""
        return mp.fsum(
            beta**m / mp.factorial(m) * q * moment(d, m + p + a, r + b, c)
            for q, p, r in Y for m in range(80)
        )  # fmt: skip

    def Lambda(k):
        half = mp.mpf(d) / 2
        power = (2 / beta) ** (half - 1)
        return mp.gamma(half) * power * mp.besseli(k + half - 1, beta)

    # x ↦ ∫ e^(β⟨x,y⟩) Y dμ, and its Laplacian: second derivatives along the d − 1
    # great circles through the pole, one of which turns toward e₂.
    Z0, Z1 = mean([(1, 0, 0)]), mean(Y)
    laplacian = beta**2 * mean(Y, b=2) - beta * mean(Y, a=1)
    laplacian += (d - 2) * (beta**2 * mean(Y, c=2) - beta * mean(Y, a=1))
    assert abs(Z0 / Lambda(0) - 1) < 1e-25
    assert abs(Z1 / Lambda(k) - 1) < 1e-25
    # 𝒳 = (c/β) ∇Z₁/Z₀ to first order, and Y grows by minus its divergence.
    rate = k * (k + d - 2) / beta * Lambda(k) / Lambda(0)
    assert abs(-laplacian / (beta * Z0) / rate - 1) < 1e-25


def closing_speed(alpha, beta, m=1):
    """Derivative of the angle of two clusters with m tokens each."""
    c, s = mp.cos(alpha), mp.sin(alpha)
    x = np.repeat(np.array([[mp.mpf(1), 0], [c, s]]), m, axis=0)
    ahead = np.repeat(np.array([[mp.mpf(0), 1], [-s, c]]), m, axis=0)
    # Their places along the circle, not projected places: no digits of e^−β get lost.
    speed = (attention(x, beta) * (ahead @ x.T)).sum(axis=1)
    return speed[-1] - speed[0]


@formula(
    "prop-two-clusters",
    r"\dot\alpha = - \frac{2 \sin\alpha}{1 + e^{\beta(1 - \cos\alpha)}} .",
)
def test_speed_of_two_clusters(rng):
    alpha, beta, m = drawn(rng, 0, 3.14), drawn(rng, -3, 9), int(rng.integers(1, 5))
    right = -2 * mp.sin(alpha) / (1 + mp.exp(beta * (1 - mp.cos(alpha))))
    assert abs(closing_speed(alpha, beta, m) / right - 1) < 1e-25


@formula(
    "prop-two-clusters",
    r"""t_{\mathrm{wait}} \cdot 2\beta \sin^2\!\alpha(0)\; e^{-\beta(1 - \cos\alpha(0))}
\to 1 .""",
)
def test_time_of_two_clusters(rng):
    start, end = drawn(rng, 1.2, 2.5), drawn(rng, 0.1, 0.4)

    def product(beta):
        # Time is spent at the start: beyond 100/β of 1 − cos α less than e⁻¹⁰⁰ of it.
        def slowness(s):
            alpha = mp.acos(mp.cos(start) + s / beta)
            return -1 / closing_speed(alpha, beta) / (beta * mp.sin(alpha))

        T = mp.quad(slowness, [0, 6, 25, 100], maxdegree=5)
        damping = mp.exp(-beta * (1 - mp.cos(start)))
        return T * 2 * beta * mp.sin(start) ** 2 * damping

    sizes = [8000 * 2**i for i in range(6)]
    assert mp.cos(end) - mp.cos(start) > mp.mpf(100) / sizes[0]
    # Six values of β.
    assert abs(extrapolated([product(mp.mpf(b)) for b in sizes], sizes) - 1) < 1e-18


@formula(
    "prop-fresh",
    r"""\begin{aligned}
\mathrm d\rho = (1 - \rho^2) \Big( & \big[(d-2)\, b - (1 - b)\, \rho \big]\,
\mathrm dt \\
&+ \sqrt{2 (1 - b)}\; \mathrm dB \Big) ,
\end{aligned}""",
)
def test_drift_and_noise_of_a_fresh_layer(rng):
    d, beta = int(rng.integers(2, 6)), drawn(rng, -3, 4)
    x = tokens(rng, 2, d)
    y = attention(x, beta) @ x
    rho = x[0] @ x[1]

    def cosine(W):
        a, b = unit(x + y @ W.T)
        return a @ b

    # With √dt W for W, of what an entry of W does only its first two derivatives are
    # of order dt = T/L, and different entries are uncorrelated.
    entries = np.eye(d * d, dtype=int).reshape(d * d, d, d)
    slope, bend = (
        np.array([mp.diff(lambda s, W=W: cosine(s * W), 0, k) for W in entries])
        for k in (1, 2)
    )
    drift, variance = bend.sum() / 2, (slope**2).sum()
    b = mp.sech(beta / 2 * (1 - rho)) ** 2 / 2
    assert abs(drift - (1 - rho**2) * ((d - 2) * b - (1 - b) * rho)) < 1e-25
    assert abs(variance - ((1 - rho**2) * mp.sqrt(2 * (1 - b))) ** 2) < 1e-25


def draws(n, m):
    """All ways in which n draws can fall on m places."""
    bars = combinations(range(n + m - 1), m - 1)
    return [np.diff([-1, *each, n + m - 1]) - 1 for each in bars]


def flowing(theta, w, beta, t, steps=80):
    """Clusters on circles with masses w, by the unnormalized model, in floats."""

    def speed(a):
        apart = a[..., None, :] - a[..., None]
        return (np.exp(beta * np.cos(apart)) * np.sin(apart) * w[..., None, :]).sum(-1)

    h = t / steps
    for _ in range(steps):
        a = speed(theta)
        b = speed(theta + h / 2 * a)
        c = speed(theta + h / 2 * b)
        theta = theta + h / 6 * (a + 2 * b + 2 * c + speed(theta + h * c))
    return theta


def circle_distance(theta, w, phi, v):
    """W₁: the mass that crosses each arc, for the best circulation."""
    places = np.concatenate([theta, phi]) % (2 * np.pi)
    rank = np.argsort(places)
    crossing = np.cumsum(np.concatenate([w, -v])[rank])
    arcs = np.diff([*places[rank], places[rank[0]] + 2 * np.pi])
    return min(arcs @ np.abs(crossing - c) for c in crossing)


@formula(
    "thm-mean-field",
    r"""\mathbb E\, W_1\Big( \frac1n \sum_i \delta_{x_i(t)},\; \mu_t \Big)
\le \frac{\pi\, e^{2 e^\beta t}}{\sqrt n} .""",
)
def test_bound_of_the_mean_field_limit(rng):
    # The mean over all draws of laws with a few point masses, which is exact.
    thirds, halves = 2 * np.pi / 3 * np.arange(3), np.pi * np.arange(2)
    cases = [
        (rng.uniform(0, 2 * np.pi, m), rng.dirichlet(np.ones(m)), n, beta, t)
        for m, n, beta, t in zip(
            rng.integers(2, 5, 12), rng.integers(1, 13, 12), rng.uniform(0, 1.5, 12),
            rng.exponential(0.1, 12), strict=True,
        )
    ]  # fmt: skip
    # One draw of two opposite points attains half of the bound; many draws of an
    # unstable law part far, so that no bound without growth would do.
    cases += [(halves, np.full(2, 0.5), n, 0.0, 0.0) for n in (1, 2, 16)]
    cases += [(thirds, np.full(3, 1 / 3), 24, beta, 8.0) for beta in (0.0, 0.5)]
    for theta, p, n, beta, t in cases:
        counts = np.array(draws(n, len(p)))
        each = [np.prod(p**k / [math.factorial(i) for i in k]) for k in counts]
        chance = np.array(each) * math.factorial(n)
        assert np.isclose(chance.sum(), 1)
        law = flowing(theta, p, beta, t)
        crowds = flowing(np.tile(theta, (len(counts), 1)), counts / n, beta, t)
        W = [circle_distance(x, k / n, law, p)
             for x, k in zip(crowds, counts, strict=True)]  # fmt: skip
        bound = np.pi * np.exp(2 * np.exp(beta) * t) / np.sqrt(n)
        assert chance @ W <= bound
