"""The light simulation against the full one."""

import numpy as np
import pytest

from inference_math import simulate
from inference_math.simulate.cost import timed
from inference_math.simulate.engine import Request
from inference_math.simulate.schedulers import system_of
from inference_math.workload import Trace
from inference_math_planner.fleets.goodput import Tally, goodput, requests_of

COST = simulate.StepCost(t_w=0.01, T=1e-5, delta_h=1e-4, kv_read=1e-8)
SCHEDULERS = [simulate.Aggregated(8), simulate.Chunked(256, 8), simulate.Disaggregated(1, 2, 1e-7, 8)]
LIMITS = 0.1, 0.0125


def drawn(rate, count=400, stored=0.0):
    rng = np.random.default_rng(3)
    return requests_of(rng.exponential(1, count).tolist(), rng.random(count).tolist(), rate, 500, 60, stored)


def replayed(requests, scheduler):
    columns = ([getattr(one, name) for one in requests] for name in ("n_in", "n_out", "arrival", "cached"))
    n_in, n_out, arrival, cached = (np.array(column) for column in columns)
    trace = Trace(n_in, n_out, arrival=arrival, alpha=cached / n_in)
    return simulate.replay(trace, COST, scheduler=scheduler).requests


@pytest.mark.parametrize("scheduler", SCHEDULERS, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("rate", [2.0, 8.0, 30.0])
def test_the_share_is_that_of_the_full_simulation(scheduler, rate):
    requests = drawn(rate)
    rows = replayed(requests, scheduler).sort_values("arrival")
    good = (rows["ttft"] <= LIMITS[0]) & ~(rows["tpot"] > LIMITS[1])
    asked = system_of(scheduler, None), timed(COST), timed(COST), requests
    score, ttft, tpot = goodput(*asked, Tally(*LIMITS, 0.0, 0, 400, 0.9, False))
    assert score == pytest.approx(good.mean() / 0.9)
    assert ttft == pytest.approx(rows["ttft"].mean())
    assert tpot == pytest.approx(rows["tpot"].mean())  # of those that have gaps
    # Only some of them, the others there to keep the system busy.
    some = goodput(*asked, Tally(*LIMITS, 0.0, 50, 250, 0.5, False))[0]
    assert some == pytest.approx(good[50:250].mean() / 0.5)


@pytest.mark.parametrize("rate", [2.0, 8.0, 30.0])
@pytest.mark.parametrize("share", [0.5, 0.9, 1.0])
def test_who_is_hasty_knows_the_same_of_the_promise(rate, share):
    system, requests = system_of(SCHEDULERS[0], None), drawn(rate)
    tallies = [Tally(*LIMITS, 0.0, 0, 400, share, haste) for haste in (False, True)]
    whole, hasty = (goodput(system, timed(COST), timed(COST), requests, tally)[0] for tally in tallies)
    assert (hasty >= 1) == (whole >= 1)
    assert hasty == whole if whole >= 1 else hasty <= whole


@pytest.mark.parametrize("rate", [2.0, 8.0, 30.0])
def test_means_are_kept_by_the_smaller_of_limit_over_mean(rate):
    system, requests = system_of(SCHEDULERS[0], None), drawn(rate)
    for haste in (False, True):
        score, ttft, tpot = goodput(system, timed(COST), timed(COST), requests, Tally(*LIMITS, 0.0, 0, 400, 0.0, haste))
        assert score == pytest.approx(min(LIMITS[0] / ttft, LIMITS[1] / tpot))


def test_answers_are_geometric_and_stored_tokens_keep_their_mean():
    rng = np.random.default_rng(0)
    count = 20_000
    requests = requests_of(np.ones(count).tolist(), rng.random(count).tolist(), 2.0, 1000, 40, 333.3)
    lengths, cached = (np.array([getattr(one, name) for one in requests]) for name in ("n_out", "cached"))
    assert lengths.min() == 1
    assert lengths.mean() == pytest.approx(40, rel=0.02)
    assert lengths.std() == pytest.approx(np.sqrt(1 - 1 / 40) * 40, rel=0.03)
    assert cached.mean() == pytest.approx(333.3, abs=0.01)
    assert set(cached) == {333, 334}
    assert requests[-1].arrival == pytest.approx(count / 2)
    assert {one.n_out for one in requests_of([1.0] * 9, [0.5] * 9, 1.0, 10, 1.0, 0)} == {1}


def test_one_that_misses_counts_as_one():
    """A long prompt among twenty: it and nobody else is late."""
    requests = [Request(i, float(i), 100, 2, 0) for i in range(20)]
    requests[15] = Request(15, 15.0, 100_000, 2, 0)
    tally = Tally(*LIMITS, 0.0, 0, 20, 1.0, False)
    score, *_ = goodput(system_of(SCHEDULERS[0], None), timed(COST), timed(COST), requests, tally)
    assert score == pytest.approx(0.95)
