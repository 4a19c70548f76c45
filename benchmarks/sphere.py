"""Rows of lib.sphere: the field, and the flow by steps of different orders."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np

from benchmarks._timing import Call
from benchmarks.harness import Growth, Row
from lib._checks import Array
from lib.sphere import attention_field, uniform_tokens

BETA, SAMPLE = 2.0, 50


@cache
def tokens(n: int, d: int, systems: int | None = None) -> Array:
    """Uniform tokens."""
    return uniform_tokens(n, d, systems=systems, rng=np.random.default_rng(0))


def formula(x: Array) -> Array:
    """The field in numpy as it is written, unchecked and all scores at once."""
    weights = np.exp(BETA * x @ x.mT)
    mean = weights @ x / weights.sum(axis=-1, keepdims=True)
    return np.asarray(mean - (x * mean).sum(axis=-1, keepdims=True) * x)


def exact(x: Array) -> Any:
    """The same for the first tokens of a system, in long double."""
    x = np.longdouble(x if x.ndim == 2 else x[0])
    some = x[:SAMPLE]
    weights = np.exp(BETA * np.einsum("id,jd->ij", some, x))
    mean = np.einsum("ij,jd->id", weights, x) / weights.sum(axis=1, keepdims=True)
    return mean - (some * mean).sum(axis=1, keepdims=True) * some


def error(field: Array, sample: Array) -> float:
    """Largest absolute error of the first tokens of the first system."""
    one = field if field.ndim == 2 else field[0]
    return float(np.abs(one[:SAMPLE] - sample).max())


def field_row(name: str, x: Array) -> Row:
    """The field of some tokens beside the formula."""
    n, pairs = x.shape[-2], x.size // x.shape[-1] * x.shape[-2]
    return Row(
        name=f"attention field of {name}",
        ours=lambda: attention_field(x, BETA),
        peer=lambda: formula(x),
        peer_name="the formula in numpy, unchecked",
        reference=lambda: exact(x),
        error=error,
        accuracy=1e-14,
        limit={"exp": pairs, "flop": 4 * pairs * x.shape[-1], "bytes": 16 * n},
    )


def field_call(n: int) -> Call:
    """A call whose time grows with the number of pairs."""
    return partial(attention_field, tokens(n, 3), BETA)


ROWS: list[Row | Growth] = [
    field_row("64 tokens, d = 3", tokens(64, 3)),
    field_row("4096 tokens, d = 3", tokens(4096, 3)),
    field_row("256 systems of 32 tokens, d = 128", tokens(32, 128, 256)),
    Growth(
        name="attention field on the sphere, in the number of tokens",
        sizes=(512, 1024, 2048, 3072, 4096),
        run=field_call,
        expected=2,
    ),
]
