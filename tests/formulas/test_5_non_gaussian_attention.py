"""The formulas of the chapter on non-Gaussian limits, from layers with real weights."""

from functools import cache
from itertools import product
from math import prod

import numpy as np
import pytest
from digits import drawn
from means import (
    at_infinity,
    chi_square,
    frame,
    grid,
    mean,
    moments_of_tanh,
    number,
    rational,
    variables,
)
from mpmath import mp, mpf
from printed import formula
from sympy import QQ, Symbol, exp, series

DIGITS = 32

TWO = range(2)  # tokens; there are two in most tests
WIDTHS = [64 * 2**k for k in range(9)]


def gram(X):
    return X @ X.T / QQ(X.shape[1])


def padded(C, n):
    """Tokens with the Gram matrix CC^T at width n; without the factor sqrt(n)."""
    return np.hstack([C, np.full((len(C), n - len(C)), QQ(0))])


@formula(
    "prop-score-law",
    r"\mathrm{Cov}(p^a_{ij}, p^b_{kl}) = \delta_{ab}\, \sigma^2\, V_{ik} V_{jl} .",
)
def test_covariance_of_scores(rng):
    (σ,) = rational(rng, 1)
    for n in (1, 2, 3):
        X = rational(rng, 2, n)
        V = gram(X)
        Q, K = variables((2, n, n), (2, n, n))  # times sqrt(n): standard normal
        heads = [X @ Q[a] @ (X @ K[a]).T for a in TWO]  # times n^(3/2)/σ: scores
        for a, b, i, j, k, l in product(TWO, repeat=6):  # noqa: E741
            assert mean(heads[a][i, j]) == 0
            covariance = mean(heads[a][i, j] * heads[b][k, l]) * σ**2 / n**3
            assert covariance == (a == b) * σ**2 * V[i, k] * V[j, l]


GAMMA = r"""\begin{aligned}
    \Gamma &= \frac1H \sum_{a=1}^H A^a V A^{a\top}, \\
    A^a &= \operatorname{softmax}(p^{\circ,a}) .
    \end{aligned}"""


@formula("thm-attention-limit", GAMMA)
def test_covariance_of_a_wide_layer_given_the_scores(rng):
    H = int(rng.integers(1, 3))
    C, A = rational(rng, 2, 2), rational(rng, H, 2, 2)
    Γ = sum(A[a] @ C @ C.T @ A[a].T for a in range(H)) / QQ(H)
    rest = []
    for n in (2, 3, 4):
        W, O = variables((H, n, n), (H, n, 2))  # noqa: E741
        y = sum(A[a] @ padded(C, n) @ W[a] @ O[a] for a in range(H))  # times sqrt(Hn)
        for i, k, α, β in product(TWO, repeat=4):
            assert mean(y[i, α] * y[k, β]) / (H * n) == (α == β) * Γ[i, k]
        # The covariance given the values has the mean Γ, and a variance c/n.
        second = mean(y[0, 0] * y[1, 0] * y[0, 1] * y[1, 1]) / QQ(H * n) ** 2
        rest.append(n * (second - Γ[0, 1] ** 2))
    assert rest[0] == rest[1] == rest[2]


@formula("thm-attention-limit", GAMMA)
def test_mean_covariance_of_a_wide_layer(rng):
    """As a series in the scale of the scores, whose terms are polynomials in 1/n."""
    C, z, p = rational(rng, 2, 2), Symbol("z"), [Symbol("p0"), Symbol("p1")]
    V = C @ C.T
    whole = sum(exp(z * x) for x in p)
    softmax = [series(exp(z * x) / whole, z, 0, 5).removeO().expand() for x in p]
    terms = [[s.coeff(z, r) for r in range(5)] for s in softmax]
    terms = [[t.as_poly(*p).terms() for t in s] for s in terms]

    def order(scores, r):
        """Coefficient of the scale's power r in (A V A^T)_01."""

        def term(j, i, r):
            x, y = scores[i]
            return sum(QQ(c.p, c.q) * x**k * y**q for (k, q), c in terms[j][r])

        return sum(
            V[j, k] * term(j, 0, q) * term(k, 1, r - q)
            for j, k in product(TWO, repeat=2) for q in range(r + 1)
        )  # fmt: skip

    limit = C @ variables((2, 2))[0] @ C.T  # covariance V ⊗ V
    means = {}
    for n in (2, 3):
        Q, K = variables((n, n), (n, n))  # times sqrt(n)
        X = padded(C, n)
        scores = X @ Q @ (X @ K).T  # times sqrt(n)
        means[n] = [mean(order(scores, r)) / QQ(n) ** (r // 2) for r in (2, 4)]
    second, fourth = (mean(order(limit, r)) for r in (2, 4))
    assert means[2][0] == means[3][0] == second
    assert 3 * means[3][1] - 2 * means[2][1] == fourth  # a + b/n at infinity


class Row:
    """The first row of scores of two tokens, whose difference has one coordinate."""

    def __init__(self, rng):
        δ, x, y = (
            QQ(int(rng.integers(*ends)), 16) for ends in ((9, 15), (-8, 9), (8, 15))
        )
        self.C = C = np.array([[x + δ, y], [x, y]])
        self.V = C @ C.T
        self.mp_C, self.mp_V = (np.vectorize(number)(M) for M in (C, self.V))
        # The difference of the two scores is normal with the variance a in the limit.
        self.a = drawn(rng, 0.3, 1.0)
        self.σ = mp.sqrt(self.a / number(self.V[0, 0] * δ**2))

    def u(self, g, t=1):
        """Of g in front of the first column; the second is the same for both tokens."""
        scale = self.σ * mp.sqrt(self.mp_V[0, 0] * t)
        s = np.array([mp.exp(scale * c * g) for c in self.mp_C[:, 0]])
        return s @ self.mp_V @ s / sum(s) ** 2

    def softmax(self, t):
        """As a function of t = tanh(d/2), where d is the difference of the scores."""
        return np.array([1 + t, 1 - t]) / QQ(2)

    def at_width(self, n):
        """Means of u and u² at width n."""
        ((t,),) = variables((1,))
        u, law = self.softmax(t) @ self.V @ self.softmax(t), moments_of_tanh(n, self.a)
        return mean(u, {t: law}), mean(u * u, {t: law})


@formula(
    "thm-attention-limit",
    r"v_i = \frac1H \sum_{a=1}^H u_a, \qquad u_a = s_a^\top V s_a ,",
)
def test_variance_of_a_row(rng):
    """Second and fourth moment of the output of two heads, at large widths."""
    row = Row(rng)
    us = [(row.u(g), w) for g, w in grid(0.25, 12)]
    vs = [((u + u_) / 2, w * w_) for (u, w), (u_, w_) in product(us, us)]

    def moments(n):
        """A head is a product of two normal vectors, of variance u given the scores."""
        u, uu = row.at_width(n)
        one, two = u, 3 * (1 + mpf(2) / n) * uu
        return one, (2 * two + 6 * one**2) / 4

    second, fourth = (at_infinity(lambda n, r=r: moments(n)[r], WIDTHS) for r in TWO)
    assert abs(second - sum(w * v for v, w in vs)) < 1e-25
    assert abs(fourth - 3 * sum(w * v * v for v, w in vs)) < 1e-25


def chi(degrees):
    """Even moments of the root of a chi-square variable."""
    return lambda k: prod(degrees + j for j in range(0, k, 2))


def bartlett(variables, n):
    """Factors of two rows, and the laws of those entries that are not normal."""
    law = {r[0]: chi(n) for r in variables} | {r[2]: chi(n - 1) for r in variables}
    return [np.array([[r[0], 0 * r[0]], [r[1], r[2]]]) for r in variables], law


@formula(
    "prop-exact-matrix",
    r"\Gamma_n = \frac1H \sum_a A^a C \big("
    r" \tfrac1n R'_{n,a} R_{n,a}^{\prime\top} \big) C^\top A^{a\top} .",
)
@pytest.mark.parametrize(("n", "H"), [(2, 2), (3, 1)])
def test_covariance_of_a_layer_without_weights(rng, n, H):
    """Fourth moments of real weights, given the attention weights A."""
    C, A, X = rational(rng, 2, 2), rational(rng, H, 2, 2), frame(rng, 2, n)
    W, O = variables((H, n, n), (H, n, 2))  # noqa: E741
    y = sum(A[a] @ C @ X @ W[a] @ O[a] for a in range(H))  # times sqrt(Hn)
    (r,) = variables((H, 3))
    R, law = bartlett(r, n)
    Γ = sum(A[a] @ C @ R[a] @ R[a].T @ C.T @ A[a].T for a in range(H))  # times Hn
    for i, j, k, l in [(0, 0, 1, 1), (0, 1, 0, 1), (0, 0, 0, 1)]:  # noqa: E741
        one = mean(Γ[i, j] * Γ[k, l], law)
        assert mean(y[i, 0] * y[j, 0]) == mean(Γ[i, j], law)
        assert mean(y[i, 0] * y[j, 0] * y[k, 1] * y[l, 1]) == one
        two = mean(Γ[i, k] * Γ[j, l] + Γ[i, l] * Γ[j, k], law)
        assert mean(y[i, 0] * y[j, 0] * y[k, 0] * y[l, 0]) == one + two


@formula(
    "prop-exact-layer",
    r"""\begin{aligned}
    v_n &= \frac1H \sum_a t'_a\, s_a^\top V s_a, \\
    s_a &= \operatorname{softmax}\big( \sigma \sqrt{V_{ii}\, t_a}\; C \xi_a \big)
    \end{aligned}""",
)
def test_row_without_weights(rng):
    """Second and fourth moment of the output of two heads with real weights."""
    row, n, H = Row(rng), int(rng.integers(4, 6)), 2
    W, O, τ = variables((H, 2, n), (H, n), (H,))  # noqa: E741
    # The other coordinates of the tokens, if turned like this, are 0.
    y = sum(row.softmax(τ[a]) @ row.C @ W[a] @ O[a] for a in range(H))  # times sqrt(Hn)
    law = dict.fromkeys(τ, moments_of_tanh(n, row.a))
    square = y**2
    second, fourth = mean(square, law) / (H * n), mean(square**2, law) / (H * n) ** 2

    ts = chi_square(n)
    us = [
        (row.u(g, t), w * q)
        for t, q in ts
        for g, w in grid(mpf("0.36") / mp.sqrt(max(1, t)), 9)
    ]
    u, uu = (sum(w * u**k for u, w in us) for k in (1, 2))
    t, tt = (sum(q * t**k for t, q in ts) for k in (1, 2))
    assert abs(second - t * u) < 1e-15
    assert abs(fourth - 3 * (H * tt * uu + H * (H - 1) * (t * u) ** 2) / H**2) < 1e-15


def weights_at_width(n, step, end):
    """For the mean over d = sum of q k over n products, divided by sqrt(n).

    The density of d is the integral of its characteristic function.
    """
    h = mpf("0.2")
    φ = [h / mp.pi * (1 + (j * h) ** 2 / n) ** (-mpf(n) / 2) for j in range(90)]
    φ[0] /= 2
    return [
        (x, step * sum(f * c for f, c in zip(φ, cosines(abs(x), h), strict=True)))
        for x, _ in grid(step, end)
    ]


@cache
def cosines(x, h):
    return [mp.cos(j * h * x) for j in range(90)]


@formula(
    "prop-one-network",
    r"\frac1n \sum_{\alpha=1}^n \psi(y_{i\alpha}) \Rightarrow"
    r" \mathbb E\big[ \psi(\sqrt v\, \xi) \,\big|\, v \big] ,",
)
def test_average_in_one_network(rng):
    """First and second moment of the average, for two heads and cosines."""
    row, H, θ = Row(rng), 2, drawn(rng, 0.5, 2)
    us = [(row.u(g), w) for g, w in grid(0.36, 10)]
    vs = [((u + u_) / 2, w * w_) for (u, w), (u_, w_) in product(us, us)]

    def moments(n):
        """Coordinates are normal given the values, which are so given the scores."""
        law = zip(us, weights_at_width(n, mpf(0.36), 10), strict=True)
        law = [(u, w) for (u, _), (_, w) in law]

        def both(power):  # mean of exp(-power/2 times the variance of a coordinate)
            return (
                sum(w * (1 + power * u / (n * H)) ** (-mpf(n) / 2) for u, w in law) ** H
            )

        square = (1 + both(4 * θ**2)) / 2
        return both(θ**2), square / n + (1 - mpf(1) / n) * both(2 * θ**2)

    for k in (1, 2):
        limit = at_infinity(lambda n, k=k: moments(n)[k - 1], WIDTHS)
        # Characteristic function of a normal variable of variance v.
        assert abs(limit - sum(w * mp.exp(-(θ**2) * v / 2) ** k for v, w in vs)) < 1e-16


@formula(
    "prop-one-network",
    r"\mathrm{Corr}(y_{i1}^2, y_{i2}^2) ="
    r" \frac{\mathrm{Var}(v)}{3\, \mathbb E v^2 - (\mathbb E v)^2} .",
)
def test_correlation_of_squares(rng):
    """For variances v that are drawn from a random finite law."""
    values, weights = abs(rational(rng, 3)), abs(rational(rng, 3))
    weights = weights / sum(weights)
    r, x, y = variables((3,))[0]  # y_1 = r x, y_2 = r y with r² = v
    law = {r: lambda k: sum(weights * values ** (k // 2))}
    one, two = (r * x) ** 2, (r * y) ** 2
    variance = mean(one**2, law) - mean(one, law) ** 2
    covariance = mean(one * two, law) - mean(one, law) * mean(two, law)
    v, vv = sum(weights * values), sum(weights * values**2)
    assert covariance / variance == (vv - v**2) / (3 * vv - v**2)


@formula(
    "prop-kurtosis",
    r"\kappa = \frac cH, \qquad"
    r" c = c(V, \sigma) = \frac{3\, \mathrm{Var}(u)}{(\mathbb E u)^2} \ge 0 ,",
)
def test_kurtosis_of_the_limit(rng):
    row, H = Row(rng), int(rng.integers(1, 6))
    us = [(row.u(g), w) for g, w in grid(0.25, 12)]

    def characteristic(z):
        """Of the output, at the square root of z: heads are independent."""
        return sum(w * mp.exp(-z * u / (2 * H)) for u, w in us) ** H

    with mp.workdps(60):  # of which derivatives lose many
        _, first, second = mp.taylor(characteristic, 0, 2)
    κ = 24 * second / (2 * first) ** 2 - 3
    u, uu = (sum(w * u**k for u, w in us) for k in (1, 2))
    c = 3 * (uu - u**2) / u**2
    assert abs(κ - c / H) < 1e-25
    assert c >= 0


@formula(
    "prop-kurtosis",
    r"\kappa_n = \frac3H \Big[ \Big( 1 + \frac2n \Big)"
    r" \frac{\mathbb E\, u_n^2}{(\mathbb E\, u_n)^2} - 1 \Big] ,",
)
def test_kurtosis_at_a_width(rng):
    row, n, H = Row(rng), int(rng.integers(2, 6)), int(rng.integers(1, 3))
    W, O, τ = variables((H, 2, n), (H, n), (H,))  # noqa: E741
    y = sum(row.softmax(τ[a]) @ row.C @ W[a] @ O[a] for a in range(H))
    law = dict.fromkeys(τ, moments_of_tanh(n, row.a))
    square = y**2
    κ = mean(square**2, law) / mean(square, law) ** 2 - 3
    u, uu = row.at_width(n)
    assert abs(κ - 3 * ((1 + mpf(2) / n) * uu / u**2 - 1) / H) < 1e-25


@formula(
    "thm-programs",
    r"\begin{aligned} \frac1n & \sum_{\alpha=1}^n"
    r" \psi(h^1_\alpha, \dots, h^k_\alpha) \\"
    r" &\Rightarrow \mathbb E\big[ \psi(Z^{h^1}, \dots, Z^{h^k}) \,\big|\,"
    r" p^\circ_1, \dots, p^\circ_r \big] , \end{aligned}",
)
def test_average_of_a_program(rng):
    """Moments of the average of cos(h¹ + h²): h¹ = p x and h² = y, normal inputs.

    The scalar p has the factors W b sign(z) and W' sign(z), with another input z.
    """
    b, ρ = drawn(rng, 0.4, 0.8), drawn(rng, -0.9, 0.9)  # of x and y

    def moments(n):
        law = [(b * x, w) for x, w in weights_at_width(n, mpf(0.36), 10)]
        # A characteristic function: that of p x + y at 1, given p.
        law = [(mp.exp(-(1 + 2 * ρ * p + p * p) / 2), w) for p, w in law]
        first, second, fourth = (sum(w * f**k for f, w in law) for k in (1, 2, 4))
        return first, ((1 + fourth) / 2 + (n - 1) * second) / n

    pairs = [
        (x, ρ * x + mp.sqrt(1 - ρ * ρ) * z, u * w)
        for (x, u), (z, w) in product(grid(0.4, 9), repeat=2)
    ]
    given = [
        (sum(u * mp.cos(b * p * x + y) for x, y, u in pairs), w)
        for p, w in grid(0.4, 9)
    ]
    for k in (1, 2):
        limit = sum(w * f**k for f, w in given)
        assert (
            abs(at_infinity(lambda n, k=k: moments(n)[k - 1], WIDTHS) - limit) < 1e-16
        )


@formula(
    "thm-programs",
    r"\mathrm{Cov}(p^\circ_b, p^\circ_{b'}) ="
    r" \mathbb E\big[ Z^{g^{b,1}} Z^{g^{b,2}} Z^{g^{b',1}} Z^{g^{b',2}} \big] .",
)
def test_covariance_of_scalars(rng):
    """For given vectors h, whose coordinates are the law of their limit variables."""
    n = int(rng.integers(2, 4))
    h = rational(rng, 4, n)
    (W,) = variables((3, n, n))  # times sqrt(n)
    (ζ,) = variables((3, n))
    pairs = [(j, k) for j, k in product(range(3), repeat=2) if j != k]
    for b, c in product(pairs, pairs):
        g = [W[j] @ x for j, x in zip(b + c, h, strict=True)]
        # Normal, the same for the same matrix, of covariance <h, h'>/n
        Z = [ζ[j] @ x for j, x in zip(b + c, h, strict=True)]
        one, two = g[0] @ g[1], g[2] @ g[3]
        assert mean(one) == mean(two) == 0
        assert mean(one * two) / QQ(n) ** 3 == mean(prod(Z)) / QQ(n) ** 2


@formula(
    "prop-regimes",
    r"""\begin{aligned}
    \mathbb E\, p_{ij} &= \sigma \sqrt n\, V_{ij}, \\
    \mathrm{Cov}(p_{ij}, p_{kl}) &= \sigma^2 (V_{ik} V_{jl} + V_{il} V_{jk}) .
    \end{aligned}""",
)
def test_tied_scores(rng):
    (σ,) = rational(rng, 1)
    for n in (1, 2, 3):
        X = rational(rng, 2, n)
        V = gram(X)
        (W,) = variables((n, n))  # times sqrt(n)
        p = X @ W @ (X @ W).T * (σ / n)  # times sqrt(n)
        for i, j, k, l in product(TWO, repeat=4):  # noqa: E741
            assert mean(p[i, j]) == σ * n * V[i, j]
            covariance = (mean(p[i, j] * p[k, l]) - mean(p[i, j]) * mean(p[k, l])) / n
            assert covariance == σ**2 * (V[i, k] * V[j, l] + V[i, l] * V[j, k])


@formula(
    "prop-rate",
    r"\begin{aligned} & n \big( F_n(y) - F(y) \big) \\"
    r" &\quad \to \sum_{a=1}^H \big( \partial_{t_a}^2 + \partial_{t'_a}^2 \big)\,"
    r" \mathbb E\, \Phi\big( y/\sqrt v \big) \Big|_{t = t' = 1} \end{aligned}",
)
def test_rate(rng):
    row, H, y = Row(rng), 2, drawn(rng, 0.2, 2)
    points = grid(0.4, 9)
    us = [(row.u(g), w) for g, w in points]

    def difference(n):
        """Of distribution functions, from those of characteristic ones."""
        every = weights_at_width(n, mpf(0.4), 9)
        law = [(u, w) for (u, _), (_, w) in zip(us, every, strict=True)]
        total, h = 0, mpf("0.35")
        for θ in mp.arange(h / 2, 15, h):
            power = θ**2 / H
            finite = sum(w * (1 + power * u / n) ** (-mpf(n) / 2) for u, w in law)
            limit = sum(w * mp.exp(-power * u / 2) for u, w in us)
            total += h * mp.sin(θ * y) / θ * (finite**H - limit**H)
        return n * total / mp.pi

    def distribution(t, t_):
        """With these values in the first head, and 1 in the other."""
        vs = [((t_ * row.u(g, t) + u) / 2, p * q) for g, p in points for u, q in us]
        return sum(w * mp.ncdf(y / mp.sqrt(v)) for v, w in vs)

    ε = mpf(10) ** -7
    around = [distribution(1 + ε, 1), distribution(1 - ε, 1)]
    around += [distribution(1, 1 + ε), distribution(1, 1 - ε)]
    rate = H * (sum(around) - 4 * distribution(1, 1)) / ε**2
    assert abs(at_infinity(difference, WIDTHS[:7]) - rate) < 1e-10
