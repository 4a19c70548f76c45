"""Random matrices of few rows and any number of columns, drawn at the cost of few."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lib._checks import (
    Array,
    as_float,
    require_count,
    require_finite,
    require_generator,
)

_RANK = 1e-12  # eigenvalues below this share of the trace count as zero
_THIN = 1e-3  # diagonal entries below this share of the largest are not squared


def bartlett(
    paths: int, m: int, degrees: npt.ArrayLike, rng: np.random.Generator
) -> Array:
    """Lower triangular R with RRᵀ a Wishart matrix, shape (paths, m, m).

    For an integer k = degrees ≥ m, RRᵀ has the law of GGᵀ for a normal m × k matrix G:
    the squared diagonal is chi-square with k, ..., k − m + 1 degrees of freedom, below
    it stand standard normal numbers. The same R serves any real k > m − 1. Moments of
    chi-square are polynomials in k, hence so are those of RRᵀ, and polynomials that are
    right at each integer k ≥ m are right: RRᵀ has mean k I, and the covariance of its
    entries ij and kl is k(δ_ik δ_jl + δ_il δ_jk).

    ``degrees`` is one number, or one for each path. Raises ValueError for counts below
    1, or degrees of freedom that do not exceed m − 1.
    """
    paths, m = require_count("paths", paths), require_count("m", m)
    require_generator("rng", rng)
    degrees = require_finite("degrees", as_float("degrees", degrees))
    if degrees.shape not in ((), (paths,)):
        raise ValueError(f"degrees must have shape () or ({paths},), got {degrees}")
    if not (degrees > m - 1).all():
        raise ValueError(f"degrees must exceed m - 1 = {m - 1}, got {degrees.min()}")
    factor = np.zeros((paths, m, m))
    rows, columns = np.tril_indices(m, -1)
    factor[:, rows, columns] = rng.standard_normal((paths, len(rows)))
    left = degrees[..., None] - np.arange(m)  # (m,) or (paths, m)
    chi_squares = rng.chisquare(left, size=(paths, m))
    factor[:, np.arange(m), np.arange(m)] = np.sqrt(chi_squares)
    return factor


def factor(paths: int, m: int, degrees: int, rng: np.random.Generator) -> Array:
    """Matrices R with RRᵀ ~ Wishart: Bartlett's, or normal ones of fewer columns."""
    if degrees < m:
        return rng.standard_normal((paths, m, degrees))
    return bartlett(paths, m, degrees, rng)


def product(
    paths: int, rows: int, columns: int, degrees: int, rng: np.random.Generator
) -> Array:
    """G₁G₂ᵀ of independent normal matrices with ``degrees`` columns each.

    The shape is (paths, rows, columns). With the smaller one, G₁ = RO where R is its
    Bartlett factor and O has orthonormal rows, OG₂ᵀ is normal again, independent of R.
    """
    if rows > columns:
        return product(paths, columns, rows, degrees, rng).swapaxes(-1, -2)
    one = factor(paths, rows, degrees, rng)
    if degrees < rows:
        other = rng.standard_normal((paths, columns, degrees)).swapaxes(-1, -2)
    else:
        other = rng.standard_normal((paths, rows, columns))
    return np.asarray(one @ other)


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
