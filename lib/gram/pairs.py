r"""Two tokens through layers, many pairs at once, by triangular roots and given draws.

The steps are those of :func:`lib.gram.simulate`. They have no branch, so that the page
of a live exhibit makes them as well: a pair next to collapse, or one token much longer
than the other, does not stop the others.
"""

from __future__ import annotations

import numpy as np

from lib.core.checks import Array
from lib.gram.base import with_unseen
from lib.gram.layers import ShapedLayer


def layer_step(
    layer: ShapedLayer,
    root: Array,
    keys: Array,
    queries: Array,
    seen: Array,
    unseen: Array,
) -> Array:
    """Roots of two tokens after a layer of one head, all of shape (paths, 2, 2).

    ``keys`` and ``unseen`` are Bartlett factors of n_k and n − 2 degrees of freedom,
    ``queries`` and ``seen`` normal matrices, as :func:`lib.gram.simulate` draws them.
    """
    inner = layer._head_root(root, keys @ queries)
    inner = inner * (layer.branch / np.sqrt(layer.width))
    return with_unseen(layer.skip * root + inner @ seen, inner, unseen, triangular_pair)


def triangular_pair(root: Array) -> Array:
    """Lower triangular T with TTᵀ = root rootᵀ, of two rows (..., 2, r).

    By Gram and Schmidt on rows of moderate size: nothing is squared that could be lost,
    and the diagonal is not negative.
    """
    sizes = np.abs(root).max(axis=-1, keepdims=True)  # (..., 2, 1)
    rows = root / np.where(sizes > 0, sizes, 1)
    first, second = rows[..., 0, :], rows[..., 1, :]  # (..., r)
    length = _norm(first)
    along = first / np.where(length > 0, length, 1)
    shadow = (along * second).sum(axis=-1, keepdims=True)
    rest = _norm(second - shadow * along)
    factor = [
        np.concatenate([length, np.zeros_like(length)], axis=-1),
        np.concatenate([shadow, rest], axis=-1),
    ]
    return np.asarray(sizes * np.stack(factor, axis=-2))


def cosine(root: Array) -> Array:
    """Cosines of two tokens by their triangular roots (..., 2, 2), none of them 0."""
    row = root[..., 1, :]
    return np.asarray(row[..., 0] / _norm(row)[..., 0])


def _norm(rows: Array) -> Array:
    return np.asarray(np.sqrt((rows * rows).sum(axis=-1, keepdims=True)))
