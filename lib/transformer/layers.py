r"""Parts of a transformer, each with its derivative: a value and the way back.

A part returns its value and a function. Given the gradient of a loss with respect to
that value, the function returns the gradients with respect to what the part was given.
So the backward pass is the chain rule, written once for each part, and the order of
its sums is fixed: equal numbers in, equal digits out. Nothing here checks its input or
decides on a type of numbers; :mod:`lib.transformer.model` does.

Tokens are rows, shape (batch, m, n); scores and weights are (batch, heads, m, m),
queries along rows. Weight matrices have entries of order 1, as in :mod:`lib.gram`, and
the factors of :math:`n` are written out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lib.core.checks import Array
from lib.core.rows import row_sums
from lib.sinkhorn.attention import normalizations

Back = Callable[[Array], Any]

#: Added to the mean square of a token, so that a token that is 0 has a direction.
EPSILON = 1e-12


def product(x: Array, weights: Array) -> tuple[Array, Back]:
    r""":math:`x W/\sqrt p` of rows with p entries; back to x and W."""
    size, columns = weights.shape
    scaled = weights * (1 / size**0.5)
    value = (x.reshape(-1, size) @ scaled).reshape(*x.shape[:-1], columns)

    def back(grad: Array) -> tuple[Array, Array]:
        to_x = (grad.reshape(-1, columns) @ scaled.T).reshape(x.shape)
        return to_x, to_weights(x, grad)

    return value, back


def to_weights(x: Array, grad: Array) -> Array:
    """The way back of :func:`product` to W alone, where x is an image."""
    size, columns = x.shape[-1], grad.shape[-1]
    gradient = x.reshape(-1, size).T @ grad.reshape(-1, columns)
    return np.asarray(gradient * (1 / size**0.5))


def root_mean_square(x: Array) -> tuple[Array, Back]:
    """RMSNorm: each token over its root mean square; back to x."""
    size = np.sqrt(np.vecdot(x, x)[..., None] / x.shape[-1] + EPSILON)
    # A mean square beyond the float range must not make a token 0 in silence.
    size = np.where(np.isinf(size), np.nan, size)
    y = x / size

    def back(grad: Array) -> Array:
        along = np.vecdot(grad, y)[..., None] / x.shape[-1]
        return np.asarray((grad - along * y) / size)

    return y, back


def leaky(x: Array, slopes: tuple[float, float]) -> tuple[Array, Back]:
    r""":math:`\sqrt c\,(s_+ \max(x, 0) + s_- \min(x, 0))`, back to x.

    With :math:`c = 2/(s_+^2 + s_-^2)` a standard normal number keeps its mean square.
    """
    up, down = slopes
    kept = (2 / (up * up + down * down)) ** 0.5
    slope = np.where(x > 0, kept * up, kept * down)
    return x * slope, lambda grad: grad * slope


def softmax(scores: Array) -> tuple[Array, Back]:
    """Softmax of the rows; back to the scores."""
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= row_sums(weights)
    return weights, lambda grad: _through_sum(weights, grad, -1)


def shaped(scores: Array) -> tuple[Array, Back]:
    """Shaped attention, I + softmax − 1/m; back to the scores."""
    weights, back = softmax(scores)
    m = scores.shape[-1]
    return weights + (np.eye(m, dtype=scores.dtype) - 1 / m), back


def doubly_stochastic(scores: Array, iterations: int) -> tuple[Array, Back]:
    r"""Rows and columns of :math:`e^Y` normalized in turn; back to the scores.

    The value is that of :func:`lib.sinkhorn.sinkhorn_attention`. The way back goes
    through every normalization that was made, not through the equation of their limit:
    it is the derivative of what was computed for any number of them, converged or not,
    and each step of it costs a product and a sum. The equation of the limit would need
    a singular system of 2m unknowns for each head and image, and its solution is not
    the derivative of a value that stopped short of the limit.
    """
    kept = [*normalizations(scores, iterations)]

    def back(grad: Array) -> Array:
        # From the last weights to their logarithm, and then from one to another.
        axes = [-1 - number % 2 for number in range(iterations)]
        g = _through_sum(kept[-1], grad, axes[-1])
        for weights, axis in zip(kept[-2::-1], axes[-2::-1], strict=True):
            g = g - weights * g.sum(axis=axis, keepdims=True)
        return g

    return kept[-1], back


def attention(
    z: Array,
    matrices: tuple[Array, Array, Array, Array],
    heads: int,
    temperature: float,
    weigh: Callable[[Array], tuple[Array, Back]],
) -> tuple[Array, dict[str, Array], Back]:
    r"""Heads of attention side by side, times an output matrix.

    .. math:: Y^a = \tfrac1n z W^{Q,a} (z W^{K,a})^\top, \qquad
              \tfrac1n \big(A^1 z W^{V,1}, \dots, A^H z W^{V,H}\big) W^O

    with :math:`A^a` the normalized :math:`Y^a/\tau`. The blocks of columns of the first
    three matrices belong to the heads. Returns the value, the scores and weights of all
    heads, and the way back to z and the four matrices.
    """
    *inputs, output = matrices
    # One product for the three.
    joint, from_joint = product(z, np.concatenate(inputs, axis=1))
    query, key, value = (_to_heads(part, heads) for part in np.split(joint, 3, axis=-1))
    scores = query @ key.swapaxes(-1, -2) / temperature  # (b, h, m, m)
    weights, from_weights = weigh(scores)
    mixed = _from_heads(weights @ value)  # (b, m, n)
    result, from_result = product(mixed, output)

    def back(grad: Array) -> tuple[Array, list[Array]]:
        to_mixed, to_output = from_result(grad)
        g = _to_heads(to_mixed, heads)
        to_scores = from_weights(g @ value.swapaxes(-1, -2)) / temperature
        ways = (
            to_scores @ key,
            to_scores.swapaxes(-1, -2) @ query,
            weights.swapaxes(-1, -2) @ g,
        )
        together = np.concatenate([_from_heads(way) for way in ways], axis=-1)
        to_z, to_inputs = from_joint(together)
        return to_z, [*np.split(to_inputs, 3, axis=1), to_output]

    return result, {"scores": scores, "weights": weights}, back


def perceptron(
    z: Array, matrices: tuple[Array, Array], slopes: tuple[float, float]
) -> tuple[Array, Back]:
    r""":math:`\varphi(z W^{\mathrm{in}}/\sqrt n)\, W^{\mathrm{out}}/\sqrt n`; back."""
    hidden, from_hidden = product(z, matrices[0])
    active, from_active = leaky(hidden, slopes)
    result, from_result = product(active, matrices[1])

    def back(grad: Array) -> tuple[Array, list[Array]]:
        to_active, to_outer = from_result(grad)
        to_z, to_inner = from_hidden(from_active(to_active))
        return to_z, [to_inner, to_outer]

    return result, back


def cross_entropy(logits: Array, labels: Any) -> tuple[Any, Array]:
    """Mean cross-entropy of the softmax of the rows, and its gradient."""
    rows = np.arange(len(logits))
    centered = logits - logits.max(axis=-1, keepdims=True)
    weights = np.exp(centered)
    sums = weights.sum(axis=-1, keepdims=True)
    loss = np.mean(np.log(sums[:, 0]) - centered[rows, labels])
    grad = weights / sums
    grad[rows, labels] -= 1
    return loss, grad / len(logits)


def _through_sum(weights: Array, grad: Array, axis: int) -> Array:
    """Gradient before weights = e^Y / sums of e^Y along an axis."""
    inner = np.sum(grad * weights, axis=axis, keepdims=True)
    return np.asarray(weights * (grad - inner))


def _to_heads(x: Array, heads: int) -> Array:
    """(b, m, n) as (b, heads, m, n / heads)."""
    batch, m, n = x.shape
    return x.reshape(batch, m, heads, n // heads).swapaxes(1, 2)


def _from_heads(x: Array) -> Array:
    """(b, heads, m, k) as (b, m, heads * k)."""
    batch, heads, m, k = x.shape
    return x.swapaxes(1, 2).reshape(batch, m, heads * k)
