r"""Tokens with noise on the circle, and where they cease to be uniform.

With noise of strength :math:`\eta` the unnormalized model is a gradient flow of the
free energy

.. math:: F[\mu] = \eta \int \mu\log\mu - E_\beta[\mu] .

The uniform law is stationary, and stable for :math:`\eta > \eta_\# = \Lambda_1/\beta`.
Below a noise next to it the tokens order: continuously for :math:`\beta \le \beta_*`,
with a jump and hysteresis above, which :func:`ordered_state` follows.

All noises are per unit of the model's own time, for the unnormalized model
:math:`e^{-|\beta|}` times the :math:`\eta` of the time t, and energies have that factor
too. Quotients such as :math:`\eta/\eta_\#` do not depend on this.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lib._checks import Array, require_generator, require_positive
from lib._circle.series import angular_velocity, as_angles
from lib._noise.critical import critical_noise, free_energy, tricritical_beta
from lib._noise.stationary import ordered_state, stationary_density, transition_noise
from lib._trajectory import Trajectory, iterate, step_length

__all__ = [
    "critical_noise", "free_energy", "langevin", "ordered_state", "stationary_density",
    "transition_noise", "tricritical_beta",
]  # fmt: skip


def langevin(
    theta0: npt.ArrayLike,
    beta: float,
    noise: float,
    horizon: float,
    steps: int,
    *,
    normalize: bool = True,
    save_every: int = 1,
    rng: np.random.Generator,
) -> Trajectory:
    r"""Tokens with noise, :math:`\mathrm d\theta_i = v_i\,\mathrm dt +
    \sqrt{2\eta}\,\mathrm dB_{i,t}` with v from
    :func:`lib.circle.attention_field`.

    Heun's method, of weak order 2 for noise that does not depend on the state.

    Parameters
    ----------
    theta0 : array_like, shape (..., n)
        Angles at time 0.
    beta : float
        Inverse temperature, of either sign.
    noise : float
        η > 0, per unit of the model's own time: with ``normalize=False`` it is
        :math:`e^{-|\beta|}` times the η of the time t.
    horizon, steps, normalize, save_every
        As for :func:`lib.circle.simulate`.
    rng : numpy.random.Generator

    Returns
    -------
    Trajectory
        ``states`` (K, ..., n), not reduced to one turn.

    Raises
    ------
    ValueError
        As :func:`lib.circle.attention_field`, and for steps longer than 1 or, at
        negative β, 1/(1 + \|β\|).
    """
    angles = as_angles("theta0", theta0)
    h = step_length(horizon, steps, save_every)
    require_generator("rng", rng)
    velocity = angular_velocity(beta, normalize)
    fastest = 1 + max(0.0, -beta)
    if h * fastest > 1:
        raise ValueError(
            f"steps must be at least {np.ceil(horizon * fastest):.0f} for"
            f" horizon={horizon!r} and beta={beta!r}, got {steps}"
        )
    scale = np.sqrt(2 * require_positive("noise", noise)) * np.sqrt(h)
    if scale > 1e100:
        raise ValueError(f"noise={noise!r} is too large for angles")

    def step(x: Array) -> Array:
        kick = scale * rng.standard_normal(x.shape)
        v1 = velocity(x)
        v2 = velocity(x + h * v1 + kick)
        return np.asarray(x + h / 2 * (v1 + v2) + kick)

    return iterate(step, angles, h, steps, save_every)
