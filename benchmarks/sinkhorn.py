"""Rows of lib.sinkhorn: same-marginal transport to one L1 marginal error, and the rest.

Peers get the regularization that means the same: half the squared distance with ε, or
all of it with 2ε. Their times include the matrix of costs, as ours include the kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import logsumexp

from benchmarks.harness import Growth, Row, by_jax
from benchmarks.timing import Call
from lib.core.checks import Array
from lib.heat import GaussianMixture
from lib.sinkhorn import (
    SelfTransport,
    alternating_transport,
    gibbs_kernel,
    self_transport,
    sinkhorn_attention,
)

TOL = 1e-6
MIXTURE = GaussianMixture([-2, 2], [1, 1], [0.5, 0.5])
LINE = MIXTURE.sample(1000, rng=np.random.default_rng(0))[:, None]
PLANE = np.random.default_rng(1).standard_normal((1000, 2))
SPACE = np.random.default_rng(2).standard_normal((1000, 98))
SCORES = np.random.default_rng(3).standard_normal((8, 128, 128))


def scalings(transport: SelfTransport) -> Array:
    """Factors U, V of a plan U_i K_ij V_j, shape (2, n): what every side returns."""
    return transport.weights * np.stack([transport.left, transport.right])


def marginal_error(result: Array, kernel: Array) -> float:
    """L1 marginal error of the plan with these factors, the larger of its two sides."""
    one, two = result
    rows, columns = one * (kernel @ two), two * (kernel.T @ one)
    return max(float(np.abs(side - 1 / len(one)).sum()) for side in (rows, columns))


def plain_kernel(x: Array, eps: float) -> Array:
    """The kernel by expanding the square, the fastest in a few lines of numpy."""
    squares = (x * x).sum(axis=1)
    return np.asarray(np.exp((x @ x.T - squares / 2 - squares[:, None] / 2) / eps))


def alternation(name: str, eps: float) -> Call:
    """The textbook loop with a dense kernel, and our stopping rule."""

    def call() -> Array:
        x = globals()[name]
        kernel, w = plain_kernel(x, eps), 1 / len(x)
        two = np.full(len(x), w)
        received = kernel @ two
        while True:
            one = w / received
            two = w / (kernel @ one)
            received = kernel @ two
            if np.abs(one * received - w).sum() <= TOL:
                return np.stack([one, two])

    return call


@cache
def alternations(name: str, eps: float) -> int:
    """Iterations that alternation needs to TOL: what POT is given, no more."""
    return alternating_transport(globals()[name], eps, tol=TOL).iterations + 1


def pot(name: str, eps: float) -> Call:
    """POT's alternation, stopped as soon as it has the error."""

    def call() -> Array:
        import ot

        x = globals()[name]
        w = np.full(len(x), 1 / len(x))
        cost = ot.dist(x, x)  # |x − y|², hence 2ε
        _, log = ot.sinkhorn(
            w, w, cost, 2 * eps, stopThr=0, log=True, warn=False,
            numItermax=alternations(name, eps),
        )  # fmt: skip
        return np.stack([log["u"], log["v"]])

    return call


def ott(name: str, eps: float, symmetric: bool) -> Call:
    """OTT on potentials, by alternation or in its symmetric mode."""

    def solve(x: Any) -> Any:
        import jax.numpy as jnp
        from ott.geometry.pointcloud import PointCloud
        from ott.problems.linear.linear_problem import LinearProblem
        from ott.solvers.linear.acceleration import Momentum
        from ott.solvers.linear.sinkhorn import Sinkhorn

        # Its cost is |x − y|², hence 2ε.
        problem = LinearProblem(PointCloud(x, epsilon=2 * eps))
        mode: dict[str, Any] = {}
        if symmetric:
            mode = {"parallel_dual_updates": True, "momentum": Momentum(value=0.5)}
        solver = Sinkhorn(threshold=TOL, max_iterations=20_000, **mode)
        solution = solver(problem)
        return jnp.exp(jnp.stack([solution.f, solution.g]) / (2 * eps))

    return by_jax(solve, globals()[name])


@cache
def products(name: str, eps: float) -> int:
    """Products with the kernel that our scaling makes to TOL."""
    return self_transport(globals()[name], eps, tol=TOL).iterations + 1


def transport_row(
    name: str, what: str, eps: float, peer: Call, peer_name: str, **more: Any
) -> Row:
    """Our symmetric scaling beside another way to the same plan and error."""
    x = globals()[name]
    n, d = x.shape
    return Row(
        name=f"transport of 1000 tokens {what}, ε = {eps:g}, to 1e-6",
        ours=lambda: scalings(self_transport(x, eps, tol=TOL)),
        peer=peer,
        peer_name=peer_name,
        reference=lambda: gibbs_kernel(x, eps),
        error=marginal_error,
        accuracy=TOL,
        # By symmetry half of the kernel, which each update reads once.
        limit={
            "exp": n * n / 2,
            "flop": n * n * d,
            "bytes": products(name, eps) * 4 * n * n,
        },
        beyond="Of the work that is counted, the exponentials and products come before"
        " the iterations, and their times add up; what is left is three passes"
        " over the exponents."
        if d > 2
        else "",
        **more,
    )


def alternation_row(name: str, what: str, eps: float, **more: Any) -> Row:
    """Beside the textbook loop."""
    peer = alternation(name, eps)
    return transport_row(name, what, eps, peer, "plain alternation", **more)


def plain_attention(scores: Array, iterations: int) -> Array:
    """Normalizations of logarithms by logsumexp of scipy."""
    for number in range(iterations):
        scores = scores - logsumexp(scores, axis=-1 - number % 2, keepdims=True)
    return np.asarray(np.exp(scores))


def exact_attention(iterations: int) -> Any:
    """Normalizations of e^Y itself in long double."""
    weights = np.exp(SCORES.astype(np.longdouble))
    for number in range(iterations):
        weights /= weights.sum(axis=-1 - number % 2, keepdims=True)
    return weights


def growing(eps: float, d: int) -> Callable[[int], Call]:
    """Transport of n tokens, whose count of iterations does not depend on n."""

    def run(n: int) -> Call:
        x = np.random.default_rng(n).standard_normal((n, d))
        return lambda: scalings(self_transport(x, eps, tol=TOL))

    return run


SLOW = {"pairs": 5}

ROWS: list[Row | Growth] = [
    alternation_row("LINE", "on a line", 1.0),
    alternation_row("LINE", "on a line", 0.1),
    alternation_row("LINE", "on a line", 0.01, **SLOW),
    alternation_row("PLANE", "in a plane", 0.1),
    alternation_row(
        "SPACE",
        "in 98 dimensions",
        30.0,
        reason="Tokens so far apart for their ε are nearly independent: alternation is"
        " there after 3 iterations of two products, and our error, which halves each"
        " time, after 17 of one.",
    ),
    *(
        transport_row(
            name, what, eps, pot(name, eps), "ot.sinkhorn", needs="pot", **more
        )
        for name, what, eps, more in (
            ("LINE", "on a line", 1.0, {}),
            ("LINE", "on a line", 0.1, SLOW),
            ("LINE", "on a line", 0.01, SLOW),
            ("SPACE", "in 98 dimensions", 30.0, {}),
        )
    ),
    *(
        transport_row(
            "LINE",
            "on a line",
            eps,
            ott("LINE", eps, symmetric),
            f"OTT, {mode}",
            needs="ott-jax",
            **SLOW,
        )
        for symmetric, mode in ((False, "default"), (True, "symmetric mode"))
        for eps in (1.0, 0.1, 0.01)
    ),
    Row(
        name="Gibbs kernel of 1000 tokens in a plane",
        ours=lambda: gibbs_kernel(PLANE, 0.1),
        peer=lambda: np.exp(-cdist(PLANE, PLANE, "sqeuclidean") / 0.2),
        peer_name="scipy.spatial.distance.cdist and numpy.exp",
        reference=lambda: np.exp(
            -(((PLANE[:, None] - PLANE).astype(np.longdouble)) ** 2).sum(axis=-1) / 0.2
        ),
        accuracy=1e-13,
        limit={"exp": 1e6 / 2, "bytes": 8e6},
        beyond="All exponentials are computed, and not half of them by symmetry;"
        " distances take as long as they.",
    ),
    Row(
        name="5 normalizations of 8 heads of 128 tokens",
        ours=lambda: sinkhorn_attention(SCORES, 5),
        peer=partial(plain_attention, SCORES, 5),
        peer_name="scipy.special.logsumexp",
        reference=lambda: exact_attention(5),
        limit={"exp": SCORES.size, "bytes": 5 * 2 * SCORES.nbytes},
    ),
    Growth(
        name="transport to 1e-6 in a plane, in the number of tokens",
        sizes=(800, 1000, 2000, 3000, 4000, 6000, 8000),
        run=growing(0.1, 2),
        expected=2,
    ),
]
