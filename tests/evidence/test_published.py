"""The published numbers agree with each other and with the models' shapes, as far as they can be checked."""

from __future__ import annotations

import sys
from pathlib import Path

import derive_kv_offload as kv_offload
import numpy as np
import pandas as pd
import pytest

from inference_math.catalogue import MODELS
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
