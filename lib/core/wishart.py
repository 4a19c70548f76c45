"""Random matrices of few rows and any number of columns, drawn at the cost of few."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lib.core.checks import (
    Array,
    as_float,
    require_count,
    require_finite,
    require_generator,
)


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
    factor, row = np.zeros((paths, m, m)), np.arange(m)
    below = rng.standard_normal((paths, m * (m - 1) // 2))
    factor[:, row[:, None] > row] = below
    left = degrees[..., None] - row  # (m,) or (paths, m)
    chi_squares = rng.chisquare(left, size=(paths, m))
    factor[:, row, row] = np.sqrt(chi_squares)
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
