"""What benchmarks told their engines, row by row."""

from __future__ import annotations

from math import inf

import pytest
import served
from recipes import COLD, EACH, SPAN, recipe_of

from inference_math.evidence import load
from inference_math.simulate import SchedulerPolicy
from inference_math.unit import Unit
from inference_math.unit.shapes import MEMORY
from inference_math_book import served as case

ROW = {
    "model": "llama-3-70b", "gpu": "h200-sxm", "tp": 4, "ep": 1, "dp": 1, "engine": "trtllm", "version": "",
    "weights": "fp8", "n_in": 921.6, "n_out": 921.6, "users": 16, "drafts": "none",
}  # fmt: skip


def test_a_batch_waits_where_its_recipe_says_so():
    assert recipe_of(ROW).policy == SchedulerPolicy(whole=True, wait_steps=20, wait_tokens=0.9 * 16_384, ahead=True)
    for other in ({"tp": 8}, {"n_out": 7373.0}, {"n_in": 7373.0}):
        assert recipe_of(ROW | other).policy == SchedulerPolicy(whole=True, ahead=True)
    assert recipe_of(ROW).budget == 16_384


def test_budgets_of_vllm_follow_the_prompts_where_the_recipe_does():
    mini = ROW | {"engine": "vllm", "model": "minimax-m2", "gpu": "b200", "version": "0.19.0"}
    assert (recipe_of(mini).budget, recipe_of(mini).kv) == (2048, "fp8")
    assert recipe_of(mini | {"n_in": 7373.0}).budget == 2 * 8192
    assert recipe_of(mini | {"dp": 2}).budget == 2 * 2048
    early = recipe_of(mini | {"version": "0.17.0"})
    assert (early.budget, early.kv) == (8192, "bf16")
    assert recipe_of(mini | {"gpu": "h100-sxm", "version": "0.18.0"}).budget == 8192


def test_vllm_plans_steps_ahead_since_its_version_0_13():
    for version, ahead in {
        "0.11.2": False,
        "0.12.0": False,
        "0.15.1": True,
        "0.19.0": True,
        "nightly-5b8c": True,
    }.items():
        assert recipe_of(ROW | {"engine": "vllm", "version": version}).policy == SchedulerPolicy(ahead=ahead)


def test_tensorrt_s_cache_follows_the_checkpoint_where_no_script_names_another():
    """`kv_cache_config.dtype` is "auto": FP8 only where the checkpoint's own metadata, or a script, asks for it."""
    assert recipe_of(ROW | {"model": "qwen3-32b", "gpu": "gb200", "weights": "bf16"}).kv == "bf16"
    assert recipe_of(ROW | {"model": "qwen3-32b", "gpu": "gb200", "weights": "nvfp4"}).kv == "fp8"
    oss = ROW | {"model": "gpt-oss-120b", "weights": "mxfp4"}
    assert (recipe_of(oss | {"gpu": "h100-sxm"}).kv, recipe_of(oss | {"gpu": "b200"}).kv) == ("bf16", "fp8")
    assert recipe_of(ROW).kv == "fp8"  # NVIDIA's checkpoint of Llama in FP8 has scales for it


def test_deepseek_under_tensorrt_takes_as_many_tokens_as_its_script_computes():
    deep = ROW | {"model": "deepseek-v3", "gpu": "b200", "users": 64}
    assert recipe_of(deep | {"version": "1.1.0rc2.post2"}).budget == 1152  # 64 + 1,024 + 64, up to whole 64
    assert recipe_of(deep | {"version": "1.2.0rc6.post2", "weights": "nvfp4"}).budget == 8192
    assert recipe_of(deep | {"version": "1.2.0rc6.post2"}).policy == SchedulerPolicy(
        whole=True, wait_steps=40, wait_tokens=0.8 * 8192, ahead=True
    )
    drafting = recipe_of(deep | {"version": "1.2.0rc6.post3", "drafts": "mtp"})
    assert (drafting.drafts, drafting.budget) == (3, 1344)  # four tokens a user
    assert recipe_of(deep | {"drafts": "mtp", "dp": 8, "users": 256}).drafts == 1
    for drafts in ("none", "mtp"):
        spread = recipe_of(deep | {"dp": 8, "drafts": drafts})
        assert spread.policy == SchedulerPolicy(whole=True, wait_steps=60, balanced=True, ahead=True)
        assert spread.scheduler(10, 8).ranks == 8
    assert recipe_of(deep | {"dp": 8}).budget == 8 * 1152  # users of all groups, without drafts


def test_sglang_looks_now_and_then_and_computes_prompts_by_themselves():
    deep = ROW | {"engine": "sglang", "model": "deepseek-v3", "gpu": "b200", "tp": 8, "version": "0.5.9"}
    assert recipe_of(deep).policy == SchedulerPolicy(alone=True, looks=30, ahead=True)
    assert not recipe_of(deep | {"drafts": "mtp"}).policy.ahead
    assert recipe_of(deep | {"users": 8}).policy == SchedulerPolicy(alone=True, looks=10, ahead=True)
    assert (recipe_of(deep | {"drafts": "mtp"}).drafts, recipe_of(deep | {"weights": "nvfp4"}).cold) == (2, 0)
    assert recipe_of(deep | {"weights": "nvfp4", "version": ""}).cold == COLD
    glm, hybrid = deep | {"model": "glm-5"}, deep | {"model": "qwen3.5-397b-a17b"}
    assert (recipe_of(glm).policy.looks, recipe_of(glm | {"weights": "nvfp4"}).policy.looks) == (1, 10)
    assert recipe_of(glm | {"drafts": "mtp"}).drafts == 3
    assert (recipe_of(hybrid).kv, recipe_of(hybrid | {"weights": "bf16"}).kv) == ("fp8", "bf16")
    assert recipe_of(hybrid | {"gpu": "h200-sxm"}).policy.looks == 1
    assert recipe_of(deep | {"tp": 4}).policy.looks == 10


@pytest.mark.parametrize(
    ("gpu", "weights", "date", "kv", "budget"),
    [
        ("mi300x", "fp8", "2025-12-10", "bf16", 196_608),
        ("mi300x", "fp8", "2026-05-18", "fp8", 131_072),
        ("mi355x", "fp8", "2026-02-01", "bf16", 196_608),
        ("mi355x", "fp8", "2026-04-01", "fp8", 196_608),
        ("mi355x", "nvfp4", "2026-02-01", "fp8", 196_608),
    ],
)
def test_sglang_on_amd_takes_nearly_all_prompts_at_once(gpu, weights, date, kv, budget):
    deep = ROW | {"engine": "sglang", "model": "deepseek-v3", "gpu": gpu, "weights": weights, "date": date, "users": 64}
    for tp in (4, 8):
        found = recipe_of(deep | {"tp": tp})
        assert (found.policy, found.kv, found.budget, found.drafts) == (
            SchedulerPolicy(alone=True, ahead=True),
            kv,
            budget,
            0,
        )
    drafting = recipe_of(deep | {"drafts": "mtp"})
    assert (drafting.drafts, drafting.policy.ahead) == (3, kv == "fp8")
    long = recipe_of(deep | {"n_in": 7373.0, "n_out": 921.6})
    assert long.budget == (32_768 if weights == "nvfp4" else budget)
    pool = recipe_of(deep | {"prefill_workers": 1, "drafts": "mtp"})
    assert (pool.kv, pool.drafts, pool.budget) == ("fp8", 2, 262_144 if weights == "fp8" else 16_384)
    assert recipe_of(deep | {"prefill_workers": 1, "drafts": "mtp", "dp": 8}).drafts == 1


def test_atom_computes_prompts_by_themselves_and_drafted_one_token_at_first():
    deep = ROW | {"engine": "atom", "model": "deepseek-v3", "gpu": "mi355x", "drafts": "mtp", "date": "2026-02-11"}
    found = recipe_of(deep)
    assert (found.policy, found.kv, found.budget) == (SchedulerPolicy(whole=True, alone=True), "fp8", 16_384)
    assert [recipe_of(deep | {"date": date}).drafts for date in ("2026-02-25", "2026-05-01")] == [1, 3]
    assert recipe_of(deep | {"drafts": "none"}).drafts == 0


def test_every_row_has_a_recipe_that_runs():
    for use in ("calibration", "validation"):
        for row in served.points(use).to_dict("records"):
            recipe = recipe_of(row)
            scheduler = recipe.scheduler(10)
            assert scheduler.max_batch == 10
            assert recipe.kv in ("bf16", "fp8")
            assert (recipe.drafts > 0) == (row["drafts"] == "mtp")
    assert recipe_of(ROW).scheduler(0).max_batch == 1
    assert recipe_of(ROW).scheduler(inf).max_batch == inf


def test_an_engine_that_no_script_started_is_named():
    with pytest.raises(ValueError, match="engine must be one of"):
        recipe_of(ROW | {"engine": "lmdeploy"})


def test_tensorrt_takes_a_share_of_what_the_weights_leave():
    unit = Unit.of("llama-3-70b", "h200-sxm", 4, weights="fp8", kv="fp8", engine="trtllm")
    sized = recipe_of(ROW).sized(unit)
    total = 4 * unit.gpu.driver_bytes
    weights = 4 * unit.gpu.room(unit.share) - unit.numbers.kv_room
    assert sized.numbers.kv_room == pytest.approx(0.9 * (total - weights), rel=0.03)  # less what the engine needs
    deep = ROW | {"model": "deepseek-v3", "gpu": "b200"}
    assert recipe_of(deep).memory == 0.8
    narrow = deep | {"engine": "sglang", "version": "0.5.9"}
    assert (recipe_of(narrow).memory, recipe_of(narrow).free) == (0.95, False)
    assert recipe_of(narrow | {"tp": 8}).budget == 32_768
    assert recipe_of(narrow | {"tp": 8}).memory == MEMORY


def test_the_book_s_case_is_played_by_the_same_recipe():
    assert (case.EACH, case.SPAN) == (EACH, SPAN)
    rows = load("served").frame.query("model == 'llama-3-70b' and engine == 'vllm' and gpu == 'h100-sxm'")
    assert {recipe_of(row).budget for row in rows.to_dict("records")} == {case.BUDGET}
