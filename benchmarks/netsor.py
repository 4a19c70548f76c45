"""Rows of lib.netsor: draws of the limit beside networks of width 100."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness import Growth, Row
from lib import architectures
from lib.architectures import Architecture

RNG = np.random.default_rng(0)
DRAWS, NETWORKS, WIDTH = 10**6, 100, 100
TOKENS = np.array([[1.0, 0.3, 0.0], [0.3, 1.0, -0.2], [0.0, -0.2, 1.5]])


def variance_error(draws: Any, exact: float) -> float:
    """Relative error of the variance of a sample."""
    return float(abs(np.mean(draws**2) / exact - 1))


def program_row(name: str, made: Architecture) -> Row:
    """The last output of a program, a million times."""
    program, outputs = made
    last = outputs[-1:]
    return Row(
        name=f"{DRAWS:.0e} draws of the limit of {name}".replace("1e+06", "a million"),
        ours=lambda: program.limit(last, size=DRAWS, rng=RNG),
        peer=lambda: program.finite(WIDTH, last, size=NETWORKS, rng=RNG),
        peer_name=f"networks of width {WIDTH}, {NETWORKS} at a time",
        peer_repeats=DRAWS / NETWORKS,
        reference=lambda: program.kernel(last[0], last[0]),
        error=variance_error,
        accuracy=0.9,  # the variance of a hundred draws
        limit={"normals": DRAWS},
    )


ROWS: list[Row | Growth] = [
    program_row("a perceptron", architectures.mlp(TOKENS)),
    program_row("a recurrent network", architectures.rnn(TOKENS)),
    program_row("a convolution", architectures.cnn(TOKENS)),
    program_row("an LSTM", architectures.lstm(TOKENS)),
    program_row("attention", architectures.attention(TOKENS, 1, 2.0)),
]
