"""Kernels beside ``lib``: the same inputs, in JavaScript and in Python."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tools.command import PipelineError
from tools.kernels.build import drawn, flat
from tools.kernels.catalog import Kernel
from tools.serve import served

RUN = Path(__file__).with_name("run.mjs")
IN_PAGE = """async ([source, jobs, base]) => {
  const module = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  return (await import(module)).answers(jobs, base);
}"""
SIZES = (1, 2, 3, 17, 100, 400)  # none of them was recorded
# Jobs, each a file and inputs, to what the kernels of a built site answer.
Engine = Callable[[Path, list[dict[str, Any]]], list[dict[str, Any]]]


class Row(NamedTuple):
    """A kernel at one size, in one engine."""

    kernel: str
    size: int
    ok: bool
    error: float  # the largest one, relative to the largest entry of its output


def in_node(folder: Path, jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What node answers."""
    node = shutil.which("node")
    if node is None:
        raise PipelineError("node is not installed")
    base = f"{folder.resolve().as_uri()}/"
    found = subprocess.run(
        [node, RUN], input=json.dumps([jobs, base]), capture_output=True, text=True
    )
    if found.returncode:
        raise PipelineError(f"node could not run the kernels: {found.stderr}")
    return json.loads(found.stdout)


def in_browser(browser: Any) -> Engine:
    """What a browser of playwright answers."""

    def engine(folder: Path, jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        with served(folder) as address:
            page = browser.new_page()
            page.goto(address)
            found = page.evaluate(IN_PAGE, [RUN.read_text(), jobs, address])
            page.close()
        return found

    return engine


def rows(
    engine: Engine, folder: Path, kernels: Iterable[Kernel], sizes: Iterable[int] = SIZES
) -> list[Row]:
    """Errors of kernels of a built site, at each size, in an engine."""
    pairs = [(kernel, size) for kernel in kernels for size in sizes]
    inputs = [at_size(kernel, size) for kernel, size in pairs]
    jobs = [
        job(kernel, *each) for (kernel, _), each in zip(pairs, inputs, strict=True)
    ]
    found = engine(folder, jobs)
    return [
        Row(kernel.name, size, each["ok"], error(each, kernel.call(**values)))
        for (kernel, size), (_, values), each in zip(pairs, inputs, found, strict=True)
    ]


def job(kernel: Kernel, sizes: Mapping[str, int], values: Any) -> dict[str, Any]:
    """What an engine is asked; JSON has texts for what is not finite."""
    texts = {np.inf: "Infinity", -np.inf: "-Infinity"}

    def spoken(value: Any) -> Any:
        if isinstance(value, list):
            return [spoken(each) for each in value]
        return value if np.isfinite(value) else texts.get(value, "NaN")

    inputs = {name: spoken(value) for name, value in flat(values).items()}
    return {"file": kernel.file, "inputs": {**sizes, **inputs}}


def at_size(kernel: Kernel, size: int) -> tuple[dict[str, int], dict[str, Any]]:
    """Free sizes that differ from each other where there are several, and inputs."""
    sizes = {letter: size + k for k, letter in enumerate(kernel.letters)}
    return sizes, drawn(kernel, sizes, seed=1000 + size)


def error(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> float:
    """Largest error of any output, relative to the largest entry of that output."""
    worst = 0.0
    for name, value in wanted.items():
        one = np.array(found[name], np.float64).ravel()
        other = np.asarray(value, np.float64).ravel()
        if one.shape != other.shape:
            return np.inf
        if np.array_equal(one, other):
            continue
        size = np.abs(other).max()
        off = np.abs(one - other).max() / (size if size > 0 else 1)
        worst = max(worst, np.inf if np.isnan(off) else float(off))
    return worst
