r"""Softmax, its derivatives and its Taylor expansion about 0; shaped attention.

Throughout, the softmax acts on the last axis, which has length m (the number of
keys). For one row z,

.. math:: s_i(z) = \frac{e^{z_i}}{\sum_j e^{z_j}} .
"""

from __future__ import annotations

from math import factorial

import numpy as np
import numpy.typing as npt

from lib.core.checks import (
    Array,
    as_float,
    require_choice,
    require_count,
    require_finite,
    require_generator,
    require_last_axis,
    require_matrix,
    require_positive,
    require_square,
)
from lib.core.rows import row_sums

# Scores of at most this size need no maximum taken away before their exponentials.
_MODERATE = 300.0
# |s_i^{(r)}| along a ray, r = 1..5, is at most R^r times the first of these constants,
# and at most s_i R^r times the second one. Up to degree 4 the second one is 1, by the
# extreme points of the laws with a given mean. For degree 5 it comes from the triangle
# inequality with |κ₃| ≤ R³/(6√3), variance ≤ R²/4, |3·variance² − κ₄| ≤ 5R⁴/16,
# |κ₄| ≤ R⁴/8 and |fifth central moment| ≤ R⁵/4, and the first one is no better.
_SKEW = 1 / (6 * 3**0.5)
_FIFTH = 1 + 10 / 4 + 10 * _SKEW + 15 / 16 + 5 / 8 + 5 * _SKEW + 1 / 4
_RAY_CONSTANTS = ((1 / 4, 1.0), (_SKEW, 1.0), (1 / 8, 1.0), (1 / 6, 1.0), (_FIFTH,) * 2)


def softmax(logits: npt.ArrayLike) -> Array:
    r"""Softmax of the last axis, :math:`s_i = e^{z_i} / \sum_j e^{z_j}`.

    Parameters
    ----------
    logits : array_like, shape (..., m)
        Scores. The value −inf is allowed and gets weight 0.

    Returns
    -------
    ndarray, shape (..., m)
        Non-negative weights; each row sums to 1.

    Raises
    ------
    ValueError
        For a NaN, a +inf, a row of −inf only, or an empty last axis.
    """
    z = require_last_axis("logits", as_float("logits", logits))
    return _weights(z, _moderate(z))


def softmax_derivatives(z: npt.ArrayLike, order: int) -> Array:
    r"""Exact derivative tensor of the softmax at the vector ``z``.

    The entry :math:`[i, j, k, \dots]` is
    :math:`\partial_j \partial_k \cdots s_i(z)`. Softmax is the gradient of
    :math:`\log \sum_j e^{z_j}`, hence the tensor of order r is the joint cumulant of
    order r + 1 of the one-hot vector :math:`e_I`, where :math:`P(I = i) = s_i`; it is
    symmetric in all its indices.

    Parameters
    ----------
    z : array_like, shape (m,)
        Where to differentiate; −inf is allowed, its index has derivative 0.
    order : {1, 2, 3}
        Order of the derivative.

    Returns
    -------
    ndarray, shape (m,) * (order + 1)
        Output index first.

    Raises
    ------
    ValueError
        For another order, an array that is not a vector, or what softmax refuses.
    """
    require_choice("order", order, (1, 2, 3))
    z = as_float("z", z)
    if z.ndim != 1 or z.size == 0:
        raise ValueError(f"z must be a non-empty vector, got shape {z.shape}")
    if not np.isfinite(z.max()):  # as in softmax
        require_finite("z", z, masked=True)
        raise ValueError("z is -inf only, where the softmax has no derivative")
    s = softmax(z)  # (m,)
    centered = np.eye(s.size) - s  # c_ij = δ_ij − s_j
    first = s[:, None] * centered  # (m, m): F_ij = ∂_j s_i = s_i c_ij
    if order == 1:
        return np.asarray(first)
    # ∂_k of s_i c_ij, where ∂_k c_ij = −F_jk.
    second = first[:, None, :] * centered[:, :, None]  # (m, m, m): F_ik c_ij
    second -= s[:, None, None] * first
    if order == 2:
        return second
    # ∂_l of s_i c_ij c_ik − s_i F_jk, term by term.
    third = (
        first[:, None, None, :]
        * (centered[:, :, None] * centered[:, None, :])[..., None]
    )  # (m, m, m, m): F_il c_ij c_ik
    pairs = np.multiply.outer(first, first)  # F_ij F_kl
    third -= pairs + pairs.transpose(0, 2, 1, 3) + pairs.transpose(0, 3, 2, 1)
    third -= s[:, None, None, None] * second
    return third


def softmax_expansion(logits: npt.ArrayLike, order: int) -> Array:
    r"""Taylor polynomial of the softmax about 0, applied to each row.

    With :math:`\hat u = u - \tfrac1m \sum_j u_j` (the row, centered) and
    :math:`M_k = \tfrac1m \sum_j \hat u_j^k`,

    .. math:: s(u) \approx \frac1m \Big[ 1 + \hat u + \tfrac12 (\hat u^2 - M_2)
              + \tfrac16 (\hat u^3 - 3 M_2 \hat u - M_3) \Big],

    where powers are taken entry by entry and ``order`` keeps the terms up to that
    power. Each term of positive order has row sum 0.

    Parameters
    ----------
    logits : array_like, shape (..., m)
        Finite scores, already divided by their temperature.
    order : {0, 1, 2, 3}
        Degree of the polynomial.

    Returns
    -------
    ndarray, shape (..., m)
        Rows sum to 1; entries may be negative.

    Raises
    ------
    ValueError
        For another order, non-finite or empty rows, or scores so large that the
        polynomial leaves the float range.
    """
    require_choice("order", order, (0, 1, 2, 3))
    u = _centered(logits)  # (..., m)
    polynomial, *terms = _terms(u, order)  # (..., m)
    for term in terms:
        polynomial += term
    if not np.isfinite(polynomial).all():
        largest = np.abs(u).max()
        raise ValueError(
            f"logits is too large for order {order}: a centered entry is {largest:.3g}"
        )
    return polynomial


def remainder_bound(logits: npt.ArrayLike, order: int) -> Array:
    r"""Bound on the remainder of :func:`softmax_expansion`, one number per row.

    For a row with centered entries :math:`\hat u` and range
    :math:`R = \max \hat u - \min \hat u`, every entry of the remainder of order k is
    in absolute value at most

    .. math:: B_k = \frac{R^{k+1}}{(k+1)!}
              \min\Big(C_{k+1}, \frac{e^{\max \hat u}}{m}\Big),
              \qquad C = \Big(\frac14, \frac1{6 \sqrt 3}, \frac18, \frac16\Big),

    and also at most :math:`\max_i |T_{k+1,i}| + B_{k+1}`, where :math:`T_{k+1}` is the
    next term of the series and :math:`B_4` is :math:`6.756\, R^5/5!` times
    :math:`\min(1, e^{\max \hat u}/m)`, with the constant rounded up here. The smaller
    one is returned; the second is sharp as the scores tend to 0.
    Both hold in exact arithmetic: below about 1e-16 the rounding of the softmax itself
    is larger than the remainder.

    Parameters
    ----------
    logits : array_like, shape (..., m)
        Finite scores, already divided by their temperature.
    order : {0, 1, 2, 3}
        Degree of the polynomial whose remainder is bounded.

    Returns
    -------
    ndarray, shape (...)
        The bound; ``inf`` where it exceeds the float range.

    Raises
    ------
    ValueError
        For another order, or non-finite or empty rows.

    Notes
    -----
    Proved on the page of the softmax expansion and on its further checks: Taylor's
    formula along the ray t ↦ s(tu), the bounds C_r R^r on the derivatives of a weight
    and R^r on their quotients by the weight, and Jensen's inequality for the
    denominator.
    """
    require_choice("order", order, (0, 1, 2, 3))
    u = _centered(logits)  # (..., m)
    following = np.abs(_terms(u, order + 1)[-1]).max(axis=-1)  # (...)
    # A term that overflowed to inf − inf bounds nothing.
    following = np.where(np.isnan(following), np.inf, following)
    return np.minimum(_ray_bound(u, order + 1), following + _ray_bound(u, order + 2))


def shaped_attention(logits: npt.ArrayLike, temperature: float) -> Array:
    r"""Shaped attention :math:`A = I + \mathrm{softmax}(Y/\tau) - \tfrac1m 11^\top`.

    Parameters
    ----------
    logits : array_like, shape (..., m, m)
        Scores Y, queries along rows; −inf masks a key.
    temperature : float
        :math:`\tau > 0`.

    Returns
    -------
    ndarray, shape (..., m, m)
        Rows sum to 1; tends to I as τ → ∞ for finite Y.

    Raises
    ------
    ValueError
        For scores that are not square, a temperature that is not positive and
        finite, a quotient beyond the float range, or what softmax refuses.

    References
    ----------
    Noci et al., *The Shaped Transformer*, 2023, arXiv:2306.17759.
    """
    y = require_square("logits", as_float("logits", logits))
    tau = require_positive("temperature", temperature)
    with np.errstate(over="ignore"):
        scaled = y / tau
    moderate, m = _moderate(scaled), y.shape[-1]
    if not moderate:
        require_finite("logits", y, masked=True)
        if (np.isinf(scaled) & np.isfinite(y)).any():
            raise ValueError(f"temperature is too small for these logits, got {tau!r}")
    attention = _weights(scaled, moderate)
    attention += np.eye(m) - 1 / m
    return attention


def random_scores(
    x: npt.ArrayLike, key_width: int, *, rng: np.random.Generator
) -> Array:
    r"""Scores of one head at random initialization.

    .. math:: Y = \tfrac1n X W^Q (W^K)^\top X^\top .

    The entries of :math:`W^Q, W^K \in \mathbb R^{n \times n_k}` are independent
    N(0, 1). Then :math:`E[Y^{\alpha\delta} Y^{\beta\omega}] = n_k V^{\alpha\beta}
    V^{\delta\omega}` with :math:`V = \tfrac1n X X^\top`.

    Parameters
    ----------
    x : array_like, shape (m, n)
        Tokens, one per row.
    key_width : int
        :math:`n_k \ge 1`.
    rng : numpy.random.Generator
        Source of the weights.

    Returns
    -------
    ndarray, shape (m, m)
        Query index first.

    Raises
    ------
    ValueError
        For tokens that are not a finite matrix, or a key width below 1.
    """
    x = require_finite("x", require_matrix("x", as_float("x", x)))
    require_count("key_width", key_width)
    require_generator("rng", rng)
    n = x.shape[1]
    w_query, w_key = rng.standard_normal((2, n, key_width))
    with np.errstate(over="ignore", invalid="ignore"):
        scores = (x @ w_query) @ (x @ w_key).T / n  # (m, m)
    if not np.isfinite(scores).all():
        raise ValueError(f"x is too large: its largest entry is {np.abs(x).max():.3g}")
    return np.asarray(scores)


def _weights(z: Array, moderate: bool) -> Array:
    """Softmax of scores, which are moderate or not."""
    weights = np.exp(z if moderate else _below_zero(z))
    weights /= row_sums(weights)
    return weights


def _moderate(z: Array) -> bool:
    """Tell whether no exponential, sum of them or quotient leaves the float range."""
    return bool(z.size and z.min() >= -_MODERATE and z.max() <= _MODERATE)


def _below_zero(z: Array) -> Array:
    """Rows less their maximum, which leaves their softmax unchanged."""
    top = z.max(axis=-1, keepdims=True)  # (..., 1)
    # The maximum of a row is finite unless the row is refused: one look at few numbers.
    if not np.isfinite(top).all():
        require_finite("logits", z, masked=True)
        raise ValueError("logits has a row of -inf only, which no softmax can weigh")
    # A difference beyond the float range is −inf, which has weight 0 as it should.
    with np.errstate(over="ignore"):
        return np.asarray(z - top)


def _mean(values: Array) -> Array:
    """Means of the rows, (..., m) to (..., 1)."""
    return np.asarray(row_sums(values) / values.shape[-1])


def _centered(logits: npt.ArrayLike) -> Array:
    """Rows less their mean, after the checks shared by the expansion and its bound."""
    u = require_last_axis("logits", as_float("logits", logits))
    require_finite("logits", u)
    # Halving first keeps the difference of two extreme scores in range.
    centered = u / 2
    with np.errstate(over="ignore"):
        centered -= _mean(centered)
        centered *= 2
    if not np.isfinite(centered).all():
        raise ValueError(f"logits is too large to center: its maximum is {u.max():.3g}")
    return centered


def _terms(u: Array, order: int) -> list[Array]:
    """Terms of degree 0 to ``order`` ≤ 4 for centered rows, each (..., m).

    They are f^{(r)}(0)/r! for f(t) = s(tu), from the cumulants of u under the uniform
    weights 1/m. Their constants (−M₂/2, −M₃/6, ...) are what gives each term the row
    sum 0, so centering supplies them, after the large powers have canceled. What
    leaves the float range is inf or NaN; callers look.
    """
    m = u.shape[-1]

    def term(bracket: Array) -> Array:
        centered = bracket - _mean(bracket)
        centered /= m
        return centered

    terms = [np.full_like(u, 1 / m), term(u)]
    with np.errstate(over="ignore", invalid="ignore"):
        if order >= 2:
            square = u * u
            m2 = _mean(square)
            terms.append(term(square / 2))
        if order >= 3:
            cube = square * u
            terms.append(term((cube - 3 * m2 * u) / 6))
        if order >= 4:
            quartic = square * (square - 6 * m2) - 4 * _mean(cube) * u
            terms.append(term(quartic / 24))
    return terms[: order + 1]


def _ray_bound(u: Array, degree: int) -> Array:
    """Bound on the Taylor remainder of degree ``degree``: that of the derivative."""
    top = u.max(axis=-1)  # (...)
    most, quotient = _RAY_CONSTANTS[degree - 1]
    with np.errstate(over="ignore"):
        spread = (top - u.min(axis=-1)) ** degree
        largest = np.minimum(most, quotient * (np.exp(top) / u.shape[-1]))
        return np.asarray(spread / factorial(degree) * largest)
