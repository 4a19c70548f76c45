r"""Tokens on the sphere by their matrix of cosines: cost independent of the dimension.

Without weights, attention knows the tokens only through :math:`G = XX^\top`, and G
obeys a closed equation. With the attention matrix :math:`A(G)`,

.. math:: \dot G = AG + GA^\top - (m\mathbf 1^\top + \mathbf 1m^\top) \odot G, \qquad
          m = \mathrm{diag}(AG) .

It is solved for a root :math:`G = CC^\top` of at most n columns, which moves as tokens
of that dimension: a rotation of the tokens, so that nothing is lost, and G stays
positive semidefinite with ones on its diagonal.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lib.core.checks import (
    Array,
    as_float,
    require_finite,
    require_flag,
    require_number,
    require_positive,
    require_square,
)
from lib.core.psd import rank, spectral_root
from lib.core.trajectory import Trajectory
from lib.sphere.field import IDENTITY, make_attention, solve
from lib.sphere.geometry import unit
from lib.sphere.layers import post_norm_layers as token_layers

__all__ = ["cosine_drift", "merged_share", "post_norm_layers", "root", "simulate"]

_REGULAR = 1e-4  # diagonal of a Cholesky factor above which the rank is full


def cosine_drift(cosines: npt.ArrayLike, beta: float, normalize: bool = True) -> Array:
    r"""Right-hand side of the closed equation for G.

    Parameters
    ----------
    cosines : array_like, shape (..., n, n)
        Cosines of unit tokens.
    beta : float
        Inverse temperature, of either sign.
    normalize : bool
        False for the unnormalized model in its time :math:`s = e^{|\beta|}t`.

    Returns
    -------
    ndarray, shape (..., n, n)
        Symmetric, with zeros on the diagonal.

    Raises
    ------
    ValueError
        For a matrix that cannot be cosines of unit tokens.
    """
    g = _require_cosines("cosines", cosines)
    b = require_number("beta", beta)
    with np.errstate(over="ignore", invalid="ignore"):
        scores = b * g
        if require_flag("normalize", normalize):
            weights = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
            mixed = weights @ g / np.sum(weights, axis=-1, keepdims=True)  # AG
        else:
            mixed = np.exp(scores - abs(b)) @ g / g.shape[-1]
    if not np.isfinite(mixed).all():  # cosines may exceed 1 by rounding
        raise ValueError(f"beta={beta!r} is too large: scores of cosines overflow")
    m = np.diagonal(mixed, axis1=-2, axis2=-1)[..., None]  # (..., n, 1)
    half = mixed - m * g
    return np.asarray(half + half.mT)


def simulate(
    cosines0: npt.ArrayLike,
    beta: float,
    horizon: float,
    steps: int,
    *,
    normalize: bool = True,
    save_every: int = 1,
) -> Trajectory:
    """Cosines along the flow of attention, those of :func:`lib.sphere.simulate`.

    Parameters
    ----------
    cosines0 : array_like, shape (..., n, n)
        Cosines of unit tokens; the identity for tokens of infinite dimension.
    beta, horizon, steps, normalize, save_every
        As for :func:`lib.sphere.simulate`.

    Returns
    -------
    Trajectory
        ``states`` (K, ..., n, n).

    Raises
    ------
    ValueError
        For a matrix that cannot be cosines of unit tokens, or too few steps.
    """
    tokens = _root("cosines0", cosines0)
    field = make_attention(IDENTITY, beta, normalize, causal=False)
    run = solve(field, unit(tokens), horizon, steps, save_every, "cosines0 and beta")
    return Trajectory(run.times, _gram(run.states))


def post_norm_layers(
    cosines0: npt.ArrayLike,
    beta: float,
    step: float,
    depth: int,
    *,
    normalize: bool = True,
    save_every: int = 1,
) -> Trajectory:
    r"""Cosines through layers of attention with normalization after the sum.

    .. math:: G \leftarrow D^{-1/2} (I + hA) G (I + hA)^\top D^{-1/2},

    with the diagonal D of the product before it.

    Parameters
    ----------
    cosines0 : array_like, shape (..., n, n)
        Cosines of unit tokens.
    beta : float
        Inverse temperature, of either sign.
    step, depth, save_every
        As for :func:`lib.sphere.post_norm_layers`.
    normalize : bool
        Whether attention is normalized.

    Returns
    -------
    Trajectory
        ``times`` are layers times h, ``states`` (K, ..., n, n).

    Raises
    ------
    ValueError
        For a matrix that cannot be cosines of unit tokens, or counts below 1.
    """
    tokens = _root("cosines0", cosines0)
    part = make_attention(IDENTITY, beta, normalize, causal=False)
    run = token_layers(tokens, part, step, depth, save_every=save_every)
    return Trajectory(run.times, _gram(run.states))


def root(cosines: npt.ArrayLike) -> Array:
    r"""Unit tokens :math:`C` with :math:`CC^\top = G`, in as few dimensions as can be.

    Parameters
    ----------
    cosines : array_like, shape (..., n, n)
        Cosines of unit tokens.

    Returns
    -------
    ndarray, shape (..., n, r)
        r is the largest rank of the systems.

    Raises
    ------
    ValueError
        For a matrix that is not symmetric and semidefinite with ones on the diagonal.
    """
    return _root("cosines", cosines)


def merged_share(cosines: npt.ArrayLike, gap: float) -> Array:
    """Share of the pairs of different tokens whose cosine is at least 1 − ``gap``.

    Parameters
    ----------
    cosines : array_like, shape (..., n, n)
        Cosines of at least two tokens.
    gap : float
        Positive.

    Returns
    -------
    ndarray, shape (...)
        Between 0 and 1.

    Raises
    ------
    ValueError
        For a matrix that cannot be cosines of unit tokens, or of one token only.
    """
    g = _require_cosines("cosines", cosines)
    n = g.shape[-1]
    if n < 2:
        raise ValueError(f"cosines must be of two tokens at least, got {g.shape}")
    close = np.sum(g >= 1 - require_positive("gap", gap), axis=(-2, -1))
    # The diagonal is 1 but for rounding; a token is no pair.
    own = np.sum(np.diagonal(g, axis1=-2, axis2=-1) >= 1 - gap, axis=-1)
    return np.asarray((close - own) / (n * (n - 1)))[()]


def _root(name: str, cosines: npt.ArrayLike) -> Array:
    g = _require_cosines(name, cosines)
    try:
        triangle = np.linalg.cholesky(g)
        if np.diagonal(triangle, axis1=-2, axis2=-1).min() > _REGULAR:
            return unit(np.asarray(triangle))
    except np.linalg.LinAlgError:
        pass
    # The matrix is singular, or nearly so: as few columns as its rank.
    values, vectors = np.linalg.eigh(g)
    least = values[..., 0].min()
    if least < -1e-10 * g.shape[-1]:
        raise ValueError(
            f"{name} must be positive semidefinite, its least eigenvalue is {least:.3g}"
        )
    columns = spectral_root(values, vectors)
    return unit(columns[..., : rank(columns)][..., ::-1])


def _gram(x: Array) -> Array:
    """XXᵀ with its diagonal set to the 1 that it is but for rounding."""
    g = x @ x.mT
    diagonal = np.arange(g.shape[-1])
    g[..., diagonal, diagonal] = 1.0
    return np.asarray(g)


def _require_cosines(name: str, value: npt.ArrayLike) -> Array:
    g = require_finite(name, require_square(name, as_float(name, value)))
    if g.size == 0:
        raise ValueError(f"{name} must not be empty, got shape {g.shape}")
    diagonal = np.diagonal(g, axis1=-2, axis2=-1)
    if np.abs(diagonal - 1).max() > 1e-8:
        worst = diagonal.flat[np.abs(diagonal - 1).argmax()]
        raise ValueError(f"{name} must have ones on the diagonal, got {worst:.9g}")
    if np.abs(g).max() > 1 + 1e-8:
        raise ValueError(f"{name} must be at most 1, got {np.abs(g).max():.9g}")
    if np.abs(g - g.mT).max() > 1e-8:
        raise ValueError(
            f"{name} must be symmetric, entries differ by {np.abs(g - g.mT).max():.3g}"
        )
    return g
