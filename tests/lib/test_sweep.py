"""Sweeps: one list of results whatever runs the tasks."""

import os
import signal
import threading
from functools import partial

import numpy as np
import pytest
from distributed import Client, LocalCluster
from joblib import Memory, parallel_config
from joblib.externals.loky.process_executor import TerminatedWorkerError
from waits import LIMIT

from lib import attention, gram
from lib.gram import layers
from lib.sweep import sweep

SHAPES = [np.ones((3, n)) for n in (2, 5, 3, 4, 7, 1, 6, 2)]
SCORES = partial(attention.random_scores, key_width=4)


def seeds(seed=7):
    return np.random.default_rng(seed)


def one_by_one(task, values, seed=7):
    """What a sweep computes, by the definition."""
    rngs = seeds(seed).spawn(len(values))
    return [task(v, rng=rng) for v, rng in zip(values, rngs, strict=True)]


def assert_identical(one, other):
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        assert a.dtype == b.dtype and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("n_jobs", [-1, 1, 2, 3])
@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
def test_results_do_not_depend_on_the_backend(backend, n_jobs):
    with parallel_config(backend):
        results = sweep(SCORES, SHAPES, rng=seeds(), n_jobs=n_jobs)
    assert_identical(results, one_by_one(SCORES, SHAPES))


def test_tasks_have_seeds_of_their_own():
    first, second = sweep(SCORES, [SHAPES[0]] * 2, rng=seeds())
    assert (first != second).all()


def test_order_is_that_of_the_values_and_not_of_finishing():
    done = [threading.Event() for _ in range(4)]

    def task(k):  # each waits for the next one
        assert k == 3 or done[k + 1].wait(LIMIT)
        done[k].set()
        return k

    with parallel_config("threading"):
        assert sweep(task, range(4), n_jobs=4) == [0, 1, 2, 3]


def test_the_default_pool_takes_functions_and_values_of_a_notebook():
    width, log = 16, []

    def task(layer, rng):
        log.append(os.getpid())  # of the copy in the other process
        run = gram.simulate(np.eye(2), layer(width), 8, paths=2, rng=rng)
        return run.states[-1]

    values = [lambda n: layers.LinearLayer(n), layers.RMSNorm]
    assert_identical(
        sweep(task, values, rng=seeds(), n_jobs=2), one_by_one(task, values)
    )
    assert set(log) == {os.getpid()}


def test_two_workers_of_dask_give_the_same_though_one_is_killed(tmp_path):
    killed = tmp_path / "killed"

    def fatal(x, rng):
        if len(x[0]) == 3 and not killed.exists():
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return attention.random_scores(x, key_width=4, rng=rng)

    with (
        LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster),
        parallel_config("dask"),
    ):
        whole = sweep(SCORES, SHAPES, rng=seeds())
        kept = sweep(fatal, SHAPES, rng=seeds())
    assert killed.exists()
    assert_identical(whole, one_by_one(SCORES, SHAPES))
    assert_identical(kept, whole)


def leave(x):
    os._exit(x)


def test_a_worker_that_dies_is_an_error_and_no_hang():
    with pytest.raises(TerminatedWorkerError):
        sweep(leave, [1, 2, 3], n_jobs=2)


def test_what_a_task_raises_comes_through():
    with pytest.raises(ZeroDivisionError):
        sweep(lambda x: 1 / x, [2, 0, 4], n_jobs=2)


def logged_scores(x, log, rng):
    with open(log, "a") as file:
        file.write(f"{x.shape[1]}\n")
    return attention.random_scores(x, 4, rng=rng)


def test_a_stopped_sweep_goes_on_from_the_folder_of_a_memory(tmp_path):
    log, memory = tmp_path / "log", Memory(tmp_path / "results", verbose=0)
    task = partial(memory.cache(logged_scores, ignore=["log"]), log=log)
    # The first five of the eight spawned generators are those of five values.
    sweep(task, SHAPES[:5], rng=seeds(), n_jobs=2)
    results = sweep(task, SHAPES, rng=seeds(), n_jobs=2)
    assert sorted(log.read_text().split()) == sorted(str(x.shape[1]) for x in SHAPES)
    assert_identical(results, one_by_one(SCORES, SHAPES))
    sweep(task, SHAPES[:1], rng=seeds(8), n_jobs=2)  # another seed is another task
    assert len(log.read_text().split()) == len(SHAPES) + 1


def test_nothing_is_printed(capfd):
    assert sweep(abs, [-1, 2]) == [1, 2]
    assert capfd.readouterr() == ("", "")


def test_no_values_give_no_results():
    assert sweep(abs, []) == []


def test_a_generator_that_cannot_spawn_is_named():
    legacy = np.random.Generator(np.random.RandomState(0)._bit_generator)
    with pytest.raises(ValueError, match="rng cannot spawn"):
        sweep(SCORES, SHAPES, rng=legacy)


def test_workers_are_minus_one_or_some():
    with pytest.raises(ValueError, match="n_jobs must be an integer from -1"):
        sweep(abs, [1], n_jobs=-2)
    with pytest.raises(ValueError, match="n_jobs == 0"):
        sweep(abs, [1], n_jobs=0)
