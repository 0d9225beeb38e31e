"""Requests at overloaded engines: which are taken, and their units."""

from __future__ import annotations

import derive_queue_runs as derive
import pandas as pd
import pytest

ROW = {
    "model": "Qwen/Qwen3-30B-A3B-Instruct-2507", "gpu": "RTXPRO6000", "tp": 1, "dp": 2, "ep": 1, "engine": "vllm",
    "engine_version": "0.19.0", "precision": "bfloat16", "max_num_seqs": 128, "max_num_batched_tokens": 2048,
    "arrival_s": 1.5, "isl": 10, "osl": 20, "sched_wait_ms": 1.0, "ttft_ms": 30.0, "tpot_ms": 5.0, "e2e_ms": 125.0,
}  # fmt: skip


def made(**changes):
    return derive.derive(pd.DataFrame([ROW | changes]))


def test_times_are_seconds_and_names_ours():
    (row,) = made().to_dict("records")
    assert (row["model"], row["gpu"], row["weights"]) == ("qwen3-30b-a3b", "rtx-pro-6000", "bf16")
    assert (row["wait_s"], row["ttft_s"], row["tpot_s"], row["e2e_s"]) == pytest.approx((0.001, 0.03, 0.005, 0.125))
    assert (row["max_batch"], row["budget"], row["n_in"], row["n_out"]) == (128, 2048, 10, 20)


def test_parted_experts_are_as_many_groups_as_share_the_attention():
    assert made()["ep"].tolist() == [2]
    assert made(ep=0, dp=1)["ep"].tolist() == [1]
    assert made(tp=2, dp=1)["ep"].tolist() == [2]


def test_rows_stand_by_run_and_arrival():
    rows = [ROW | {"arrival_s": 3.0}, ROW | {"arrival_s": 1.0}, ROW | {"model": "Qwen/Qwen3-32B", "arrival_s": 0.5}]
    found = derive.derive(pd.DataFrame(rows))
    assert found["model"].tolist() == ["qwen3-30b-a3b"] * 2 + ["qwen3-32b"]
    assert found["arrival_s"].tolist() == [1.0, 3.0, 0.5]


def test_unknown_cards_are_left_out():
    assert made(gpu="RTX4090").empty
