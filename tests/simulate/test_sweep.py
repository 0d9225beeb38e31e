"""The same table on every executor."""

import multiprocessing
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster

from inference_math.simulate import StepCost, closed_loop, sweep
from inference_math.workload import Workload

USERS = Workload(100, 10, lengths="geometric")
COST = StepCost(t_w=0.02, T=1e-4)


def settings(count=6):
    # The first take longest, so that they finish last where several run at once.
    return [{"source": USERS, "cost": COST, "concurrency": 1 + i, "requests": 40 * (count - i)} for i in range(count)]


@pytest.fixture(scope="module")
def here():
    return sweep(closed_loop, settings(), seed=3)


@pytest.fixture(scope="module")
def dask():
    """A Dask cluster inside this process, without a dashboard and its port."""
    with (
        LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield client.get_executor()


def test_a_row_is_a_run_in_the_order_of_the_settings(here):
    assert here.concurrency.tolist() == [1, 2, 3, 4, 5, 6]
    assert here.requests.tolist() == [240, 200, 160, 120, 80, 40]
    assert {"ttft_mean", "tpot_p99", "gap_p50", "request_rate"} <= set(here.columns)
    assert here.request_rate.is_monotonic_increasing


@pytest.mark.parametrize("where", ["threads", "processes", "dask"])
def test_every_executor_finds_the_same(here, dask, where):
    spawn = multiprocessing.get_context("spawn")
    with ThreadPoolExecutor(2) as threads, ProcessPoolExecutor(2, mp_context=spawn) as processes:
        executor = {"threads": threads, "processes": processes, "dask": dask}[where]
        pd.testing.assert_frame_equal(sweep(closed_loop, settings(), seed=3, executor=executor), here)


def test_seeds_follow_from_the_seed_and_the_position_alone(here):
    fewer = sweep(closed_loop, settings()[:2], seed=3)
    pd.testing.assert_frame_equal(fewer, here.head(2))
    assert not sweep(closed_loop, settings(), seed=4).ttft_mean.equals(here.ttft_mean)
    twice = sweep(closed_loop, settings(1) * 2)
    assert twice.ttft_mean[0] != twice.ttft_mean[1]


ASKED = []  # by this process
LET_GO = threading.Event()
LET_GO.set()


def refuse_three(seed, n):
    ASKED.append(n)
    if n == 3:
        raise RuntimeError("three")
    if not LET_GO.wait(60):  # whoever waits for these instead of cancelling them shall fail, not hang
        LET_GO.set()
    return {"n": n}


def own(seed, size, name, extra):
    return {"seed": seed, "square": size * size}


def test_a_row_may_be_any_mapping_and_has_the_settings_that_are_numbers_or_names():
    assert sweep(own, []).empty
    frame = sweep(own, [{"size": np.float32(2.5), "name": "a", "extra": [1, 2]}])
    assert frame.drop(columns="seed").to_dict("list") == {"size": [2.5], "name": ["a"], "square": [6.25]}


@pytest.mark.parametrize("executor", [None, "threads", "dask"])
def test_what_a_simulation_raises_comes_through_and_the_rest_is_cancelled(executor, dask):
    """The first raises; those after it wait until the sweep is over, and no more than the waiting ones ever start."""
    ASKED.clear()
    LET_GO.clear()

    def run(where):
        with pytest.raises(RuntimeError, match="three"):
            sweep(refuse_three, [{"n": n} for n in range(3, 300)], executor=where)
        LET_GO.set()

    if executor == "threads":
        with ThreadPoolExecutor(1) as threads:
            run(threads)
    else:
        run(dask if executor == "dask" else None)
        assert dask.submit(len, "abc").result() == 3  # Dask has done what it still had to do before this
    assert 3 in ASKED
    assert len(ASKED) < 20  # Dask hands a worker a few tasks ahead


@pytest.mark.parametrize(("progress", "count", "shown"), [(True, 2, True), (False, 20, False), (None, 20, False)])
@pytest.mark.parametrize("executor", [None, ThreadPoolExecutor])
def test_progress_is_shown_when_asked_for(capsys, progress, count, shown, executor):
    """Unasked it is shown for many settings on a terminal, which this is not."""
    where = executor and executor(1)
    sweep(own, [{"size": 1, "name": "", "extra": None}] * count, executor=where, progress=progress)
    if where:
        where.shutdown()
    assert (f"{count}/{count}" in capsys.readouterr().err) == shown
