"""The light simulation against the full one."""

from __future__ import annotations

import numpy as np
import pytest

from inference_math import simulate
from inference_math.simulate.engine import Request
from inference_math.simulate.goodput import goodput, requests_of
from inference_math.simulate.schedulers import system_of
from inference_math.workload import Trace

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
    expected = min(good[:200].mean(), good[200:].mean())
    system = system_of(scheduler, None)
    assert goodput(system, COST, requests, *LIMITS, 0, 400, 0.0) == pytest.approx(expected)
    # Only some of them, the others there to keep the system busy.
    part = min(good[50:150].mean(), good[150:250].mean())
    assert goodput(system, COST, requests, *LIMITS, 50, 250, 0.0) == pytest.approx(part)


@pytest.mark.parametrize("rate", [2.0, 8.0, 30.0])
def test_whoever_asks_for_enough_gets_the_share_or_less_than_that(rate):
    system, requests = system_of(SCHEDULERS[0], None), drawn(rate)
    whole = goodput(system, COST, requests, *LIMITS, 0, 400, 0.0)
    for enough in (0.5, 0.9, 1.0):
        found = goodput(system, COST, requests, *LIMITS, 0, 400, enough)
        assert (found >= enough) == (whole >= enough)
        assert found == whole if whole >= enough else found <= whole


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


def test_a_half_that_misses_is_seen():
    """A long prompt in the second half: the share is that half's."""
    requests = [Request(i, float(i), 100, 2, 0) for i in range(20)]
    requests[15] = Request(15, 15.0, 100_000, 2, 0)
    assert goodput(system_of(SCHEDULERS[0], None), COST, requests, *LIMITS, 0, 20, 0.0) == pytest.approx(0.9)


def test_few_requests_have_halves_too():
    """The first of two misses: its half has none in time; the larger half of three may miss as much as was asked."""

    def late(count, which):
        requests = [Request(i, float(i), 100, 2, 0) for i in range(count)]
        requests[which] = Request(which, float(which), 100_000, 2, 0)
        return requests

    system = system_of(SCHEDULERS[0], None)
    assert goodput(system, COST, late(2, 0), *LIMITS, 0, 2, 0.0) == 0
    assert goodput(system, COST, late(3, 2), *LIMITS, 0, 3, 0.5) == 0.5
