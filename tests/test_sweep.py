"""Sweeps: one list of results whatever runs the tasks, and nothing lost on the way."""

import os
import signal
import sys
import threading
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context

import numpy as np
import pytest
from distributed import Client, LocalCluster

from lib import attention, gram, layers
from lib.sweep import SweepFailed, sweep

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


def pools():
    yield "default", lambda: None
    for workers in (1, 2, 3):
        yield f"{workers} threads", partial(ThreadPoolExecutor, workers)
    for workers, method in ((1, "fork"), (2, "forkserver"), (2, "spawn")):
        context = get_context(method)
        pool = partial(ProcessPoolExecutor, workers, mp_context=context)
        yield f"{workers} by {method}", pool


@pytest.mark.parametrize("pool", [pytest.param(p, id=name) for name, p in pools()])
def test_results_do_not_depend_on_the_executor(pool):
    executor = pool()
    found = sweep(SCORES, SHAPES, rng=seeds(), executor=executor)
    assert_identical(found, one_by_one(SCORES, SHAPES))
    if executor is not None:
        executor.submit(int).result()  # it is left open
        executor.shutdown()


def test_tasks_have_seeds_of_their_own():
    first, second = sweep(SCORES, [SHAPES[0]] * 2, rng=seeds())
    assert (first != second).all()


def test_order_is_that_of_the_values_and_not_of_finishing():
    done = [threading.Event() for _ in range(4)]

    def task(k):  # each waits for the next one
        assert k == 3 or done[k + 1].wait(20)
        done[k].set()
        return k

    with ThreadPoolExecutor(4) as pool:
        assert sweep(task, range(4), executor=pool) == [0, 1, 2, 3]


def test_the_default_pool_takes_functions_and_values_of_a_notebook():
    width, log = 16, []

    def task(layer, rng):
        log.append(os.getpid())  # of the copy in the other process
        run = gram.simulate(np.eye(2), layer(width), 8, paths=2, rng=rng)
        return run.states[-1]

    values = [lambda n: layers.LinearLayer(n), layers.RMSNorm]
    assert_identical(sweep(task, values, rng=seeds()), one_by_one(task, values))
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
        Client(cluster) as client,
    ):
        whole = sweep(SCORES, SHAPES, rng=seeds(), executor=client.get_executor())
        kept = sweep(fatal, SHAPES, rng=seeds(), executor=client.get_executor())
        with pytest.raises(ValueError, match=r"client\.get_executor\(\)"):
            sweep(SCORES, SHAPES, rng=seeds(), executor=client)
    assert killed.exists()
    assert_identical(whole, one_by_one(SCORES, SHAPES))
    assert_identical(kept, whole)


def reciprocal(x):
    return 1 / x


def leave(x):
    os._exit(x)


def test_failure_names_the_task_keeps_results_and_begins_no_more():
    begun = []

    def task(x):
        begun.append(x)
        time.sleep(0.01)  # so that the failure is seen before the last one begins
        return 1 / x

    values = [2, 4, 0, *range(1, 200)]
    with ThreadPoolExecutor(1) as pool, pytest.raises(SweepFailed) as caught:
        sweep(task, values, executor=pool)
    message = r"task 2 of 202, values\[2\] = 0: ZeroDivisionError: .* \d+ results are"
    assert caught.match(message)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert len(begun) < len(values)
    kept = caught.value.results
    assert kept == {k: 1 / values[k] for k in kept} and {0, 1} <= kept.keys()


@pytest.mark.parametrize(
    "pool", [lambda: None, lambda: ProcessPoolExecutor(2)], ids=["default", "standard"]
)
def test_a_worker_that_dies_is_a_sentence(pool):
    with pytest.raises(SweepFailed, match="A worker died.*try fewer workers"):
        sweep(leave, [1, 2, 3], executor=pool())


def test_what_cannot_travel_is_a_sentence():
    with ProcessPoolExecutor(1) as pool, pytest.raises(SweepFailed, match="default ex"):
        sweep(lambda x: x, [1], executor=pool)


def test_an_executor_that_is_shut_down_is_a_sentence():
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    with pytest.raises(SweepFailed, match="task 0 of 2.*after shutdown"):
        sweep(reciprocal, [1, 2], executor=pool)


class Counting(Executor):
    """An executor that works at once, counts, and gives up after so many tasks."""

    def __init__(self, most=10**9):
        self.most, self.count = most, 0

    def submit(self, call):
        if self.count == self.most:
            raise RuntimeError("no more")
        self.count += 1
        future = Future()
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)
        return future


def test_a_stopped_sweep_goes_on_from_its_store(tmp_path):
    file = tmp_path / "results"
    with pytest.raises(SweepFailed, match="no more. 3 results .* kept in .*results"):
        sweep(SCORES, SHAPES, rng=seeds(), executor=Counting(3), store=file)
    rest = Counting()
    found = sweep(SCORES, SHAPES, rng=seeds(), executor=rest, store=file)
    assert_identical(found, one_by_one(SCORES, SHAPES))
    assert rest.count == len(SHAPES) - 3
    # Whole, it needs no executor; more values only need their own tasks.
    again = sweep(SCORES, SHAPES, rng=seeds(), executor=Counting(0), store=file)
    assert_identical(again, found)
    more = [*SHAPES, np.ones((3, 9))]
    longer = sweep(SCORES, more, rng=seeds(), executor=Counting(1), store=file)
    assert_identical(longer, one_by_one(SCORES, more))


def test_a_store_cut_anywhere_loses_one_task_at_most(tmp_path):
    values, file = [0.1, 0.2, 0.3], tmp_path / "results"
    sweep(reciprocal, values, executor=Counting(), store=file)
    whole = file.read_bytes()
    for length in range(len(whole)):
        file.write_bytes(whole[:length])
        pool = Counting()
        found = sweep(reciprocal, values, executor=pool, store=file)
        assert found == [1 / x for x in values]
        assert pool.count <= 3 - max(whole[:length].count(b"\n") - 1, 0)
        again = sweep(reciprocal, values, executor=Counting(0), store=file)
        assert again == found


def test_a_damaged_line_is_done_again(tmp_path):
    file = tmp_path / "results"
    sweep(reciprocal, [3.0, 7.0], executor=Counting(), store=file)
    lines = file.read_text().splitlines()
    lines[1] = lines[1][:-9] + ("A" if lines[1][-9] != "A" else "B") + lines[1][-8:]
    file.write_text("\n".join(lines))
    pool = Counting()
    assert sweep(reciprocal, [3.0, 7.0], executor=pool, store=file) == [1 / 3, 1 / 7]
    assert pool.count == 1


@pytest.mark.parametrize(
    ("task", "values", "seed"),
    [(np.zeros, [2, 3], 7), (np.ones, [2, 4], 7), (np.ones, [2], 7)],
)
def test_the_store_of_another_sweep_is_refused_and_kept(tmp_path, task, values, seed):
    file = tmp_path / "results"
    sweep(np.ones, [2, 3], executor=Counting(), store=file)
    before = file.read_bytes()
    with pytest.raises(ValueError, match="store=.*another task, other values"):
        sweep(task, values, executor=Counting(), store=file)
    assert file.read_bytes() == before


def test_the_store_of_another_seed_is_refused(tmp_path):
    file = tmp_path / "results"
    sweep(SCORES, SHAPES, rng=seeds(), executor=Counting(), store=file)
    with pytest.raises(ValueError, match="another seed"):
        sweep(SCORES, SHAPES, rng=seeds(8), executor=Counting(0), store=file)


@pytest.mark.parametrize("content", [b"my thesis\n", b"\xff\x00"])
def test_a_file_of_another_kind_is_left_alone(tmp_path, content):
    file = tmp_path / "thesis"
    file.write_bytes(content)
    with pytest.raises(ValueError, match="store=.*thesis.*cannot be used"):
        sweep(np.ones, [2], executor=Counting(0), store=file)
    assert file.read_bytes() == content


def test_a_store_needs_names():
    with pytest.raises(ValueError, match="store needs a task .* name of their own"):
        sweep(lambda x: x, [1], executor=Counting(0), store="results")


def interrupting(file, x):
    while x and len(file.read_text().splitlines()) < 2:
        time.sleep(0.01)
    if x == 1:
        os.kill(os.getpid(), signal.SIGINT)
    return x


@pytest.fixture
def heeded():
    """An interrupt is heeded, also where the tests run in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupted_sweep_keeps_what_it_has(tmp_path, heeded):
    file, values = tmp_path / "results", [*range(99)]
    task = partial(interrupting, file)
    with ThreadPoolExecutor(1) as pool, pytest.raises(KeyboardInterrupt):
        sweep(task, values, executor=pool, store=file)
    with pytest.raises(SweepFailed) as caught:  # what is left has no executor
        sweep(task, values, executor=Counting(0), store=file)
    assert 0 in caught.value.results and len(caught.value.results) < 99


@pytest.mark.parametrize("executor", [None, ThreadPoolExecutor(1)])
def test_no_bar_where_output_is_stored(capfd, executor):
    assert sweep(abs, [-1, 2], executor=executor) == [1, 2]
    assert capfd.readouterr() == ("", "")


def test_a_bar_in_a_terminal_or_where_it_is_asked_for(monkeypatch, capsys):
    pool = ThreadPoolExecutor(1)
    sweep(abs, [1, 2], executor=pool, progress=True)
    assert "2/2" in capsys.readouterr().err
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    sweep(abs, [1, 2], executor=pool)
    assert "2/2" in capsys.readouterr().err
    sweep(abs, [1, 2], executor=pool, progress=False)
    assert capsys.readouterr() == ("", "")


def test_no_values_give_no_results():
    assert sweep(reciprocal, []) == []


def test_a_generator_that_cannot_spawn_is_named():
    legacy = np.random.Generator(np.random.RandomState(0)._bit_generator)
    with pytest.raises(ValueError, match="rng cannot spawn"):
        sweep(SCORES, SHAPES, rng=legacy)
