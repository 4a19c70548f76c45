r"""Positive semidefinite matrices: one check, and one rank.

A Gram matrix V comes to every simulation as a root C, V = CCᵀ. Eigenvalues below
:data:`RANK` times the trace count as zero: they are what rounding leaves of the zeros
of a singular matrix, and their square roots would be a million times larger.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lib.core.checks import Array, require_matrix, require_moderate, require_square

_THIN = 1e-3  # diagonal entries below this share of the largest are not squared
RANK = 1e-12  # eigenvalues below this share of the trace count as zero
_EQUAL = 1e-9  # norms that differ by less, relative to the largest, count as equal


def require_gram(name: str, value: npt.ArrayLike) -> Array:
    """Return ``value`` as a Gram matrix (m, m); raise ValueError for anything else."""
    return require_grams(name, _one_matrix(name, value))


def require_grams(name: str, value: npt.ArrayLike) -> Array:
    """Return ``value`` as Gram matrices (..., m, m); raise ValueError for others.

    They must be symmetric up to 1e-12 of their largest entry. Eigenvalues down to
    −1e-12 m of it are accepted as rounding.
    """
    array = require_square(name, require_moderate(name, value))
    scaled, size = _symmetric(name, array)
    _require_semidefinite(name, np.linalg.eigvalsh(scaled) * size, size)
    return array


def gram_spectrum(name: str, value: npt.ArrayLike) -> tuple[Array, Array]:
    """Eigenvalues, increasing, and eigenvectors of a Gram matrix (m, m).

    Raises as :func:`require_gram`, with one factorization where that and ``eigh`` are
    two.
    """
    array = _one_matrix(name, value)
    _, size = _symmetric(name, array)
    values, vectors = np.linalg.eigh(array)
    _require_semidefinite(name, values, size)
    return values, vectors


def _one_matrix(name: str, value: npt.ArrayLike) -> Array:
    array = require_matrix(name, require_moderate(name, value))
    if array.shape[0] != array.shape[1]:
        raise ValueError(f"{name} must be square, got shape {array.shape}")
    return array


def _symmetric(name: str, array: Array) -> tuple[Array, Array]:
    """Symmetric matrices over their largest entries, and these, (..., 1)."""
    size = np.abs(array).max(axis=(-2, -1), keepdims=True, initial=0)
    scaled = array / np.where(size > 0, size, 1)
    if np.abs(scaled - scaled.mT).max(initial=0) > 1e-12:
        raise ValueError(
            f"{name} must be symmetric, its largest entry is {size.max():.3g}"
        )
    return scaled, size[..., 0]


def _require_semidefinite(name: str, values: Array, size: Array) -> None:
    """Raise ValueError where an eigenvalue (..., m) is below 0 by more than rounding.

    Matrices have a largest entry of ``size``.
    """
    if (values < -1e-12 * values.shape[-1] * size).any():
        raise ValueError(
            f"{name} must be positive semidefinite, its least eigenvalue is"
            f" {values.min():.3g}"
        )


def gram_root(gram: Array) -> Array:
    """Roots C of V = CCᵀ, (..., m, m), by eigenvectors: columns by falling norm.

    Those of eigenvalues below :data:`RANK` times the trace are 0.
    """
    return spectral_root(*np.linalg.eigh(gram))


def spectral_root(values: Array, vectors: Array) -> Array:
    """:func:`gram_root` by what ``eigh`` made of V."""
    trace = np.maximum(values.sum(axis=-1, keepdims=True), 0)
    values = np.where(values > RANK * trace, values, 0)
    return np.asarray((vectors * np.sqrt(values)[..., None, :])[..., ::-1])


def rank(root: Array) -> int:
    """Largest rank of roots (..., m, m) that :func:`gram_root` made."""
    return int(root.any(axis=-2).sum(axis=-1).max())


def canonical_root(gram: Array) -> Array:
    """Root C of V = CCᵀ, shape (m, r), in canonical form; r is the rank, at least 1."""
    root = gram_root(gram)
    return canonical_columns(root[:, : max(rank(root), 1)])


def canonical_columns(columns: Array) -> Array:
    """The same columns, by falling norm, in a form that no choice of basis changes.

    Eigenvectors of one eigenvalue are any basis of their space, another one on another
    processor. A rotation among columns of equal norm makes them lower triangular with
    a positive diagonal, and leaves the Gram matrix of the rows as it is.
    """
    turned = columns.copy()
    norms = np.linalg.norm(columns, axis=0)
    gaps = np.abs(np.diff(norms)) > _EQUAL * norms.max(initial=0)
    for part in np.split(np.arange(norms.size), np.flatnonzero(gaps) + 1):
        if part.size:
            upper: Array = np.asarray(np.linalg.qr(columns[:, part].T, mode="r"))
            signs = np.where(np.diagonal(upper) < 0, -1.0, 1.0)
            turned[:, part] = (upper * signs[:, None]).T
    return turned


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
        return np.asarray(norms * gram_root(cosine)[..., ::-1])


def gram_of(root: Array) -> Array:
    """V = CCᵀ."""
    return np.asarray(root @ root.swapaxes(-1, -2))


def triangular(root: Array) -> Array:
    """Lower triangular T with TTᵀ = root rootᵀ, of roots (..., m, r).

    Where a diagonal entry is small, squaring would lose digits: those matrices are
    factored without it.
    """
    try:
        factor = np.linalg.cholesky(root @ root.swapaxes(-1, -2))
    except np.linalg.LinAlgError:
        return _triangular_by_qr(root)
    diagonal = np.einsum("...ii->...i", factor)
    thin = diagonal.min(axis=-1) < _THIN * diagonal.max(axis=-1)
    if thin.any():
        factor[thin] = _triangular_by_qr(root[thin])
    return np.asarray(factor)


def _triangular_by_qr(root: Array) -> Array:
    # rootᵀ = QTᵀ, hence root rootᵀ = TTᵀ.
    upper = np.linalg.qr(root.swapaxes(-1, -2), mode="r")
    return np.asarray(upper).swapaxes(-1, -2)
