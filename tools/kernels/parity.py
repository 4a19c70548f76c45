"""Kernels beside ``lib``: the same inputs, in JavaScript and in Python."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from gzip import compress
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any, NamedTuple

import numpy as np

from tools.browser import browser_path, launched
from tools.command import ROOT, PipelineError, replace, today
from tools.kernels.build import build, drawn, flat
from tools.kernels.catalog import KERNELS, Kernel
from tools.kernels.graph import Shape
from tools.serve import served

RECORD = Path("chapters/reference/parity.json")
RUN = Path(__file__).with_name("run.mjs")
IN_PAGE = """async ([source, jobs, base]) => {
  const module = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const { answers } = await import(module);
  return JSON.stringify(await answers(JSON.parse(jobs), base));
}"""
SIZES = (1, 2, 3, 17, 100, 400)  # none of them was recorded
MOST = 2_000_000  # numbers that a kernel is given; as text more would not fit an engine
OF_LIB: dict[tuple[str, int], Any] = {}  # the same for every engine, and takes longer
# Jobs, each a file and inputs, to what the kernels of a built site answer.
Engine = Callable[[Path, list[dict[str, Any]]], list[dict[str, Any]]]


class Row(NamedTuple):
    """A kernel at one size, in one engine."""

    kernel: str
    size: int
    ok: bool
    error: float  # the largest one, relative to the largest entry of its output


def in_node(folder: Path, jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Answers of node."""
    node = shutil.which("node")
    if node is None:
        raise PipelineError("node is not installed")
    base = f"{folder.resolve().as_uri()}/"
    answer = subprocess.run(
        [node, RUN], input=json.dumps([jobs, base]), capture_output=True, text=True
    )
    if answer.returncode:
        raise PipelineError(f"node could not run the kernels: {answer.stderr}")
    return json.loads(answer.stdout)


def in_page(
    visit: Callable[[str], Any], run: Callable[[str, list[Any]], Any]
) -> Engine:
    """Answers of a browser: ``visit`` an address, ``run`` a function with values."""

    def engine(folder: Path, jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        with served(folder) as address:
            visit(address)
            values = [RUN.read_text(), json.dumps(jobs), address]
            return json.loads(run(IN_PAGE, values))

    return engine


def in_browser(browser: Any) -> Engine:
    """Answers of a browser of playwright."""
    page = browser.new_page()
    return in_page(page.goto, page.evaluate)


def in_other(engine: Any) -> Engine:
    """Answers of Firefox or WebKit, driven by ``tools.engines``."""

    def run(function: str, values: list[Any]) -> Any:
        return engine.run(f"return await ({function})(values)", *values)

    return in_page(engine.goto, run)


def rows(
    engine: Engine,
    folder: Path,
    kernels: Iterable[Kernel],
    sizes: Iterable[int],
    known: dict[tuple[str, int], Any] | None = None,
) -> list[Row]:
    """Errors of kernels of a built site, at each size, in an engine.

    What ``lib`` says is taken from ``known`` where it is there, and kept there.
    """
    known = {} if known is None else known
    pairs = [(kernel, size) for kernel in kernels for size in sizes]
    inputs = [at_size(kernel, size) for kernel, size in pairs]
    jobs = [job(kernel, *each) for (kernel, _), each in zip(pairs, inputs, strict=True)]
    outputs = engine(folder, jobs)
    for (kernel, size), (_, values) in zip(pairs, inputs, strict=True):
        if (kernel.name, size) not in known:
            known[kernel.name, size] = kernel.call(**values)
    return [
        Row(kernel.name, size, each["ok"], error(each, known[kernel.name, size]))
        for (kernel, size), each in zip(pairs, outputs, strict=True)
    ]


def all_rows(engine: Engine, folder: Path) -> Iterator[Row]:
    """Errors of all kernels of a built site at all their sizes."""
    for each in KERNELS:
        yield from rows(engine, folder, [each], sizes_of(each), OF_LIB)


def sizes_of(kernel: Kernel) -> list[int]:
    """The sizes to compare at; three free ones together reach the limit early."""

    def count(shape: Shape, size: int) -> int:
        return prod(size if isinstance(each, str) else each for each in shape)

    shapes = kernel.inputs.values()
    return [n for n in SIZES if sum(count(shape, n) for shape in shapes) <= MOST]


def job(kernel: Kernel, sizes: Mapping[str, int], values: Any) -> dict[str, Any]:
    """Question to an engine; JSON has texts for what is not finite."""
    texts = {np.inf: "Infinity", -np.inf: "-Infinity"}

    def spoken(value: Any) -> Any:
        if isinstance(value, list):  # of up to a million numbers, nearly all finite
            finite = np.isfinite(value).all()
            return value if finite else [spoken(each) for each in value]
        return value if np.isfinite(value) else texts.get(value, "NaN")

    inputs = {name: spoken(value) for name, value in flat(values).items()}
    return {"file": kernel.file, "inputs": {**sizes, **inputs}}


def at_size(kernel: Kernel, size: int) -> tuple[dict[str, int], dict[str, Any]]:
    """Free sizes that differ from each other where there are several, and inputs."""
    sizes = {letter: size + k for k, letter in enumerate(kernel.letters)}
    return sizes, drawn(kernel, sizes, seed=1000 + size)


def error(given: Mapping[str, Any], wanted: Mapping[str, Any]) -> float:
    """Largest error of any output, relative to the largest entry of that output."""
    worst = 0.0
    for name, value in wanted.items():
        one = np.array(given[name], np.float64).ravel()
        other = np.asarray(value, np.float64).ravel()
        if one.shape != other.shape:
            return np.inf
        if np.array_equal(one, other):
            continue
        size = np.abs(other).max()
        off = np.abs(one - other).max() / (size if size > 0 else 1)
        worst = max(worst, np.inf if np.isnan(off) else float(off))
    return worst


def measure() -> dict[str, Any]:
    """Record errors and sizes of all kernels, and the speed of a step, by engine."""
    record = table()
    replace(ROOT / RECORD, json.dumps(record, indent=1, allow_nan=False) + "\n")
    return record


def table() -> dict[str, Any]:
    """Errors and sizes of all kernels, and the speed of a step, in each engine."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        build(folder)
        record: dict[str, Any] = {"date": today(), "sizes": SIZES}
        record |= {"kernels": {}, "engines": {}}
        for each in KERNELS:
            text = (folder / each.file).read_bytes()
            record["kernels"][each.name] = {
                "gzip": len(compress(text, mtime=0)),
                "largest": max(sizes_of(each)),
            }
        for engine_name, engine in engines():
            worst = dict.fromkeys(record["kernels"], 0.0)
            for row in all_rows(engine, folder):
                if not (row.ok and np.isfinite(row.error)):
                    raise PipelineError(f"{engine_name} is not as Python: {row}")
                worst[row.kernel] = max(worst[row.kernel], row.error)
            record["engines"][engine_name] = {
                "errors": worst,
                "milliseconds": speed(engine, folder),
            }
    return record


def engines() -> Iterator[tuple[str, Engine]]:
    """Node and three browsers, those that are installed, by name and version."""
    if node := shutil.which("node"):
        version = subprocess.run([node, "--version"], capture_output=True, text=True)
        yield f"node {version.stdout.strip()}", in_node
    if path := browser_path():
        with launched(path) as browser:
            yield f"Chromium {browser.version}", in_browser(browser)
    from tools import engines as others  # its socket is a package of the tests

    starts = (
        others.firefox,
        partial(others.webkit, port=free_port(), environment=dict(os.environ)),
    )
    for start in starts:
        with (
            TemporaryDirectory() as folder,
            suppress(others.Missing),
            start(Path(folder)) as other,
        ):
            yield other.name, in_other(other)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def speed(engine: Engine, folder: Path, rounds: int = 5) -> dict[int, dict[str, float]]:
    """Milliseconds of a step of the sphere in numpy and in an engine, in turn.

    The least of some rounds; of the processor, but in a browser by the clock.
    """
    kernel = next(each for each in KERNELS if each.name == "sphere_step")
    speeds = {}
    for n in (64, 256, 1000):
        sizes, values = {"n": n}, drawn(kernel, {"n": n}, seed=n)
        repeat = max(3, 500_000 // n**2)
        timed = {**job(kernel, sizes, values), "repeat": repeat}
        best = {"numpy": np.inf, "kernel": np.inf}
        for _ in range(rounds):
            start = process_time()
            for _ in range(repeat):
                kernel.call(**values)
            numpy = (process_time() - start) / repeat * 1e3
            script = engine(folder, [timed])[0]["milliseconds"]
            best = {
                "numpy": min(best["numpy"], numpy),
                "kernel": min(best["kernel"], script),
            }
        speeds[n] = best
    return speeds
