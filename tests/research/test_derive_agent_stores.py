"""Runs with and without a tier: what is kept of them, and what is left out."""

from __future__ import annotations

import derive_agent_stores as derive
import numpy as np
import pandas as pd
import pytest

COLUMNS = (
    "run_id", "pair", "arm", "model", "gpu", "n_gpus", "engine", "users", "workload", "window_s", "prompt_mean",
    "output_mean", "reuse_hbm", "reuse_host", "reuse_total", "host_gb", "ttft_mean_s", "ttft_p50_s", "tpot_mean_ms",
    "tpot_p50_ms", "tpot_p90_ms", "output_tok_s", "total_tok_s", "n_requests", "preemptions", "note",
)  # fmt: skip


def raw(**known):
    row = dict.fromkeys(COLUMNS, np.nan) | {
        "run_id": "one", "pair": "kimik3_c16", "arm": "host tier", "model": "K", "gpu": "MI355X (or so)", "n_gpus": 8,
        "engine": "vLLM", "workload": "prefix pool 16, 512 out", "reuse_total": 0.9, "note": "",
    }  # fmt: skip
    return pd.DataFrame([row | known])


def test_a_rate_is_of_tokens_or_of_requests():
    assert derive.derive(raw(output_tok_s=1024.0)).rate.item() == 2.0
    assert derive.derive(raw(output_tok_s=1024.0, output_mean=256.0)).rate.item() == 4.0
    assert derive.derive(raw(n_requests=300, window_s=600.0)).rate.item() == 0.5
    assert derive.derive(raw()).rate.isna().item()


def test_shares_add_up_where_they_are_of_the_same_tokens():
    apart = {"reuse_total": np.nan, "reuse_hbm": 0.2}
    assert derive.derive(raw(**apart, reuse_host=0.5)).found.item() == pytest.approx(0.7)
    assert derive.derive(raw(**apart)).found.item() == pytest.approx(0.2)
    assert derive.derive(raw(**(apart | {"reuse_hbm": 0.3}), reuse_host=0.8)).found.isna().item()
    assert derive.derive(raw(reuse_total=np.nan)).found.isna().item()


def test_medians_come_before_means_and_say_so():
    row = derive.derive(raw(ttft_mean_s=3.0, ttft_p50_s=2.0, tpot_mean_ms=20.0)).iloc[0]
    assert (row.ttft_s, row.ttft, row.gap_s, row.gap) == (2.0, "p50", 0.02, "mean")
    assert row.gpu == "MI355X"


def test_counters_of_a_connector_are_read_and_other_groups_left_out():
    row = derive.derive(raw(note="fetched 7 tokens (60.0 us each), stored 2 (150.3 us each), of 600 s")).iloc[0]
    assert (row.load_us, row.write_us) == (60.0, 150.3)
    assert derive.derive(pd.concat([raw(), raw(pair="kimik3_cadence_c16")])).pair.tolist() == ["kimik3_c16"]
