"""Gram matrices through a stack of attention layers, at any width or in the limit."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lib._checks import (
    Array,
    require_count,
    require_flag,
    require_generator,
    require_gram,
    require_moderate,
    require_number,
)
from lib._hierarchical.heads import root as root_of
from lib._hierarchical.widths import Layer, finite_layer, head_roots, limit_layer
from lib._trajectory import Trajectory
from lib._wishart import bartlett, triangular

_LARGEST = 1e70  # roots beyond overflow in the scores


def attention_stack(
    gram: npt.ArrayLike,
    depth: int,
    heads: int = 1,
    score_scale: float = 1.0,
    *,
    width: int | None = None,
    skip: float = 0.0,
    branch: float = 1.0,
    normalize: bool = False,
    paths: int,
    rng: np.random.Generator,
) -> Trajectory:
    r"""Gram matrices after 0, ..., ``depth`` layers X ← λX + γy, with fresh weights.

    Given Γ of a layer its output is :math:`y = KN` with :math:`KK^\top = \Gamma` and a
    normal m × n matrix N. The part of N along the m rows of X and the rest are
    independent, so that the Gram matrix is a Markov chain, exact in law at a cost that
    does not depend on n. In the limit :math:`V' = \lambda^2 V + \gamma^2\,\Gamma`,
    where Γ is random.

    Parameters
    ----------
    gram : array_like, shape (m, m)
        V of the inputs.
    depth : int
        Number of layers.
    heads : int
        H.
    score_scale : float
        σ ≥ 0.
    width : int, optional
        n, at least 2m; the limit if left out.
    skip, branch : float
        λ and γ; 0 and 1 are attention alone.
    normalize : bool
        Whether each token is divided by its root mean square after each layer.
    paths : int
        Number of networks.
    rng : numpy.random.Generator

    Returns
    -------
    Trajectory
        ``times`` (depth + 1,) counts layers, ``states`` (depth + 1, paths, m, m).

    Raises
    ------
    ValueError
        For a matrix that is no Gram matrix, a width below 2m, numbers out of their
        range, or tokens that vanish where they are to be divided by their size.
    """
    start = require_gram("gram", require_moderate("gram", gram))
    m = len(start)
    layer = limit_layer(heads, score_scale)
    if width is not None:
        layer = finite_layer(heads, score_scale, width)
        width = require_count("width", width, least=2 * m, most=2**53)
    depth = require_count("depth", depth)
    skip, branch = require_number("skip", skip), require_number("branch", branch)
    normalize = require_flag("normalize", normalize)
    paths = require_count("paths", paths)
    require_generator("rng", rng)
    size = np.sqrt(np.abs(start).max()) or 1.0
    roots = np.tile(size * root_of(start / size**2), (paths, 1, 1))  # (paths, m, r)
    states = np.empty((depth + 1, paths, m, m))
    states[0] = start
    for number in range(1, depth + 1):
        roots = _next_roots(roots, layer, width, skip, branch, rng)
        if normalize:
            roots = _unit_rows(roots)
        states[number] = roots @ roots.swapaxes(-1, -2)
    return Trajectory(np.arange(depth + 1.0), states)


def _next_roots(
    roots: Array,
    layer: Layer,
    width: int | None,
    skip: float,
    branch: float,
    rng: np.random.Generator,
) -> Array:
    """Roots of the next Gram matrices, (paths, m, k)."""
    paths, m, r = roots.shape
    heads = head_roots(roots[:, None], layer, paths, layer.heads, rng)
    joint = heads.swapaxes(-3, -2).reshape(paths, m, -1) / np.sqrt(layer.heads)
    output = triangular(joint)  # (paths, m, k): the root of Γ
    if width is None:
        parts = [skip * roots, branch * output]
    else:
        scale, k = branch / np.sqrt(width), output.shape[-1]
        along = rng.standard_normal((paths, k, r))
        rest = bartlett(paths, k, width - r, rng)
        parts = [skip * roots + scale * output @ along, scale * output @ rest]
    following = np.concatenate(parts, axis=-1)
    if not np.abs(following).max(initial=0) <= _LARGEST:
        raise ValueError(
            f"skip = {skip:g} or branch = {branch:g} is too large for this depth:"
            " the tokens left the float range"
        )
    return triangular(following)


def _unit_rows(roots: Array) -> Array:
    norms = np.sqrt((roots**2).sum(axis=-1, keepdims=True))
    if not norms.all():
        raise ValueError("gram has a token that vanishes, and normalize divides by it")
    return np.asarray(roots / norms)
