r"""Tokens as particles on the sphere: attention fields, their flow, and the energy.

The tokens of one system are the rows of X, unit vectors :math:`x_i \in
\mathbb S^{d-1}`; leading axes hold several systems. With the partition function
:math:`Z_\mu(x) = \int e^{\beta\langle x, y\rangle} \mu(\mathrm dy)` of the law
:math:`\mu = \tfrac1n \sum_j \delta_{x_j}`, the normalized and the unnormalized model
are

.. math:: \dot x_i = \mathcal X[\mu](x_i) = \operatorname{Proj}_{x_i}
          \frac{1}{Z_\mu(x_i)} \int e^{\beta\langle x_i, y\rangle} y\,
          \mu(\mathrm dy), \qquad
          \dot x_i = \mathcal X^{\mathrm u}[\mu](x_i)
          = Z_\mu(x_i)\, \mathcal X[\mu](x_i) ,

where :math:`\operatorname{Proj}_x y = y - \langle x, y\rangle x`. The unnormalized one
moves at speeds up to :math:`e^{|\beta|}`; here it runs in the time :math:`s =
e^{|\beta|} t`, in which its field is :math:`e^{-|\beta|} \mathcal X^{\mathrm u}`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from lib._checks import (
    Array,
    as_float,
    require_count,
    require_finite,
    require_flag,
    require_generator,
    require_number,
    require_positive,
    require_unit,
)
from lib._energy import dissipation, interaction_energy, partition_function
from lib._flow import flow, project, solve, tangent, unit
from lib._heads import attend, make_heads
from lib._layers import post_norm_layers, pre_norm_layers
from lib._trajectory import Trajectory
from lib.equiangular import equiangular_time

__all__ = [
    "Trajectory",
    "attention_field",
    "attention_output",
    "cluster_labels",
    "dissipation",
    "equiangular_time",
    "flow",
    "interaction_energy",
    "partition_function",
    "perceptron_output",
    "post_norm_layers",
    "pre_norm_layers",
    "project",
    "simulate",
    "uniform_tokens",
]


def attention_output(
    x: npt.ArrayLike,
    beta: float,
    normalize: bool = True,
    *,
    query: npt.ArrayLike | None = None,
    key: npt.ArrayLike | None = None,
    value: npt.ArrayLike | None = None,
    causal: bool = False,
) -> Array:
    r"""What attention adds to a token before normalization, not tangent.

    .. math:: \sum_{a=1}^H W^{V,a} \sum_j A^a_{ij} x_j, \qquad
              A^a_{ij} = \frac{e^{\beta\langle W^{Q,a} x_i, W^{K,a} x_j\rangle}}
              {\sum_k e^{\beta\langle W^{Q,a} x_i, W^{K,a} x_k\rangle}} .

    Parameters
    ----------
    x : array_like, shape (..., n, d)
        Unit tokens.
    beta : float
        Inverse temperature, of either sign.
    normalize : bool
        False puts :math:`\tfrac1n e^{-|\beta|}` in place of the denominator: the
        unnormalized model in its time s.
    query, key : array_like, shape (k, d) or (H, k, d), optional
        :math:`W^{Q,a}` and :math:`W^{K,a}`; the identity by default.
    value : array_like, shape (d, d) or (H, d, d), optional
        :math:`W^{V,a}`, with the output weights multiplied in; the identity by default.
    causal : bool
        Whether token i sees the tokens up to i only; n is then their number.

    Returns
    -------
    ndarray, shape (..., n, d)
        One vector for each token.

    Raises
    ------
    ValueError
        For tokens off the sphere, weights that do not fit them or each other, or
        results beyond the float range.
    """
    x = require_unit("x", x)
    heads = make_heads(query, key, value, x.shape[-1])
    return attend(
        x,
        heads,
        require_number("beta", beta),
        normalize=require_flag("normalize", normalize),
        causal=require_flag("causal", causal),
    )


def attention_field(
    x: npt.ArrayLike,
    beta: float,
    normalize: bool = True,
    *,
    query: npt.ArrayLike | None = None,
    key: npt.ArrayLike | None = None,
    value: npt.ArrayLike | None = None,
    causal: bool = False,
) -> Array:
    r"""Velocity of each token: :func:`attention_output`, projected.

    Without weights it is :math:`\mathcal X[\mu](x_i)`, or with ``normalize=False``
    the field :math:`e^{-|\beta|} \mathcal X^{\mathrm u}[\mu](x_i)` of the unnormalized
    model in its time :math:`s = e^{|\beta|} t`. Nothing overflows at any β. Where all
    speeds are below about 1e-13, as between clusters at large β, rounding hides them:
    :func:`lib.coalescence.coalesce` goes on from there.

    Parameters
    ----------
    x, beta, normalize, query, key, value, causal
        As for :func:`attention_output`.

    Returns
    -------
    ndarray, shape (..., n, d)
        Tangent vectors.

    Raises
    ------
    ValueError
        As :func:`attention_output`.
    """
    output = attention_output(
        x, beta, normalize, query=query, key=key, value=value, causal=causal
    )
    return tangent(as_float("x", x), output)


def perceptron_output(
    x: npt.ArrayLike,
    inner: npt.ArrayLike,
    outer: npt.ArrayLike,
    bias: npt.ArrayLike | None = None,
    *,
    activation: Callable[[Array], npt.ArrayLike] | None = None,
) -> Array:
    r"""Perceptron with one hidden layer, :math:`W^{\mathrm{out}} \varphi(
    W^{\mathrm{in}} x_i + b)`, for each token by itself.

    Parameters
    ----------
    x : array_like, shape (..., n, d)
        Tokens.
    inner : array_like, shape (w, d)
        :math:`W^{\mathrm{in}}`.
    outer : array_like, shape (d, w)
        :math:`W^{\mathrm{out}}`.
    bias : array_like, shape (w,), optional
        b, 0 by default.
    activation : callable, optional
        φ, entry by entry; max(x, 0) by default.

    Returns
    -------
    ndarray, shape (..., n, d)
        One vector for each token, not tangent.

    Raises
    ------
    ValueError
        For arrays that are not finite or do not fit, or results beyond the float range.
    """
    x = require_unit("x", x)
    w_in = require_finite("inner", as_float("inner", inner))
    w_out = require_finite("outer", as_float("outer", outer))
    if w_in.ndim != 2 or w_in.shape[-1] != x.shape[-1] or not w_in.size:
        raise ValueError(f"inner must be (w, {x.shape[-1]}), got {w_in.shape}")
    if w_out.shape != w_in.shape[::-1]:
        raise ValueError(f"outer must be {w_in.shape[::-1]}, got {w_out.shape}")
    b = np.zeros(len(w_in)) if bias is None else as_float("bias", bias)
    if require_finite("bias", b).shape != (len(w_in),):
        raise ValueError(f"bias must have shape ({len(w_in)},), got {b.shape}")
    if activation is not None and not callable(activation):
        raise ValueError(f"activation must be a function, got {activation!r}")
    with np.errstate(over="ignore", invalid="ignore"):
        hidden = x @ w_in.T + b  # (..., n, w)
        if activation is None:
            active = np.maximum(hidden, 0.0)
        else:
            active = as_float("activation", activation(hidden))
        if active.shape != hidden.shape:
            raise ValueError(f"activation must keep the shape, got {active.shape}")
        out = active @ w_out.T
    if not np.isfinite(out).all():
        raise ValueError(
            "inner, outer, bias or activation is too large: the output is not finite"
        )
    return np.asarray(out)


def simulate(
    x0: npt.ArrayLike,
    beta: float,
    horizon: float,
    steps: int,
    *,
    normalize: bool = True,
    query: npt.ArrayLike | None = None,
    key: npt.ArrayLike | None = None,
    value: npt.ArrayLike | None = None,
    causal: bool = False,
    save_every: int = 1,
) -> Trajectory:
    r"""Tokens along the flow of :func:`attention_field`.

    Runge–Kutta of order 4 with normalized stages (:func:`flow`). Steps of a quarter are
    accurate to about 1e-5 at moderate β.

    Parameters
    ----------
    x0 : array_like, shape (..., n, d)
        Unit tokens; leading axes hold several systems.
    beta : float
        Inverse temperature, of either sign.
    horizon : float
        End time, t or, with ``normalize=False``, s.
    steps : int
        Number of steps.
    normalize, query, key, value, causal
        As for :func:`attention_output`.
    save_every : int
        Steps between saved states; the first and the last state are saved always.

    Returns
    -------
    Trajectory
        ``states`` (K, ..., n, d).

    Raises
    ------
    ValueError
        As :func:`attention_output`, and for too few steps, with a suggestion.
    """
    x0 = require_unit("x0", x0)
    field = partial(
        attend,
        heads=make_heads(query, key, value, x0.shape[-1]),
        beta=require_number("beta", beta),
        normalize=require_flag("normalize", normalize),
        causal=require_flag("causal", causal),
    )
    weighted = not (query is None and key is None and value is None)
    names = "x0, beta, query, key and value" if weighted else "x0 and beta"
    return solve(field, x0, horizon, steps, save_every, names)


def uniform_tokens(
    n: int, d: int, *, systems: int | None = None, rng: np.random.Generator
) -> Array:
    """Independent uniform points of the sphere, shape (n, d) or (systems, n, d).

    Raises ValueError for counts below 1.
    """
    require_count("n", n)
    require_count("d", d)
    require_generator("rng", rng)
    batch = () if systems is None else (require_count("systems", systems),)
    if n * d * (batch[0] if batch else 1) > 2**40:
        raise ValueError(f"n={n}, d={d}, systems={systems} is more than fits in memory")
    return unit(rng.standard_normal((*batch, n, d)))


def cluster_labels(x: npt.ArrayLike, radius: float) -> npt.NDArray[np.int64]:
    """Clusters: tokens joined by a chain of steps no longer than ``radius``.

    Parameters
    ----------
    x : array_like, shape (..., n, d)
        Unit tokens.
    radius : float
        Largest chord |x_i − x_j| of a step. Chords are differences of coordinates, so
        that radii far below 1e-8 can be told apart.

    Returns
    -------
    ndarray of int, shape (..., n)
        Labels 0, 1, ... in the order in which clusters first appear, for each system.

    Raises
    ------
    ValueError
        For tokens off the sphere, or a radius that is not positive.
    """
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial.distance import cdist

    x = require_unit("x", x)
    require_positive("radius", radius)
    *batch, n, d = x.shape
    labels = np.empty((int(np.prod(batch)), n), dtype=np.int64)
    for row, tokens in zip(labels, x.reshape(-1, n, d), strict=True):
        found = connected_components(cdist(tokens, tokens) <= radius, directed=False)
        row[:] = found[1]
    return labels.reshape(*batch, n)
