"""The machine: what it is, what one thread of it can do, what is installed."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from benchmarks.timing import Call, Clock, interleaved

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


class BenchmarkError(RuntimeError):
    """A fault of a row or of the way it was started, in one sentence."""


def require_one_thread(environment: Mapping[str, str]) -> None:
    """Raise BenchmarkError unless the linear algebra was started on one thread."""
    wrong = [name for name in THREADS if environment.get(name) != "1"]
    if wrong:
        raise BenchmarkError(
            f"benchmarks are timed on one thread, so {', '.join(wrong)} must be 1"
            " when Python starts; make bench sees to it"
        )


def stay_on_one_core() -> None:
    """Make peers that start threads of their own, past any variable, share one core."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def settle_allocator() -> None:
    """Make the time of a row independent of the rows that ran before it.

    The allocator of glibc keeps arrays up to the largest size it has seen freed, at
    most 32 MiB, and returns larger ones to the system, which costs more than the
    arithmetic on them. One array of about that size, freed, sets this for all rows.
    """
    np.ones(4_000_000)


def machine_limits(clock: Clock = process_time, rounds: int = 15) -> dict[str, float]:
    """Seconds that one thread of this machine takes for one unit of work, at its best.

    ``bytes``: a byte read or written, in copies of arrays larger than the caches;
    ``exp``: numpy's exp of a float64; ``normals``: a standard normal of PCG64;
    ``flop``: an operation of a float64 matrix product.
    """
    rng = np.random.default_rng(0)
    source, target = np.ones((2, 10_000_000))  # 80 MB each
    scores, small = rng.standard_normal((2, 4096))
    square, product = rng.standard_normal((2, 512, 512))
    work: dict[str, tuple[int, Call]] = {
        "bytes": (2 * source.nbytes, lambda: np.copyto(target, source)),
        "exp": (small.size, lambda: np.exp(scores, out=small)),
        "normals": (small.size, lambda: rng.standard_normal(out=small)),
        "flop": (2 * 512**3, lambda: np.matmul(square, square, out=product)),
    }
    times = interleaved([call for _, call in work.values()], rounds, clock)
    return {
        unit: min(each) / count
        for (unit, (count, _)), each in zip(work.items(), times, strict=True)
    }


def least_time(
    work: Mapping[str, float], unit_seconds: Mapping[str, float]
) -> dict[str, Any]:
    """Seconds that a count of work takes at least, and what sets them: the roofline.

    Arithmetic (exp, normals, flop) shares one core, so its times add up. Memory moves
    meanwhile, so the limit is the larger of the two: a sum could be beaten. Arrays
    that stay in a cache move faster than memory and may come out below this limit.
    """
    if unknown := work.keys() - unit_seconds.keys():
        raise BenchmarkError(
            f"a limit counts {', '.join(sorted(unknown))}, which is none of"
            f" {', '.join(unit_seconds)}"
        )
    seconds = {unit: count * unit_seconds[unit] for unit, count in work.items()}
    memory = seconds.pop("bytes", 0.0)
    arithmetic = sum(seconds.values())
    by = "memory" if memory > arithmetic else "arithmetic"
    return {"seconds": max(memory, arithmetic), "by": by, "work": dict(work)}


def machine() -> dict[str, Any]:
    """Conditions of the numbers, and nothing that tells this machine from its like."""
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def processor() -> str:
    """Model of the processor, as the system reports it."""
    table = Path("/proc/cpuinfo")
    lines = table.read_text().splitlines() if table.exists() else []
    models = [line.partition(":")[2] for line in lines if line.startswith("model name")]
    return models[0].strip() if models else platform.processor() or "unknown"


def installed(distribution: str) -> str | None:
    """Version of a distribution, None where it is not installed."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def versions(peers: Iterable[str]) -> dict[str, str]:
    """Versions of Python, numpy, scipy and those peers that are present."""
    known = {name: installed(name) for name in ("numpy", "scipy", *peers)}
    present = {name: version for name, version in known.items() if version}
    return {"python": platform.python_version(), **present}
