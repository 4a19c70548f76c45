"""Attention of unit tokens with given weights, and its flow by Runge–Kutta."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from math import prod
from operator import add
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lib.core.checks import (
    Array,
    as_float,
    require_finite,
    require_flag,
    require_number,
)
from lib.core.runge_kutta import Field, StepCheck, runge_kutta
from lib.core.trajectory import Trajectory, iterate, step_length
from lib.sphere.geometry import require_unit, tangent, unit, unit_tokens

_BLOCK = 2**17  # scores held at once, 1 MB
# Up to here the diagonal is the maximum of a row of scores but for rounding, since
# β(|x_j|² − 1) is below 0.1 for tokens within 1e-8 of the sphere.
_DIAGONAL_IS_LARGEST = 1e6


class Head(NamedTuple):
    """Weights of one head; None stands for the identity."""

    query: Array | None  # (k, d)
    key: Array | None  # (k, d)
    value: Array | None  # (d, d)


IDENTITY = [Head(None, None, None)]


def make_heads(
    query: npt.ArrayLike | None,
    key: npt.ArrayLike | None,
    value: npt.ArrayLike | None,
    d: int,
) -> list[Head]:
    """Check weights, each (k, d), or (H, k, d) for H heads, and part them by head."""
    given = {
        name: _stack(name, weights, d)
        for name, weights in (("query", query), ("key", key), ("value", value))
        if weights is not None
    }
    if not given:
        return IDENTITY
    sizes = {name: stack.shape for name, stack in given.items()}
    if len({shape[0] for shape in sizes.values()}) > 1:
        raise ValueError(f"{', '.join(sizes)} must have one head each, got {sizes}")
    widths = [sizes[name][1] if name in sizes else d for name in ("query", "key")]
    if widths[0] != widths[1]:
        raise ValueError(
            f"query and key must have as many rows, got {widths[0]} and {widths[1]}"
        )
    if "value" in sizes and sizes["value"][1] != d:
        raise ValueError(f"value must be {d} by {d}, got shape {sizes['value'][1:]}")
    heads = next(iter(sizes.values()))[0]
    return [
        Head(*(given[name][a, ...] if name in given else None for name in Head._fields))
        for a in range(heads)
    ]


def attend(
    x: Array, heads: list[Head], beta: float, *, normalize: bool, causal: bool
) -> Array:
    """Sum over the heads of the weighted values, not projected, (..., n, d).

    Unnormalized weights are e^(score − |β|) over the number of tokens seen.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        out: Array = reduce(
            add, (_head(x, head, beta, normalize, causal) for head in heads)
        )
    if not np.isfinite(out).all():
        raise ValueError(
            f"query, key or value is too large for x at beta={beta!r}: attention"
            " leaves the float range"
        )
    return out


def make_attention(
    heads: list[Head], beta: float, normalize: bool, causal: bool
) -> Callable[[Array], Array]:
    """:func:`attend` as a function of the tokens, its other arguments checked."""
    return partial(
        attend,
        heads=heads,
        beta=require_number("beta", beta),
        normalize=require_flag("normalize", normalize),
        causal=require_flag("causal", causal),
    )


def log_partition(x: Array, beta: float) -> Array:
    """Logarithm of the mean over j of e^(β<x_i, x_j>), one per token, (..., n)."""

    def rows(part: Array, r: slice) -> Array:
        scores = beta * (part[..., r, :] @ part.mT)
        top = np.max(scores, axis=-1, keepdims=True)
        return np.asarray(
            top + np.log(np.mean(np.exp(scores - top), axis=-1, keepdims=True))
        )

    return np.asarray(_in_blocks(rows, x)[..., 0])


def _stack(name: str, weights: npt.ArrayLike, d: int) -> Array:
    array = require_finite(name, as_float(name, weights))
    if array.ndim not in (2, 3) or array.shape[-1] != d or array.size == 0:
        raise ValueError(
            f"{name} must have shape (k, {d}), or (heads, k, {d}), got {array.shape}"
        )
    return array if array.ndim == 3 else array[None]


def _head(x: Array, head: Head, beta: float, normalize: bool, causal: bool) -> Array:
    plain = head.query is None and head.key is None
    diagonal = plain and not causal and 0 <= beta <= _DIAGONAL_IS_LARGEST

    def rows(part: Array, r: slice) -> Array:
        n = part.shape[-2]
        queries = _times(part[..., r, :], head.query)
        if head.key is not None:  # <q, W^K x> = <(W^K)ᵀq, x>
            queries = queries @ head.key
        scores = queries @ part.mT  # (..., r, n)
        scores *= beta
        seen: int | npt.NDArray[np.int64] = n
        if causal:
            token = np.arange(n)
            scores = np.where(token <= token[r, None], scores, -np.inf)
            seen = token[r, None] + 1
        largest = normalize and not diagonal
        scores -= np.max(scores, axis=-1, keepdims=True) if largest else abs(beta)
        weights = np.exp(scores, out=scores)
        mean: Array = weights @ part
        mean /= weights.sum(axis=-1, keepdims=True) if normalize else seen
        return mean

    return _times(_in_blocks(rows, x), head.value)


def _times(x: Array, weights: Array | None) -> Array:
    return x if weights is None else x @ weights.T


def _in_blocks(function: Callable[[Array, slice], Array], x: Array) -> Array:
    """``function`` on blocks of systems, and of rows of a large system, put together.

    It takes systems (b, n, d) and the slice of rows to answer for.
    """
    *batch, n, d = x.shape
    systems, rows = max(1, _BLOCK // n**2), max(1, _BLOCK // n)
    count = prod(batch)
    if count <= systems and n <= rows:
        return function(x, slice(0, n))
    flat = x.reshape(count, n, d)
    parts = [
        (b, r, function(flat[b], r))
        for b in _slices(count, systems)
        for r in _slices(n, rows)
    ]
    out = np.empty((count, n, parts[0][-1].shape[-1]))
    for b, r, part in parts:
        out[b, r] = part
    return out.reshape(*batch, n, -1)


def _slices(count: int, size: int) -> list[slice]:
    return [slice(i, min(i + size, count)) for i in range(0, count, size)]


def attention_output(
    x: npt.ArrayLike,
    beta: float,
    normalize: bool = True,
    *,
    query: npt.ArrayLike | None = None,
    key: npt.ArrayLike | None = None,
    value: npt.ArrayLike | None = None,
    causal: bool = False,
) -> Array:
    r"""Vectors that attention adds to the tokens before normalization, not tangent.

    .. math:: \sum_{a=1}^H W^{V,a} \sum_j A^a_{ij} x_j, \qquad
              A^a_{ij} = \frac{e^{\beta\langle W^{Q,a} x_i, W^{K,a} x_j\rangle}}
              {\sum_k e^{\beta\langle W^{Q,a} x_i, W^{K,a} x_k\rangle}} .

    Parameters
    ----------
    x : array_like, shape (..., n, d)
        Unit tokens.
    beta : float
        Inverse temperature, of either sign.
    normalize : bool
        False puts :math:`\tfrac1n e^{-|\beta|}` in place of the denominator: the
        unnormalized model in its time s.
    query, key : array_like, shape (k, d) or (H, k, d), optional
        :math:`W^{Q,a}` and :math:`W^{K,a}`; the identity by default.
    value : array_like, shape (d, d) or (H, d, d), optional
        :math:`W^{V,a}`, with the output weights multiplied in; the identity by default.
    causal : bool
        Whether token i sees the tokens up to i only; n is then their number.

    Returns
    -------
    ndarray, shape (..., n, d)
        One vector for each token.

    Raises
    ------
    ValueError
        For tokens off the sphere, weights that do not fit them or each other, or
        results beyond the float range.
    """
    x, attention = _checked(x, beta, normalize, query, key, value, causal)
    return attention(x)


def attention_field(
    x: npt.ArrayLike,
    beta: float,
    normalize: bool = True,
    *,
    query: npt.ArrayLike | None = None,
    key: npt.ArrayLike | None = None,
    value: npt.ArrayLike | None = None,
    causal: bool = False,
) -> Array:
    r"""Velocity of each token: :func:`attention_output`, projected.

    Without weights it is :math:`\mathcal X[\mu](x_i)`, or with ``normalize=False``
    the field :math:`e^{-|\beta|} \mathcal X^{\mathrm u}[\mu](x_i)` of the unnormalized
    model in its time :math:`s = e^{|\beta|} t`. Nothing overflows at any β. Where all
    speeds are below about 1e-13, as between clusters at large β, rounding hides them:
    :func:`coalesce` goes on from there.

    Parameters
    ----------
    x, beta, normalize, query, key, value, causal
        As for :func:`attention_output`.

    Returns
    -------
    ndarray, shape (..., n, d)
        Tangent vectors.

    Raises
    ------
    ValueError
        As :func:`attention_output`.
    """
    x, attention = _checked(x, beta, normalize, query, key, value, causal)
    return tangent(x, attention(x))


def _checked(
    x: npt.ArrayLike,
    beta: float,
    normalize: bool,
    query: npt.ArrayLike | None,
    key: npt.ArrayLike | None,
    value: npt.ArrayLike | None,
    causal: bool,
) -> tuple[Array, Callable[[Array], Array]]:
    """Unit tokens and their attention, from the arguments of both functions above."""
    x = require_unit("x", x)
    heads = make_heads(query, key, value, x.shape[-1])
    return x, make_attention(heads, beta, normalize, causal)


def flow(
    field: Field, x0: npt.ArrayLike, horizon: float, steps: int, *, save_every: int = 1
) -> Trajectory:
    r"""Solve :math:`\dot x_i = \operatorname{Proj}_{x_i} f_i(X)` on the sphere.

    Classical Runge–Kutta of order 4 with all stages normalized. Fields may be sums of
    outputs of attention and perceptrons; the projection is made here.

    Parameters
    ----------
    field : callable
        f, from unit tokens (..., n, d) to vectors of the same shape.
    x0 : array_like, shape (..., n, d)
        Unit tokens.
    horizon : float
        End time.
    steps : int
        Number of steps, each of four calls of ``field``.
    save_every : int
        Steps between saved states; the first and the last state are saved always.

    Returns
    -------
    Trajectory
        ``states`` (K, ..., n, d).

    Raises
    ------
    ValueError
        For tokens off the sphere, a field with other values than vectors of the
        tokens' shape, or too few steps. They are too few when Collatz's quotient
        :math:`|k_3 - k_2| / |k_2 - k_1|` of a system's stages, which is about half of
        step times rate, exceeds 0.6: errors are then of the order of percents. Or when
        a token would go half round the sphere in a step.
    """
    if not callable(field):
        raise ValueError(f"field must be a function of the tokens, got {field!r}")
    x = unit_tokens("x0", x0)
    return solve(field, x, horizon, steps, save_every, "field and x0")


def solve(
    field: Field, x: Array, horizon: float, steps: int, save_every: int, names: str
) -> Trajectory:
    """:func:`flow` of checked tokens; ``names`` are those of what makes the field."""
    h = step_length(horizon, steps, save_every)
    check = StepCheck((-2, -1), steps, horizon, names)

    def slope(y: Array) -> Array:
        return tangent(y, vectors("field", field(y), y.shape))

    step = runge_kutta(slope, h, check, unit)
    return iterate(step, x, h, steps, save_every)


def vectors(name: str, value: Any, shape: tuple[int, ...]) -> Array:
    """Check what a field gives for each token."""
    array = as_float(name, value)
    if array.shape != shape:
        raise ValueError(
            f"{name} must give vectors of shape {shape}, got shape {array.shape}"
        )
    return require_finite(name, array)


def simulate(
    x0: npt.ArrayLike,
    beta: float,
    horizon: float,
    steps: int,
    *,
    normalize: bool = True,
    query: npt.ArrayLike | None = None,
    key: npt.ArrayLike | None = None,
    value: npt.ArrayLike | None = None,
    causal: bool = False,
    save_every: int = 1,
) -> Trajectory:
    r"""Tokens along the flow of :func:`attention_field`.

    Runge–Kutta of order 4 with normalized stages (:func:`flow`). Steps of a quarter are
    accurate to about 1e-5 at moderate β.

    Parameters
    ----------
    x0 : array_like, shape (..., n, d)
        Unit tokens; leading axes hold several systems.
    beta : float
        Inverse temperature, of either sign.
    horizon : float
        End time, t or, with ``normalize=False``, s.
    steps : int
        Number of steps.
    normalize, query, key, value, causal
        As for :func:`attention_output`.
    save_every : int
        Steps between saved states; the first and the last state are saved always.

    Returns
    -------
    Trajectory
        ``states`` (K, ..., n, d).

    Raises
    ------
    ValueError
        As :func:`attention_output`, and for too few steps, with a suggestion.
    """
    x0 = unit_tokens("x0", x0)
    heads = make_heads(query, key, value, x0.shape[-1])
    field = make_attention(heads, beta, normalize, causal)
    weighted = not (query is None and key is None and value is None)
    names = "x0, beta, query, key and value" if weighted else "x0 and beta"
    return solve(field, x0, horizon, steps, save_every, names)
