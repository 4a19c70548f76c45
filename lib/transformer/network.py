"""The whole computation of a transformer, from images to logits and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from lib.core.checks import Array
from lib.transformer import layers
from lib.transformer.layers import Back

#: Matrices of a block: those of its attention, and those of its perceptron.
ATTENTION = ("query", "key", "value", "output")
PERCEPTRON = ("inner", "outer")

Branch = Callable[[Array], tuple[Array, Back]]


@dataclass(frozen=True)
class Plan:
    r"""Architecture of a transformer, apart from its parameters.

    Attributes
    ----------
    heads : int
        H, a divisor of the width.
    attention : {"softmax", "shaped", "sinkhorn"}
        How weights come from scores.
    norm : {"pre", "post", "none"}
        Where a token is divided by its root mean square: before a branch, after the
        sum, or nowhere.
    skip, branch : float
        λ and γ of :math:`X' = \lambda X + \gamma f(X)`.
    temperature : float
        τ, which divides the scores :math:`\frac1n X W^Q (X W^K)^\top`.
    slopes : (float, float)
        Slopes of the activation for positive and for negative numbers.
    iterations : int
        Normalizations of rows and columns, for "sinkhorn".
    """

    heads: int
    attention: str
    norm: str
    skip: float
    branch: float
    temperature: float
    slopes: tuple[float, float]
    iterations: int

    def weigh(self, scores: Array) -> tuple[Array, Back]:
        """Weights of scores that are divided by τ; back to them."""
        if self.attention == "sinkhorn":
            return layers.doubly_stochastic(scores, self.iterations)
        rule = layers.shaped if self.attention == "shaped" else layers.softmax
        return rule(scores)


@dataclass(frozen=True)
class Run:
    """A forward pass: logits, what was seen on the way, and the way back.

    ``tokens`` has depth + 1 entries, ``outputs``, ``scores`` and ``weights`` have one
    for each block.
    """

    logits: Array
    tokens: list[Array]
    outputs: list[Array]
    scores: list[Array]
    weights: list[Array]
    back: Callable[[Array], dict[str, Array]]


def run(params: Mapping[str, Array], plan: Plan, x: Array) -> Run:
    """Send images of tokens x (batch, m, features) through the network.

    The numbers are those of its arguments, unchecked: what leaves the float range is
    inf or NaN. ``run(...).back`` takes the gradient of the logits to that of the
    parameters.
    """
    depth = len(params["query"])
    embedded, _ = layers.product(x, params["embed"])
    tokens = (embedded + params["position"]) / 2**0.5
    from_start: Back = _same
    if plan.norm == "post":
        tokens, from_start = layers.root_mean_square(tokens)
    blocks = [_block(params, plan, layer) for layer in range(depth)]
    seen: dict[str, list[Array]] = {"outputs": [], "scores": [], "weights": []}
    stream, ways = [tokens], []
    for block in blocks:
        tokens, notes, way = block(tokens)
        stream.append(tokens)
        ways.append(way)
        for name, array in notes.items():
            seen[name].append(array)
    from_end: Back = _same
    if plan.norm == "pre":
        tokens, from_end = layers.root_mean_square(tokens)
    logits, from_readout = layers.product(tokens.mean(axis=1), params["readout"])

    def back(grad: Array) -> dict[str, Array]:
        to_mean, to_readout = from_readout(grad)
        spread = np.repeat(to_mean[:, None] / x.shape[1], x.shape[1], axis=1)
        g, matrices = from_end(spread), []
        for way in reversed(ways):
            g, of_block = way(g)
            matrices.append(of_block)
        g = from_start(g) / 2**0.5
        names = (*ATTENTION, *PERCEPTRON)
        gradients = {
            name: np.stack([each[place] for each in reversed(matrices)])
            for place, name in enumerate(names)
        }
        gradients["embed"] = layers.to_weights(x, g)
        gradients["position"] = g.sum(axis=0)
        gradients["readout"], gradients["bias"] = to_readout, grad.sum(axis=0)
        return {name: gradients[name] for name in params}

    return Run(logits + params["bias"], stream, **seen, back=back)


def _block(
    params: Mapping[str, Array], plan: Plan, layer: int
) -> Callable[[Array], tuple[Array, dict[str, Array], Back]]:
    """Attention, then a perceptron; back to the tokens and the six matrices."""
    mixing: Any = tuple(params[name][layer] for name in ATTENTION)
    single: Any = tuple(params[name][layer] for name in PERCEPTRON)

    def block(x: Array) -> tuple[Array, dict[str, Array], Back]:
        notes: dict[str, Array] = {}

        def attend(z: Array) -> tuple[Array, Back]:
            value, trace, back = layers.attention(
                z, mixing, plan.heads, plan.temperature, plan.weigh
            )
            notes.update(trace, outputs=value)
            return value, back

        between, from_attention = _residual(x, attend, plan)
        perceptron = partial(layers.perceptron, matrices=single, slopes=plan.slopes)
        after, from_perceptron = _residual(between, perceptron, plan)

        def back(grad: Array) -> tuple[Array, list[Array]]:
            to_between, to_single = from_perceptron(grad)
            to_x, to_mixing = from_attention(to_between)
            return to_x, [*to_mixing, *to_single]

        return after, notes, back

    return block


def _residual(x: Array, branch: Branch, plan: Plan) -> tuple[Array, Back]:
    """λ x + γ f(x), with f of the normalized x, or normalized; back to x and f's."""
    z, from_norm = layers.root_mean_square(x) if plan.norm == "pre" else (x, _same)
    value, from_branch = branch(z)
    total = plan.skip * x + plan.branch * value
    from_total: Back = _same
    if plan.norm == "post":
        total, from_total = layers.root_mean_square(total)

    def back(grad: Array) -> tuple[Array, list[Array]]:
        g = from_total(grad)
        to_z, matrices = from_branch(plan.branch * g)
        return plan.skip * g + from_norm(to_z), matrices

    return total, back


def _same(grad: Array) -> Array:
    return grad
