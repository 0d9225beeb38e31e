from __future__ import annotations

from dataclasses import replace
from math import ceil

import numpy as np
import pytest
from grids import rest_long
from made import Made
from msgspec import structs

import inference_math_planner as planner
from inference_math import theory
from inference_math.catalogue.links import Link
from inference_math.catalogue.tiers import tier
from inference_math.evidence.numerals import digits
from inference_math.optimiser import answers
from inference_math.optimiser.case import Case
from inference_math.optimiser.choice import LIKELY
from inference_math.optimiser.starts import settings
from inference_math.simulate.engine import Request
from inference_math.unit import Unit, problem
from inference_math.unit.problem import of_units
from inference_math.unit.steps import kv_sent
from inference_math.workload import SLA, Trace, Workload
from inference_math_planner import Arrivals, fleet
from inference_math_planner.answers.deployment import Plan
from inference_math_planner.fleets import queues, traffic
from inference_math_planner.fleets.mixes import mix
from inference_math_planner.fleets.types import FleetGoal, RequestSource

UNIT = Unit.of("llama-3-70b", "h100-sxm", tp=2, weights="fp8", kv="fp8")
WORK = Workload(2200, 170)
FOUND = planner.plan(UNIT, WORK, SLA(ttft=2.0, tpot=0.050), intervals=False)
TIGHT = planner.plan(UNIT, WORK, SLA(ttft=0.4, tpot=0.040), price=2.5, intervals=False)


@pytest.fixture(scope="module")
def drawn():
    """Return a plan with draws, and its fleet."""
    found = planner.plan(UNIT, WORK, SLA(0.4, 0.04), price=2.5)
    return found, fleet(found, 40)


def played(found, one, rate, seed=0, share=0.9):
    """Return what a replica's requests see in each draw, played anew: other arrivals than those it was sized by."""
    case = replace(found.case, units=one.units, work=structs.replace(found.case.work, lengths="geometric")).problem
    paces = [queues.pace_of(case, *pair) for pair in found.pairs]
    later = case.handover if one.architecture == "disaggregated" else 0.0
    fronts = [answers.under(case, *pair).front + later for pair in found.pairs]
    each = zip(paces, fronts, strict=True)
    draws = [Made(pace=pace, prefill=pace, front=front) for pace, front in each]
    return seen(case, one.architecture, one.row, draws, rate, seed, share)


def seen(case, architecture, row, draws, rate, seed=0, share=0.9):
    """Return what a replica's requests see in some draws, with the arrivals of the first."""
    gaps, lengths = traffic.chances(seed, 1.0)
    source = RequestSource(
        gaps=gaps, cv=1.0, lengths=lengths, like=[], trace=[], share=share, goal=FleetGoal(traffic=0.0, have=0.0)
    )
    told = []
    for draw in draws:
        own = Made(draws=[draw])
        simulator = Made(source=source, drawn={architecture: own}, pause=lambda: None)
        simulator["arrivals"] = lambda place, count: queues.arriving(source, case.work, place, count)
        told.append(queues.Replica(simulator, architecture, case, row, 0).simulate(0, rate, False))
    return told


def row_of(case, architecture):
    """Return a plan's row of an architecture, at the calibration's middle."""
    return Plan.of(case, 0).solved.each[architecture][0]


def test_a_fleet_holds_in_nine_of_ten_draws_with_other_arrivals(drawn):
    found, best = drawn
    for one in (best, *best.others):
        scores = [score for score, *_ in played(found, one, 40 / one.replicas, seed=3)]
        assert np.mean(np.array(scores) >= 0.95) >= 0.8, one.architecture
        assert one.gpus[1] <= one.gpus[0] == one.replicas * one.units * 2 <= one.gpus[2]
    # What its requests see is what they see with arrivals that it never saw.
    _, ttft, tpot = np.median(played(found, best, 40 / best.replicas, seed=3), axis=0)
    assert best.ttft[0] == pytest.approx(ttft, rel=0.1)
    assert best.tpot[0] == pytest.approx(tpot, rel=0.1)


@pytest.fixture(params=rest_long([5, 16]))
def draws(request, monkeypatch):
    """Fleets are sized by few draws, and by as many as usual in the long run."""
    monkeypatch.setattr(queues, "DRAWN", request.param)
    return request.param


@pytest.mark.usefixtures("draws")
def test_more_room_and_looser_limits_never_cost_gpus():
    """The same draws and arrivals stand for all that is asked, and all splits of all sizes are candidates."""

    def gpus(ttft=0.4, tpot=0.04, units=4):
        return fleet(planner.plan(UNIT, WORK, SLA(ttft, tpot), units=units), 40).gpus[0]

    room = [gpus(units=units) for units in (2, 4, 8)]
    assert room == sorted(room, reverse=True)
    assert gpus(tpot=0.1) <= room[1]
    assert gpus(ttft=0.6) <= room[1]


def test_no_smaller_fleet_keeps_the_promise():
    """All splits of all sizes, with every number of replicas that takes fewer GPUs, asked one by one."""
    found = planner.plan(UNIT, WORK, SLA(0.4, 0.04), units=4)
    best = fleet(found, 12, architecture="disaggregated")
    simulator = traffic._simulator(found, traffic.fleet_problem(12.0, 0.9, Arrivals(), 0))

    def kept(units, row, replicas):
        return simulator.replicas("disaggregated", units)[row].keeps(12 / replicas, queues.DRAWN)

    for units in (2, 3, 4):
        for row in range(units - 1):
            assert not any(kept(units, row, few) for few in range(1, ceil(best.gpus[0] / UNIT.gpus / units)))
    assert kept(best.units, int(best.row.prefill_units) - 1, best.replicas)


def test_chunks_are_tried_where_each_step_at_full_load_is_too_long():
    """Half a second for the first token, and 10 ms beside it: in chunks so short a prompt is late, whole it is not."""
    found = planner.plan(Unit.of("gpt-oss-120b", "h100-sxm"), Workload(2000, 500), SLA(0.5, 0.010), intervals=False)
    assert "a prompt takes longer" in found.hindered["chunked"]
    chunked, aggregated = (fleet(found, 20, architecture=name) for name in ("chunked", "aggregated"))
    assert chunked.row.chunk == 2000
    scattered = replace(found.case, work=structs.replace(found.case.work, lengths="geometric")).problem
    run = queues.system_for(scattered, "chunked", chunked.row)
    assert chunked.settings["--max-num-seqs"] == chunked.plain["max_num_seqs"] == run.max_batch
    assert chunked.settings["--max-num-seqs"] <= problem.kv_seqs(scattered)
    assert chunked.settings["--max-num-batched-tokens"] > 2000
    assert chunked.kept >= 0.9
    # Decodes go on beside a prompt where they would stop for it: the same steps, and no more GPUs.
    assert chunked.gpus[0] <= aggregated.gpus[0]


def test_chunks_are_tried_of_no_engine_that_mixes_none():
    unit = Unit.of("qwen3-32b", "h100-sxm", tp=2, engine="sglang", drafts=3)
    found = planner.plan(unit, Workload(2000, 500), SLA(1, 0.05), intervals=False)
    assert set(queues.fleet_settings(found.case.problem, found.solved.settings)) == {"aggregated", "disaggregated"}


def test_the_choice_is_that_of_the_rule(drawn):
    found, best = drawn
    each = (best, *best.others)
    sizes = [one.gpus[0] for one in each]
    assert sizes == sorted(sizes)
    assert best.loss == min(one.loss for one in each)
    assert sum(one.best_in for one in each) + best.none_in == pytest.approx(1)
    assert best.best_in > 0.5
    assert best.tie == (best.best_in < LIKELY or best.others[0].gpus[0] == sizes[0])
    assert best.usd_per_million == pytest.approx(best.gpus[0] * 2.5 / (40 * 170 * 3600) * 1e6)
    assert best.usd_per_million > found["usd_per_million"]  # which is that of full load


def test_other_seeds_stay_within_the_interval(drawn):
    found, best = drawn
    again = fleet(found, 40, arrivals=Arrivals(seed=4), architecture=best.architecture)
    assert best.gpus[1] <= again.gpus[0] <= best.gpus[2]
    assert again.ttft[0] == pytest.approx(best.ttft[0], rel=0.1)
    assert again.ttft != best.ttft


def test_more_traffic_and_stricter_promises_need_more():
    usual = fleet(FOUND, 20).gpus[0]
    assert fleet(FOUND, 5).gpus[0] <= usual <= fleet(FOUND, 20, quantile=0.99).gpus[0]


def test_means_are_another_promise():
    one = fleet(TIGHT, 40, quantile=None, architecture="aggregated")
    assert one.share is None
    assert one.ttft[0] <= 0.4
    assert one.tpot[0] <= 0.04
    fewer = played(TIGHT, one, 1.15 * 40 / max(one.replicas - 1, 1), share=0.0)
    assert fewer[0][0] < 1


@pytest.mark.parametrize("name", ["aggregated", "chunked"])  # pools have other units for short prompts
def test_prompts_that_differ_need_more_than_equal_ones_of_the_same_mean(name):
    """A short prompt waits for the long one before it."""
    code = mix("azure-code")
    found = planner.plan(UNIT, Workload.from_trace(code), SLA(1.5, 0.05), intervals=False)
    # So much traffic that a replica more or less is not the whole difference.
    equal, recorded = (fleet(found, 600, architecture=name, arrivals=Arrivals(mix=like)) for like in (None, code))
    assert recorded.gpus[0] > equal.gpus[0]
    assert (equal.played, recorded.played) == ("", "mix")


def test_a_smaller_cache_takes_no_more_gpus_under_the_same_draws(monkeypatch):
    """Of two precisions other draws stand for all, of which a slower one may cost a unit (12 GPUs with 16 bits, 14)."""
    monkeypatch.setattr(queues, "representative", lambda asked, each: list(range(0, len(each), 8)))
    code = mix("azure-code")
    pools = []
    for kv in ("bf16", "fp8"):
        unit = Unit.of("llama-3-70b", "h100-sxm", 2, "fp8", kv)
        found = planner.plan(unit, Workload.from_trace(code), SLA(1.0, 0.04))
        pools.append(fleet(found, 20, architecture="disaggregated", arrivals=Arrivals(mix=code)).gpus[0])
    assert pools[1] <= pools[0]


@pytest.mark.parametrize(
    ("traffic_", "more", "error", "words"),
    [
        (20, {"mix": [1]}, TypeError, "mix must be a Trace"),
        (Trace([5, 5], [5, 5], [0, 1]), {"mix": Trace([5], [5])}, TypeError, "mix must be a Trace, beside requests"),
        (Trace([10**7] * 2, [5, 5], [0, 1]), {}, ValueError, "a unit's KV cache holds"),
        (20, {"architecture": "split"}, ValueError, "architecture must be one of"),
        (20, {"cv_arrivals": 11}, ValueError, "cv_arrivals must be a number from 0 to 10, not 11"),
        (20, {"seed": -1}, ValueError, "seed must be"),
        (Trace([10], [10]), {}, ValueError, "a trace with arrival times"),
        (1e-9, {}, ValueError, r"traffic must be a number from 0\.001 to"),
    ],
)
def test_requests_that_cannot_be_played_are_refused(traffic_, more, error, words):
    with pytest.raises(error, match=words):
        fleet(FOUND, traffic_, **(more if "architecture" in more else {"arrivals": Arrivals(**more)}))


@pytest.mark.parametrize(("model", "layout"), [("llama-3-70b", {"pp": 2}), ("qwen3-235b-a22b", {"dp": 2, "ep": 4})])
def test_groups_of_attention_compute_a_prompt_each(model, layout):
    """A pool of pipelines, or of groups that share requests, has as many prompts under way."""
    case = Case(Unit.of(model, "h200-sxm", 2, "fp8", **layout), Workload(2000, 200), SLA(2, 0.05))
    row = row_of(case, "disaggregated")
    system = queues.system_for(case.problem, "disaggregated", row)
    assert (system.prefill_units, system.groups) == (row.prefill_units, 2)
    assert system.decode_units == row.decode_units <= 8 - row.prefill_units


def test_what_waits_for_a_store_waits_for_its_bytes():
    case = Case(UNIT, Workload(2000, 100, 0.5), SLA(2, 0.05), tier=tier("local_ssd"))
    system = queues.system_for(case.problem, "aggregated", row_of(case, "aggregated"))
    assert system.load * 1000 == pytest.approx(UNIT.kv_bytes(1000 + 1100) / case.problem.read_bw)  # read, and written


def test_a_slow_link_bounds_what_pools_serve():
    """The rate into a decode unit is at most what its link carries, at full load and with queues."""
    slow = Link.of_bandwidth(0.5e9)  # of each GPU: a gigabyte per second of a unit
    found, free = (planner.plan(UNIT, WORK, SLA(2.0, 0.2), link=link, intervals=False) for link in (slow, None))
    row, loose = (one.compared.set_index("architecture").loc["disaggregated"] for one in (found, free))
    sent = UNIT.model.kv_bytes(2200, "fp8")
    both = row.prefill_units + row.decode_units
    assert row.rate * both <= min(row.prefill_units, row.decode_units) * 1e9 / sent * (1 + 1e-9)
    assert row.rate < 0.8 * loose.rate
    one = fleet(found, 20, architecture="disaggregated")
    assert one.link_gb_s <= 1.0
    decoding = one.replicas * one.row.decode_units
    assert one.link_gb_s == pytest.approx(20 / decoding * sent / 1e9)


def test_what_gpus_serve_is_the_fleet_asked_the_other_way_round():
    many = planner.capacity(FOUND, 16)
    assert many.gpus[0] <= 16
    assert many.span[1] <= many.rate <= many.span[2]
    assert all(queues.NARROW * many.rate >= one.rate for one in many.others)
    assert len(many.others) == 2
    assert many.others[0].rate >= many.others[1].rate
    back = fleet(FOUND, 0.999 * many.rate, architecture=many.architecture)
    assert back.gpus[0] <= 1.3 * many.gpus[0]
    assert planner.capacity(FOUND, 32).rate > many.rate
    assert f"{many.gpus[0]:.0f} H100 GPUs serve {digits(many.rate)} requests/s" in str(many)
    with pytest.raises(ValueError, match="a replica takes 2 GPUs or more, of which there are 1"):
        planner.capacity(FOUND, 1)


def test_bursts_need_more_but_of_a_large_fleet():
    def gpus(rate, cv):
        return fleet(FOUND, rate, architecture="aggregated", arrivals=Arrivals(cv)).gpus[0]

    assert gpus(10, 0) <= gpus(10, 1) < gpus(10, 4)
    assert 0.95 * gpus(400, 1) < gpus(400, 4) < 1.3 * gpus(400, 1)  # sixteen draws


@pytest.mark.parametrize(("cv", "replicas"), [(0.0, 10.0), (2.0, 1.5), (4.0, 1.5), (4.0, 10.0), (4.0, 1000.0)])
def test_bursts_that_are_dealt_out_by_chance_thin_out(cv, replicas):
    found = [queues.thinned(cv, (seed + 0.5) / 8, 3000, replicas) for seed in range(8)]
    assert np.mean(found, axis=1) == pytest.approx(1)
    each = queues.cv_at_each(cv, replicas)
    assert each == pytest.approx(float(theory.thinned_cv(cv_arrivals=cv, part=1 / replicas)))
    assert np.std(found) == pytest.approx(each, rel=0.1)
    # Times are independent: sums of many scatter as those do that the theorem of the mean has.
    sums = np.reshape(found, (-1, 20)).sum(axis=1)
    assert np.std(sums) == pytest.approx(each * 20**0.5, rel=0.15)


def test_who_shares_arrivals():
    much, there = FleetGoal(traffic=40.0, have=0.0), FleetGoal(traffic=0.0, have=9.0)
    assert queues.replicas_sharing(1.0, much, 2, 4) == 1.0  # at random in any case
    assert queues.replicas_sharing(2.0, much, 2, 4) == 10
    assert queues.replicas_sharing(2.0, much, 2, 50) == 1.0
    assert queues.replicas_sharing(2.0, there, 2, 4) == 4
    assert fleet(FOUND, np.float64(10), architecture="aggregated", arrivals=Arrivals(2)).rate == 10


def test_a_store_needs_fewer():
    stored = planner.plan(UNIT, Workload(2200, 170, 0.9), FOUND.case.sla, tier=tier("local_ssd"), intervals=False)
    assert fleet(stored, 40).gpus[0] < fleet(FOUND, 40).gpus[0]


def test_a_trace_is_dealt_out_to_the_replicas():
    rng = np.random.default_rng(0)
    arrival = np.cumsum(rng.exponential(1 / 20, 2000))
    trace = Trace(rng.integers(500, 3000, 2000), rng.geometric(1 / 150, 2000), arrival=arrival)
    found = planner.plan(UNIT, Workload.from_trace(trace), SLA(ttft=2.0, tpot=0.060), intervals=False)
    many, rated = fleet(found, trace), fleet(found, 20, arrivals=Arrivals(mix=trace))
    assert many.rate == pytest.approx(20, rel=0.1)
    assert many.played == "trace"
    assert many.gpus[0] == pytest.approx(rated.gpus[0], rel=0.5)
    part = queues.dealt(traffic.source_of(traffic.fleet_problem(trace, 0.9, Arrivals(), 0)).trace, many.replicas)
    assert [one.arrival for one in part] == arrival[:: many.replicas].tolist()


def test_the_stored_share_of_a_trace_is_that_of_its_tokens():
    work = Workload.from_trace(Trace([1000, 3000], [10, 30], alpha=[0.0, 0.8]))
    assert work.alpha == pytest.approx(2400 / 4000)
    assert work.lengths == "geometric"


def test_another_rate_plays_what_was_played_no_more(monkeypatch):
    """What a replica does is kept: the next traffic asks what is new; another promise plays anew."""
    found, count, plays = planner.plan(UNIT, Workload(500, 50), SLA(1.0, 0.05), units=2, intervals=False), [], []
    simulate = queues.goodput
    monkeypatch.setattr(queues, "goodput", lambda *given: plays.append(1) or simulate(*given))
    for rate, share in ((40, 0.9), (40, 0.9), (80, 0.9), (80, 0.8)):
        plays.clear()
        fleet(found, rate, quantile=share)
        count.append(len(plays))
    assert count[1] == 0 < count[2] < count[3]


@pytest.mark.usefixtures("few_draws")
def test_processes_find_the_same():
    found = planner.plan(UNIT, WORK, SLA(0.4, 0.04), units=3)
    best = fleet(found, 40)
    traffic._standings.cache_clear()
    again = fleet(found, 40, workers=2)
    assert (again.architecture, again.gpus, again.ttft) == (best.architecture, best.gpus, best.ttft)


def test_what_no_fleet_can_do():
    with pytest.raises(ValueError, match="found must be a plan that some architecture meets"):
        fleet(planner.plan(UNIT, WORK, SLA(0.1, 0.01), intervals=False), 1)
    told = r"traffic must .*100% of the requests.*1 of 1 draw; .*, chunked keeps it in 0;"
    with pytest.raises(ValueError, match=told):
        fleet(TIGHT, 40, quantile=1.0, architecture="chunked", arrivals=Arrivals(mix=mix("azure-code")))


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_a_simulated_chunk_is_that_of_the_settings(alpha):
    """Of each prompt at least the last token is computed, in the engine and in the simulator."""
    case = Case(Unit.of("llama-3-8b", "h100-sxm"), Workload(200, 20, alpha), SLA(1.0, 0.05))
    row = row_of(case, "chunked")
    system, told = queues.system_for(case.problem, "chunked", row), settings(case.problem, "chunked", row)
    assert system.budget == told["--max-num-batched-tokens"] >= system.max_batch == told["--max-num-seqs"]


def test_what_pools_send_is_one_copy_of_the_cache():
    for name in ("llama-3-70b", "gpt-oss-120b", "qwen3.5-397b-a17b"):
        unit = Unit.of(name, "b200", 8)
        assert kv_sent(unit.numbers, 3000) == pytest.approx(unit.model.kv_bytes(3000, unit.kv))


@pytest.mark.parametrize("architecture", ["aggregated", "chunked", "disaggregated"])
def test_what_is_simulated_of_drafts_is_what_is_planned(architecture):
    unit = Unit.of("llama-3-70b", "h100-sxm", 2, "fp8", drafts=3, accepted=0.6)
    case = Case(unit, Workload(1000, 200), SLA(1, 0.02), units=4)
    found, row = Plan.of(case, 0), row_of(case, architecture)
    system = queues.system_for(case.problem, architecture, row)
    assert (system.accepted_per_step, system.verified_per_step) == (pytest.approx(1 + 0.6 + 0.36 + 0.216), 4)
    served = queues.full(case.problem, architecture, row, found.solved.costs[0])
    units = row.prefill_units + row.decode_units if architecture == "disaggregated" else case.units
    assert served == pytest.approx(row.rate * units, rel=1e-6)
    if architecture != "disaggregated":
        assert system.budget == settings(case.problem, architecture, row)["--max-num-batched-tokens"]


def yields_of(drafts, accepted, place=3):
    """Return what steps give each of 540 requests that draft, and what they give in the mean."""
    unit = Unit.of("llama-3-70b", "h100-sxm", 2, "fp8", drafts=drafts, accepted=accepted)
    requests = [Request(i, 0.0, 1000, 200, 0) for i in range(540)]
    queues.differ(Case(unit, Workload(1000, 200), SLA(1, 0.02)).problem, requests, traffic.chances(0, 1.0)[1], place)
    return np.array([one.accepted_per_step for one in requests]), unit.tokens_a_step


@pytest.mark.parametrize(("drafts", "accepted"), [(1, 0.0), (1, 0.5), (3, 0.8), (8, 0.1), (8, 1.0)])
def test_requests_that_draft_take_as_many_steps_together_as_if_they_were_alike(drafts, accepted):
    found, mean = yields_of(drafts, accepted)
    assert 1 <= found.min() <= found.max() <= drafts + 1
    assert 1 / np.mean(1 / found) == pytest.approx(mean, rel=0.01)


def test_requests_that_draft_differ_in_what_is_accepted():
    found, mean = yields_of(3, 0.8)
    assert found.min() < 0.8 * mean
    assert not np.array_equal(found, yields_of(3, 0.8, place=4)[0])
    assert np.std(yields_of(1, 0.5)[0]) == pytest.approx(0.15, rel=0.1)  # of one draft a step gives 1 + its chance
    assert set(yields_of(0, 0.0)[0]) == {0}


def test_a_promise_of_requests_that_draft_is_kept_by_fewer_than_if_they_were_alike(monkeypatch):
    unit = Unit.of("llama-3-70b", "h100-sxm", 2, "fp8", "fp8", drafts=3, accepted=0.8)
    case = Case(unit, Workload(1000, 400), SLA(2.0, 0.02), units=4)
    pace = queues.pace_of(case.problem, *case.pairs(0)[0])
    draw, told = Made(pace=pace, prefill=pace, front=0.0), []
    for sd in (0.0, 0.15):
        monkeypatch.setattr(queues, "ACCEPTED_SD", sd)
        told += seen(of_units(case.problem, 1), "chunked", row_of(case, "chunked"), [draw], 5.5)
    (alike, _, even), (differing, _, uneven) = told
    assert alike > differing > 0.7 * alike
    assert uneven == pytest.approx(even, rel=0.05)  # the mean hardly moves


def test_each_draw_has_arrivals_of_its_own_with_the_mean_that_was_asked_for():
    gaps, lengths = traffic.chances(0, 1.0)
    drawn = [queues.shuffled(gaps, place, 540, 1.0) for place in range(16)]
    assert np.mean(drawn, axis=1) == pytest.approx(1)
    assert abs(np.corrcoef(drawn)[np.triu_indices(16, 1)]).max() < 0.3
    for place in range(16):
        assert sorted(queues.shuffled(lengths, place, len(lengths), 0.0)) == sorted(lengths)


def test_chunks_are_not_short_of_places_where_only_a_request_s_mean_must_keep_the_limit():
    """A budget of a whole prompt is plain serving, though at full load each step must hold."""
    long = planner.plan(UNIT, Workload(2200, 2000), SLA(ttft=0.4, tpot=0.040), intervals=False)
    row = long.solved.settings["chunked"]
    batches = {one.batch for one in queues.trials(long.case.problem, "chunked", row)}
    assert batches == {row.batch, UNIT.places(long.case.work)}
    # Their answers scatter, whatever those of the plan do: fewer fit at once.
    fits = UNIT.places(structs.replace(long.case.work, lengths="geometric"))
    assert fits < 0.8 * UNIT.places(long.case.work)
    assert fleet(long, 10, architecture="chunked").settings["--max-num-seqs"] <= fits
