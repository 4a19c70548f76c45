"""Seconds of calls that take turns.

Timed in turns, A B A B, whatever slows the machine for a while slows every call, and
the ratio of neighboring blocks does not see it. The seconds are those of the processor:
on one thread they are the seconds of the clock less what other programs took, and they
count the threads that a peer may start.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import repeat
from time import process_time
from typing import Any

Call = Callable[[], Any]
Clock = Callable[[], float]

#: Seconds a timed block lasts at least: thousands of times what reading a clock costs.
BLOCK = 5e-3


@contextmanager
def no_collection() -> Iterator[None]:
    """Keep the garbage collector out of the timed blocks."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def block(call: Call, repetitions: int, clock: Clock) -> float:
    """Seconds that some repetitions of a call take together."""
    start = clock()
    for _ in repeat(None, repetitions):
        call()
    return clock() - start


def calibrated(call: Call, clock: Clock) -> int:
    """The power of two of repetitions that makes a block last at least BLOCK."""
    repetitions = 1
    while block(call, repetitions, clock) < BLOCK:
        repetitions *= 2
    return repetitions


def interleaved(
    calls: Sequence[Call], rounds: int, clock: Clock = process_time
) -> list[list[float]]:
    """Seconds per call in each round, one list per call; the calls take turns."""
    with no_collection():
        counts = [calibrated(call, clock) for call in calls]
        turns = [
            [block(call, n, clock) / n for call, n in zip(calls, counts, strict=True)]
            for _ in repeat(None, rounds)
        ]
    return [list(times) for times in zip(*turns, strict=True)]


def duration(seconds: float) -> str:
    """Seconds to three digits in a unit that suits them."""
    for scale, unit in ((1, "s"), (1e-3, "ms")):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"
