"""Rows of lib.attention: softmax, its derivatives and expansion, attention, scores."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import softmax as scipy_softmax

from benchmarks.harness import Growth, Row, by_jax
from benchmarks.timing import Call
from lib.attention import (
    random_scores,
    shaped_attention,
    softmax,
    softmax_derivatives,
    softmax_expansion,
)
from lib.core.checks import Array

RNG = np.random.default_rng(0)
U = RNG.standard_normal((1000, 64))
Y, TAU = RNG.standard_normal((8, 128, 128)), 3.0
# So many normals that no branch predictor learns the stream a fixed seed repeats.
X, KEYS = RNG.standard_normal((128, 1024)), 128


def exact_softmax(u: npt.ArrayLike) -> Any:
    """Softmax in long double."""
    weights = np.exp(np.asarray(u, np.longdouble))
    return weights / weights.sum(axis=-1, keepdims=True)


def exact_derivative(z: Array, order: int) -> Any:
    """The cumulant of the one-hot vector in long double: no differentiation in it."""
    s = exact_softmax(z)
    centered = np.eye(s.size) - s
    if order == 1:
        return np.einsum("a,ai,aj->ij", s, centered, centered)
    return np.einsum("a,ai,aj,ak->ijk", s, centered, centered, centered)


def jax_derivative(order: int, z: Any) -> Any:
    """Derivative of the softmax in forward mode, the fastest that jax has for it."""
    import jax

    function = jax.nn.softmax
    for _ in range(order):
        function = jax.jacfwd(function)
    return function(z)


def series(u: Any) -> Any:
    """The expansion of order 3 as a quotient of power series: exp(tu) by its mean."""
    powers = [np.ones_like(u), u, u * u / 2, u * u * u / 6]
    means = [power.mean(axis=-1, keepdims=True) for power in powers]
    terms: list[Any] = []
    for r, power in enumerate(powers):
        terms.append(power - sum(means[j] * terms[r - j] for j in range(1, r + 1)))
    return sum(terms) / u.shape[-1]


@cache
def derivative_matrices(m: int) -> list[Array]:
    """Derivative tensors at 0 over r!, r = 1, 2, 3, as matrices (m^r, m)."""
    tensors = [softmax_derivatives(np.zeros(m), r) for r in (1, 2, 3)]
    scaled = zip(tensors, (1, 2, 6), strict=True)
    return [tensor.reshape(m, -1).T / factorial for tensor, factorial in scaled]


def contraction(u: Array) -> Array:
    """The expansion of order 3 as in the textbook, each tensor with its powers of u.

    Of the ways to contract, a matrix product with all monomials is the fastest.
    """
    total, monomials = 1 / u.shape[-1], np.ones((len(u), 1))
    for matrix in derivative_matrices(u.shape[-1]):
        outer = np.einsum("na,nb->nab", monomials, u)
        monomials = outer.reshape(len(u), -1)
        total = total + monomials @ matrix
    return np.asarray(total)


def jax_expansion(u: Any) -> Any:
    """The expansion of order 3 by the Taylor mode of jax."""
    import jax
    from jax.experimental.jet import jet

    zero = jax.numpy.zeros_like(u)
    value, terms = jet(jax.nn.softmax, (zero,), ((u, zero, zero),))
    return value + terms[0] + terms[1] / 2 + terms[2] / 6


def numpy_shaped(y: Array) -> Array:
    """Shaped attention without checks and without guarding the exponential."""
    w = np.exp(y / TAU)
    weights = w / w.sum(axis=-1, keepdims=True)
    return np.asarray(np.eye(y.shape[-1]) + weights - 1 / y.shape[-1])


def scores_of(number: Any) -> Any:
    """The formula of random_scores, in float64 or long double."""
    weights = np.random.default_rng(1).standard_normal((2, X.shape[1], KEYS))
    w_query, w_key = weights.astype(number, copy=False)
    x = X.astype(number, copy=False)
    return (x @ w_query) @ (x @ w_key).T / x.shape[1]


def derivative_row(
    order: int, m: int, peer: Callable[[Array], Call], **names: Any
) -> Row:
    """A derivative tensor beside another way to it."""
    z = RNG.standard_normal(m)
    return Row(
        name=f"derivative {order} of the softmax of {m} scores",
        ours=lambda: softmax_derivatives(z, order),
        peer=peer(z),
        reference=lambda: exact_derivative(z, order),
        limit={"exp": m, "bytes": 8 * m ** (order + 1)},
        beyond="On arrays that stay in the cache a call of numpy costs as much as its"
        " pass.",
        **names,
    )


def expansion_row(
    rows: int, m: int, peer: Callable[[Array], Call], **names: Any
) -> Row:
    """The expansion of order 3 beside another way to it."""
    u = 0.5 * RNG.standard_normal((rows, m))
    return Row(
        name=f"expansion of order 3 of {rows} rows of {m}",
        ours=lambda: softmax_expansion(u, 3),
        peer=peer(u),
        reference=lambda: series(np.longdouble(u)),
        limit={"bytes": 2 * u.nbytes},
        beyond="Each operation of the polynomial is a pass of numpy, and each pass of"
        " few rows costs its call; the limit reads and writes all scores once.",
        **names,
    )


def by_jacfwd(order: int) -> Callable[[Array], Call]:
    """The derivative of some order as a peer."""
    return lambda z: by_jax(partial(jax_derivative, order), z)


ROWS: list[Row | Growth] = [
    Row(
        name="softmax of 1000 rows of 64",
        ours=lambda: softmax(U),
        peer=lambda: scipy_softmax(U, axis=-1),
        peer_name="scipy.special.softmax",
        reference=lambda: exact_softmax(U),
        limit={"exp": U.size, "bytes": 2 * U.nbytes},
    ),
    derivative_row(
        1,
        64,
        by_jacfwd(1),
        peer_name="jax.jacfwd",
        needs="jax",
        reason="Ours checks its scores, for 14 % of its time, and the rest are calls of"
        " numpy on 64 numbers, where jax compiles a single one.",
    ),
    derivative_row(
        2,
        32,
        by_jacfwd(2),
        peer_name="jax.jacfwd, twice",
        needs="jax",
        reason="Three passes of numpy over the tensor are 89 % of our time; jax"
        " compiles a single one.",
    ),
    # The tensors have m^4 entries: past some length of the rows they are slower.
    *(
        expansion_row(
            1024,
            m,
            lambda u: partial(contraction, u),
            peer_name="contraction of the derivative tensors at 0",
            reason="On 2048 numbers a call of numpy costs as much as its work, and"
            " ours makes more of them: it centers the rows and checks the scores."
            if m == 2
            else "",
        )
        for m in (2, 4, 8, 16)
    ),
    expansion_row(
        1000,
        64,
        lambda u: partial(series, u),
        peer_name="a quotient of power series in numpy",
    ),
    expansion_row(
        1000,
        64,
        partial(by_jax, jax_expansion),
        peer_name="jax.experimental.jet",
        needs="jax",
        reason="jax compiles all of it to few passes over the scores; ours is a pass of"
        " numpy for each operation, and a check of 4 %.",
    ),
    Row(
        name="shaped attention of 8 heads of 128 tokens",
        ours=lambda: shaped_attention(Y, TAU),
        peer=lambda: numpy_shaped(Y),
        peer_name="the formula in numpy, unchecked",
        reference=lambda: np.eye(128) + exact_softmax(Y / np.longdouble(TAU)) - 1 / 128,
        limit={"exp": Y.size, "bytes": 2 * Y.nbytes},
        reason="Ours looks for scores that are too large for their exponentials, which"
        " is a tenth of its time.",
        beyond="The quotient by τ, two looks for scores that are too large, the sums of"
        " the rows, the quotient by them and the last sum are passes of numpy, together"
        " twice as long as the exponentials.",
    ),
    Row(
        name="random scores of 128 tokens of width 1024, keys of 128",
        ours=lambda: random_scores(X, KEYS, rng=np.random.default_rng(1)),
        peer=lambda: scores_of(np.float64),
        peer_name="the formula in numpy, unchecked",
        reference=lambda: scores_of(np.longdouble),
        limit={
            "normals": 2 * X.shape[1] * KEYS,
            "flop": 4 * X.size * KEYS + 2 * len(X) ** 2 * KEYS,
        },
        reason="Both draw the same weights and multiply the same matrices; ours checks"
        " tokens and scores, for 1 % of its time.",
    ),
    Growth(
        name="expansion of order 3 of one row, in its length",
        sizes=(32768, 65536, 131072, 262144, 393216),
        run=lambda m: partial(softmax_expansion, RNG.standard_normal(m), 3),
        expected=1,
    ),
    Growth(
        name="derivative 2 of the softmax, in the number of scores",
        sizes=(24, 32, 48, 64, 96, 128, 192, 256),
        run=lambda m: partial(softmax_derivatives, RNG.standard_normal(m), 2),
        expected=3,
    ),
]
