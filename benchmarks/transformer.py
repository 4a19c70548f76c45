"""Rows of lib.transformer: the gradient by hand beside automatic differentiation.

Every side gives the loss and the gradient of all parameters as one vector. The
networks are those of the book's pages on trained transformers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness import Growth, Row, by_jax
from benchmarks.timing import Call
from lib.core.checks import Array
from lib.transformer import Transformer, init, layers, network

RNG = np.random.default_rng(0)
DEPTH, WIDTH, HEADS, TOKENS, FEATURES, CLASSES = 4, 32, 2, 16, 49, 10
IMAGES = RNG.standard_normal((50, TOKENS, FEATURES))
LABELS = RNG.integers(CLASSES, size=len(IMAGES))
SMALL = (
    "At the speed of large ones all products would take 19 to 28 % of our time;"
    " the rest is passes of numpy, many of which jax compiles to one."
)
MULTIPLES = 18 * DEPTH  # products with a square matrix: six, and twice as many back


def network_of(attention: str, norm: str) -> Transformer:
    """A transformer as the pages have them."""
    return init(
        depth=DEPTH,
        width=WIDTH,
        heads=HEADS,
        tokens=TOKENS,
        features=FEATURES,
        classes=CLASSES,
        attention=attention,
        norm=norm,
        rng=np.random.default_rng(1),
    )


def flat(loss: Any, gradient: dict[str, Any]) -> Any:
    """Loss and gradient as one vector."""
    return np.concatenate([[loss], *(array.ravel() for array in gradient.values())])


def by_hand(model: Transformer) -> Call:
    """Our loss and gradient."""
    return lambda: flat(*model.loss_and_gradient(IMAGES, LABELS))


def exactly(model: Transformer) -> Any:
    """The same in long double."""
    params = {name: array.astype(np.longdouble) for name, array in model.params.items()}
    run = network.run(params, model.plan, IMAGES.astype(np.longdouble))
    loss, grad = layers.cross_entropy(run.logits, LABELS)
    return flat(loss, run.back(grad))


def by_differentiation(model: Transformer) -> Call:
    """The formula of the forward pass in jax, differentiated and compiled by it."""
    plan = model.plan
    shapes = {name: array.shape for name, array in model.params.items()}
    ends = np.cumsum([array.size for array in model.params.values()])

    def loss_and_gradient(vector: Any) -> Any:
        import jax
        import jax.numpy as jnp

        def rms(x: Any) -> Any:
            return x / jnp.sqrt((x * x).mean(axis=-1, keepdims=True) + layers.EPSILON)

        def normalized(scores: Any) -> Any:
            if plan.attention == "sinkhorn":
                for number in range(plan.iterations):
                    axis = -1 - number % 2
                    scores = scores - jax.nn.logsumexp(scores, axis, keepdims=True)
                return jnp.exp(scores)
            weights = jax.nn.softmax(scores)
            if plan.attention == "shaped":
                return weights + (jnp.eye(TOKENS) - 1 / TOKENS)
            return weights

        def heads(x: Any) -> Any:
            return x.reshape(*x.shape[:2], HEADS, -1).swapaxes(1, 2)

        def attend(z: Any, w: dict[str, Any], root: float) -> Any:
            query, key, value = (
                heads(z @ w[name] / root) for name in ("query", "key", "value")
            )
            scores = query @ key.swapaxes(-1, -2) / plan.temperature
            mixed = (normalized(scores) @ value).swapaxes(1, 2).reshape(z.shape)
            return mixed @ w["output"] / root

        def perceptron(z: Any, w: dict[str, Any], root: float) -> Any:
            up, down = plan.slopes
            g = z @ w["inner"] / root
            scale = (2 / (up * up + down * down)) ** 0.5
            return scale * jnp.where(g > 0, up * g, down * g) @ w["outer"] / root

        def loss(vector: Any) -> Any:
            parts = jnp.split(vector, ends[:-1])
            w = {
                name: part.reshape(shape)
                for part, (name, shape) in zip(parts, shapes.items(), strict=True)
            }
            root = w["embed"].shape[1] ** 0.5
            x = (IMAGES @ w["embed"] / FEATURES**0.5 + w["position"]) / 2**0.5
            for layer in range(DEPTH):
                own = {k: v[layer] for k, v in w.items() if v.ndim == 3}
                for branch in (attend, perceptron):
                    z = rms(x) if plan.norm == "pre" else x
                    x = plan.skip * x + plan.branch * branch(z, own, root)
            last = rms(x) if plan.norm == "pre" else x
            logits = last.mean(axis=1) @ w["readout"] / root + w["bias"]
            right = logits[jnp.arange(len(LABELS)), LABELS]
            return (jax.nn.logsumexp(logits, axis=-1) - right).mean()

        value, gradient = jax.value_and_grad(loss)(vector)
        return jnp.concatenate([value[None], gradient])

    vector: Array = np.concatenate([array.ravel() for array in model.params.values()])
    return by_jax(loss_and_gradient, vector)


def gradient_row(attention: str, norm: str) -> Row:
    """One step's gradient of one variant."""
    model = network_of(attention, norm)
    rows = len(IMAGES) * TOKENS
    return Row(
        name=f"loss and gradient of {attention} attention, norm {norm}, 50 images",
        ours=by_hand(model),
        peer=by_differentiation(model),
        peer_name="jax.value_and_grad",
        needs="jax",
        reference=lambda: exactly(model),
        accuracy=1e-12,
        limit={"flop": 2 * MULTIPLES * rows * WIDTH**2},
        reason=SMALL,
        beyond=SMALL,
    )


def growing(images: int) -> Call:
    """The gradient for a number of images, the same ones again and again."""
    model, places = network_of("softmax", "pre"), np.arange(images) % len(IMAGES)
    x, labels = IMAGES[places], LABELS[places]
    return lambda: flat(*model.loss_and_gradient(x, labels))


ROWS: list[Row | Growth] = [
    gradient_row("softmax", "pre"),
    gradient_row("shaped", "none"),
    gradient_row("sinkhorn", "pre"),
    Growth(
        name="loss and gradient of a transformer, in the number of images",
        sizes=(40, 50, 75, 100, 150, 200, 300, 400),
        run=growing,
        expected=1,
    ),
]
