"""The kernels of the site: which functions of ``lib``, with which inputs.

An adapter below calls ``lib`` with a kernel's inputs and names what it gives. It may
choose arguments and pick results; what is computed is computed in ``lib``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lib import attention, sphere
from tools.kernels.graph import Shape

Values = dict[str, Any]
Draw = Callable[..., Values]  # inputs of given free sizes, from a generator

BLOCKS = {
    "lib.sphere.field:_in_blocks": "blocks of rows bound the memory; a row at a time,"
    " as in a loop, gives the same numbers"
}


@dataclass(frozen=True)
class Kernel:
    """A function of ``lib`` and how it becomes a module of the site."""

    name: str
    function: str  # what of lib it computes, as module:function
    call: Callable[..., Mapping[str, Any]]
    inputs: Mapping[str, Shape]
    draw: Draw
    exempt: Mapping[str, str] = field(default_factory=dict)

    @property
    def file(self) -> str:
        """Its place in the built site."""
        return f"_static/kernels/{self.name.replace('_', '-')}.mjs"

    @property
    def letters(self) -> list[str]:
        """Its free sizes."""
        sizes = [size for shape in self.inputs.values() for size in shape]
        return list(dict.fromkeys(size for size in sizes if isinstance(size, str)))


def tokens(rng: np.random.Generator, n: int) -> Values:
    """Tokens on the sphere, and the numbers that go with them."""
    return {
        "x": sphere.uniform_tokens(n, 3, rng=rng),
        "beta": rng.uniform(1, 4),
        "dt": rng.uniform(0.01, 0.05),
        "value": np.eye(3) * rng.choice([-1, 1]),
    }


def sphere_field(x: Any, beta: Any) -> Values:
    return {"field": sphere.attention_field(x, beta)}


def sphere_step(x: Any, beta: Any, dt: Any, value: Any) -> Values:
    return {"next": sphere.simulate(x, beta, dt, 1, value=value).states[-1]}


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


X: dict[str, Shape] = {"x": ("n", 3), "beta": ()}
KERNELS = [
    Kernel(
        "sphere_field", "lib.sphere:attention_field", sphere_field, X, tokens, BLOCKS
    ),
    Kernel(
        "sphere_step",
        "lib.sphere:simulate",
        sphere_step,
        {**X, "dt": (), "value": (3, 3)},
        tokens,
        BLOCKS,
    ),
    Kernel(
        "softmax_weights",
        "lib.attention:softmax",
        softmax_weights,
        {"query": ("d",), "keys": ("m", "d"), "temperature": ()},
        scores_of_keys,
    ),
    Kernel(
        "softmax_expansion",
        "lib.attention:softmax_expansion",
        softmax_expansion,
        {"logits": ("n", "m"), "temperature": ()},
        scores_of_keys,
    ),
]
