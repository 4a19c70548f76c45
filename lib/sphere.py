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

import numpy.typing as npt

from lib._checks import Array, as_float
from lib._sphere.coalescence import Coalescence, coalesce
from lib._sphere.energy import dissipation, interaction_energy, partition_function
from lib._sphere.equiangular import attention_cosine, equiangular_field, equiangular_gap
from lib._sphere.equiangular_time import equiangular_time
from lib._sphere.flow import flow, solve
from lib._sphere.geometry import project, require_unit, tangent
from lib._sphere.heads import make_attention, make_heads
from lib._sphere.hemisphere import hemisphere_pole, hemisphere_probability
from lib._sphere.layers import post_norm_layers, pre_norm_layers
from lib._sphere.perceptron import perceptron_output
from lib._sphere.tokens import cluster_labels, uniform_tokens
from lib._trajectory import Trajectory

__all__ = [
    "Coalescence", "attention_cosine", "attention_field", "attention_output",
    "cluster_labels", "coalesce", "dissipation", "equiangular_field",
    "equiangular_gap", "equiangular_time", "flow", "hemisphere_pole",
    "hemisphere_probability", "interaction_energy", "partition_function",
    "perceptron_output", "post_norm_layers", "pre_norm_layers", "project", "simulate",
    "uniform_tokens",
]  # fmt: skip


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
    return make_attention(heads, beta, normalize, causal)(x)


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
    :func:`coalesce` goes on from there.

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
    heads = make_heads(query, key, value, x0.shape[-1])
    field = make_attention(heads, beta, normalize, causal)
    weighted = not (query is None and key is None and value is None)
    names = "x0, beta, query, key and value" if weighted else "x0 and beta"
    return solve(field, x0, horizon, steps, save_every, names)
