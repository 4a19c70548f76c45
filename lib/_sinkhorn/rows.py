"""The Gibbs kernel for arrays of any library, computed anew for each product."""

from __future__ import annotations

from collections.abc import Iterator

from lib._arrays import namespace, slices
from lib._checks import Array

_ENTRIES = 2**26  # computed at a time: 0.5 GB, work for all cores of a GPU
_FEW = 8  # coordinates up to which differences are taken one by one


class RowKernel:
    r"""The matrix :math:`K_{ij} = e^{-|x_i - x_j|^2/2\varepsilon}` by blocks of rows.

    With more than eight coordinates the square is expanded, which makes an error of
    1e-16 times the largest :math:`|x_i|^2/2\varepsilon`, x being centered.
    """

    def __init__(self, x: Array, eps: float):
        self._xp = namespace(x)
        self.centered: Array = x - self._xp.mean(x, axis=0)  # (n, d)
        self._z = self.centered / 2**0.5 / eps**0.5

    def __matmul__(self, vector: Array) -> Array:
        """K times a vector (n,) or a matrix (n, k)."""
        product: Array = self._xp.concat([block @ vector for _, block in self.blocks()])
        return product

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """Pairs of a slice of the rows and these rows of K."""
        n, d = self._z.shape
        squares = self._xp.sum(self._z * self._z, axis=1)  # (n,)
        for rows in slices(n, max(1, _ENTRIES // n)):
            top, z = self._z[rows, :], self._z
            if d <= _FEW:
                distances = sum((top[:, k, None] - z[:, k]) ** 2 for k in range(d))
            else:
                distances = squares[rows, None] + squares - 2 * top @ z.T
            # Rounding leaves the squared distance of close points below 0.
            yield rows, self._xp.exp(-self._xp.clip(distances, min=0.0))
