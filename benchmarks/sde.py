"""Rows of lib.sde: closed forms beside sums over indices, factored noise.

All is timed without input checks: they would be most of the time of a closed form.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.random import PCG64, Generator

from benchmarks.harness import Growth, Row, relative_error
from benchmarks.timing import Call
from lib.core.checks import Array
from lib.core.psd import semidefinite_root
from lib.core.trajectory import Trajectory
from lib.sde import CovarianceSDE, simulate, simulate_cosine, simulate_distance
from lib.sde.limits import vech_covariance

SDE = CovarianceSDE(0.7, 0.8)
RNG = np.random.default_rng(0)
TOKENS = 8


def grams(size: int) -> Array:
    """Gram matrices of so many sets of tokens."""
    x = RNG.standard_normal((size, TOKENS, 12))
    return np.asarray(x @ x.swapaxes(-1, -2) / 12)


def first_order(gram: Any) -> Any:
    """S1, scaled covariance of the first order of the softmax: (..., m, m, m, m)."""
    m, mean = gram.shape[-1], gram.mean(axis=-1, keepdims=True)
    inner = gram - mean - mean.swapaxes(-1, -2) + mean.mean(axis=-2, keepdims=True)
    return np.einsum("...ij,...kl->...ikjl", gram, inner) / m**2


def summed_drift(gram: Any) -> Any:
    """The drift as printed: sums over indices of S1 and S2."""
    m, v, mean = gram.shape[-1], np.einsum("...ii->...i", gram), gram.mean(axis=-1)
    level = 2 * mean.mean(axis=-1, keepdims=True) - v.mean(axis=-1, keepdims=True)
    s2 = v[..., :, None] * (v - 2 * mean + level)[..., None, :] / m
    one = np.einsum("...kl,...ikjl->...ij", gram, first_order(gram))
    two = np.einsum("...jk,...ik->...ij", gram, s2)
    strength = (SDE.branch / SDE.tau0) ** 2
    return strength * (one + (two + two.swapaxes(-1, -2)) / 2)


def summed_diffusion(gram: Any) -> Any:
    """Σ as printed, each sum in the best order of its factors."""
    s1 = first_order(gram)

    def total(one: str, two: str, three: str) -> Any:
        formula = f"...{one},...{two},...{three}->...ijkl"
        return np.einsum(formula, gram, gram, s1, optimize=True)

    attention = total("ia", "kb", "jalb") + total("ia", "lb", "jakb")
    attention += total("jb", "ka", "ibla") + total("jb", "la", "ibka")
    linear = np.einsum("...ik,...jl->...ijkl", gram, gram)
    linear = linear + np.einsum("...il,...jk->...ijkl", gram, gram)
    square = SDE.branch**2
    both = square * (2 - square) * linear + (square / SDE.tau0) ** 2 * attention
    i, j = np.triu_indices(gram.shape[-1])
    return both[..., i[:, None], j[:, None], i, j]


def closed_diffusion(gram: Array) -> Array:
    """Σ in closed form, unchecked."""
    return vech_covariance(gram, SDE._spread(gram))


class UnitVectors(Generator):
    """Draws normals, and returns unit vectors: each draw gets its own, or zeros.

    The noise is linear in its normals, so that a batch of draws is then a root of their
    covariance. Drawing costs what it costs.
    """

    def __init__(self) -> None:
        super().__init__(PCG64(0))
        self.used = 0

    def standard_normal(self, size: Any) -> Array:  # type: ignore[override]
        """Columns of the identity, as many as normals are asked for."""
        super().standard_normal(size)
        count = int(np.prod(size[1:]))
        self.used += count
        return np.eye(size[0], count, count - self.used).reshape(size)


SAME = np.repeat(grams(1), 1024, axis=0)  # at least as many as a draw has normals
UPPER = np.triu_indices(TOKENS)


def factored_noise() -> Array:
    """Upper triangles of one draw for each Gram matrix."""
    draws = SDE._noise(semidefinite_root(SAME), UnitVectors())
    return np.asarray(draws[:, UPPER[0], UPPER[1]])


def assembled_noise() -> Array:
    """The same from the root of the covariance matrix."""
    root = np.linalg.cholesky(closed_diffusion(SAME))
    normals = UnitVectors().standard_normal((len(SAME), root.shape[-1]))
    return np.asarray((root @ normals[..., None])[..., 0])


def covariance_error(draws: Array, exact: Any) -> float:
    """Error of the covariance that draws from unit vectors make up."""
    return relative_error(draws.T @ draws, exact)


def closed_row(name: str, ours: Callable[[Array], Array], peer: Any, size: int) -> Row:
    """A coefficient in closed form beside its sums over indices."""
    gram = grams(size)
    return Row(
        name=f"{name} of {size} Gram matrices of {TOKENS} tokens",
        ours=partial(ours, gram),
        peer=partial(peer, gram),
        peer_name="sums over indices by einsum",
        reference=lambda: peer(np.longdouble(gram)),
    )


def two_tokens(
    simulator: Callable[..., Trajectory], start: float
) -> Callable[[int], Call]:
    """Ten steps of some paths of two tokens."""

    def run(paths: int) -> Call:
        numbers = (start, SDE.branch, SDE.tau0, 0.1, 10)
        return lambda: simulator(*numbers, paths=paths, rng=RNG).states

    return run


def gram_paths(paths: int) -> Call:
    """Ten steps of some paths of four tokens."""
    return lambda: simulate(SDE, np.eye(4), 0.1, 10, paths=paths, rng=RNG).states


ROWS: list[Row | Growth] = [
    closed_row("drift", SDE._drift, summed_drift, 256),
    closed_row("drift", SDE._drift, summed_drift, 1),
    closed_row("diffusion", closed_diffusion, summed_diffusion, 32),
    closed_row("diffusion", closed_diffusion, summed_diffusion, 1),
    Row(
        name=f"noise of {len(SAME)} Gram matrices of {TOKENS} tokens",
        ours=factored_noise,
        peer=assembled_noise,
        peer_name="root of the assembled covariance",
        reference=lambda: summed_diffusion(np.longdouble(SAME[0])),
        error=covariance_error,
        accuracy=1e-13,
        limit={"normals": SAME.size * 2},
    ),
    Growth(
        name="10 steps of 4 tokens, in the number of paths",
        sizes=(500, 1000, 2000, 3500, 5000),
        run=gram_paths,
        expected=1,
    ),
    Growth(
        name="10 steps of the distance of two tokens, in the number of paths",
        sizes=(10000, 20000, 40000, 70000, 100000),
        run=two_tokens(simulate_distance, 1.0),
        expected=1,
    ),
    Growth(
        name="10 steps of the cosine of two tokens, in the number of paths",
        sizes=(10000, 20000, 40000, 70000, 100000),
        run=two_tokens(simulate_cosine, 0.5),
        expected=1,
    ),
]
