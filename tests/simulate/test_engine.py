"""Steps in which nothing happens are skipped, and nobody can tell."""

from dataclasses import replace
from math import ceil, inf

import numpy as np
import pytest
from hypothesis import given, strategies as st

from inference_math import Unit, Workload, theory
from inference_math.simulate import OVERLAPS, StepCost
from inference_math.simulate.cost import Steps, drafts_of, timed
from inference_math.simulate.engine import Request, _steps_to
from inference_math.simulate.record import Record
from inference_math.simulate.schedulers import Aggregated, Chunked, Disaggregated, Reuse, system_of
from inference_math.simulate.serve import closed_loop, open_loop
from inference_math.simulate.systems import engine_of

COST = StepCost(t_w=0.02, T=4e-5, T_decode=9e-5, prompt=1e-3, pair=2e-9, delta_h=3e-5, kv_read=4e-8)
SCHEDULERS = [
    Aggregated(),
    Aggregated(max_batch=5, kv_capacity=6000),
    Aggregated(5, 6000, grows=True),
    Chunked(256),
    Chunked(12, max_batch=9),
    Disaggregated(prefill_units=2, decode_units=3, transfer=1e-6, max_batch=4, kv_capacity=5000),
]


class Slow:
    """A cost without a line, so that no step is skipped."""

    def __init__(self, cost):
        self._cost = cost
        self.accepted_per_step, self.verified_per_step = drafts_of(cost)

    def __call__(self, *step):
        return self._cost(*step)


class Drafting:
    """A cost of requests that draft three tokens in each step, of which it gives 1.3 on average."""

    accepted_per_step = 2.3

    def __init__(self, verified_per_step=4):
        self.verified_per_step = verified_per_step
        self._cost = StepCost(t_w=0.02, T=4e-5, prompt=1e-3, kv_read=4e-8)
        self.line = self._cost.line

    def __call__(self, *step):
        return self._cost(*step)


@pytest.mark.parametrize("cost", [*(replace(COST, overlap=overlap) for overlap in OVERLAPS), Drafting()])
@pytest.mark.parametrize("scheduler", SCHEDULERS, ids=repr)
@pytest.mark.parametrize("how", [{"concurrency": 12}, {"rate": 4.0}], ids=["closed", "open"])
def test_skipping_steps_changes_nothing(cost, scheduler, how):
    """A cost whose line is not known is asked for every step."""
    simulate = closed_loop if "concurrency" in how else open_loop
    setting = {"requests": 150, "scheduler": scheduler, "reuse": Reuse(1e-5, blocking=False), "every_gap": True, **how}
    users = Workload(1000, 30, alpha=0.3, lengths="geometric")
    quick, slow = (simulate(users, each, **setting) for each in (cost, Slow(cost)))
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


def test_drafts_take_fewer_steps_and_more_of_the_budget():
    """A request alone: a step for its prompt, one for each 2.3 of its other tokens; its cache grows as fast."""
    run = closed_loop(Workload(1000, 24), Drafting(), concurrency=1, requests=3, scheduler=Chunked(504), log=True)
    decoding = run.log[run.log.decodes > 0]
    assert len(decoding) == 3 * 10  # 23 tokens
    np.testing.assert_allclose(decoding.context[:10], 1001 + 2.3 * np.arange(10))
    np.testing.assert_allclose(decoding.context[10:20], decoding.context[:10])
    assert (run.requests.tpot * 23 < 10.1 * decoding.seconds.max()).all()
    crowd = closed_loop(Workload(1000, 24), Drafting(), concurrency=4, requests=40, scheduler=Chunked(504), log=True)
    mixed = crowd.log[(crowd.log.decodes > 0) & (crowd.log.tokens > 0)]
    assert (mixed.tokens + 4 * mixed.decodes <= 504).all()
    assert (mixed.tokens + 4 * mixed.decodes == 504).any()


def served(scheduler, cost, requests, accepted_per_step=None):
    """Serve requests that come at once, step by step; return who ended after which step and when, and the record.

    Whoever is preempted comes before all who came later, and in the end the engine is empty and its room whole.
    """
    record = Record(0, True, True)
    engine = engine_of(system_of(scheduler, None, *drafts_of(cost)), timed(cost), record)
    for i, (n_in, n_out) in enumerate(requests):
        engine.waiting.append(Request(i, 0.0, n_in, n_out, 0))
        engine.waiting[-1].accepted_per_step = accepted_per_step[i] if accepted_per_step else 0.0
    ended = {}
    while not engine.idle():
        ended |= {one.number: (engine.batch.step, engine.batch.now) for one in engine.advance(inf)}
        numbers = [request.number for request in engine.waiting]
        assert numbers == sorted(numbers)
    assert (engine.batch.size, engine.batch.context) == (0, pytest.approx(0, abs=1e-6))
    assert engine.batch.room.tokens == pytest.approx(scheduler.kv_capacity)
    return ended, record


@pytest.mark.parametrize("grows", [True, False])
def test_requests_that_draft_differently_take_their_own_steps(grows):
    """All begin together; each ends after the steps of its own yield."""
    accepted_per_step = [0.0, 1.0, 1.7, 2.3, 4.0]
    ended, _ = served(Aggregated(9, 5000, grows), Drafting(), [(100, 25)] * 5, accepted_per_step)
    assert [ended[i][0] for i in range(5)] == [1 + ceil(24 / (own or 2.3)) for own in accepted_per_step]


@pytest.mark.parametrize("scheduler", [Aggregated(3, 2000, True), Aggregated(3, 2000), Chunked(64, 3, 2000)], ids=repr)
@pytest.mark.parametrize("model", ["gpt-oss-120b", "llama-3-70b"])  # of which one has windows
def test_skipping_steps_changes_nothing_where_requests_draft_differently(scheduler, model):
    cost = Steps(Unit.of(model, "h100-sxm", 2, drafts=3, accepted=0.6))
    assert (cost.accepted_per_step, cost.verified_per_step) == (pytest.approx(2.176), 4)
    sizes, accepted_per_step = [(100 + i, 40 + 7 * i) for i in range(9)], [1 + 0.37 * i for i in range(9)]
    (ended, quick), (late, slow) = (served(scheduler, price, sizes, accepted_per_step) for price in (cost, Slow(cost)))
    assert list(ended) == list(late)
    np.testing.assert_allclose(list(ended.values()), list(late.values()), rtol=1e-9)
    np.testing.assert_allclose(quick._log, slow._log, rtol=1e-9)


@given(
    sizes=st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=12),
    spare=st.integers(0, 60),
    budget=st.integers(8, 64),
)
def test_whoever_is_preempted_everybody_is_served(sizes, spare, budget):
    capacity = max(sum(size) for size in sizes) + spare + 4
    ended, record = served(Chunked(budget, inf, capacity, True), Drafting(verified_per_step=1), sizes)
    found = record.result(max(now for _, now in ended.values())).requests
    assert sorted(zip(found.n_in, found.n_out, strict=True)) == sorted(sizes)
    assert (found.finished >= found.first_token).all()
    assert (found.first_token >= found.admitted).all()


def test_of_drafted_tokens_who_is_preempted_keeps_whole_ones():
    system = system_of(Aggregated(2, 40, True), None, 2.5, 1)
    engine = engine_of(system, timed(StepCost(t_w=0.01)), Record(0, False, False))
    engine.waiting.extend(Request(i, 0.0, 10, 25, 0) for i in range(2))
    while not engine.waiting or not engine.waiting[0].kept:
        engine.advance(inf)
    # 18 of 40 tokens are left after the prompts; a step gives both 5: after three they have 1 + 7.5.
    assert (engine.waiting[0].number, engine.waiting[0].kept) == (1, 8)
    assert engine.batch.room.tokens == pytest.approx(40 - 10 - 8.5 - 2.5)


def test_as_many_as_the_formula_says_are_hardly_preempted_where_caches_grow():
    cost, work = StepCost(t_w=0.02, prompt=0.03, delta_h=1e-5), Workload(100, 400, lengths="geometric")
    most = int(theory.max_batch_growing(kv_capacity=90_000, n_in=100, n_out=400, cv=1))
    reserved, growing, greedy = (
        closed_loop(work, cost, concurrency=250, requests=1500, warmup=500, scheduler=Aggregated(batch, 90_000, grows))
        for batch, grows in ((250, False), (most, True), (250, True))
    )
    assert reserved.preempted == 0
    assert growing.request_rate > 1.1 * reserved.request_rate
    assert growing.preempted < 0.01 * len(growing.requests)
    # Who takes all that fit at first computes most of them twice.
    assert greedy.preempted > len(greedy.requests)
    assert greedy.request_rate < 0.75 * growing.request_rate
