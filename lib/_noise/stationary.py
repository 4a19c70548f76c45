r"""Stationary laws of tokens with noise on the circle, and their phase transition.

They solve :math:`\mu \propto \exp(Z_\mu / (\eta\beta))` for the unnormalized model.
Noises and energies are those of :mod:`lib.noise`: per unit of the model's own time.
"""

from __future__ import annotations

import numpy as np

from lib._checks import Array, require_positive, require_within
from lib._noise.critical import (
    SMALLEST_BETA,
    critical_noise,
    free_energy,
    tricritical_beta,
)
from lib._noise.gibbs import Gibbs, newton_at_order, polish

_ITERATIONS = 20_000
_LARGEST_BETA = 1e4
_LEAST_JUMP = 1e-2  # free energies differ by its sixth power


def ordered_state(order: float, beta: float) -> tuple[float, Array]:
    r"""The noise at which a stationary law has a given order, and its density.

    As a function of r it follows the branch of ordered laws through its fold, unstable
    part included: the whole diagram of the transition.

    Parameters
    ----------
    order : float
        :math:`0 < r < 1`, the modulus of the first moment.
    beta : float
        Inverse temperature β > 0.

    Returns
    -------
    noise : float
        η of the unnormalized model in its time s.
    density : ndarray, shape (N,)
        With respect to the uniform law, at N equally spaced angles, largest at 0.

    Raises
    ------
    ValueError
        For an order not between 1e-4 and 0.9999, or a β that is not positive or
        beyond 1e4.

    Notes
    -----
    The moments that the kernel sees are iterated, each time at the noise that gives the
    law its order, until Newton's method takes over.
    """
    r = require_within("order", order, 1e-4, 0.9999)
    # A wrapped normal law of order r has the variance −2 log r and moments r^(k²).
    gibbs = Gibbs(_require_beta(beta), np.sqrt(40 / -np.log(r)))
    c: Array = np.asarray(r ** (gibbs.k[1:] ** 2.0))
    scale = (1 / critical_noise(beta, False) - 0.5 / np.log(r)) / beta
    for _ in range(_ITERATIONS // 100):
        for _ in range(10):
            scale, found = gibbs.scale_for(r, c, scale)
            c = np.append(r, found[1:])
        solved = newton_at_order(gibbs, c, scale)
        if solved is not None:
            return 1 / (solved[1] * beta), gibbs.respond(*solved)[0]
    raise ValueError(f"order={order!r} at beta={beta!r} is not found")


def stationary_density(beta: float, noise: float, *, order0: float = 0.9) -> Array:
    r"""The stable stationary law that is reached from a given order.

    Iterates :math:`\mu \leftarrow \exp(Z_\mu/(\eta\beta))`, normalized, which never
    increases the free energy, then Newton's method. Where two laws are stable, between
    the fold and :math:`\eta_\#`, the start decides: this is the hysteresis.

    Parameters
    ----------
    beta : float
        Inverse temperature β > 0.
    noise : float
        η of the unnormalized model in its time s.
    order0 : float
        Order r of the start, from 0 (which stays) to 0.9999.

    Returns
    -------
    ndarray, shape (N,)
        Density with respect to the uniform law, at N equally spaced angles.

    Raises
    ------
    ValueError
        For a β beyond 1e4, a noise too small to be resolved, or one so near to a
        transition that the iteration does not end.
    """
    r = require_within("order0", order0, 0, 0.9999)
    noise = require_positive("noise", noise)
    if noise < 1e-6:
        raise ValueError(f"noise must be at least 1e-6 to be resolved, got {noise!r}")
    # The narrowest law has the variance η, hence moments e^(−ηk²/2).
    gibbs = Gibbs(_require_beta(beta), np.sqrt(80 / noise))
    scale = 1 / (noise * beta)
    c: Array = np.asarray(r ** (gibbs.k[1:] ** 2.0))
    for number in range(_ITERATIONS):
        density, found, _ = gibbs.respond(c, scale)
        error = np.abs(found - c).max()
        if error < 1e-15:
            return density
        if number % 50 == 49 and error < 1e-4:
            polished = polish(gibbs, found, scale)
            if polished is not None:
                return polished
        c = found
    raise ValueError(f"noise={noise!r} is too close to a transition at beta={beta!r}")


def transition_noise(beta: float) -> float:
    r"""Noise at which the law of least free energy ceases to be the uniform one.

    It is :math:`\eta_\#` for :math:`\beta \le \beta_*`. Above, an ordered law has the
    same free energy there, and r jumps.

    Parameters
    ----------
    beta : float
        Inverse temperature β > 0.

    Returns
    -------
    float
        η of the unnormalized model in its time s.

    Raises
    ------
    ValueError
        For a β that is not positive or beyond 1e4, or so little above
        :math:`\beta_*` that the jump is below 0.01.
    """
    from scipy.optimize import brentq

    if _require_beta(beta) <= tricritical_beta():
        return float(critical_noise(beta, False))

    def difference(order: float) -> float:
        noise, density = ordered_state(order, beta)
        return float(
            free_energy(density, beta, noise)
            - free_energy(np.ones_like(density), beta, noise)
        )

    # Of ordered laws the unstable ones, of small order, have more free energy.
    if difference(_LEAST_JUMP) <= 0:
        raise ValueError(
            f"beta={beta!r} is too close to {tricritical_beta():.6g}: the jump is below"
            f" {_LEAST_JUMP}"
        )
    order = brentq(difference, _LEAST_JUMP, 0.999, xtol=1e-12)
    return ordered_state(order, beta)[0]


def _require_beta(beta: float) -> float:
    return require_within("beta", beta, SMALLEST_BETA, _LARGEST_BETA)
