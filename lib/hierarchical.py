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

import numpy as np
import numpy.typing as npt

from lib._checks import Array
from lib._hierarchical.dense import dense, dense_experiment
from lib._hierarchical.experiment import experiment, experiment_variance
from lib._hierarchical.laws import AttentionLimit, FiniteAttention
from lib._hierarchical.mixture import ScaleMixture
from lib._hierarchical.orthonormal import orthonormal_constant

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


def finite_width(
    gram: npt.ArrayLike,
    width: int,
    heads: int,
    size: int,
    *,
    score_scale: float = 1.0,
    head_width: int | None = None,
    output_matrix: bool = True,
    coordinates: int | None = None,
    rng: np.random.Generator,
) -> Array:
    """Outputs of attention layers of finite width for fixed inputs, exact in law.

    The cost of a draw does not depend on the width: no weight matrix is formed.

    Parameters
    ----------
    gram : array_like, shape (m, m)
        V = XXᵀ/n, of rank at most n.
    width, heads : int
        n and H.
    size : int
        Number of networks.
    score_scale, head_width, output_matrix
        As in :class:`FiniteAttention`.
    coordinates : int, optional
        Coordinates of each network; one if left out.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray, shape (size, m), or (size, m, coordinates) where that is given

    Raises
    ------
    ValueError
        As :class:`FiniteAttention`, and for counts below 1.
    """
    law = FiniteAttention(
        gram,
        width,
        heads,
        score_scale,
        head_width=head_width,
        output_matrix=output_matrix,
    )
    return law.sample(size, coordinates=coordinates, rng=rng)
