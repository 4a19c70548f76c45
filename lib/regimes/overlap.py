r"""Moments of :math:`u = |\sum_j s_j x_j|^2/n`, an attention output's squared length.

s is the softmax of m independent normal scores. Of orthonormal tokens u is the overlap
:math:`\sum_j s_j^2` of the weights with themselves, and 1/E u the number of tokens that
a query sees. The kurtosis of an output, in :mod:`lib.regimes.numbers`, is made of the
mean and the variance of u. As there, nodes are arguments, and nothing is checked.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lib.core.checks import Array

_TOP = 50.0  # beyond this x, exp(−exp(x)) is 0
_LEAST = 1e-300  # instead of 0 in a quotient


class ScoreNodes(NamedTuple):
    """Nodes and weights of a standard normal score, of (0, 1), and of a wide integrand.

    The last pair is that of Gauss and Hermite, for what is smooth in a normal variable.
    """

    z: Array
    chance: Array
    place: Array
    share: Array
    normal: Array
    part: Array


def overlap(tokens: Any, spread: Any, nodes: ScoreNodes) -> tuple[Any, Any, Any]:
    r"""E u, Var u and dE u/dσ for m orthonormal tokens, :math:`u = \sum_j s_j^2`.

    s is the softmax of m independent normal scores of standard deviation σ. As in
    :func:`lib.hierarchical.orthonormal_constant` the integrals are trapezoid sums over
    log λ = t. At each t the tokens' :math:`x_j = \lambda e^{p_j}` are independent under
    the weights :math:`e^{-x}/M_0` with :math:`M_0 = \mathbb E e^{-x}`; there they have
    the mean μ, the deviations d and the variance V, and

    .. math:: \mathbb E u - \frac1m = (m - 1) \int M_0^m V \mathrm dt , \qquad
              \mathrm{Var}\, u = \frac16 \int M_0^m \Big\langle \Big(
              \sum_j x_j^2 - r \big(\sum_j x_j\big)^2 \Big)^2 \Big\rangle
              \mathrm dt , \qquad r = \mathbb E u .

    The mean in the brackets is a sum of squares, so nothing cancels for weights that
    are nearly equal.

    Parameters
    ----------
    tokens : float
        m.
    spread : float or array
        σ; the results have its shape.
    nodes : ScoreNodes
        Those of :func:`lib.regimes.numbers.score_nodes`.
    """
    z, weights, place, share, *_ = nodes
    spread = np.expand_dims(spread, -1)  # (..., 1), beside the places
    low = -np.log(tokens) - 20 - 12 * spread
    high = 4 + 12 * spread
    level = low + (high - low) * place  # (..., p)
    x = np.exp(
        np.minimum(level[..., None] + spread[..., None] * z, _TOP)
    )  # (..., p, z)
    kept = weights * np.exp(-x)
    lost = np.minimum(np.sum(-weights * np.expm1(-x), axis=-1), 1 - 2.0**-53)
    all_kept = (high - low) * share * np.exp(tokens * np.log1p(-lost))
    # Where that is 0 to rounding, it does not matter what it is multiplied by.
    total = np.maximum(np.sum(kept, axis=-1), _LEAST)
    mu = np.sum(kept * x, axis=-1) / total
    d = x - mu[..., None]
    square = kept * d**2
    v, third, fourth = (
        np.sum(each, axis=-1) / total for each in (square, square * d, square * d**2)
    )
    others = tokens - 1
    excess = others * np.sum(all_kept * v, axis=-1)  # (...,)
    # V grows as x does with σ, and M_0 falls.
    faster = kept * x * z
    grown = np.sum(faster * (2 * d - d**2), axis=-1)
    fallen = others * v * np.sum(faster, axis=-1)
    slope = others * np.sum(all_kept * (grown - fallen) / total, axis=-1)
    mean = 1 / tokens + excess
    r, rest = mean[..., None], 1 - mean[..., None]
    shift = tokens * excess[..., None] * mu  # (mr − 1)μ
    # Each token adds (1 − r)(d² − V) − 2(mr − 1)μd, each pair −2r dd'.
    one = rest**2 * (fourth - v**2) - 4 * rest * shift * third + 4 * shift**2 * v
    both = one + 2 * others * (r * v) ** 2 + tokens * (rest * v - shift * mu) ** 2
    return mean, tokens / 6 * np.sum(all_kept * both, axis=-1), slope


def random_overlap(width: Any, spread: Any, law: tuple[Any, Any, Any]) -> Any:
    r"""E u and Var u of :math:`u = |\sum_j s_j x_j|^2/n` for m random tokens.

    In the plane of a logit, tokens have normal coordinates :math:`z_j` along the
    direction that the query prefers, and weights depend on these alone. With
    :math:`p_k = \sum_j s_j^k` and :math:`M = \sum_j s_j z_j`, Gaussian integration by
    parts gives

    .. math:: \mathbb E M = \sigma (1 - \mathbb E p_2) , \qquad
              \mathrm{Cov}(p_2, M) = \sigma \big( 2 \mathbb E p_3 -
              3 \mathbb E p_2^2 + (\mathbb E p_2)^2 \big) ,

    .. math:: \mathrm{Var} M = \mathbb E p_2 + \sigma^2 \big( \mathbb E p_2 -
              6 \mathbb E p_3 + 6 \mathbb E p_2^2 - (\mathbb E p_2)^2 \big) ,

    and :math:`\frac{\mathrm d}{\mathrm d\sigma} \mathbb E p_2 = 2\sigma (\mathbb E p_2
    - 4 \mathbb E p_3 + 3 \mathbb E p_2^2)` gives :math:`\mathbb E p_3`. On the sphere,
    given the weights, the mean of nu is :math:`n p_2 + M^2 - \sum_j s_j^2 z_j^2`, and
    the other coordinates of two tokens are independent. M is taken to be normal, and
    :math:`\sum_j s_j^4` in a correction to be :math:`p_3^2/p_2`. The sum of
    :math:`s_j^2 z_j^2` enters by its mean for many tokens, :math:`p_2 + 4 \sigma^2 (p_2
    - p_3)`, and z is taken to be normal, so relative errors of order 1/n are left. For
    many tokens

    .. math:: u \approx \frac{e^{\sigma^2}}m + \frac{\sigma^2}n .

    Parameters
    ----------
    width : float
        n.
    spread : float or array
        σ, above 0.
    law : tuple
        What :func:`overlap` returns for it.
    """
    mean, variance, slope = law
    square = variance + mean**2
    cube = (mean + 3 * square - slope / (2 * spread)) / 4
    along = spread * (1 - mean)
    noise = mean + spread**2 * (mean - 6 * cube + 6 * square - mean**2)
    common = spread * (2 * cube - 3 * square + mean**2)
    own = mean + 4 * spread**2 * (mean - cube)
    first = mean + (along**2 + noise - own) / width
    direction = (4 * along**2 * noise + 2 * noise**2) / width**2
    pairs = 2 * (square - cube**2 / mean) / width
    return first, variance + 4 * along * common / width + direction + pairs
