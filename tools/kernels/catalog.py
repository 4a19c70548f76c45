"""The kernels of the site: which functions of ``lib``, with which inputs.

An adapter below calls ``lib`` with a kernel's inputs and names what it gives. It may
choose arguments and pick results; what is computed is computed in ``lib``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lib import attention, gram, sde, sinkhorn, sphere
from lib.core import psd, wishart
from lib.gram import pairs
from lib.heat import flows, mixture
from lib.hierarchical.samplers import row_variances
from lib.hierarchical.scale_mixture import mean_density
from lib.regimes import numbers
from lib.sde import stepping, two_tokens
from lib.sinkhorn import transport
from tools.kernels.graph import Shape

Values = dict[str, Any]
Draw = Callable[..., Values]  # inputs of given free sizes, from a generator

ATTENTION = {
    "lib.sphere.field:_in_blocks": "blocks of rows bound the memory; a row at a time,"
    " as in a loop, gives the same numbers",
    "lib.sphere.field:_head": "what is taken off all scores of a row, their maximum or"
    " |β| which is the same for β ≥ 0, cancels; the maximum serves every β",
}
FAR = {
    "lib.sinkhorn.kernel:GibbsKernel.entries": "what it does to points far apart"
    " changes nothing for points that are not"
}


@dataclass(frozen=True)
class Kernel:
    """A function of ``lib`` and how it becomes a module of the site."""

    name: str
    function: str  # what of lib it computes, as module:function
    call: Callable[..., Mapping[str, Any]]
    inputs: Mapping[str, Shape]
    draw: Draw
    exempt: Mapping[str, str] = field(default_factory=dict)
    # What is changed in an example to take the branch that an exemption speaks of.
    turned: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)

    @property
    def file(self) -> str:
        """Its place in the built site."""
        return f"_static/kernels/{self.name.replace('_', '-')}.mjs"

    @property
    def letters(self) -> list[str]:
        """Its free sizes."""
        sizes = [size for shape in self.inputs.values() for size in shape]
        return list(dict.fromkeys(size for size in sizes if isinstance(size, str)))


def tokens(rng: np.random.Generator, n: int) -> Values:
    """Tokens on the sphere, and the numbers that go with them."""
    return {
        "x": sphere.uniform_tokens(n, 3, rng=rng),
        "beta": rng.uniform(-4, 4),
        "dt": rng.uniform(0.01, 0.05),
        "value": np.eye(3) * rng.choice([-1, 1]),
    }


def tokens_in_the_plane(rng: np.random.Generator, n: int) -> Values:
    turn = np.array([[0.6, 0.8], [-0.8, 0.6]])
    return {
        **tokens(rng, n),
        "x": sphere.uniform_tokens(n, 2, rng=rng),
        "value": turn * rng.uniform(0.5, 1.5),
    }


def sphere_field(x: Any, beta: Any) -> Values:
    return {"field": sphere.attention_field(x, beta)}


def sphere_step(x: Any, beta: Any, dt: Any, value: Any) -> Values:
    return {"next": sphere.simulate(x, beta, dt, 1, value=value).states[-1]}


def sphere_energy(x: Any, beta: Any) -> Values:
    energy = sphere.interaction_energy(x, beta, shifted=True)
    rate = sphere.dissipation(x, beta, shifted=True)
    return {"energy": energy, "rate": rate, "height": 2 * beta * energy}


def sphere_crowd(x: Any, beta: Any, radius: Any) -> Values:
    return sphere.crowd_state(x, beta, radius)


def crowded(rng: np.random.Generator, n: int) -> Values:
    return {**tokens(rng, n), "radius": rng.uniform(0.3, 1.5)}


def softmax_weights(query: Any, keys: Any, temperature: Any) -> Values:
    scores = keys @ query / temperature
    return {"scores": scores, **_softmax_and_polynomials(scores)}


def softmax_expansion(logits: Any, temperature: Any) -> Values:
    scaled = logits / temperature
    bounds = {f"bound{k}": attention.remainder_bound(scaled, k) for k in range(4)}
    return {**_softmax_and_polynomials(scaled), **bounds}


def _softmax_and_polynomials(scores: Any) -> Values:
    orders = {f"order{k}": attention.softmax_expansion(scores, k) for k in range(4)}
    return {"softmax": attention.softmax(scores), **orders}


def scores_of_keys(rng: np.random.Generator, m: int, d: int = 3, n: int = 1) -> Values:
    """A query, keys, rows of logits, and a temperature that suits them."""
    return {
        "query": rng.standard_normal(d),
        "keys": rng.standard_normal((m, d)),
        "logits": rng.standard_normal((n, m)),
        "temperature": rng.uniform(1, 2),
    }


# Entropic transport.


def sinkhorn_kernel(x: Any, eps: Any) -> Values:
    return {"kernel": sinkhorn.gibbs_kernel(x, eps)}


def sinkhorn_update(kernel: Any, weights: Any, u: Any) -> Values:
    received, error, following = transport.symmetric_update(kernel, weights, u)
    return {"next": following, "received": received, "error": error}


def sinkhorn_layer(
    x: Any, kernel: Any, weights: Any, mass: Any, received: Any, own: Any
) -> Values:
    centered = x - x.mean(axis=0)
    return {
        "next": x - transport.displacement(kernel, mass, received, centered),
        "seen": transport.effective_number(kernel * mass),
        "frozen": transport.mostly_own(own / received, weights),
    }


def clouds(rng: np.random.Generator, n: int) -> Values:
    """Tokens in the plane far apart, a kernel of others, and scalings."""
    x = rng.standard_normal((n, 2))
    kernel = sinkhorn.gibbs_kernel(x, 0.7)
    weights, u = np.full(n, 1 / n), rng.uniform(1, 2, n)
    return {
        "x": x + 60 * (np.arange(n)[:, None] == 0),
        "eps": rng.uniform(0.5, 1.5),
        "kernel": kernel,
        "weights": weights,
        "u": u,
        "mass": weights * u,
        "received": kernel @ (weights * u),
        "own": weights * u,
    }


# The heat flow of a mixture.


def mixture_density(
    x: Any, time: Any, means: Any, variances: Any, weights: Any
) -> Values:
    law = mixture.Components(means, variances, weights).heated(time)
    return {"density": law.density(x)}


def mixture_step(
    x: Any, eps: Any, time: Any, means: Any, variances: Any, weights: Any
) -> Values:
    law = mixture.Components(means, variances, weights).heated(time)
    return {"next": flows.euler_step(x, eps, law)}


def points_and_mixtures(rng: np.random.Generator, n: int, c: int) -> Values:
    shares = rng.uniform(1, 2, c)
    return {
        "x": 3 * rng.standard_normal(n),
        "eps": rng.uniform(0.1, 1),
        "time": rng.uniform(0, 4),
        "means": 2 * rng.standard_normal(c),
        "variances": rng.uniform(0.5, 2, c),
        "weights": shares / shares.sum(),
    }


# Shaped attention at random initialization.


def chain_step(
    root: Any,
    width: Any,
    key_width: Any,
    skip: Any,
    branch: Any,
    tau0: Any,
    keys: Any,
    queries: Any,
    seen: Any,
    unseen: Any,
) -> Values:
    layer = gram.ShapedLayer(width, key_width, skip, branch, tau0)
    after = pairs.layer_step(layer, root, keys, queries, seen, unseen)
    return {"next": after, "cosine": pairs.cosine(after)}


def layers(rng: np.random.Generator, p: int) -> Values:
    """A layer, paths of two tokens, and what its weights draw."""
    width, key_width = (int(rng.integers(20, 90)) for _ in "nk")
    return {
        "root": np.tril(rng.standard_normal((p, 2, 2))) + 2 * np.eye(2),
        "width": width,
        "key_width": key_width,
        "skip": 0.8,
        "branch": 0.6,
        "tau0": rng.uniform(1, 2),
        "keys": wishart.bartlett(p, 2, key_width, rng),
        "queries": rng.standard_normal((p, 2, 2)),
        "seen": rng.standard_normal((p, 2, 2)),
        "unseen": wishart.bartlett(p, 2, width - 2, rng),
    }


def two_token_step(
    logs: Any,
    left: Any,
    branch: Any,
    tau0: Any,
    top: Any,
    normals: Any,
    exponentials: Any,
) -> Values:
    law = two_tokens.coefficients(branch, tau0, 1)
    after, step, hit = two_tokens.advance(logs, left, law, top, normals, exponentials)
    return {"next": after, "step": step, "hit": hit}


def covariance_drift(gram: Any, branch: Any, tau0: Any) -> Values:
    return {"drift": sde.CovarianceSDE(branch, tau0)._drift(gram)}


def covariance_length(root: Any, left: Any, branch: Any, tau0: Any) -> Values:
    law = sde.CovarianceSDE(branch, tau0)
    step = stepping.divided(left, law._rate(root))
    return {"step": step, "degrees": 1 / law._variance(step)}


def covariance_step(
    root: Any, step: Any, branch: Any, tau0: Any, normals: Any, factor: Any
) -> Values:
    after = sde.CovarianceSDE(branch, tau0)._moved(root, step, normals, factor)
    return {"next": after, "gram": psd.gram_of(after)}


def paths(rng: np.random.Generator, p: int) -> Values:
    """Paths of the distance or of the Gram matrices of two tokens, and draws."""
    root = rng.standard_normal((p, 2, 2))
    left = rng.uniform(0.001, 0.002, p)
    return {
        "logs": rng.standard_normal(p),
        "left": left,
        "branch": rng.uniform(0.5, 0.8),
        "tau0": rng.uniform(1, 2),
        "top": rng.uniform(5, 6),
        "normals": rng.standard_normal(p),
        "exponentials": rng.exponential(size=p),
        "root": root,
        "gram": psd.gram_of(root),
        "step": left,
        "factor": wishart.bartlett(p, 2, 1 / left, rng),
    }


def matrix_paths(rng: np.random.Generator, p: int) -> Values:
    return {**paths(rng, p), "normals": rng.standard_normal((p, 2, 2))}


# One row of attention at random initialization.


def attention_variances(
    root: Any, score_scale: Any, times: Any, normals: Any, factors: Any
) -> Values:
    heads = row_variances(root[None, None], 0, score_scale, times, normals) * factors
    return {"variance": heads.sum(axis=1) / heads.shape[1]}


def scale_mixture_density(variances: Any, points: Any) -> Values:
    weights = np.ones_like(variances) / variances.shape[0]
    return {"density": mean_density(variances, weights, points)}


def rows_of_attention(
    rng: np.random.Generator, m: int = 1, p: int = 1, h: int = 1, q: int = 1
) -> Values:
    """Tokens, what the weights of some networks draw, variances and points."""
    return {
        "root": np.eye(m) + 0.2 * rng.standard_normal((m, m)),
        "score_scale": rng.uniform(1, 3),
        "times": rng.chisquare(9, (p, h)) / 9,
        "normals": rng.standard_normal((p, h, m)),
        "factors": rng.chisquare(9, (p, h)) / 9,
        "variances": rng.uniform(0.1, 1, p),
        "points": rng.standard_normal(q),
    }


# Tokens by their cosines.


def equiangular_field(cosine: Any, tokens: Any, beta: Any) -> Values:
    return {"field": sphere.equiangular_field(cosine, tokens, beta)}


def cosine_drift(cosines: Any, beta: Any) -> Values:
    return {"drift": sphere.cosines.cosine_drift(cosines, beta)}


def cosines_of_tokens(rng: np.random.Generator, n: int) -> Values:
    x = sphere.uniform_tokens(n, n + 2, rng=rng)
    return {
        "cosine": rng.uniform(0, 1, n),
        "tokens": int(rng.integers(2, 9)),
        "beta": rng.uniform(1, 4),
        "cosines": x @ x.T,
    }


# A model of given sizes.


def regime_lengths(width: Any, depth: Any, branch: Any) -> Values:
    return {
        **numbers.log_length(width, depth, branch),
        "left": numbers.left(branch, depth),
    }


def regime_context(tokens: Any, beta: Any, key_width: Any) -> Values:
    return {
        "orthogonal": numbers.own_weight(tokens, beta),
        "tied": numbers.tied_weight(tokens, beta, key_width),
    }


def regime_kurtosis(
    width: Any,
    heads: Any,
    key_width: Any,
    tokens: Any,
    spread: Any,
    score: Any,
    chance: Any,
    place: Any,
    share: Any,
) -> Values:
    nodes = numbers.ScoreNodes(score, chance, place, share)
    return numbers.kurtosis(width, heads, key_width, tokens, spread, nodes)


def regime_hemisphere(tokens: Any, width: Any, node: Any, weight: Any) -> Values:
    return {"probability": numbers.hemisphere(tokens, width, node, weight)}


def regime_explosion(
    branch: Any, tau0: Any, heads: Any, node: Any, weight: Any
) -> Values:
    chance = numbers.explosion(2.0, branch, tau0, heads, node, weight)
    return {"probability": chance}


def regime_layer(
    cosine: Any, tokens: Any, beta: Any, key_width: Any, branch: Any
) -> Values:
    return {"next": numbers.tied_cosine(cosine, tokens, beta, key_width, branch)}


def regime_order(spread: Any, orders: Any, log_factorial: Any) -> Values:
    errors = numbers.order_errors(spread, orders, log_factorial)
    far = np.where(errors > numbers.TOLERANCE, 1.0, 0.0)
    return {"errors": errors, "order": np.sum(far)}


def models(rng: np.random.Generator, **sizes: int) -> Values:
    """Sizes of a model, and as many nodes as their letters ask for."""
    scores, places, nodes, terms = (sizes.get(letter, 1) for letter in "zpgr")
    node, weight = numbers.gauss_nodes(nodes)
    place, share = numbers.gauss_nodes(places)
    orders, log_factorial = numbers.factorials(terms)
    key_width = int(rng.integers(1, 200))
    heads, tokens = int(rng.integers(1, 40)), int(rng.integers(2, 5000))
    spread = rng.uniform(0.2, 2)
    return {
        "width": int(rng.integers(8, 5000)),
        "depth": int(rng.integers(1, 100)),
        "heads": heads,
        "key_width": key_width,
        "tokens": tokens,
        "spread": spread,
        "branch": rng.uniform(0.1, 1),
        "beta": rng.uniform(0.1, 16),
        "cosine": rng.uniform(0, 1),
        "tau0": rng.uniform(0.02, 2),
        "score": rng.standard_normal(scores),
        "chance": np.full(scores, 1 / scores),
        "place": place,
        "share": share,
        "node": node,
        "weight": weight,
        "orders": orders,
        "log_factorial": log_factorial,
    }


NEGATIVE = {"beta": lambda beta: -abs(beta)}
X: dict[str, Shape] = {"x": ("n", 3), "beta": ()}
KERNEL: dict[str, Shape] = {"kernel": ("n", "n")}
MIXTURE: dict[str, Shape] = dict.fromkeys(("means", "variances", "weights"), ("c",))
LAW: dict[str, Shape] = {"branch": (), "tau0": ()}
ROOT: dict[str, Shape] = {"root": ("p", 2, 2)}
KERNELS = [
    Kernel(
        "sphere_field",
        "lib.sphere:attention_field",
        sphere_field,
        X,
        tokens,
        ATTENTION,
        NEGATIVE,
    ),
    Kernel(
        "sphere_step",
        "lib.sphere:simulate",
        sphere_step,
        {**X, "dt": (), "value": (3, 3)},
        tokens,
        ATTENTION,
        NEGATIVE,
    ),
    Kernel(
        "circle_step",
        "lib.sphere:simulate",
        sphere_step,
        {"x": ("n", 2), "beta": (), "dt": (), "value": (2, 2)},
        tokens_in_the_plane,
        ATTENTION,
        NEGATIVE,
    ),
    Kernel(
        "sphere_energy",
        "lib.sphere:interaction_energy",
        sphere_energy,
        X,
        tokens,
        ATTENTION,
        NEGATIVE,
    ),
    Kernel(
        "sphere_crowd",
        "lib.sphere:crowd_state",
        sphere_crowd,
        {**X, "radius": ()},
        crowded,
        {"lib.sphere.field:_in_blocks": ATTENTION["lib.sphere.field:_in_blocks"]},
    ),
    Kernel(
        "softmax_weights",
        "lib.attention:softmax",
        softmax_weights,
        {"query": ("d",), "keys": ("m", "d"), "temperature": ()},
        scores_of_keys,
    ),
    Kernel(
        "softmax_expansion",
        "lib.attention:softmax_expansion",
        softmax_expansion,
        {"logits": ("n", "m"), "temperature": ()},
        scores_of_keys,
    ),
    Kernel(
        "sinkhorn_kernel",
        "lib.sinkhorn:gibbs_kernel",
        sinkhorn_kernel,
        {"x": ("n", 2), "eps": ()},
        clouds,
        FAR,
    ),
    Kernel(
        "sinkhorn_update",
        "lib.sinkhorn.transport:symmetric_update",
        sinkhorn_update,
        {**KERNEL, "weights": ("n",), "u": ("n",)},
        clouds,
    ),
    Kernel(
        "sinkhorn_layer",
        "lib.sinkhorn.transport:displacement",
        sinkhorn_layer,
        {
            "x": ("n", 2),
            **KERNEL,
            **dict.fromkeys(("weights", "mass", "received", "own"), ("n",)),
        },
        clouds,
    ),
    Kernel(
        "mixture_density",
        "lib.heat:GaussianMixture",
        mixture_density,
        {"x": ("n",), "time": (), **MIXTURE},
        points_and_mixtures,
    ),
    Kernel(
        "mixture_step",
        "lib.heat.flows:euler_step",
        mixture_step,
        {"x": ("n",), "eps": (), "time": (), **MIXTURE},
        points_and_mixtures,
    ),
    Kernel(
        "chain_step",
        "lib.gram.pairs:layer_step",
        chain_step,
        {
            **ROOT,
            "width": (),
            "key_width": (),
            "skip": (),
            **LAW,
            "keys": ("p", 2, 2),
            "queries": ("p", 2, 2),
            "seen": ("p", 2, 2),
            "unseen": ("p", 2, 2),
        },
        layers,
    ),
    Kernel(
        "two_token_step",
        "lib.sde.two_tokens:advance",
        two_token_step,
        {
            "logs": ("p",),
            "left": ("p",),
            **LAW,
            "top": (),
            "normals": ("p",),
            "exponentials": ("p",),
        },
        paths,
    ),
    Kernel(
        "covariance_drift",
        "lib.sde:CovarianceSDE",
        covariance_drift,
        {"gram": ("p", 2, 2), **LAW},
        paths,
    ),
    Kernel(
        "covariance_length",
        "lib.sde.stepping:divided",
        covariance_length,
        {**ROOT, "left": ("p",), **LAW},
        paths,
    ),
    Kernel(
        "covariance_step",
        "lib.sde:CovarianceSDE",
        covariance_step,
        {**ROOT, "step": ("p",), **LAW, "normals": ("p", 2, 2), "factor": ("p", 2, 2)},
        matrix_paths,
    ),
    Kernel(
        "attention_variances",
        "lib.hierarchical.samplers:row_variances",
        attention_variances,
        {
            "root": ("m", "m"),
            "score_scale": (),
            "times": ("p", "h"),
            "normals": ("p", "h", "m"),
            "factors": ("p", "h"),
        },
        rows_of_attention,
    ),
    Kernel(
        "scale_mixture_density",
        "lib.hierarchical.scale_mixture:mean_density",
        scale_mixture_density,
        {"variances": ("p",), "points": ("q",)},
        rows_of_attention,
    ),
    Kernel(
        "equiangular_field",
        "lib.sphere:equiangular_field",
        equiangular_field,
        {"cosine": ("c",), "tokens": (), "beta": ()},
        lambda rng, c: cosines_of_tokens(rng, c),
    ),
    Kernel(
        "cosine_drift",
        "lib.sphere.cosines:cosine_drift",
        cosine_drift,
        {"cosines": ("n", "n"), "beta": ()},
        cosines_of_tokens,
    ),
    Kernel(
        "regime_lengths",
        "lib.regimes.numbers:log_length",
        regime_lengths,
        {"width": (), "depth": (), "branch": ()},
        models,
    ),
    Kernel(
        "regime_context",
        "lib.regimes.numbers:tied_weight",
        regime_context,
        {"tokens": (), "beta": (), "key_width": ()},
        models,
    ),
    Kernel(
        "regime_kurtosis",
        "lib.regimes.numbers:kurtosis",
        regime_kurtosis,
        {
            "width": (),
            "heads": (),
            "key_width": (),
            "tokens": (),
            "spread": (),
            "score": ("z",),
            "chance": ("z",),
            "place": ("p",),
            "share": ("p",),
        },
        models,
    ),
    Kernel(
        "regime_hemisphere",
        "lib.regimes.numbers:hemisphere",
        regime_hemisphere,
        {"tokens": (), "width": (), "node": ("g",), "weight": ("g",)},
        models,
    ),
    Kernel(
        "regime_explosion",
        "lib.regimes.numbers:explosion",
        regime_explosion,
        {"branch": (), "tau0": (), "heads": (), "node": ("g",), "weight": ("g",)},
        models,
    ),
    Kernel(
        "regime_layer",
        "lib.regimes.numbers:tied_cosine",
        regime_layer,
        {"cosine": (), "tokens": (), "beta": (), "key_width": (), "branch": ()},
        models,
    ),
    Kernel(
        "regime_order",
        "lib.regimes.numbers:order_errors",
        regime_order,
        {"spread": (), "orders": ("r",), "log_factorial": ("r",)},
        models,
    ),
]
