from __future__ import annotations

from dataclasses import replace
from math import ceil

import numpy as np
import pytest
from grids import rest_long

import inference_math_planner as planner
from inference_math.catalogue.links import Link
from inference_math.catalogue.tiers import tier
from inference_math.optimiser import answers
from inference_math.optimiser.case import Case
from inference_math.optimiser.load import loaded
from inference_math.optimiser.starts import settings
from inference_math.simulate.engine import Request
from inference_math.unit import Unit, asked
from inference_math.unit.asked import target_of
from inference_math.unit.steps import kv_sent
from inference_math.workload import SLA, Trace, Workload
from inference_math_planner import Arrivals, fleet, laws
from inference_math_planner.answers.deployment import Plan
from inference_math_planner.fleets import queues, traffic
from inference_math_planner.fleets.mixes import mix

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
    case = replace(found.case, units=one.units, work=replace(found.case.work, lengths="geometric"))
    system = queues.system_for(case.asked, one.architecture, one.row)
    gaps, lengths = traffic.chances(seed, one.cv_arrivals)
    asked = {"gaps": gaps, "cv": one.cv_arrivals, "lengths": lengths, "like": [], "share": share}
    paces = [queues.pace_of(case.asked, *pair) for pair in found.pairs]
    fronts = [answers.under(case.asked, *pair)["front"] for pair in found.pairs]
    draws = [{"pace": pace, "front": front, "place": 0} for pace, front in zip(paces, fronts, strict=True)]
    return [queues.played(case.asked, system, draw, asked, rate, 1.0, 0.0) for draw in draws]


def test_a_fleet_is_as_many_replicas_as_the_rate_asks_for():
    one = fleet(FOUND, 40)
    assert one.gpus[0] == one.replicas * one.units * 2
    assert one.rate == 40
    assert one.kept == 1.0
    others = np.array([played(FOUND, one, 40 / one.replicas, seed=seed)[0] for seed in range(1, 13)])
    score, ttft, tpot = np.median(others, axis=0)
    assert score >= 0.97
    # One draw alone is sized by one stretch of arrivals, which others are less kind than; sixteen are not: see below.
    assert one.ttft[0] < ttft < 1.7 * one.ttft[0]
    assert one.tpot[0] == pytest.approx(tpot, rel=0.1)
    if one.replicas > 1:
        ((score, *_),) = played(FOUND, one, 1.1 * 40 / (one.replicas - 1), seed=5)
        assert score < 1


def test_a_fleet_holds_in_nine_of_ten_draws_with_other_arrivals(drawn):
    found, best = drawn
    for one in (best, *best.others):
        scores = [score for score, *_ in played(found, one, 40 / one.replicas, seed=3)]
        assert np.mean(np.array(scores) >= 0.95) >= 0.8, one.architecture
        assert one.gpus[1] <= one.gpus[0] <= one.gpus[2]
    # What its requests see is what they see with arrivals that it never saw.
    _, ttft, tpot = np.median(played(found, best, 40 / best.replicas, seed=3), axis=0)
    assert best.ttft[0] == pytest.approx(ttft, rel=0.1)
    assert best.tpot[0] == pytest.approx(tpot, rel=0.1)


@pytest.fixture(params=rest_long([3, 16]))
def draws(request, monkeypatch):
    """Fleets are sized by few draws, and by as many as usual in the long run."""
    monkeypatch.setattr(queues, "DRAWN", request.param)
    return request.param


@pytest.mark.usefixtures("draws")
def test_more_room_and_looser_limits_never_cost_gpus():
    """The same draws and arrivals stand for all that is asked, and all splits of all sizes are candidates."""
    room = [fleet(planner.plan(UNIT, WORK, SLA(0.4, 0.04), units=units), 40).gpus[0] for units in (2, 4, 8)]
    loose = [fleet(planner.plan(UNIT, WORK, SLA(0.4, tpot), units=4), 40).gpus[0] for tpot in (0.04, 0.1)]
    late = [fleet(planner.plan(UNIT, WORK, SLA(ttft, 0.04), units=4), 40).gpus[0] for ttft in (0.4, 0.6)]
    for gpus in (room, loose, late):
        assert gpus == sorted(gpus, reverse=True)


def test_no_smaller_fleet_keeps_the_promise():
    """All splits of all sizes, with every number of replicas that takes fewer GPUs, asked one by one."""
    found = planner.plan(UNIT, WORK, SLA(0.4, 0.04), units=4)
    best = fleet(found, 12, architecture="disaggregated")
    host = traffic._host(found, traffic._asked(12.0, 0.9, Arrivals(), 0)).asked
    for units in (2, 3, 4):
        for row in range(units - 1):
            for replicas in range(1, ceil(best.gpus[0] / UNIT.gpus / units)):
                assert not queues.keeps(host, "disaggregated", units, row, 12 / replicas, queues.DRAWN, queues.DRAWN)
    row = int(best.row["prefill_units"]) - 1
    assert queues.keeps(host, "disaggregated", best.units, row, 12 / best.replicas, queues.DRAWN, queues.DRAWN)


def test_chunks_are_tried_where_each_step_at_full_load_is_too_long():
    """Half a second for the first token, and 10 ms beside it: in chunks so short a prompt is late, whole it is not."""
    found = planner.plan(Unit.of("gpt-oss-120b", "h100-sxm"), Workload(2000, 500), SLA(0.5, 0.010), intervals=False)
    assert "a prompt takes longer" in found.hindered["chunked"]
    both = [fleet(found, 20, architecture=name) for name in ("chunked", "aggregated")]
    assert both[0].row["chunk"] == 2000
    scattered = replace(found.case, work=replace(found.case.work, lengths="geometric")).asked
    places = asked.places(scattered)
    run = queues.system_for(scattered, "chunked", both[0].row)
    assert both[0].settings["--max-num-seqs"] == both[0].plain["max_num_seqs"] == run["max_batch"] <= places
    assert both[0].settings["--max-num-batched-tokens"] > 2000
    assert both[0].kept >= 0.9
    # Decodes go on beside a prompt where they would stop for it: the same steps, and no more GPUs.
    assert both[0].gpus[0] <= both[1].gpus[0]


def test_chunks_are_tried_of_no_engine_that_mixes_none():
    unit = Unit.of("qwen3-32b", "h100-sxm", tp=2, engine="sglang", drafts=3)
    found = planner.plan(unit, Workload(2000, 500), SLA(1, 0.05), intervals=False)
    assert set(queues.candidates(found.case.asked, found.solved)) == {"aggregated", "disaggregated"}


@pytest.mark.usefixtures("draws")
def test_no_rival_of_a_fleet_takes_fewer_gpus():
    unit = Unit.of("gpt-oss-120b", "h200-sxm", weights="mxfp4")
    found = planner.plan(unit, Workload(2000, 500), SLA(1, 0.03), units=4)
    best = fleet(found, 40)
    assert all(best.gpus[0] <= one.gpus[0] for one in best.others)
    assert best.tie or best.best_in >= 0.5
    owned = planner.capacity(found, 20)
    assert all(queues.NARROW * owned.rate >= one.rate for one in owned.others)


def test_the_choice_is_that_of_the_rule(drawn):
    found, best = drawn
    each = (best, *best.others)
    assert best.gpus[0] == min(one.gpus[0] for one in each)
    assert best.expected_loss == min(one.expected_loss for one in each)
    assert sum(one.best_in for one in each) + best.none_in == pytest.approx(1)
    assert not best.tie
    assert best.best_in > 0.5
    sizes = [one.gpus[0] for one in best.others]
    assert sizes == sorted(sizes)
    assert best.usd_per_million == pytest.approx(best.gpus[0] * 2.5 / (40 * 170 * 3600) * 1e6)
    assert best.usd_per_million > found["usd_per_million"]  # which is that of full load


def test_other_seeds_stay_within_the_interval(drawn):
    found, best = drawn
    again = fleet(found, 40, arrivals=Arrivals(seed=4), architecture=best.architecture)
    assert best.gpus[1] <= again.gpus[0] <= best.gpus[2]
    assert again.ttft[0] == pytest.approx(best.ttft[0], rel=0.1)
    assert again.ttft != best.ttft


def test_more_traffic_and_stricter_promises_need_more():
    counts = [fleet(FOUND, rate).gpus[0] for rate in (5, 20, 80)]
    assert counts == sorted(counts)
    assert fleet(FOUND, 20, quantile=0.99).gpus[0] >= counts[1] >= fleet(FOUND, 20, quantile=0.5).gpus[0]


def test_means_are_another_promise_and_said_so():
    one = fleet(TIGHT, 40, quantile=None, architecture="aggregated")
    assert one.share is None
    assert one.ttft[0] <= 0.4
    assert one.tpot[0] <= 0.04
    assert "promise: mean TTFT and mean TPOT within the limits" in one.how
    assert "promise: 90% of the requests" in fleet(TIGHT, 40, architecture="aggregated").how
    fewer = played(TIGHT, one, 1.15 * 40 / max(one.replicas - 1, 1), share=0.0)
    assert fewer[0][0] < 1


def test_prompts_that_differ_need_more_than_equal_ones_of_the_same_mean():
    """A short prompt waits for the long one before it."""
    code = mix("azure-code")
    found = planner.plan(UNIT, Workload.from_trace(code), SLA(1.5, 0.05), intervals=False)
    for name in found.starts:
        # So much traffic that a replica more or less is not the whole difference.
        equal, recorded = (fleet(found, 600, architecture=name, arrivals=Arrivals(mix=like)) for like in (None, code))
        assert recorded.gpus[0] >= equal.gpus[0]
        if name != "disaggregated":  # whose prompts find another unit free
            assert recorded.gpus[0] > equal.gpus[0]
        assert (equal.played, recorded.played) == ("", "mix")


@pytest.mark.parametrize(
    ("traffic_", "more", "error", "words"),
    [
        (20, {"mix": [1]}, TypeError, "mix must be a Trace"),
        (Trace([5, 5], [5, 5], [0, 1]), {"mix": Trace([5], [5])}, TypeError, "mix must be a Trace, beside requests"),
        (20, {"mix": Trace([10**7], [5])}, ValueError, "a unit's KV cache holds"),
        (Trace([10**7] * 2, [5, 5], [0, 1]), {}, ValueError, "a unit's KV cache holds"),
        (20, {"architecture": "split"}, ValueError, "architecture must be one of"),
        (20, {"cv_arrivals": 11}, ValueError, "cv_arrivals must be a number from 0 to 10, not 11"),
        (20, {"seed": -1}, ValueError, "seed must be"),
        (-1, {}, ValueError, "traffic must be"),
        (Trace([10], [10]), {}, ValueError, "a trace with arrival times"),
        *((rate, {}, ValueError, r"traffic must be a number from 0\.001 to") for rate in (1e-9, 1e300, np.nan)),
    ],
)
def test_requests_that_cannot_be_played_are_refused(traffic_, more, error, words):
    with pytest.raises(error, match=words):
        fleet(FOUND, traffic_, **(more if "architecture" in more else {"arrivals": Arrivals(**more)}))


def test_no_replica_serves_more_than_at_full_load():
    """Runs are short: a queue that grows slowly would not be seen, were rates not bounded."""
    many = planner.capacity(FOUND, 16, architecture="disaggregated")
    costs = FOUND.solved["costs"][0]
    each = loaded(target_of(replace(FOUND.case, units=many.units).asked), costs, "disaggregated", many.row)
    assert many.rate <= 0.97 * many.replicas * many.units * each["rate"] * (1 + 1e-9)


def test_pools_have_the_size_that_needs_the_fewest_gpus():
    """Each size by itself, whether the search would have looked at it or not."""
    best, alone = fleet(TIGHT, 40, architecture="disaggregated"), {}
    for units in range(2, 9):
        found = planner.plan(UNIT, WORK, TIGHT.case.sla, units=units, intervals=False)
        alone[units] = fleet(found, 40, architecture="disaggregated").gpus[0]
    assert best.gpus[0] <= 1.25 * min(alone.values())  # sizes are told apart by fewer requests
    assert best.units <= 8
    served = [planner.capacity(TIGHT, gpus, architecture="disaggregated") for gpus in (8, 14, 36)]
    assert all(many.gpus[0] <= gpus for many, gpus in zip(served, (8, 14, 36), strict=True))
    assert served[0].rate < served[1].rate < served[2].rate
    assert served[1].units < 8  # which do not fit


def test_groups_of_attention_compute_a_prompt_each():
    """A pool of pipelines, or of groups that share requests, has as many prompts under way."""
    work, sla = Workload(2000, 200), SLA(2, 0.05)
    for layout in ({"pp": 2}, {"dp": 2, "ep": 4}):
        model = "qwen3-235b-a22b" if "dp" in layout else "llama-3-70b"
        case = Case(Unit.of(model, "h200-sxm", 2, "fp8", **layout), work, sla)
        row = Plan.of(case, 0).solved["each"]["disaggregated"][0]
        system = queues.system_for(case.asked, "disaggregated", row)
        assert (system["prefill_units"], system["groups"]) == (row["prefill_units"], 2)
        assert system["decode_units"] == 8 - row["prefill_units"]


def test_what_waits_for_a_store_waits_for_its_bytes():
    case = Case(UNIT, Workload(2000, 100, 0.5), SLA(2, 0.05), tier=tier("local_ssd"))
    system = queues.system_for(case.asked, "aggregated", Plan.of(case, 0).solved["each"]["aggregated"][0])
    assert system["load"] * 1000 == pytest.approx(UNIT.kv_bytes(1000) / case.read_bw)


def test_a_slow_link_bounds_what_pools_serve():
    """The rate into a decode unit is at most what its link carries, at full load and with queues."""
    slow = Link.of_bandwidth(0.5e9)  # of each GPU: a gigabyte per second of a unit
    found = planner.plan(UNIT, WORK, SLA(2.0, 0.2), link=slow, intervals=False)
    carried = 1e9 / UNIT.model.kv_bytes(2200, "fp8")
    row = found.compared.set_index("architecture").loc["disaggregated"]
    pools = row.prefill_units, 8 - row.prefill_units
    assert row.rate * 8 <= min(pools) * carried * (1 + 1e-9)
    free = planner.plan(UNIT, WORK, SLA(2.0, 0.2), intervals=False).compared.set_index("architecture")
    assert row.rate < 0.8 * free.rate["disaggregated"]
    one = fleet(found, 20, architecture="disaggregated")
    assert one.link_gb_s <= 1.0
    assert one.link_gb_s == pytest.approx(
        20 / one.replicas / (one.units - one.row["prefill_units"]) * UNIT.model.kv_bytes(2200, "fp8") / 1e9
    )


def test_what_gpus_serve_is_the_fleet_asked_the_other_way_round():
    many = planner.capacity(FOUND, 16)
    assert many.gpus[0] <= 16
    assert many.span[1] <= many.rate <= many.span[2]
    back = fleet(FOUND, 0.999 * many.rate, architecture=many.architecture)
    assert back.gpus[0] <= 1.3 * many.gpus[0]
    assert planner.capacity(FOUND, 32).rate > many.rate
    assert f"on {many.gpus[0]:.0f} GPUs: {many.architecture}" in many.headline
    with pytest.raises(ValueError, match="gpus must be at least 2, those of a replica, not 1"):
        planner.capacity(FOUND, 1)


def test_bursts_need_more():
    counts = [fleet(FOUND, 10, architecture="aggregated", arrivals=Arrivals(cv)).gpus[0] for cv in (0, 1, 4)]
    assert counts == sorted(counts)
    assert counts[2] > counts[0]


@pytest.mark.parametrize("cv", [0.0, 2.0, 4.0])
@pytest.mark.parametrize("replicas", [1.5, 10.0, 1000.0])
def test_bursts_that_are_dealt_out_by_chance_thin_out(cv, replicas):
    found = [queues.thinned(cv, (seed + 0.5) / 8, 3000, replicas) for seed in range(8)]
    assert np.mean(found, axis=1) == pytest.approx(1)
    each = queues.cv_at_each(cv, replicas)
    assert each == pytest.approx(float(laws.thinned_cv(cv_arrivals=cv, part=1 / replicas)))
    assert np.std(found) == pytest.approx(each, rel=0.1)
    # Times are independent: sums of many scatter as those do that the theorem of the mean has.
    sums = np.reshape(found, (-1, 20)).sum(axis=1)
    assert np.std(sums) == pytest.approx(each * 20**0.5, rel=0.15)


def test_who_shares_arrivals():
    assert queues.replicas_sharing(1.0, 40, 0, 2, 4) == 1.0  # at random in any case
    assert queues.replicas_sharing(2.0, 40, 0, 2, 4) == 10
    assert queues.replicas_sharing(2.0, 40, 0, 2, 50) == 1.0
    assert queues.replicas_sharing(2.0, 0, 9, 2, 4) == 4
    assert fleet(FOUND, np.float64(10), architecture="aggregated", arrivals=Arrivals(2)).rate == 10


def test_a_large_fleet_hardly_sees_bursts():
    calm, bursty = (fleet(FOUND, 400, architecture="aggregated", arrivals=Arrivals(cv)).gpus[0] for cv in (1, 4))
    assert 0.95 * calm < bursty < 1.3 * calm  # sixteen draws


def test_a_store_needs_fewer():
    stored = planner.plan(UNIT, Workload(2200, 170, 0.9), FOUND.case.sla, tier=tier("local_ssd"), intervals=False)
    assert fleet(stored, 40).gpus[0] < fleet(FOUND, 40).gpus[0]


def test_a_trace_is_dealt_out_to_the_replicas():
    rng = np.random.default_rng(0)
    arrival = np.cumsum(rng.exponential(1 / 20, 2000))
    trace = Trace(rng.integers(500, 3000, 2000), rng.geometric(1 / 150, 2000), arrival=arrival)
    found = planner.plan(UNIT, Workload.from_trace(trace), SLA(ttft=2.0, tpot=0.060), intervals=False)
    many = fleet(found, trace)
    assert many.rate == pytest.approx(20, rel=0.1)
    assert many.played == "trace"
    part = traffic._part(trace, 20 / many.replicas)
    assert len(part) == pytest.approx(2000 / many.replicas, abs=1)
    assert [one.arrival for one in part] == arrival[:: many.replicas].tolist()
    rated = fleet(found, 20, arrivals=Arrivals(mix=trace))
    assert many.gpus[0] == pytest.approx(rated.gpus[0], rel=0.5)


def test_the_stored_share_of_a_trace_is_that_of_its_tokens():
    trace = Trace([1000, 3000], [10, 30], alpha=[0.0, 0.8])
    work = Workload.from_trace(trace)
    assert work.alpha == pytest.approx(2400 / 4000)
    assert work.lengths == "geometric"


def test_another_rate_plays_what_was_played_no_more(monkeypatch):
    """What a replica does is kept: the next traffic asks what is new; another promise plays anew."""
    found = planner.plan(UNIT, Workload(500, 50), SLA(1.0, 0.05), units=2, intervals=False)
    fleet(found, 40)
    count, plays = [], queues.played
    monkeypatch.setattr(queues, "played", lambda *given: count.append(1) or plays(*given))
    fleet(found, 40)
    assert not count
    fleet(found, 80)
    again = len(count)
    count.clear()
    fleet(found, 80, quantile=0.8)
    assert again < len(count)


@pytest.mark.usefixtures("few_draws")
def test_processes_find_the_same():
    found = planner.plan(UNIT, WORK, SLA(0.4, 0.04), units=3)
    best = fleet(found, 40)
    traffic._standings.cache_clear()
    again = fleet(found, 40, workers=2)
    assert (again.architecture, again.gpus, again.ttft) == (best.architecture, best.gpus, best.ttft)


def test_what_no_fleet_can_do():
    impossible = planner.plan(UNIT, WORK, SLA(0.1, 0.01), intervals=False)
    with pytest.raises(ValueError, match="found must be a plan that some architecture meets"):
        fleet(impossible, 1)
    with pytest.raises(
        ValueError, match=r"traffic must .*100% of the requests.*1 of 1 draw; .*, chunked keeps it in 0;"
    ):
        fleet(TIGHT, 40, quantile=1.0, architecture="chunked", arrivals=Arrivals(mix=mix("azure-code")))


@pytest.mark.parametrize("alpha", [0.0, 0.9, 1.0])
def test_a_simulated_chunk_is_that_of_the_settings(alpha):
    """Of each prompt at least the last token is computed, in the engine and in the simulator."""
    case = Case(Unit.of("llama-3-8b", "h100-sxm"), Workload(200, 20, alpha), SLA(1.0, 0.05))
    row = Plan.of(case, 0).solved["each"]["chunked"][0]
    system, told = queues.system_for(case.asked, "chunked", row), settings(case.asked, "chunked", row)
    assert system["budget"] == told["--max-num-batched-tokens"]
    assert system["max_batch"] == told["--max-num-seqs"]
    assert system["budget"] >= system["max_batch"]


def test_what_pools_send_is_one_copy_of_the_cache():
    for name in ("llama-3-70b", "gpt-oss-120b", "qwen3.5-397b-a17b"):
        unit = Unit.of(name, "b200", 8)
        assert kv_sent(unit.numbers, 3000) == pytest.approx(unit.model.kv_bytes(3000, unit.kv))


@pytest.mark.parametrize("architecture", ["aggregated", "chunked", "disaggregated"])
def test_what_is_simulated_of_drafts_is_what_is_planned(architecture):
    unit = Unit.of("llama-3-70b", "h100-sxm", 2, "fp8", drafts=3, accepted=0.6)
    case = Case(unit, Workload(1000, 200), SLA(1, 0.02), units=4)
    found = Plan.of(case, 0)
    row = found.solved["each"][architecture][0]
    system = queues.system_for(case.asked, architecture, row)
    assert system["gives"] == pytest.approx(1 + 0.6 + 0.36 + 0.216)
    assert system["brings"] == 4
    costs = found.solved["costs"][0]
    assert queues.full(case.asked, architecture, row, costs) == pytest.approx(row["rate"] * case.units, rel=1e-6)
    if architecture != "disaggregated":
        told = settings(case.asked, architecture, row)
        assert system["budget"] == told["--max-num-batched-tokens"]


def test_requests_that_draft_differ_in_what_is_accepted_and_take_as_many_steps_together():
    case = Case(Unit.of("llama-3-70b", "h100-sxm", 2, "fp8", drafts=3, accepted=0.8), Workload(1000, 200), SLA(1, 0.02))
    chances = traffic.chances(0, 1.0)[1]

    def yields(place):
        requests = [Request(i, 0.0, 1000, 200, 0) for i in range(540)]
        queues.differ(case.asked, requests, chances, place)
        return np.array([one.gives for one in requests])

    found = yields(3)
    assert 1 / np.mean(1 / found) == pytest.approx(case.unit.tokens_a_step, rel=0.005)
    assert found.max() <= 4
    assert found.min() < 0.8 * case.unit.tokens_a_step
    assert not np.array_equal(found, yields(4))
    # Of one draft a step gives 1 + its chance.
    case = replace(case, unit=case.unit.resized(drafts=1, accepted=0.5))
    assert np.std(yields(3)) == pytest.approx(0.15, rel=0.1)
    plain = Request(0, 0.0, 10, 10, 0)
    queues.differ(replace(case, unit=case.unit.resized(drafts=0)).asked, [plain], chances, 0)
    assert plain.gives == 0


@pytest.mark.parametrize("accepted", [0.0, 0.1, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("drafts", [1, 3, 8])
def test_no_step_gives_less_than_a_token_or_more_than_all_drafts(drafts, accepted):
    unit = Unit.of("llama-3-70b", "h100-sxm", 2, "fp8", drafts=drafts, accepted=accepted)
    requests = [Request(i, 0.0, 1000, 200, 0) for i in range(540)]
    queues.differ(Case(unit, Workload(1000, 200), SLA(1, 0.02)).asked, requests, traffic.chances(0, 1.0)[1], 2)
    found = np.array([one.gives for one in requests])
    assert found.min() >= 1
    assert found.max() <= drafts + 1
    assert 1 / np.mean(1 / found) == pytest.approx(unit.tokens_a_step, rel=0.01)


def test_a_promise_of_requests_that_draft_is_kept_by_fewer_than_if_they_were_alike(monkeypatch):
    unit = Unit.of("llama-3-70b", "h100-sxm", 2, "fp8", "fp8", drafts=3, accepted=0.8)
    case = Case(unit, Workload(1000, 400), SLA(2.0, 0.02), units=4)
    system = queues.system_for(queues.of_units(case.asked, 1), "chunked", Plan.of(case, 0).solved["each"]["chunked"][0])
    gaps, lengths = traffic.chances(0, 1.0)
    asked = {"gaps": gaps, "cv": 1.0, "lengths": lengths, "like": [], "share": 0.9}
    pace = queues.pace_of(case.asked, *case.pairs(0)[0])

    def told(sd):
        monkeypatch.setattr(queues, "ACCEPTED_SD", sd)
        return queues.played(case.asked, system, {"pace": pace, "front": 0.0, "place": 0}, asked, 5.5, 1.0, 0.0)

    (alike, _, even), (differing, _, uneven) = told(0.0), told(0.15)
    assert alike > differing > 0.7 * alike
    assert uneven == pytest.approx(even, rel=0.05)  # the mean hardly moves


def test_each_draw_has_arrivals_of_its_own_with_the_mean_that_was_asked_for():
    gaps, lengths = traffic.chances(0, 1.0)
    drawn = [queues.shuffled(gaps, place, 540, 1.0) for place in range(16)]
    assert np.mean(drawn, axis=1) == pytest.approx(1)
    correlations = np.corrcoef(drawn)[np.triu_indices(16, 1)]
    assert abs(correlations).max() < 0.3
    for place in range(16):
        own = queues.shuffled(lengths, place, len(lengths), 0.0)
        assert sorted(own) == sorted(lengths)


def test_chunks_are_not_short_of_places_where_only_a_request_s_mean_must_keep_the_limit():
    """A budget of a whole prompt is plain serving: it takes no more GPUs, though at full load each step must hold."""
    long = planner.plan(UNIT, Workload(2200, 2000), SLA(ttft=0.4, tpot=0.040), intervals=False)
    chunks, plain = (fleet(long, 10, architecture=name) for name in ("chunked", "aggregated"))
    assert chunks.gpus[0] <= plain.gpus[0]
    settings = long.solved["settings"]["chunked"]
    rows = queues.trials(long.case.asked, "chunked", settings)
    assert {row["batch"] for row in rows} == {settings["batch"], UNIT.places(long.case.work)}
    # Their answers scatter, whatever those of the plan do: fewer fit at once.
    fits = UNIT.places(replace(long.case.work, lengths="geometric"))
    assert fits < 0.8 * UNIT.places(long.case.work)
    assert plain.row["batch"] <= fits
    assert chunks.settings["--max-num-seqs"] <= fits
