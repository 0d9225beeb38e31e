"""What released tables say by themselves: sound, complete, and as the texts have it."""

import numpy as np
import pandas as pd
import pytest

from inference_math import Unit, evidence, theory
from inference_math.catalogue import GPUS, MODELS
from inference_math.evidence import load
from inference_math.unit.coefficients import COEFFICIENTS, SHARES
from inference_math.unit.kernels import kernels
from inference_math.unit.mixing import FACTORS, kernel_values
from inference_math.unit.nearest import coefficient_key, levels
from inference_math_bench.lab import analysis
from inference_math_book.predicted import by_source, chance_by, difference, served_both_ways
from inference_math_planner.calibrate import from_kernels

H100 = GPUS["h100-sxm"]


WIDTH = {"bf16": 2, "fp8": 1}


PEAK = {"bf16": H100.bf16_flops, "fp8": H100.flops("fp8")}


@pytest.mark.parametrize("name", ["h100_decode_attention", "h100_prefill_attention", "h100_gemm", "h100_allreduce"])
def test_no_time_beats_the_datasheet(name: str) -> None:
    frame = load(name).frame
    share = _floor_us(name, frame) / frame.time_us
    assert share.max() <= 1
    # A wrong unit would pass the line above: the best kernels come near the floor.
    assert share.max() > 0.5


def _floor_us(name: str, t: pd.DataFrame) -> pd.Series:
    """Return the least microseconds that the datasheet allows for each row."""
    if name == "h100_gemm":
        width, peak = t.dtype.map(WIDTH), t.dtype.map(PEAK)
        traffic = width * (t.tokens + t.n) * t.k + 2 * t.tokens * t.n
        return np.maximum(2 * t.tokens * t.n * t.k / peak, traffic / H100.hbm_bw) * 1e6
    if name == "h100_decode_attention":
        cached = 2 * t.kv_heads * t.head_size * t.context * t.batch * t.kv_dtype.map(WIDTH)
        return cached / H100.hbm_bw * 1e6
    if name == "h100_prefill_attention":
        # Scores and values, half of each under the causal mask.
        return 2 * t.batch * t.length**2 * t.heads * t.head_size / t.attn_dtype.map(PEAK) * 1e6
    # However it is reduced, each GPU sends and receives its tensor once.
    return t.bytes / H100.link_bw * 1e6


def test_served_tokens_are_consistent_and_not_faster_than_reading_the_weights() -> None:
    table = load("mlenergy").frame
    mean_ms = table.batch / table.output_tokens_per_s * 1e3
    assert (table.batch <= table.max_num_seqs).all()
    assert (table.batch >= 0.85 * table.max_num_seqs).all()
    assert (table.itl_p50_ms <= table.itl_p90_ms).all()
    assert (mean_ms / table.itl_p50_ms).between(1, 1.31).all()
    for _, rows in table.groupby(["served_model", "tp"]):
        assert rows.itl_p50_ms.is_monotonic_increasing
        assert rows.itl_p90_ms.is_monotonic_increasing
    weights = table.model.map({name: 2 * (m.n_params_total + m.lm_head_params) for name, m in MODELS.items()})
    share = weights / table.tp / H100.hbm_bw * 1e3 / table.itl_p50_ms
    assert share.max() < 1
    # A wrong unit or TP would pass the line above: at the smallest batch weights are most of a step.
    assert share[table.max_num_seqs == 8].min() > 0.5


STEPS = evidence.load("lab_gpu_steps").frame
ARMS, LAWS = evidence.load("lab_gpu_arms").frame, evidence.load("lab_gpu_laws").frame


def of(experiment: str, quantity: str) -> pd.DataFrame:
    rows = analysis.expanded(ARMS, experiment)
    return rows[rows.quantity == quantity]


def test_reads_of_decodes_add_to_a_prompt_in_full() -> None:
    """Eight decodes at 8,192 tokens add to a step with a prompt what they add to one without."""
    eight = STEPS[(STEPS.offloading == 0) & (STEPS.decodes == 8) & STEPS.tokens.isin([0, 1024])]
    middle = eight.groupby(["tokens", eight.context > 8000]).step_ms.median()
    added = [middle[tokens, True] - middle[tokens, False] for tokens in (0, 1024)]
    assert added[1] == pytest.approx(added[0], rel=0.15)


def test_the_laws_hold_to_a_tenth_on_average() -> None:
    for quantity, limit in {"tpot": 0.1, "gap_p50": 0.1, "context": 0.03}.items():
        assert (of("interference", quantity).ratio - 1).abs().mean() < limit, quantity
    users = of("limit", "users")
    assert ((users.found - users.predicted).abs()[users["of"] == "mean"] <= 1).all()


def test_loading_is_slower_than_printed_and_near_the_complete_form() -> None:
    found = of("host", "speedup").set_index(["n_in", "stored"])
    printed = analysis.expanded(LAWS[LAWS.quantity == "speedup"], "host").set_index(["n_in", "stored"]).predicted
    assert found.ratio.between(0.75, 1.15).all()
    most = printed[printed.index.get_level_values("stored") / printed.index.get_level_values("n_in") > 0.9]
    assert (most / found.found[most.index] > 1.6).all()


def test_offloading_lengthens_decodes_while_a_prompt_is_written() -> None:
    kinds = STEPS[(STEPS.tokens == 0) & (STEPS.context < 1000)]
    middle = kinds.groupby(["offloading", "after", "decodes"]).step_ms.median()
    beside = middle[1, 1] / middle[0, 1]
    assert beside.dropna().between(1.1, 1.4).all()
    quiet = (middle[1, 0] - middle[0, 0]).dropna()
    assert quiet.between(-0.5, 1.1).all()


def test_a_step_just_above_what_graphs_cover_is_longer() -> None:
    loops = evidence.load("lab_gpu_loops").frame
    alone = loops[loops.least == 0].set_index("round").step_ms
    one = loops[loops.least == 1].set_index("round").step_ms
    assert (one > 1.15 * alone).all()


NAMES = [name for name in evidence.tables() if name.startswith("steps_")]


def times(name: str) -> pd.DataFrame:
    return from_kernels.times(evidence.load(name))


@pytest.mark.parametrize("name", NAMES)
def test_products_take_the_root_of_weight_read_and_compute_rather_than_the_longer(name: str) -> None:
    unit, found = from_kernels.unit(evidence.load(name)), times(name)
    T = from_kernels.lines(found, unit)[0].set_index("name")["value"]["T"]
    products = found[found["what"] == "matrices"]
    read = float(products[(products["decodes"] == 1) & (products["prompts"] == 0)]["seconds"].iloc[0])
    both = products[products["prompts"] > 0]
    n = both["decodes"] + both["prompts"] * both["tokens"]
    off = {
        law.name: np.array([law(t_w=read, t_c=T * one, t_rest=0) for one in n]) / both["seconds"] - 1
        for law in (theory.step_time, theory.step_serial)
    }
    assert off["step_time"].abs().max() < 0.1
    assert off["step_serial"].min() < -0.15
    assert off["step_serial"].mean() < -0.05


def test_few_decodes_read_at_the_memory_s_pace_and_many_at_the_kernel_s() -> None:
    def read(name: str, batch: int) -> float:  # seconds of a token
        steps = times(name).query("what == 'decode' and decodes == @batch")
        return float(np.polyfit(steps["context"] * batch, steps["seconds"], 1)[0])

    old, new = ("steps_h100_sxm_llama_3_8b_bf16", "steps_h200_sxm_llama_3_8b_bf16")
    memory = GPUS["h200-sxm"].hbm_bw / GPUS["h100-sxm"].hbm_bw
    for batch in (8, 16):
        assert read(old, batch) / read(new, batch) == pytest.approx(memory, rel=0.06)
    for batch in (32, 64, 128):
        assert read(old, batch) / read(new, batch) == pytest.approx(1, abs=0.05)


def test_the_table_has_every_level_and_coefficient():
    found = levels()
    moves = found.effects
    assert set(moves["engine"]) == set(found.intercept) == {"vllm", "vllm-2025", "sglang", "trtllm"}
    assert set(moves["generation"]) == {"Hopper", "Blackwell", "CDNA 3", "CDNA 4"}
    assert set(moves["kind"]) == set(found.spread) == {"dense", "mixture of experts", "MLA", "hybrid"}
    assert set(moves["weights"]) == {"bf16", "fp8", "int4", "mxfp4", "nvfp4"}
    assert "vllm/kimi-k2" in moves["model"]
    assert set(found.sd_unseen) == set(FACTORS) == set(moves)
    for values in found.intercept.values():
        assert list(values) == list(COEFFICIENTS)
        assert all(0 < values[name] < 1 for name in SHARES)


def test_constants_and_experts_move_with_the_model_and_other_shares_do_not():
    """What an engine adds is a model's, whatever GPU it runs on; of what kernels reach experts alone are a model's."""
    found = levels()
    added, chosen = {"layer", "per_sequence_overhead"}, {"grouped", "expert_imbalance"}
    for name in COEFFICIENTS:
        assert (found.sd_unseen["model"][name] > 0) == (name in added | chosen)
        assert (found.sd_unseen["generation"][name] == 0) == (name in added)
        measured = [found.effects["generation"][one][name] for one in ("Hopper", "Blackwell")]
        assert (measured == [0, 0]) == (name in added)  # but where kernels are another's, and so their launches
        assert all((move[name] == 0) or name in added | chosen for move in found.effects["model"].values())
    for name in chosen:
        assert found.sd_unseen["model"][name] >= 4 * found.sd_unseen["generation"][name]


def test_no_fitted_share_of_experts_is_a_fraction_of_what_their_kernels_reach_for_latents_in_fp8():
    """GLM-5's on either generation; on the H200 it was a quarter before its attention cost what that takes."""
    for gpu in ("h200-sxm", "b200"):
        unit = Unit.of("glm-5", gpu, 8, "fp8", engine="sglang")
        at = coefficient_key(unit.model, unit.gpu, "fp8", "sglang", kv="bf16", together=8)
        reached = kernel_values(kernels(), levels().intercept["sglang"], at)["grouped"]
        assert 2 / 3 < unit.coefficients.grouped / reached <= 1.2


def test_sources_differ_by_more_than_their_intervals_hold_and_set_ups_by_somewhat_more():
    found = by_source().set_index("source")
    assert found["inside"].loc[["silybench", "ATOM recipes", "ML.ENERGY", "our own"]].min() > 0.8
    assert found["inside"].loc["SGLang cookbook"] < 0.7
    width = load("widths").frame.set_index("name")["width"]["engine"]
    assert found["mean"].std() < width


def test_a_plan_s_chances_are_no_better_than_users_on_a_gpu_tell_and_played_ones_are():
    """Brier's scores of the pairs that a plan answers, by curves that the other pairs set."""
    pairs = served_both_ways()
    users, speed = (chance_by(name, pairs) for name in ("crowd", "speed"))
    judged = pairs[(pairs.part == "score") & pairs.planned_chance.notna()]

    def square(chance):
        return (chance[judged.index] - (judged.gain > 1)) ** 2

    scores = [square(one).mean() for one in (users, speed, pairs.planned_chance, pairs.played_chance)]
    assert scores == pytest.approx([0.164, 0.218, 0.138, 0.042], abs=0.001)
    apart, low, high = difference(square(pairs.planned_chance), square(users), judged.rival)
    assert apart == pytest.approx(scores[2] - scores[0])
    assert low < apart < 0 < high
    assert difference(square(pairs.played_chance), square(users), judged.rival)[2] < 0
