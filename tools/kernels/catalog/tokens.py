"""Tokens on the sphere and on the circle, and their cosines."""

from __future__ import annotations

from typing import Any

import numpy as np

from lib import sphere
from tools.kernels.catalog.kernel import Kernel, Values
from tools.kernels.graph import Shape

ATTENTION = {
    "lib.sphere.field:_in_blocks": "blocks of rows bound the memory; a row at a time,"
    " as in a loop, gives the same numbers",
    "lib.sphere.field:_head": "what is taken off all scores of a row, their maximum or"
    " |β| which is the same for β ≥ 0, cancels; the maximum serves every β",
}


def tokens(rng: np.random.Generator, n: int) -> Values:
    """Tokens on the sphere, and the numbers that go with them."""
    return {
        "x": sphere.uniform_tokens(n, 3, rng=rng),
        "beta": rng.uniform(-4, 4),
        "dt": rng.uniform(0.01, 0.05),
        "value": np.eye(3) * rng.choice([-1, 1]),
    }


def tokens_in_the_plane(rng: np.random.Generator, n: int) -> Values:
    turn = np.array([[0.6, 0.8], [-0.8, 0.6]])
    return {
        **tokens(rng, n),
        "x": sphere.uniform_tokens(n, 2, rng=rng),
        "value": turn * rng.uniform(0.5, 1.5),
    }


def sphere_field(x: Any, beta: Any) -> Values:
    return {"field": sphere.attention_field(x, beta)}


def sphere_step(x: Any, beta: Any, dt: Any, value: Any) -> Values:
    return {"next": sphere.simulate(x, beta, dt, 1, value=value).states[-1]}


def sphere_energy(x: Any, beta: Any) -> Values:
    energy = sphere.interaction_energy(x, beta, shifted=True)
    rate = sphere.dissipation(x, beta, shifted=True)
    return {"energy": energy, "rate": rate, "height": 2 * beta * energy}


def sphere_crowd(x: Any, beta: Any, radius: Any) -> Values:
    return sphere.crowd_state(x, beta, radius)


def crowded(rng: np.random.Generator, n: int) -> Values:
    return {**tokens(rng, n), "radius": rng.uniform(0.3, 1.5)}


def equiangular_field(cosine: Any, tokens: Any, beta: Any) -> Values:
    return {"field": sphere.equiangular_field(cosine, tokens, beta)}


def cosine_drift(cosines: Any, beta: Any) -> Values:
    return {"drift": sphere.cosines.cosine_drift(cosines, beta)}


def cosines_of_tokens(rng: np.random.Generator, n: int) -> Values:
    x = sphere.uniform_tokens(n, n + 2, rng=rng)
    return {
        "cosine": rng.uniform(0, 1, n),
        "tokens": int(rng.integers(2, 9)),
        "beta": rng.uniform(1, 4),
        "cosines": x @ x.T,
    }


NEGATIVE = {"beta": lambda beta: -abs(beta)}
X: dict[str, Shape] = {"x": ("n", 3), "beta": ()}
KERNELS = [
    Kernel(
        "sphere_field",
        "lib.sphere:attention_field",
        sphere_field,
        X,
        tokens,
        ATTENTION,
        NEGATIVE,
    ),
    Kernel(
        "sphere_step",
        "lib.sphere:simulate",
        sphere_step,
        {**X, "dt": (), "value": (3, 3)},
        tokens,
        ATTENTION,
        NEGATIVE,
    ),
    Kernel(
        "circle_step",
        "lib.sphere:simulate",
        sphere_step,
        {"x": ("n", 2), "beta": (), "dt": (), "value": (2, 2)},
        tokens_in_the_plane,
        ATTENTION,
        NEGATIVE,
    ),
    Kernel(
        "sphere_energy",
        "lib.sphere:interaction_energy",
        sphere_energy,
        X,
        tokens,
        ATTENTION,
        NEGATIVE,
    ),
    Kernel(
        "sphere_crowd",
        "lib.sphere:crowd_state",
        sphere_crowd,
        {**X, "radius": ()},
        crowded,
        {"lib.sphere.field:_in_blocks": ATTENTION["lib.sphere.field:_in_blocks"]},
    ),
    Kernel(
        "equiangular_field",
        "lib.sphere:equiangular_field",
        equiangular_field,
        {"cosine": ("c",), "tokens": (), "beta": ()},
        lambda rng, c: cosines_of_tokens(rng, c),
    ),
    Kernel(
        "cosine_drift",
        "lib.sphere.cosines:cosine_drift",
        cosine_drift,
        {"cosines": ("n", "n"), "beta": ()},
        cosines_of_tokens,
    ),
]
