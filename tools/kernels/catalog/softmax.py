"""The softmax and its expansion."""

from __future__ import annotations

from typing import Any

import numpy as np

from lib import attention
from tools.kernels.catalog.kernel import Kernel, Values

# What is recorded serves all scores, and all numbers of rows.
SOFTMAX = {
    "lib.attention:_moderate": "the maximum of a row, taken off its scores, cancels;"
    " without it small ones give the same weights",
    "lib.core.rows:row_sums": "entries of a row are added in another order",
}
FAR = 1000.0  # times the scores of an example, whose maximum is then taken off


def far(scores: Any) -> Any:
    """Scores that need their maximum taken off."""
    return FAR * scores


def softmax_weights(query: Any, keys: Any, temperature: Any) -> Values:
    scores = keys @ query / temperature
    return {"scores": scores, **_softmax_and_polynomials(scores)}


def softmax_expansion(logits: Any, temperature: Any) -> Values:
    scaled = logits / temperature
    bounds = {f"bound{k}": attention.remainder_bound(scaled, k) for k in range(4)}
    return {**_softmax_and_polynomials(scaled), **bounds}


def _softmax_and_polynomials(scores: Any) -> Values:
    orders = {f"order{k}": attention.softmax_expansion(scores, k) for k in range(4)}
    return {"softmax": attention.softmax(scores), **orders}


def scores_of_keys(rng: np.random.Generator, m: int, d: int = 3, n: int = 1) -> Values:
    """A query, keys, rows of logits, and a temperature that suits them."""
    return {
        "query": rng.standard_normal(d),
        "keys": rng.standard_normal((m, d)),
        "logits": rng.standard_normal((n, m)),
        "temperature": rng.uniform(1, 2),
    }


KERNELS = [
    Kernel(
        "softmax_weights",
        "lib.attention:softmax",
        softmax_weights,
        {"query": ("d",), "keys": ("m", "d"), "temperature": ()},
        scores_of_keys,
        SOFTMAX,
        {"keys": far},
    ),
    Kernel(
        "softmax_expansion",
        "lib.attention:softmax_expansion",
        softmax_expansion,
        {"logits": ("n", "m"), "temperature": ()},
        scores_of_keys,
        SOFTMAX,
        {"logits": far},
    ),
]
