"""The published numbers agree with each other and with the models' shapes, as far as they can be checked."""

import sys
from pathlib import Path

import derive_kv_offload as kv_offload
import derive_silybench as silybench
import numpy as np
import pandas as pd
import pytest

from inference_math.catalogue import GPUS, MODELS
from inference_math.evidence import data_dir, load


def test_sarathi_steps_are_the_sum_of_their_parts() -> None:
    table = load("sarathi").frame
    steps = table[table.place == "Table 2"].pivot_table(index="step", columns="quantity", values="value", sort=False)
    assert list(steps.index) == ["prefill", "decode", "mixed"]
    np.testing.assert_allclose(steps.linear_time + steps.attention_time, steps.step_time, rtol=1e-9)
    prefill, decode, mixed = (steps.loc[step] for step in steps.index)
    assert prefill.step_time / 1024 == pytest.approx(prefill.prefill_token_time, rel=2e-3)
    assert decode.step_time / 4 == pytest.approx(decode.decode_token_time, rel=1e-3)
    # The decodes of a mixed step pay what they add to the prefill of as many tokens.
    assert (mixed.step_time - prefill.step_time) / 3 == pytest.approx(mixed.decode_token_time, rel=1e-3)


def test_sarathi_cost_ratios_follow_from_its_step_times() -> None:
    table = load("sarathi").frame
    printed = table[table.quantity == "decode_over_prefill_cost"].set_index("batch").value
    assert list(printed.index) == [1, 2, 18]
    for batch, ratio in printed.items():
        assert (44.28 + 5.68 / 4 * batch) / batch / 0.229 == pytest.approx(ratio, rel=0.03)


def test_sarathi_gains_are_smaller_for_longer_sequences() -> None:
    table = load("sarathi").frame
    gains = table[table.place.isin(["Table 4", "Figure 11a"])]
    for _, rows in gains.groupby(["place", "model"]):
        assert list(rows.context) == [1024, 2048, 3072]
        assert rows.value.is_monotonic_decreasing
    assert set(table[table.quantity.isin(["gain", "peak_gain"])].unit) == {"1"}


def test_distserve_rates_and_kv_cache_add_up() -> None:
    table = load("distserve").frame
    rate = table[table.quantity == "rate_per_gpu"].set_index("serves").value
    assert rate["disaggregated"] == pytest.approx(min(2 * rate["prefill"], rate["decode"]) / 3, abs=0.005)
    cache = table[table.quantity == "kv_cache"].iloc[0]
    size = cache.prompt_tokens * MODELS[cache.model].kv_token("bf16")
    assert cache.unit == "GiB"
    assert size / 2**30 == pytest.approx(cache.value, abs=0.006)


def test_cake_halves_add_up_in_eight_settings_of_ten() -> None:
    table = load("cake").frame
    whole = 1 / table.over_load + 1 / table.over_compute
    assert len(whole) == 10
    assert ((whole - 1).abs() < 0.05).sum() == 8
    assert set(table.setting[(whole - 1).abs() >= 0.05]) == {"4K", "70B at 12.5 %"}


def test_offloaded_cache_comes_at_the_speed_of_pcie() -> None:
    table = load("vllm_kv_offload").frame
    slope, start = np.polyfit(table.prompt_tokens, table.load_ms, 1)
    assert start == pytest.approx(10.8, abs=0.1)
    assert MODELS["llama-3-8b"].kv_token("bf16") / slope / 1e6 == pytest.approx(44.6, abs=0.1)  # GB/s, of 64
    ratio = table.compute_ms / table.load_ms
    assert ratio.is_monotonic_increasing
    assert ratio.iloc[-1] == pytest.approx(22, abs=0.1)


def test_kv_tiers_are_those_of_eight_h100() -> None:
    tiers = load("kv_tiers").frame.set_index("tier")
    h100 = GPUS["h100-sxm"]
    bandwidth = [h100.hbm_bw, h100.pcie_bw, 14e9, 400e9 / 8]
    assert tiers.read_bw.to_dict() == dict(zip(["hbm", "dram", "local_ssd", "network_store"], bandwidth, strict=True))
    assert tiers.read_bw["local_ssd"] < h100.pcie_bw / 4  # four lanes of sixteen
    assert tiers.capacity_node["hbm"] == 8 * h100.hbm_bytes
    assert tiers.capacity_node["local_ssd"] == pytest.approx(8 * 3.84e12)
    assert tiers.capacity_node.dropna().is_monotonic_increasing
    # Only what is a class of sharable tiers is shared.
    assert (tiers.shared == tiers.classification.isin(["S2", "S3"])).all()


def test_transferred_caches_are_those_of_the_prompt_in_binary_units() -> None:
    table = load("kv_transfer").frame
    moved = (table.prompt_tokens + 16) * MODELS["qwen3-8b"].kv_token("bf16")
    assert len(table) == 9
    # The printed sizes are rounded: to a MiB of twenty at worst.
    np.testing.assert_allclose(table.kv_bytes, moved, rtol=0.0126)
    np.testing.assert_allclose(table.bandwidth, moved / (table.transfer_ms / 1e3), rtol=0.01)
    assert table.bandwidth.is_monotonic_increasing
    assert table.bandwidth.iloc[-1] == pytest.approx(0.76 * 200e9, rel=0.005)
    assert (table.transfer_ms / table.ttft_ms).max() < 0.043


def test_tiers_help_only_caches_that_do_not_fit() -> None:
    table = load("tiered_cache").frame
    assert len(table) == 8
    assert (table.engines * table.gpus_per_engine == 16).all()
    assert (table.store_gb.isna() == (table.tier == "hbm")).all()
    gains = {}
    for name, rows in table.groupby(["prefix_tokens", "fits"]):
        before, after = rows.tokens_per_s
        gains[name] = after / before - 1
    assert gains == pytest.approx(
        {(8000, "HBM"): -0.015, (30000, "HBM and host"): 0.211, (50000, "neither"): 0.227, (70000, "neither"): 0.287},
        abs=1e-3,
    )
    # Requests in the system times their tokens over their time.
    tokens = table.prefix_tokens + table.question_tokens + table.output_tokens
    np.testing.assert_allclose(table.concurrency * tokens / table.e2e_mean_s, table.tokens_per_s, rtol=0.04)


def test_disaggregated_runs_keep_the_broken_one_and_say_so() -> None:
    ratios = load("pd_ratio")
    table = ratios.frame
    assert len(table) == 57
    broken = table.completed < 500
    setting = ["prefill_workers", "decode_workers", "concurrency", "prompt_tokens", "output_tokens"]
    assert table.loc[broken, setting].to_numpy().tolist() == [[1, 1, 128, 2048, 32784]]
    assert any("380 of 500" in caution for caution in ratios.cautions)
    assert (table.output_tokens_made < table.output_tokens).all()
    # Requests in the system are about those allowed, fewer at the ends; a mean of products is no product of means.
    whole = table[~broken]
    time = (whole.ttft_mean_ms + (whole.output_tokens_made - 1) * whole.tpot_mean_ms) / 1e3
    assert (whole.requests_per_s * time / whole.concurrency).between(0.71, 1.16).all()


def test_later_runs_of_the_same_prompts_seem_to_compute_faster() -> None:
    table = load("pd_ratio").frame
    one = table[(table.prefill_workers == 1) & (table.decode_workers == 3)]
    rate = (one.requests_per_s * one.prompt_tokens).set_axis(
        pd.MultiIndex.from_frame(one[["prompt_tokens", "output_tokens", "concurrency"]])
    )
    assert rate[2048, 128, 128] == pytest.approx(rate[32784, 2048, 128], rel=0.01)
    assert rate[2048, 128, 64] > 2.4 * rate[2048, 128, 128]


HEADER = "prompt_k_tokens,ttft_gpu_compute_ms,ttft_load_from_cpu_ms"


def test_kv_offload_script_counts_tokens_and_sorts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "raw.csv").write_text(f"{HEADER}\n100,6841.2,310.4\n10,263.5,43.0\n")
    monkeypatch.setattr(sys, "argv", ["", str(tmp_path / "raw.csv"), "--out", str(tmp_path / "out")])
    kv_offload.main()
    written = (tmp_path / "out" / "vllm_kv_offload.csv").read_text().splitlines()
    assert written == ["prompt_tokens,compute_ms,load_ms", "10000,263.5,43", "100000,6841,310.4"]
    committed = (data_dir() / "published" / "vllm_kv_offload.csv").read_text().splitlines()
    assert [committed[0], committed[1], committed[-1]] == written


def test_kv_offload_refuses_a_file_without_its_columns() -> None:
    with pytest.raises(ValueError, match="lacks the columns ttft_gpu_compute_ms, ttft_load_from_cpu_ms"):
        kv_offload.derive(pd.DataFrame({"prompt_k_tokens": [10]}))


def test_closed_loop_is_consistent_and_67_of_its_77_rows_are_used() -> None:
    closed = load("silybench")
    table = closed.frame
    assert len(table) == 77
    assert table.used.sum() == 67
    assert closed.licence == "CC-BY-4.0"
    assert "for validation only" in closed.title
    assert "no default coefficient of the package is fitted" in closed.cautions[0]
    np.testing.assert_allclose(table.requests_per_s * table.output_tokens, table.output_tokens_per_s, rtol=1e-4)
    # Users in the system over their rate; at 4 users the last of 13 waves is half empty.
    used = table[table.used]
    whole = used.concurrency / used.requests_per_s / used.e2e_s
    np.testing.assert_allclose(whole, np.where(used.concurrency == 4, 13 / 12.5, 1), rtol=1e-4)
    # Between the median time of all tokens alone and what all would take at the 95th percentiles.
    later = used.output_tokens - 1
    assert (later * used.itl_median_ms / 1e3 < used.e2e_s).all()
    assert (used.e2e_s < (used.ttft_p95_ms + later * used.tpot_p95_ms) / 1e3).all()


def test_closed_loop_has_a_cache_in_bf16_beside_weights_of_either_precision() -> None:
    shape = MODELS["qwen3-8b"]
    head = 2 * (shape.embedding_params + shape.lm_head_params)
    weights = {"bf16": 2 * shape.n_params_total + head, "fp8": shape.n_params_total + head}
    for precision, tokens in silybench.KV_TOKENS.items():
        memory = GPUS["h100-sxm"].hbm_bytes
        assert 0.89 < (weights[precision] + tokens * shape.kv_token("bf16")) / memory < 0.92
        assert (weights[precision] + tokens * shape.kv_token("fp8")) / memory < 0.56
