r"""Closed forms for centered Gaussians: the bridge step, its iteration, distances."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lib.core.checks import Array, require_moderate, require_positive
from lib.core.psd import gram_spectrum
from lib.core.trajectory import Trajectory, step_times


def gaussian_slope(variance: npt.ArrayLike, eps: float) -> Array:
    r"""Slope a of the barycentric map :math:`B(x) = ax` of :math:`\mathcal N(0, s)`.

    It solves :math:`a^2 + \frac{\varepsilon}{s} a = 1`. For B is linear, its slope is
    the conditional variance over ε, and that variance is :math:`s(1 - a^2)`. Computed
    as

    .. math:: a = \frac{2s}{\sqrt{4s^2 + \varepsilon^2} + \varepsilon},

    which loses no digits for large ε.

    Parameters
    ----------
    variance : array_like
        Variances s ≥ 0, of any shape.
    eps : float
        Regularization ε > 0.

    Returns
    -------
    ndarray
        Of the shape of ``variance``, in [0, 1).

    Raises
    ------
    ValueError
        For a variance that is negative, not finite or beyond 1e100, or an eps that is
        not positive.
    """
    s = require_moderate("variance", variance)
    if (s < 0).any():
        raise ValueError(f"variance must not be negative, got {s.min():.3g}")
    return _slope(s, require_positive("eps", eps))


def gaussian_barycentric(cov: npt.ArrayLike, eps: float) -> Array:
    r"""Matrix A of the barycentric map :math:`B(x) = Ax` of a Gaussian.

    For :math:`\mathcal N(0, \Sigma)` it commutes with Σ and solves
    :math:`\Sigma A^2 + \varepsilon A = \Sigma`: each eigenvalue of Σ gives one of A by
    :func:`gaussian_slope`.

    Parameters
    ----------
    cov : array_like, shape (d, d)
        Covariance Σ, positive semidefinite.
    eps : float
        Regularization ε > 0.

    Returns
    -------
    ndarray, shape (d, d)

    Raises
    ------
    ValueError
        For a matrix that is not symmetric and positive semidefinite, or an eps that is
        not positive.
    """
    values, vectors = _spectrum("cov", cov)
    slopes = _slope(values, require_positive("eps", eps))
    return np.asarray((vectors * slopes) @ vectors.T)


def gaussian_flow(cov: npt.ArrayLike, eps: float, steps: int) -> Trajectory:
    r"""Covariances under the iterated bridge step, in closed form.

    .. math:: \Sigma_{k+1} = (2I - A_k) \Sigma_k (2I - A_k)

    with the matrix :math:`A_k` of :func:`gaussian_barycentric`. The heat flow has
    :math:`\Sigma_0 + tI` at the time t = kε instead.

    Parameters
    ----------
    cov : array_like, shape (d, d)
        Covariance at the start, positive semidefinite.
    eps : float
        Regularization and time step ε > 0.
    steps : int
        Number of steps, at least 1.

    Returns
    -------
    Trajectory
        ``times`` (steps + 1,), ``states`` (steps + 1, d, d).

    Raises
    ------
    ValueError
        As :func:`gaussian_barycentric`, for fewer than 1 step, or when a variance
        leaves the float range.
    """
    values, vectors = _spectrum("cov", cov)
    eps = require_positive("eps", eps)
    times = step_times(eps, steps)
    spectra = np.empty((len(times), len(values)))
    spectra[0] = values
    for k in range(steps):
        spectra[k + 1] = spectra[k] * (2 - _slope(spectra[k], eps)) ** 2
    return Trajectory(times, np.einsum("ij,kj,lj->kil", vectors, spectra, vectors))


def gaussian_w2(cov: npt.ArrayLike, other: npt.ArrayLike) -> float:
    r"""Wasserstein distance :math:`W_2` of two centered Gaussians.

    .. math:: W_2^2 = \operatorname{tr}\big(\Sigma + \Sigma'
              - 2 (\Sigma^{1/2} \Sigma' \Sigma^{1/2})^{1/2}\big),

    computed as the least :math:`\lVert \Sigma^{1/2} - \Sigma'^{1/2} O \rVert_F` over
    orthogonal matrices O, in which close covariances do not cancel.

    Parameters
    ----------
    cov, other : array_like, shape (d, d)
        Covariances, positive semidefinite.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        For matrices that are not symmetric and positive semidefinite, or of different
        shapes.
    """
    one, two = _root("cov", cov), _root("other", other)
    if one.shape != two.shape:
        raise ValueError(f"other must have shape {one.shape} as cov, got {two.shape}")
    left, _, right = np.linalg.svd(two.T @ one)
    return float(np.linalg.norm(one - two @ (left @ right)))


def _slope(s: Array, eps: float) -> Array:
    """The slope for variances of any size: 0 where ε is beyond comparison."""
    with np.errstate(over="ignore"):
        return np.asarray(2 * s / (np.hypot(2 * s, eps) + eps))


def _spectrum(name: str, cov: npt.ArrayLike) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors; what rounding left below 0 is 0."""
    values, vectors = gram_spectrum(name, cov)
    return np.maximum(values, 0), vectors


def _root(name: str, cov: npt.ArrayLike) -> Array:
    values, vectors = _spectrum(name, cov)
    return (vectors * np.sqrt(values)) @ vectors.T
