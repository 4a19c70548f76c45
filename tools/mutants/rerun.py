"""Run pieces of a page in a process of its own, perhaps with a mutant, and say all.

What is imported here is so before the mutant is there, and ``lib`` must not be.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from zlib import crc32

MEMORY = 8 << 30  # bytes of addresses: a mutant that asks for more meets MemoryError
#: Modules that a process has when it begins: nothing of the book's.
PRELOADED = [
    "coverage", "jupytext", "matplotlib.figure", "nbformat", "numpy", "scipy.integrate",
    "scipy.linalg", "scipy.optimize", "scipy.signal", "scipy.special", "scipy.stats",
]  # fmt: skip


@dataclass(frozen=True)
class Job:
    """Pieces to run, in the folder of their page.

    With ``watch`` each is followed by what it needs of the others, with ``lines`` the
    run by the lines of ``lib`` that it executed. ``mutant`` is a file of ``lib`` with
    the source that stands for its own; after ``seconds`` of the processor the run ends.
    """

    root: Path
    folder: Path
    pieces: tuple[str, ...]
    mutant: tuple[str, bytes] | None = None
    seconds: float | None = None
    watch: bool = False
    lines: bool = False


def work(connection: Connection, job: Job) -> None:
    """Send each verdict as it is given, and how the run ended."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # as the command ends it
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    if job.seconds:
        limit = int(time.process_time() + job.seconds) + 1
        _, most = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (limit, most))
    sys.path.insert(0, str(job.root))
    if job.mutant:
        sys.meta_path.insert(0, Mutated(job.root / job.mutant[0], job.mutant[1]))
    os.chdir(job.folder)
    with Path(os.devnull).open("w") as nowhere:
        with redirect_stdout(nowhere), redirect_stderr(nowhere):
            connection.send(("end", _ended(connection, job)))
        connection.close()


class Mutated(MetaPathFinder):
    """Finds one module of ``lib`` with another source than its file has."""

    def __init__(self, path: Path, source: bytes):
        self.path, self.source = path, source

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        parts = name.split(".")
        if parts[0] != "lib" or self.path.parts[-len(parts) :] != (
            *parts[:-1],
            f"{parts[-1]}.py",
        ):
            return None
        return spec_from_file_location(name, self.path, loader=_Loader(self, name))


class _Loader(SourceFileLoader):
    def __init__(self, mutated: Mutated, name: str):
        super().__init__(name, str(mutated.path))
        self.source = mutated.source

    def get_code(self, fullname: str) -> Any:
        return compile(self.source, self.path, "exec", dont_inherit=True)


def _ended(connection: Connection, job: Job) -> dict[str, Any]:
    """The end of a run: what was raised, seconds, needs and lines."""
    start, said = time.process_time(), {"raised": None}
    coverage = _started(job) if job.lines else None
    try:
        said |= _run(connection, job)
    except Exception as error:
        said["raised"] = f"{type(error).__name__}: {error}"[:300]
    if coverage:
        coverage.stop()
        said["lines"] = _lines(coverage, job.root)
    return said | {"seconds": round(time.process_time() - start, 3)}


def _run(connection: Connection, job: Job) -> dict[str, Any]:
    from joblib import parallel_config

    import lib
    from lib.claims import SEED_OFFSET
    from tools.verdicts import recorded

    if not Path(lib.__file__).is_relative_to(job.root):
        raise ImportError(f"lib is imported from elsewhere than {job.root}")
    os.environ.pop(SEED_OFFSET, None)
    namespace: Any = Watched() if job.watch else {}
    namespace["__name__"] = "__main__"
    steps: list[dict[str, Any]] = []

    def keep(verdict: Any) -> None:
        connection.send(("verdict", number, {
            "id": verdict.anchor, "claim": verdict.claim, "word": verdict.word,
            "passed": verdict.passed, "measured": verdict.measured,
            "numbers": verdict.numbers(),
        }))  # fmt: skip

    warnings.simplefilter("ignore")
    with parallel_config("sequential"), recorded(keep):
        for number, piece in enumerate(job.pieces):
            code, begun = compile(piece, "cell", "exec"), time.process_time()
            if job.watch:
                with namespace.step(number) as step:
                    exec(code, namespace)
                steps.append({"needs": sorted(step.needs)})
            else:
                exec(code, namespace)
                steps.append({})
            steps[-1]["seconds"] = round(time.process_time() - begun, 4)
    return {"steps": steps}


# -- What a piece needs ------------------------------------------------------------


@dataclass
class Step:
    """Pieces that one needs, and the names that it reads and binds."""

    needs: set[int] = field(default_factory=set)
    bound: set[str] = field(default_factory=set)
    read: set[str] = field(default_factory=set)


class Watched(dict[str, Any]):
    """A namespace that knows which piece bound, or last changed, each name."""

    def __init__(self) -> None:
        super().__init__()
        self.writers: dict[str, set[int]] = {}
        self.prints: dict[str, Any] = {}
        self.now = Step()

    def __getitem__(self, name: str) -> Any:
        value = super().__getitem__(name)
        if name not in self.now.bound and name not in self.now.read:
            self.now.read.add(name)
            self.now.needs |= self.writers.get(name, set())
        return value

    def __setitem__(self, name: str, value: Any) -> None:
        self.now.bound.add(name)
        super().__setitem__(name, value)

    def __delitem__(self, name: str) -> None:
        self.now.bound.add(name)
        super().__delitem__(name)

    @contextmanager
    def step(self, number: int) -> Iterator[Step]:
        """Watch one piece. What it changed in place, it needs and binds."""
        self.now = Step()
        yield self.now
        names = self.now.read | self.now.bound | {*self.prints}
        for name in [each for each in names if each in self]:
            value = super().__getitem__(name)
            old = self.prints.get(name)
            if not (name in self.now.read | self.now.bound or _draws(value)):
                continue
            new = self.prints[name] = _print(value)
            if name not in self.now.bound and new != old:
                self.now.needs |= self.writers.get(name, set())
                self.writers[name] = {*self.writers.get(name, ()), number}
        for name in self.now.bound:
            self.writers[name] = {number}


def _draws(value: Any) -> bool:
    """Say whether it changes when it is used, also by a function that has kept it."""
    from numpy.random import Generator

    return isinstance(value, Generator)


def _print(value: Any) -> Any:
    """A mark that a value loses when it is changed in place; None where none does."""
    import numpy as np

    if isinstance(value, np.random.Generator):
        return repr(value.bit_generator.state)
    if isinstance(value, np.ndarray) and value.dtype != object:
        return value.shape, crc32(value.flat[: 10**6].tobytes())
    if isinstance(value, list | set | tuple):
        return len(value), [_print(each) for each in [*value][:100]]
    if isinstance(value, dict):
        return len(value), [(k, _print(v)) for k, v in [*value.items()][:100]]
    return None


# -- Which lines run ---------------------------------------------------------------


def _started(job: Job) -> Any:
    from coverage import Coverage

    coverage = Coverage(
        data_file=None, config_file=False, source=[str(job.root / "lib")]
    )
    coverage.start()
    return coverage


def _lines(coverage: Any, root: Path) -> dict[str, list[int]]:
    data = coverage.get_data()
    return {
        Path(file).relative_to(root).as_posix(): sorted(data.lines(file))
        for file in data.measured_files()
    }
