"""Attention layers with real weight matrices: the reference for the exact samplers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from lib.attention import softmax
from lib.core.checks import Array, require_count, require_generator, require_tokens
from lib.hierarchical.samplers import Heads, finite_heads

_WEIGHTS = 2**20  # weights of one matrix that are drawn at a time
_WIDEST = 2**14  # a matrix of this width takes 2 GiB
_CLIP = 100.0  # the source bounds its inputs, as its theorem asks


def dense(
    x: npt.ArrayLike,
    heads: int,
    size: int,
    *,
    score_scale: float = 1.0,
    head_width: int | None = None,
    output_matrix: bool = True,
    rng: np.random.Generator,
) -> Array:
    """Outputs of attention layers with real weights: all coordinates of each network.

    Parameters
    ----------
    x : array_like, shape (m, n)
        Tokens, the same for all networks.
    heads : int
        H.
    size : int
        Number of networks.
    score_scale, head_width, output_matrix
        As in :class:`FiniteAttention`.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray, shape (size, m, n), or (size, m, head width) without output matrix

    Raises
    ------
    ValueError
        For tokens that are no finite matrix or have entries beyond 1e50, counts below
        1, or a score scale that is not a number from 0 to 1e100.
    """
    tokens = require_tokens("x", x)
    if np.abs(tokens).max() > 1e50:
        raise ValueError(f"x must not exceed 1e+50, got {np.abs(tokens).max():.3g}")
    n = tokens.shape[1]
    attention = finite_heads(heads, score_scale, n, head_width, output_matrix, _WIDEST)
    size = require_count("size", size)
    require_generator("rng", rng)
    return _outputs(lambda _: tokens, n, attention, size, rng)


def dense_experiment(
    tokens: int,
    width: int,
    heads: int,
    size: int,
    *,
    score_scale: float = 1.0,
    head_width: int | None = None,
    rng: np.random.Generator,
) -> Array:
    """The source's experiment with real weights, those of the inputs included.

    The arguments are those of :func:`experiment`. The source clips its inputs at ±100.

    Returns
    -------
    ndarray, shape (size, m, n)

    Raises
    ------
    ValueError
        As :func:`experiment`.
    """
    attention = finite_heads(heads, score_scale, width, head_width, most=_WIDEST)
    tokens, width = require_count("tokens", tokens), int(width)
    size = require_count("size", size)
    require_generator("rng", rng)

    def inputs(networks: int) -> Array:
        h = rng.standard_normal((networks, width, 1))
        x = [
            rng.standard_normal((networks, width, width)) @ h / np.sqrt(width)
            for _ in range(tokens)
        ]
        drawn = np.concatenate(x, axis=-1).swapaxes(-1, -2)  # (networks, m, n)
        return np.asarray(np.clip(drawn, -_CLIP, _CLIP))

    return _outputs(inputs, width, attention, size, rng)


def _outputs(
    inputs: Callable[[int], Array],
    n: int,
    attention: Heads,
    size: int,
    rng: np.random.Generator,
) -> Array:
    """All columns of the outputs of networks with inputs (networks, m, n) or (m, n)."""
    width = attention.head_width
    assert width is not None
    drawn, step = [], max(1, _WEIGHTS // (n * width))
    for start in range(0, size, step):
        networks = min(step, size - start)
        x, total = inputs(networks), np.zeros(())
        for _ in range(attention.heads):
            w_query, w_key, w_value = rng.standard_normal((3, networks, n, width))
            query, key, value = x @ w_query, x @ w_key, x @ w_value
            scores = query @ key.swapaxes(-1, -2) / n  # weights have variance 1/n
            weights = softmax(attention.score_scale / np.sqrt(width) * scores)
            mixed = weights @ value / np.sqrt(n)  # (networks, m, n_H)
            if attention.output_matrix:
                w_output = rng.standard_normal((networks, width, n))
                mixed = mixed @ w_output / np.sqrt(width)  # (networks, m, n)
            total = total + mixed
        drawn.append(total / np.sqrt(attention.heads))
    return np.concatenate(drawn)
