"""Gram matrices through layers: by themselves, with the tokens, or with all weights."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np
import numpy.typing as npt

from lib.core.checks import (
    Array,
    require_count,
    require_flag,
    require_generator,
    require_matrix,
    require_moderate,
)
from lib.core.psd import require_gram
from lib.core.trajectory import Trajectory, iterate
from lib.core.wishart import product
from lib.gram.base import Layers, require_run, start_root


def simulate(
    gram0: npt.ArrayLike,
    layer: Layers,
    depth: int,
    *,
    paths: int,
    rng: np.random.Generator,
    save_every: int = 1,
    factors: bool = False,
) -> Trajectory:
    r"""Gram matrices after 0, ..., ``depth`` layers, exact in law at any width.

    Take shaped attention. With a root :math:`V = CC^\top`, the scores are
    :math:`C G_1 G_2^\top C^\top` with independent normal :math:`G_1, G_2`, and the next
    Gram matrix is

    .. math:: V' = (\lambda C + \tfrac{\gamma}{\sqrt n} A C H)(\cdots)^\top
              + \tfrac{\gamma^2}{n} A C S C^\top A^\top,

    where H is an m × m normal matrix and S an independent Wishart matrix with n − m
    degrees of freedom: the part of the weights that the tokens see, and the rest.
    Wishart matrices are drawn by their Bartlett factors, and roots instead of Gram
    matrices are carried from layer to layer, so that nothing is lost near collapse.
    Widths below 2m are drawn directly.

    Parameters
    ----------
    gram0 : array_like, shape (m, m)
        Gram matrix of the input, of rank at most the width.
    layer : Layer or tuple of layers
        One of :mod:`lib.gram.layers`; several in a tuple are one block, passed in turn.
    depth : int
        Number of layers or blocks, at least 1.
    paths : int
        Number of independent paths.
    rng : numpy.random.Generator
    save_every : int
        States are kept after each so many layers; the last one always is.
    factors : bool
        Whether to return roots in place of Gram matrices: near collapse they resolve
        distances between tokens that a Gram matrix rounds away.

    Returns
    -------
    Trajectory
        ``times`` in layers over width, ``states`` (K, paths, m, m), or the roots,
        (K, paths, m, m) again, or (K, paths, m, n) at widths n below 2m.

    Raises
    ------
    ValueError
        For a matrix that is not a Gram matrix or has a rank above the width, counts
        below 1, or a layer that is not a function of the Gram matrix.
    """
    gram = require_gram("gram0", gram0)
    block = require_run(layer, depth, paths, rng, save_every)
    require_flag("factors", factors)
    root = start_root(gram, block[0].width)  # (m, k)

    def step(roots: Array) -> Array:
        return reduce(lambda roots, one: one._gram_step(roots, rng), block, roots)

    def observe(roots: Array) -> Array:
        return roots if factors else roots @ roots.swapaxes(-1, -2)

    run = _run(root, step, observe, block[0].width, depth, paths, save_every)
    if not factors:
        run.states[0] = gram  # without the rounding of its root
    return run


def random_scores(
    gram: npt.ArrayLike, key_width: int, *, size: int, rng: np.random.Generator
) -> Array:
    r"""Scores of one head at random initialization, from a Gram matrix.

    .. math:: Y = \tfrac1n X W^Q (W^K)^\top X^\top .

    Exact in law at every width: :math:`Y = C G_1 G_2^\top C^\top` with a root
    :math:`V = CC^\top` and normal matrices with ``key_width`` columns.

    Parameters
    ----------
    gram : array_like, shape (m, m)
        Gram matrix V of the tokens.
    key_width : int
        :math:`n_k`, columns of the query and of the key weights.
    size : int
        Number of independent score matrices.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray, shape (size, m, m)
        Query index first; :math:`E[Y_{ij} Y_{kl}] = n_k V_{ik} V_{jl}`.

    Raises
    ------
    ValueError
        For a matrix that is not a Gram matrix, or counts below 1.
    """
    V = require_gram("gram", gram)
    require_count("key_width", key_width, most=2**53)
    require_count("size", size)
    require_generator("rng", rng)
    root = start_root(V, 2 * len(V))
    return np.asarray(root @ product(size, len(V), len(V), key_width, rng) @ root.T)


def simulate_tokens(
    x0: npt.ArrayLike,
    layer: Layers,
    depth: int,
    *,
    paths: int,
    rng: np.random.Generator,
    save_every: int = 1,
) -> Trajectory:
    r"""The same chain with the tokens kept, but no weights: cost m² n.

    Given X, the product :math:`XW/\sqrt n` has the law of C G for a root C of V and a
    normal matrix G with n columns. This serves layers that are no function of V, such
    as concatenated heads without an output matrix.

    Parameters
    ----------
    x0 : array_like, shape (m, width)
        Tokens of the input.
    layer, depth, paths, rng, save_every
        As in :func:`simulate`.

    Returns
    -------
    Trajectory
        ``times`` in layers over width, ``states`` the Gram matrices (K, paths, m, m).

    Raises
    ------
    ValueError
        For tokens that are not a finite matrix of that width, or counts below 1.
    """
    block = require_run(layer, depth, paths, rng, save_every)

    def step(x: Array) -> Array:
        return reduce(lambda x, one: one._token_step(x, rng), block, x)

    return _run_tokens(x0, block[0].width, step, depth, paths, save_every)


def dense_simulate(
    x0: npt.ArrayLike,
    layer: Layers,
    depth: int,
    *,
    paths: int,
    rng: np.random.Generator,
    save_every: int = 1,
) -> Trajectory:
    """The same chain with real weight matrices: the reference for :func:`simulate`.

    Parameters
    ----------
    x0 : array_like, shape (m, width)
        Tokens of the input.
    layer, depth, paths, rng, save_every
        As in :func:`simulate`.

    Returns
    -------
    Trajectory
        As :func:`simulate_tokens`.

    Raises
    ------
    ValueError
        For tokens that are not a finite matrix of that width, or counts below 1.
    """
    block = require_run(layer, depth, paths, rng, save_every)

    def step(x: Array) -> Array:
        return reduce(lambda x, one: one._dense_step(x, rng), block, x)

    return _run_tokens(x0, block[0].width, step, depth, paths, save_every)


def _run(
    start: Array,
    step: Callable[[Array], Array],
    observe: Callable[[Array], Array],
    width: int,
    depth: int,
    paths: int,
    save_every: int,
) -> Trajectory:
    """Run paths that all start at ``start``, in times of layers over width."""
    state = np.broadcast_to(start, (paths, *start.shape))
    run = iterate(step, state, 1.0, depth, save_every, observe)
    if not np.isfinite(run.states).all():
        raise ValueError(
            "gram0 or x0 is too large, or depth: the tokens left the float range"
        )
    return Trajectory(run.times / width, run.states)


def _run_tokens(
    x0: npt.ArrayLike,
    width: int,
    step: Callable[[Array], Array],
    depth: int,
    paths: int,
    save_every: int,
) -> Trajectory:
    """Run tokens and keep their Gram matrices."""
    x = require_matrix("x0", require_moderate("x0", x0))
    if x.shape[1] != width:
        raise ValueError(f"x0 must have {width} columns, the width, got {x.shape[1]}")

    def observe(x: Array) -> Array:
        return x @ x.swapaxes(-1, -2) / width

    return _run(x, step, observe, width, depth, paths, save_every)
