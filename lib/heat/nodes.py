"""Densities on the line as quadrature nodes with weights."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lib.core.checks import Array, require_line, require_positive, require_weights
from lib.heat.mixture import GaussianMixture, require_mixture

_REACH = 7.5  # standard deviations that the nodes reach to the sides of each mean
_NODES = 1_000_000  # more would not fit in memory on the way
_HEAVY = 1e-9  # share of the largest weight from which the gaps of a node matter


class SpacingWarning(UserWarning):
    """Nodes of a quadrature are too far apart for the kernel to see a density."""


def quadrature(mixture: GaussianMixture, spacing: float) -> tuple[Array, Array]:
    r"""Nodes and weights of the trapezoidal rule: a density as weighted tokens.

    The nodes are equally spaced and reach 7.5 standard deviations beyond each mean;
    the weights are the density, normalized. A kernel of variance ε is integrated with
    a relative error of about :math:`e^{-2\pi^2\varepsilon/h^2}`: 1e-18 for a spacing h
    of 0.7√ε, and 3e-11 for 0.9√ε. A flow moves the nodes apart, so start closer:
    0.35√ε lets the gaps grow by a factor of 2.5.

    Parameters
    ----------
    mixture : GaussianMixture
    spacing : float
        h, at most the least standard deviation of a component.

    Returns
    -------
    x : ndarray, shape (N, 1)
    weights : ndarray, shape (N,)
        Positive with sum 1.

    Raises
    ------
    ValueError
        For an argument that is no mixture, or a spacing that is not positive, exceeds
        a standard deviation, or makes more than a million nodes.
    """
    require_mixture("mixture", mixture)
    h = require_positive("spacing", spacing)
    roots = np.sqrt(mixture.variances)  # (C,)
    if h > roots.min():
        raise ValueError(
            f"spacing must not exceed the least standard deviation {roots.min():.3g},"
            f" got {spacing!r}"
        )
    # Integers k of the nodes kh that reach each component, far from the others or not.
    with np.errstate(over="ignore"):
        first = np.floor((mixture.means - _REACH * roots) / h)
        last = np.ceil((mixture.means + _REACH * roots) / h)
    furthest = np.abs([first, last]).max()
    if not furthest < 2**52 or (last - first + 1).sum() > _NODES:
        raise ValueError(
            f"spacing must leave at most {_NODES} nodes of different places,"
            f" got {spacing!r}"
        )
    reached = [np.arange(a, b + 1) for a, b in zip(first, last, strict=True)]
    x = h * np.unique(np.concatenate(reached))  # (N,)
    weights = mixture.pdf(x)
    return x[:, None], weights / weights.sum()


def node_density(x: npt.ArrayLike, weights: npt.ArrayLike) -> Array:
    """Density at quadrature nodes that have moved: weight over width of the cell.

    The cell of a node reaches half of the way to each neighbor; the ones at both ends
    are as wide as the gap beside them.

    Parameters
    ----------
    x : array_like, shape (N, 1)
        Distinct nodes in any order, at least two.
    weights : array_like, shape (N,)
        Positive weights of sum 1.

    Returns
    -------
    ndarray, shape (N,)

    Raises
    ------
    ValueError
        For nodes that are not a finite (N, 1) array of distinct places, or weights
        that are not positive with sum 1.
    """
    nodes = require_line("x", x)
    if len(nodes) < 2:
        raise ValueError(f"x must have two nodes or more, got shape {nodes.shape}")
    w = require_weights("weights", weights, len(nodes), "x")
    cells = node_cells(nodes)
    with np.errstate(over="ignore", divide="ignore"):
        density = w / cells
    if not np.isfinite(density).all():
        raise ValueError(f"x must have distinct nodes, but a cell is {cells.min():.3g}")
    return density


def node_cells(x: Array) -> Array:
    """Widths of the cells of nodes (N, 1) on the line, (N,); 0 among three equal."""
    order = np.argsort(x[:, 0])
    gaps = np.diff(x[order, 0])  # (N - 1,)
    cells = np.empty(len(x))
    cells[order] = (np.append(gaps[0], gaps) + np.append(gaps, gaps[-1])) / 2
    return cells


def widest_gap(x: Array, weights: Array) -> float:
    """Widest gap next to a node whose weight is not negligible, 0 for one node."""
    order = np.argsort(x[:, 0])
    heavy = weights[order] > _HEAVY * weights.max()
    gaps = np.diff(x[order, 0])[heavy[1:] & heavy[:-1]]
    return float(gaps.max(initial=0.0))
