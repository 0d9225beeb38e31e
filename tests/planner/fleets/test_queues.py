"""Small laws of fleets, by hand: quantiles of few values, sizes of replicas."""

from __future__ import annotations

from dataclasses import replace
from math import ceil, floor, inf

import numpy as np
import pytest
from hypothesis import given, strategies as st
from made import Made, made
from msgspec import structs

from inference_math import Unit
from inference_math.optimiser.case import Case, under
from inference_math.optimiser.gain_error import CERTAIN
from inference_math.optimiser.load import pools_rate, settings_row
from inference_math.optimiser.search import ARCHITECTURES
from inference_math.optimiser.starts import settings
from inference_math.simulate import Chunked, SchedulerPolicy, StepCost
from inference_math.simulate.cost import timed
from inference_math.simulate.engine import Request
from inference_math.simulate.schedulers import system_of
from inference_math.simulate.systems import engine_of, run_balanced, run_engine
from inference_math.unit.problem import of_units, search_constants
from inference_math.unit.types import Pools, Problem, UnitNumbers
from inference_math.workload import SLA, Workload
from inference_math_planner.answers.deployment import Plan
from inference_math_planner.fleets import queues
from inference_math_planner.fleets.bench import Noted
from inference_math_planner.fleets.benchmarks import policy_of
from inference_math_planner.fleets.goodput import Client, Tally, geometric_rows, goodput, requests_at
from inference_math_planner.fleets.traffic import chances
from inference_math_planner.fleets.types import FleetGoal


@given(values=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30), share=st.floats(0, 1))
def test_quantiles_lie_in_the_middles_of_their_parts(values, share):
    """As NumPy's method of Hazen."""
    told = queues.between(sorted(values), share)
    assert told == pytest.approx(float(np.quantile(values, share, method="hazen")), abs=1e-6)


def test_the_ends_of_nine_tenths_by_hand():
    assert queues.spread_of([3.0, 1.0, 2.0, 4.0]) == [1.0, 4.0]
    assert queues.spread_of([float(k) for k in range(20)]) == pytest.approx([0.5, 18.5])
    assert queues.spread_of([1.0] * 19 + [float("inf")])[1] == float("inf")


def test_sizes_of_few_units_are_among_those_of_more():
    def of(units, prefill):
        unit = made(UnitNumbers, gpus=2, drafts=0, accepted=0.0)
        pools = [made(Pools, prefill=one, decode=unit, units=units, decode_moves={}) for one in prefill]
        return made(Problem, units=units, unit=unit, pools=pools, read_bw=0.0, pool_bw=1.0)

    assert queues.sizes_of(of(4, []), "chunked") == [1, 2, 3, 4]
    assert queues.sizes_of(of(2, []), "disaggregated") == [2]
    assert queues.sizes_of(of(5, [made(UnitNumbers, gpus=4)]), "disaggregated") == [3, 4, 5]
    assert queues.sizes_of(of(3, [made(UnitNumbers, gpus=1)]), "disaggregated") == [2, 3]
    before = []
    for units in range(2, 200):
        sizes = queues.sizes_of(of(units, []), "disaggregated")
        assert sizes[: len(before)] == before
        assert set(range(2, min(units, 32) + 1)) <= set(sizes)
        before = sizes


class Known(queues.Replica):
    """A replica that keeps the promise in a draw up to a rate of its own; what was asked of it is noted."""

    def __init__(self, name, units, number, tops, rates, prefill=None):
        self.name, self.units, self.number, self.gpus = name, units, number, 2 * units
        self.prefill_units = (1 + number if name == "disaggregated" else 0) if prefill is None else prefill
        self.decode_units = units - self.prefill_units
        self.rates, self.asked_in, self._tops = rates, set(), tops

    def simulate(self, place, rate, hasty):
        self.asked_in.add(place)
        return [1.0 if rate <= self.rates[place] else 0.5, 0.1, 0.01]


def simulator_of(tops, rates, name="disaggregated", count=queues.DRAWN):
    """A simulator of replicas by (units, row)."""
    known = {(units, row): Known(name, units, row, tops[units, row], rates[units, row]) for units, row in tops}
    own = Made(
        {
            "problem": Made({"units": max(units for units, _ in tops), "unit": Made({"gpus": 2}), "pools": []}),
            "count": count,
        }
    )
    own["replicas"] = lambda name, units: [one for one in known.values() if one.units == units]
    own["smallest"] = lambda name: next(iter(known.values()))
    own["settings"] = own["solved"] = {name: None}
    return own


def drawn_simulator(seed, units=4):
    rng = np.random.default_rng(seed)
    sizes = [(size, row) for size in range(2, units + 1) for row in range(size - 1)]
    tops = {one: sorted(one[0] * rng.uniform(0.5, 1.5) * rng.uniform(0.8, 1.2, queues.DRAWN))[::-1] for one in sizes}
    kept = {one: [top * share for top, share in zip(tops[one], rng.uniform(0.3, 0.95, queues.DRAWN), strict=True)]
            for one in sizes}  # fmt: skip
    return sizes, tops, kept


def goal(traffic=0.0, have=0.0):
    return FleetGoal(traffic=traffic, have=have)


@pytest.mark.parametrize(("missed", "kept"), [(0, True), (1, True), (2, False), (16, False)])
def test_the_promise_may_be_missed_in_one_draw_of_sixteen(missed, kept):
    for places in (range(missed), range(queues.DRAWN - missed, queues.DRAWN)):
        rates = [1.0 if place in places else 9.0 for place in range(16)]
        assert Known("disaggregated", 2, 0, [10.0] * 16, rates).keeps(5.0, 16) is kept
    assert not Known("disaggregated", 2, 0, [10.0] * 16, [99.0] * 16).keeps(9.8, 16)  # FULL


def test_what_cannot_fail_any_more_is_asked_no_further():
    replica = Known("disaggregated", 2, 0, [10.0] * 16, [9.0] * 16)
    assert replica.keeps(5.0, 4)
    assert replica.asked_in == {15, 14, 13}


@pytest.mark.parametrize("seed", range(12))
def test_the_cheapest_is_that_of_all_candidates(seed):
    sizes, tops, kept = drawn_simulator(seed)
    simulator = simulator_of(tops, kept)
    sure = {one: sorted(min(rate, queues.FULL * top) for rate, top in zip(kept[one], tops[one], strict=True))[1]
            for one in sizes}  # fmt: skip
    for traffic in (0.3, 5.0, 37.0, 400.0):
        found = queues.cheapest(simulator, "disaggregated", goal(traffic), inf)
        best = min(2 * size * ceil(traffic / sure[size, which] - 1e-12) for size, which in sizes)
        assert found.cost == found.replicas * found.replica.gpus == best
        own = sure[found.replica.units, found.replica.number]
        assert found.replicas == ceil(traffic / own - 1e-12)
    for have in (4, 6, 9, 40):
        found = queues.cheapest(simulator, "disaggregated", goal(have=float(have)), inf)
        most = max(floor(have / 2 / size) * sure[size, which] for size, which in sizes)
        assert most / 1.05 <= found.replicas * found.rate <= most * (1 + 1e-9)


@pytest.mark.parametrize(
    "kept", [[0.0] * 16, [0.0] * 12 + [9.0] * 4], ids=["in no draw", "in the slowest, which are looked at first"]
)
def test_where_no_rate_is_kept_there_are_no_replicas(kept):
    """Of a size that there is: what its replica does in single draws is asked for next."""
    sizes, tops, _ = drawn_simulator(3)
    simulator = simulator_of(tops, dict.fromkeys(sizes, kept))
    for question in (goal(5.0), goal(have=8.0)):
        found = queues.cheapest(simulator, "disaggregated", question, inf)
        assert (found.replicas, found.rate) == (0, 0.0)
        assert (found.replica.units, found.replica.number) == (2, 0)


SURE = dict.fromkeys(ARCHITECTURES, CERTAIN)


def standing(name, gpus, each):
    return Made({"name": name, "replicas": 1, "gpus": gpus, "gpus_all": [gpus, gpus, gpus], "sold": 10.0, "each": each})


def test_fewer_gpus_are_the_choice_and_equal_ones_a_tie():
    fast, slow = [20.0] * 16, [11.0] * 16
    two = {"chunked": standing("chunked", 4, slow), "aggregated": standing("aggregated", 6, fast)}
    assert queues.choose_fleet(two, goal(10.0), 16, SURE).order[0] == "chunked"
    two["aggregated"] = standing("aggregated", 4, fast)
    even = queues.choose_fleet(two, goal(40.0), 16, SURE)
    assert even.order[0] == "aggregated"  # which loses less
    assert even.tie
    # One replica of 14 GPUs is enough; two of 10 are needed, though each GPU of theirs would serve more.
    small = {
        name: standing(name, gpus, [each] * 16)
        for name, gpus, each in (("disaggregated", 14, 15.0), ("aggregated", 10, 11.0))
    }
    assert queues.choose_fleet(small, goal(15.0), 16, SURE).best_in["disaggregated"] == 1.0
    alone = queues.choose_fleet({"chunked": two["chunked"]}, goal(10.0), 16, SURE)
    assert (alone.best, alone.tie) == ("chunked", False)
    assert queues.choose_fleet({}, goal(10.0), 16, SURE).best == ""


def replica(units, rate, seed, n_out=170.0, since=400, until=1200):
    """What a replica of whole prompts does with a run of its own: share within the limits, mean TTFT, mean TPOT."""
    case = Case(Unit.of("llama-3-70b", "h100-sxm", 2, "fp8", "fp8"), Workload(2200, n_out), SLA(0.6, 0.04), units=2)
    asked = of_units(case.problem, units)
    row = Plan.of(case, 0).solved.each["aggregated"][0]
    system = queues.system_for(asked, "aggregated", row)
    pace = queues.pace_of(asked, *case.pairs(0)[0])
    rng, count = np.random.default_rng(seed), until + (until - since) // 2
    gaps = rng.exponential(size=count).tolist()
    rows = geometric_rows(rng.random(count).tolist(), 2200, n_out, 0.0)
    requests = requests_at(gaps, rows, rate)
    tally = Tally(0.6, 0.04, 0.0, since, until, 0.9, False)
    return goodput(system, pace, pace, requests, tally), (asked, row, system, pace)


def test_a_router_before_units_shortens_what_their_queues_alone_would_have():
    (alone, _), (pairs, _), (eight, _) = (replica(units, 1.2 * units, 0, until=4400) for units in (1, 2, 8))
    assert eight[0] > pairs[0] > alone[0]
    assert (
        float(Unit.of("llama-3-70b", "h100-sxm", 2, "fp8", "fp8").prefill_time(2200)) < eight[1] < pairs[1] < alone[1]
    )


@pytest.mark.parametrize(
    ("engine", "version", "told", "ahead"),
    [
        ("vllm", "", None, True), ("vllm", "0.13", None, True), ("vllm", "0.12", None, False),
        ("vllm", "", False, False), ("sglang", "", None, True), ("trtllm", "", None, True),
    ],
)  # fmt: skip
def test_a_fleet_s_engine_plans_ahead_as_its_benchmark_does(engine, version, told, ahead):
    """By engine and age, or as it is told, and nothing else of how prompts are let in; pools prefill as they did."""
    unit = Unit.of("llama-3-70b", "h100-sxm", 2, "fp8", "fp8", engine, version=version, async_scheduling=told)
    asked = Case(unit, Workload(2200, 170), SLA(0.6, 0.04), units=2).problem
    assert asked.ahead is policy_of(engine, version=version, async_scheduling=told).ahead is ahead
    for name in ARCHITECTURES:
        system = queues.system_for(asked, name, settings_row(8, 2200, 1, 7))
        assert system.policy == SchedulerPolicy(ahead=ahead)


def test_each_group_of_attention_loads_its_prompts_over_links_of_its_own():
    """In one step eight groups load a prompt each as fast as one does, and one of them two in twice the time."""
    unit = Unit.of("deepseek-v3", "h200-sxm", dp=8, ep=8)
    asked = Case(unit, Workload(8000, 200, 0.5), SLA(60, 5)).problem
    system = structs.replace(queues.system_for(asked, "aggregated", settings_row(64, 8000, 1, 7)), load=1e-3)
    for many, longest in ((1, 1), (8, 1), (9, 2)):
        noted = Noted()
        engine = engine_of(structs.replace(system, budget=10**6), timed(StepCost(t_w=0.01)), noted)
        engine.waiting.extend(Request(i, 0.0, 8000, 200, 4000) for i in range(many))
        engine.advance(inf)
        assert engine.batch.now == pytest.approx(4.0 * longest)


STEPS = StepCost(t_w=0.01, T=1e-4)


def played(ahead, requests, cost=STEPS, budget=10**6):
    """What a client notes of requests at one engine, in their order; and the mean step and the share of time busy."""
    noted, steps = Noted(), []
    noted.run = lambda first, rise, many, decodes: steps.append((many * (first + rise * (many - 1) / 2), many))
    system = system_of(Chunked(budget, policy=SchedulerPolicy(ahead=ahead)), None)
    own = [Request(i, *one, 0) for i, one in enumerate(requests)]
    end = run_engine(engine_of(system, timed(cost), noted), Client(own, 0, 0.0), noted, len(own))
    seconds, many = np.sum(steps, axis=0)
    order = np.argsort(noted.sent, kind="stable")
    return np.array(noted.ttft)[order], seconds / many, seconds / end


# Well within a step, while the first answer is written, whose prompt took one.
AT = st.builds(lambda step, part: 0.01 * (step + part), st.integers(1, 200), st.floats(0.05, 0.95))


@given(
    at=st.lists(AT, min_size=1, max_size=12, unique=True),
    outputs=st.lists(st.integers(1, 40), min_size=12, max_size=12),
)
def test_with_equal_steps_a_busy_engine_that_plans_ahead_is_a_step_later_to_each_first_token(at, outputs):
    since = [(0.0, 100, 1000), *((when, 100, n_out) for when, n_out in zip(sorted(at), outputs, strict=False))]
    first, later = (played(ahead, since, StepCost(t_w=0.01))[0] for ahead in (False, True))
    assert later[0] == pytest.approx(first[0])  # nothing is planned where nobody was
    assert later[1:] - first[1:] == pytest.approx(np.full(len(at), 0.01), abs=1e-9)


@given(when=st.floats(0.0, 3.0), n_out=st.integers(1, 60), n_in=st.integers(1, 3000))
def test_beside_one_request_a_first_token_is_at_most_one_step_later_and_never_sooner(when, n_out, n_in):
    cost = StepCost(t_w=0.01, T=1e-4, delta_h=1e-4)
    both = [(0.0, n_in, n_out), (when, 500, 20)]
    first, later = (played(ahead, both, cost)[0][1] for ahead in (False, True))
    decode = cost(1, n_in + n_out, 0, 0, 0)
    assert -1e-9 <= later - first <= decode + 1e-9


@pytest.mark.parametrize("load", [0.1, 0.3, 0.5, 0.7])
def test_arrivals_at_random_wait_a_mean_step_more_as_often_as_they_find_the_engine_busy(load):
    """All that wait come in at once: what is planned hangs on the step before the running one, not on that."""
    rng, each = np.random.default_rng(1), 0.06 + 0.01 / 50
    times = np.cumsum(rng.exponential(each / load, 4000))
    requests = [(when, 600, n_out) for when, n_out in zip(times, rng.geometric(1 / 50, 4000), strict=True)]
    (first, step, busy), (later, *_) = (played(ahead, requests) for ahead in (False, True))
    assert later.mean() - first.mean() == pytest.approx(min(busy, 1.0) * step, rel=0.06)


@given(at=st.lists(st.floats(0.0, 3.0), min_size=1, max_size=20), n_in=st.integers(1, 3000))
def test_a_unit_that_only_prefills_one_prompt_a_step_is_as_soon_planned_ahead(at, n_in):
    """It plans what waits; where nothing does, it plans when a request comes."""
    requests = [(when, n_in, 1) for when in sorted(at)]
    first, later = (played(ahead, requests, budget=n_in)[0] for ahead in (False, True))
    assert later == pytest.approx(first, abs=1e-9)


def test_a_router_of_one_unit_is_none():
    told = []
    _, (*_, system, pace) = replica(1, 1.0, 0, until=402)
    for routed in (False, True):
        tally = Tally(1.0, 0.05, 0.0, 5, 55, 0.9, False)
        client = Client([Request(i, 0.3 * i, 500, 40, 0) for i in range(60)], 0, 0.0)
        if routed:
            run_balanced(system, pace, client, tally, 50)
        else:
            run_engine(engine_of(system, pace, tally), client, tally, 50)
        told.append(tally.told())
    assert told[0] == told[1]


def test_a_simulation_begins_with_the_usual_load(monkeypatch):
    """Of long answers hundreds are under way before as many finish as come: empty units would flatter them."""
    told, (asked, row, system, pace) = replica(4, 1.6, 3, n_out=4000.0, since=3000, until=4500)
    assert queues.usually_under_way(asked, system, pace, 1.6) > 60
    gaps, lengths = chances(0, 1.0)
    source = Made({"gaps": gaps, "cv": 1.0, "lengths": lengths, "like": [], "trace": [], "share": 0.9})
    drawn = {"aggregated": Made({"draws": [Made({"pace": pace, "prefill": pace, "front": 0.0})]})}
    simulator = Made({"source": source, "drawn": drawn, "pause": lambda: None})
    simulator["arrivals"] = lambda place, count: queues.arriving(source, asked.work, place, count)
    usual = queues.Replica(simulator, "aggregated", asked, row, 0).simulate(0, 1.6, False)[2]
    assert usual == pytest.approx(told[2], rel=0.06)
    monkeypatch.setattr(queues, "FILLS", 0.0)
    assert queues.Replica(simulator, "aggregated", asked, row, 0).simulate(0, 1.6, False)[2] < usual


def test_no_row_of_chunks_serves_more_prompts_than_its_steps_compute():
    """However many places there are: who finishes must be replaced, a chunk in each step."""
    case = Case(Unit.of("llama-3-70b", "h100-sxm", 4, "fp8", "fp8"), Workload(500, 300), SLA(0.4, 0.06), units=2)
    asked, one = of_units(case.problem, 1), under(case)
    for row in queues.trials(asked, "chunked", Plan.of(case, 0).solved.each["chunked"][0]):
        chunk = row.chunk / 500
        assert 0 < queues.full(asked, "chunked", row, one) <= chunk / one.step_seconds(0.0, chunk)


@pytest.mark.parametrize("true", [0.05, 0.4, 0.93, 1.2])
def test_the_highest_rate_is_found_from_any_guess(true):
    """Beyond 97 % of full load nothing is asked: queues grow for longer than is simulated."""
    for guess in (0.02, 0.3, 0.97):
        low, high = queues.highest_rates(10.0, guess, 1.04, lambda rate: rate <= 10 * true)
        top = min(10 * true, 9.7)
        assert low <= top * (1 + 1e-9)
        assert low == pytest.approx(top, rel=0.04)
        assert high == low == 9.7 or top < high <= 1.04 * low
    assert queues.highest_rates(10.0, 0.7, 1.04, lambda rate: False) == (0.0, 0.0)


def test_what_fails_rules_out_what_has_no_more_and_shares_no_better():
    def replica(name, units, number, prefill=None):
        return Known(name, units, number, [], [], prefill)

    def fails(name, units, number, many, prefill=None):
        return [queues.Incumbent(replica=replica(name, units, number, prefill), replicas=many)]

    failed = fails("chunked", 4, 0, 2)  # two replicas of four units
    assert queues.no_better(replica("chunked", 3, 0), 2, failed)
    assert queues.no_better(replica("chunked", 2, 0), 4, failed)
    assert not queues.no_better(replica("chunked", 3, 1), 2, failed)  # other settings
    assert not queues.no_better(replica("chunked", 8, 0), 1, failed)  # one queue
    assert not queues.no_better(replica("chunked", 3, 0), 3, failed)
    failed = fails("disaggregated", 4, 0, 2)  # of a unit that prefills
    assert queues.no_better(replica("disaggregated", 3, 0), 2, failed)
    assert not queues.no_better(replica("disaggregated", 3, 1), 2, failed)  # two prefill units each


def test_what_is_sustained_between_simulated_draws_is_a_share_of_their_full_load():
    tops = [20.0 - place for place in range(16)]
    replica = Known("disaggregated", 2, 0, tops, [0.8 * top for top in tops])
    found = queues.sustained(replica)
    assert replica.asked_in == {0, 5, 10, 15}
    assert found == pytest.approx([0.8 * top for top in tops], rel=0.05)
    stuck = [0.8 * top if place < 12 else 0.0 for place, top in enumerate(tops)]
    none = queues.sustained(Known("disaggregated", 2, 0, tops, stuck))
    assert [rate == 0 for rate in none] == [False] * 12 + [True] * 4  # beside one of nothing each is asked


def test_a_look_that_is_no_better_costs_without_end():
    _, tops, kept = drawn_simulator(1)
    simulator = simulator_of(tops, kept) | {"holds": lambda: True, "able": lambda names: True}
    simulator["solved"] = Made({"rates": {"disaggregated": [1.0]}, "goodput": {"disaggregated": 1.0}})
    for question in (goal(9.0), goal(have=8.0)):
        least = queues.least_of(simulator, ["disaggregated", "chunked"], question, inf)
        assert least == queues.cheapest(simulator, "disaggregated", question, inf).cost
        assert queues.least_of(simulator, ["disaggregated"], question, least - 0.01 * abs(least)) == inf
    assert queues.least_of(simulator | {"holds": lambda: False}, ["disaggregated"], question, inf) == inf
    assert queues.least_of(simulator | {"able": lambda names: False}, ["disaggregated"], question, inf) == inf


def test_other_settings_of_the_same_units_must_be_better_by_what_is_resolved():
    rows = [(1, row) for row in range(3)]
    simulator = simulator_of(dict.fromkeys(rows, [7.0] * 16), dict.fromkeys(rows, [5.05] * 16), "chunked")
    found = queues.cheapest(simulator, "chunked", goal(have=2.0), inf)
    assert (found.replica.units, found.replica.number) == (1, 0)


def test_pools_of_two_layouts_are_played_as_they_are_planned():
    """Prefill units of eight GPUs, each a group of its own, beside decode units of four."""
    unit, work = Unit.of("deepseek-v3", "gb300", 4), Workload(2000, 500)
    first = unit.resized(tp=1, dp=8, ep=8)
    case = Case(unit, work, SLA(2, 0.04), units=9, prefill=first)
    asked, one = case.of_architecture("disaggregated"), under(case)
    row = settings_row(64, 16 * 2000.0, 3, 3)
    rows = queues.trials(asked, "disaggregated", row)
    assert [tried.prefill_units for tried in rows] == [1, 2, 3, 4]
    assert {tried.chunk for tried in rows} == {16 * 2000}  # of a unit
    own = structs.replace(rows[0], chunk=row.chunk)
    rate = pools_rate(search_constants(asked), one, own)  # prompts are the slower part
    assert queues.full(asked, "disaggregated", rows[0], one) == pytest.approx(rate)
    assert queues.Replica(None, "disaggregated", asked, rows[2], 2).gpus == 3 * 8 + 3 * 4
    assert queues.smallest_gpus(case.problem, "disaggregated") == 8 + 4
    system = queues.system_for(asked, "disaggregated", rows[2])
    assert (system.prefill_units, system.decode_units, system.groups) == (3, 3, 8)
    assert system.budget == 2 * 2000  # of a group, which the engine is told, too
    assert settings(asked, "disaggregated", rows[2])["prefill --max-num-batched-tokens"] == 2 * 2000
    assert system.transfer == pytest.approx(8 * unit.model.kv_token("bf16") / (2 * case.problem.pool_bw))
    paces = [
        queues.prefill_pace(of.problem, of.unit.found(work), [1.0, 1.0, 0.0])
        for of in (case, replace(case, unit=first, prefill=None))
    ]
    pace, alone = (one.seconds(0, 0.0, 1.0, 2000, 2e6) for one in paces)  # its links are those of its own layout
    assert pace == pytest.approx(alone)


def test_a_request_whose_drafts_are_all_accepted_gets_them_and_one_token():
    assert queues.own_yield(3, 0.99, 1 - 1e-9) == 4
    assert queues.own_yield(3, -0.5, 1e-9) == 1
