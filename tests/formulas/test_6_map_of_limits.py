"""The formulas of the chapter on the order of limits."""

import numpy as np
import sympy
from digits import drawn
from means import at_infinity
from mpmath import mp, mpf
from printed import formula


@formula(
    "obs-tokens-step",
    r"""\begin{aligned}
    \partial_t \mu &= \tfrac12\, \partial_{xx} \big[ \mu\, g(c \mu^2) \big] , \\
    g(v) &= \frac1v\, \frac{\sum_j j^2 e^{-j^2/2v}}{\sum_j e^{-j^2/2v}} ,
    \end{aligned}""",
)
def test_tokens_and_step(rng):
    """How fast one Sinkhorn layer moves a token at the quantiles of a periodic density.

    A formal statement, so here only its first step is compared.
    """
    b, c = drawn(rng, 0.1, 0.3), drawn(rng, 0.25, 0.5)

    def density(x):
        return 1 + b * mp.cos(2 * mp.pi * x)

    def quantile(p):
        return mp.findroot(lambda x: x + b * mp.sin(2 * mp.pi * x) / (2 * mp.pi) - p, p)

    def speed(m):
        """Of the token with an eighth of the others before it, in one step."""
        ε, reach = c / m**2, np.arange(-14, 15)
        tokens = np.array([quantile(mpf(i) / m) for i in range(m)])
        near = np.add.outer(np.arange(m), reach)
        lifted = tokens[near % m] + near // m  # the line above the circle
        K = np.vectorize(mp.exp)(-((lifted - tokens[:, None]) ** 2) / (2 * ε))
        u = np.array([mpf(1)] * m)
        for _ in range(75):  # each halves the error, or more
            u = np.vectorize(mp.sqrt)(u / (K * u[near % m]).sum(axis=1))
        i = m // 8
        P = u[i] * K[i] * u[near[i] % m]
        return (tokens[i] - P @ lifted[i]) / ε

    def g(v):
        every = [(k * k, mp.exp(-k * k / (2 * v))) for k in range(-40, 41)]
        return sum(k * e for k, e in every) / sum(e for _, e in every) / v

    # An equation ∂μ = -∂(μ v) says that tokens move with the speed v.
    x = quantile(mpf(1) / 8)
    slope = mp.diff(lambda x: density(x) * g(c * density(x) ** 2), x)
    # The speeds are a power series in 1/m², of which few terms are seen.
    limit = at_infinity(
        lambda q: speed(int(mp.sqrt(q))), [m**2 for m in range(16, 57, 8)]
    )
    assert abs(limit + slope / 2 / density(x)) < 1e-7


def test_crowds_of_middling_density_spread_faster_than_heat():
    """The diffusivity of the same equation over heat's, (μ g(cμ²))', is g + 2v g'."""

    def g(v):
        w = [mp.exp(-j * j / (2 * v)) for j in range(-30, 31)]
        return (
            sum(j * j * x for j, x in zip(range(-30, 31), w, strict=True)) / v / sum(w)
        )

    def over_heat(v):
        return g(v) + 2 * v * mp.diff(g, v)

    c, μ = mpf("0.3"), mpf("0.8")
    direct = mp.diff(lambda x: x * g(c * x * x), μ)
    assert abs(direct - over_heat(c * μ * μ)) < 1e-12
    sizes = [over_heat(mpf(k) / 100) for k in range(5, 100)]
    assert abs(max(sizes) - 2.4) < 0.05
    assert abs(5 + np.argmax(sizes) - 17) <= 1  # near v = 0.17
    assert sizes[0] < 0.05 and abs(sizes[-1] - 1) < 1e-3


@formula(
    "prop-step-horizon",
    r"0 \le s_0 + k\varepsilon - s_k \le \frac{\varepsilon^2}{2 s_0} .",
)
def test_step_and_horizon(rng):
    # In the inverse covariance of the plan, the kernel gives the entry beside the
    # diagonal. The shortfall is largest for the largest step, after many of them.
    s, κ, ε = sympy.symbols("s kappa varepsilon", positive=True)
    inverse = sympy.Matrix([[s, κ], [κ, s]]).inv()[0, 1]
    (covariance,) = sympy.solve(inverse + 1 / ε, κ)
    variance = sympy.lambdify(
        (s, ε), 4 * s - 4 * covariance + covariance**2 / s, "mpmath"
    )
    s_0 = drawn(rng, 0.1, 3)
    for step in [2 * s_0] + [2 * s_0 * drawn(rng, 0, 1) ** 3 for _ in range(8)]:
        now = s_0
        for k in range(500):
            # Up to the last digits: without a step both sides are 0.
            assert -1e-25 <= s_0 + k * step - now <= step**2 / (2 * s_0)
            now = variance(now, step)


@formula(
    "prop-beta-time",
    r"""\begin{aligned}
    & t_{\mathrm{end}} \cdot \Big( \frac{w_1}{w_2} + \frac{w_2}{w_1} \Big)\,
    \beta \sin^2\!\alpha(0) \\
    &\quad \cdot e^{-\beta(1 - \cos\alpha(0))} \to 1 .
    \end{aligned}""",
)
def test_time_of_two_clusters(rng):
    w = [drawn(rng, 0.1, 0.9)]
    w.append(1 - w[0])
    start = drawn(rng, 0.8, 2.6)
    end = start * drawn(rng, 0.2, 0.6)

    def speed(α, β):
        """How fast the angle falls: each moves with a tangential part of the mean."""
        towards = 0
        for here, there in (w, w[::-1]):
            e = here * mp.exp(β), there * mp.exp(β * mp.cos(α))
            towards += e[1] * mp.sin(α) / sum(e)
        return towards

    def product(β):
        ends = [0, 10, 30, 90, β * (start - end)]  # of β times the way, for the peak
        t = mp.quad(lambda x: 1 / speed(start - x / β, β), ends) / β
        factor = (w[0] / w[1] + w[1] / w[0]) * β * mp.sin(start) ** 2
        return t * factor * mp.exp(-β * (1 - mp.cos(start)))

    with mp.workdps(45):  # of which exponentials of a large β lose some
        limit = at_infinity(product, [10**8 * 2**k for k in range(3)])
    assert abs(limit - 1) < 1e-20
