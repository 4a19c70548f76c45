r"""Tokens on the circle: attention in a time proportional to their number.

A token is an angle :math:`\theta`, d = 2, :math:`x = (\cos\theta, \sin\theta)`. The
kernel is a short Fourier series,

.. math:: e^{\beta\cos u} = \sum_k I_k(\beta) e^{\mathrm iku}, \qquad
          Z_\mu(\theta) = \sum_k I_k(\beta)\, c_k e^{\mathrm ik\theta}, \qquad
          c_k = \int e^{-\mathrm ik\theta} \mu(\mathrm d\theta) ,

whose coefficients fall below :math:`10^{-17}` after about :math:`\sqrt{2\beta\log
10^{17}}` harmonics. Both models are its logarithmic and its plain derivative:

.. math:: \dot\theta = \frac1\beta \frac{Z_\mu'(\theta)}{Z_\mu(\theta)}
          \quad\text{(normalized)}, \qquad
          \frac{\mathrm d\theta}{\mathrm ds} = \frac{e^{-|\beta|}}\beta Z_\mu'(\theta)
          \quad\text{(unnormalized)} .

:mod:`lib.circle.mean_field` solves for the density of infinitely many tokens, and
:mod:`lib.circle.noise` adds noise.
"""

from __future__ import annotations

from lib.circle import mean_field, noise
from lib.circle.field import (
    HiddenDriftWarning,
    attention_field,
    moments,
    partition_function,
    points,
    simulate,
    wasserstein_distance,
)
from lib.circle.growth import fastest_mode, growth_rate

__all__ = [
    "HiddenDriftWarning",
    "attention_field",
    "fastest_mode",
    "growth_rate",
    "mean_field",
    "moments",
    "noise",
    "partition_function",
    "points",
    "simulate",
    "wasserstein_distance",
]
