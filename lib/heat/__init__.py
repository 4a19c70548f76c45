r"""The heat flow of a density, and the schemes that follow it by attention.

The heat flow :math:`\partial_t\rho = \frac12\Delta\rho` moves mass with the velocity
:math:`v = -\frac12\nabla\log\rho`. One attention layer is
:math:`x \mapsto 2x - B(x)` with the barycentric map B of :mod:`lib.sinkhorn`. Since
:math:`x - B(x) \approx -\frac\varepsilon2\nabla\log\rho(x)`, it is a step of time ε.

Tokens without weights are particles. Quadrature nodes with weights stand for a density
itself: the weights stay, the nodes move, and the scheme for infinitely many particles
is computed to the accuracy of the quadrature.
"""

from __future__ import annotations

from lib.heat.flows import bridge_flow, euler_flow, ornstein_uhlenbeck_flow
from lib.heat.gaussian import (
    gaussian_barycentric,
    gaussian_flow,
    gaussian_slope,
    gaussian_w2,
)
from lib.heat.joint import grid_share, joint_flow
from lib.heat.mixture import GaussianMixture
from lib.heat.nodes import SpacingWarning, node_density, quadrature
from lib.heat.order_two import acceleration, jerk, leading_error
from lib.heat.steps import kl_surrogate, softmax_step, surrogate_step
from lib.heat.wasserstein import PairedDistance, w2_of_pairs, w2_to_law

__all__ = [
    "GaussianMixture",
    "PairedDistance",
    "SpacingWarning",
    "acceleration",
    "bridge_flow",
    "euler_flow",
    "gaussian_barycentric",
    "gaussian_flow",
    "gaussian_slope",
    "gaussian_w2",
    "grid_share",
    "jerk",
    "joint_flow",
    "kl_surrogate",
    "leading_error",
    "node_density",
    "ornstein_uhlenbeck_flow",
    "quadrature",
    "softmax_step",
    "surrogate_step",
    "w2_of_pairs",
    "w2_to_law",
]
