r"""Gradients of the weights of attention layers at random initialization.

A layer is :math:`X' = \lambda X + \frac{\gamma}{\sqrt{nH}} \sum_a A_a X W^V_a`, with
:math:`A_a = \mathrm{softmax}(Y_a/\tau)`, plain or shaped, and scores
:math:`Y_a = \frac1n X W^Q_a (W^K_a)^\top X^\top`. Let G be the gradient of a number
with respect to X', and :math:`D_a = \frac{\gamma}{\sqrt{nH}} G (X W^V_a)^\top` that
with respect to :math:`A_a`. With rows S of the softmax, the gradient with respect to
the scores has the rows :math:`E = \frac1\tau D (\mathrm{diag}(S) - SS^\top)`, so that

.. math:: \partial W^V_a = \frac{\gamma}{\sqrt{nH}} (A_a X)^\top G, \qquad
          \partial W^Q_a = \frac1n X^\top E_a X W^K_a, \qquad
          \partial W^K_a = \frac1n X^\top E_a^\top X W^Q_a .

Rows of E sum to 0 and do not see a number added to a row of D. So X enters the second
formula twice by its differences JX, the first one not at all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lib.attention import softmax
from lib.core.checks import (
    LARGEST,
    Array,
    as_float,
    require_count,
    require_finite,
    require_generator,
    require_matrix,
    require_moderate,
)
from lib.gram.base import normed
from lib.gram.layers import PlainLayer, ShapedLayer

__all__ = ["Sizes", "Weights", "backward", "draw", "forward", "sizes"]

AttentionLayer = PlainLayer | ShapedLayer


@dataclass(frozen=True)
class Weights:
    """Weights of a layer in several networks, or the gradient with respect to them.

    Attributes
    ----------
    query, key : ndarray, shape (paths, H, n, n_k)
    value : ndarray, shape (paths, H, n, n)
    """

    query: Array
    key: Array
    value: Array


@dataclass(frozen=True)
class Sizes:
    """Root mean squares of the entries of gradients, by layer and network.

    Attributes
    ----------
    query, key, value : ndarray, shape (depth, paths)
        With respect to the weights of each layer, the first one first.
    tokens : ndarray, shape (depth + 1, paths)
        With respect to the tokens before each layer, and after the last.
    """

    query: Array
    key: Array
    value: Array
    tokens: Array


def draw(layer: AttentionLayer, *, paths: int, rng: np.random.Generator) -> Weights:
    """Independent standard normal weights of a layer.

    Parameters
    ----------
    layer : PlainLayer or ShapedLayer
        Without ``value_width``.
    paths : int
        Number of independent networks.
    rng : numpy.random.Generator

    Returns
    -------
    Weights

    Raises
    ------
    ValueError
        For another layer, or a count below 1.
    """
    _require_layer(layer)
    shape = require_count("paths", paths), layer.heads, layer.width
    require_generator("rng", rng)
    query, key = rng.standard_normal((2, *shape, layer.key_width))
    return Weights(query, key, rng.standard_normal((*shape, layer.width)))


def forward(x: npt.ArrayLike, weights: Weights, layer: AttentionLayer) -> Array:
    """Tokens after a layer with given weights.

    Parameters
    ----------
    x : array_like, shape (paths, m, n)
        Tokens of each network.
    weights : Weights
    layer : PlainLayer or ShapedLayer
        Without ``value_width``.

    Returns
    -------
    ndarray, shape (paths, m, n)

    Raises
    ------
    ValueError
        For tokens or weights of other shapes, or another layer.
    """
    tokens = _require_fit(x, weights, layer)
    seen = normed(tokens, layer.width) if layer.pre_norm else tokens
    mixed = _mixed(seen, weights, layer)[1] @ seen[:, None]  # A X, (paths, H, m, n)
    branch = (mixed @ weights.value).sum(axis=1)
    return np.asarray(layer.skip * tokens + _scale(layer) * branch)


def backward(
    x: npt.ArrayLike, weights: Weights, layer: AttentionLayer, cotangent: npt.ArrayLike
) -> tuple[Array, Weights]:
    r"""Gradients of a number with respect to what a layer gets.

    Parameters
    ----------
    x : array_like, shape (paths, m, n)
        Tokens before the layer.
    weights : Weights
    layer : PlainLayer or ShapedLayer
        Without ``value_width``.
    cotangent : array_like, shape (paths, m, n)
        Gradient G with respect to the tokens after the layer.

    Returns
    -------
    tokens : ndarray, shape (paths, m, n)
        Gradient with respect to ``x``.
    weights : Weights
        Gradient with respect to the weights, as in :mod:`lib.gram.gradients`.

    Raises
    ------
    ValueError
        As :func:`forward`, and for a cotangent of another shape than ``x``.
    """
    tokens = _require_fit(x, weights, layer)
    after = require_finite("cotangent", as_float("cotangent", cotangent))
    if after.shape != tokens.shape:
        raise ValueError(
            f"cotangent must have the shape {tokens.shape} of x, got {after.shape}"
        )
    seen = normed(tokens, layer.width) if layer.pre_norm else tokens
    before, grads = _branch_gradients(seen, weights, layer, after)
    if layer.pre_norm:  # along a token its root mean square takes the change back
        along = (before * seen).mean(axis=-1, keepdims=True)
        norms = np.linalg.norm(tokens, axis=-1, keepdims=True)
        before = np.sqrt(layer.width) / norms * (before - along * seen)
    return np.asarray(layer.skip * after + before), grads


def sizes(
    x0: npt.ArrayLike,
    layer: AttentionLayer,
    depth: int,
    *,
    paths: int,
    rng: np.random.Generator,
) -> Sizes:
    r"""Sizes of the gradients in networks of equal layers with random weights.

    What is differentiated is :math:`\sum_{i\alpha} R_{i\alpha} X_{L,i\alpha}` with a
    standard normal R for each network: the gradient of any loss looks like it to layers
    far from the end. Each layer's weights are drawn a second time on the way back, from
    the same seed, so that only the tokens of all layers are in memory.

    Parameters
    ----------
    x0 : array_like, shape (m, width)
        Tokens of the input.
    layer : PlainLayer or ShapedLayer
        Without ``value_width``.
    depth : int
        L, number of layers.
    paths : int
        Number of independent networks.
    rng : numpy.random.Generator

    Returns
    -------
    Sizes

    Raises
    ------
    ValueError
        For tokens that are not a finite matrix of that width, another layer, counts
        below 1, or tokens or gradients that leave the float range.
    """
    x = require_matrix("x0", require_moderate("x0", x0))
    _require_layer(layer)
    if x.shape[1] != layer.width:
        raise ValueError(
            f"x0 must have {layer.width} columns, the width, got {x.shape[1]}"
        )
    require_count("depth", depth)
    require_count("paths", paths)
    seeds = require_generator("rng", rng).integers(2**63, size=depth)

    def weights(number: int) -> Weights:
        fresh = np.random.default_rng(seeds[number])
        return draw(layer, paths=paths, rng=fresh)

    states = [np.repeat(x[None], paths, axis=0)]
    with np.errstate(over="ignore", invalid="ignore"):
        for number in range(depth):
            states.append(forward(_in_range(states[-1]), weights(number), layer))
        gradient = rng.standard_normal(states[-1].shape)
        measured: list[tuple[Array, ...]] = [(_rms(gradient),) * 4]
        for number in reversed(range(depth)):
            at = weights(number)
            gradient, grads = backward(states[number], at, layer, _in_range(gradient))
            parts = (grads.query, grads.key, grads.value, gradient)
            measured.insert(0, tuple(_rms(part) for part in parts))
    query, key, value, tokens = (
        _in_range(np.stack(one)) for one in zip(*measured, strict=True)
    )
    return Sizes(query[:-1], key[:-1], value[:-1], tokens)


def _mixed(seen: Array, weights: Weights, layer: AttentionLayer) -> tuple[Array, ...]:
    """Softmax weights and attention matrices, (paths, H, m, m) each."""
    tokens = seen[:, None]
    scores = (tokens @ weights.query) @ (tokens @ weights.key).mT / layer.width
    soft = softmax(scores / layer.temperature)
    m = scores.shape[-1]
    return soft, soft + (np.eye(m) - 1 / m) if layer.centered else soft


def _branch_gradients(
    seen: Array, weights: Weights, layer: AttentionLayer, after: Array
) -> tuple[Array, Weights]:
    """Gradients with respect to the input of the branch and to its weights."""
    soft, attention = _mixed(seen, weights, layer)
    tokens, gradient = seen[:, None], _scale(layer) * after[:, None]
    value = (attention @ tokens).mT @ gradient
    pulled = gradient @ weights.value.mT  # with respect to A X
    slopes = pulled @ tokens.mT  # D, with respect to A
    slopes = slopes - (soft * slopes).sum(axis=-1, keepdims=True)
    scores = soft * slopes / (layer.temperature * layer.width)  # E/n
    queries, keys = tokens @ weights.query, tokens @ weights.key
    to_queries, to_keys = scores @ keys, scores.mT @ queries
    before = attention.mT @ pulled
    before = before + to_queries @ weights.query.mT + to_keys @ weights.key.mT
    grads = Weights(tokens.mT @ to_queries, tokens.mT @ to_keys, value)
    return np.asarray(before.sum(axis=1)), grads


def _scale(layer: AttentionLayer) -> float:
    """γ/√(nH)."""
    return float(layer.branch / np.sqrt(layer.width * layer.heads))


def _rms(array: Array) -> Array:
    """Root mean square of all entries of each network, (paths,)."""
    return np.asarray(np.sqrt((array**2).mean(axis=tuple(range(1, array.ndim)))))


def _in_range(array: Array) -> Array:
    if not (np.abs(array) <= LARGEST).all():
        raise ValueError("x0 is too large, or depth: a network left the float range")
    return array


def _require_layer(layer: AttentionLayer) -> None:
    """Check that a layer is attention whose value weights are n × n."""
    if not isinstance(layer, PlainLayer | ShapedLayer):
        raise ValueError(f"layer must be a PlainLayer or a ShapedLayer, got {layer!r}")
    if isinstance(layer, PlainLayer) and layer.value_width is not None:
        raise ValueError(f"layer must be without value_width, got {layer!r}")


def _require_fit(x: npt.ArrayLike, weights: Weights, layer: AttentionLayer) -> Array:
    """Check tokens, weights and layer together; the tokens as an array."""
    _require_layer(layer)
    tokens = require_moderate("x", x)
    if tokens.ndim != 3 or not tokens.size or tokens.shape[2] != layer.width:
        raise ValueError(
            f"x must have shape (paths, m, {layer.width}), got {tokens.shape}"
        )
    if not isinstance(weights, Weights):
        raise ValueError(f"weights must be Weights, got {type(weights).__name__}")
    shape = len(tokens), layer.heads, layer.width
    widths = {"query": layer.key_width, "key": layer.key_width, "value": layer.width}
    for name, last in widths.items():
        part = np.asarray(getattr(weights, name))
        if part.shape != (*shape, last):
            raise ValueError(
                f"weights must have a {name} of shape {(*shape, last)},"
                f" got {part.shape}"
            )
        if not np.isfinite(part).all():
            raise ValueError(f"weights must be finite, its {name} is not")
    return tokens
