"""Wasserstein distance of weighted tokens to an exact law, on the line."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from lib.core.checks import Array, require_line, require_tokens, weights_or_equal
from lib.heat.mixture import GaussianMixture, require_mixture

_CROSSED = 1e-9  # weight of crossing tokens that does not matter


@dataclass(frozen=True)
class PairedDistance:
    """A root mean squared distance of pairs, and whether it is more than W2.

    Attributes
    ----------
    value : float
        The distance.
    upper_bound : bool
        True where the value is only an upper bound of W2, since tokens with more than
        1e-9 of the weight crossed.
    crossed : float
        Weight of the tokens that passed a neighbor.
    """

    value: float
    upper_bound: bool
    crossed: float


def w2_of_pairs(
    x: npt.ArrayLike, y: npt.ArrayLike, *, weights: npt.ArrayLike | None = None
) -> PairedDistance:
    r"""Distance :math:`\sqrt{\sum_i w_i (x_i - y_i)^2}` of tokens from their partners.

    This is the distance for a *density* that moves: x are its quadrature nodes under
    the scheme, y the same nodes under the exact flow map. If the order of the nodes is
    kept, the pairing is the best one, and the value is W2 (of the densities, up to the
    error of the quadrature). If tokens cross, it is only an upper bound.

    Parameters
    ----------
    x, y : array_like, shape (n, 1)
        Tokens and their partners.
    weights : array_like, shape (n,), optional
        Positive weights of sum 1, by default 1/n.

    Returns
    -------
    PairedDistance

    Raises
    ------
    ValueError
        For tokens or partners that are not a finite (n, 1) array of one shape, or
        weights that are not positive with sum 1.
    """
    tokens, w = _line("x", x, weights)
    partners = require_tokens("y", y)
    if partners.shape != (len(tokens), 1):
        raise ValueError(
            f"y must have shape {(len(tokens), 1)} as x has, got {partners.shape}"
        )
    order = np.argsort(partners[:, 0], kind="stable")
    passed = np.append(np.diff(tokens[order]) < 0, False)
    passed[1:] |= passed[:-1]  # both of two neighbors
    crossed = float(w[order] @ passed)
    value = float(np.sqrt(w @ (tokens - partners[:, 0]) ** 2))
    return PairedDistance(value, crossed > _CROSSED, crossed)


def w2_to_law(
    x: npt.ArrayLike, law: GaussianMixture, *, weights: npt.ArrayLike | None = None
) -> float:
    r"""Exact :math:`W_2` between tokens, as point masses, and a mixture on the line.

    In increasing order token i takes the cell of the law between the quantiles of the
    cumulative weights before and after it, so that

    .. math:: W_2^2 = \sum_i \int_{q_{i-1}}^{q_i} (x_i - y)^2 \rho(y) \, \mathrm dy .

    Each integral is closed for a Gaussian mixture. Its terms cancel, so that a distance
    below some 1e-7 of the spread drowns in rounding.

    Parameters
    ----------
    x : array_like, shape (n, 1)
        Tokens, in any order.
    law : GaussianMixture
    weights : array_like, shape (n,), optional
        Positive weights of sum 1, by default 1/n.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        For tokens that are not a finite (n, 1) array, a law that is no mixture, or
        weights that are not positive with sum 1.
    """
    require_mixture("law", law)
    tokens, w = _line("x", x, weights)
    order = np.argsort(tokens, kind="stable")
    inner = np.minimum(np.cumsum(w[order])[:-1], 1.0)
    ends = np.concatenate([[-np.inf], law.ppf(inner), [np.inf]])  # (n + 1,)
    roots = np.sqrt(law.variances)
    z = (ends[:, None] - law.means) / roots  # (n + 1, C)
    density = np.exp(-(np.minimum(np.abs(z), 40) ** 2) / 2) / np.sqrt(2 * np.pi)
    # With y = μ + √s z, ∫(x − y)² over a cell is s ∫(r − z)²φ, where ∫zφ = −Δφ, and
    # ∫z²φ makes 1 of all cells together.
    r = (tokens[order][:, None] - law.means) / roots  # (n, C)
    with np.errstate(over="ignore", invalid="ignore"):
        cells = r**2 * np.diff(ndtr(z), axis=0) + 2 * r * np.diff(density, axis=0)
        total = (law.variances * law.weights) @ (1 + cells.sum(axis=0))
    if not np.isfinite(total):
        raise ValueError(f"x is too far from the law, at {np.abs(tokens).max():.3g}")
    return float(np.sqrt(max(total, 0.0)))


def _line(
    name: str, x: npt.ArrayLike, weights: npt.ArrayLike | None
) -> tuple[Array, Array]:
    tokens = require_line(name, x)
    return tokens[:, 0], weights_or_equal("weights", weights, len(tokens), name)
