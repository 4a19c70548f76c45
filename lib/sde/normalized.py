r"""Two tokens of fixed length under shaped attention: the cosine is a diffusion.

Let each layer be followed by RMSNorm. Then V has ones on its diagonal and the cosine ρ
of two tokens beside it. By Itô's formula for :math:`V_{12}/\sqrt{V_{11}V_{22}}`, the
drift of :class:`lib.sde.CovarianceSDE`, a multiple of V for two tokens, has no part in
it, and :math:`z = \operatorname{artanh}\rho` solves

.. math:: dz = \tfrac12\big[q\rho + h(1 - \rho)^2(2 + \rho)\big] dt
          + \sqrt{q + h(1 - \rho)^2}\;dB, \qquad
          q = \gamma^2(2 - \gamma^2), \quad h = \frac{\gamma^4}{4H\tau_0^2} .

The coefficients are bounded: equal and opposite tokens, z = ±∞, are not reached in
finite time.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import roots_jacobi

from lib.core.checks import Array, require_count, require_generator, require_within
from lib.core.trajectory import Trajectory, iterate, step_length
from lib.sde.two_tokens import arguments, coefficients, require_fine

_NODES = 32  # the nearest singularity is one interval away: an error of 6^−64


def antipodal_probability(
    cosine0: npt.ArrayLike,
    branch: npt.ArrayLike,
    tau0: npt.ArrayLike,
    *,
    heads: int = 1,
) -> Array:
    r"""Probability that two normalized tokens end opposite to each other, ρ → −1.

    With q and h of :func:`simulate_cosine`, :math:`\kappa = h/q` and
    :math:`\alpha = 4h/(4h + q)`, the scale function has the density in ρ

    .. math:: p(\rho) = (1 - \rho)^{-1/2} (1 + \rho)^{-1/2 - \alpha}
              \big(1 + \kappa(1 - \rho)^2\big)^{\alpha/2}
              \exp\Big(-\tfrac{\alpha}{2\sqrt\kappa}
              \arctan\big(\sqrt\kappa(1 - \rho)\big)\Big) .

    For 4h < q it is integrable, and the probability is
    :math:`\int_{\rho_0}^1 p / \int_{-1}^1 p`, by quadrature to about 1e-13; otherwise
    only its integral to 1 is finite, and the probability is 0. On the other paths
    ρ → 1. For linear layers, :math:`\tau_0 \to \infty`, it is the angle of the tokens
    over π. With γ = 0 nothing moves; tokens that start opposite stay so.

    Parameters
    ----------
    cosine0 : array_like
        ρ at time 0, from −1 to 1.
    branch : array_like
        γ, from 0 to 1.
    tau0 : array_like
        :math:`\tau_0 > 0`.
    heads : int
        H, number of heads.

    Returns
    -------
    ndarray
        Of the common shape of the first three.

    Raises
    ------
    ValueError
        For numbers out of these ranges, or shapes that have no common one.
    """
    cosine, gamma, tau = arguments(cosine0=cosine0, branch=branch, tau0=tau0)
    require_count("heads", heads)
    with np.errstate(over="ignore", divide="ignore"):
        kappa = (gamma / tau) ** 2 / (4 * heads * (2 - gamma**2))
    probability = np.where(cosine == -1, 1.0, 0.0)
    possible = (gamma > 0) & (4 * kappa < 1) & (np.abs(cosine) < 1)
    for one in np.unique(kappa[possible]):
        at = possible & (kappa == one)
        probability[at] = _lower_share(cosine[at], float(one))
    return np.asarray(probability)[()]


def simulate_cosine(
    cosine0: float,
    branch: float,
    tau0: float,
    horizon: float,
    steps: int,
    *,
    paths: int,
    rng: np.random.Generator,
    heads: int = 1,
    save_every: int = 1,
) -> Trajectory:
    r"""Cosine of two tokens under shaped attention, each layer followed by RMSNorm.

    What is simulated, and returned, is :math:`z = \operatorname{artanh}\rho`,

    .. math:: dz = \tfrac12\big[q\rho + h(1 - \rho)^2(2 + \rho)\big] dt
              + \sqrt{q + h(1 - \rho)^2}\;dB, \qquad
              q = \gamma^2(2 - \gamma^2), \quad h = \frac{\gamma^4}{4H\tau_0^2},

    whose coefficients are bounded, by the explicit scheme of weak order 2 of Kloeden
    and Platen, which takes no derivatives: no cosine leaves [−1, 1], and cosines that
    are ±1 to rounding are told apart.

    Parameters
    ----------
    cosine0 : float
        ρ at time 0, above −1 and below 1.
    branch : float
        γ, from 0 to 1.
    tau0 : float
        :math:`\tau_0 > 0`.
    horizon : float
        Last time, in layers over width.
    steps : int
        Number of equal steps to the horizon, at least (q + 4h) · horizon: the variance
        of z in a step is then at most 1.
    paths : int
        Number of independent paths.
    rng : numpy.random.Generator
    heads : int
        H, number of heads.
    save_every : int
        States are kept after each so many steps; the last one always is.

    Returns
    -------
    Trajectory
        ``times`` (K,), ``states`` (K, paths): z, so that tanh gives the cosine.

    Raises
    ------
    ValueError
        For numbers out of these ranges.

    References
    ----------
    Kloeden and Platen, *Numerical Solution of Stochastic Differential Equations*,
    1992, formula (15.1.1).
    """
    inside = np.nextafter(1.0, 0.0)
    start = float(np.arctanh(require_within("cosine0", cosine0, -inside, inside)))
    _, linear, noise = coefficients(branch, tau0, heads)
    require_count("paths", paths)
    require_generator("rng", rng)
    step, most = step_length(horizon, steps, save_every), linear + 4 * noise
    require_fine(horizon, steps, most, "artanh ρ")

    def advance(z: Array) -> Array:
        return _advanced(z, step, linear, noise, rng.standard_normal(len(z)))

    return iterate(advance, np.full(paths, start), step, int(steps), save_every)


def _coefficients(z: Array, linear: float, noise: float) -> tuple[Array, Array]:
    """Drift and standard deviation of z per unit of time."""
    cosine = np.tanh(z)
    square = noise * (1 - cosine) ** 2
    drift = (linear * cosine + square * (2 + cosine)) / 2
    return np.asarray(drift), np.sqrt(linear + square)


def _advanced(
    z: Array, step: float, linear: float, noise: float, normals: Array
) -> Array:
    """z after a step of the explicit scheme of weak order 2."""
    drift, spread = _coefficients(z, linear, noise)
    root, shift = np.sqrt(step), z + drift * step
    ahead, _ = _coefficients(shift + spread * root * normals, linear, noise)
    _, up = _coefficients(shift + spread * root, linear, noise)
    _, down = _coefficients(shift - spread * root, linear, noise)
    # With W = root · normals: a mean of the spreads times W, and a quarter of their
    # difference times (W² − step)/root.
    moved = (up + down + 2 * spread) * normals + (up - down) * (normals**2 - 1)
    return np.asarray(z + step / 2 * (ahead + drift) + root / 4 * moved)


def _lower_share(cosine: Array, kappa: float) -> Array:
    """∫p from cosines to 1 over that from −1 to 1, for 0 ≤ 4κ < 1."""
    above = _upper_integral(np.maximum(cosine, 0), kappa)
    below = _lower_integral(np.minimum(cosine, 0), kappa)
    zero = np.zeros(1)
    whole = _upper_integral(zero, kappa) + _lower_integral(zero, kappa)
    return np.asarray(np.where(cosine > 0, above / whole, 1 - below / whole))


def _shape(gap: Array, kappa: float) -> Array:
    """The factors of p that stay smooth at both ends, as functions of 1 − ρ."""
    alpha, root = 4 * kappa / (1 + 4 * kappa), np.sqrt(kappa)
    bend = 2 * root / (1 + 4 * kappa) * np.arctan(root * gap)  # α/(2√κ) arctan …
    return np.asarray((1 + kappa * gap * gap) ** (alpha / 2) * np.exp(-bend))


def _upper_integral(cosine: Array, kappa: float) -> Array:
    """∫p from cosines of at least 0 to 1, with 1 − ρ = (1 − ρ₀)v²."""
    x, w = np.polynomial.legendre.leggauss(_NODES)
    gap = (1 - cosine)[:, None] * ((x + 1) / 2) ** 2  # (k, nodes)
    power = -0.5 - 4 * kappa / (1 + 4 * kappa)
    integral = ((2 - gap) ** power * _shape(gap, kappa)) @ w
    return np.asarray(np.sqrt(1 - cosine) * integral)


def _lower_integral(cosine: Array, kappa: float) -> Array:
    """∫p from −1 to cosines of at most 0, with 1 + ρ = (1 + ρ₀)u.

    The value at −1 is integrated by hand, since u^(−1/2 − α) nearly is no density for α
    near 1/2; what is left has a factor u more.
    """
    left = (1 - 4 * kappa) / (2 + 8 * kappa)  # 1/2 − α, above 0
    x, w = roots_jacobi(_NODES, 0, left)
    u, w = (x + 1) / 2, w / 2 ** (1 + left)
    height = (1 + cosine)[:, None] * u  # (k, nodes)

    def smooth(height: Array) -> Array:
        return np.asarray(_shape(2 - height, kappa) / np.sqrt(2 - height))

    end = smooth(np.zeros(1))
    rest = ((smooth(height) - end) / u) @ w
    return np.asarray((1 + cosine) ** left * (end / left + rest))
