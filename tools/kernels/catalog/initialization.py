"""Attention at random initialization: layers, their limits, one row."""

from __future__ import annotations

from typing import Any

import numpy as np

from lib import gram, sde
from lib.core import psd, wishart
from lib.gram import pairs
from lib.hierarchical.samplers import row_variances
from lib.hierarchical.scale_mixture import mean_density
from lib.sde import stepping, two_tokens
from tools.kernels.catalog.kernel import Kernel, Values
from tools.kernels.catalog.softmax import SOFTMAX, far
from tools.kernels.graph import Shape


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


LAW: dict[str, Shape] = {"branch": (), "tau0": ()}
ROOT: dict[str, Shape] = {"root": ("p", 2, 2)}
KERNELS = [
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
        SOFTMAX,
        {"queries": far},
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
        SOFTMAX,
        {"normals": far},
    ),
    Kernel(
        "scale_mixture_density",
        "lib.hierarchical.scale_mixture:mean_density",
        scale_mixture_density,
        {"variances": ("p",), "points": ("q",)},
        rows_of_attention,
    ),
]
