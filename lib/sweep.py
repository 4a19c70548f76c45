"""One task for many values: on the cores of this machine, or on a cluster.

The random numbers of a task belong to its place in the list of values and not to the
worker that runs it. So the results are the same, bit by bit, for every executor and
every number of workers.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, as_completed
from contextlib import contextmanager, nullcontext
from functools import partial
from os import PathLike
from typing import Any, TypeVar

import numpy as np
from tqdm import tqdm

from lib._checks import require_flag, require_generator
from lib._sweep.store import Store, task_key

Value = TypeVar("Value")
Result = TypeVar("Result")


class SweepFailed(RuntimeError):
    """A task or its executor failed; the message says which, and what to do.

    What was finished is ``.results``, by place in the list of values.
    """

    results: dict[int, Any]


def sweep(
    task: Callable[..., Result],
    values: Iterable[Value],
    *,
    rng: np.random.Generator | None = None,
    executor: Executor | None = None,
    store: str | PathLike[str] | None = None,
    progress: bool | None = None,
) -> list[Result]:
    r"""Results of ``task(value)`` for each value, in the order of the values.

    With a generator, of ``task(value, rng=...)``: task k draws from the k-th generator
    that ``rng`` spawns, whose numbers are independent of the others'.

    Tasks should take a second or more each: a pool needs about a second to start, and
    the arguments and results of a task are copied from process to process.

    Parameters
    ----------
    task : callable
        A function without side effects. For the default executor it may be defined in
        a notebook.
    values : iterable
        One value for each task.
    rng : Generator, optional
        Where the seeds of the tasks come from.
    executor : concurrent.futures.Executor, optional
        Who runs the tasks: anything with ``submit(task, value)``, as a pool of
        processes or threads, or ``Client.get_executor()`` of dask. It is left open. By
        default a pool of processes, one for each core, which ends with the sweep.
    store : path, optional
        File to keep results in, one line for each as soon as it is there. A sweep that
        was stopped goes on from it. A line that was half written is done again. The
        results are pickles: only use files that you trust. A changed task of the same
        name is not noticed.
    progress : bool, optional
        Whether to show a bar on the standard error stream; by default only where that
        is a terminal, so that no stored output has one.

    Returns
    -------
    list
        What the task gave for each value, ``nan`` and ``inf`` included.

    Raises
    ------
    ValueError
        For a task that cannot be called, an rng that cannot spawn, an executor that
        takes no tasks, or a store of another sweep.
    SweepFailed
        When a task or a worker fails. Tasks that have not begun are then canceled; the
        results of those that have are kept.
    """
    if not callable(task):
        raise ValueError(f"task must be a function of a value, got {task!r}")
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise ValueError(f"executor must have a method submit, got {executor!r}")
    hidden = None if progress is None else not require_flag("progress", progress)
    values = _listed(values)
    rngs = [None] * len(values) if rng is None else _spawned(rng, len(values))
    kept = None
    if store is not None:
        kept = Store(store, [*map(partial(task_key, task), values, rngs)])
    results: dict[int, Result] = {} if kept is None else dict(kept.found)
    calls: dict[int, Callable[[], Result]] = {
        k: partial(task, value) if rng is None else partial(task, value, rng=rngs[k])
        for k, value in enumerate(values)
        if k not in results
    }
    failures: list[tuple[int, Exception]] = []
    with _processes(len(calls)) if executor is None else nullcontext(executor) as pool:
        outcomes = _outcomes(calls, pool)
        for k, future in tqdm(outcomes, total=len(calls), disable=hidden):
            try:
                results[k] = future.result()
                if kept is not None:
                    kept.add(k, results[k])
            except Exception as error:
                failures.append((k, error))
    if failures:
        k, first = failures[0]
        failed = SweepFailed(
            f"task {k} of {len(values)}, values[{k}] = {reprlib.repr(values[k])}:"
            f" {type(first).__name__}: {first}. {_advice(first)}{len(results)} results"
            f" are finished, and kept in {'.results' if kept is None else store}."
        )
        failed.results = results
        raise failed from first
    return [results[k] for k in range(len(values))]


def _listed(values: Iterable[Value]) -> list[Value]:
    try:
        return list(values)
    except TypeError as error:
        raise ValueError(f"values must be a list, got {values!r}") from error


def _spawned(rng: np.random.Generator, count: int) -> list[np.random.Generator]:
    try:
        return require_generator("rng", rng).spawn(count)
    except TypeError as error:
        raise ValueError(
            f"rng cannot spawn others; take default_rng: {error}"
        ) from error


@contextmanager
def _processes(count: int) -> Iterator[Executor]:
    """A process for each core, but no more than tasks."""
    # Beside those of the standard library these take the functions of a notebook, and
    # start clean: a fork of a kernel with threads can hang.
    from loky import ProcessPoolExecutor, cpu_count

    pool = ProcessPoolExecutor(max(1, min(count, cpu_count())))
    try:
        yield pool
    except BaseException:  # interrupted: nobody waits for what still runs
        pool.shutdown(kill_workers=True)
        raise
    pool.shutdown()


def _outcomes(
    calls: dict[int, Callable[[], Result]], executor: Executor
) -> Iterator[tuple[int, Future[Result]]]:
    """Outcomes of the calls as they end; after a failure no more are begun."""
    places: dict[Future[Result], int] = {}
    try:
        for k, call in calls.items():
            future = _submitted(executor, call)
            places[future] = k
            if future.done() and future.exception():
                break
        for future in as_completed(places):
            if not future.cancelled():
                if future.exception():
                    _cancel(places)
                yield places[future], future
    finally:
        _cancel(places)


def _submitted(executor: Executor, call: Callable[[], Result]) -> Future[Result]:
    try:
        future = executor.submit(call)
    except Exception as error:  # shut down, or broken by an earlier task
        future = Future()
        future.set_exception(error)
    if not isinstance(future, Future):
        raise ValueError(
            "executor must submit as those of concurrent.futures do (of a dask client,"
            f" client.get_executor() does), but gives {future!r}"
        )
    return future


def _cancel(futures: Iterable[Future[Any]]) -> None:
    for future in futures:
        future.cancel()


def _advice(error: Exception) -> str:
    if isinstance(error, BrokenExecutor):
        return "A worker died, as it does when memory runs out; try fewer workers. "
    if "pickle" in f"{type(error).__name__} {error}".lower():
        return (
            "Functions and results travel between processes by pickle; the default"
            " executor takes the functions of a notebook, others those of modules. "
        )
    return ""
