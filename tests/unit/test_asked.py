from __future__ import annotations

import pytest

from inference_math import Unit
from inference_math.catalogue import model
from inference_math.catalogue.engines import engine
from inference_math.evidence import load
from inference_math.optimiser.case import Case
from inference_math.unit.asked import max_kv_seqs, prefill_unit, target_of
from inference_math.unit.steps import drafting, kv_pooled, kv_tokens
from inference_math.workload import SLA, Workload
from inference_math_planner.fleets.bench import bench_unit

GIB = 2**30
LOGS = load("engine_logs").frame.fillna({"seqs": 1.0})


def room(row) -> float:
    """Return the GiB of a GPU that are left for KV caches beside the weights that the engine logged."""
    unit = Unit.of(row.model, row.gpu, row.tp, row.weights, engine=row.engine, memory=row.share)
    held = bench_unit(unit.numbers, engine(row.engine), row.seqs)["kv_room"] / unit.gpus / GIB
    return held - max(0.0, row.weights_gib - unit.model.loaded_bytes(row.weights) / unit.tp / GIB)


TODAY = list(LOGS.query("use != 'older'").itertuples())


@pytest.mark.parametrize("row", TODAY, ids=[f"{row.engine} {row.version}" for row in TODAY])
def test_the_room_for_kv_caches_is_what_engines_log(row):
    """Within 1.5 GiB, and never more by one: the general 3 GB stay where a fit would leave more."""
    assert room(row) == pytest.approx(row.kv_gib, abs=1.5)
    assert room(row) < row.kv_gib + 0.5


def test_older_engines_kept_more_and_the_table_says_how_much():
    older = LOGS.query("use == 'older'")
    each = [(room(row) - row.kv_gib) * GIB / (row.seqs * model(row.model).vocab) for row in older.itertuples()]
    assert 12 + min(each) == pytest.approx(33, abs=2)
    assert len(older) == 3


def test_a_benchmark_keeps_memory_to_sample_its_requests_and_a_plan_says_few():
    unit, work = Unit.of("gpt-oss-120b", "h100-sxm"), Workload(2000, 100)
    held = [
        max_kv_seqs(bench_unit(unit.numbers, engine("vllm"), seqs), work.plain, engine("vllm")) for seqs in (6, 1024)
    ]
    assert held[1] < 0.8 * held[0]
    assert held[0] == unit.places(work)
    case = Unit.of("llama-3-70b", "h100-sxm", 2, "fp8")
    assert case.places(Workload(2200, 170)) == 100
    small = bench_unit(case.numbers, engine("vllm"), 100)
    assert small == case.numbers
    assert bench_unit(case.numbers, engine("sglang"), 1e6) == case.numbers
    assert bench_unit(case.numbers, engine("vllm"), 1e9)["kv_room"] == 0


def test_windows_with_a_pool_of_their_own_hold_a_share_of_all_tokens():
    """Half of gpt-oss's layers see 128 tokens: SGLang has 0.8 of all tokens for them."""
    oss, dense = Unit.of("gpt-oss-120b", "h100-sxm").numbers, Unit.of("llama-3-8b", "h100-sxm").numbers
    assert kv_pooled(oss, 4000, 0.0) == kv_tokens(oss, 4000)
    assert kv_pooled(oss, 4000, 0.8) == pytest.approx(oss["kv_room"] / (1.8 * oss["caches"][0]["bytes"]))
    assert kv_pooled(oss, 100, 0.8) == pytest.approx(kv_tokens(oss, 100))  # all within the window
    assert kv_pooled(dense, 4000, 0.8) == kv_tokens(dense, 4000)


WIDE = Unit.of("deepseek-v3", "gb300", 4)


@pytest.mark.parametrize(
    ("unit", "first"),
    [
        (Unit.of("llama-3-70b", "h100-sxm", 1, "fp8"), {"tp": 2}),  # beside its weights one GPU holds four prompts
        (WIDE, {"tp": 1, "dp": 8, "ep": 8}),  # each group has a step's tokens
    ],
)
def test_a_prefill_unit_computes_as_many_prompts_together_as_such_a_unit(unit, first):
    work, sla = Workload(1000, 200), SLA(1e3, 1.0)
    plain, own, alone = (
        target_of(Case(one, work, sla, prefill=prefill).asked)["together"]
        for one, prefill in ((unit, None), (unit, unit.resized(**first)), (unit.resized(**first), None))
    )
    assert own == alone != plain


def test_requests_draft_in_both_pools_or_in_none():
    asked = Case(WIDE.resized(drafts=1), Workload(1000, 200), SLA(1, 0.1), prefill=WIDE.resized(tp=8, drafts=1)).asked
    assert prefill_unit(asked)["gives"] == asked["unit"]["gives"] > 1
    asked["unit"] = drafting(asked["unit"], 0, 0.0)
    assert prefill_unit(asked)["gives"] == 1
