"""Measurements of a crowd of tokens while it moves."""

from __future__ import annotations

import numpy.typing as npt

from lib.core.checks import Array
from lib.sphere.energy import partition_function
from lib.sphere.geometry import neighbors, shares


def crowd_state(x: npt.ArrayLike, beta: float, radius: float) -> dict[str, Array]:
    r"""Height of the energy, neighbors of each token, effective number of clusters.

    The height is the mean of :func:`lib.sphere.partition_function` over the tokens,
    less a factor :math:`e^{|\beta|}`: the shifted interaction energy times 2β, which
    exists at β = 0 as well.

    Parameters
    ----------
    x : array_like, shape (..., n, d)
        Unit tokens.
    beta : float
        Inverse temperature, of either sign.
    radius : float
        Largest chord within a cluster.

    Returns
    -------
    dict
        ``height`` (...), ``neighbors`` (..., n), ``clusters`` (...).

    Raises
    ------
    ValueError
        For tokens off the sphere, or a radius that is not positive.
    """
    near = neighbors(x, radius)
    return {
        "height": partition_function(x, beta, shifted=True).mean(axis=-1),
        "neighbors": near,
        "clusters": shares(near),
    }
