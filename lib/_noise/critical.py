"""Where the uniform law ceases to be stable, and the energy that decides."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lib._checks import Array, require_count, require_number
from lib._circle.growth import growth_rate
from lib._circle.series import Kernel, as_density
from lib.mean_field import density_moments

SMALLEST_BETA = 1e-100


def critical_noise(beta: npt.ArrayLike, normalize: bool = True, *, d: int = 2) -> Array:
    r"""Noise :math:`\eta_\#` below which the uniform law is unstable.

    A harmonic of degree k grows at the rate :math:`\lambda_k - \eta k(k + d - 2)`. The
    first one is the last to become stable, at :math:`\eta_\# = \Lambda_1/\beta`, or
    :math:`\Lambda_1/(\beta\Lambda_0)` for the normalized model.

    Parameters
    ----------
    beta : float or array_like
        Inverse temperature, of either sign.
    normalize : bool
        False for the unnormalized model: :math:`e^{-|\beta|}\Lambda_1/\beta`.
    d : int
        Dimension, at least 2.

    Returns
    -------
    ndarray
        Of the shape of ``beta``.

    Raises
    ------
    ValueError
        As :func:`lib.circle.growth_rate`.
    """
    return np.asarray(growth_rate(1, beta, normalize, d=d) / (d - 1))[()]


def tricritical_beta(d: int = 2) -> float:
    r"""Inverse temperature :math:`\beta_*` above which the transition has a jump.

    With the density :math:`1 + ax + b(x^2 - \tfrac1d)` in one coordinate x, the free
    energy at :math:`\eta_\#`, taken at the best b, is a constant plus

    .. math:: \frac{\eta a^4}{4d(d + 2)} \Big(1 - \frac{1 - 1/d}{1 - q}\Big) , \qquad
              q = \frac{\Lambda_2}{\Lambda_1}
              = \frac{I_{d/2+1}(\beta)}{I_{d/2}(\beta)} ,

    which changes its sign at :math:`q = 1/d`.

    Parameters
    ----------
    d : int
        Dimension, at least 2.

    Returns
    -------
    float
        2.4469 on the circle.

    Raises
    ------
    ValueError
        For a dimension below 2 or above 1000.

    References
    ----------
    Mun and Rosenzweig, 2026, arXiv:2606.05140: the transition is continuous if and
    only if :math:`\beta \le \beta_*`.
    """
    from scipy.optimize import brentq

    require_count("d", d, least=2, most=1000)

    def excess(b: float) -> float:
        # In d + 2 dimensions the rate of the first harmonic has the same quotient.
        return float(b * growth_rate(1, b, d=d + 2) / (d + 1)) - 1 / d

    return float(brentq(excess, 0.5, 5, xtol=1e-13))


def free_energy(density: npt.ArrayLike, beta: float, noise: float) -> Array:
    r"""Free energy :math:`\eta\int\mu\log\mu - e^{-|\beta|}E_\beta[\mu]`.

    Parameters
    ----------
    density : array_like, shape (..., N)
        With respect to the uniform law, at N equally spaced angles.
    beta : float
        Inverse temperature, of either sign but not 0.
    noise : float
        η ≥ 0 of the unnormalized model in its time s.

    Returns
    -------
    ndarray, shape (...)
        The entropy is 0 for the uniform law.

    Raises
    ------
    ValueError
        For a density that is negative or has another mean, or β = 0.
    """
    if abs(require_number("beta", beta)) < SMALLEST_BETA:
        raise ValueError(f"beta must not be 0 for an energy, got {beta!r}")
    if require_number("noise", noise) < 0:
        raise ValueError(f"noise must not be negative, got {noise!r}")
    kernel, f = Kernel(beta), as_density("density", density)
    most = min(kernel.harmonics, (f.shape[-1] - 1) // 2)
    c = density_moments(f, most)
    energy = np.sum(kernel.value[: most + 1] * np.abs(c) ** 2, axis=-1) / (2 * beta)
    positive = np.maximum(f, 0)
    entropy = np.mean(positive * np.log(np.where(positive > 0, positive, 1)), axis=-1)
    with np.errstate(over="ignore"):
        free = np.asarray(noise * entropy - energy)
    if not np.isfinite(free).all():
        raise ValueError(f"noise={noise!r} is too large: the energy is not finite")
    return free[()]
