"""The systems against plain loops over their steps: each request, each gap, each step of the log."""

from dataclasses import dataclass
from math import inf, nan

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from inference_math.simulate import (
    OVERLAPS,
    Aggregated,
    Chunked,
    Disaggregated,
    Reuse,
    SchedulerPolicy,
    StepCost,
    closed_loop,
    replay,
)
from inference_math.simulate.cost import timed
from inference_math.simulate.engine import Request
from inference_math.simulate.record import Record
from inference_math.simulate.schedulers import system_of
from inference_math.simulate.systems import PoolEngines
from inference_math.workload import Trace, Workload
from inference_math_planner.fleets.goodput import Client


@dataclass
class Sent:
    """A request of the plain loop."""

    number: int
    arrival: float
    n_in: int
    n_out: int
    cached: int
    ready: float = 0.0  # what the store has to load is there
    computed: int = 0
    kept: int = 0  # tokens of its answer that are computed again with the prompt
    tokens: int = 0
    admitted: float = nan
    first_token: float = nan
    last: float = nan

    def length(self):
        return self.n_in + self.kept

    def held(self):
        return self.n_in + self.tokens if self.tokens else self.length() + 1


def sent(trace, reuse):
    """Return the requests of a trace in the order in which the system sees them."""
    requests, pipe = [], 0.0
    for number, (arrival, *tokens) in enumerate(zip(trace.arrival, *trace.rows(), strict=True)):
        one = Sent(number, float(arrival), *map(int, tokens))
        one.ready, one.computed = one.arrival, one.cached
        if reuse and not reuse.blocking and one.cached:
            one.ready = pipe = max(pipe, one.arrival) + reuse.R * one.cached
        requests.append(one)
    return sorted(requests, key=lambda one: one.ready)


def fits(one, inside, scheduler):
    """Tell whether there is room: for whole answers, or where caches grow for the next step's tokens."""
    if len(inside) == scheduler.max_batch:
        return False
    if scheduler.grows:
        return grown(inside) + one.length() + 1 <= scheduler.kv_capacity
    return sum(each.n_in + each.n_out for each in [*inside, one]) <= scheduler.kv_capacity


def grown(inside):
    return sum(one.held() + (one.tokens > 0) for one in inside)


def played(trace, cost, scheduler, reuse):
    """Every step of one engine, one after the other: lists, sums over them, nothing skipped; who came last goes."""
    budget = scheduler.budget if isinstance(scheduler, Chunked) else inf
    alone = isinstance(scheduler, Chunked) and scheduler.policy.alone
    waiting, preempted = sent(trace, reuse), 0
    now, inside, gone, gaps, log = 0.0, [], [], [], []
    while waiting or inside:
        if not inside:
            now = max(now, waiting[0].ready)
        away, still = False, alone and not all(one.tokens for one in inside)  # then decodes stand still
        while scheduler.grows and not still and len(inside) > 1 and grown(inside) > scheduler.kv_capacity:
            if not any(one.tokens for one in inside):
                break
            last = max(inside, key=lambda one: one.number)
            last.kept, last.tokens, last.computed = last.tokens or last.kept, 0, last.cached
            inside.remove(last)
            waiting.insert(0, last)
            away, preempted = True, preempted + 1
        while not away and waiting and waiting[0].ready <= now and fits(waiting[0], inside, scheduler):
            inside.append(waiting.pop(0))
        decoding = [one for one in inside if one.tokens]
        if alone and len(decoding) < len(inside):
            decoding = []
        context = sum(one.n_in + one.tokens for one in decoding)
        left, chunks, load = budget - len(decoding), [], 0.0
        for one in inside:
            chunk = min(one.length() - one.computed, left)
            if not one.tokens and chunk > 0:
                if one.computed == one.cached:
                    one.admitted = one.admitted if one.kept else now
                    load += reuse.R * one.cached if reuse and reuse.blocking else 0.0
                chunks.append((one, int(chunk)))
                left -= chunk
        shares = sum(chunk / (one.length() - one.cached) for one, chunk in chunks)
        pairs = sum(((one.computed + chunk) ** 2 - one.computed**2) / 2 for one, chunk in chunks)
        fresh = sum(chunk for _, chunk in chunks)
        seconds = max(cost(len(decoding), context, shares, fresh, pairs), load)
        log.append((len(decoding), context, fresh, now, seconds, shares))
        now += seconds
        for one in decoding:
            gaps.append(now - one.last)
            one.last, one.tokens = now, one.tokens + 1
        for one, chunk in chunks:
            one.computed += chunk
            if one.computed == one.length():
                if one.kept:
                    gaps.append(now - one.last)
                else:
                    one.first_token = now
                one.last, one.tokens = now, one.kept + 1
        gone += [one for one in inside if one.tokens == one.n_out]
        inside = [one for one in inside if one.tokens != one.n_out]
    return gone, gaps, log, preempted


def coefficients(unlike):
    """Seconds that no whole numbers of others add up to: to the last digit equal times have no order."""
    return st.floats(0.001, 1).map(lambda seconds: seconds * unlike)


coefficient = coefficients(1.0123456789)
costs = st.builds(
    StepCost,
    t_w=coefficients(1.0246813579),
    T=coefficients(1.0357924681),
    T_decode=st.just(0.0) | coefficient,
    prompt=coefficients(1.0468135792),
    pair=st.just(0.0) | coefficient,
    delta_h=coefficients(1.0579246813),
    kv_read=st.just(0.0) | coefficient,
    overlap=st.sampled_from(OVERLAPS),
)
reuses = st.none() | st.builds(Reuse, R=coefficient, blocking=st.booleans())


@st.composite
def traces(draw, least=1, longest=(1, 3, 12), apart=(0.0, 1.0, 10.0, 100.0)):
    """A dozen requests; prompts of different lengths, so that a request is known by its own."""
    count = draw(st.integers(least, 12))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return Trace(
        n_in=rng.permutation(30)[:count] + 1,
        n_out=rng.integers(1, draw(st.sampled_from(longest)), count, endpoint=True),
        arrival=np.cumsum(rng.exponential(draw(st.sampled_from(apart)), count)),
        alpha=rng.choice([0.0, 0.5, 1.0], count) if draw(st.booleans()) else 0.0,
    )


max_batches = st.sampled_from([1, 2, 5, inf])
capacities = st.sampled_from([42, 60, 100, inf])
budgets, policy = st.sampled_from([1, 2, 3, 7, 16, 64]), st.builds(SchedulerPolicy, alone=st.booleans())
one_engine = st.builds(Aggregated, max_batches, capacities) | st.builds(
    Chunked, budgets, max_batches, capacities, policy=policy
)
crowds, narrow = st.sampled_from([5, inf]), st.sampled_from([60, 70, 90])


def test_prefill_units_have_their_own_steps():
    slow, fast = StepCost(t_w=0.01, T=1e-4), StepCost(t_w=0.003, T=1e-5)
    trace = Trace([1000, 1000], [3, 3], arrival=[0.0, 0.0])
    run = replay(trace, fast, scheduler=Disaggregated(1, 1, prefill=slow))
    assert run.requests.ttft.to_numpy() == pytest.approx([slow(0, 0, 1, 1000, 5e5), 2 * slow(0, 0, 1, 1000, 5e5)])
    assert run.requests.tpot.to_numpy() == pytest.approx(fast(1, 1001, 0, 0, 0))
    with pytest.raises(TypeError, match="prefill must be"):
        Disaggregated(prefill=1.0)


growing = st.builds(Aggregated, crowds, narrow, st.just(True)) | st.builds(
    Chunked, budgets, crowds, narrow, st.just(True), policy
)
pools = st.builds(
    Disaggregated, st.integers(1, 2), st.integers(1, 2), st.just(0.0) | coefficient, max_batches, capacities,
    groups=st.integers(1, 2), budget=st.sampled_from([1, 20, 60]), ahead=st.booleans(),
)  # fmt: skip


class DecodeUnit:
    """A decode unit of the plain loop: complete steps only, so its clock may be ahead of the last event."""

    def __init__(self, cost, scheduler, gone, gaps, log):
        self.cost, self.scheduler, self.gone, self.gaps, self.log = cost, scheduler, gone, gaps, log
        self.now, self.inside, self.queue, self.planned, self.began = 0.0, [], [], [], False
        self.coming, self.link = 0, 0.0

    def context(self):
        return sum(one.n_in + one.tokens for one in self.inside)

    def seconds(self):
        return self.cost(len(self.inside), self.context(), 0.0, 0, 0.0)

    def step(self):
        self.planned, self.began = self.having_room(), True
        self.log.append((len(self.inside), self.context(), 0, self.now, self.seconds(), 0.0))
        self.now += self.seconds()
        for one in self.inside:
            self.gaps.append(self.now - one.last)
            one.last, one.tokens = self.now, one.tokens + 1
        self.gone += [one for one in self.inside if one.tokens == one.n_out]
        self.inside = [one for one in self.inside if one.tokens != one.n_out]
        self.admit()

    def having_room(self):
        """Return who of those who wait fits together with who is inside, in their order."""
        fits = []
        for one in self.queue:
            held = [*self.inside, *fits, one]
            over = sum(each.n_in + each.n_out for each in held) > self.scheduler.kv_capacity
            if over or len(held) > self.scheduler.max_batch:
                break
            fits.append(one)
        return fits

    def admit(self):
        """Let join who fits; where steps are planned ahead, of those who did when the last one began, if any did."""
        self.began = self.began and bool(self.inside)
        own = self.planned if self.scheduler.ahead and self.began else self.queue
        joining = [one for one in self.having_room() if one in own]
        self.inside += joining
        self.queue = self.queue[len(joining) :]


def pooled(trace, cost, scheduler, reuse):
    """Every prompt and every step of two pools, one after the other."""
    gone, gaps, log, joining, groups = [], [], [], [], scheduler.groups
    waiting, free = sent(trace, reuse), [0.0] * (scheduler.prefill_units * groups)
    link = free.copy()
    while waiting:
        group = free.index(min(free))
        prompts, now = [waiting.pop(0)], free[group]
        if now <= prompts[0].ready:
            now = prompts[0].ready  # who finds a group free is alone
        else:
            fresh = prompts[0].n_in - prompts[0].cached
            while waiting and waiting[0].ready <= now:
                fresh += waiting[0].n_in - waiting[0].cached
                if fresh > scheduler.budget:
                    break
                prompts.append(waiting.pop(0))
        load = sum(reuse.R * one.cached if reuse and reuse.blocking else 0.0 for one in prompts)
        fresh = sum(one.n_in - one.cached for one in prompts)
        pairs = sum((one.n_in**2 - one.cached**2) / 2 for one in prompts)
        # As slow as if all groups had as many.
        seconds = max(cost(0, 0, 1.0 * groups * len(prompts), groups * fresh, groups * pairs), load)
        log.append((0, 0, fresh, now, seconds, 1.0 * len(prompts)))
        free[group] = now + seconds
        for one in prompts:
            one.admitted, one.first_token, one.last, one.tokens = now, free[group], free[group], 1
            link[group] = max(link[group], free[group]) + scheduler.transfer * one.n_in
            if one.n_out == 1:
                gone.append(one)
            else:
                joining.append((link[group], one))
    units = [DecodeUnit(cost, scheduler, gone, gaps, log) for _ in range(scheduler.decode_units)]
    events = [(time, False, number, one, None) for number, (time, one) in enumerate(joining)]
    while events:
        events.sort(key=lambda event: event[:3])
        time, _, number, one, unit = events.pop(0)
        for each in units:
            while each.inside and each.now + each.seconds() <= time:
                each.step()
        if unit is None:  # a unit's link takes one cache in after the other
            unit = min(units, key=lambda unit: len(unit.inside) + len(unit.queue) + unit.coming)
            unit.link = max(unit.link + scheduler.transfer / groups * one.n_in, time)
            if unit.link > time:
                unit.coming += 1
                events.append((unit.link, True, number, one, unit))
                continue
        else:
            unit.coming -= 1
        if unit.inside and unit.now < time:
            unit.step()
        unit.now = max(unit.now, time)
        unit.queue.append(one)
        unit.admit()
    for unit in units:
        while unit.inside:
            unit.step()
    return gone, gaps, log, 0


def in_order(steps):
    """Return steps by decodes, context and fresh tokens, which are whole numbers, then by their start."""
    return np.array(sorted(steps), dtype=float)


@settings(max_examples=300)
@given(trace=traces(), cost=costs, scheduler=one_engine | pools, reuse=reuses)
def test_a_system_is_its_plain_loop(trace, cost, scheduler, reuse):
    check_against_plain_loop(trace, cost, scheduler, reuse)


@settings(max_examples=120)
@given(trace=traces(4, (20, 30), (0.0, 1.0, 10.0)), cost=costs, scheduler=growing, reuse=reuses)
def test_an_engine_preempts_as_its_plain_loop_does(trace, cost, scheduler, reuse):
    check_against_plain_loop(trace, cost, scheduler, reuse)


def check_against_plain_loop(trace, cost, scheduler, reuse):
    run = replay(trace, cost, scheduler=scheduler, reuse=reuse, every_gap=True, log=True)
    plain = pooled if isinstance(scheduler, Disaggregated) else played
    gone, gaps, log, preempted = plain(trace, cost, scheduler, reuse)
    assert sorted(run.requests.n_in) == sorted(one.n_in for one in gone)
    found = run.requests.set_index("n_in").loc[[one.n_in for one in gone]]
    columns = {name: name for name in ("arrival", "n_out", "cached", "admitted", "first_token")} | {"finished": "last"}
    for column, name in columns.items():
        np.testing.assert_allclose(found[column], [getattr(one, name) for one in gone], rtol=1e-9, err_msg=column)
    np.testing.assert_allclose(np.sort(run.every_gap), np.sort(gaps), rtol=1e-9)
    steps = run.log[["decodes", "context", "tokens", "start", "seconds", "prefills"]].itertuples(index=False)
    np.testing.assert_allclose(in_order(steps), in_order(log), rtol=1e-9)
    assert (run.steps, run.gaps.count, run.preempted) == (len(log), len(gaps), preempted)
    assert run.gaps.mean == pytest.approx(np.mean(gaps) if gaps else nan, nan_ok=True)
    assert run.gaps.largest == pytest.approx(max(gaps, default=0))
    assert run.seconds == pytest.approx(run.requests.finished.max())
    for _, steps in run.log.groupby("engine"):  # one step at a time
        ends = (steps.start + steps.seconds).to_numpy()
        assert (steps.start.to_numpy()[1:] >= ends[:-1] * (1 - 1e-9)).all()


def test_a_log_numbers_the_groups_that_prefill_before_the_decode_units():
    trace = Trace([10, 10, 10, 10], [3, 3, 3, 3], arrival=[0.0, 0.0, 0.0, 0.0])
    log = replay(trace, StepCost(t_w=0.1, T=0.01), scheduler=Disaggregated(1, 2, groups=2), log=True).log
    assert set(log.engine[log.tokens > 0]) == {0, 1}
    assert set(log.engine[log.decodes > 0]) == {2, 3}


def test_prompts_of_a_rank_share_its_link_and_ranks_have_their_own():
    trace = Trace([1000, 1000], [3, 3], arrival=[0.0, 0.0], alpha=0.5)
    cost, reuse = StepCost(t_w=0.01, T=1e-5), Reuse(R=1e-3)
    for ranks, seconds in ((1, 1.0), (2, 0.5)):
        run = replay(trace, cost, scheduler=Chunked(2000 * ranks, ranks=ranks), reuse=reuse, log=True)
        assert run.log.seconds[0] == pytest.approx(seconds)


growing = st.builds(
    Disaggregated,
    st.integers(1, 2),
    st.integers(1, 2),
    st.just(0.0) | coefficient,
    max_batches,
    st.sampled_from([42, 60, 100]),
    st.just(True),
)


@settings(max_examples=150)
@given(trace=traces(), cost=costs, scheduler=growing, accepted_per_step=st.sampled_from([1, 1.7]))
def test_a_decode_unit_never_holds_more_than_its_capacity_and_serves_everybody(
    trace, cost, scheduler, accepted_per_step
):
    record = Record(0, True, True)
    system = system_of(scheduler, None, accepted_per_step, 1)
    rows = zip(trace.arrival, *trace.rows(), strict=True)
    requests = [Request(i, float(time), *map(int, tokens)) for i, (time, *tokens) in enumerate(rows)]
    pools = PoolEngines(system, timed(cost), timed(cost), Client(requests, 0, 0.0), record)
    run = record.result(pools.run(inf))
    assert sorted(zip(run.requests.n_in, run.requests.n_out, strict=True)) == sorted(
        zip(trace.n_in, trace.n_out, strict=True)
    )
    own = run.log.engine >= scheduler.prefill_units * scheduler.groups
    decoding = run.log[own & (run.log.decodes + run.log.prefills > 1)]
    after = decoding.context + decoding.tokens + accepted_per_step * decoding.decodes
    assert (after <= scheduler.kv_capacity + 1e-6).all()
    for unit in pools.units:
        assert unit.batch.room.tokens == pytest.approx(scheduler.kv_capacity)
        assert unit.idle()
    assert (run.requests.finished >= run.requests.first_token).all()
    if accepted_per_step == 1:
        assert len(run.every_gap) == sum(trace.n_out - 1)
        spans = run.requests.finished - run.requests.first_token
        assert np.sum(run.every_gap) == pytest.approx(spans.sum(), rel=1e-9, abs=1e-9)


def test_a_decode_unit_computes_again_what_it_preempts():
    """Of two requests the later goes as soon as one token more each would not fit, and comes back when the other ends.

    Each has 10 tokens and its first one in a room of 30: after four steps both hold 15. The second has five then.
    When the first has its ninth token after four steps more, prompt and answer of the second are computed in one step
    of 0.1 s and 10 ms for each of 15 tokens; it has three tokens left, and decodes them alone.
    """
    trace = Trace([10, 10], [9, 9], arrival=[0.0, 0.0])
    cost = StepCost(t_w=0.1, T=0.01)
    run = replay(trace, cost, scheduler=Disaggregated(2, 1, kv_capacity=30, grows=True), every_gap=True, log=True)
    assert run.preempted == 1
    first, second = sorted(run.requests.finished)
    assert first == pytest.approx(0.2 + 8 * 0.1)
    assert second == pytest.approx(first + 0.1 + 15 * 0.01 + 3 * 0.1)
    assert max(run.every_gap) == pytest.approx(4 * 0.1 + 0.25)
    assert run.log.tokens.tolist()[-4:] == [15, 0, 0, 0]


def test_a_decode_unit_serves_what_an_engine_of_its_memory_does_less_its_prompts():
    """Places for answers that are alike, and answers that scatter: the unit computes again, as an engine does.

    Prompts are short beside answers, so all that an engine without pools has more to do is these.
    """
    work, room, places = Workload(500, 2000, lengths="geometric"), 436_500, 291
    cost = StepCost(t_w=0.02, T=2e-5, delta_h=1e-4)
    pool = Disaggregated(4, 1, max_batch=places, kv_capacity=room, grows=True, budget=4000)
    apart, together = (
        closed_loop(work, cost, concurrency=places + 30, requests=1500, warmup=600, scheduler=scheduler)
        for scheduler in (pool, Chunked(2048, places, room, True))
    )
    assert together.preempted > 0.2 * len(together.requests)
    assert apart.preempted > 0.2 * len(apart.requests)
    prompts = 500 * 2e-5 * together.request_rate
    assert apart.request_rate == pytest.approx(together.request_rate / (1 - prompts), rel=0.1)
