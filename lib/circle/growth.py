"""Linear growth of spherical harmonics at the uniform law, in any dimension."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lib.core.checks import Array, as_float, require_count, require_finite, require_flag

_LARGEST_BETA = 1e8
_LARGEST_MODE = 10**5


def growth_rate(
    mode: npt.ArrayLike, beta: npt.ArrayLike, normalize: bool = True, *, d: int = 2
) -> Array:
    r"""Rate at which a harmonic of degree k grows on top of the uniform law.

    A law :math:`\mu_{\mathrm{unif}}(1 + \epsilon Y_k)` moves, to first order, with
    :math:`\epsilon(t) = \epsilon(0) e^{\lambda_k t}`, where

    .. math:: \lambda_k = \frac{k(k + d - 2)}\beta
              \frac{I_{k + d/2 - 1}(\beta)}{I_{d/2 - 1}(\beta)} , \qquad
              \lambda^{\mathrm u}_k = \Lambda_0 \lambda_k , \qquad \Lambda_0
              = \Gamma(\tfrac d2) (\tfrac2\beta)^{d/2 - 1} I_{d/2 - 1}(\beta) .

    On the circle, :math:`\lambda_k = k^2 I_k(\beta) / (\beta I_0(\beta))`.

    Parameters
    ----------
    mode : int or array_like of int
        Degree k ≥ 0; on the circle the Fourier mode.
    beta : float or array_like
        Inverse temperature, of either sign; modes and β are broadcast.
    normalize : bool
        False for the unnormalized model in its time s: then it is
        :math:`e^{-|\beta|} \lambda^{\mathrm u}_k`.
    d : int
        Dimension, at least 2; the circle by default.

    Returns
    -------
    ndarray
        Of the broadcast shape.

    Raises
    ------
    ValueError
        For a mode that is not an integer from 0 to 100,000, a β beyond 1e8, or a d
        beyond 100,000.

    Notes
    -----
    By the Funk–Hecke formula. The quotients of Bessel functions follow from their
    three-term recurrence, downward, so that nothing underflows in high dimension.
    """
    k = _modes(mode)
    b = require_finite("beta", as_float("beta", beta))
    require_count("d", d, least=2, most=10**5)
    if np.abs(b).max(initial=0) > _LARGEST_BETA:
        raise ValueError(
            f"beta must be at most {_LARGEST_BETA:.0e}, got {np.abs(b).max():.3g}"
        )
    try:
        np.broadcast_shapes(k.shape, b.shape)
    except ValueError as error:
        raise ValueError(
            f"mode and beta do not fit together: shapes {k.shape} and {b.shape}"
        ) from error
    rate = k * (k + d - 2) * _quotients(k, b, d / 2 - 1)
    if not require_flag("normalize", normalize):
        rate = rate * _uniform_partition(np.abs(b), d)
    return np.asarray(rate)[()]


def fastest_mode(beta: npt.ArrayLike, *, d: int = 2) -> npt.NDArray[np.int64]:
    r"""Degree :math:`k_*` of the harmonic that grows fastest, about √(2β).

    Parameters
    ----------
    beta : float or array_like
        Inverse temperature β > 0.
    d : int
        Dimension, at least 2.

    Returns
    -------
    ndarray of int
        Of the shape of ``beta``; the same for both models.

    Raises
    ------
    ValueError
        For a β that is not positive or beyond 1e8.
    """
    b = require_finite("beta", as_float("beta", beta))
    if b.size and not 0 < b.min() <= b.max() <= _LARGEST_BETA:
        worst = b.min() if b.min() <= 0 else b.max()
        raise ValueError(
            f"beta must be positive and at most {_LARGEST_BETA:.0e}, got {worst:.6g}"
        )
    most = 2 + int(2 * np.sqrt(2 * b.max(initial=0)))
    modes = np.arange(1, most + 1)
    rates = growth_rate(modes, b[..., None], d=d)
    return np.asarray(modes[rates.argmax(axis=-1)])[()]


def _modes(mode: npt.ArrayLike) -> Array:
    array = require_finite("mode", as_float("mode", mode))
    bad = (array != np.rint(array)) | (array < 0) | (array > _LARGEST_MODE)
    if bad.any() or np.asarray(mode).dtype == bool:
        worst = array[bad][0] if bad.any() else mode
        raise ValueError(
            f"mode must be an integer from 0 to {_LARGEST_MODE}, got {worst!r}"
        )
    return array


def _quotients(k: Array, b: Array, nu: float) -> Array:
    """I_{k+ν}(β) / (β I_ν(β)) for k ≥ 1, by the recurrence of the quotients.

    q_m = I_{m+1}/(β I_m) obeys 1/q_{m−1} = 2m + β² q_m. It is started where its error
    has decayed by a factor ∏ (βq)² < 1e-34, which is beyond √(40β).
    """
    size = np.abs(b).max(initial=0)
    last = int(k.max(initial=0) + np.sqrt(80 * size) + 40)
    k, b = np.broadcast_arrays(k, b)
    q = np.full(b.shape, 0.5 / (nu + last + 1 + size))
    product = np.ones(b.shape)
    for m in range(last, 0, -1):
        q = 1 / (2 * (nu + m) + b * b * q)  # I_{ν+m}/(β I_{ν+m−1})
        # β^(k−1) and the k quotients from order ν on: one of them has no β.
        product = np.where(m <= k, product * (b * q if m > 1 else q), product)
    return product


def _uniform_partition(b: Array, d: int) -> Array:
    """e^(−β) times the mean of e^(β<x, y>) over the sphere, for β ≥ 0."""
    from scipy.special import gammaln, ive, logsumexp

    if d == 2:
        return np.asarray(ive(0, b))
    nu, flat = d / 2 - 1, b.ravel()
    bessel = ive(nu, flat)
    plain = bessel > 1e-290
    safe = np.where(plain, flat, 1.0)
    log_value = (
        gammaln(d / 2) + nu * np.log(2 / safe) + np.log(np.where(plain, bessel, 1))
    )
    for i in np.flatnonzero(~plain):
        # The Bessel function underflows where its power series is short.
        m = np.arange(1, 60 + int(flat[i]))
        steps = np.log((flat[i] / 2) ** 2 / (m * (m + nu))) if flat[i] else -np.inf * m
        log_value[i] = logsumexp(np.append(0, np.cumsum(steps))) - flat[i]
    return np.asarray(np.exp(log_value).reshape(b.shape))
