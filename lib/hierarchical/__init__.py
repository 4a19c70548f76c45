r"""Laws of a wide attention layer at initialization: mixtures of Gaussians.

The layer has H heads and m tokens of width n, the rows of X:

.. math:: y = H^{-1/2} \sum_{a=1}^H A^a X W^{V,a} W^{O,a}, \qquad
          A^a = \mathrm{softmax}(p^a), \qquad
          p^a = \tfrac{\sigma}{\sqrt n}\, X W^{Q,a} (X W^{K,a})^\top,

where all weights are independent N(0, 1/n). With :math:`V = XX^\top/n` and n → ∞ the
scores become Gaussian, :math:`\mathrm{Cov}(p^a_{ij}, p^a_{kl}) = \sigma^2 V_{ik}
V_{jl}`. One coordinate of the m output rows is, given the scores, Gaussian with
covariance

.. math:: \Gamma = \frac1H \sum_{a=1}^H A^a V (A^a)^\top .

This stays random in the limit, so the output is not Gaussian but a mixture.
"""

from __future__ import annotations

from lib.hierarchical.finite import FiniteAttention, finite_width
from lib.hierarchical.law import AttentionLimit
from lib.hierarchical.orthonormal import orthonormal_constant
from lib.hierarchical.real_weights import dense, dense_experiment
from lib.hierarchical.samplers import experiment, experiment_variance
from lib.hierarchical.scale_mixture import ScaleMixture

__all__ = [
    "AttentionLimit",
    "FiniteAttention",
    "ScaleMixture",
    "dense",
    "dense_experiment",
    "experiment",
    "experiment_variance",
    "finite_width",
    "orthonormal_constant",
]
