r"""Small architectures as programs: four with Gaussian limits, and attention.

Each function writes a :class:`lib.netsor.Program` and returns it with its outputs, one
vector for each input or output position.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from lib.attention import softmax
from lib.core.checks import Array, require_count, require_flag, require_positive
from lib.netsor.program import Program, Vector


class Architecture(NamedTuple):
    """A program and its outputs."""

    program: Program
    outputs: list[Vector]


def _relu(x: Array) -> Array:
    return np.maximum(x, 0.0)


def mlp(cov: npt.ArrayLike, depth: int = 3) -> Architecture:
    """Multilayer perceptron: ReLU layers that keep the variance, a linear readout.

    Parameters
    ----------
    cov : array_like, shape (k, k)
        Covariance of k inputs.
    depth : int
        Number of matrices.

    Returns
    -------
    Architecture
        One output for each input.

    Raises
    ------
    ValueError
        For a matrix that is no covariance, or a depth below 1.
    """
    program = Program()
    vectors = program.inputs(cov)
    for layer in range(require_count("depth", depth)):
        # E relu(Z)² = E Z²/2, which the variance 2 makes up for.
        weights = program.matrix(var=2.0 if layer else 1.0)
        hidden = [program.nonlin(_relu, h) for h in vectors] if layer else vectors
        vectors = [program.matmul(weights, h) for h in hidden]
    return Architecture(program, vectors)


def rnn(cov: npt.ArrayLike) -> Architecture:
    """Recurrent network: h_t = tanh(W h_{t−1} + U x_t), W and U the same at all times.

    Parameters
    ----------
    cov : array_like, shape (k, k)
        Covariance of the inputs x_1, ..., x_k.

    Returns
    -------
    Architecture
        A linear readout of each state.

    Raises
    ------
    ValueError
        For a matrix that is no covariance.
    """
    program = Program()
    inputs = program.inputs(cov)
    recurrent, into, readout = (program.matrix() for _ in range(3))

    def tanh(*sums: Array) -> Array:
        return np.asarray(np.tanh(sum(sums)))

    outputs: list[Vector] = []
    state: Vector | None = None
    for x in inputs:
        sums = [program.matmul(into, x)]
        if state is not None:
            sums.append(program.matmul(recurrent, state))
        state = program.nonlin(tanh, *sums, bounded=True)
        outputs.append(program.matmul(readout, state))
    return Architecture(program, outputs)


def cnn(cov: npt.ArrayLike, depth: int = 2) -> Architecture:
    """Convolutions on a line: filters of three positions, shared by all of them.

    Parameters
    ----------
    cov : array_like, shape (k, k)
        Covariance of the inputs at k positions.
    depth : int
        Number of layers.

    Returns
    -------
    Architecture
        The pre-activation of the last layer at each position.

    Raises
    ------
    ValueError
        For a matrix that is no covariance, or a depth below 1.
    """
    program = Program()
    vectors = program.inputs(cov)

    def add(*parts: Array) -> Array:
        return np.asarray(sum(parts))

    for layer in range(require_count("depth", depth)):
        filters = [program.matrix(var=(2.0 if layer else 1.0) / 3) for _ in range(3)]
        hidden = [program.nonlin(_relu, h) for h in vectors] if layer else vectors
        vectors = []
        for place in range(len(hidden)):
            near = zip(filters, range(place - 1, place + 2), strict=True)
            inside = [(w, k) for w, k in near if 0 <= k < len(hidden)]
            parts = [program.matmul(w, hidden[k]) for w, k in inside]
            vectors.append(program.nonlin(add, *parts))
    return Architecture(program, vectors)


def lstm(cov: npt.ArrayLike) -> Architecture:
    """Long short-term memory: three gates and a cell, with weights shared in time.

    Parameters
    ----------
    cov : array_like, shape (k, k)
        Covariance of the inputs x_1, ..., x_k.

    Returns
    -------
    Architecture
        A linear readout of each state.

    Raises
    ------
    ValueError
        For a matrix that is no covariance.
    """
    program = Program()
    inputs = program.inputs(cov)
    # Forget, input and output gate, and the candidate of the cell.
    into = [program.matrix() for _ in range(4)]
    recurrent = [program.matrix() for _ in range(4)]
    readout = program.matrix()
    outputs: list[Vector] = []
    cell: Vector | None = None
    state: Vector | None = None
    for x in inputs:
        sums = [[program.matmul(w, x)] for w in into]
        if state is not None:
            for parts, w in zip(sums, recurrent, strict=True):
                parts.append(program.matmul(w, state))
        forget, enter, leave, new = sums
        count = len(forget)

        def update(*args: Array, count: int = count) -> Array:
            gates = [sum(args[k * count : (k + 1) * count]) for k in range(3)]
            kept = expit(gates[0]) * args[-1] if len(args) > 3 * count else 0.0
            return np.asarray(kept + expit(gates[1]) * np.tanh(gates[2]))

        def emit(*args: Array) -> Array:
            return np.asarray(expit(sum(args[:-1])) * np.tanh(args[-1]))

        old = [] if cell is None else [cell]
        cell = program.nonlin(update, *forget, *enter, *new, *old)
        state = program.nonlin(emit, *leave, cell, bounded=True)
        outputs.append(program.matmul(readout, state))
    return Architecture(program, outputs)


def attention(
    cov: npt.ArrayLike,
    heads: int = 1,
    score_scale: float = 1.0,
    *,
    bound: float = 100.0,
    tied: bool = False,
) -> Architecture:
    r"""One attention layer with scores divided by :math:`\sqrt n`.

    Parameters
    ----------
    cov : array_like, shape (m, m)
        Covariance of the tokens: the limit of their Gram matrix.
    heads : int
        H.
    score_scale : float
        σ > 0.
    bound : float
        The tokens are clipped at this absolute value, since the theorem asks for
        bounded ones.
    tied : bool
        Whether queries and keys share their matrix, against a hypothesis.

    Returns
    -------
    Architecture
        The output rows.

    Raises
    ------
    ValueError
        For a matrix that is no covariance, heads below 1, or a score scale or bound
        that is not positive.
    """
    program = Program()
    count = require_count("heads", heads)
    scale = require_positive("score_scale", score_scale)
    limit = require_positive("bound", bound)
    tied = require_flag("tied", tied)

    def clip(x: Array) -> Array:
        return np.clip(x, -limit, limit)

    tokens = [program.nonlin(clip, x, bounded=True) for x in program.inputs(cov)]
    scores, values = [], []
    for _ in range(count):
        w_query = program.matrix()
        w_key = w_query if tied else program.matrix()
        w_value, w_output = program.matrix(), program.matrix()
        queries = [program.matmul(w_query, x) for x in tokens]
        keys = queries if tied else [program.matmul(w_key, x) for x in tokens]
        scores.append([[program.dot(q, k) for k in keys] for q in queries])
        inner = [program.matmul(w_value, x) for x in tokens]
        values += [program.matmul(w_output, v) for v in inner]

    def mix(*args: Array) -> Array:
        return _mixed(args, count, scale)

    rows = [
        program.nonlin(mix, *(p for head in scores for p in head[i]), *values)
        for i in range(len(tokens))
    ]
    return Architecture(program, rows)


def _mixed(args: tuple[Array, ...], heads: int, scale: float) -> Array:
    """H^{-1/2} Σ_a Σ_j softmax_j(σ p^a) z^{a,j}, from all scores and then values."""
    m = len(args) // (2 * heads)
    total: Array = np.zeros(())
    for a in range(heads):
        weights = softmax(scale * np.stack(args[a * m : (a + 1) * m], axis=-1))
        values = args[(heads + a) * m : (heads + a + 1) * m]
        total = total + sum(weights[..., j] * values[j] for j in range(m))
    return np.asarray(total / np.sqrt(heads))
