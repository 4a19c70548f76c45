"""Law of one attention layer of finite width for given inputs, and draws from it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lib.core.checks import Array
from lib.hierarchical.gauss_rule import Rule
from lib.hierarchical.law import OutputLaw
from lib.hierarchical.row_variance import finite_rules
from lib.hierarchical.samplers import finite_heads


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
    tol : float
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
        tol: float = 1e-6,
        nodes: int = 2**17,
    ) -> None:
        attention = finite_heads(heads, score_scale, width, head_width, output_matrix)
        super().__init__(gram, attention, tol, nodes)
        self.width = int(width)
        rank = self._root.shape[-1]
        if rank > width:
            raise ValueError(f"gram has rank {rank}, more than the width {width}")

    def _head_rules(self, row: int) -> list[Rule]:
        return finite_rules(self._row(row), self._attention, self._tol, self._nodes)

    def _infinite_at_zero(self, row: int) -> str | None:
        attention = self._attention
        if self.heads == 1 and attention.head_width == 1 and attention.output_matrix:
            return "a single head of width 1 multiplies two normal variables"
        return super()._infinite_at_zero(row)


def finite_width(
    gram: npt.ArrayLike,
    width: int,
    heads: int,
    size: int,
    *,
    score_scale: float = 1.0,
    head_width: int | None = None,
    output_matrix: bool = True,
    coordinates: int | None = None,
    rng: np.random.Generator,
) -> Array:
    """Outputs of attention layers of finite width for fixed inputs, exact in law.

    The cost of a draw does not depend on the width: no weight matrix is formed.

    Parameters
    ----------
    gram : array_like, shape (m, m)
        V = XXᵀ/n, of rank at most n.
    width, heads : int
        n and H.
    size : int
        Number of networks.
    score_scale, head_width, output_matrix
        As in :class:`FiniteAttention`.
    coordinates : int, optional
        Coordinates of each network; one if left out.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray, shape (size, m), or (size, m, coordinates) where that is given

    Raises
    ------
    ValueError
        As :class:`FiniteAttention`, and for counts below 1.
    """
    law = FiniteAttention(
        gram,
        width,
        heads,
        score_scale,
        head_width=head_width,
        output_matrix=output_matrix,
    )
    return law.sample(size, coordinates=coordinates, rng=rng)
