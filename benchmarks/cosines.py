"""Rows of lib.sphere.cosines: layers of the cosines, beside layers of the tokens."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np

from benchmarks.harness import Growth, Row
from benchmarks.timing import Call
from lib import sphere
from lib.core.checks import Array
from lib.sphere.cosines import post_norm_layers

BETA, STEP, DEPTH, SYSTEMS, N = 3.0, 0.1, 50, 16, 32


@cache
def tokens(d: int, number: str = "d") -> Array:
    """Uniform tokens, in float64 or long double."""
    x = np.random.default_rng(0).standard_normal((SYSTEMS, N, d)).astype(number)
    return np.asarray(x / np.sqrt((x * x).sum(axis=-1, keepdims=True)))


def of_tokens(d: int) -> Array:
    """Cosines after some layers of the tokens themselves, all in numpy."""
    x = tokens(d)
    for _ in range(DEPTH):
        weights = np.exp(BETA * (x @ x.mT - 1))
        x = x + STEP * (weights @ x / weights.sum(axis=-1, keepdims=True))
        x = x / np.sqrt((x * x).sum(axis=-1, keepdims=True))
    return np.asarray(x @ x.mT)


def of_cosines(d: int) -> Array:
    """The same from their cosines at the start, which are part of the time."""
    x = tokens(d)
    flow = post_norm_layers(x @ x.mT, BETA, STEP, DEPTH, save_every=DEPTH)
    return np.asarray(flow.states[-1])


def exact(d: int) -> Any:
    """The closed recursion of the cosines in long double."""
    x = tokens(d, "g")
    g = np.einsum("sid,sjd->sij", x, x)
    for _ in range(DEPTH):
        weights = np.exp(BETA * (g - 1))
        step = np.eye(N) + STEP * weights / weights.sum(axis=-1, keepdims=True)
        g = np.einsum("sij,sjk->sik", step, g)
        g = np.einsum("sik,slk->sil", g, step)
        scale = np.sqrt(np.einsum("sii->si", g))
        g = g / scale[:, :, None] / scale[:, None, :]
    return g


def row(d: int) -> Row:
    """Both ways through the layers for tokens of some dimension."""
    return Row(
        name=f"{DEPTH} layers of {SYSTEMS} systems of {N} tokens, d = {d}",
        ours=partial(of_cosines, d),
        peer=partial(of_tokens, d),
        peer_name="the layers of the tokens in numpy, unchecked",
        reference=partial(exact, d),
        accuracy=1e-13,
        limit={
            "exp": DEPTH * SYSTEMS * N**2,
            "flop": DEPTH * SYSTEMS * 4 * N**3 + SYSTEMS * 2 * N**2 * d,
        },
        reason="With 8 coordinates there is nothing to save, and ours is given cosines:"
        " the root that takes their place is 16 % of its time, checks are 5 %."
        if d == 8
        else "",
    )


def call(n: int) -> Call:
    """Layers of the cosines of n tokens, of which there are as many dimensions."""
    x = sphere.uniform_tokens(n, n, rng=np.random.default_rng(0))
    g = x @ x.T
    return lambda: post_norm_layers(g, BETA, STEP, DEPTH, save_every=DEPTH).states


ROWS: list[Row | Growth] = [
    row(8),
    row(128),
    row(1024),
    Growth(
        name="layers of cosines, in the number of tokens",
        sizes=(48, 64, 128, 256, 384, 512),
        run=call,
        expected=3,
    ),
]
