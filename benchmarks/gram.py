"""Rows of lib.gram: the chain of Gram matrices beside real weight matrices."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import numpy as np

from benchmarks.harness import Growth, Row
from benchmarks.timing import Call
from lib.core.checks import Array
from lib.gram import ShapedLayer, dense_simulate, simulate, simulate_tokens

M, DEPTH, PATHS = 4, 4, 256


def layer(n: int) -> ShapedLayer:
    """A layer with as many key columns as coordinates."""
    return ShapedLayer(n, n, 0.8, 0.6, 1.0)


def tokens(n: int) -> Array:
    """Orthogonal tokens, V = I."""
    return np.sqrt(n) * np.eye(M, n)


def log_volumes(states: Array) -> Array:
    """log det V at the end of each path."""
    return np.asarray(np.linalg.slogdet(states[-1])[1])


@cache
def reference(n: int) -> Array:
    """Mean of log det V, standard deviation: by the chain that keeps the tokens."""
    rng = np.random.default_rng(n)
    states = simulate_tokens(tokens(n), layer(n), DEPTH, paths=4000, rng=rng).states
    logarithms = log_volumes(states)
    return np.array([logarithms.mean(), logarithms.std()])


def standard_errors(volumes: Array, exact: Array) -> float:
    """Distance of a sample's mean from the reference in standard errors."""
    mean, deviation = exact
    noise = deviation * np.sqrt(1 / len(volumes) + 1 / 4000)
    return float(abs(volumes.mean() - mean) / noise)


def gram_call(n: int, paths: int) -> Call:
    """Our call: paths together in a batch."""
    rng = np.random.default_rng(0)
    run = partial(simulate, np.eye(M), layer(n), DEPTH, paths=paths, rng=rng)
    return lambda: log_volumes(run().states)


def dense_call(n: int) -> Call:
    """One path with all its weights: 256 of them together would not fit in caches."""
    rng = np.random.default_rng(1)
    run = partial(dense_simulate, tokens(n), layer(n), DEPTH, paths=1, rng=rng)
    return lambda: log_volumes(run().states)


def row(n: int, paths: int) -> Row:
    """One width, a batch of paths or a single one."""
    batch = f"in a batch of {paths}" if paths > 1 else "alone"
    return Row(
        name=f"a path of {DEPTH} layers, 4 tokens, width {n}, {batch}",
        ours=gram_call(n, paths),
        peer=dense_call(n),
        peer_name="real weight matrices",
        reference=partial(reference, n),
        error=standard_errors,
        accuracy=5.0,
        sampled=True,
        pieces=(paths, 1),
        limit={"normals": DEPTH * (3 * M * M + M)},
        reason="A single path of 4 × 4 matrices costs its calls of numpy at any width,"
        " and at width 64 real weights cost no more than that."
        if (n, paths) == (64, 1)
        else "",
        beyond="Each product and each root of a 4 × 4 matrix is a call of the linear"
        " algebra, which costs more than its operations."
        if paths > 1
        else "A single path is hundreds of calls, each on 16 numbers or fewer.",
    )


def growing(n: int) -> Callable[[], Array]:
    """A batch at some width."""
    return gram_call(n, PATHS)


def growing_tokens(n: int) -> Callable[[], Array]:
    """A few paths of tokens of some width."""
    rng = np.random.default_rng(2)
    run = partial(simulate_tokens, tokens(n), layer(n), DEPTH, paths=16, rng=rng)
    return lambda: run().states


ROWS: list[Row | Growth] = [
    *(row(n, paths) for n in (64, 256, 1024) for paths in (PATHS, 1)),
    Growth(
        name="a batch of 256 paths of 4 layers, in the width",
        sizes=(64, 256, 1024, 16384, 262144, 1048576),
        run=growing,
        expected=0,
    ),
    Growth(
        name="16 paths of 4 layers with their tokens, in the width",
        sizes=(1024, 2048, 4096, 8192, 16384),
        run=growing_tokens,
        expected=1,
    ),
]
