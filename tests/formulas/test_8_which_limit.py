"""The formulas of the chapter on networks that exist."""

import numpy as np
import pytest
from digits import drawn
from means import chi_square, frame, grid, mean, moments_of_tanh, normal, variables
from mpmath import mp, mpf
from printed import formula
from sympy import QQ, Symbol, exp, factorial, lambdify, series


@formula(
    "prop-narrow-heads",
    r"""\begin{aligned}
    \kappa &= \frac3H \Big[ \Big( 1 + \frac2{n_k} \Big)
    \frac{\mathbb E\, u^2}{(\mathbb E\, u)^2} - 1 \Big] , \\
    u &= \sum_j s_j^2 ,
    \end{aligned}""",
)
@pytest.mark.parametrize(("n", "H", "n_k"), [(2, 2, 4), (3, 1, 5)])
def test_narrow_heads(rng, n, H, n_k):
    """Fourth moment of the output for two tokens, with real weights."""
    σ = drawn(rng, 0.3, 0.7)
    X = frame(rng, 2, n)  # times sqrt(n): the tokens
    W, O, τ = variables((H, n, n_k), (H, n_k), (H,))  # noqa: E741
    y = 0
    for a in range(H):
        s = np.array([1 + τ[a], 1 - τ[a]]) / QQ(2)  # softmax, with the tanh of d/2
        y += s @ X @ W[a] @ O[a]
    # d = σ <query, k_1 - k_2>/sqrt(n_k)
    law = dict.fromkeys(τ, moments_of_tanh(n_k, 2 * σ**2))
    square = y**2
    κ = mean(square**2, law) / mean(square, law) ** 2 - 3

    def u(scale):
        """Of the part of g that lies along the difference."""
        s = np.array([mp.exp(scale / mp.sqrt(2)), mp.exp(-scale / mp.sqrt(2))])
        return s @ s / sum(s) ** 2

    us = [
        (u(σ * mp.sqrt(t) * g), w * q)
        for t, q in chi_square(n_k)
        for g, w in grid(mpf("0.36") / mp.sqrt(max(1, t)), 9)
    ]
    one, two = (sum(w * u**k for u, w in us) for k in (1, 2))
    # The double integral has some 18 digits.
    assert abs(κ - 3 * ((1 + mpf(2) / n_k) * two / one**2 - 1) / H) < 1e-14


@formula(
    "prop-many-scores",
    r"\Big( \sum_{r > k} \frac{\sigma^{2r}}{r!} \Big/ \big( e^{\sigma^2} - 1 \big)"
    r" \Big)^{1/2} .",
)
def test_share_that_orders_leave(rng):
    """The limit of m s_i is e^x/E e^x, its orders those of e^(tx)/E e^(tx)."""
    σ, t, x = drawn(rng, 0.3, 2), Symbol("t"), Symbol("x")
    # Sums over many tokens consist of means of the powers of the scores.
    below = sum(Symbol("σ") ** r * normal(r) * t**r / factorial(r) for r in range(7))
    orders = series(exp(t * x) / below, t, 0, 7).removeO()
    points = [(σ * g, w) for g, w in grid(0.3, 17)]
    whole = sum(w * mp.exp(y) for y, w in points)
    far = sum(w * (mp.exp(y) / whole - 1) ** 2 for y, w in points)
    for k in range(7):
        first = lambdify(
            [x, Symbol("σ")], sum(orders.coeff(t, r) for r in range(k + 1)), "mpmath"
        )
        left = sum(w * (mp.exp(y) / whole - first(y, σ)) ** 2 for y, w in points)
        rest = mp.nsum(lambda r: σ ** (2 * r) / mp.factorial(r), [k + 1, mp.inf])
        assert abs(mp.sqrt(left / far) - mp.sqrt(rest / (mp.exp(σ**2) - 1))) < 1e-25
