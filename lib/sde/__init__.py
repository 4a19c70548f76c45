r"""Limits of Gram matrices when depth and width grow together, and their simulation.

Let the number of layers over the width n tend to t. The Gram matrix
:math:`V = XX^\top/n` of m tokens then follows
:math:`dV = b(V)\,dt + \Sigma(V)^{1/2}dB`, up to the time at which it explodes. For all
limits here the noise has the form

.. math:: C(S + S^\top)C^\top, \qquad V = CC^\top,

with a Gaussian matrix S. For a linear layer :math:`S = \sqrt{q/2}\,N` with standard
normal entries of N, so that :math:`\Sigma = q\,\Sigma^{\mathrm{lin}}`,

.. math:: \Sigma^{\mathrm{lin}}_{ij,kl} = V_{ik}V_{jl} + V_{il}V_{jk}.

====================================  ===============================================
limit                                 layers of finite width
====================================  ===============================================
:class:`LinearSDE`                    linear, with or without skip connection
:class:`CovarianceSDE`                shaped attention with skip connection
:class:`ReluSDE`, :class:`SmoothSDE`  perceptron of shaped activation, with or without
:class:`BlockSDE`                     several of these, one after the other
====================================  ===============================================

All have the methods of :class:`Limit`; :func:`simulate` draws their paths.
"""

from __future__ import annotations

from lib.sde.explosion import explosion_probability, hitting_probability
from lib.sde.limits import BlockSDE, CovarianceSDE, Limit, LinearSDE
from lib.sde.normalized import antipodal_probability, simulate_cosine
from lib.sde.perceptrons import ReluSDE, SmoothSDE
from lib.sde.stepping import explicit_euler, simulate
from lib.sde.two_tokens import distance_law, simulate_distance

__all__ = [
    "BlockSDE",
    "CovarianceSDE",
    "Limit",
    "LinearSDE",
    "ReluSDE",
    "SmoothSDE",
    "antipodal_probability",
    "distance_law",
    "explicit_euler",
    "explosion_probability",
    "hitting_probability",
    "simulate",
    "simulate_cosine",
    "simulate_distance",
]
