r"""What all limits of Gram matrices have in common: see :mod:`lib.sde`."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt

from lib._checks import Array, require_generator, require_moderate, require_square
from lib._wishart import bartlett

_EXACT = 1e-32  # relative variances below leave float64 numbers as they are


class Limit(ABC):
    r"""A limit :math:`dV = b(V)\,dt + \Sigma(V)^{1/2}dB` of the Gram matrix.

    Time is layers, or blocks of layers, over width.
    """

    def drift(self, gram: npt.ArrayLike) -> Array:
        """Drift b(V), the mean of dV per unit of time.

        Parameters
        ----------
        gram : array_like, shape (..., m, m)
            Gram matrices V.

        Returns
        -------
        ndarray, shape (..., m, m)
            Symmetric.

        Raises
        ------
        ValueError
            For matrices that are no Gram matrices, or so large that the drift leaves
            the float range.
        """
        gram = require_grams("gram", gram)
        with np.errstate(over="ignore", invalid="ignore"):
            return _in_range(self._drift(gram), gram)

    def diffusion(self, gram: npt.ArrayLike) -> Array:
        r"""Covariance Σ(V) of the noise of vech(V) per unit of time.

        Parameters
        ----------
        gram : array_like, shape (..., m, m)
            Gram matrices V.

        Returns
        -------
        ndarray, shape (..., m(m+1)/2, m(m+1)/2)
            Rows and columns are the entries of the upper triangle, row by row.

        Raises
        ------
        ValueError
            As :meth:`drift`.
        """
        gram = require_grams("gram", gram)
        with np.errstate(over="ignore", invalid="ignore"):
            return _in_range(vech_covariance(gram, self._spread(gram)), gram)

    def noise(self, gram: npt.ArrayLike, *, rng: np.random.Generator) -> Array:
        """One draw of the noise, of variance Σ(V): that of one unit of time.

        It is made of normal m × m matrices in O(m³); the covariance Σ(V), whose root
        takes O(m⁶), is not assembled.

        Parameters
        ----------
        gram : array_like, shape (..., m, m)
            Gram matrices V.
        rng : numpy.random.Generator

        Returns
        -------
        ndarray, shape (..., m, m)
            Symmetric, independent draws.

        Raises
        ------
        ValueError
            As :meth:`drift`.
        """
        gram = require_grams("gram", gram)
        require_generator("rng", rng)
        with np.errstate(over="ignore", invalid="ignore"):
            return _in_range(self._noise(semidefinite_root(gram), rng), gram)

    # What follows is what a limit says of itself, unchecked: of Gram matrices V,
    # (..., m, m), or of their roots C, V = CCᵀ, (..., m, m) too.

    @property
    @abstractmethod
    def linear_noise(self) -> float:
        """The largest q of the linear layers in this limit."""

    def _drift(self, gram: Array) -> Array:
        return np.zeros_like(gram)

    def _spread(self, gram: Array) -> Array:
        """T with Cov(Z_ij, Z_kl) = V_ik T_jl for the noise Z + Zᵀ, Z = C S Cᵀ."""
        return self.linear_noise / 2 * gram

    def _mixing(self, root: Array, rng: np.random.Generator) -> Array:
        """S, drawn for one unit of time."""
        normals = rng.standard_normal(root.shape)
        return np.asarray(np.sqrt(self.linear_noise / 2) * normals)

    def _noise(self, root: Array, rng: np.random.Generator) -> Array:
        half = root @ self._mixing(root, rng) @ root.swapaxes(-1, -2)
        return np.asarray(half + half.swapaxes(-1, -2))

    def _rate(self, root: Array) -> Array:
        """How fast V moves for other reasons than linear noise: one over a time."""
        return np.zeros(root.shape[:-2])

    def _advance(self, root: Array, step: Array, rng: np.random.Generator) -> Array:
        r"""Roots (paths, m, m) after a step in time, given for each path.

        Linear noise: C R/√k with the Bartlett factor R of k = 1/(q·step) degrees of
        freedom. RRᵀ/k has mean I, covariance (δδ + δδ)/k and third cumulants O(1/k²),
        as it must up to O(step²).
        """
        variance = np.maximum(self.linear_noise * step, _EXACT)  # (paths,)
        factor = bartlett(len(root), root.shape[-1], 1 / variance, rng)
        return np.asarray(root @ (np.sqrt(variance)[:, None, None] * factor))


def require_grams(name: str, value: npt.ArrayLike) -> Array:
    """Array (..., m, m) of Gram matrices; ValueError for others, as require_gram."""
    array = require_square(name, require_moderate(name, value))
    size = np.abs(array).max(axis=(-2, -1), keepdims=True, initial=0)
    scaled = array / np.where(size > 0, size, 1)
    if np.abs(scaled - scaled.swapaxes(-1, -2)).max(initial=0) > 1e-12:
        raise ValueError(f"{name} must be symmetric, got {array}")
    least = np.linalg.eigvalsh(scaled)[..., :1]  # (..., 1)
    if least.min(initial=0) < -1e-12 * array.shape[-1]:
        raise ValueError(
            f"{name} must be positive semidefinite, its least eigenvalue is"
            f" {(least * size[..., 0]).min():.3g}"
        )
    return array


def cosines(gram: Array) -> tuple[Array, Array]:
    """Norms (..., m, 1) and cosines (..., m, m) of tokens, 0 for a token that is 0."""
    # What is below 0 or beyond 1 here is so by rounding.
    squares = np.maximum(np.diagonal(gram, axis1=-2, axis2=-1), 0)
    norms = np.sqrt(squares)[..., None]
    sizes = norms * norms.swapaxes(-1, -2)
    cosine = np.divide(gram, sizes, out=np.zeros_like(gram), where=sizes > 0)
    return norms, np.clip(cosine, -1, 1)


def semidefinite_root(gram: Array) -> Array:
    """Roots C of V = CCᵀ, (..., m, m): triangular where all V are positive definite."""
    try:
        return np.asarray(np.linalg.cholesky(gram), dtype=np.float64)
    except np.linalg.LinAlgError:
        norms, cosine = cosines(gram)
        values, vectors = np.linalg.eigh(cosine)
        # Negative eigenvalues of Gram matrices are rounding.
        return np.asarray(
            norms * vectors * np.sqrt(np.maximum(values, 0))[..., None, :]
        )


def gram_of(root: Array) -> Array:
    """V = CCᵀ."""
    return np.asarray(root @ root.swapaxes(-1, -2))


def vech_covariance(gram: Array, spread: Array) -> Array:
    """Covariance of the upper triangle of Z + Zᵀ where Cov(Z_ij, Z_kl) = V_ik T_jl."""
    i, j = np.triu_indices(gram.shape[-1])
    rows = (gram[..., i, :], gram[..., j, :])  # (..., m(m+1)/2, m) each
    others = (spread[..., j, :], spread[..., i, :])
    # Cov(Z_ij + Z_ji, Z_kl + Z_lk), ij in the rows and kl in the columns.
    total = sum(
        a[..., i] * b[..., j] + a[..., j] * b[..., i]
        for a, b in zip(rows, others, strict=True)
    )
    return np.asarray(total)


def _in_range(result: Array, gram: Array) -> Array:
    if not np.isfinite(result).all():
        raise ValueError(f"gram is too large: its entry {gram.max():.3g}")
    return result
