"""Layers of a network on tokens: normalization after the sum, or before the branch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lib._checks import Array, as_float, require_count, require_finite, require_positive
from lib._sphere.flow import Field, vectors
from lib._sphere.geometry import require_unit, unit
from lib._trajectory import Trajectory, iterate


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
    if not 1e-100 <= np.abs(y0).max(axis=-1).min() <= np.abs(y0).max() <= 1e100:
        raise ValueError(
            "x0 must have tokens of lengths from 1e-100 to 1e100, got"
            f" {np.abs(y0).max(axis=-1).min():.3g} to {np.abs(y0).max():.3g}"
        )

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
