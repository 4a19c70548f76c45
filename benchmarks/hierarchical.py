"""Rows of lib.hierarchical: samplers beside real weights, a density beside KDE."""

from __future__ import annotations

from functools import cache, partial

import numpy as np

from benchmarks.harness import Growth, Row
from benchmarks.timing import Call
from lib.core.checks import Array
from lib.hierarchical import (
    AttentionLimit,
    FiniteAttention,
    ScaleMixture,
    dense,
    dense_experiment,
    experiment_variance,
    finite_width,
)

RNG = np.random.default_rng(0)
TOKENS, HEADS = 4, 2
GRAM = np.eye(TOKENS)
POINTS = np.linspace(-4, 4, 500)  # as many as the source's estimate is taken at
DRAWS, FIGURE = 2000, 500_000


def squares(outputs: Array) -> Array:
    """Squares of the first row: one number for each network, a mean over coordinates.

    A network's coordinates are dependent; their mean varies no more than one of them.
    """
    return np.asarray((outputs[:, 0].reshape(len(outputs), -1) ** 2).mean(axis=1))


def standard_errors(draws: Array, exact: tuple[float, float]) -> float:
    """Distance of the mean of draws of v or y² from E v, for the deviation of y²."""
    mean, deviation = exact
    return float(abs(draws.mean() - mean) / deviation * np.sqrt(len(draws)))


def deviations(law: FiniteAttention | ScaleMixture) -> tuple[float, float]:
    """E y² and the standard deviation of y²."""
    return law.variance(), float(np.sqrt(law.moment(4) - law.moment(2) ** 2))


@cache
def experiment_law(width: int) -> tuple[float, float]:
    """The same for the source's experiment, from ten million draws."""
    rng = np.random.default_rng(1)
    v = experiment_variance(TOKENS, width, HEADS, 10**7, rng=rng)
    return deviations(ScaleMixture(v))


def sup_error(values: Array, exact: Array) -> float:
    """Largest difference of two densities."""
    return float(np.abs(values - exact).max())


def sampler_row(width: int, networks: int) -> Row:
    """Outputs with and without real weights; the peer has fewer at a time."""
    x = np.sqrt(width) * np.eye(TOKENS, width)
    return Row(
        name=f"a network of width {width}, {TOKENS} tokens, {HEADS} heads",
        ours=lambda: squares(finite_width(GRAM, width, HEADS, DRAWS, rng=RNG)),
        peer=lambda: squares(dense(x, HEADS, networks, rng=RNG)),
        peer_name="real weights",
        reference=lambda: deviations(FiniteAttention(GRAM, width, HEADS)),
        error=standard_errors,
        accuracy=5.0,
        sampled=True,
        pieces=(DRAWS, networks),
        limit={"normals": HEADS * (2 * TOKENS**2 + TOKENS)},
    )


def figure_row(width: int, networks: int) -> Row:
    """The source's figure: one row, inputs random, half a million draws."""
    return Row(
        name=f"a network of the source's experiment, width {width}",
        ours=lambda: experiment_variance(TOKENS, width, HEADS, FIGURE, rng=RNG),
        peer=lambda: squares(dense_experiment(TOKENS, width, HEADS, networks, rng=RNG)),
        peer_name="real weights",
        reference=lambda: experiment_law(width),
        error=standard_errors,
        accuracy=5.0,
        sampled=True,
        pieces=(FIGURE, networks),
        limit={"normals": TOKENS**2 + HEADS * TOKENS},
    )


def kde() -> Array:
    """The source's estimate of a density: a kernel estimate of 50,000 draws."""
    from scipy.stats import gaussian_kde

    draws = AttentionLimit(GRAM, HEADS).sample(50_000, rng=RNG)[:, 0]
    return np.asarray(gaussian_kde(draws)(POINTS))


def finer() -> Array:
    """The density to twelve digits."""
    law = AttentionLimit(GRAM, HEADS, tol=1e-12, nodes=2**21)
    return law.density(POINTS)


def growing(width: int) -> Call:
    """A sample of some width, large enough to be timed."""
    return partial(finite_width, GRAM, width, HEADS, DRAWS, rng=RNG)


ROWS: list[Row | Growth] = [
    sampler_row(64, 100),
    sampler_row(256, 10),
    sampler_row(1024, 1),
    figure_row(256, 10),
    Row(
        name="density of the limit law of 4 tokens and 2 heads at 500 points",
        ours=lambda: AttentionLimit(GRAM, HEADS).density(POINTS),
        peer=kde,
        peer_name="scipy.stats.gaussian_kde of 50,000 draws",
        reference=finer,
        error=sup_error,
        accuracy=0.05,
    ),
    Growth(
        name="2000 networks, in the width",
        sizes=(64, 256, 1024, 4096, 16384, 65536),
        run=growing,
        expected=0,
    ),
]
