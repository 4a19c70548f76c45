"""Rows of lib.hierarchical: samplers beside real weights, a density beside KDE."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks._timing import Call
from benchmarks.harness import Growth, Row
from lib._checks import Array
from lib.hierarchical import (
    AttentionLimit,
    FiniteAttention,
    ScaleMixture,
    dense,
    dense_experiment,
    experiment_variance,
    finite_width,
    orthonormal_constant,
)

RNG = np.random.default_rng(0)
TOKENS, HEADS = 4, 2
GRAM = np.eye(TOKENS)
POINTS = np.linspace(-4, 4, 500)  # as many as the source's estimate is taken at
DRAWS = 2000
Law = Callable[[Array], Array]


def distance(draws: Any, cdf: Law) -> float:
    """Kolmogorov distance of draws from a law; it has the noise of a finite sample."""
    y = np.sort(np.ravel(draws))
    values, steps = cdf(y), np.arange(y.size + 1) / y.size
    return float(np.maximum(steps[1:] - values, values - steps[:-1]).max())


def law_distance(law: Any, cdf: Law) -> float:
    """Kolmogorov distance of two laws, one of them given by its mixing variable."""
    if isinstance(law, ScaleMixture):
        return float(np.abs(law.cdf(POINTS) - cdf(POINTS)).max())
    return distance(law, cdf)


def sup_error(found: Any, exact: Any) -> float:
    """Largest difference of two densities."""
    return float(np.abs(found - exact).max())


def orthonormal(width: int) -> Array:
    """Tokens of some width with the identity as their Gram matrix."""
    return np.sqrt(width) * np.eye(TOKENS, width)


def sampler_row(width: int, networks: int) -> Row:
    """Outputs with and without real weights, so many at a time."""
    x = orthonormal(width)
    return Row(
        name=f"{DRAWS} networks of width {width}, {TOKENS} tokens, {HEADS} heads",
        ours=lambda: finite_width(GRAM, width, HEADS, DRAWS, rng=RNG),
        peer=lambda: dense(x, HEADS, networks, rng=RNG),
        peer_name=f"real weights, {networks} at a time",
        peer_repeats=DRAWS / networks,
        reference=lambda: FiniteAttention(GRAM, width, HEADS).cdf,
        error=distance,
        accuracy=0.25,  # what a few networks allow to say
        limit={"normals": DRAWS * HEADS * (2 * TOKENS**2 + TOKENS)},
    )


def figure_row(width: int, networks: int, draws: int = 500_000) -> Row:
    """One law of the source's figure: one row, inputs random, half a million draws."""

    def ours() -> ScaleMixture:
        return ScaleMixture(experiment_variance(TOKENS, width, HEADS, draws, rng=RNG))

    exact = experiment_variance(
        TOKENS, width, HEADS, 10**6, rng=np.random.default_rng(1)
    )
    return Row(
        name=f"the source's experiment, {draws} networks of width {width}",
        ours=ours,
        peer=lambda: dense_experiment(TOKENS, width, HEADS, networks, rng=RNG),
        peer_name=f"real weights, {networks} at a time",
        peer_repeats=draws / networks,
        reference=lambda: ScaleMixture(exact).cdf,
        error=law_distance,
        accuracy=0.25,
        limit={"normals": draws * (TOKENS**2 + HEADS * TOKENS)},
    )


def kde() -> Array:
    """The source's estimate of a density: a kernel estimate of 50,000 draws."""
    from scipy.stats import gaussian_kde

    draws = AttentionLimit(GRAM).sample(50_000, rng=RNG)[:, 0]
    return np.asarray(gaussian_kde(draws)(POINTS))


def sampled_constant(tokens: int, sigma: float) -> float:
    """c from 20,000 draws of the softmax of independent scores."""
    scores = np.exp(sigma * RNG.standard_normal((20_000, tokens)))
    u = ((scores / scores.sum(axis=-1, keepdims=True)) ** 2).sum(axis=-1)
    return float(3 * u.var() / u.mean() ** 2)


def summed_constant(tokens: int, sigma: float) -> float:
    """c by its Laplace integral, as plain double sums on fine grids."""
    x, log_rate = np.linspace(-12, 12, 2001), np.linspace(-60, 18 * sigma, 6001)
    weights = np.exp(-(x**2) / 2) / np.exp(-(x**2) / 2).sum()
    rate = np.exp(np.minimum(log_rate[:, None] + sigma * x, 100))  # λe^p
    none, second, fourth = (rate**k * np.exp(-rate) @ weights for k in (0, 2, 4))
    mean = np.sum(second * none ** (tokens - 1))
    same, pairs = fourth * none ** (tokens - 1), second**2 * none ** (tokens - 2)
    square = np.sum(same + (tokens - 1) * pairs) / 6
    step = log_rate[1] - log_rate[0]
    return float(3 * (square / (tokens * step * mean**2) - 1))


def growing(width: int) -> Call:
    """A sample of some width, large enough to be timed."""
    return partial(finite_width, GRAM, width, HEADS, DRAWS, rng=RNG)


ROWS: list[Row | Growth] = [
    sampler_row(64, 100),
    sampler_row(256, 10),
    sampler_row(1024, 1),
    figure_row(256, 10),
    Row(
        name="density of the limit law of 4 tokens at 500 points",
        ours=lambda: AttentionLimit(GRAM).density(POINTS),
        peer=kde,
        peer_name="scipy.stats.gaussian_kde of 50,000 draws",
        reference=lambda: AttentionLimit(GRAM, tolerance=1e-12, nodes=2**21).density(
            POINTS
        ),
        error=sup_error,
        accuracy=0.05,
    ),
    Row(
        name="kurtosis constant of 1024 orthonormal tokens",
        ours=lambda: orthonormal_constant(1024, 1.0),
        peer=lambda: sampled_constant(1024, 1.0),
        peer_name="20,000 draws of the scores",
        reference=lambda: summed_constant(1024, 1.0),
        error=lambda found, exact: abs(found / exact - 1),
        accuracy=0.6,
    ),
    Growth(
        name="2000 networks, in the width",
        sizes=(64, 256, 1024, 4096, 16384, 65536),
        run=growing,
        expected=0,
    ),
]
