"""The Gibbs kernel of a set of points as an operator, stored or recomputed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from lib.core.checks import Array, require_positive, require_tokens

_STORED = 8192  # points up to which the kernel is kept in memory (then 0.27 GB)
_BLOCK = 2**17  # entries computed at a time: they stay in a cache
_FEW = 8  # coordinates up to which differences cost less than their rounding is worth
_LEAST = -700.0  # exponent of the smallest entry: e^-700 is 1e-304


class GibbsKernel:
    r"""The matrix :math:`K_{ij} = e^{-|x_i - x_j|^2/2\varepsilon}`.

    It is symmetric, and only its upper triangle is computed, in blocks of rows. Up to
    8,192 points the blocks are stored; above, each product computes them again, so
    that the memory grows like the number of points. Entries below 1e-304 are replaced
    by that number, which is nothing beside the diagonal of 1.

    Parameters
    ----------
    x : ndarray, shape (n, d)
    eps : float
    store : bool
        Whether to store what may be stored.
    """

    def __init__(self, x: Array, eps: float, store: bool = True):
        # Far from the origin the differences of a large |x| would be all rounding.
        self.centered = x - x.mean(axis=0)  # (n, d)
        self._z = self.centered / np.sqrt(2.0) / np.sqrt(eps)
        with np.errstate(over="ignore"):
            self._squares = np.einsum("id,id->i", self._z, self._z)  # (n,)
        largest = self._squares.max()
        # Expanding the square costs one product of matrices and a rounding of 1e-16
        # times the largest square, which this keeps below 1e-11.
        self._expand = x.shape[1] > _FEW and largest < 1e5
        self._far = 4 * largest > -_LEAST
        store = store and len(x) <= _STORED
        self._stored = list(self._computed()) if store else None

    def __len__(self) -> int:
        return len(self._z)

    def __matmul__(self, vector: Array) -> Array:
        """K times a vector (n,) or a matrix (n, k)."""
        stored = self._stored
        if stored is not None and len(stored) == 1:
            return np.asarray(stored[0][1] @ vector)
        product = np.zeros_like(vector)
        for rows, block in self._computed() if stored is None else stored:
            product[rows] += block @ vector[rows.start :]
            # What the block is above the diagonal, its transpose is below.
            beyond = block[:, len(block) :]
            product[rows.stop :] += beyond.T @ vector[rows]
        return product

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """Pairs of a slice of the rows and these rows of K, complete."""
        height = max(1, _BLOCK // len(self))
        for start in range(0, len(self), height):
            rows = slice(start, min(start + height, len(self)))
            yield rows, self.entries(rows)

    def _computed(self) -> Iterator[tuple[slice, Array]]:
        """Slices of the rows, and these rows from the diagonal on."""
        start, n = 0, len(self)
        while start < n:
            rows = slice(start, min(start + max(1, _BLOCK // (n - start)), n))
            yield rows, self.entries(rows, first=start)
            start = rows.stop

    def entries(self, rows: slice, first: int = 0) -> Array:
        """Rows of K from the column ``first`` on."""
        columns, top = self._z[first:], self._z[rows]
        if self._expand:
            exponents = 2 * top @ columns.T
            exponents -= self._squares[rows, None]
            exponents -= self._squares[first:]
            # Rounding leaves the squared distance of close points below 0.
            np.minimum(exponents, 0, out=exponents)
            own = np.arange(len(top))
            exponents[own, own + rows.start - first] = 0
        else:
            exponents = squared_distances(top, columns)
            np.negative(exponents, out=exponents)
        if self._far:  # an exponential that underflows costs eight times as much
            np.maximum(exponents, _LEAST, out=exponents)
        return np.asarray(np.exp(exponents, out=exponents))


def squared_distances(one: Array, other: Array) -> Array:
    """Of all pairs, (m, n), by differences: exact to rounding, ∞ beyond the floats."""
    if one.shape[1] == 1:
        difference = np.subtract.outer(one[:, 0], other[:, 0])
        with np.errstate(over="ignore"):
            return np.asarray(np.square(difference, out=difference))
    from scipy.spatial.distance import cdist

    return np.asarray(cdist(one, other, "sqeuclidean"))


def gibbs_kernel(x: npt.ArrayLike, eps: float) -> Array:
    r"""The Gibbs kernel :math:`K_{ij} = e^{-|x_i - x_j|^2/2\varepsilon}`.

    Parameters
    ----------
    x : array_like, shape (n, d)
        Tokens.
    eps : float
        Regularization ε > 0.

    Returns
    -------
    ndarray, shape (n, n)
        Symmetric, positive semidefinite, with diagonal 1.

    Raises
    ------
    ValueError
        For tokens that are not a finite matrix, entries beyond 1e100, or an eps that
        is not positive.
    """
    tokens = require_tokens("x", x)
    kernel = GibbsKernel(tokens, require_positive("eps", eps), store=False)
    return kernel.entries(slice(0, tokens.shape[0]))
