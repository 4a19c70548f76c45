r"""Tokens in one hemisphere, which attention always brings together."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lib.core.checks import Array, require_count
from lib.sphere.geometry import require_unit

_ROUNDING = 1e-12  # a cosine above this is positive


def hemisphere_pole(x: npt.ArrayLike) -> Array:
    r"""A unit vector :math:`\xi` with all :math:`\langle x_i, \xi\rangle > 0`, if any.

    Such a vector is missing exactly if the origin is a convex combination of the
    tokens (Gordan). Non-negative least squares for weights :math:`w \ge 0` with
    :math:`X^\top w = 0` and :math:`\sum_i w_i = 1` decides: its residual is 0, or it
    contains :math:`\xi`. Hemispheres in which no pole has all cosines above about 1e-7
    are not found.

    Parameters
    ----------
    x : array_like, shape (..., n, d)
        Unit tokens.

    Returns
    -------
    ndarray, shape (..., d)
        :math:`\xi`, or zeros for a system that lies in no open hemisphere.

    Raises
    ------
    ValueError
        For tokens off the sphere.
    """
    from scipy.optimize import nnls

    x = require_unit("x", x)
    *batch, n, d = x.shape
    target = np.append(np.zeros(d), 1.0)
    poles = np.zeros((int(np.prod(batch)), d))
    for pole, tokens in zip(poles, x.reshape(-1, n, d), strict=True):
        rows = np.vstack([tokens.T, np.ones(n)])
        weights, _ = nnls(rows, target)
        # The residual (−direction, height) makes no acute angle with a column of rows:
        # <x_i, direction> ≥ height, which is |direction|² next to 0.
        direction = rows[:d] @ weights
        length = np.sqrt(np.sum(direction**2))
        if (tokens @ direction > _ROUNDING * length).all():
            pole[:] = direction / length
    return poles.reshape(*batch, d)


def hemisphere_probability(n: int, d: int) -> float:
    r"""Probability that n uniform tokens lie in one hemisphere.

    .. math:: 2^{1 - n} \sum_{k=0}^{d-1} \binom{n-1}{k} ,

    which is 1 for :math:`n \le d`.

    Parameters
    ----------
    n : int
        Number of tokens.
    d : int
        Dimension.

    Returns
    -------
    float
        Between 0 and 1.

    Raises
    ------
    ValueError
        For counts below 1.

    References
    ----------
    Wendel, *A problem in geometric probability*, Math. Scand. 11 (1962).
    """
    from scipy.special import bdtr

    require_count("n", n)
    require_count("d", d)
    # The sum is that of n − 1 fair coins with fewer than d heads.
    return float(bdtr(d - 1, n - 1, 0.5)) if n > d else 1.0
