"""Sinkhorn attention and heat: each displayed formula of a statement, recomputed."""

import mpmath as mp
import numpy as np
import sympy as sp
from digits import drawn, exp, gap, log, root
from numpy.polynomial.hermite_e import hermegauss
from numpy.polynomial.legendre import leggauss
from printed import formula

DIGITS = 40


def partial(f, x, *axes):
    """Derivative of f at the point x along these axes, one for each order."""
    orders = tuple(axes.count(i) for i in range(len(x)))
    return mp.diff(lambda *y: f(np.array(y)), tuple(x), orders)


def gradient(f, x):
    return np.array([partial(f, x, i) for i in range(len(x))])


def half_squares(x, y):
    return ((x[:, None] - y[None]) ** 2).sum(axis=2) / 2


def alternating(scores, w):
    """Rows, columns, rows, ... until ∑ⱼ Pᵢⱼ = 1 and ∑ᵢ wᵢ Pᵢⱼ = wⱼ."""
    P = exp(scores) * w
    while gap(P.sum(axis=1), 1) > 1000 * mp.eps:
        P = P / P.sum(axis=1, keepdims=True)
        P = P * (w / (w @ P))
    return P


def scaling(x, w, eps):
    """The positive u for which wᵢ uᵢ Kᵢⱼ uⱼ wⱼ is a coupling of w with itself."""
    K, u = exp(-half_squares(x, x) / eps), w / w
    while gap(u * (K @ (w * u)), 1) > 1000 * mp.eps:
        u = root(u / (K @ (w * u)))
    return u


def coupling(x, w, eps):
    u = scaling(x, w, eps)
    return np.outer(w * u, w * u) * exp(-half_squares(x, x) / eps)


def price(plan, x, w, eps):
    """What a coupling costs, as OT is defined."""
    return (half_squares(x, x) * plan + eps * plan * log(plan / np.outer(w, w))).sum()


def crowd(rng, least=2, most=4):
    """Tokens in up to three dimensions, their weights, and ε."""
    n, d = rng.integers(least, most + 1), rng.integers(1, most)
    w = drawn(rng, 0.5, 1.5, n)
    return drawn(rng, -1, 1, n, d), w / w.sum(), drawn(rng, 0.7, 1.5, 1)[0]


@formula(
    "def-layer",
    r"""\begin{aligned}
x_i \leftarrow{}& x_i + \sum_j P_{ij}\, W^V (x_j - x_i) \\
&= 2 x_i - \sum_j P_{ij}\, x_j .
\end{aligned}""",
)
def test_layer(rng):
    x, _, eps = crowd(rng, least=1)
    n, d = x.shape
    query = np.eye(d, dtype=int) + drawn(rng, -0.3, 0.3, d, d)
    key = np.array((mp.matrix(query.tolist()) ** -1).T.tolist()).reshape(d, d)
    P = alternating(x @ query.T @ key @ x.T / eps, np.full(n, mp.mpf(1) / n))
    value = -np.eye(d, dtype=int)
    first = [a + sum(P[i, j] * (value @ (x[j] - a)) for j in range(n))
             for i, a in enumerate(x)]  # fmt: skip
    # The second line with P from the transport of the tokens to themselves.
    plan = coupling(x, np.full(n, mp.mpf(1) / n), eps)
    assert gap(np.array(first), 2 * x - n * plan @ x) < 1e-25


@formula(
    "thm-gradient-flow",
    r"""x_i - B(x_i) = \frac1{2 w_i} \nabla_{x_i} \mathrm{OT}_\varepsilon
    = -\frac{\varepsilon}{w_i} \nabla_{x_i} F_\varepsilon .""",
)
def test_gradient_of_the_cost(rng):
    x, w, eps = crowd(rng, most=3)

    def cost(flat):
        y = flat.reshape(x.shape)
        return price(coupling(y, w, eps), y, w, eps)

    def F(flat):
        return -cost(flat) / (2 * eps)

    # The coupling is the minimizer: no exchange of mass is cheaper, to first order.
    plan, swap = coupling(x, w, eps), drawn(rng, -1, 1, *2 * [len(x)])
    swap = swap - swap.mean(axis=0) - swap.mean(axis=1)[:, None] + swap.mean()
    assert abs(mp.diff(lambda s: price(plan + s * swap, x, w, eps), 0)) < 1e-25

    away = x - alternating(x @ x.T / eps, w) @ x
    slope, F_slope = (gradient(f, x.ravel()).reshape(x.shape) for f in (cost, F))
    assert gap(away, 1 / (2 * w[:, None]) * slope) < 1e-25
    assert gap(away, -eps / w[:, None] * F_slope) < 1e-25


@formula(
    "prop-barycentric",
    r"""\begin{aligned}
q(x) &= \sum_j w_j u_j\, e^{-|x - x_j|^2/2\varepsilon} , \\
B(x) &= \frac1{q(x)} \sum_j w_j u_j\, e^{-|x - x_j|^2/2\varepsilon}\, x_j .
\end{aligned}""",
)
def test_barycentric_map(rng):
    x, w, eps = crowd(rng)
    u = scaling(x, w, eps)

    def mass(y):
        return w * u * exp(-((y - x) ** 2).sum(axis=1) / 2 / eps)

    def q(y):
        return mass(y).sum()

    def B(y):
        return mass(y) / q(y) @ x

    # At the tokens B is their mean under attention, which keeps the mean of all.
    P = alternating(x @ x.T / eps, w)
    at_tokens = np.array([B(y) for y in x])
    assert gap(at_tokens, P @ x) < 1e-25
    assert gap(u * np.array([q(y) for y in x]), 1) < 1e-25
    assert gap(w @ at_tokens, w @ x) < 1e-25
    # Elsewhere it is the extension whose displacement and Jacobian are these.
    y = drawn(rng, -1, 1, x.shape[1])
    assert gap(B(y), y + eps * gradient(lambda z: mp.log(q(z)), y)) < 1e-25
    jacobian = np.array([gradient(lambda z, i=i: B(z)[i], y) for i in range(len(y))])
    given = mass(y) / q(y)
    covariance = (x - B(y)).T @ (given[:, None] * (x - B(y)))
    assert gap(jacobian, covariance / eps) < 1e-25


def correlation(s, eps):
    """Of the cheapest Gaussian pair: least s(1 − a) − ½ε log(1 − a²)."""
    return (mp.sqrt(eps**2 + 4 * s**2) - eps) / (2 * s)  # where εa = s(1 − a²)


EXPANSION = r"""\begin{aligned}
& B_{\rho,\varepsilon} = \mathrm{id} + \tfrac\varepsilon2 \nabla \log \rho \\
&\quad + \tfrac{\varepsilon^2}8 \nabla \big( \Delta \log \rho
+ \tfrac12 |\nabla \log \rho|^2 \big) + O(\varepsilon^4), \\
& F_\varepsilon(\rho) = \tfrac12 \int \rho \log \rho
+ \tfrac d4 \log(2\pi\varepsilon) \\
&\quad - \tfrac\varepsilon{16} \int \rho\, |\nabla \log \rho|^2 + O(\varepsilon^3),
\end{aligned}"""


@formula("obs-expansion", EXPANSION)
def test_expansion_of_the_average(rng):
    # Choose g = uρ, a mixture of Gaussians. Then q, ρ = g q and B are explicit.
    d = int(rng.integers(1, 4))
    c, s, m = drawn(rng, 1, 2, 2), drawn(rng, 1, 2, 2), drawn(rng, -1, 1, 2, d)
    y, axes = drawn(rng, -1, 1, d), range(d)
    with mp.workdps(160):
        eps = mp.mpf(10) ** -27

        def smoothed(x, t):
            squares = ((x - m) ** 2).sum(axis=1)
            powers = root(s / (s + t)) ** d
            return (c * powers * exp(-squares / (s + t) / 2)).sum()

        def L(x):
            return mp.log(smoothed(x, 0) * smoothed(x, eps))

        B = y + eps * gradient(lambda x: mp.log(smoothed(x, eps)), y)
        slope = gradient(L, y)
        second = [
            sum(partial(L, y, i, j, j) + slope[j] * partial(L, y, i, j) for j in axes)
            for i in axes
        ]
        rest = B - y - eps / 2 * slope - eps**2 / 8 * np.array(second)
        assert gap(rest / eps**3, 0) < 1e-24  # hundreds of ε, and no power below


@formula("obs-expansion", EXPANSION)
def test_expansion_of_the_cost_of_a_gaussian(rng):
    # Eigenvalue by eigenvalue of the covariance.
    d, eps = int(rng.integers(1, 5)), mp.mpf(10) ** -27
    with mp.workdps(160):
        s = drawn(rng, 0.7, 2, d)
        a = np.array([correlation(each, eps) for each in s])
        OT = (s * (1 - a) - eps / 2 * log(1 - a**2)).sum()
        entropy = -(log(2 * mp.pi * mp.e * s) / 2).sum()
        formula = entropy / 2 + d * mp.log(2 * mp.pi * eps) / 4 - eps / 16 * sum(1 / s)
        assert abs(-OT / (2 * eps) - formula) / eps**2 < 1e-24


@formula("obs-expansion", EXPANSION)
def test_expansion_of_the_cost_on_the_line(rng):
    c, s, m = drawn(rng, 1, 2, 2), drawn(rng, 1, 2, 2), drawn(rng, -1, 1, 2)
    with mp.workdps(110):
        eps, h = mp.mpf(10) ** -27, mp.mpf(1) / 32
        x = h * np.arange(-25 * 32, 25 * 32 + 1)[:, None]  # trapezoids, analytic

        def smoothed(t):
            each = c * root(s / (s + t)) * exp(-((x - m) ** 2) / (s + t) / 2)
            return each.sum(axis=1), (each * (m - x) / (s + t)).sum(axis=1)

        (g, dg), (q, dq) = smoothed(0), smoothed(eps)
        q, dq = [mp.sqrt(2 * mp.pi * eps) * each for each in (q, dq)]
        total = h * (g * q).sum()  # g and q share the factor that makes it 1
        rho, scale = g * q / total, 1 / mp.sqrt(total)
        # OT = 2ε ∫ρ log u with u = 1/q, as ½|x − y|² cancels the exponent of π.
        F = h * (rho * log(scale * q)).sum()
        formula = h * (rho * log(rho)).sum() / 2 + mp.log(2 * mp.pi * eps) / 4
        formula -= eps / 16 * h * (rho * (dg / g + dq / q) ** 2).sum()
        assert abs(F - formula) / eps**2 < 1e-24


@formula(
    "prop-heat",
    r"""\begin{aligned}
\partial_t \rho_t &= \tfrac12 \Delta \rho_t = - \nabla\!\cdot (v_t \rho_t), \\
v_t &= -\tfrac12 \nabla \log \rho_t .
\end{aligned}""",
)
def test_heat_as_transport(rng):
    a, w, t = crowd(rng)  # ρ₀ consists of point masses w at the places a
    y, d = drawn(rng, -1, 1, a.shape[1]), a.shape[1]

    def mass(x, t):
        squares = ((x - a) ** 2).sum(axis=1)
        return w * exp(-squares / 2 / t) / mp.sqrt(2 * mp.pi * t) ** d

    def rho(x):
        return mass(x, t).sum()

    def v(x):  # the mean speed of a + √t z, for those a and z that lead to x
        return mass(x, t) @ ((x - a) / (2 * t)) / rho(x)

    change = mp.diff(lambda t: mass(y, t).sum(), t)
    heat = sum(partial(rho, y, i, i) for i in range(d)) / 2
    divergence = sum(partial(lambda x, i=i: v(x)[i] * rho(x), y, i) for i in range(d))
    assert abs(change - heat) < 1e-25
    assert abs(change + divergence) < 1e-25
    assert gap(v(y), -gradient(lambda x: mp.log(rho(x)), y) / 2) < 1e-25


def variances(s, T, K):
    """Before and after each of K layers from 𝒩(0, s): a layer multiplies by 2 − a."""
    path = [s]
    for _ in range(K):
        path.append(path[-1] * (2 - correlation(path[-1], T / K)) ** 2)
    return np.array(path)


def extrapolated(values, sizes):
    """The value at 1/size = 0 of the polynomial in 1/size through these values."""
    row, x = list(values), [mp.mpf(1) / K for K in sizes]
    for k in range(1, len(row)):
        row = [(x[i] * row[i + 1] - x[i + k] * row[i]) / (x[i] - x[i + k])
               for i in range(len(row) - 1)]  # fmt: skip
    return row[0]


SIZES = [4 * 2**i for i in range(10)]

SECOND = r"""\begin{aligned}
&\frac{W_2(\mathrm{SB}^k_\varepsilon(\rho_0), \rho_T)}{\varepsilon^2}
\to \Big( \int \delta_T^2\, \rho_T \Big)^{1/2} , \\
&\delta_T = - \frac1{\rho_T} \int_0^T e^{(T-t)\Delta/2}\, \frac{\rho_t x^{(3)}_t}6\,
\mathrm dt
\end{aligned}"""


@formula("obs-second-order", SECOND)
def test_constant_of_order_two_for_a_gaussian(rng):
    s0, T = drawn(rng, 1, 2, 1)[0], drawn(rng, 0.5, 1, 1)[0]
    z = mp.mpf(1) / 4 * np.arange(-50, 51)  # trapezoids, with the weight of 𝒩(0, 1)
    bell = exp(-(z**2) / 2) / mp.sqrt(2 * mp.pi) / 4

    def rho(x, t):
        return exp(-(x**2) / (2 * (s0 + t))) / mp.sqrt(2 * mp.pi * (s0 + t))

    def third(x, t):  # of the paths, which are multiples of the root of s₀ + t
        return x * mp.diff(lambda r: mp.sqrt(s0 + r), t, 3) / mp.sqrt(s0 + t)

    def source(x, t):  # e^{(T−t)Δ/2} (ρ_t x⃛/6)
        y = x + mp.sqrt(T - t) * z
        return (bell * rho(y, t) * third(y, t)).sum() / 6

    def e(x):
        return -mp.quad(lambda t: source(x, t), [0, T], maxdegree=5) / rho(x, T)

    x = drawn(rng, 0.5, 1, 2)
    slopes = [e(each) / each for each in x]  # e is linear
    W = [abs(mp.sqrt(variances(s0, T, K)[-1]) - mp.sqrt(s0 + T)) * (K / T) ** 2
         for K in SIZES]  # fmt: skip
    assert abs(slopes[0] - slopes[1]) < 1e-25
    # Ten sizes give some twenty digits.
    assert abs(extrapolated(W, SIZES) - abs(slopes[0]) * mp.sqrt(s0 + T)) < 1e-18


class Mixture:
    """Half a dozen digits: a law of two Gaussians on the line, in floats."""

    def __init__(self, rng, T):
        x, t = sp.symbols("x t")
        p, m = rng.uniform(0.3, 0.7), rng.uniform(0.5, 1, 2) * [-1, 1]
        parts = zip((p, 1 - p), m, rng.uniform(0.8, 1.2, 2), strict=True)
        rho = sum(
            p * sp.exp(-((x - m) ** 2) / (2 * (s + t))) / sp.sqrt(2 * sp.pi * (s + t))
            for p, m, s in parts
        )
        v = -sp.diff(rho, x) / rho / 2
        third = v
        for _ in range(2):  # the derivative along the flow
            third = sp.diff(third, t) + v * sp.diff(third, x)
        self.rho, self.v, self.third = (
            sp.lambdify((x, t), each, cse=True) for each in (rho, v, third)
        )
        self.T, self.y = T, np.linspace(-10, 10, 201)
        self.w = self.rho(self.y, 0) * 0.1

    def heat(self, K):
        """Where the flow is at K times, by Runge–Kutta steps."""
        x, h, v, path = self.y, self.T / 480, self.v, [self.y]
        for i in range(480):
            t = i * h
            a = v(x, t)
            b = v(x + h / 2 * a, t + h / 2)
            c = v(x + h / 2 * b, t + h / 2)
            x = x + h / 6 * (a + 2 * b + 2 * c + v(x + h * c, t + h))
            path += [x] if (i + 1) % (480 // K) == 0 else []
        return path

    def layers(self, K):
        x, path, eps = self.y, [self.y], self.T / K
        for _ in range(K):
            kernel = np.exp(-((x[:, None] - x) ** 2) / 2 / eps)
            u = np.ones_like(x)
            for _ in range(55):
                u = np.sqrt(u / (kernel @ (self.w * u)))
            x = 2 * x - u * (kernel @ (self.w * u * x))
            path.append(x)
        return path

    def distances(self, K):
        """W₂ of bridge and heat after each layer: equal quantiles, paired."""
        pairs = zip(self.layers(K), self.heat(K), strict=True)
        return [np.sqrt(self.w @ (a - b) ** 2) for a, b in pairs]


@formula("obs-second-order", SECOND)
def test_constant_of_order_two_for_a_mixture(rng):
    law = Mixture(rng, T=0.5)
    sizes = [4, 6, 8, 12, 16, 24]
    limit = extrapolated([law.distances(K)[-1] * (K / 0.5) ** 2 for K in sizes], sizes)
    (t, wt), (z, wz) = leggauss(16), hermegauss(80)
    t, wt, wz = (t + 1) / 4, wt / 4, wz / np.sqrt(2 * np.pi)  # from 0 to T = ½
    x = np.linspace(-7, 7, 141)
    e = 0
    for s, weight in zip(t, wt, strict=True):
        y = x[:, None] + np.sqrt(0.5 - s) * z
        e = e - weight * (law.rho(y, s) * law.third(y, s) / 6) @ wz
    e = e / law.rho(x, 0.5)
    norm = np.sqrt(0.1 * (e**2 * law.rho(x, 0.5)).sum())
    assert abs(limit / norm - 1) < 1e-4


UNIFORM = r"""\max_{k\varepsilon \le T} W_2\big( \mathrm{SB}^k_\varepsilon(\rho_0),
\rho_{k\varepsilon} \big) \to 0 \quad (\varepsilon \to 0)."""


@formula("thm-uniform", UNIFORM)
def test_uniform_convergence_for_a_gaussian(rng):
    s, T = drawn(rng, 1, 2, int(rng.integers(1, 4))), drawn(rng, 0.5, 1, 1)[0]

    def largest(K):
        t = T / K * np.arange(K + 1)
        off = [root(variances(each, T, K)) - root(each + t) for each in s]
        return max(root((np.array(off) ** 2).sum(axis=0)))

    worst = [largest(K) for K in SIZES[:9]]
    assert worst[-1] < 1e-6
    assert abs(extrapolated(worst, SIZES[:9])) < 1e-18  # nine sizes


@formula("thm-uniform", UNIFORM)
def test_uniform_convergence_for_a_mixture(rng):
    law = Mixture(rng, T=1)
    sizes = [4, 8, 16, 24]
    worst = [max(law.distances(K)) for K in sizes]
    assert np.all(np.diff(np.log(worst)) / np.diff(np.log(sizes)) < -1.7)


@formula(
    "prop-gaussian-flow",
    r"""s_k = s_0 + t - \frac{\varepsilon^2}8
    \Big( \frac1{s_0} - \frac1{s_0 + t} \Big) + O(\varepsilon^3) .""",
)
def test_variance_after_layers(rng):
    s0, T = drawn(rng, 0.7, 2, 1)[0], drawn(rng, 0.5, 1, 1)[0]
    paths = {K: variances(s0, T, K) for K in SIZES}
    for part in (1, 2, 3, 4):  # t = T/4, T/2, 3T/4 and T
        t = part * T / 4
        off = [(paths[K][part * K // 4] - s0 - t) * (K / T) ** 2 for K in SIZES]
        # Ten sizes give some twenty digits.
        assert abs(extrapolated(off, SIZES) + (1 / s0 - 1 / (s0 + t)) / 8) < 1e-18


@formula(
    "prop-softmax",
    r"B^{\mathrm{row}}(x) = x + \varepsilon\, \nabla \log \rho_\varepsilon(x),",
)
def test_average_under_softmax_weights(rng):
    # The law: point masses p at the places a, the last of them smeared by 𝒩(0, s).
    a, p, eps = crowd(rng)
    y, s, d = drawn(rng, -1, 1, a.shape[1]), drawn(rng, 0.5, 1, 1)[0], a.shape[1]
    z = mp.mpf(1) / 8 * np.arange(-80, 81)  # trapezoids, with the weight of 𝒩(0, s)
    bell = exp(-(z**2) / 2 / s) / mp.sqrt(2 * mp.pi * s) / 8

    # Per token and axis: the integral of the kernel, and of place times kernel.
    def integral(b, x, power):
        place = b + z
        return (bell * place**power * exp(-((x - place) ** 2) / 2 / eps)).sum()

    mass = exp(-((y - a[:-1]) ** 2).sum(axis=1) / 2 / eps)
    ones = [integral(b, x, 0) for x, b in zip(y, a[-1], strict=True)]
    places = [integral(b, x, 1) for x, b in zip(y, a[-1], strict=True)]
    mass = p * np.array([*mass, np.prod(ones)])
    means = np.array([*a[:-1], np.array(places) / np.array(ones)])
    average = mass @ means / mass.sum()

    def log_density(x):  # after the time ε of the heat flow
        t = np.array([eps] * (len(a) - 1) + [eps + s])
        each = exp(-((x - a) ** 2).sum(axis=1) / 2 / t) / root(2 * mp.pi * t) ** d
        return mp.log(p @ each)

    assert gap(average, y + eps * gradient(log_density, y)) < 1e-25
