"""Run the tests on mutants, in copies of the book, and keep what came out.

The working tree is only read. An outcome is kept as soon as it is there, and counts as
long as what it depends on is the same: that a test fails, on ``lib`` and on that test
with what its file shares; that none does, on all tests. A later call goes on.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from threading import Timer
from typing import Any

from tools.command import PipelineError, replace
from tools.digests import sha
from tools.mutants.sites import Mutant
from tools.mutants.tests import (
    Candidate,
    Traced,
    library,
    made_of,
    test_files,
    traced_from,
)

FOLDER = Path("_build/mutants")
COPIED = ("lib", "tests", "tools", "conftest.py", "pyproject.toml")
PYTEST = ["-m", "pytest", "-q", "-p", "tools.mutants.plugin"]
# How tests notice a mutant.
FAILS, HANGS, CRASHES, BREAKS = "fails", "hangs", "crashes", "stops the collection"

Outcome = dict[str, Any]


class Crew:
    """Some jobs at once, and the processes that run for them."""

    def __init__(self, jobs: int):
        self.jobs = jobs
        self.running: set[int] = set()
        self.stopped = False

    def each(
        self, work: Callable[[Any], Any], things: Iterable[Any], what: str
    ) -> Iterator[tuple[Any, Any]]:
        """Each thing with what came of it; an interruption ends all processes."""
        from tqdm import tqdm

        with ThreadPoolExecutor(self.jobs) as pool:
            tasks = {pool.submit(self._unless_stopped, work, t): t for t in things}
            try:
                for task in tqdm(as_completed(tasks), total=len(tasks), desc=what):
                    yield tasks[task], task.result()
            finally:
                self.stopped = len(tasks) > sum(task.done() for task in tasks)
                for task in tasks:
                    task.cancel()
                for process in [*self.running]:
                    kill(process)

    def _unless_stopped(self, work: Callable[[Any], Any], thing: Any) -> Any:
        return None if self.stopped else work(thing)


class Bench(Crew):
    """Copies of the book, one a job."""

    def __init__(self, root: Path, jobs: int):
        super().__init__(jobs)
        self.root = root
        self.free: SimpleQueue[Path] = SimpleQueue()
        for old in (root / FOLDER).glob("copy-*"):
            shutil.rmtree(old, ignore_errors=True)
        # A test that outlived a command that was killed writes nowhere in these.
        for number in range(jobs):
            copy = (root / FOLDER / f"copy-{os.getpid()}-{number + 1}").absolute()
            copy.mkdir(parents=True)
            for name in COPIED:
                _copy(root / name, copy / name)
            self.free.put(copy)

    @contextmanager
    def copy(self) -> Iterator[Path]:
        """A copy that no other job has."""
        copy = self.free.get()
        try:
            yield copy
        finally:
            self.free.put(copy)

    def pytest(
        self, copy: Path, words: list[str], seconds: float | None = None
    ) -> tuple[int, float, str]:
        """Run pytest in a copy: its status, seconds of the processor, what it said.

        After so many ``seconds`` by the clock it is killed, if it does not end itself.
        """
        environment = os.environ | {
            "PYTHONPATH": str(copy), "PYTHONHASHSEED": "0",
            "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # most of its start
        }  # fmt: skip
        # What is compiled is kept in the copy; each mutant has a time of its own.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        command = [sys.executable, *PYTEST, *words]
        said = copy / "said.txt"
        with said.open("wb") as output:
            process = subprocess.Popen(
                command, cwd=copy, env=environment, stdin=subprocess.DEVNULL,
                stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
            self.running.add(process.pid)
            watch = Timer(seconds or 0, kill, [process.pid])
            if self.stopped:
                kill(process.pid)
            if seconds:
                watch.start()
            try:
                _, status, used = os.wait4(process.pid, 0)
            finally:
                watch.cancel()
                self.running.discard(process.pid)
            process.returncode = os.waitstatus_to_exitcode(status)
            kill(process.pid)  # what it may have left behind
        seconds_used = used.ru_utime + used.ru_stime
        return process.returncode, seconds_used, said.read_text("utf-8", "replace")


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        ignored = shutil.ignore_patterns("__pycache__", "*.part")
        shutil.copytree(source, target, ignore=ignored)
    else:
        shutil.copy2(source, target)


def kill(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return


# -- Which tests execute which line ------------------------------------------------


def traced(bench: Bench) -> Traced:
    """The lines that every test executes; of files that changed, traced anew."""
    root = bench.root
    folder = root / FOLDER / "lines"
    folder.mkdir(exist_ok=True)
    wanted = {
        path: folder / f"{path.stem}-{traced_from(path, root)}.json"
        for path in test_files(root)
    }
    for old in {*folder.iterdir()} - {*wanted.values()}:
        old.unlink()

    def trace(path: Path) -> None:
        with bench.copy() as copy:
            target = copy / "lines.json"
            words = ["-x", "--lines-to", str(target), str(path.relative_to(root))]
            status, _, said = bench.pytest(copy, words)
            if status not in (0, 5) and not bench.stopped:
                raise PipelineError(
                    f"{path.name} does not pass before anything is changed:\n{said}"
                )
            if status == 0:
                os.replace(target, wanted[path])
            else:
                replace(wanted[path], '{"import": {}, "tests": {}}')

    missing = [path for path, lines in wanted.items() if not lines.exists()]
    for _ in bench.each(trace, missing, "lines"):
        pass
    return Traced(wanted.values(), root)


# -- One mutant --------------------------------------------------------------------


def judge(mutant: Mutant, tests: list[Candidate], bench: Bench, number: int) -> Outcome:
    """Tell whether a test notices a mutant: the first that does ends the run."""
    if not tests:
        return {"how": None, "test": None, "seconds": 0.0}
    with bench.copy() as copy:
        path, asked = copy / mutant.file, copy / "asked.json"
        current = copy / "current.txt"
        current.unlink(missing_ok=True)
        limits = [[test.name, test.limit()] for test in tests]
        asked.write_text(json.dumps({"tests": limits, "said": str(current)}), "utf-8")
        source, times = path.read_bytes(), path.stat()
        names = list(dict.fromkeys(test.file for test in tests))
        patience = 600 + 20 * sum(test.limit() for test in tests)
        try:
            path.write_bytes(mutant.applied(source))
            # Python compiles a file again when its time differs: here each has its own.
            os.utime(path, (number, number))
            status, seconds, said = bench.pytest(
                copy, ["-x", "--judge", str(asked), *names], patience
            )
        finally:
            path.write_bytes(source)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        test = current.read_text("utf-8") if current.exists() else None
    how = _how(status, test)
    if how is None and status not in (0, 5) and not bench.stopped:
        raise PipelineError(f"pytest ended with status {status}:\n{said}")
    return {"how": how, "test": test if how else None, "seconds": round(seconds, 1)}


def _how(status: int, test: str | None) -> str | None:
    """Way in which the last test that began noticed a mutant, from pytest's status."""
    if status < 0:
        return HANGS if -status in (signal.SIGXCPU, signal.SIGKILL) else CRASHES
    if status == 1 and test:
        return FAILS
    return BREAKS if status in (1, 2, 4) and not test else None


# -- All of them -------------------------------------------------------------------


class Journal:
    """Outcomes by mutant, a line each; the last line may have been cut."""

    def __init__(self, root: Path, most: float):
        self.path = root / FOLDER / "journal.jsonl"
        self.library = library(root)
        self.files = {
            path.relative_to(root).as_posix(): path.read_bytes()
            for path in test_files(root)
        }
        self.tests = sha(repr(sorted(self.files.items())).encode())
        self.most = most

    def depends_on(self, outcome: Outcome) -> list[Any]:
        """Digest of all that an outcome holds for."""
        if test := outcome["test"]:
            file = self.files.get(test.partition("::")[0])
            return [self.library, file and made_of(file, test)]
        return [self.library, *([] if outcome["how"] else [self.tests, self.most])]

    def kept(self) -> dict[str, Outcome]:
        outcomes: dict[str, Outcome] = {}
        exists = self.path.exists()
        for line in self.path.read_text("utf-8").splitlines() if exists else []:
            try:
                key, outcome, made_from = json.loads(line)
            except ValueError:
                continue
            if made_from == self.depends_on(outcome):
                outcomes[key] = outcome
        return outcomes

    def add(self, mutant: Mutant, outcome: Outcome) -> None:
        row = json.dumps([mutant.key, outcome, self.depends_on(outcome)])
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"\n{row}\n")  # a line that was cut ends here


def run(
    mutants: list[Mutant], root: Path, jobs: int, most: float
) -> tuple[dict[str, Outcome], Traced]:
    """The outcome of each mutant; at most about ``most`` seconds of tests for one."""
    journal, bench = Journal(root, most), Bench(root, jobs)
    tests, kept = traced(bench), journal.kept()
    todo = {m: n for n, m in enumerate(mutants, 1) if m.key not in kept}
    if len(todo) < len(mutants):
        print(f"mutants: {len(mutants) - len(todo)} of {len(mutants)} were kept")

    def work(mutant: Mutant) -> Outcome:
        able = tests.noticing(mutant)
        chosen = within(able, most)
        outcome = judge(mutant, chosen, bench, todo[mutant])
        return outcome | {"tests": len(able), "not_run": len(able) - len(chosen)}

    for mutant, outcome in bench.each(work, todo, "mutants"):
        journal.add(mutant, outcome)
        kept[mutant.key] = outcome
    return {mutant.key: kept[mutant.key] for mutant in mutants}, tests


def within(tests: list[Candidate], most: float) -> list[Candidate]:
    """As many tests as take some seconds together, in their order; at least one."""
    total = 0.0
    chosen: list[Candidate] = []
    for test in tests:
        if not chosen or total + test.seconds <= most:
            chosen.append(test)
            total += test.seconds
    return chosen
