"""The source's experiment: inputs that are random themselves, drawn at any width."""

from __future__ import annotations

import numpy as np

from lib._checks import Array, require_count, require_generator
from lib._hierarchical.widths import Inputs, finite_layer, outputs, row_variances
from lib._wishart import factor


def random_inputs(tokens: int, width: int, rng: np.random.Generator) -> Inputs:
    r"""The inputs of the source's experiment, others for each network.

    There :math:`x_i = W^i h` with a common h ~ N(0, I), so that
    :math:`V = \tfrac{q}{n} GG^\top`, with :math:`q = \chi^2_n/n` and a normal m × n
    matrix G.
    """

    def roots(networks: int) -> Array:
        scale = np.sqrt(rng.chisquare(width, (networks, 1, 1))) / width
        drawn = scale * factor(networks, tokens, width, rng)  # (networks, m, r)
        return np.asarray(drawn[:, None])

    return Inputs(tokens, roots)


def experiment(
    tokens: int,
    width: int,
    heads: int,
    size: int,
    *,
    score_scale: float = 1.0,
    head_width: int | None = None,
    coordinates: int | None = None,
    rng: np.random.Generator,
) -> Array:
    r"""Outputs with the random inputs of the source's experiment, exact in law.

    There :math:`x_i = W^i h`, with weights of variance 1/n and one h ~ N(0, I) for all
    tokens; each network has inputs of its own. As the width grows V tends to I.

    Parameters
    ----------
    tokens : int
        m.
    width, heads : int
        n and H.
    size : int
        Number of networks.
    score_scale : float
        σ ≥ 0.
    head_width : int, optional
        Width of a head; n if left out.
    coordinates : int, optional
        Coordinates of each network; one if left out.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray, shape (size, m), or (size, m, coordinates) where that is given

    Raises
    ------
    ValueError
        For counts below 1, more coordinates than the width, or a score scale that is
        not a number from 0 to 1e100.

    References
    ----------
    Sakai, Karakida and Imaizumi, *Infinite-Width Limit of a Single Attention Layer*,
    2025, arXiv:2506.00846, section of simulations.
    """
    layer = finite_layer(heads, score_scale, width, head_width)
    tokens, size = require_count("tokens", tokens), require_count("size", size)
    columns = 1 if coordinates is None else coordinates
    columns = require_count("coordinates", columns, most=layer.columns)
    inputs = random_inputs(tokens, int(width), require_generator("rng", rng))
    drawn = outputs(inputs, layer, size, columns, rng)
    return drawn[..., 0] if coordinates is None else drawn


def experiment_variance(
    tokens: int,
    width: int,
    heads: int,
    size: int,
    *,
    score_scale: float = 1.0,
    head_width: int | None = None,
    rng: np.random.Generator,
) -> Array:
    """Variance of an output coordinate given scores, inputs and values; one row.

    By symmetry all rows have the same law. The arguments are those of
    :func:`experiment`.

    Returns
    -------
    ndarray, shape (size,)
        Draws of v for :class:`ScaleMixture`.

    Raises
    ------
    ValueError
        As :func:`experiment`.
    """
    layer = finite_layer(heads, score_scale, width, head_width)
    tokens, size = require_count("tokens", tokens), require_count("size", size)
    inputs = random_inputs(tokens, int(width), require_generator("rng", rng))
    return row_variances(inputs, layer, size, 0, rng)
