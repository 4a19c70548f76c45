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

from lib._checks import Array
from lib._hierarchical import nodes as _nodes
from lib._hierarchical import rules as _rules
from lib._hierarchical.widths import Layer
from lib.attention import softmax

_CELLS = 2**20  # scores that are held at a time
_EQUAL = 1e-9  # norms that differ by less, relative to the largest, count as equal
_RANK = 1e-13  # eigenvalues below this share of the trace count as zero

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

    def grids(self, stretch: float, tolerance: float, most: int) -> Nodes:
        """Grids for g, with scores multiplied by ``stretch``; none if too large."""
        scale, zero = stretch * self.scale, None
        if self.root.shape[-1] == 1 and self.logits.size and self.around_zero():
            zero = _crossing(self.logits[:, 0], self.root[:, 0]) / scale
        return _nodes.grids(scale * self.logits, tolerance, most, zero)

    def around_zero(self) -> bool:
        """Whether tokens on a line lie on both sides of 0."""
        return bool(self.root.min() < 0 < self.root.max())

    def variances(self, nodes: Array, stretch: Array | float = 1.0) -> Array:
        """u at the nodes g (N, d), with scores multiplied by ``stretch``."""
        found = np.empty(len(nodes))
        step = max(1, _CELLS // len(self.root))
        stretch = np.broadcast_to(stretch, len(nodes))
        for start in range(0, len(nodes), step):
            part = slice(start, start + step)
            g = self.scale * stretch[part, None] * nodes[part]
            found[part] = ((softmax(g @ self.logits.T) @ self.root) ** 2).sum(axis=-1)
        return found


def _crossing(logits: Array, line: Array) -> float:
    """Where the mean of the tokens of a line, under the softmax of x·logits, is 0.

    It is monotone in x, because the logits are the tokens less their mean.
    """
    from scipy.optimize import brentq

    def mean(x: float) -> float:
        return float(softmax(x * logits) @ line)

    end = 1.0
    while mean(-end) * mean(end) > 0:
        end *= 2
    return float(brentq(mean, -end, end, xtol=1e-15))


def root(gram: Array) -> Array:
    """Root C of V = CCᵀ, shape (m, r), its columns by falling norm; r is at least 1."""
    values, vectors = np.linalg.eigh(gram)
    kept = values > _RANK * max(np.trace(gram), 0)
    kept[-1] = True
    return settled((vectors * np.sqrt(np.maximum(values, 0)))[:, kept][:, ::-1])


def settled(columns: Array) -> Array:
    """The same columns, by falling norm, with signs and equal norms settled.

    Eigenvectors of one eigenvalue are any basis of their space, another one on another
    processor. A rotation among columns of equal norm makes them lower triangular with
    a positive diagonal, and leaves the Gram matrix of the rows as it is.
    """
    found = columns.copy()
    norms = np.linalg.norm(columns, axis=0)
    gaps = np.abs(np.diff(norms)) > _EQUAL * norms.max(initial=0)
    for part in np.split(np.arange(norms.size), np.flatnonzero(gaps) + 1):
        if part.size:
            upper: Array = np.asarray(np.linalg.qr(columns[:, part].T, mode="r"))
            signs = np.where(np.diagonal(upper) < 0, -1.0, 1.0)
            found[:, part] = (upper * signs[:, None]).T
    return found


def row_of(gram: Array, row: int, score_scale: float) -> Row:
    """The row ``row`` of tokens whose Gram matrix has entries of at most 1."""
    whole = root(gram)
    centered = whole - whole.mean(axis=0)  # J C
    values, vectors = np.linalg.eigh(centered.T @ centered)
    scale = float(score_scale * np.sqrt(max(gram[row, row], 0.0)))
    logits = settled(centered @ vectors[:, ::-1])
    # Directions that rounding makes, and those that leave the softmax uniform.
    felt = scale * np.ptp(logits, axis=0) > 1e-17
    kept = felt & (values[::-1] > _RANK * max(np.trace(gram), 0))
    return Row(scale, logits[:, kept], whole)


def limit_rules(row: Row, tolerance: float, most: int) -> list[_rules.Rule]:
    """Rules for u in the limit.

    Their signed weights are those of ∂²/∂t² at t = 1: the density of √t g has this
    derivative, divided by the density itself.
    """
    d = row.logits.shape[-1]

    def rule(g: Array, weights: Array) -> _rules.Rule:
        square = (g**2).sum(axis=-1)
        ratio = (square - d) ** 2 / 4 + d / 2 - square
        return _rules.gauss(row.variances(g), weights, ratio)

    if grids := row.grids(1.0, tolerance, most):
        return [rule(g, weights) for g, weights in grids]
    replicates = _nodes.sobol(d, most // _nodes.REPLICATES)
    return [rule(ndtri(points), _equal(len(points))) for points in replicates]


def finite_rules(
    row: Row, layer: Layer, tolerance: float, most: int
) -> list[_rules.Rule]:
    """Rules for u at the width of a head, the factor of the output matrix included."""
    width = layer.head_width
    assert width is not None
    replicates = _stretched_grids(row, width, tolerance, most)
    rules = [_rules.gauss(u, weights) for u, weights in replicates]
    rules = rules or list(_stretched_sobol(row, width, most))
    if not layer.output_matrix:
        return rules
    factors = [_rules.chi_square(width), _rules.chi_square(width, second=True)]
    return [_rules.times(rule, factors[k % 2]) for k, rule in enumerate(rules)]


def _stretched_grids(row: Row, width: int, tolerance: float, most: int) -> Nodes:
    """u and weights over g and t: a grid for each node of t, or none if too many."""
    replicates: Nodes = []
    if row.logits.shape[-1] == 0:
        u = row.variances(np.zeros((1, 0)))
        return [(u, np.ones(1))] * 2
    for place in (0, 1):
        times, shares, _ = _rules.chi_square(width, second=bool(place))
        parts, left = [], most // 2
        for t, share in zip(np.sqrt(times), shares, strict=True):
            grids = row.grids(float(t), tolerance, 2 * left)
            if not grids:
                return []
            g, weights = grids[place]
            left -= len(g)
            parts.append((row.variances(g, float(t)), share * weights))
        u, weights = (np.concatenate(column) for column in zip(*parts, strict=True))
        replicates.append((u, weights))
    return replicates


def _stretched_sobol(row: Row, width: int, most: int) -> Iterator[_rules.Rule]:
    """Rules for u over g and t by Sobol' points."""
    d, count = row.logits.shape[-1], most // _nodes.REPLICATES
    for points in _nodes.sobol(d + 1, count):
        t = gammaincinv(width / 2, points[:, 0]) * 2 / width
        u = row.variances(ndtri(points[:, 1:]), np.sqrt(t))
        yield _rules.gauss(u, _equal(len(u)))


def _equal(count: int) -> Array:
    return np.full(count, 1 / count)
