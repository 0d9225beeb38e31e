"""What published tables say of each other and of our shapes, and the script that writes one of them."""

import sys
from pathlib import Path

import derive_kv_offload as kv_offload
import derive_silybench as silybench
import numpy as np
import pandas as pd
import pytest

from inference_math.catalogue import GPUS, MODELS
from inference_math.evidence import data_dir, load


def test_offloaded_cache_comes_at_the_speed_of_pcie() -> None:
    table = load("vllm_kv_offload").frame
    slope, start = np.polyfit(table.prompt_tokens, table.load_ms, 1)
    assert start == pytest.approx(10.8, abs=0.1)
    assert MODELS["llama-3-8b"].kv_token("bf16") / slope / 1e6 == pytest.approx(44.6, abs=0.1)  # GB/s, of 64
    ratio = table.compute_ms / table.load_ms
    assert ratio.is_monotonic_increasing
    assert ratio.iloc[-1] == pytest.approx(22, abs=0.1)


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
