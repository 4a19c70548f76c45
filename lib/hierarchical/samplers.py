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

from lib.attention import softmax
from lib.core.checks import (
    LARGEST,
    Array,
    require_count,
    require_flag,
    require_generator,
    require_within,
)
from lib.core.wishart import factor, product

_CELLS = 2**17  # numbers drawn at a time, few enough for the cache of a processor


@dataclass(frozen=True)
class Inputs:
    """Number of tokens, and what draws roots C of V for some number of networks.

    The roots are (networks, 1, m, r), or (1, 1, m, r) for one that serves them all.
    """

    tokens: int
    roots: Callable[[int], Array]


@dataclass(frozen=True)
class Heads:
    """Heads, score scale σ, width of a head (None for ∞), and whether W^O is there.

    ``columns`` are those that the output has.
    """

    heads: int
    score_scale: float
    head_width: int | None = None
    output_matrix: bool = True
    columns: int = 2**31 - 1


def limit_heads(heads: int, score_scale: float) -> Heads:
    """Layer of infinite width after the checks of its parts."""
    heads = require_count("heads", heads)
    return Heads(heads, require_within("score_scale", score_scale, 0, LARGEST))


def finite_heads(
    heads: int,
    score_scale: float,
    width: int,
    head_width: int | None = None,
    output_matrix: bool = True,
    most: int = 2**53,
) -> Heads:
    """Layer of some width, at most ``most``, after the checks of its parts."""
    attention = limit_heads(heads, score_scale)
    inner = width = require_count("width", width, most=most)
    if head_width is not None:
        inner = require_count("head_width", head_width, most=most)
    output_matrix = require_flag("output_matrix", output_matrix)
    columns = min(width if output_matrix else inner, 2**31 - 1)
    return replace(
        attention, head_width=inner, output_matrix=output_matrix, columns=columns
    )


def fixed_inputs(root: Array) -> Inputs:
    """The same root of the Gram matrix for every network."""
    return Inputs(len(root), lambda networks: root[None, None])


def draw_outputs(
    inputs: Inputs, attention: Heads, size: int, columns: int, rng: np.random.Generator
) -> Array:
    """Draws of some columns of the output, shape (size, m, columns)."""

    def head(root: Array, networks: int, heads: int) -> Array:
        r = root.shape[-1]
        inner = _scaled_product(networks * heads, r, r, attention.head_width, rng)
        inner = attention.score_scale * inner.reshape(networks, heads, r, r)
        weights = softmax(root @ inner @ root.swapaxes(-1, -2))  # (…, heads, m, m)
        value_width = attention.head_width if attention.output_matrix else None
        values = _scaled_product(networks * heads, r, columns, value_width, rng)
        values = root @ values.reshape(networks, heads, r, columns)
        return np.asarray((weights @ values).sum(axis=1))  # (networks, m, columns)

    m = inputs.tokens
    total = _summed_over_heads(inputs, head, size, attention.heads, m * (m + columns))
    return np.asarray(total / np.sqrt(attention.heads))


def draw_covariances(
    inputs: Inputs, attention: Heads, size: int, rng: np.random.Generator
) -> Array:
    """Draws of the conditional covariance Γ of one column, shape (size, m, m)."""

    def head(root: Array, networks: int, heads: int) -> Array:
        half = head_roots(root, attention, networks, heads, rng)
        return np.asarray((half @ half.swapaxes(-1, -2)).sum(axis=1))

    m = inputs.tokens
    drawn = _summed_over_heads(inputs, head, size, attention.heads, 2 * m * m)
    return np.asarray(drawn / attention.heads)


def head_roots(
    root: Array, attention: Heads, networks: int, heads: int, rng: np.random.Generator
) -> Array:
    """Roots of what each head adds to HΓ, shape (networks, heads, m, k)."""
    r = root.shape[-1]
    inner = _scaled_product(networks * heads, r, r, attention.head_width, rng)
    inner = attention.score_scale * inner.reshape(networks, heads, r, r)
    half = softmax(root @ inner @ root.swapaxes(-1, -2)) @ root  # (…, m, r)
    if attention.output_matrix and attention.head_width is not None:
        n = attention.head_width
        drawn = factor(networks * heads, r, n, rng) / np.sqrt(n)
        half = half @ drawn.reshape(networks, heads, r, -1)
    return np.asarray(half)


def draw_row_variances(
    inputs: Inputs, attention: Heads, size: int, row: int, rng: np.random.Generator
) -> Array:
    """Draws of the conditional variance v of one row, shape (size,).

    Its scores are normal with a random scale, the norm of one query.
    """
    n = attention.head_width

    def chi(networks: int, heads: int) -> Array:
        if n is None:
            return np.ones((networks, heads))
        return np.asarray(rng.chisquare(n, (networks, heads)) / n)

    def head(root: Array, networks: int, heads: int) -> Array:
        times = chi(networks, heads)
        normals = rng.standard_normal((networks, heads, root.shape[-1]))
        variances = row_variances(root, row, attention.score_scale, times, normals)
        if attention.output_matrix:
            variances = variances * chi(networks, heads)
        return np.asarray(variances.sum(axis=1))

    m = inputs.tokens
    drawn = _summed_over_heads(inputs, head, size, attention.heads, 2 * m)
    return np.asarray(drawn / attention.heads)


def row_variances(
    root: Array, row: int, score_scale: Array | float, times: Array, normals: Array
) -> Array:
    """Variance s^T V s of a row in each head, (networks, heads), from what is drawn.

    ``normals`` (networks, heads, r) and ``times`` (networks, heads) make its scores, of
    which the factor of the output matrix is no part; roots are as in :class:`Inputs`.
    """
    norms = (root[..., row, :] ** 2).sum(axis=-1)  # (…, 1): V_ii
    scale = score_scale * np.sqrt(norms * times)
    scores = np.einsum("...mr,...r->...m", root, normals)  # (networks, heads, m)
    weights = softmax(scale[..., None] * scores)
    mixed = np.einsum("...m,...mr->...r", weights, root)
    return np.asarray((mixed**2).sum(axis=-1))


def _summed_over_heads(
    inputs: Inputs,
    head: Callable[[Array, int, int], Array],
    size: int,
    heads: int,
    cells: int,
) -> Array:
    """Sums over all heads for each of ``size`` networks, drawn in blocks."""
    block = max(1, _CELLS // cells)  # heads drawn at a time
    step = max(1, block // heads)
    drawn = []
    for start in range(0, size, step):
        networks = min(step, size - start)
        root = inputs.roots(networks)
        parts = range(0, heads, block)
        drawn.append(
            sum(
                (head(root, networks, min(block, heads - first)) for first in parts),
                start=np.zeros(()),
            )
        )
    return np.concatenate(drawn)


def _scaled_product(
    paths: int, rows: int, columns: int, degrees: int | None, rng: np.random.Generator
) -> Array:
    """G₁G₂ᵀ/√degrees of normal matrices, (paths, rows, columns); normal if ∞."""
    if degrees is None:
        return rng.standard_normal((paths, rows, columns))
    drawn = product(paths, rows, columns, degrees, rng)
    return np.asarray(drawn / np.sqrt(degrees))


def random_inputs(tokens: int, width: int, rng: np.random.Generator) -> Inputs:
    r"""The inputs of the source's experiment, others for each network.

    There :math:`x_i = W^i h` with a common h ~ N(0, I), so that
    :math:`V = \tfrac{q}{n} GG^\top`, with :math:`q = \chi^2_n/n` and a normal m × n
    matrix G.
    """

    def roots(networks: int) -> Array:
        scale = np.sqrt(rng.chisquare(width, (networks, 1, 1))) / width
        drawn = scale * factor(networks, tokens, width, rng)  # (networks, m, r)
        return np.asarray(drawn[:, None])

    return Inputs(tokens, roots)


def experiment(
    tokens: int,
    width: int,
    heads: int,
    size: int,
    *,
    score_scale: float = 1.0,
    head_width: int | None = None,
    coordinates: int | None = None,
    rng: np.random.Generator,
) -> Array:
    r"""Outputs with the random inputs of the source's experiment, exact in law.

    There :math:`x_i = W^i h`, with weights of variance 1/n and one h ~ N(0, I) for all
    tokens; each network has inputs of its own. As the width grows V tends to I.

    Parameters
    ----------
    tokens : int
        m.
    width, heads : int
        n and H.
    size : int
        Number of networks.
    score_scale : float
        σ ≥ 0.
    head_width : int, optional
        Width of a head; n if left out.
    coordinates : int, optional
        Coordinates of each network; one if left out.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray, shape (size, m), or (size, m, coordinates) where that is given

    Raises
    ------
    ValueError
        For counts below 1, more coordinates than the width, or a score scale that is
        not a number from 0 to 1e100.

    References
    ----------
    Sakai, Karakida and Imaizumi, *Infinite-Width Limit of a Single Attention Heads*,
    2025, arXiv:2506.00846, section of simulations.
    """
    attention = finite_heads(heads, score_scale, width, head_width)
    tokens, size = require_count("tokens", tokens), require_count("size", size)
    columns = 1 if coordinates is None else coordinates
    columns = require_count("coordinates", columns, most=attention.columns)
    inputs = random_inputs(tokens, int(width), require_generator("rng", rng))
    drawn = draw_outputs(inputs, attention, size, columns, rng)
    return drawn[..., 0] if coordinates is None else drawn


def experiment_variance(
    tokens: int,
    width: int,
    heads: int,
    size: int,
    *,
    score_scale: float = 1.0,
    head_width: int | None = None,
    rng: np.random.Generator,
) -> Array:
    """Variance of an output coordinate given scores, inputs and values; one row.

    By symmetry all rows have the same law. The arguments are those of
    :func:`experiment`.

    Returns
    -------
    ndarray, shape (size,)
        Draws of v for :class:`ScaleMixture`.

    Raises
    ------
    ValueError
        As :func:`experiment`.
    """
    attention = finite_heads(heads, score_scale, width, head_width)
    tokens, size = require_count("tokens", tokens), require_count("size", size)
    inputs = random_inputs(tokens, int(width), require_generator("rng", rng))
    return draw_row_variances(inputs, attention, size, 0, rng)
