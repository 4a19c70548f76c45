"""The limit that a model of given sizes is in."""

from __future__ import annotations

from typing import Any

import numpy as np

from lib.regimes import numbers
from lib.regimes.overlap import ScoreNodes
from tools.kernels.catalog.kernel import Kernel, Values


def regime_lengths(width: Any, depth: Any, branch: Any) -> Values:
    return {
        **numbers.log_length(width, depth, branch),
        "left": numbers.left(branch, depth),
        "pre_norm": numbers.pre_norm_spread(width, depth),
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
    normal: Any,
    part: Any,
) -> Values:
    nodes = ScoreNodes(score, chance, place, share, normal, part)
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
    scores, places, parts, nodes, terms = (sizes.get(each, 1) for each in "zpqgr")
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
        "normal": rng.standard_normal(parts),
        "part": np.full(parts, 1 / parts),
        "node": node,
        "weight": weight,
        "orders": orders,
        "log_factorial": log_factorial,
    }


KERNELS = [
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
            "normal": ("q",),
            "part": ("q",),
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
