from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from inference_math import perf, planner
from inference_math.catalogue.tiers import tier
from inference_math.perf.search import pooled
from inference_math.perf.steps import kv_sent
from inference_math.planner import queues, traffic
from inference_math.planner.case import Case, coefficients, solve
from inference_math.unit import Unit
from inference_math.workload import SLA, Trace, Workload
from inference_math.workload.mixes import mix

fleet = partial(planner.fleet, requests=500)
UNIT = Unit.of("llama-3-70b", "h100-sxm", tp=2, weights="fp8", kv="fp8")
FOUND = planner.plan(UNIT, Workload(2200, 170), SLA(ttft=2.0, tpot=0.050), intervals=False)


def test_a_fleet_meets_the_share_and_one_replica_less_does_not():
    many = fleet(FOUND, 40)
    assert many.goodput >= 0.9 > many.one_less
    assert many.replicas >= many.least
    assert many.gpus == many.replicas * many.units * 2
    assert f"{many.replicas} replicas" in str(many)


def test_more_traffic_and_stricter_shares_need_more():
    counts = [fleet(FOUND, rate).gpus for rate in (5, 20, 80)]
    assert counts == sorted(counts)
    assert fleet(FOUND, 20, quantile=0.99).gpus >= counts[1]


def test_prompts_that_differ_need_more_than_equal_ones_of_the_same_mean():
    """A short prompt waits for the long one before it."""
    code = mix("azure-code")
    found = planner.plan(UNIT, Workload.from_trace(code), SLA(1.5, 0.05), intervals=False)
    for name in found.starts:
        equal, recorded = fleet(found, 20, architecture=name), fleet(found, 20, architecture=name, mix=code)
        assert recorded.each / recorded.units <= equal.each / equal.units
        if name != "disaggregated":  # whose prompts find another unit free
            assert recorded.each < equal.each
        assert (equal.played, recorded.played) == ("", "mix")
    same = Trace(np.full(3, 2200), np.full(3, 170))
    assert fleet(FOUND, 20, mix=same).each == pytest.approx(fleet(FOUND, 20).each, rel=0.1)


@pytest.mark.parametrize(
    ("traffic_", "more", "error", "words"),
    [
        (20, {"mix": [1]}, TypeError, "mix must be a Trace"),
        (Trace([5, 5], [5, 5], [0, 1]), {"mix": Trace([5], [5])}, TypeError, "mix must be a Trace, beside requests"),
        (20, {"mix": Trace([10**7], [5])}, ValueError, "a unit's KV cache has room for"),
        (Trace([10**7] * 2, [5, 5], [0, 1]), {}, ValueError, "a unit's KV cache has room for"),
    ],
)
def test_requests_that_cannot_be_played_are_refused(traffic_, more, error, words):
    with pytest.raises(error, match=words):
        fleet(FOUND, traffic_, **more)


def test_the_fleet_is_the_smallest_of_all_architectures():
    """Queues decide: the highest mean rate need not need the fewest GPUs."""
    tight = planner.plan(UNIT, Workload(2200, 170), SLA(0.4, 0.04), price=2.5, intervals=False)
    sizes = {}
    for name in ("aggregated", "chunked", "disaggregated"):
        sizes[name] = fleet(tight, 40, architecture=name).gpus
    best = fleet(tight, 40)
    assert best.gpus == min(sizes.values())
    assert sizes[best.architecture] == best.gpus
    assert sizes["aggregated"] > 1.5 * best.gpus
    assert best.usd_per_million == pytest.approx(best.gpus * 2.5 / (40 * 170 * 3600) * 1e6)
    assert best.usd_per_million > tight["usd_per_million"]  # which is that of full load
    with pytest.raises(ValueError, match="architecture must be one of"):
        fleet(tight, 40, architecture="split")


@pytest.mark.parametrize("limits", [SLA(2.0, 0.050), SLA(0.4, 0.04)], ids=["loose", "tight"])
@pytest.mark.parametrize("architecture", ["aggregated", "chunked", "disaggregated"])
def test_a_fleet_holds_in_nine_of_ten_draws(architecture, limits):
    """Each of sixteen draws is simulated at its own pace, other requests at their own times.

    Where a prompt takes most of the limit on TTFT its time decides which draw is slow, and not what full load takes.
    """
    found = planner.plan(UNIT, Workload(2200, 170), limits, intervals=False)
    many = fleet(found, 40, architecture=architecture)
    assert many.low <= many.replicas <= many.high
    case = found.case if many.units == 1 else replace(found.case, units=many.units)
    plain, drawn = case.plain, found.case.draws(64)
    solved = [solve(found.case, one).found for one in drawn]
    rows = queues.trials(plain, architecture, perf.careful(found.case.plain, architecture, solved))
    told = [traffic.told(case, architecture, one) for one in rows]
    (row,) = [one for one, said in zip(rows, told, strict=True) if said == many.settings]
    gaps, lengths = traffic.chances(500, 7, 1.0)
    kept = [
        queues.share_of(
            plain, queues.system_for(plain, architecture, row), queues.pace_of(plain, *coefficients(case, one)),
            gaps, lengths, [], 500, many.each, 0.0,
        )
        for one in drawn[::4]
    ]  # fmt: skip
    assert np.mean(np.array(kept) >= 0.85) >= 0.8


def test_no_replica_serves_more_than_at_full_load():
    """Runs are short: a queue that grows slowly would not be seen, were rates not bounded."""
    many = planner.capacity(FOUND, 16, architecture="disaggregated", requests=200)
    prefills, decodes = (int(many.settings[f"{pool} units"]) for pool in ("prefill", "decode"))
    draws = FOUND.case.draws(64)
    steps = [solve(FOUND.case, one).found["mixed"] for one in draws]
    alone = np.array([prefills / step(0.0, 1.0) for step in steps])
    assert many.each <= np.quantile(alone, 0.2)
    assert many.rate > 1.5 * FOUND.compared.set_index("architecture").rate["disaggregated"]  # of one unit
    assert prefills + decodes == many.units <= 8
    assert many.each_low < many.each < many.each_high


def test_pools_have_the_size_that_needs_the_fewest_gpus():
    """Each size by itself, whether the search would have looked at it or not."""
    sla, work = SLA(0.4, 0.04), Workload(2200, 170)
    found = planner.plan(UNIT, work, sla, intervals=False)
    alone = {}
    for units in range(2, 9):
        solved = [solve(found.case, one).found for one in found.case.draws(traffic.DRAWS)]
        asked = traffic._asked(40.0, 0.9, 1.0, None, 500, 0)
        of = replace(found.case, units=units)
        careful = perf.careful(found.case.plain, "disaggregated", solved)
        slow = queues.corners(found.case.plain, "disaggregated", careful, solved)
        every = [queues.pace_of(of.plain, *coefficients(of, one)) for one in found.case.draws(traffic.DRAWS)]
        one = traffic._Replica(of, "disaggregated", careful, solved, every, slow, 1.0, asked).settled()
        alone[units] = one.replicas(0, 40.0) * one.gpus
    best = fleet(found, 40, architecture="disaggregated")
    assert best.gpus == alone[best.units] == min(alone.values())
    assert best.gpus < alone[8]
    served = [planner.capacity(found, gpus, architecture="disaggregated", requests=500) for gpus in (8, 14, 36)]
    assert all(many.gpus <= gpus for many, gpus in zip(served, (8, 14, 36), strict=True))
    assert served[0].rate < served[1].rate < served[2].rate
    assert served[1].units < 8  # which do not fit


def test_groups_of_attention_compute_a_prompt_each():
    """A pool of pipelines, or of groups that share requests, has as many prompts under way."""
    work, sla = Workload(2000, 200), SLA(2, 0.05)
    for layout in ({"pp": 2}, {"dp": 2, "ep": 4}):
        model = "qwen3-235b-a22b" if "dp" in layout else "llama-3-70b"
        case = Case(Unit.of(model, "h200-sxm", 2, "fp8", **layout), work, sla)
        row = solve(case).found["rows"]["disaggregated"]
        system = queues.system_for(case.plain, "disaggregated", row)
        assert (system["prefill_units"], system["groups"]) == (row["prefill_units"], 2)
        assert system["decode_units"] == 8 - row["prefill_units"]


def test_what_waits_for_a_store_waits_for_its_bytes():
    case = Case(UNIT, Workload(2000, 100, 0.5), SLA(2, 0.05), tier=tier("local_ssd"))
    system = queues.system_for(case.plain, "aggregated", solve(case).found["rows"]["aggregated"])
    assert system["load"] * 1000 == pytest.approx(UNIT.kv_bytes(1000) / case.read_bw)


def test_what_gpus_serve_is_the_fleet_asked_the_other_way_round():
    many = planner.capacity(FOUND, 16, requests=500)
    assert many.gpus <= 16
    assert many.goodput >= 0.9
    assert many.rate == pytest.approx(many.replicas * many.each)
    assert many.each_low <= many.each <= many.each_high
    back = fleet(FOUND, 0.999 * many.rate)
    assert f"{many.rate:.4g} ({many.replicas * many.each_low:.3g} to " in str(many)
    assert (back.architecture, back.gpus) == (many.architecture, many.gpus)
    assert planner.capacity(FOUND, 32, requests=500).rate > many.rate
    assert f"on {many.gpus} GPUs: {many.architecture}" in many.said
    with pytest.raises(ValueError, match="gpus must be at least 2, those of a replica, not 1"):
        planner.capacity(FOUND, 1, requests=500)


def test_a_fleet_names_what_comes_next():
    best = fleet(FOUND, 40)
    others = [fleet(FOUND, 40, architecture=name) for name in FOUND.starts if name != best.architecture]
    second = min(others, key=lambda one: one.gpus)
    assert (best.following, best.following_value) == (second.architecture, second.gpus)
    assert best.said.startswith(f"{best.gpus} GPUs for 40 requests/s: {best.architecture}, ")
    assert f"; next {second.architecture}, {second.gpus} GPUs" in best.said
    assert ("At full load" in best.said) == (best.architecture != FOUND.best)
    assert second.said.endswith(f"replica{'s' if second.replicas > 1 else ''} of one unit")


def test_bursts_need_more():
    counts = [fleet(FOUND, 40, architecture="aggregated", cv_arrivals=cv).gpus for cv in (0, 1, 3)]
    assert counts == sorted(counts)
    assert counts[2] > counts[0]
    with pytest.raises(ValueError, match="cv_arrivals must be a number from 0 to 10, not 11"):
        fleet(FOUND, 40, cv_arrivals=11)


def test_a_single_replica_has_none_less():
    few = fleet(FOUND, 0.5)
    assert few.replicas == 1
    assert np.isnan(few.one_less)
    assert "less" not in str(few)


def test_pools_and_tiers_are_simulated_as_planned():
    split = planner.plan(UNIT, Workload(2200, 170), SLA(ttft=0.4, tpot=0.040), intervals=False)
    assert split.best == "disaggregated"
    many = fleet(split, 30, architecture="disaggregated")
    assert 2 <= many.units <= 8
    assert many.goodput >= 0.9
    stored = planner.plan(
        UNIT, Workload(2200, 170, alpha=0.9), SLA(ttft=2.0, tpot=0.050), tier=tier("local_ssd"), intervals=False
    )
    assert fleet(stored, 40).gpus < fleet(FOUND, 40).gpus


def test_a_trace_is_dealt_out_to_the_replicas():
    rng = np.random.default_rng(0)
    arrival = np.cumsum(rng.exponential(1 / 20, 2000))
    trace = Trace(rng.integers(500, 3000, 2000), rng.geometric(1 / 150, 2000), arrival=arrival)
    work = Workload.from_trace(trace)
    assert work.n_in == pytest.approx(trace.n_in.mean())
    assert work.n_out == pytest.approx(trace.n_out.mean())
    found = planner.plan(UNIT, work, SLA(ttft=2.0, tpot=0.060), intervals=False)
    many = fleet(found, trace)
    assert many.rate == pytest.approx(20, rel=0.1)
    assert many.goodput >= 0.9 > many.one_less


def test_pools_for_a_trace_may_have_fewer_units():
    """As for a rate: of all sizes the one with the fewest GPUs, where the plan's own takes more."""
    rng = np.random.default_rng(4)
    arrival = np.cumsum(rng.exponential(1 / 20, 1500))
    trace = Trace(rng.integers(400, 600, 1500), rng.geometric(1 / 50, 1500), arrival=arrival)
    found = planner.plan(UNIT, Workload.from_trace(trace), SLA(1.0, 0.05), units=6, intervals=False)
    split = fleet(found, trace, architecture="disaggregated")
    assert 2 <= split.units <= 6
    assert split.goodput >= 0.9
    own = planner.plan(UNIT, Workload.from_trace(trace), SLA(1.0, 0.05), units=split.units, intervals=False)
    assert fleet(own, trace, architecture="disaggregated").gpus == split.gpus
    rated = fleet(found, 20, architecture="disaggregated", mix=trace)
    assert abs(split.gpus - rated.gpus) <= 2 * max(split.units, rated.units)


def test_the_stored_share_of_a_trace_is_that_of_its_tokens():
    trace = Trace([1000, 3000], [10, 30], alpha=[0.0, 0.8])
    work = Workload.from_trace(trace)
    assert work.alpha == pytest.approx(2400 / 4000)
    assert work.lengths == "geometric"


def test_another_rate_plays_no_replica_again(monkeypatch):
    """What a replica sustains is kept: the next traffic asks only how many; another share plays anew."""
    found = planner.plan(UNIT, Workload(500, 50), SLA(1.0, 0.05), units=2)
    first = fleet(found, 40, requests=100)
    played, plays = [], queues.reached
    monkeypatch.setattr(queues, "reached", lambda *given: played.append(1) or plays(*given))
    assert fleet(found, 80, requests=100).each == first.each
    assert planner.capacity(found, first.gpus, requests=100).each == first.each
    assert not played
    for other in ({"quantile": 0.8}, {"seed": 1}, {"cv_arrivals": 2.0}, {"mix": Trace([500], [50])}, {"requests": 120}):
        played.clear()
        fleet(found, 40, **({"requests": 100} | other))
        assert played, other


def test_what_no_fleet_can_do():
    impossible = planner.plan(UNIT, Workload(2200, 170), SLA(0.1, 0.01), intervals=False)
    with pytest.raises(ValueError, match="found must be a plan that some architecture meets"):
        fleet(impossible, 1)
    with pytest.raises(ValueError, match="traffic must be"):
        fleet(FOUND, -1)
    with pytest.raises(ValueError, match="a trace with arrival times"):
        fleet(FOUND, Trace([10], [10]))
    for rate in (1e-9, 1e300, np.nan):
        with pytest.raises(ValueError, match=r"traffic must be a number from 0\.001 to"):
            fleet(FOUND, rate)
    tight = planner.plan(UNIT, Workload(2200, 170), SLA(0.4, 0.04), intervals=False)
    with pytest.raises(ValueError, match=r"traffic must .* for 100% .*to do: chunked keeps them for \d+%"):
        fleet(tight, 40, quantile=1.0, architecture="chunked", cv_arrivals=10)


@pytest.mark.parametrize("alpha", [0.0, 0.9, 1.0])
def test_a_simulated_chunk_is_that_of_the_settings(alpha):
    """Of each prompt at least the last token is computed, in the engine and in the simulator."""
    unit, work = Unit.of("llama-3-8b", "h100-sxm"), Workload(200, 20, alpha)
    case = Case(unit, work, SLA(1.0, 0.05))
    row = solve(case).found["rows"]["chunked"]
    system, told = queues.system_for(case.plain, "chunked", row), perf.settings(case.plain, "chunked", row)
    assert system["budget"] == told["--max-num-batched-tokens"]
    assert system["max_batch"] == told["--max-num-seqs"]
    assert system["budget"] >= system["max_batch"]


def test_what_pools_send_is_one_copy_of_the_cache():
    for name in ("llama-3-70b", "gpt-oss-120b", "qwen3.5-397b-a17b"):
        unit = Unit.of(name, "b200", 8)
        assert kv_sent(unit.numbers, 3000) == pytest.approx(unit.model.kv_bytes(3000, unit.kv))


def test_more_units_never_take_more_gpus():
    """Batch and chunk, and which draw is slow, do not hang on how many units there are."""
    sizes, settings = [], set()
    for units in (4, 6, 8):
        found = planner.plan(UNIT, Workload(2200, 170), SLA(0.4, 0.04), units=units, intervals=False)
        many = fleet(found, 40, architecture="disaggregated")
        sizes.append(many.gpus)
        settings.add((many.settings["decode --max-num-seqs"], many.settings["prefill --max-num-batched-tokens"]))
        assert many.most_units == units
        assert f"pools of {units} units together at most" in many.how
    assert sizes == sorted(sizes, reverse=True)
    assert len(settings) == 1


@pytest.mark.parametrize("architecture", ["aggregated", "chunked", "disaggregated"])
def test_what_is_simulated_of_drafts_is_what_is_planned(architecture):
    unit = Unit.of("llama-3-70b", "h100-sxm", 2, "fp8", drafts=3, accepted=0.6)
    case = Case(unit, Workload(1000, 200), SLA(1, 0.02), units=4)
    found = solve(case).found
    row = found["rows"][architecture]
    system = queues.system_for(case.plain, architecture, row)
    assert system["gives"] == pytest.approx(1 + 0.6 + 0.36 + 0.216)
    assert system["brings"] == 4
    assert queues.full(case.plain, architecture, row, found["mixed"]) == pytest.approx(
        row["rate"] * queues.units_of(case.plain, architecture), rel=1e-6
    )
    if architecture != "disaggregated":
        told = perf.settings(case.plain, architecture, row)
        assert system["budget"] == told["--max-num-batched-tokens"]
    draws = [perf.solve(case.plain, unit.found(), [step, prompt]) for step, prompt in ((1, 1.4), (1.2, 1), (1.1, 1.1))]
    order = queues.by_speed(case.plain, architecture, row, draws)
    steps = 1 + 199 / system["gives"]
    speeds = [pooled(one["mixed"], architecture, row, 1000, steps, 4) for one in draws]
    assert order == sorted(range(3), key=lambda i: -speeds[i])
