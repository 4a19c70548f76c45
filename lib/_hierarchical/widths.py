r"""Samplers of an attention layer of any width, and the same with real weights.

A product of two normal matrices, :math:`G_1 G_2^\top` with n columns each, is drawn
from the Bartlett factor of the smaller one: :math:`G_1 = R\,\Theta` with orthonormal
rows in :math:`\Theta`, and :math:`\Theta G_2^\top` is normal again and independent of
R. The scores of a head are such a product between two roots of the Gram matrix, and so
are values times output weights. Neither costs more at a larger width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from lib._checks import LARGEST, Array, require_count, require_flag, require_within
from lib._wishart import factor, product
from lib.attention import softmax

_CELLS = 2**17  # numbers drawn at a time, few enough for the cache of a processor


@dataclass(frozen=True)
class Inputs:
    """Number of tokens, and what draws roots C of V for some number of networks.

    The roots are (networks, 1, m, r), or (1, 1, m, r) for one that serves them all.
    """

    tokens: int
    roots: Callable[[int], Array]


@dataclass(frozen=True)
class Layer:
    """Heads, score scale σ, width of a head (None for ∞), and whether W^O is there.

    ``columns`` are those that the output has.
    """

    heads: int
    score_scale: float
    head_width: int | None = None
    output_matrix: bool = True
    columns: int = 2**31 - 1


def limit_layer(heads: int, score_scale: float) -> Layer:
    """Layer of infinite width after the checks of its parts."""
    heads = require_count("heads", heads)
    return Layer(heads, require_within("score_scale", score_scale, 0, LARGEST))


def finite_layer(
    heads: int,
    score_scale: float,
    width: int,
    head_width: int | None = None,
    output_matrix: bool = True,
    most: int = 2**53,
) -> Layer:
    """Layer of some width, at most ``most``, after the checks of its parts."""
    layer = limit_layer(heads, score_scale)
    inner = width = require_count("width", width, most=most)
    if head_width is not None:
        inner = require_count("head_width", head_width, most=most)
    output_matrix = require_flag("output_matrix", output_matrix)
    columns = min(width if output_matrix else inner, 2**31 - 1)
    return replace(
        layer, head_width=inner, output_matrix=output_matrix, columns=columns
    )


def fixed(root: Array) -> Inputs:
    """The same root of the Gram matrix for every network."""
    return Inputs(len(root), lambda networks: root[None, None])


def outputs(
    inputs: Inputs, layer: Layer, size: int, columns: int, rng: np.random.Generator
) -> Array:
    """Draws of some columns of the output, shape (size, m, columns)."""

    def head(root: Array, networks: int, heads: int) -> Array:
        r = root.shape[-1]
        inner = _scaled_product(networks * heads, r, r, layer.head_width, rng)
        inner = layer.score_scale * inner.reshape(networks, heads, r, r)
        weights = softmax(root @ inner @ root.swapaxes(-1, -2))  # (…, heads, m, m)
        value_width = layer.head_width if layer.output_matrix else None
        values = _scaled_product(networks * heads, r, columns, value_width, rng)
        values = root @ values.reshape(networks, heads, r, columns)
        return np.asarray((weights @ values).sum(axis=1))  # (networks, m, columns)

    m = inputs.tokens
    total = _over_heads(inputs, head, size, layer.heads, m * (m + columns))
    return np.asarray(total / np.sqrt(layer.heads))


def covariances(
    inputs: Inputs, layer: Layer, size: int, rng: np.random.Generator
) -> Array:
    """Draws of the conditional covariance Γ of one column, shape (size, m, m)."""

    def head(root: Array, networks: int, heads: int) -> Array:
        half = head_roots(root, layer, networks, heads, rng)
        return np.asarray((half @ half.swapaxes(-1, -2)).sum(axis=1))

    m = inputs.tokens
    drawn = _over_heads(inputs, head, size, layer.heads, 2 * m * m)
    return np.asarray(drawn / layer.heads)


def head_roots(
    root: Array, layer: Layer, networks: int, heads: int, rng: np.random.Generator
) -> Array:
    """Roots of what each head adds to HΓ, shape (networks, heads, m, k)."""
    r = root.shape[-1]
    inner = _scaled_product(networks * heads, r, r, layer.head_width, rng)
    inner = layer.score_scale * inner.reshape(networks, heads, r, r)
    half = softmax(root @ inner @ root.swapaxes(-1, -2)) @ root  # (…, m, r)
    if layer.output_matrix and layer.head_width is not None:
        n = layer.head_width
        drawn = factor(networks * heads, r, n, rng) / np.sqrt(n)
        half = half @ drawn.reshape(networks, heads, r, -1)
    return np.asarray(half)


def row_variances(
    inputs: Inputs, layer: Layer, size: int, row: int, rng: np.random.Generator
) -> Array:
    """Draws of the conditional variance v of one row, shape (size,).

    Its scores are normal with a random scale, the norm of one query.
    """
    n = layer.head_width

    def chi(networks: int, heads: int) -> Array | float:
        return 1.0 if n is None else rng.chisquare(n, (networks, heads)) / n

    def head(root: Array, networks: int, heads: int) -> Array:
        r = root.shape[-1]
        norms = (root[..., row, :] ** 2).sum(axis=-1)  # (…, 1): V_ii
        scale = layer.score_scale * np.sqrt(norms * chi(networks, heads))
        normal = rng.standard_normal((networks, heads, r))
        scores = np.einsum("...mr,...r->...m", root, normal)  # (networks, heads, m)
        weights = softmax(scale[..., None] * scores)
        mixed = np.einsum("...m,...mr->...r", weights, root)
        variance = (mixed**2).sum(axis=-1)  # (networks, heads)
        if layer.output_matrix:
            variance = variance * chi(networks, heads)
        return np.asarray(variance.sum(axis=1))

    m = inputs.tokens
    drawn = _over_heads(inputs, head, size, layer.heads, 2 * m)
    return np.asarray(drawn / layer.heads)


def _over_heads(
    inputs: Inputs,
    head: Callable[[Array, int, int], Array],
    size: int,
    heads: int,
    cells: int,
) -> Array:
    """Sums over all heads for each of ``size`` networks, drawn in blocks."""
    block = max(1, _CELLS // cells)  # heads drawn at a time
    step = max(1, block // heads)
    found = []
    for start in range(0, size, step):
        networks = min(step, size - start)
        root = inputs.roots(networks)
        parts = range(0, heads, block)
        found.append(
            sum(
                (head(root, networks, min(block, heads - first)) for first in parts),
                start=np.zeros(()),
            )
        )
    return np.concatenate(found)


def _scaled_product(
    paths: int, rows: int, columns: int, degrees: int | None, rng: np.random.Generator
) -> Array:
    """G₁G₂ᵀ/√degrees of normal matrices, (paths, rows, columns); normal if ∞."""
    if degrees is None:
        return rng.standard_normal((paths, rows, columns))
    drawn = product(paths, rows, columns, degrees, rng)
    return np.asarray(drawn / np.sqrt(degrees))
