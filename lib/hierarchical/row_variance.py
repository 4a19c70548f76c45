r"""The variance of one output row in one head, as Gauss rules in replicates.

Given the scores it is :math:`u = |C^\top s|^2`, where :math:`V = CC^\top` and

.. math:: s = \mathrm{softmax}\big(\sigma \sqrt{V_{ii}\, t}\; B g\big), \qquad
          BB^\top = JVJ, \qquad g \sim N(0, I),

since the softmax does not see what J removes. In the limit t = 1; at width n it is an
independent :math:`\chi^2_n/n`, and the output matrix gives u one more such factor.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaincinv, ndtri

from lib.attention import softmax
from lib.core.checks import Array
from lib.core.psd import RANK, canonical_columns, canonical_root
from lib.core.quadrature import REPLICATES, normal_grids, sobol
from lib.hierarchical.gauss_rule import Rule, chi_square_rule, gauss_rule, product_rule
from lib.hierarchical.samplers import Heads

_CELLS = 2**20  # scores that are held at a time
Nodes = list[tuple[Array, Array]]  # replicates of nodes and weights


@dataclass(frozen=True)
class Row:
    """One row: the slopes of its scores and the roots behind them.

    Attributes
    ----------
    scale : float
        σ √V_ii, after a division of V by its size.
    logits : ndarray, shape (m, d)
        B, its columns by falling norm.
    root : ndarray, shape (m, r)
        C.
    """

    scale: float
    logits: Array
    root: Array

    def grids(self, stretch: float, tol: float, most: int) -> Nodes:
        """Grids for g, with scores multiplied by ``stretch``; none if too large."""
        scale, zero = stretch * self.scale, None
        if self.root.shape[-1] == 1 and self.logits.size and self.around_zero():
            zero = _crossing(self.logits[:, 0], self.root[:, 0]) / scale
        return normal_grids(scale * self.logits, tol, most, zero)

    def around_zero(self) -> bool:
        """Tell whether tokens on a line lie on both sides of 0."""
        return bool(self.root.min() < 0 < self.root.max())

    def variances(self, nodes: Array, stretch: Array | float = 1.0) -> Array:
        """u at the nodes g (N, d), with scores multiplied by ``stretch``."""
        values = np.empty(len(nodes))
        step = max(1, _CELLS // len(self.root))
        stretch = np.broadcast_to(stretch, len(nodes))
        for start in range(0, len(nodes), step):
            part = slice(start, start + step)
            g = self.scale * stretch[part, None] * nodes[part]
            values[part] = ((softmax(g @ self.logits.T) @ self.root) ** 2).sum(axis=-1)
        return values


def _crossing(logits: Array, line: Array) -> float:
    """The x at which the tokens of a line have mean 0 under the softmax of x·logits.

    It is monotone in x, because the logits are the tokens less their mean.
    """
    from scipy.optimize import brentq

    def mean(x: float) -> float:
        return float(softmax(x * logits) @ line)

    end = 1.0
    while mean(-end) * mean(end) > 0:
        end *= 2
    return float(brentq(mean, -end, end, xtol=1e-15))


def row_of(gram: Array, row: int, score_scale: float) -> Row:
    """The row ``row`` of tokens whose Gram matrix has entries of at most 1."""
    whole = canonical_root(gram)
    centered = whole - whole.mean(axis=0)  # J C
    values, vectors = np.linalg.eigh(centered.T @ centered)
    scale = float(score_scale * np.sqrt(max(gram[row, row], 0.0)))
    logits = canonical_columns(centered @ vectors[:, ::-1])
    # Directions that rounding makes, and those that leave the softmax uniform.
    felt = scale * np.ptp(logits, axis=0) > 1e-17
    kept = felt & (values[::-1] > RANK * max(np.trace(gram), 0))
    return Row(scale, logits[:, kept], whole)


def limit_rules(row: Row, tol: float, most: int) -> list[Rule]:
    """Rules for u in the limit.

    Their signed weights are those of ∂²/∂t² at t = 1: the density of √t g has this
    derivative, divided by the density itself.
    """
    d = row.logits.shape[-1]

    def rule(g: Array, weights: Array) -> Rule:
        square = (g**2).sum(axis=-1)
        ratio = (square - d) ** 2 / 4 + d / 2 - square
        return gauss_rule(row.variances(g), weights, ratio)

    if grids := row.grids(1.0, tol, most):
        return [rule(g, weights) for g, weights in grids]
    replicates = sobol(d, most // REPLICATES)
    return [rule(ndtri(points), _equal(len(points))) for points in replicates]


def finite_rules(row: Row, heads: Heads, tol: float, most: int) -> list[Rule]:
    """Rules for u at the width of a head, the factor of the output matrix included."""
    width = heads.head_width
    assert width is not None
    replicates = _stretched_grids(row, width, tol, most)
    rules = [gauss_rule(u, weights) for u, weights in replicates]
    rules = rules or list(_stretched_sobol(row, width, most))
    if not heads.output_matrix:
        return rules
    factors = [chi_square_rule(width), chi_square_rule(width, second=True)]
    return [product_rule(rule, factors[k % 2]) for k, rule in enumerate(rules)]


def _stretched_grids(row: Row, width: int, tol: float, most: int) -> Nodes:
    """u and weights over g and t: a grid for each node of t, or none if too many."""
    replicates: Nodes = []
    if row.logits.shape[-1] == 0:
        u = row.variances(np.zeros((1, 0)))
        return [(u, np.ones(1))] * 2
    for place in (0, 1):
        times, shares, _ = chi_square_rule(width, second=bool(place))
        parts, left = [], most // 2
        for t, share in zip(np.sqrt(times), shares, strict=True):
            grids = row.grids(float(t), tol, 2 * left)
            if not grids:
                return []
            g, weights = grids[place]
            left -= len(g)
            parts.append((row.variances(g, float(t)), share * weights))
        u, weights = (np.concatenate(column) for column in zip(*parts, strict=True))
        replicates.append((u, weights))
    return replicates


def _stretched_sobol(row: Row, width: int, most: int) -> Iterator[Rule]:
    """Rules for u over g and t by Sobol' points."""
    d, count = row.logits.shape[-1], most // REPLICATES
    for points in sobol(d + 1, count):
        t = gammaincinv(width / 2, points[:, 0]) * 2 / width
        u = row.variances(ndtri(points[:, 1:]), np.sqrt(t))
        yield gauss_rule(u, _equal(len(u)))


def _equal(count: int) -> Array:
    return np.full(count, 1 / count)
