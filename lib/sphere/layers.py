"""Layers of a network on tokens: normalization after the sum, or before the branch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from lib.core.checks import (
    Array,
    as_float,
    require_count,
    require_finite,
    require_positive,
)
from lib.core.runge_kutta import Field
from lib.core.trajectory import Trajectory, iterate
from lib.sphere.field import vectors
from lib.sphere.geometry import require_unit, unit


def post_norm_layers(
    x0: npt.ArrayLike,
    parts: Field | Sequence[Field],
    step: float,
    depth: int,
    *,
    save_every: int = 1,
) -> Trajectory:
    r"""Layers with normalization after the sum (Post-LN).

    .. math:: x_i \leftarrow \frac{x_i + h f_i(X)}{|x_i + h f_i(X)|}

    once for each part f of a layer, in turn.

    Parameters
    ----------
    x0 : array_like, shape (..., n, d)
        Unit tokens.
    parts : callable or sequence of callables
        Attention, perceptron, ...: each from unit tokens to vectors of their shape.
    step : float
        h, the weight of a branch.
    depth : int
        Number of layers.
    save_every : int
        Layers between saved states; the first and the last state are saved always.

    Returns
    -------
    Trajectory
        ``times`` are layers times h, ``states`` (K, ..., n, d) unit tokens.

    Raises
    ------
    ValueError
        For tokens off the sphere, a part with other values than vectors of the tokens'
        shape, or a sum that is 0 and cannot be normalized.
    """
    functions = _require_parts(parts, step, depth, save_every)

    def layer(x: Array) -> Array:
        for part in functions:
            x = unit(_sum(x, step, part(x)))
        return x

    return iterate(layer, unit(require_unit("x0", x0)), step, depth, save_every)


def pre_norm_layers(
    x0: npt.ArrayLike,
    parts: Field | Sequence[Field],
    step: float,
    depth: int,
    *,
    save_every: int = 1,
) -> Trajectory:
    r"""Layers with normalization before each branch (Pre-LN).

    .. math:: y_i \leftarrow y_i + h f_i(X), \qquad x_i = y_i / |y_i| .

    The tokens grow, so that a branch turns them less and less.

    Parameters
    ----------
    x0 : array_like, shape (..., n, d)
        Tokens of any length but 0.
    parts, step, depth, save_every
        As for :func:`post_norm_layers`; the parts are given unit tokens.

    Returns
    -------
    Trajectory
        ``times`` are layers times h, ``states`` (K, ..., n, d) the tokens
        :math:`y_i`, of any length.

    Raises
    ------
    ValueError
        For tokens of length 0, or a part with other values than vectors of the tokens'
        shape.
    """
    functions = _require_parts(parts, step, depth, save_every)
    y0 = require_finite("x0", as_float("x0", x0))
    if y0.ndim < 2 or y0.size == 0:
        raise ValueError(f"x0 must have shape (..., n, d), got {y0.shape}")
    if not y0.any(axis=-1).all():
        raise ValueError("x0 must have no token of length 0, which has no direction")

    def layer(y: Array) -> Array:
        for part in functions:
            y = _sum(y, step, part(unit(y)))
        return y

    return iterate(layer, y0, step, depth, save_every)


def _sum(x: Array, step: float, branch: npt.ArrayLike) -> Array:
    """Residual update x + h f, of finite numbers."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = x + step * vectors("parts", branch, x.shape)
    if not np.isfinite(total).all():
        raise ValueError(f"step={step!r} times parts leaves the float range")
    return np.asarray(total)


def _require_parts(
    parts: Field | Sequence[Field], step: float, depth: int, save_every: int
) -> list[Field]:
    require_positive("step", step)
    require_count("depth", depth)
    require_count("save_every", save_every)
    functions = [parts] if callable(parts) else parts
    if not isinstance(functions, list | tuple) or not functions:
        raise ValueError(f"parts must be functions of the tokens, got {parts!r}")
    if not all(callable(part) for part in functions):
        raise ValueError(f"parts must be functions of the tokens, got {parts!r}")
    return list(functions)


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
