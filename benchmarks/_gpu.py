"""Tokens on a GPU beside the same calls in numpy: ``python -m benchmarks._gpu``.

Prints one JSON object: the machine, and for each size the seconds of a call on the GPU
and, where that takes a minute at most, in numpy. It needs PyTorch with a GPU and
array-api-compat, and says so where one is missing. No test and no CI runs it.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from lib import sinkhorn, sphere

SIZES, REPEATS = (10_000, 30_000, 100_000), 3
PATIENCE = 60.0  # seconds that a call in numpy may take, by what a smaller size took
D, BETA, EPS, STEPS = 64, 4.0, 0.1, 10

CALLS: dict[str, tuple[int, Callable[[Any], Any]]] = {
    f"attention field, d = {D}": (D, lambda x: sphere.attention_field(x, BETA)),
    f"{STEPS} Runge-Kutta steps, d = {D}": (
        D,
        lambda x: sphere.simulate(x, BETA, 0.2 * STEPS, STEPS, save_every=STEPS).states,
    ),
    "self-transport, d = 3": (3, lambda x: sinkhorn.self_transport(x, EPS).right),
    f"self-transport, d = {D}": (D, lambda x: sinkhorn.self_transport(x, 1.0).right),
}


def missing() -> list[str]:
    """What has to be installed or plugged in first."""
    wanted = {"torch": "PyTorch", "array_api_compat": "array-api-compat"}
    absent = [name for module, name in wanted.items() if find_spec(module) is None]
    if "PyTorch" not in absent:
        import torch

        if not torch.cuda.is_available():
            absent.append("a GPU that PyTorch sees")
    return absent


def timed(
    call: Callable[[], Any], synchronize: Callable[[], None]
) -> tuple[Any, float]:
    """A result, and the seconds until it is there."""
    synchronize()
    start = time.perf_counter()
    result = call()
    synchronize()
    return result, time.perf_counter() - start


def measure(name: str, patience: float) -> list[dict[str, Any]]:
    """One call at every size, on the GPU and in numpy."""
    import torch

    d, call = CALLS[name]
    rows, each = [], 0.0
    for n in SIZES:
        x = sphere.uniform_tokens(n, d, rng=np.random.default_rng(0))
        on_gpu = partial(call, torch.asarray(x, device="cuda"))
        if not rows:
            on_gpu()  # warms up
        torch.cuda.reset_peak_memory_stats()
        result, first = timed(on_gpu, torch.cuda.synchronize)
        more = [timed(on_gpu, torch.cuda.synchronize)[1] for _ in range(REPEATS - 1)]
        row = {
            "call": name, "n": n, "gpu_seconds": [first, *more],
            "gpu_gigabytes": torch.cuda.max_memory_allocated() / 1e9,
            "numpy_seconds": None, "largest_difference": None,
        }  # fmt: skip
        if each * n**2 <= patience:
            wanted, row["numpy_seconds"] = timed(partial(call, x), int)
            each = row["numpy_seconds"] / n**2
            row["largest_difference"] = float(
                np.abs(result.cpu().numpy() - wanted).max()
            )
        print(row, file=sys.stderr, flush=True)
        rows.append(row)
    return rows


def machine() -> dict[str, Any]:
    """What it ran on."""
    import torch

    properties = torch.cuda.get_device_properties(0)
    return {
        "gpu": properties.name,
        "gpu_memory_gigabytes": properties.total_memory / 1e9,
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "processor": processor(),
        "numpy": np.__version__,
        "numpy_threads": os.environ.get("OPENBLAS_NUM_THREADS", "all"),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }


def processor() -> str:
    """Name of the processor, as Linux gives it."""
    try:
        with open("/proc/cpuinfo") as file:
            names = [
                line.split(":")[1] for line in file if line.startswith("model name")
            ]
    except OSError:
        names = []
    return names[0].strip() if names else platform.processor()


def main() -> int:
    """Measure everything; the argument is the patience with numpy, in seconds."""
    patience = float(sys.argv[1]) if len(sys.argv) > 1 else PATIENCE
    if absent := missing():
        print(json.dumps({"missing": absent}))
        print(f"error: this needs {' and '.join(absent)}", file=sys.stderr)
        return 1
    rows = [row for name in CALLS for row in measure(name, patience)]
    print(json.dumps({"machine": machine(), "rows": rows}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
