"""Rank collapse: how fast plain attention makes all tokens equal."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lib.attention import softmax
from lib.core.checks import Array
from lib.core.psd import require_gram
from lib.core.wishart import bartlett, product
from lib.gram.base import Layer, require_run, start_root
from lib.gram.layers import PlainLayer


def log_residual(
    gram0: npt.ArrayLike,
    layer: PlainLayer,
    depth: int,
    *,
    paths: int,
    rng: np.random.Generator,
) -> Array:
    r"""Logarithm of how far tokens are from being equal, under attention without skip.

    The distance is :math:`\lVert JX\rVert_F/\lVert X\rVert_F`. It falls so fast that
    after a few layers no floating point difference of tokens resolves it. Here the mean
    and the deviations are carried apart, the deviations with a logarithm of their size,
    and differences of weights come from differences of scores by ``expm1``. Exact in
    law like :func:`lib.gram.simulate`.

    Parameters
    ----------
    gram0 : array_like, shape (m, m)
        Gram matrix of the input, of tokens that are not all equal.
    layer : PlainLayer
        With skip 0 and one head, not normalized, of a width of at least m.
    depth, paths, rng
        As in :func:`lib.gram.simulate`.

    Returns
    -------
    ndarray, shape (depth + 1, paths)

    Raises
    ------
    ValueError
        As :func:`lib.gram.simulate`, for another layer, or tokens that are all equal.
    """
    gram = require_gram("gram0", gram0)
    require_run(layer, depth, paths, rng, 1)
    _require_plain(layer, len(gram))
    root = np.stack([start_root(gram, 2 * len(gram))] * paths)  # (paths, m, m)
    mean = root.mean(axis=1, keepdims=True)  # (paths, 1, m)
    apart, size = root - mean, np.zeros((paths, 1, 1))
    logarithms = []
    for layers in range(depth + 1):
        if layers:
            with np.errstate(over="ignore", invalid="ignore"):
                mean, apart, size = _collapsing(mean, apart, size, layer, rng)
            if not np.isfinite(mean).all() or not np.isfinite(apart).all():
                raise ValueError("gram0 is too large: scores left the float range")
        norm = np.linalg.norm(apart, axis=(1, 2), keepdims=True)
        if not (norm > 0).all():
            raise ValueError("gram0 has tokens that are all equal: no residual")
        apart, size = apart / norm, size + np.log(norm)  # deviations are e^size apart
        center = np.sqrt(len(gram)) * np.linalg.norm(mean, axis=(1, 2))
        logarithms.append(
            size[:, 0, 0] - np.log(np.hypot(center, np.exp(size[:, 0, 0])))
        )
    return np.stack(logarithms)


def _collapsing(
    mean: Array, apart: Array, size: Array, layer: PlainLayer, rng: np.random.Generator
) -> tuple[Array, Array, Array]:
    """Mean and deviations after one layer of attention without skip connection.

    With C = 1c + D the scores are, up to a constant in each row, a + δ with
    a = c M Dᵀ and δ = D M Dᵀ. Hence A = p e^δ / Σ p e^δ with p = softmax(a), and
    A − 1p = p (expm1 δ − ε)/(1 + ε), ε = Σ p expm1 δ. Tokens turn into (c + A D) G.
    D is ``apart`` times e^size, so that A − 1p is carried over e^(2 size).
    """
    paths, m, _ = apart.shape
    small = np.exp(size)
    square = small**2
    middle = product(paths, m, m, layer.key_width, rng) / layer.temperature
    columns = middle @ apart.swapaxes(-1, -2)
    p = softmax(small * mean @ columns)  # (paths, 1, m)
    delta = apart @ columns  # δ over e^(2 size), (paths, m, m)
    # Where e^(2 size) is below rounding, expm1 is the identity to rounding.
    divisor = np.maximum(square, 1e-30)
    growth = np.expm1(divisor * delta) / divisor
    mean_growth = (p * growth).sum(axis=-1, keepdims=True)
    deviations = (
        p * (growth - mean_growth) / (1 + square * mean_growth)
    ) @ apart  # (paths, m, m)
    shift = deviations.mean(axis=1, keepdims=True)
    center = mean + small * (p @ apart + square * shift)
    scale = layer.branch / np.sqrt(layer.width)
    weights = scale * bartlett(paths, m, layer.width, rng)
    return center @ weights, (deviations - shift) @ weights, 3 * size


def _require_plain(layer: Layer, m: int) -> None:
    """Check that a layer is what the representation by deviations covers."""
    if not isinstance(layer, PlainLayer):
        raise ValueError(f"layer must be a PlainLayer, got {layer!r}")
    heads = layer.heads != 1 or layer.value_width is not None
    if layer.skip != 0 or layer.branch == 0 or heads or layer.pre_norm:
        raise ValueError(
            "layer must have skip 0, a branch other than 0, one head without"
            f" value_width and no normalization, got {layer!r}"
        )
    if layer.width < m:
        raise ValueError(f"layer must have a width of at least {m}, got {layer.width}")
