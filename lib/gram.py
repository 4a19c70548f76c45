r"""Gram matrices of tokens through layers of finite width, exact in law.

The tokens are the rows of X, shape (m, n). A layer of shaped attention is

.. math:: X' = \lambda X + \tfrac{\gamma}{\sqrt n} A X W^V, \qquad
          A = I + \mathrm{softmax}(Y/\tau) - \tfrac1m 11^\top, \qquad
          Y = \tfrac1n X W^Q (W^K)^\top X^\top,

with independent standard normal weights and :math:`\tau = \tau_0 \sqrt{n n_k}`. The
Gram matrix :math:`V = XX^\top/n` is a Markov chain by itself: its next value depends
on X only through V. That is simulated here at a cost that does not depend on n.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lib._checks import (
    Array,
    as_float,
    require_count,
    require_finite,
    require_generator,
    require_gram,
    require_matrix,
    require_number,
    require_positive,
)
from lib._trajectory import Trajectory
from lib.attention import shaped_attention

__all__ = ["ShapedLayer", "Trajectory", "bartlett", "dense_simulate", "simulate"]

_RANK = 1e-12  # eigenvalues below this share of the trace count as zero
_LARGEST = 1e100  # entries beyond overflow in a product of a few of them


@dataclass(frozen=True)
class ShapedLayer:
    """One residual layer of shaped attention.

    Parameters
    ----------
    width : int
        n, coordinates of a token.
    key_width : int
        Columns of the query and of the key weights.
    skip, branch : float
        λ and γ; λ² + γ² = 1 is usual, not forced.
    tau0 : float
        The temperature is τ = tau0 · √(width · key_width).

    Raises
    ------
    ValueError
        For widths below 1, weights that are not finite, a tau0 that is not positive.
    """

    width: int
    key_width: int
    skip: float
    branch: float
    tau0: float

    def __post_init__(self) -> None:
        require_count("width", self.width, most=2**53)
        require_count("key_width", self.key_width, most=2**53)
        require_number("skip", self.skip)
        require_number("branch", self.branch)
        require_positive("tau0", self.tau0)

    @property
    def temperature(self) -> float:
        """τ = tau0 · √(width · key_width)."""
        return float(self.tau0 * np.sqrt(float(self.width) * float(self.key_width)))


def simulate(
    gram0: npt.ArrayLike,
    layer: ShapedLayer,
    depth: int,
    *,
    paths: int,
    rng: np.random.Generator,
) -> Trajectory:
    r"""Gram matrices after 0, ..., ``depth`` layers, exact in law at any width.

    With a root :math:`V = CC^\top`, the scores are :math:`C G_1 G_2^\top C^\top` with
    independent normal :math:`G_1, G_2`, and the next Gram matrix is

    .. math:: V' = (\lambda C + \tfrac{\gamma}{\sqrt n} A C H)(\cdots)^\top
              + \tfrac{\gamma^2}{n} A C S C^\top A^\top,

    where H is an m × m normal matrix and S an independent Wishart matrix with n − m
    degrees of freedom: the part of the weights that the tokens see, and the rest.
    Wishart matrices are drawn by their Bartlett factors, and roots instead of Gram
    matrices are carried from layer to layer, so that nothing is lost near collapse.
    Widths below 2m are drawn directly.

    Parameters
    ----------
    gram0 : array_like, shape (m, m)
        Gram matrix of the input, of rank at most the width.
    layer : ShapedLayer
    depth : int
        Number of layers, at least 1.
    paths : int
        Number of independent paths.
    rng : numpy.random.Generator

    Returns
    -------
    Trajectory
        ``times`` (depth + 1,) in layers over width, ``states``
        (depth + 1, paths, m, m).

    Raises
    ------
    ValueError
        For a matrix that is not a Gram matrix or has a rank above the width, or counts
        below 1.
    """
    gram = require_gram("gram0", _moderate("gram0", gram0))
    _require_run(layer, depth, paths, rng)
    root = _root(gram, layer.width)  # (m, k)
    states = np.empty((depth + 1, paths, *gram.shape))
    states[0] = gram
    roots = np.broadcast_to(root, (paths, *root.shape))
    for number in range(1, depth + 1):
        roots = _next_root(roots, layer, rng)
        states[number] = roots @ roots.swapaxes(-1, -2)
    return Trajectory(np.arange(depth + 1) / layer.width, _finite(states))


def dense_simulate(
    x0: npt.ArrayLike,
    layer: ShapedLayer,
    depth: int,
    *,
    paths: int,
    rng: np.random.Generator,
) -> Trajectory:
    """The same chain with real weight matrices: the reference for :func:`simulate`.

    Parameters
    ----------
    x0 : array_like, shape (m, width)
        Tokens of the input.
    layer : ShapedLayer
    depth : int
        Number of layers, at least 1.
    paths : int
        Number of independent paths.
    rng : numpy.random.Generator

    Returns
    -------
    Trajectory
        As :func:`simulate`.

    Raises
    ------
    ValueError
        For tokens that are not a finite matrix of that width, or counts below 1.
    """
    x0 = require_matrix("x0", _moderate("x0", x0))
    _require_run(layer, depth, paths, rng)
    n = layer.width
    if x0.shape[1] != n:
        raise ValueError(f"x0 must have {n} columns, the width, got {x0.shape[1]}")
    x = np.broadcast_to(x0, (paths, *x0.shape))
    states = [x @ x.swapaxes(-1, -2) / n]
    for _ in range(depth):
        w_query, w_key = rng.standard_normal((2, paths, n, layer.key_width))
        scores = (x @ w_query) @ (x @ w_key).swapaxes(-1, -2) / n  # (paths, m, m)
        mixed = shaped_attention(scores, layer.temperature) @ x  # (paths, m, n)
        moved = mixed @ rng.standard_normal((paths, n, n)) / np.sqrt(n)
        x = layer.skip * x + layer.branch * moved
        states.append(x @ x.swapaxes(-1, -2) / n)
    return Trajectory(np.arange(depth + 1) / n, _finite(np.stack(states)))


def _require_run(
    layer: ShapedLayer, depth: int, paths: int, rng: np.random.Generator
) -> None:
    """Check what both simulations are given beside their input."""
    if not isinstance(layer, ShapedLayer):
        raise ValueError(f"layer must be a ShapedLayer, got {layer!r}")
    require_count("depth", depth)
    require_count("paths", paths)
    require_generator("rng", rng)


def _moderate(name: str, value: npt.ArrayLike) -> Array:
    array = require_finite(name, as_float(name, value))
    if array.size and np.abs(array).max() > _LARGEST:
        raise ValueError(
            f"{name} must not exceed {_LARGEST:.0e}, got {np.abs(array).max():.3g}"
        )
    return array


def _finite(states: Array) -> Array:
    if not np.isfinite(states).all():
        raise ValueError(
            "gram0 or x0 is too large, or depth: the tokens left the float range"
        )
    return states


def _root(gram: Array, width: int) -> Array:
    """Root C of V = CCᵀ, shape (m, m), or (m, n) for widths n below 2m."""
    values, vectors = np.linalg.eigh(gram)
    order = np.argsort(values)[::-1]
    values, vectors = np.maximum(values[order], 0), vectors[:, order]
    rank = int((values > _RANK * max(values.sum(), 0)).sum())
    if rank > width:
        raise ValueError(f"gram0 has rank {rank}, more than the width {width}")
    m = len(gram)
    columns = m if width >= 2 * m else width
    root = np.zeros((m, columns))
    kept = min(m, columns)
    root[:, :kept] = vectors[:, :kept] * np.sqrt(values[:kept])
    return root


def _next_root(root: Array, layer: ShapedLayer, rng: np.random.Generator) -> Array:
    """Roots of the next Gram matrices, (paths, m, k) as the roots given."""
    n, (paths, m, k) = layer.width, root.shape
    logits = root @ _product(paths, k, layer.key_width, rng) @ root.swapaxes(-1, -2)
    mixed = shaped_attention(logits, layer.temperature) @ root  # (paths, m, k)
    seen = rng.standard_normal((paths, k, k))
    scale = layer.branch / np.sqrt(n)
    ahead = layer.skip * root + scale * mixed @ seen
    if n < 2 * m:  # the root has all n columns: nothing is left unseen
        return np.asarray(ahead)
    unseen = scale * mixed @ bartlett(paths, m, n - m, rng)
    both = np.concatenate([ahead, unseen], axis=-1)  # (paths, m, 2m)
    # both bothᵀ = RᵀR with the triangular factor R of bothᵀ.
    upper: Array = np.asarray(np.linalg.qr(both.swapaxes(-1, -2), mode="r"))
    return upper.swapaxes(-1, -2)


def _product(paths: int, k: int, degrees: int, rng: np.random.Generator) -> Array:
    """G₁G₂ᵀ of independent normal k × degrees matrices, shape (paths, k, k).

    With the Bartlett factor L of G₁ = L O, the product O G₂ᵀ is normal again.
    """
    if degrees < k:
        one, two = rng.standard_normal((2, paths, k, degrees))
        return np.asarray(one @ two.swapaxes(-1, -2))
    return bartlett(paths, k, degrees, rng) @ rng.standard_normal((paths, k, k))


def bartlett(paths: int, m: int, degrees: int, rng: np.random.Generator) -> Array:
    """Lower triangular L with LLᵀ a Wishart matrix, shape (paths, m, m).

    LLᵀ has the law of GGᵀ for a normal m × degrees matrix G, degrees ≥ m: the squared
    diagonal is chi-square with degrees, ..., degrees − m + 1 degrees of freedom, below
    it stand standard normal numbers.

    Raises ValueError for counts below 1, or fewer degrees of freedom than m.
    """
    require_count("paths", paths)
    require_count("m", m)
    require_count("degrees", degrees, least=m, most=2**53)
    require_generator("rng", rng)
    factor = np.tril(rng.standard_normal((paths, m, m)), -1)
    diagonal = np.sqrt(rng.chisquare(degrees - np.arange(m), size=(paths, m)))
    factor[:, np.arange(m), np.arange(m)] = diagonal
    return np.asarray(factor)
