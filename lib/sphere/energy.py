"""The interaction energy of tokens on the sphere, and the rate at which it grows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lib.core.checks import Array, require_flag, require_number
from lib.sphere.field import IDENTITY, attend, log_partition
from lib.sphere.geometry import require_unit, tangent, unit

_LARGEST_BETA = (
    1e13  # beyond, the rounding of <x, y> changes the energy by parts in 1e3
)


def partition_function(
    x: npt.ArrayLike, beta: float, *, shifted: bool = False
) -> Array:
    r"""Partition function :math:`Z_\mu(x_i) = \tfrac1n \sum_j
    e^{\beta\langle x_i, x_j\rangle}` at each token.

    Parameters
    ----------
    x : array_like, shape (..., n, d)
        Unit tokens.
    beta : float
        Inverse temperature, of either sign.
    shifted : bool
        Whether to return :math:`e^{-|\beta|} Z_\mu`, which is finite for any β.

    Returns
    -------
    ndarray, shape (..., n)
        Positive, but for underflow of the shifted form.

    Raises
    ------
    ValueError
        For tokens off the sphere, or a β that overflows without the shift.
    """
    log_z = log_partition(*_checked(x, beta))
    return _exp(log_z, beta, require_flag("shifted", shifted))


def interaction_energy(
    x: npt.ArrayLike, beta: float, *, shifted: bool = False
) -> Array:
    r"""Energy :math:`E_\beta = \frac1{2\beta n^2} \sum_{ij}
    e^{\beta\langle x_i, x_j\rangle}`, which both models increase.

    Parameters
    ----------
    x : array_like, shape (..., n, d)
        Unit tokens.
    beta : float
        Inverse temperature, of either sign but not 0.
    shifted : bool
        Whether to return :math:`e^{-|\beta|} E_\beta`, which is finite for any β. The
        height of the staircase of clusters is 2β times it.

    Returns
    -------
    ndarray, shape (...)
        One number for each system.

    Raises
    ------
    ValueError
        For tokens off the sphere, β = 0, or a β that overflows without the shift.
    """
    if require_number("beta", beta) == 0:
        raise ValueError(f"beta must not be 0 for an energy, got {beta!r}")
    log_z = log_partition(*_checked(x, beta))
    mean = _mean_exp(log_z, np.ones(()), beta, require_flag("shifted", shifted))
    return np.asarray(mean / 2 / beta)[()]


def dissipation(
    x: npt.ArrayLike, beta: float, normalize: bool = True, *, shifted: bool = False
) -> Array:
    r"""Rate at which the energy grows, per unit of the model's own time.

    .. math:: \frac{\mathrm d}{\mathrm dt} E_\beta
              = \int Z_\mu |\mathcal X|^2 \,\mathrm d\mu, \qquad
              \frac{\mathrm d}{\mathrm ds} E_\beta
              = e^{-|\beta|} \int |\mathcal X^{\mathrm u}|^2 \,\mathrm d\mu

    for the normalized and the unnormalized model.

    Parameters
    ----------
    x : array_like, shape (..., n, d)
        Unit tokens.
    beta : float
        Inverse temperature, of either sign; the limit β → 0 exists.
    normalize : bool
        Which model.
    shifted : bool
        Whether to return the rate of :math:`e^{-|\beta|} E_\beta`.

    Returns
    -------
    ndarray, shape (...)
        Not negative; one number for each system.

    Raises
    ------
    ValueError
        For tokens off the sphere, or a β that overflows without the shift.
    """
    x, beta = _checked(x, beta)
    require_flag("shifted", shifted)
    require_flag("normalize", normalize)
    field = tangent(x, attend(x, IDENTITY, beta, normalize=normalize, causal=False))
    squares = np.sum(field * field, axis=-1)  # (..., n)
    if normalize:
        return _mean_exp(log_partition(x, beta), squares, beta, shifted)
    # e^{−|β|} ∫|X^u|² is e^{|β|} times the mean square of the field in time s.
    return _mean_exp(np.full(squares.shape, abs(beta)), squares, beta, shifted)


def _checked(x: npt.ArrayLike, beta: float) -> tuple[Array, float]:
    """Unit tokens to the last digit, and a β that forgives the last digit."""
    number = require_number("beta", beta)
    if abs(number) > _LARGEST_BETA:
        raise ValueError(f"beta must be at most {_LARGEST_BETA:.0e}, got {beta!r}")
    return unit(require_unit("x", x)), number


def _mean_exp(log_z: Array, values: Array, beta: float, shifted: bool) -> Array:
    """Mean over the tokens of e^log_z times values, less a factor e^|β| if shifted."""
    top = np.max(log_z, axis=-1, keepdims=True)
    mean = np.mean(np.exp(log_z - top) * values, axis=-1)
    return np.asarray(mean * _exp(top[..., 0], beta, shifted))[()]


def _exp(log_value: Array, beta: float, shifted: bool) -> Array:
    """e^log_value, less a factor e^|β| if shifted."""
    with np.errstate(over="ignore"):
        value = np.exp(log_value - abs(beta) if shifted else log_value)
    if not np.isfinite(value).all():
        raise ValueError(f"beta={beta!r} overflows; shifted=True gives a finite form")
    return np.asarray(value)[()]
