"""Entropic transport, and the heat flow of a mixture."""

from __future__ import annotations

from typing import Any

import numpy as np

from lib import sinkhorn
from lib.heat import flows, mixture
from lib.sinkhorn import transport
from tools.kernels.catalog.kernel import Kernel, Values
from tools.kernels.graph import Shape

FAR = {
    "lib.sinkhorn.kernel:GibbsKernel.entries": "what it does to points far apart"
    " changes nothing for points that are not"
}


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


KERNEL: dict[str, Shape] = {"kernel": ("n", "n")}
MIXTURE: dict[str, Shape] = dict.fromkeys(("means", "variances", "weights"), ("c",))
KERNELS = [
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
]
