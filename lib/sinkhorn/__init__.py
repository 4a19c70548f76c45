r"""Doubly stochastic attention: entropic transport of tokens to themselves.

Tokens :math:`x_1, \dots, x_n` with weights w (usually 1/n) are coupled with themselves
by the plan that minimizes

.. math:: \sum_{ij} \tfrac12 |x_i - x_j|^2 \pi_{ij}
          + \varepsilon \, \mathrm{KL}(\pi \,|\, w \otimes w)

among all plans with both marginals w. Its solution is
:math:`\pi_{ij} = w_i u_i K_{ij} u_j w_j` with the Gibbs kernel
:math:`K_{ij} = e^{-|x_i - x_j|^2/2\varepsilon}` and one scaling u, as both marginals
are the same. The cost is *half* the squared distance: in a library that takes all of
it, the same plan belongs to the regularization 2ε.

The rows of π, divided by their weights, are attention: the kernel
:math:`e^{\langle x_i, x_j\rangle/\varepsilon}` of dot products differs from K by
factors of i and of j alone, and so has the same plan.
"""

from __future__ import annotations

from lib.sinkhorn.attention import sinkhorn_attention
from lib.sinkhorn.kernel import gibbs_kernel
from lib.sinkhorn.transport import (
    ConvergenceWarning,
    FrozenFlowWarning,
    SelfTransport,
    alternating_transport,
    bridge_step,
    self_transport,
)

__all__ = [
    "ConvergenceWarning",
    "FrozenFlowWarning",
    "SelfTransport",
    "alternating_transport",
    "bridge_step",
    "gibbs_kernel",
    "self_transport",
    "sinkhorn_attention",
]
