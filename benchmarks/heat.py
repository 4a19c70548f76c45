"""Rows of lib.heat: exact laws, distances, and flows of a density."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from scipy.optimize import brentq

from benchmarks.harness import Growth, Row
from benchmarks.timing import Call
from lib.core.checks import Array
from lib.heat import (
    GaussianMixture,
    bridge_flow,
    gaussian_slope,
    gaussian_w2,
    quadrature,
    w2_of_pairs,
)
from lib.sinkhorn import gibbs_kernel, self_transport

RNG = np.random.default_rng(0)
MIXTURE = GaussianMixture([-2, 2], [1, 1], [0.5, 0.5])
QUANTILES = np.sort(RNG.uniform(-6, 3, 1000))
LEVELS = MIXTURE.cdf(QUANTILES)
POINTS = RNG.uniform(-6, 6, 100_000)
BASIS = np.linalg.qr(RNG.standard_normal((64, 64)))[0]
SPECTRA = RNG.uniform(0.5, 2, (2, 64))
COVS = [(BASIS * spectrum) @ BASIS.T for spectrum in SPECTRA]
EPS = 0.1
NODES, WEIGHTS = quadrature(GaussianMixture([0], [1], [1]), 0.35 * np.sqrt(EPS))
MOVE = (gaussian_slope(1.0, EPS) - 1) * NODES


def root_by_root() -> Array:
    """The quantiles by Brent's method, one after the other."""

    def root(p: float) -> float:
        return brentq(lambda x: float(MIXTURE.cdf(x)) - p, -12, 12, xtol=1e-15)

    return np.array([root(p) for p in LEVELS])


def plain_score() -> Array:
    """The score as a quotient, which is 0/0 beyond 38 standard deviations."""
    one, two = (np.exp(-((POINTS - m) ** 2) / 2) for m in (-2, 2))
    return np.asarray(((-2 - POINTS) * one + (2 - POINTS) * two) / (one + two))


def exact_score() -> Any:
    """2 tanh(2x) − x, the closed form of this mixture, in long double."""
    x = POINTS.astype(np.longdouble)
    return 2 * np.tanh(2 * x) - x


def bures() -> float:
    """POT's distance of two Gaussians, with two matrix square roots."""
    import ot

    zero = np.zeros(64)
    return float(ot.gaussian.bures_wasserstein_distance(zero, zero, *COVS))


def move_error(result: Array, exact: Array) -> float:
    """Error of a displacement in the mean square of the density, relative."""
    return float(np.sqrt(WEIGHTS @ (result - exact) ** 2 / (WEIGHTS @ exact**2))[0])


@cache
def alternations() -> int:
    """Iterations of alternation to the accuracy of the row: what POT is given."""
    kernel, two = gibbs_kernel(NODES, EPS), np.ones(len(NODES))
    for count in range(1, 100_000):
        one = 1 / (kernel @ (WEIGHTS * two))
        two = 1 / (kernel @ (WEIGHTS * one))
        mass = WEIGHTS * two
        average = kernel @ (mass[:, None] * NODES) / (kernel @ mass)[:, None]
        if move_error(average - NODES, MOVE) <= 1e-6:
            return count + 1
    raise RuntimeError("alternation did not arrive")


def pot_move() -> Array:
    """The displacement of a bridge step from the plan of POT."""
    import ot

    cost = ot.dist(NODES, NODES)  # |x − y|², hence 2ε
    plan = ot.sinkhorn(
        WEIGHTS, WEIGHTS, cost, 2 * EPS, stopThr=0, warn=False,
        numItermax=alternations(),
    )  # fmt: skip
    return np.asarray(plan @ NODES / plan.sum(axis=1, keepdims=True) - NODES)


def population_run() -> float:
    """W2 at T = 5 between the bridge scheme with ε = 0.01 and the exact heat flow."""
    x, w = quadrature(MIXTURE, 0.035)
    last = bridge_flow(x, 0.01, 500, weights=w).states[-1]
    return w2_of_pairs(last, MIXTURE.transport(x, MIXTURE.heat(5)), weights=w).value


def euler_run() -> float:
    """The same by explicit Euler with the exact score, on nodes enough for that."""
    x, w = quadrature(MIXTURE, 0.2)
    z, steps = x.copy(), 540_000
    for k in range(steps):
        s = 1 + 5 * k / steps  # variance of a component; the score is closed
        z -= 2.5 / steps * (2 * np.tanh(2 * z / s) - z) / s
    return w2_of_pairs(z, MIXTURE.transport(x, MIXTURE.heat(5)), weights=w).value


def flowing(steps: int) -> Call:
    """The population run to T = 1 with ε = 1/steps."""
    x, w = quadrature(MIXTURE, 0.35 / np.sqrt(steps))
    return lambda: bridge_flow(x, 1 / steps, steps, weights=w).states


ROWS: list[Row | Growth] = [
    Row(
        name="1000 quantiles of a mixture of two",
        ours=lambda: MIXTURE.ppf(LEVELS),
        peer=root_by_root,
        peer_name="scipy.optimize.brentq",
        reference=QUANTILES,
        accuracy=1e-12,
    ),
    Row(
        name="score of a mixture of two at 100000 points",
        ours=lambda: MIXTURE.score(POINTS),
        peer=plain_score,
        peer_name="the quotient in numpy, unguarded",
        reference=exact_score,
        limit={"exp": 2 * POINTS.size, "bytes": 2 * POINTS.nbytes},
        reason="The peer is made for two variances of 1; it has no guard against 0/0 in"
        " the tails, which is 15 % of our time, and no check, which is 6 %.",
        beyond="Beside the two exponentials a point takes many passes of numpy: its"
        " distances, their squares, the guard, the quotient, the checks.",
    ),
    Row(
        name="distance of Gaussians in 64 dimensions",
        ours=lambda: np.array(gaussian_w2(*COVS)),
        peer=lambda: np.array(bures()),
        peer_name="ot.gaussian.bures_wasserstein_distance",
        reference=lambda: np.sqrt(((SPECTRA[0] ** 0.5 - SPECTRA[1] ** 0.5) ** 2).sum()),
        needs="pot",
        accuracy=1e-12,
        reason="POT takes a trace in which close covariances cancel: where they differ"
        " by a millionth it is off by 9e-4, and ours by 3e-10. Singular vectors, which"
        " avoid this, are 34 % of our time.",
    ),
    Row(
        name=f"bridge step of a Gaussian density on {len(NODES)} nodes, ε = 0.1",
        ours=lambda: self_transport(NODES, EPS, weights=WEIGHTS).displacement(),
        peer=pot_move,
        peer_name="ot.sinkhorn",
        reference=MOVE,
        error=move_error,
        needs="pot",
        accuracy=1e-6,
    ),
    Row(
        name="heat flow of a mixture to T = 5 with W2 below 2e-6",
        ours=population_run,
        peer=euler_run,
        peer_name="540000 steps of explicit Euler with the exact score",
        reference=0.0,
        error=lambda distance, _: float(distance),
        accuracy=2e-6,
        pairs=5,
    ),
    Growth(
        name="population run to T = 1, in 1/ε",
        sizes=(20, 25, 50, 75, 100, 150, 200),
        run=flowing,
        expected=2,
    ),
]
