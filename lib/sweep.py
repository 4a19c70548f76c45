"""One task for many values: on the cores of this machine, or on a cluster.

The random numbers of a task belong to its place in the list of values and not to the
worker that runs it. So the results are the same, bit by bit, for every backend of
joblib and every number of workers. Another backend is chosen by
``joblib.parallel_config``, as ``parallel_config("dask")`` for a cluster, and a task
that is wrapped by ``joblib.Memory(folder).cache`` keeps its results in that folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from lib.core.checks import require_count, require_generator

Value = TypeVar("Value")
Result = TypeVar("Result")


def sweep(
    task: Callable[..., Result],
    values: Iterable[Value],
    *,
    rng: np.random.Generator | None = None,
    n_jobs: int = -1,
) -> list[Result]:
    r"""Results of ``task(value)`` for each value, in the order of the values.

    With a generator, of ``task(value, rng=...)``: task k draws from the k-th generator
    that ``rng`` spawns, whose numbers are independent of the others'.

    Tasks should take a second or more each: a pool needs about a second to start, and
    the arguments and results of a task are copied from process to process.

    Parameters
    ----------
    task : callable
        A function without side effects; it may be defined in a notebook.
    values : iterable
        One value for each task.
    rng : Generator, optional
        Where the seeds of the tasks come from.
    n_jobs : int
        Number of workers; −1, the default, is one for each core, of the machine or of
        the cluster.

    Returns
    -------
    list
        What the task gave for each value, ``nan`` and ``inf`` included.

    Raises
    ------
    ValueError
        For a task that cannot be called, values that are no list, an rng that cannot
        spawn, or a number of workers that is neither −1 nor at least 1. What a task
        raises comes through, and a worker that died raises joblib's
        ``TerminatedWorkerError``.
    """
    from joblib import Parallel, delayed

    if not callable(task):
        raise ValueError(f"task must be a function of a value, got {task!r}")
    require_count("n_jobs", n_jobs, least=-1)  # joblib refuses 0
    try:
        listed = list(values)
    except TypeError as error:
        raise ValueError(f"values must be a list, got {values!r}") from error
    options = [{} for _ in listed] if rng is None else _spawned(rng, len(listed))
    calls = (
        delayed(task)(value, **more)
        for value, more in zip(listed, options, strict=True)
    )
    return list(Parallel(n_jobs=n_jobs)(calls))


def _spawned(rng: np.random.Generator, count: int) -> list[dict[str, Any]]:
    try:
        children = require_generator("rng", rng).spawn(count)
    except TypeError as error:
        raise ValueError(
            f"rng cannot spawn others; take default_rng: {error}"
        ) from error
    return [{"rng": child} for child in children]
