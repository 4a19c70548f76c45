"""Random matrices of few rows and any number of columns, drawn at the cost of few."""

from __future__ import annotations

import numpy as np

from lib._checks import Array, require_count, require_generator

_RANK = 1e-12  # eigenvalues below this share of the trace count as zero
_THIN = 1e-3  # diagonal entries below this share of the largest are not squared


def bartlett(paths: int, m: int, degrees: int, rng: np.random.Generator) -> Array:
    """Lower triangular R with RRᵀ a Wishart matrix, shape (paths, m, m).

    RRᵀ has the law of GGᵀ for a normal m × degrees matrix G, degrees ≥ m: the squared
    diagonal is chi-square with degrees, ..., degrees − m + 1 degrees of freedom, below
    it stand standard normal numbers.

    Raises ValueError for counts below 1, or fewer degrees of freedom than m.
    """
    require_count("paths", paths)
    m = require_count("m", m)
    require_count("degrees", degrees, least=m, most=2**53)
    require_generator("rng", rng)
    factor = np.zeros((paths, m, m))
    rows, columns = np.tril_indices(m, -1)
    factor[:, rows, columns] = rng.standard_normal((paths, len(rows)))
    chi_squares = rng.chisquare(degrees - np.arange(m), size=(paths, m))
    factor[:, np.arange(m), np.arange(m)] = np.sqrt(chi_squares)
    return factor


def product(paths: int, m: int, degrees: int, rng: np.random.Generator) -> Array:
    """G₁G₂ᵀ of independent normal m × degrees matrices, shape (paths, m, m).

    With the Bartlett factor R of G₁ = RO, O of orthonormal rows, OG₂ᵀ is normal again.
    """
    if degrees < m:
        one, two = rng.standard_normal((2, paths, m, degrees))
        return np.asarray(one @ two.swapaxes(-1, -2))
    return bartlett(paths, m, degrees, rng) @ rng.standard_normal((paths, m, m))


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


def gram_root(gram: Array, width: int) -> Array:
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
