"""Rows: what is compared, whether both sides are right, and what they take."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from statistics import median, quantiles
from time import process_time
from typing import Any

import numpy as np
import numpy.typing as npt

import benchmarks
from benchmarks.machine import BenchmarkError, installed, least_time
from benchmarks.timing import Call, Clock, duration, interleaved
from lib.claims import convergence_order

NO_ROWS = {"__main__", "harness", "machine", "timing"}

PAIRS = 21
FAR = 3.0  # times the limit of the machine, from which a row says what takes the time
GROWTH_ROUNDS = 5

Reference = npt.ArrayLike | Callable[[], npt.ArrayLike]
Result = dict[str, Any]


def relative_error(result: npt.ArrayLike, reference: npt.ArrayLike) -> float:
    """Largest error of an entry, relative to the largest entry of the reference."""
    exact = np.asarray(reference)
    return float(np.abs(np.asarray(result) - exact).max() / np.abs(exact).max())


@dataclass(frozen=True)
class Row:
    """One comparison: two ways to one result, and how accurate both have to be.

    ``reference`` is the answer or computes it, in more digits than float64 has.
    ``needs`` is the distribution that brings the peer, where that may be absent.
    ``limit`` counts the work of our method, in the units of ``machine_limits``: its
    exponentials, random numbers and products, and the arrays that it has to pass over.
    ``pairs`` is how often both sides are timed; fewer where a side takes seconds.
    ``pieces`` is how many results a call of each side makes; times are per result.
    ``reason`` is a sentence that says why the peer is faster, where it may be; it is
    shown where it is. ``beyond`` says what takes more than :data:`FAR` times the limit,
    where that may be; it is recorded where it is.
    Where results are ``sampled``, an error is the distance of their mean from the
    reference in standard errors.
    """

    name: str
    ours: Call
    peer: Call
    peer_name: str
    reference: Reference
    needs: str | None = None
    error: Callable[[Any, Any], float] = relative_error
    accuracy: float = 1e-14
    limit: Mapping[str, float] = field(default_factory=dict)
    pieces: tuple[float, float] = (1, 1)
    sampled: bool = False
    pairs: int = PAIRS
    reason: str = ""
    beyond: str = ""


@dataclass(frozen=True)
class Growth:
    """The exponent of a cost: ``run(size)`` prepares and returns the call to time.

    At least five sizes, over a decade.
    """

    name: str
    sizes: Sequence[int]
    run: Callable[[int], Call]
    expected: float


def collect() -> list[tuple[str, Row | Growth]]:
    """Every declared row with its module: the lists ``ROWS`` of ``benchmarks/*.py``."""
    names = [module.name for module in pkgutil.iter_modules(benchmarks.__path__)]
    rows: list[tuple[str, Row | Growth]] = []
    for name in sorted(names):
        if name in NO_ROWS:
            continue
        module = importlib.import_module(f"benchmarks.{name}")
        if not hasattr(module, "ROWS"):
            raise BenchmarkError(f"benchmarks/{name}.py has no list ROWS")
        rows += [(name, row) for row in module.ROWS]
    return rows


def by_jax(function: Callable[[Any], Any], argument: npt.ArrayLike) -> Call:
    """A function of jax as a peer: compiled, in float64, its argument converted once.

    All that happens at the first call, which is not timed; until then jax may be
    absent.
    """

    @cache
    def compiled() -> Call:
        import jax

        jax.config.update("jax_enable_x64", True)
        return partial(jax.jit(function), jax.numpy.asarray(argument))

    return lambda: np.asarray(compiled()())  # asarray waits for the result


def side_of(seconds: float, error: float, sampled: bool) -> Result:
    """Measurements of a side, in numbers and in the words that tables show.

    Errors are relative, or counted in standard errors where results are sampled.
    """
    shown = f"{error:.1f} s.e." if sampled else f"{error:.0e}"
    words = {"seconds": duration(seconds), "error": shown}
    return {"seconds": seconds, "error": error, "words": words}


def sides(row: Row) -> dict[str, Call]:
    """The sides of a row that can run here: ours, and the peer where it is present."""
    absent = row.needs is not None and installed(row.needs) is None
    return {"ours": row.ours} | ({} if absent else {"peer": row.peer})


def errors(row: Row) -> dict[str, float]:
    """Error of each side against the reference, from one call each.

    Raises BenchmarkError where it exceeds the accuracy of the row: the time of a
    wrong answer means nothing.
    """
    exact = row.reference() if callable(row.reference) else row.reference
    measured = {side: row.error(call(), exact) for side, call in sides(row).items()}
    for side, error in measured.items():
        if not error <= row.accuracy:
            who = "lib" if side == "ours" else row.peer_name
            raise BenchmarkError(
                f"{row.name}: the error of {who} is {error:.1e},"
                f" and the row allows {row.accuracy:.0e}"
            )
    return measured


def measure(
    row: Row, unit_seconds: Mapping[str, float], clock: Clock = process_time
) -> Result:
    """Check and time one row; the ratio is peer over ours, above 1 where we win."""
    wrong = errors(row)  # these calls also import, compile and fill caches
    calls = sides(row)
    times = {
        side: [seconds / pieces for seconds in each]
        for side, pieces, each in zip(
            calls,
            row.pieces,
            interleaved([*calls.values()], row.pairs, clock),
            strict=False,
        )
    }
    result: Result = {"name": row.name, "peer_name": row.peer_name}
    result["accuracy"] = row.accuracy
    if row.sampled:
        result["sampled"] = True
    if row.reason:
        result["reason"] = row.reason
    for side, each in times.items():
        result[side] = side_of(median(each), wrong[side], row.sampled)
    if "peer" in times:
        pairs = zip(times["peer"], times["ours"], strict=True)
        ratios = [peer / ours for peer, ours in pairs]
        # The middle 80 %: one block that another program interrupts is no range.
        low, *_, high = quantiles(ratios, n=10, method="inclusive")
        spread = {"low": low, "high": high, "pairs": row.pairs}
        result["ratio"] = {"median": median(ratios), **spread}
    else:
        result["note"] = f"peer {row.needs} not installed"
    if row.limit:
        least = least_time(row.limit, unit_seconds)
        over = result["ours"]["seconds"] / least["seconds"]
        result["limit"] = {**least, "ours_over_limit": over}
        if over > FAR and row.beyond:
            result["beyond"] = row.beyond
    return result


def measure_growth(growth: Growth, clock: Clock = process_time) -> Result:
    """Time a cost at each size and fit its exponent."""
    calls = [growth.run(size) for size in growth.sizes]
    seconds = [median(each) for each in interleaved(calls, GROWTH_ROUNDS, clock)]
    exponent, stderr = convergence_order(growth.sizes, seconds)
    return {
        "name": growth.name,
        "sizes": list(growth.sizes),
        "seconds": seconds,
        "exponent": exponent,
        "stderr": stderr,
        "expected": growth.expected,
    }
