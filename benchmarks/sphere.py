"""Rows of lib.sphere: the field, and the time to merge beside an integrator."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np
from scipy.integrate import quad, solve_ivp

from benchmarks.harness import Growth, Row
from benchmarks.timing import Call
from lib.core.checks import Array
from lib.sphere import attention_field, coalesce, equiangular_time, uniform_tokens

BETA, SAMPLE = 2.0, 50
N, GAP = 32, 1e-3
BETAS = np.linspace(0.1, 9, 300)


@cache
def tokens(n: int, d: int, systems: int | None = None) -> Array:
    """Uniform tokens."""
    return uniform_tokens(n, d, systems=systems, rng=np.random.default_rng(0))


def formula(x: Array) -> Array:
    """The field in numpy as it is written, unchecked and all scores at once."""
    weights = np.exp(BETA * x @ x.mT)
    mean = weights @ x / weights.sum(axis=-1, keepdims=True)
    return np.asarray(mean - (x * mean).sum(axis=-1, keepdims=True) * x)


def exact(x: Array) -> Any:
    """The same for the first tokens of a system, in long double."""
    x = np.longdouble(x if x.ndim == 2 else x[0])
    some = x[:SAMPLE]
    weights = np.exp(BETA * np.einsum("id,jd->ij", some, x))
    mean = np.einsum("ij,jd->id", weights, x) / weights.sum(axis=1, keepdims=True)
    return mean - (some * mean).sum(axis=1, keepdims=True) * some


def error(field: Array, sample: Array) -> float:
    """Largest absolute error of the first tokens of the first system."""
    one = field if field.ndim == 2 else field[0]
    return float(np.abs(one[:SAMPLE] - sample).max())


def field_row(name: str, x: Array, reason: str = "") -> Row:
    """The field of some tokens beside the formula."""
    n, pairs = x.shape[-2], x.size // x.shape[-1] * x.shape[-2]
    return Row(
        name=f"attention field of {name}",
        ours=lambda: attention_field(x, BETA),
        peer=lambda: formula(x),
        peer_name="the formula in numpy, unchecked",
        reference=lambda: exact(x),
        error=error,
        accuracy=1e-14,
        limit={"exp": pairs, "flop": 4 * pairs * x.shape[-1], "bytes": 16 * n},
        reason=reason,
        beyond="With 64 tokens a call of numpy costs as much as its arithmetic."
        if pairs < 10**4
        else "Products are half of the time; checks, sums and the projection pass over"
        " all coordinates.",
    )


def by_events() -> Array:
    """One integration for each β, stopped by an event: as precise as is needed here."""
    times = np.empty(BETAS.size)
    for i, beta in enumerate(BETAS):

        def slope(_: float, rho: Array, b: float = beta) -> Array:
            weight = np.exp(b * (1 - rho)) + N - 1
            return np.asarray(2 * (1 - rho) * ((N - 1) * rho + 1) / weight)

        def reached(_: float, rho: Array) -> float:
            return float(rho[0] - 1 + GAP)

        reached.terminal = True  # type: ignore[attr-defined]
        run = solve_ivp(
            slope, (0, 1e4), [0.0], "DOP853", events=reached, rtol=2e-8, atol=1e-9
        )
        times[i] = run.t_events[0][0]
    return times


def exact_times() -> Any:
    """The time as an integral over log((1 + (n − 1)ρ)/(1 − ρ)), which moves evenly."""

    def at(u: float, beta: float) -> float:
        gap = N / (np.exp(u) + N - 1)
        return float((np.exp(beta * gap) + N - 1) / (2 * N))

    end = np.log((N - (N - 1) * GAP) / GAP)
    return [quad(at, 0, end, args=(beta,), epsrel=1e-12, epsabs=0)[0] for beta in BETAS]


def largest_relative(times: Array, reference: Array) -> float:
    """Largest relative error of a time."""
    return float(np.abs(times / reference - 1).max())


def field_call(n: int) -> Call:
    """A call whose time grows with the number of pairs."""
    return partial(attention_field, tokens(n, 3), BETA)


def merging_call(n: int) -> Call:
    """Tokens until two of them meet: with this seed in 14 or 15 steps of all pairs."""
    x = uniform_tokens(n, 3, rng=np.random.default_rng(2))
    return lambda: coalesce(x, 9.0, clusters=n - 1).states


ROWS: list[Row | Growth] = [
    field_row(
        "64 tokens, d = 3",
        tokens(64, 3),
        "With 64 tokens a call of numpy costs as much as its arithmetic, and ours makes"
        " more of them: checks alone are 24 % of its time.",
    ),
    field_row("4096 tokens, d = 3", tokens(4096, 3)),
    field_row(
        "256 systems of 32 tokens, d = 128",
        tokens(32, 128, 256),
        "Both multiply the same matrices; ours checks that tokens are unit vectors and"
        " results finite, for 6 % of its time.",
    ),
    Row(
        name="times to merge at 300 β",
        ours=lambda: equiangular_time(N, BETAS, GAP),
        peer=by_events,
        peer_name="scipy DOP853 with an event for each β",
        reference=exact_times,
        error=largest_relative,
        accuracy=1e-6,
        limit={"exp": 5 * BETAS.size},
        beyond="An exponential integral takes hundreds of times as long as an"
        " exponential, and each β needs four.",
    ),
    Growth(
        name="attention field on the sphere, in the number of tokens",
        sizes=(384, 512, 1024, 2048, 3072, 4096),
        run=field_call,
        expected=2,
    ),
    Growth(
        name="tokens on the sphere until two of them merge, in their number",
        sizes=(24, 48, 96, 160, 240),
        run=merging_call,
        expected=2,
    ),
]
