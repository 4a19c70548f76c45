"""Laws of one attention layer for given inputs, in the limit and at finite width."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from lib._checks import Array, as_float, require_finite
from lib._hierarchical import heads as _heads
from lib._hierarchical import rules as _rules
from lib._hierarchical import widths as _widths
from lib._hierarchical.output_law import OutputLaw


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
    tolerance : float
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
        tolerance: float = 1e-6,
        nodes: int = 2**17,
    ) -> None:
        layer = _widths.limit_layer(heads, score_scale)
        super().__init__(gram, layer, tolerance, nodes)

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
        found = [self._correction(points, rule) for rule in self._head_rules(row)]
        return np.asarray(np.mean(found, axis=0))

    def _correction(self, points: Array, head: _rules.Rule) -> Array:
        """Both second derivatives, for one head and the mean of the others."""
        share = head.values[:, None] / self.heads  # (k, 1)
        v, weights = share, np.ones(1)
        if self.heads > 1:
            rest = _rules.mean(head, self.heads - 1)
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

    def _head_rules(self, row: int) -> list[_rules.Rule]:
        return _heads.limit_rules(self._row(row), self._tolerance, self._nodes)


class FiniteAttention(OutputLaw):
    r"""Exact law of an attention layer of finite width, for fixed inputs.

    Beside heads of the full width there are low-rank heads, with weights
    :math:`W^Q, W^K, W^V \in \mathbb R^{n \times n_H}` of variance 1/n and :math:`W^O
    \in \mathbb R^{n_H \times n}` of variance :math:`1/n_H`; the scores are then divided
    by :math:`\sqrt{n_H}`. For given inputs the law depends on :math:`n_H` alone.

    The mixing variable is that of the limit with two more factors: in each head

    .. math:: v = \frac1H \sum_a c_a\, s_a^\top V s_a, \qquad
              s_a = \mathrm{softmax}\big(\sigma \sqrt{t_a}\, p^\circ_a\big), \qquad
              c_a, t_a \sim \chi^2_{n_H}/n_H \text{ independent.}

    Without output matrix all c_a are 1.

    Parameters
    ----------
    gram : array_like, shape (m, m)
        V = XXᵀ/n, of rank at most n.
    width : int
        n.
    heads : int
        H.
    score_scale : float
        σ ≥ 0.
    head_width : int, optional
        :math:`n_H`; n if left out.
    output_matrix : bool
        Whether the heads are multiplied by W^O.
    tolerance : float
        Accuracy at which grids aim, from 1e-14 to 0.01.
    nodes : int
        Largest number of quadrature nodes, from 256 to 2**24.

    Raises
    ------
    ValueError
        For a matrix that is no Gram matrix, has entries beyond 1e100 or a rank above
        the width, and for numbers out of their range.
    """

    def __init__(
        self,
        gram: npt.ArrayLike,
        width: int,
        heads: int = 1,
        score_scale: float = 1.0,
        *,
        head_width: int | None = None,
        output_matrix: bool = True,
        tolerance: float = 1e-6,
        nodes: int = 2**17,
    ) -> None:
        layer = _widths.finite_layer(
            heads, score_scale, width, head_width, output_matrix
        )
        super().__init__(gram, layer, tolerance, nodes)
        self.width = int(width)
        rank = self._root.shape[-1]
        if rank > width:
            raise ValueError(f"gram has rank {rank}, more than the width {width}")

    def _head_rules(self, row: int) -> list[_rules.Rule]:
        return _heads.finite_rules(
            self._row(row), self._layer, self._tolerance, self._nodes
        )

    def _infinite_at_zero(self, row: int) -> str | None:
        layer = self._layer
        if self.heads == 1 and layer.head_width == 1 and layer.output_matrix:
            return "a single head of width 1 multiplies two normal variables"
        return super()._infinite_at_zero(row)
