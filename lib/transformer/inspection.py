"""Measurements of tokens, layer by layer, in this book's models or in any other."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lib.core.checks import Array, require_count, require_finite, require_positive
from lib.sphere.geometry import cluster_count
from lib.transformer.tensors import array_or_file

Source = npt.ArrayLike | str | os.PathLike[str]

#: The quantiles of the cosines that are kept.
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True, eq=False)
class Inspection:
    r"""Measurements of tokens and weights, one row per layer; see :func:`inspect`.

    Attributes
    ----------
    cosines : ndarray, shape (layers,)
        Mean of :math:`\cos(x_i, x_j)` over pairs i ≠ j of tokens of one input.
    quantiles : ndarray, shape (layers, 5)
        Their quantiles of levels 0.05, 0.25, 0.5, 0.75, 0.95.
    histogram : ndarray, shape (layers, bins)
        Share of the pairs in each of the equal parts of [−1, 1] between ``edges``.
    edges : ndarray, shape (bins + 1,)
    clusters : ndarray, shape (layers,)
        Mean effective number of clusters of an input, by
        :func:`lib.sphere.cluster_count`: each token counts as one over the number of
        tokens, itself among them, whose chord on the unit sphere is at most ``radius``.
    rank : ndarray, shape (layers,)
        Mean effective rank :math:`(\operatorname{tr} C)^2/\lVert C\rVert_F^2 =
        m^2/\sum_{ij} C_{ij}^2` of the matrix C of cosines of an input: 1 for tokens of
        one direction, m for orthogonal ones.
    kurtosis : ndarray, shape (layers,)
        Mean over tokens of :math:`m_4/m_2^2 - 3 (n-1)/(n+1)`, with the central moments
        of a token's n coordinates. For independent Gaussian coordinates its mean is 0
        for any n; a few large coordinates make it large.
    norms : ndarray, shape (layers,)
        Root mean square of all coordinates.
    entropy : ndarray, shape (layers, heads), or None
        Mean entropy of a row of weights over log m: 1 for equal weights.
    largest : ndarray, shape (layers, heads), or None
        Mean largest weight of a row.
    spread : ndarray, shape (layers, heads), or None
        Mean over rows of the standard deviation of log weights, weights of 0 left out.
        For a softmax it is that of the scores in the row, σ, over the temperature.
    columns : ndarray, shape (layers, heads), or None
        Mean of :math:`\frac1{2m} \sum_j |\sum_i a_{ij} - 1|`, the distance from doubly
        stochastic: 0 for equal sums of columns, at most 1.
    """

    cosines: Array
    quantiles: Array
    histogram: Array
    edges: Array
    clusters: Array
    rank: Array
    kurtosis: Array
    norms: Array
    entropy: Array | None = None
    largest: Array | None = None
    spread: Array | None = None
    columns: Array | None = None


def inspect(
    hidden: Source,
    weights: Source | None = None,
    *,
    bins: int = 40,
    radius: float = 0.5,
) -> Inspection:
    """Measure the tokens and the attention of a model, layer by layer.

    Parameters
    ----------
    hidden : array_like or path, shape (layers, m, n) or (layers, batch, m, n)
        The tokens of each layer, m ≥ 2 of them with n ≥ 2 coordinates. A path names a
        ``.npy`` file, or a ``.safetensors`` file whose tensor is called ``hidden`` or
        is the only one.
    weights : array_like or path, optional
        Attention of each layer, shape (layers, heads, m, m) or (layers, batch, heads,
        m, m): rows are queries and sum to 1, to 1 % for what was stored in few digits.
        The tensor of a ``.safetensors`` file is called ``weights``. There may be one
        layer less than of tokens.
    bins : int
        Parts of [−1, 1] in the histograms of cosines.
    radius : float
        Largest chord between neighbors in a cluster, for tokens divided by their
        lengths; the default, 0.5, is an angle of 29 degrees.

    Returns
    -------
    Inspection

    Raises
    ------
    ValueError
        For arrays of another shape, numbers that are not finite, tokens that are 0,
        rows that do not sum to 1, and files that are missing, cut short or of another
        format.

    Notes
    -----
    The tokens of this book's own models are in a trace::

        trace = model.forward(x, trace=True)
        inspect(trace.tokens, trace.weights)

    Those of a model of the ``transformers`` library, for one text without padding, are
    stored by ::

        model = AutoModel.from_pretrained(name, attn_implementation="eager").eval()
        with torch.no_grad():
            out = model(**tokenizer(text, return_tensors="pt"),
                        output_hidden_states=True, output_attentions=True)
        hidden = torch.stack(out.hidden_states)[:, 0]   # (layers + 1, m, n)
        weights = torch.stack(out.attentions)[:, 0]     # (layers, heads, m, m)
        np.save("hidden.npy", hidden.float().numpy())
        np.save("weights.npy", weights.float().numpy())

    and measured by ``inspect("hidden.npy", "weights.npy")``. With
    ``safetensors.torch.save_file({"hidden": hidden, "weights": weights}, path)`` both
    are in one file, in the model's own digits, and ``inspect(path, path)`` reads it.
    The last entry of ``hidden_states`` is, in most models, after the final
    normalization.
    """
    tokens = _require_tokens(array_or_file("hidden", hidden))
    require_count("bins", bins)
    require_positive("radius", radius)
    edges = np.linspace(-1, 1, bins + 1)
    rows = [_measured(layer, edges, radius) for layer in tokens]
    measured = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    if weights is not None:
        given = _require_attention(array_or_file("weights", weights), tokens.shape)
        measured |= _sharpness(given)
    return Inspection(edges=edges, **measured)


def _measured(x: Array, edges: Array, radius: float) -> dict[str, Array]:
    """Measure the tokens (batch, m, n) of one layer."""
    m, n = x.shape[1:]
    largest = np.abs(x).max(axis=-1, keepdims=True)
    if not largest.all():
        raise ValueError("hidden has a token that is 0, which has no direction")
    scaled = x / largest  # so that squares stay in range
    units = scaled / np.linalg.norm(scaled, axis=-1, keepdims=True)
    gram = np.clip(units @ units.swapaxes(-1, -2), -1, 1)  # (batch, m, m)
    pairs = gram[:, *np.triu_indices(m, 1)].ravel()
    centered = scaled - scaled.mean(axis=-1, keepdims=True)
    squares = centered**2
    second = np.mean(squares, axis=-1)
    fourth = np.mean(squares**2, axis=-1)
    # All coordinates equal: no shape to speak of.
    ratio = np.divide(fourth, second**2, out=np.ones_like(fourth), where=second > 0)
    top = float(largest.max())
    return {
        "cosines": pairs.mean(),
        "quantiles": np.quantile(pairs, LEVELS),
        "histogram": np.histogram(pairs, edges)[0] / pairs.size,
        "clusters": np.mean(cluster_count(units, radius)),
        "rank": np.mean(m**2 / np.sum(gram**2, axis=(-2, -1))),
        "kurtosis": np.mean(ratio) - 3 * (n - 1) / (n + 1),
        "norms": top * np.sqrt(np.mean((x / top) ** 2)),
    }


def _sharpness(weights: Array) -> dict[str, Array]:
    """Measure how sharp weights (layers, batch, heads, m, m) are."""
    m = weights.shape[-1]
    positive = weights > 0
    logs = np.log(weights, out=np.zeros_like(weights), where=positive)
    count = positive.sum(axis=-1)
    mean = logs.sum(axis=-1) / count
    squares = np.where(positive, (logs - mean[..., None]) ** 2, 0)
    over_rows = (1, 3)
    return {
        "entropy": -np.mean((weights * logs).sum(axis=-1), axis=over_rows) / np.log(m),
        "largest": np.mean(weights.max(axis=-1), axis=over_rows),
        "spread": np.mean(np.sqrt(squares.sum(axis=-1) / count), axis=over_rows),
        "columns": np.mean(np.abs(weights.sum(axis=-2) - 1), axis=over_rows) / 2,
    }


def _require_tokens(tokens: Array) -> Array:
    """Tokens as (layers, batch, m, n)."""
    if tokens.ndim == 3:
        tokens = tokens[:, None]
    if tokens.ndim != 4 or not tokens.size or min(tokens.shape[2:]) < 2:
        raise ValueError(
            "hidden must have shape (layers, m, n) or (layers, batch, m, n) with m, n"
            f" of at least 2, got {tokens.shape}"
        )
    return require_finite("hidden", tokens)


def _require_attention(weights: Array, tokens: tuple[int, ...]) -> Array:
    """Weights as (layers, batch, heads, m, m)."""
    m = tokens[2]
    if weights.ndim == 4:
        weights = weights[:, None]
    if weights.ndim != 5 or not weights.size or weights.shape[-2:] != (m, m):
        raise ValueError(
            f"weights must have shape (layers, heads, {m}, {m}) or (layers, batch,"
            f" heads, {m}, {m}), got {weights.shape}"
        )
    require_finite("weights", weights)
    if weights.min() < 0:
        raise ValueError(f"weights must not be negative, got {weights.min():.3g}")
    off = np.abs(weights.sum(axis=-1) - 1).max()
    if not off <= 0.01:
        raise ValueError(
            f"weights must have rows that sum to 1, one is off by {off:.3g}"
        )
    return weights
