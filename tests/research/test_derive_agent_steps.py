"""Steps of engines that serve agents: one row a class, cadences and shares from where they stand."""

from __future__ import annotations

import derive_agent_steps as derive
import pandas as pd
import pytest

RUN = {
    "gpu": "B200", "users": 64, "window_s": 3600, "prompt_mean": 1e5, "output_mean": 900.0, "tokens_per_step": 2.5,
    "n_requests": 100.0, "tpot_mean_ms": 20.0,
}  # fmt: skip
RUNS = [
    RUN | {"run_id": "dsv4_b200_on", "cadence": "prefill_schedule_interval 8, long-prefill threshold 512"},
    RUN | {"run_id": "dsv4_b200_sa", "reuse_hbm": 0.9},
    RUN | {"run_id": "mm3_b200_on", "cadence": None, "reuse_total": 0.95},
    RUN | {"run_id": "mm3_b200_sa", "reuse_hbm": 0.8},
]
CLASS = {"model": "m", "gpu": "B200", "engine": "vLLM", "layout": "dp8", "count": 5.0, "rank": "all 8"}
TIMES = {f"{time}_ms": 40.0 for time in derive.TIMES}
STEPS = [
    {"run_id": run, "cls": kind} | CLASS | times
    for run in derive.RUNS
    for kind in (*derive.CLASSES, "none")
    for times in (TIMES, {})  # without times: of one rank alone
]


def test_a_row_for_each_class_in_seconds():
    found = derive.derive(pd.DataFrame(RUNS), pd.DataFrame(STEPS))
    assert found.steps.tolist() == ["decode", "mixed", "prefill"] * 2
    assert (found.p95_s == 0.04).all()
    by = found.groupby("run").first()
    assert by.every.to_dict() == {"dsv4_b200_on": 8, "mm3_b200_on": 1}
    assert by.reused.to_dict() == {"dsv4_b200_on": 0.9, "mm3_b200_on": 0.95}  # its own, or the published run's
    assert by.chunk.to_dict() == {"dsv4_b200_on": 512, "mm3_b200_on": 16384}


def test_missing_runs_and_columns_are_named():
    with pytest.raises(ValueError, match="no runs mm3_b200_sa"):
        derive.derive(pd.DataFrame(RUNS[:3]), pd.DataFrame(STEPS))
    with pytest.raises(ValueError, match="lack the columns rank"):
        derive.derive(pd.DataFrame(RUNS), pd.DataFrame(STEPS).drop(columns="rank"))
