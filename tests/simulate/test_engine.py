"""Steps in which nothing happens are skipped, and nobody can tell."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_math import theory
from inference_math.simulate import (
    OVERLAPS,
    Aggregated,
    Chunked,
    Disaggregated,
    Reuse,
    StepCost,
    closed_loop,
    open_loop,
)
from inference_math.simulate.engine import Request, Room, _steps_to
from inference_math.workload import Workload

COST = StepCost(t_w=0.02, T=4e-5, T_decode=9e-5, prompt=1e-3, pair=2e-9, delta_h=3e-5, kv_read=4e-8)
SCHEDULERS = [
    Aggregated(),
    Aggregated(max_batch=5, kv_capacity=6000),
    Chunked(256),
    Chunked(12, max_batch=9),
    Disaggregated(prefill_units=2, decode_units=3, transfer=1e-6, max_batch=4, kv_capacity=5000),
]


@pytest.mark.parametrize("overlap", OVERLAPS)
@pytest.mark.parametrize("scheduler", SCHEDULERS, ids=repr)
@pytest.mark.parametrize("how", [{"concurrency": 12}, {"rate": 4.0}], ids=["closed", "open"])
def test_skipping_steps_changes_nothing(overlap, scheduler, how):
    """A cost whose line is not known is asked for every step."""
    cost = replace(COST, overlap=overlap)
    users = Workload(1000, 30, alpha=0.3, lengths="geometric")
    simulate = closed_loop if "concurrency" in how else open_loop
    setting = {"requests": 150, "scheduler": scheduler, "reuse": Reuse(1e-5, blocking=False), "every_gap": True, **how}
    quick = simulate(users, cost, **setting)
    slow = simulate(users, lambda *step: cost(*step), **setting)
    np.testing.assert_allclose(quick.requests, slow.requests, rtol=1e-9)
    np.testing.assert_allclose(np.sort(quick.every_gap), np.sort(slow.every_gap), rtol=1e-9)
    assert quick.steps == slow.steps


@given(first=st.floats(1e-6, 10), rise=st.just(0.0) | st.floats(1e-20, 1), steps=st.integers(1, 10**5))
def test_time_is_turned_into_steps(first, rise, steps):
    """Between the ends of two steps it takes all of the second, however flat the rise."""
    rise = min(rise, first / 2)  # the context that a step reads is at least twice what it adds
    before, after = (k * first + rise * k * (k - 1) / 2 for k in (steps - 1, steps))
    assert _steps_to(before + 1e-3 * (after - before), first, rise) == steps
    assert _steps_to(before + 0.999 * (after - before), first, rise) == steps


class Flat:
    """A cost whose line is not that of its steps."""

    def __call__(self, decodes, context, prefills, tokens, pairs):
        return 0.02 + 1e-6 * context

    def line(self, decodes, context):
        return 0.02, 0.0, 0.0, inf


def test_a_line_that_is_not_the_cost_is_refused():
    words = r"cost\.line\(1, 101\) must agree with cost\(1, 101, …\), 0\.020101: \(0\.02, 0\.0, 0\.0, inf\)"
    with pytest.raises(ValueError, match=words):
        closed_loop(Workload(100, 10), Flat(), concurrency=1, requests=1)


NO_TIME = [0, 0.0, -1.0, float("nan"), float("inf"), None, "1"]


@pytest.mark.parametrize("scheduler", [Aggregated(), Chunked(64), Disaggregated()], ids=repr)
@pytest.mark.parametrize("part", ["prompts", "decodes", "line"])
@pytest.mark.parametrize("seconds", NO_TIME)
def test_a_step_that_takes_no_time_is_refused(scheduler, part, seconds):
    """Time would stand still, or go back; the message says in which step."""

    def cost(decodes, context, prefills, tokens, pairs):
        return seconds if (tokens > 0) == (part == "prompts") else 0.01

    if part == "line":
        cost.line = lambda decodes, context: (seconds, 0.0, 0.0, inf)
    with pytest.raises(ValueError, match=r"cost must be a finite number of seconds > 0, but cost\(.*\) is"):
        open_loop(Workload(100, 10), cost, rate=10.0, requests=5, scheduler=scheduler)


def test_a_growing_room_takes_tokens_as_they_come_and_gives_all_back():
    request = Request(1, 0.0, 100, 50, 0)
    for grows, first in ((False, 150), (True, 101)):
        room = Room(3, 1000.0, grows)
        room.take(request)
        assert room.tokens == 1000 - first
        for _ in range(49):
            assert not room.grow(1)
        room.give_back(request)
        assert (room.places, room.tokens) == (3, 1000)
    assert Room(1, 120.0, True).fits(request)
    assert not Room(1, 120.0, False).fits(request)


def test_growing_caches_admit_more_and_say_when_they_were_too_full():
    cost, work = StepCost(t_w=0.02, prompt=0.03, delta_h=1e-5), Workload(100, 400, lengths="geometric")

    def run(batch, grows):
        return closed_loop(
            work, cost, concurrency=250, requests=1500, warmup=500, scheduler=Aggregated(batch, 90_000, grows)
        )

    most = int(theory.max_batch_growing(kv_capacity=90_000, n_in=100, n_out=400, cv=1))
    reserved, growing, greedy = run(250, False), run(most, True), run(250, True)
    assert reserved.overfull == 0
    assert growing.request_rate > 1.1 * reserved.request_rate
    assert growing.overfull < 0.1 * growing.seconds
    assert greedy.overfull > 0.3 * greedy.seconds
