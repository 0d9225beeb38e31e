from dataclasses import replace

import pytest
from msgspec import structs

from inference_math import SLA, Unit, Workload
from inference_math.catalogue import model
from inference_math.catalogue.engines import engine
from inference_math.evidence import load
from inference_math.optimiser.case import Case
from inference_math.unit.problem import max_kv_seqs, prefill_unit, search_constants, usual_share
from inference_math.unit.steps import drafting, kv_pooled, kv_tokens
from inference_math_planner.fleets.bench import bench_unit

GIB = 2**30
LOGS = load("engine_logs").frame.fillna({"seqs": 1.0})


def room(row) -> float:
    """Return the GiB of a GPU that are left for KV caches beside the weights that the engine logged."""
    unit = Unit.of(row.model, row.gpu, row.tp, row.weights, engine=row.engine, memory=row.share)
    held = bench_unit(unit.numbers, engine(row.engine), row.seqs).kv_room / unit.gpus / GIB
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
    held = [max_kv_seqs(bench_unit(unit.numbers, engine("vllm"), seqs), work, engine("vllm")) for seqs in (6, 1024)]
    assert held[1] < 0.8 * held[0]
    assert held[0] == unit.places(work)
    case = Unit.of("llama-3-70b", "h100-sxm", 2, "fp8")
    assert case.places(Workload(2200, 170)) == 100
    small = bench_unit(case.numbers, engine("vllm"), 100)
    assert small == case.numbers
    assert bench_unit(case.numbers, engine("sglang"), 1e6) == case.numbers
    assert bench_unit(case.numbers, engine("vllm"), 1e9).kv_room == 0


@pytest.mark.parametrize(
    ("gpu", "layout", "more", "share"),
    [  # what SGLang logs of one H100, and its rule by hand: MiB that are left of the driver's
        ("h100-sxm", {}, {}, 0.835),
        ("h200-sxm", {"tp": 8}, {}, 1 - (512 + 12_288 + 1024 + 1024) / 143_771),
        ("h200-sxm", {"dp": 8, "ep": 8}, {}, 1 - (512 + 12_288 + 1024 + 1024 + 4.5 * 512 * 8) / 143_771),
        ("h200-sxm", {"dp": 8, "ep": 8}, {"drafts": 1}, 1 - (14_848 + 4.5 * 512 * 8 + 2048) / 143_771),
        ("b200", {"tp": 8}, {}, 1 - (512 + 24_576 + 1024 + 1024) / 183_359),
    ],
)
def test_sglang_keeps_memory_for_steps_graphs_and_groups_unless_it_is_told_a_share(gpu, layout, more, share):
    unit = Unit.of("deepseek-v3" if layout else "llama-3-8b", gpu, engine="sglang", **layout, **more)
    assert unit.share == pytest.approx(share, abs=6e-4)
    assert replace(unit, memory=0.7).share == 0.7
    assert unit.resized(engine="vllm").share == engine("vllm").memory.takes
    with pytest.raises(ValueError, match="memory must be named for sglang with dp 32 on h100-sxm"):
        Unit.of("deepseek-v3", "h100-sxm", dp=32, ep=32, engine="sglang")


def test_a_graph_is_as_large_as_gpus_of_a_stage_ask_for_and_shares_have_three_digits():
    """SGLang's rule by hand: TP 2 in two stages are four GPUs, and graphs those of two."""
    mib = {"h100-sxm": 81_559, "l40s": 46_068}
    base = {"h100-sxm": 512 + 12_288, "l40s": 512 + 6144}
    for gpu, few, many in (("h100-sxm", 256, 512), ("l40s", 32, 160)):
        for tp, pp, graph in ((2, 1, few), (2, 2, few), (4, 1, many), (4, 2, many)):
            kept = base[gpu] + 2 * graph + 128 * tp * pp
            share = Unit.of("qwen3-8b", gpu, tp, "bf16", engine="sglang", pp=pp).share
            assert share == round(1 - kept / mib[gpu], 3), (gpu, tp, pp)


@pytest.mark.parametrize(
    ("gib", "tokens", "graph", "groups", "kept"),
    [
        (80, 1000, 8, 1, 10_240),  # of short steps and small graphs ten GiB, on GPUs of more than sixty
        (64, 1000, 8, 1, 10_240),
        (60, 1000, 8, 1, 512 + 1.5 * 2048 + 16 + 128),
        (40, 4096, 8, 1, 512 + 1.5 * 4096 + 16 + 128),
        (80, 8192, 300, 2, 512 + 12_288 + 600 + 256 + 3 * 300 * 2),
        (80, 8192, 301, 2, 512 + 12_288 + 602 + 256 + 4.5 * 301 * 2),
        (8, 8192, 301, 2, 8192),  # nothing is left
    ],
)
def test_what_sglang_keeps_of_a_gpu_by_hand(gib, tokens, graph, groups, kept):
    unit = Unit.of("qwen3-30b-a3b", "h100-sxm", dp=groups, ep=groups, engine="sglang").numbers
    share = usual_share(engine("sglang"), gib * GIB, unit, tokens, graph, 0)
    assert share == pytest.approx(1 - kept / (1024 * gib), abs=6e-4)


def test_tensorrt_takes_a_share_of_what_weights_leave():
    """Half of the memory for weights: 0.5 and nine tenths of the rest, less what engines need."""
    unit = Unit.of("llama-3-70b", "h100-sxm", 2, "fp8", engine="trtllm")
    there = unit.gpu.driver_bytes
    taken = unit.model.loaded_bytes("fp8") / 2 / there
    assert unit.share == pytest.approx(taken + 0.9 * (1 - taken), rel=1e-3)
    assert unit.numbers.kv_room / 2 + 3e9 == pytest.approx(0.9 * (1 - taken) * there, rel=1e-3)


def test_sglang_needs_less_of_one_gpu_and_holds_gpt_oss():
    """What one H100 serves: 3 GB beside its share of the memory would leave no room for the weights."""
    one, two = (Unit.of("gpt-oss-120b", "h100-sxm", tp, engine="sglang") for tp in (1, 2))
    assert (one.numbers.workspace, two.numbers.workspace) == (1.1e9, 3e9)
    assert Unit.of("qwen3-30b-a3b", "h100-sxm", dp=2, ep=2, engine="sglang").numbers.workspace == 3e9
    assert 0 < one.places(Workload(1000, 100)) < two.places(Workload(1000, 100)) / 10


def test_windows_with_a_pool_of_their_own_hold_a_share_of_all_tokens():
    """Half of gpt-oss's layers see 128 tokens: SGLang has 0.8 of all tokens for them."""
    oss, dense = Unit.of("gpt-oss-120b", "h100-sxm").numbers, Unit.of("llama-3-8b", "h100-sxm").numbers
    assert kv_pooled(oss, 4000, 0.0) == kv_tokens(oss, 4000)
    assert kv_pooled(oss, 4000, 0.8) == pytest.approx(oss.kv_room / (1.8 * oss.caches[0].bytes))
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
        search_constants(Case(one, work, sla, prefill=prefill).problem).together
        for one, prefill in ((unit, None), (unit, unit.resized(**first)), (unit.resized(**first), None))
    )
    assert own == alone != plain


def test_requests_draft_in_both_pools_or_in_none():
    problem = Case(
        WIDE.resized(drafts=1), Workload(1000, 200), SLA(1, 0.1), prefill=WIDE.resized(tp=8, drafts=1)
    ).problem
    assert prefill_unit(problem).accepted_per_step == problem.unit.accepted_per_step > 1
    assert prefill_unit(structs.replace(problem, unit=drafting(problem.unit, 0, 0.0))).accepted_per_step == 1
