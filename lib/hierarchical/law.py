"""Laws of one attention layer for given inputs, and the one in the limit of width."""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Integral

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from lib.core.checks import (
    Array,
    as_float,
    require_count,
    require_finite,
    require_generator,
    require_within,
)
from lib.core.psd import canonical_root, require_gram
from lib.hierarchical.gauss_rule import Rule, mean_rule
from lib.hierarchical.row_variance import Row, limit_rules, row_of
from lib.hierarchical.samplers import (
    Heads,
    draw_covariances,
    draw_outputs,
    draw_row_variances,
    fixed_inputs,
    limit_heads,
)
from lib.hierarchical.scale_mixture import ScaleMixture


class OutputLaw(ABC):
    """The methods that the laws at finite and at infinite width share."""

    heads: int
    score_scale: float

    def __init__(
        self, gram: npt.ArrayLike, attention: Heads, tol: float, nodes: int
    ) -> None:
        array = require_gram("gram", gram)
        require_within("tol", tol, 1e-14, 1e-2)
        self.gram = array.copy()
        self.gram.flags.writeable = False
        self.heads, self.score_scale = attention.heads, attention.score_scale
        self._attention, self._tol = attention, tol
        self._nodes = require_count("nodes", nodes, least=2**8, most=2**24)
        self._unit = float(np.abs(array).max()) or 1.0
        self._root = np.sqrt(self._unit) * canonical_root(array / self._unit)  # (m, r)
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
        columns = require_count("coordinates", columns, most=self._attention.columns)
        require_generator("rng", rng)
        inputs = fixed_inputs(self._root)
        drawn = draw_outputs(inputs, self._attention, size, columns, rng)
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
        inputs = fixed_inputs(self._root)
        return draw_covariances(inputs, self._attention, size, rng)

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
        inputs = fixed_inputs(self._root)
        return draw_row_variances(inputs, self._attention, size, row, rng)

    def mixture(self, row: int = 0) -> ScaleMixture:
        """Law of one coordinate of output row ``row``.

        By quadrature: the trapezoid rule where the scores have few directions and
        moderate slopes, else quasi-Monte Carlo. The methods below are those of this
        mixture; :meth:`error` tells how well either one does.

        Raises IndexError for a row that is not there.
        """
        row = self._require_row(row)
        if row not in self._mixtures:
            rules = [mean_rule(rule, self.heads) for rule in self._head_rules(row)]
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

    def _row(self, row: int) -> Row:
        scale = self.score_scale * self._unit
        return row_of(self.gram / self._unit, row, scale)

    @abstractmethod
    def _head_rules(self, row: int) -> list[Rule]:
        """Rules for the variance of one head, in replicates."""

    def _infinite_at_zero(self, row: int) -> str | None:
        """Reason of a density that is infinite at 0: v has no inverse root in the mean.

        That needs a single head, and tokens on a line with 0 between them.
        """
        head = self._row(row)
        line = head.root.shape[-1] == 1 and head.logits.size > 0
        if self.heads == 1 and line and head.around_zero():
            return "the tokens lie on a line, on both sides of 0"
        return None


class AttentionLimit(OutputLaw):
    r"""Limit law of an attention layer as its width grows, for a Gram matrix of inputs.

    Parameters
    ----------
    gram : array_like, shape (m, m)
        V, the limit of XXᵀ/n; it may be singular.
    heads : int
        H.
    score_scale : float
        σ ≥ 0; with 0 attention is uniform and the law Gaussian.
    tol : float
        Accuracy at which grids aim, from 1e-14 to 0.01.
    nodes : int
        Largest number of quadrature nodes, from 256 to 2**24.

    Raises
    ------
    ValueError
        For a matrix that is no Gram matrix or has entries beyond 1e100, and for
        numbers out of their range.

    References
    ----------
    Sakai, Karakida and Imaizumi, *Infinite-Width Limit of a Single Attention Layer*,
    2025, arXiv:2506.00846.
    """

    def __init__(
        self,
        gram: npt.ArrayLike,
        heads: int = 1,
        score_scale: float = 1.0,
        *,
        tol: float = 1e-6,
        nodes: int = 2**17,
    ) -> None:
        attention = limit_heads(heads, score_scale)
        super().__init__(gram, attention, tol, nodes)

    def kurtosis_constant(self, row: int = 0) -> float:
        """c = 3 Var(u)/(E u)² of a single head: the excess kurtosis is c/H.

        Raises ValueError where the output is always 0, IndexError for a row that is
        not there.
        """
        return self.heads * self.excess_kurtosis(row)

    def width_correction(self, y: npt.ArrayLike, row: int = 0) -> Array:
        r"""The limit of :math:`n\,(F_n(y) - F(y))` for fixed inputs of width n.

        At width n the scores of a row and the variance of a head have independent
        factors :math:`t, c = \chi^2_n/n`, of mean 1 and variance 2/n. So a smooth mean
        changes by half its second derivatives times 2/n:

        .. math:: n (F_n - F) \to \sum_{a=1}^H
                  (\partial_{t_a}^2 + \partial_{c_a}^2)
                  \, E\,\Phi(y/\sqrt v) \big|_{t = c = 1}, \qquad
                  v = \frac1H \sum_a c_a u_a(t_a).

        Parameters
        ----------
        y : array_like
        row : int

        Returns
        -------
        ndarray
            Of the shape of ``y``.

        Raises
        ------
        ValueError
            For points that are not finite, or where the output is always 0.
        IndexError
            For a row that is not there.
        """
        points = require_finite("y", as_float("y", y))
        if self.variance(row) == 0:
            raise ValueError("gram has a token output that is always 0")
        points = points[..., None, None] / np.sqrt(self._unit)
        corrections = [self._correction(points, rule) for rule in self._head_rules(row)]
        return np.asarray(np.mean(corrections, axis=0))

    def _correction(self, points: Array, head: Rule) -> Array:
        """Both second derivatives, for one head and the mean of the others."""
        share = head.values[:, None] / self.heads  # (k, 1)
        v, weights = share, np.ones(1)
        if self.heads > 1:
            rest = mean_rule(head, self.heads - 1)
            v = share + (1 - 1 / self.heads) * rest.values  # (k, k')
            weights = rest.weights
        with np.errstate(over="ignore", under="ignore"):
            x = points / np.sqrt(v)  # (..., k, k')
            normal = np.exp(-(np.minimum(np.abs(x), 40) ** 2) / 2) / np.sqrt(2 * np.pi)
            x = np.clip(x, -40, 40)  # where the normal density is 0
        scores = head.signed @ ndtr(x)
        # ∂²/∂v² Φ(y/√v) = (3x − x³) φ(x)/(4v²), and ∂v/∂c is the share of the head.
        values = head.weights @ ((share / v) ** 2 * (3 * x - x**3) / 4 * normal)
        return np.asarray(self.heads * (scores + values) @ weights)

    def _head_rules(self, row: int) -> list[Rule]:
        return limit_rules(self._row(row), self._tol, self._nodes)
