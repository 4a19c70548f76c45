r"""Laws of a variance as few nodes with weights.

An output coordinate is :math:`y = \sqrt v\,\xi` with a random variance v. All that is
asked of its law are means of smooth functions of log v, so the law of v is kept as a
Gauss rule in log v: some tens of nodes stand for any number of them, to rounding.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lib.core.checks import Array

_FLOOR = 1e-14  # values below this share of the largest are not told apart from 0
_SMALL = 1e-28  # weights below this share are dropped


class Rule(NamedTuple):
    """Nodes with weights that sum to 1, and a second, signed row of weights.

    Attributes
    ----------
    values : ndarray, shape (k,)
        Not negative.
    weights : ndarray, shape (k,)
        Positive.
    signed : ndarray, shape (k,)
        Weights of another measure on the same nodes; 0 where there is none.
    """

    values: Array
    weights: Array
    signed: Array


def gauss_rule(values: Array, weights: Array, ratio: Array | None = None) -> Rule:
    """Gauss rule in log v of many weighted values: exact for low powers of log v.

    ``ratio`` is the density of a second, signed measure with respect to the first; its
    weights are exact for half as many powers.
    """
    top = values.max()
    if top == 0 or np.ptp(values) <= 1e-13 * top:
        total = 0.0 if ratio is None else weights @ ratio
        return Rule(np.array([weights @ values]), np.ones(1), np.array([total]))
    if ratio is None and not values.all():  # an atom at 0, which stays one
        atom, positive = weights[values == 0].sum(), values > 0
        inner = gauss_rule(values[positive], weights[positive] / (1 - atom))
        weights = np.append((1 - atom) * inner.weights, atom)
        return Rule(np.append(inner.values, 0), weights, np.zeros_like(weights))
    x = np.log(values + _FLOOR * top)
    middle, half = (x.max() + x.min()) / 2, np.ptp(x) / 2
    # The nodes must resolve e^x: their number grows with the range of x.
    order = min(24 + int(16 * half), 200)
    nodes, first, signed = _lanczos((x - middle) / half, weights, order, ratio)
    values = np.exp(middle + half * nodes) - _FLOOR * top
    return Rule(np.maximum(values, 0), first, signed)


def mean_rule(rule: Rule, count: int) -> Rule:
    """Law of the mean of ``count`` independent variances, by repeated doubling."""
    result: Rule | None = None
    held, power, size = 0, rule, 1
    while count:
        if count % 2:
            result = power if result is None else _combine(result, held, power, size)
            held += size
        count //= 2
        if count:
            power = _combine(power, size, power, size)
            size *= 2
    assert result is not None
    return result


def product_rule(rule: Rule, factor: Rule) -> Rule:
    """Law of the product of two independent variances."""
    values = np.multiply.outer(rule.values, factor.values)
    weights = np.multiply.outer(rule.weights, factor.weights)
    return _weighty(values.ravel(), weights.ravel())


def chi_square_rule(degrees: int, second: bool = False) -> Rule:
    r"""Rule of :math:`t = \chi^2_k / k`, or a second one whose error is another.

    For many degrees of freedom t is close to 1 and a few Gauss nodes do. For few,
    what t scales changes on the scale of log t, and the trapezoid rule in log t
    converges where powers of t do not.
    """
    if degrees < 32:
        return _in_logarithm(degrees, 0.5 if second else 0.0)
    # With t = 1 + √(2/k) z the recurrence of Laguerre's polynomials becomes one for z
    # that turns into Hermite's as k grows.
    order = 2 + int(np.ceil(40 / np.sqrt(degrees))) + second
    j, half = np.arange(order, dtype=float), degrees / 2
    beside = np.sqrt(j[1:] * (j[1:] + half - 1) / half)
    z, first = _eigen(2 * j / np.sqrt(half), beside)
    return Rule(1 + np.sqrt(2 / degrees) * z, first[0] ** 2, np.zeros_like(z))


def _in_logarithm(degrees: int, offset: float) -> Rule:
    """Trapezoid rule of t in τ = log t, whose density is ∝ exp(k/2 (τ − e^τ))."""
    step = min(0.5, np.sqrt(2 / degrees))
    low, high = -1 - 80 / degrees, np.log(2 + 160 / degrees)
    tau = step * (np.arange(np.floor(low / step), np.ceil(high / step)) + offset)
    weights = np.exp(degrees / 2 * (tau - np.exp(tau)))
    return Rule(np.exp(tau), weights / weights.sum(), np.zeros_like(tau))


def _combine(one: Rule, share: int, other: Rule, weight: int) -> Rule:
    """Law of (share·v + weight·v')/(share + weight)."""
    part = share / (share + weight)
    values = np.add.outer(part * one.values, (1 - part) * other.values)
    weights = np.multiply.outer(one.weights, other.weights)
    return _weighty(values.ravel(), weights.ravel())


def _weighty(values: Array, weights: Array) -> Rule:
    """Gauss rule of the values whose weights count."""
    large = weights > _SMALL * weights.max()
    return gauss_rule(values[large], weights[large] / weights[large].sum())


def _lanczos(
    x: Array, weights: Array, order: int, ratio: Array | None
) -> tuple[Array, Array, Array]:
    """Nodes, weights and signed weights of the Gauss rule of a measure on [−1, 1].

    The vectors are √w times the orthonormal polynomials. They lose their orthogonality
    where the measure has atoms; the rule then repeats nodes and stays exact.
    """
    now, before, beta = np.sqrt(weights), np.zeros_like(x), 0.0
    now /= np.linalg.norm(now)
    second = None if ratio is None else np.sqrt(weights) * ratio
    alphas, betas, moments = [], [], []
    for _ in range(order):
        if second is not None:
            moments.append(second @ now)  # of the signed measure
        following = x * now
        following -= beta * before
        alphas.append(following @ now)
        following -= alphas[-1] * now
        beta = float(np.linalg.norm(following))
        if beta < 1e-12:  # the measure has no more atoms than this
            break
        betas.append(beta)
        following /= beta
        now, before = following, now
    nodes, vectors = _eigen(np.array(alphas), np.array(betas[: len(alphas) - 1]))
    signed = vectors[0] * (moments @ vectors) if moments else np.zeros_like(nodes)
    return nodes, vectors[0] ** 2, np.asarray(signed)


def _eigen(diagonal: Array, beside: Array) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors of a symmetric tridiagonal matrix."""
    from scipy.linalg import eigh_tridiagonal

    values, vectors = eigh_tridiagonal(diagonal, beside)
    return np.asarray(values), np.asarray(vectors)
