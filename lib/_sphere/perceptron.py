"""The other part of a block: a perceptron, for each token by itself."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from lib._checks import Array, as_float, require_finite
from lib._sphere.geometry import require_unit


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
