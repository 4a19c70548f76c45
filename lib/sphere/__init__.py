r"""Tokens as particles on the sphere: attention fields, their flow, and the energy.

The tokens of one system are the rows of X, unit vectors :math:`x_i \in
\mathbb S^{d-1}`; leading axes hold several systems. With the partition function
:math:`Z_\mu(x) = \int e^{\beta\langle x, y\rangle} \mu(\mathrm dy)` of the law
:math:`\mu = \tfrac1n \sum_j \delta_{x_j}`, the normalized and the unnormalized model
are

.. math:: \dot x_i = \mathcal X[\mu](x_i) = \operatorname{Proj}_{x_i}
          \frac{1}{Z_\mu(x_i)} \int e^{\beta\langle x_i, y\rangle} y\,
          \mu(\mathrm dy), \qquad
          \dot x_i = \mathcal X^{\mathrm u}[\mu](x_i)
          = Z_\mu(x_i)\, \mathcal X[\mu](x_i) ,

where :math:`\operatorname{Proj}_x y = y - \langle x, y\rangle x`. The unnormalized one
moves at speeds up to :math:`e^{|\beta|}`; here it runs in the time :math:`s =
e^{|\beta|} t`, in which its field is :math:`e^{-|\beta|} \mathcal X^{\mathrm u}`.

:mod:`lib.sphere.cosines` runs the same flow on the matrix of cosines.
"""

from __future__ import annotations

from lib.sphere import cosines
from lib.sphere.coalescence import Coalescence, coalesce
from lib.sphere.crowd import crowd_state
from lib.sphere.energy import dissipation, interaction_energy, partition_function
from lib.sphere.equiangular import (
    attention_cosine,
    equiangular_field,
    equiangular_gap,
    equiangular_time,
)
from lib.sphere.field import attention_field, attention_output, flow, simulate
from lib.sphere.geometry import (
    cluster_count,
    cluster_labels,
    neighbors,
    project,
    uniform_tokens,
)
from lib.sphere.hemisphere import hemisphere_pole, hemisphere_probability
from lib.sphere.layers import perceptron_output, post_norm_layers, pre_norm_layers

__all__ = [
    "Coalescence",
    "attention_cosine",
    "attention_field",
    "attention_output",
    "cluster_count",
    "cluster_labels",
    "coalesce",
    "cosines",
    "crowd_state",
    "dissipation",
    "equiangular_field",
    "equiangular_gap",
    "equiangular_time",
    "flow",
    "hemisphere_pole",
    "hemisphere_probability",
    "interaction_energy",
    "neighbors",
    "partition_function",
    "perceptron_output",
    "post_norm_layers",
    "pre_norm_layers",
    "project",
    "simulate",
    "uniform_tokens",
]
