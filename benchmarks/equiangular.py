"""Rows of lib.equiangular: the time to merge in closed form, beside an integrator."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.integrate import quad, solve_ivp

from benchmarks.harness import Growth, Row
from lib._checks import Array
from lib.equiangular import equiangular_time

N, GAP = 32, 1e-3
BETAS = np.linspace(0.1, 9, 300)


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


def exact() -> Any:
    """The time as an integral over log((1 + (n − 1)ρ)/(1 − ρ)), which moves evenly."""

    def at(u: float, beta: float) -> float:
        gap = N / (np.exp(u) + N - 1)
        return float((np.exp(beta * gap) + N - 1) / (2 * N))

    end = np.log((N - (N - 1) * GAP) / GAP)
    return [quad(at, 0, end, args=(beta,), epsrel=1e-12, epsabs=0)[0] for beta in BETAS]


def largest_relative(times: Array, reference: Array) -> float:
    """Largest relative error of a time."""
    return float(np.abs(times / reference - 1).max())


ROWS: list[Row | Growth] = [
    Row(
        name="times to merge at 300 β",
        ours=lambda: equiangular_time(N, BETAS, GAP),
        peer=by_events,
        peer_name="scipy DOP853 with an event for each β",
        reference=exact,
        error=largest_relative,
        accuracy=1e-6,
        limit={"exp": 5 * BETAS.size},
    )
]
