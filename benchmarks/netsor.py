"""Rows of lib.netsor: draws of the limit beside networks of width 100."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from benchmarks.harness import Growth, Row
from benchmarks.timing import Call
from lib.netsor import architectures
from lib.netsor.architectures import Architecture

RNG = np.random.default_rng(0)
DRAWS, NETWORKS, WIDTH = 10**6, 100, 100
TOKENS = np.array([[1.0, 0.3, 0.0], [0.3, 1.0, -0.2], [0.0, -0.2, 1.5]])


def standard_errors(draws: Any, exact: float) -> float:
    """Distance of the mean square of a sample from the variance."""
    squares = draws**2
    return float(abs(squares.mean() - exact) / squares.std() * np.sqrt(len(squares)))


def program_row(name: str, made: Architecture, normals: int, exp: int = 0) -> Row:
    """The last output of a program: a million draws, or a hundred networks.

    A draw takes so many normals and exponentials.
    """
    program, outputs = made
    last = outputs[-1:]
    return Row(
        name=f"a draw of the limit of {name}",
        ours=lambda: program.limit(last, size=DRAWS, rng=RNG),
        peer=lambda: program.finite(WIDTH, last, size=NETWORKS, rng=RNG),
        peer_name=f"a network of width {WIDTH}",
        reference=lambda: program.kernel(last[0], last[0]),
        error=standard_errors,
        accuracy=5.0,
        sampled=True,
        pieces=(DRAWS, NETWORKS),
        limit={"normals": normals, "exp": exp},
    )


PROGRAM, OUTPUTS = architectures.rnn(TOKENS)


def limit_call(draws: int) -> Call:
    """So many draws of the limit."""
    return partial(PROGRAM.limit, OUTPUTS, size=draws, rng=RNG)


def finite_call(width: int) -> Call:
    """Four networks of some width."""
    return partial(PROGRAM.finite, width, OUTPUTS, size=4, rng=RNG)


ROWS: list[Row | Growth] = [
    program_row("a perceptron", architectures.mlp(TOKENS), 1),
    program_row("a recurrent network", architectures.rnn(TOKENS), 1),
    program_row("a convolution", architectures.cnn(TOKENS), 2),
    program_row("an LSTM", architectures.lstm(TOKENS), 1),
    program_row("attention", architectures.attention(TOKENS, 1, 2.0), 6, 3),
    Growth(
        name="draws of the limit of a recurrent network, in their number",
        sizes=(10**5, 2 * 10**5, 4 * 10**5, 7 * 10**5, 10**6),
        run=limit_call,
        expected=1,
    ),
    Growth(
        name="4 recurrent networks, in their width",
        sizes=(64, 128, 256, 512, 640),
        run=finite_call,
        expected=2,
    ),
]
