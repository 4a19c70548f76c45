"""Rows of lib.circle: the field by its Fourier series, beside all pairs of tokens."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np

from benchmarks.harness import Growth, Row
from benchmarks.timing import Call
from lib.circle import attention_field, mean_field
from lib.circle.field import Kernel
from lib.core.checks import Array

BETA = 9.0
BLOCK = 2**18  # scores that stay in the cache: of the sizes tried the fastest
SAMPLE = 40
BEYOND = (
    "Products with matrices of 6 and 16 rows run at a quarter of the speed of large"
    " ones, and powers are passes of numpy, 43 % of the time of many tokens; of 1000"
    " tokens two thirds of the time are calls and coefficients."
)


@cache
def tokens(n: int) -> Array:
    """Uniform angles."""
    return np.random.default_rng(0).uniform(0, 2 * np.pi, n)


def all_pairs(theta: Array, targets: int, rows: int) -> Array:
    """The field of the first tokens as matrix products over all, in blocks of rows.

    The shift by β makes a search for the maximum unnecessary; sums and denominator are
    one product.
    """
    x = np.stack([np.cos(theta), np.sin(theta)])  # (2, n)
    values = np.concatenate([x, np.ones((1, theta.size))]).T  # (n, 3)
    field = np.empty(targets)
    for start in range(0, targets, rows):
        part = slice(start, min(start + rows, targets))
        weights = x[:, part].T @ x
        weights *= BETA
        weights -= BETA
        np.exp(weights, out=weights)
        total = weights @ values
        turned = x[0, part] * total[:, 1] - x[1, part] * total[:, 0]
        field[part] = turned / total[:, 2]
    return field


def exact(n: int) -> Any:
    """The definition for the first tokens, in long double."""
    theta = np.longdouble(tokens(n))
    turn = theta[:SAMPLE, None] - theta
    weights = np.exp(BETA * (np.cos(turn) - 1))
    return -(weights * np.sin(turn)).sum(axis=1) / weights.sum(axis=1)


def error(field: Array, sample: Array) -> float:
    """Largest absolute error of the first tokens."""
    return float(np.abs(field[:SAMPLE] - sample).max())


def work(harmonics: int) -> float:
    """Operations for an angle: see lib.core.fourier.

    Its powers, twice, and a coefficient's product in each of three series.
    """
    return 2 * 6 * (8 * harmonics) ** 0.5 + 3 * 4 * harmonics


def field_row(n: int, rows: int, share: float = 1.0) -> Row:
    """Both ways to the field; the peer does a share where all of it takes minutes."""
    targets = max(SAMPLE, round(n * share))
    return Row(
        name=f"attention field of {n} tokens on the circle, β = 9",
        ours=lambda: attention_field(tokens(n), BETA),
        peer=lambda: all_pairs(tokens(n), targets, rows),
        peer_name=f"matrix products over all pairs, {rows} rows at a time",
        pieces=(1, targets / n),
        reference=partial(exact, n),
        error=error,
        accuracy=1e-13,
        limit={"flop": n * work(Kernel(BETA).harmonics), "bytes": 16 * n},
        beyond=BEYOND,
    )


def field_call(n: int) -> Call:
    """A call whose time grows with the number of tokens."""
    return partial(attention_field, tokens(n), BETA)


def density_call(n: int) -> Call:
    """Ten steps of a density at so many angles."""
    density = 1 + np.cos(2 * np.pi * np.arange(n) / n) / 5
    return lambda: mean_field.simulate(density, 2.0, 0.01, 10).states


ROWS: list[Row | Growth] = [
    field_row(1000, BLOCK // 1000),
    field_row(10**4, 1024),
    field_row(10**4, BLOCK // 10**4),
    field_row(10**5, 250, share=1 / 400),
    field_row(10**5, BLOCK // 10**5, share=1 / 400),
    Growth(
        name="attention field on the circle, in the number of tokens",
        sizes=(2**14, 2**15, 2**16, 2**17, 2**18),
        run=field_call,
        expected=1,
    ),
    Growth(
        name="10 steps of a density on the circle, in the number of angles",
        sizes=(2**12, 2**13, 2**14, 2**15, 2**16),
        run=density_call,
        expected=1,
    ),
]
