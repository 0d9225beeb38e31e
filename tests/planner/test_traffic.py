from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from inference_math import perf, planner
from inference_math.catalogue.tiers import tier
from inference_math.planner import traffic
from inference_math.planner.case import Case, solve
from inference_math.unit import Unit
from inference_math.workload import SLA, Trace, Workload

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


def test_a_fleet_holds_in_nine_of_ten_draws():
    """Sized for a slow draw; each of sixteen others is simulated at its own pace."""
    many = fleet(FOUND, 40, architecture="chunked")
    assert many.low <= many.replicas <= many.high
    case = FOUND.case
    rows = FOUND.compared.set_index("architecture")
    assert rows.rate["chunked"] > 0
    rows = [row for row in traffic._rows(FOUND, "chunked") if row["computed"] == many.chunk]
    replica = traffic._Replica(FOUND, rows[0], 40.0, 40.0, 1500, 1)
    kept = [replica.met(traffic._pace(case, one), many.replicas) >= 0.85 for one in case.draws(16)]
    assert np.mean(kept) >= 0.8


def test_a_single_replica_has_none_less():
    few = fleet(FOUND, 0.5)
    assert few.replicas == 1
    assert np.isnan(few.one_less)
    assert "less" not in str(few)


def test_pools_and_tiers_are_simulated_as_planned():
    split = planner.plan(UNIT, Workload(2200, 170), SLA(ttft=0.4, tpot=0.040), intervals=False)
    assert split.best == "disaggregated"
    many = fleet(split, 30, architecture="disaggregated")
    assert many.units == 8
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


def test_the_stored_share_of_a_trace_is_that_of_its_tokens():
    trace = Trace([1000, 3000], [10, 30], alpha=[0.0, 0.8])
    work = Workload.from_trace(trace)
    assert work.alpha == pytest.approx(2400 / 4000)
    assert work.lengths == "geometric"


def test_what_no_fleet_can_do(monkeypatch):
    impossible = planner.plan(UNIT, Workload(2200, 170), SLA(0.1, 0.01), intervals=False)
    with pytest.raises(ValueError, match="found must be a plan that some architecture meets"):
        fleet(impossible, 1)
    with pytest.raises(ValueError, match="traffic must be"):
        fleet(FOUND, -1)
    with pytest.raises(ValueError, match="a trace with arrival times"):
        fleet(FOUND, Trace([10], [10]))
    monkeypatch.setattr("inference_math.planner.traffic._MOST", 1)
    with pytest.raises(ValueError, match=r"traffic must leave 100% .* with \d+ replicas \(chunked\)"):
        fleet(FOUND, 40, quantile=0.9999, architecture="chunked")


@pytest.mark.parametrize("alpha", [0.0, 0.9, 1.0])
def test_a_simulated_chunk_is_that_of_the_settings(alpha):
    """Of each prompt at least the last token is computed, in the engine and in the simulator."""
    unit, work = Unit.of("llama-3-8b", "h100-sxm"), Workload(200, 20, alpha)
    case = Case(unit, work, SLA(1.0, 0.05))
    row = solve(case).compared.set_index("architecture").loc["chunked"]
    scheduler, told = traffic._scheduler(case, row), perf.settings(case.plain, "chunked", row)
    assert scheduler.budget == told["--max-num-batched-tokens"]
    assert scheduler.max_batch == told["--max-num-seqs"]
    assert scheduler.budget >= scheduler.max_batch
