"""What the laws of an attention layer in the limit and at finite width share."""

from __future__ import annotations

from numbers import Integral

import numpy as np
import numpy.typing as npt

from lib._checks import (
    Array,
    require_count,
    require_generator,
    require_gram,
    require_moderate,
    require_within,
)
from lib._hierarchical import heads as _heads
from lib._hierarchical import rules as _rules
from lib._hierarchical import widths as _widths
from lib._hierarchical.mixture import ScaleMixture


class OutputLaw:
    """What the laws at finite and at infinite width have in common."""

    heads: int
    score_scale: float

    def __init__(
        self, gram: npt.ArrayLike, layer: _widths.Layer, tolerance: float, nodes: int
    ) -> None:
        array = require_gram("gram", require_moderate("gram", gram))
        require_within("tolerance", tolerance, 1e-14, 1e-2)
        self.gram = array.copy()
        self.gram.flags.writeable = False
        self.heads, self.score_scale = layer.heads, layer.score_scale
        self._layer, self._tolerance = layer, tolerance
        self._nodes = require_count("nodes", nodes, least=2**8, most=2**24)
        self._unit = float(np.abs(array).max()) or 1.0
        self._root = np.sqrt(self._unit) * _heads.root(array / self._unit)  # (m, r)
        self._mixtures: dict[int, ScaleMixture] = {}

    def sample(
        self, size: int, *, coordinates: int | None = None, rng: np.random.Generator
    ) -> Array:
        """Draws of the output, one for each of ``size`` networks.

        Parameters
        ----------
        size : int
        coordinates : int, optional
            Coordinates of each network; they are dependent. One if left out.
        rng : numpy.random.Generator

        Returns
        -------
        ndarray, shape (size, m), or (size, m, coordinates) where that is given

        Raises
        ------
        ValueError
            For counts below 1, or more coordinates than the width.
        """
        size = require_count("size", size)
        columns = 1 if coordinates is None else coordinates
        columns = require_count("coordinates", columns, most=self._layer.columns)
        require_generator("rng", rng)
        inputs = _widths.fixed(self._root)
        drawn = _widths.outputs(inputs, self._layer, size, columns, rng)
        return drawn[..., 0] if coordinates is None else drawn

    def conditional_covariance(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draws of Γ, the covariance of a coordinate given scores and values.

        Parameters
        ----------
        size : int
        rng : numpy.random.Generator

        Returns
        -------
        ndarray, shape (size, m, m)

        Raises
        ------
        ValueError
            For a size below 1.
        """
        size = require_count("size", size)
        require_generator("rng", rng)
        inputs = _widths.fixed(self._root)
        return _widths.covariances(inputs, self._layer, size, rng)

    def conditional_variance(
        self, size: int, row: int = 0, *, rng: np.random.Generator
    ) -> Array:
        """Draws of v, the diagonal entry of Γ of one row; faster than all of Γ.

        Parameters
        ----------
        size : int
        row : int
        rng : numpy.random.Generator

        Returns
        -------
        ndarray, shape (size,)

        Raises
        ------
        ValueError
            For a size below 1.
        IndexError
            For a row that is not there.
        """
        size = require_count("size", size)
        row = self._require_row(row)
        require_generator("rng", rng)
        inputs = _widths.fixed(self._root)
        return _widths.row_variances(inputs, self._layer, size, row, rng)

    def mixture(self, row: int = 0) -> ScaleMixture:
        """Law of one coordinate of output row ``row``.

        By quadrature: the trapezoid rule where the scores have few directions and
        moderate slopes, else quasi-Monte Carlo. The methods below are those of this
        mixture; :meth:`error` tells how well either one does.

        Raises IndexError for a row that is not there.
        """
        row = self._require_row(row)
        if row not in self._mixtures:
            rules = [_rules.mean(rule, self.heads) for rule in self._head_rules(row)]
            reason = self._infinite_at_zero(row)
            self._mixtures[row] = ScaleMixture._of(rules, self._unit, reason)
        return self._mixtures[row]

    def density(self, y: npt.ArrayLike, row: int = 0) -> Array:
        """Density of a coordinate of output row ``row`` at ``y``, of the shape of y.

        Raises ValueError for points that are not finite or have an infinite density,
        IndexError for a row that is not there.
        """
        return self.mixture(row).density(y)

    def cdf(self, y: npt.ArrayLike, row: int = 0) -> Array:
        """Distribution function of that coordinate at ``y``, of the shape of y.

        Raises ValueError for points that are not finite, IndexError for a row that is
        not there.
        """
        return self.mixture(row).cdf(y)

    def characteristic(self, t: npt.ArrayLike, row: int = 0) -> Array:
        """Characteristic function E exp(ity) at ``t``: real, of the shape of t.

        Raises ValueError for arguments that are not finite, IndexError for a row that
        is not there.
        """
        return self.mixture(row).characteristic(t)

    def moment(self, order: int, row: int = 0) -> float:
        """E y^order.

        Raises ValueError for an order that is not an integer from 0 to 300 or whose
        moment is beyond the float range, IndexError for a row that is not there.
        """
        return self.mixture(row).moment(order)

    def variance(self, row: int = 0) -> float:
        """E y² = E v. Raises IndexError for a row that is not there."""
        return self.mixture(row).variance()

    def excess_kurtosis(self, row: int = 0) -> float:
        """3 Var(v)/(E v)²: positive unless the law is Gaussian.

        Raises ValueError where the output is always 0, IndexError for a row that is
        not there.
        """
        return self.mixture(row).excess_kurtosis()

    def error(
        self, quantity: str, at: npt.ArrayLike | None = None, row: int = 0
    ) -> Array:
        """Estimated error of ``density``, ``cdf``, ... at the argument ``at``.

        See :meth:`ScaleMixture.error`, which has the same arguments but the row.

        Raises ValueError for another quantity or a wrong argument, IndexError for a
        row that is not there.
        """
        return self.mixture(row).error(quantity, at)

    def _require_row(self, row: int) -> int:
        m = len(self.gram)
        if not isinstance(row, Integral) or isinstance(row, bool):
            raise ValueError(f"row must be an integer, got {row!r}")
        if not 0 <= row < m:
            raise IndexError(f"row must lie between 0 and {m - 1}, got {row}")
        return int(row)

    def _row(self, row: int) -> _heads.Row:
        scale = self.score_scale * self._unit
        return _heads.row_of(self.gram / self._unit, row, scale)

    def _head_rules(self, row: int) -> list[_rules.Rule]:
        raise NotImplementedError

    def _infinite_at_zero(self, row: int) -> str | None:
        """Why the density is infinite at 0: v has no inverse root in the mean.

        That needs a single head, and tokens on a line with 0 between them.
        """
        head = self._row(row)
        line = head.root.shape[-1] == 1 and head.logits.size > 0
        if self.heads == 1 and line and head.around_zero():
            return "the tokens lie on a line, on both sides of 0"
        return None
