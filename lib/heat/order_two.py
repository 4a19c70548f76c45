r"""The leading errors of a layer and of many, from derivatives of the flow map.

Along :math:`\dot x = -\frac12 (\log\rho_t)'(x)` a layer :math:`x \mapsto 2x - B(x)` has
the first three terms of the flow map and lacks the fourth, in formal expansions: it is
off by :math:`-\frac{\varepsilon^3}6 x^{(3)}`. The heat equation is linear in the
density, which carries the errors of all layers to the end.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lib.core.checks import Array, require_moderate, require_positive
from lib.heat.mixture import GaussianMixture, require_mixture

_TIMES = 32  # nodes of Gauss and Legendre in the logarithm of the variance
# Step and range of the trapezoid rule for a Gaussian mean, in standard deviations.
_STEP, _RANGE = 0.2, 9.0


def acceleration(law: GaussianMixture, x: npt.ArrayLike) -> Array:
    r"""Second derivative in time :math:`\ddot x` of the heat flow's map, at time 0.

    With :math:`L = \log\rho` it is :math:`-\frac14 (L''' + L' L'')`.

    Parameters
    ----------
    law : GaussianMixture
        The density at that time.
    x : array_like
        Places, of any shape.

    Returns
    -------
    ndarray
        Of the shape of x.

    Raises
    ------
    ValueError
        For a law that is no GaussianMixture, or an x that its score would refuse.
    """
    one, two, three = require_mixture("law", law).log_derivatives(x, 3)
    return np.asarray(-(three + one * two) / 4)


def jerk(law: GaussianMixture, x: npt.ArrayLike) -> Array:
    r"""Third derivative in time :math:`x^{(3)}` of the heat flow's map, at time 0.

    It is the derivative of :func:`acceleration` along the flow; with
    :math:`\partial_t L = \frac12 (L'' + L'^2)`,

    .. math::

        x^{(3)} = -\tfrac14 \big( \tfrac12 L^{(5)} + L' L^{(4)} + \tfrac72 L'' L'''
        + \tfrac32 L' L''^2 + \tfrac12 L'^2 L''' \big) .

    Parameters, returns and raises as :func:`acceleration`.
    """
    one, two, three, four, five = require_mixture("law", law).log_derivatives(x, 5)
    parts = five / 2 + one * four + 3.5 * two * three
    parts += 1.5 * one * two**2 + one**2 * three / 2
    return np.asarray(-parts / 4)


def leading_error(law: GaussianMixture, x: npt.ArrayLike, horizon: float) -> Array:
    r"""Error of the layers up to a time T over :math:`\varepsilon^2`, as ε → 0.

    The displacement of the token that the exact flow would have brought to x,

    .. math::

        -\frac1{\rho_T(x)} \int_0^T \Big( G_{T-t} * \frac{\rho_t x^{(3)}_t}6
        \Big)(x)\, \mathrm dt ,

    with the Gaussian density :math:`G_s` of variance s: on the line a displacement
    :math:`\delta` of the law changes its distribution function by
    :math:`-\rho_t\delta`, which then follows the heat equation. Formal, as the
    expansion of the layer is.

    Parameters
    ----------
    law : GaussianMixture
        The density at time 0.
    x : array_like
        Places at time T, of any shape.
    horizon : float
        T > 0.

    Returns
    -------
    ndarray
        Of the shape of x. The norm in :math:`L^2(\rho_T)` is the limit of
        :math:`W_2/\varepsilon^2`.

    Raises
    ------
    ValueError
        As :func:`acceleration`, or for a horizon that is not positive.
    """
    least = require_mixture("law", law).variances.min()
    places, end = require_moderate("x", x), require_positive("horizon", horizon)
    level, total = law.heat(end).pdf(places), np.zeros_like(places)
    # The jerk falls with the time on the scale of the least variance: equal steps in
    # the logarithm of that variance.
    nodes, weights = np.polynomial.legendre.leggauss(_TIMES)
    span = np.log1p(end / least)
    for node, weight in zip((1 + nodes) / 2, weights / 2, strict=True):
        t = least * np.expm1(node * span)
        step = weight * span * (least + t)
        total -= step * _smoothed(law.heat(t), places, max(end - t, 0.0)) / 6
    return np.asarray(total / level)


def _smoothed(law: GaussianMixture, x: Array, variance: float) -> Array:
    """Mean of density times jerk at x plus a centered normal of that variance."""
    root = np.sqrt(variance)
    # The density is not smoother than its narrowest component.
    step = _STEP * min(1.0, np.sqrt(law.variances.min()) / root)
    noise = np.arange(-_RANGE, _RANGE + step / 2, step)
    masses = np.exp(-(noise**2) / 2)
    spread = x[..., None] + root * noise  # (..., nodes)
    values = law.pdf(spread) * jerk(law, spread)
    return np.asarray(values @ (masses / masses.sum()))
