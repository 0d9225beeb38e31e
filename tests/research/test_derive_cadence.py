"""Measured cadences: one count of steps for all engines, SI units."""

from __future__ import annotations

import derive_cadence as derive
import pandas as pd
import pytest

ROW = {
    "source": "a#1", "model": "m", "gpu": "g", "gpus": 8, "layout": "DP8", "engine": "vllm fork", "n_in": 1000.0,
    "n_out": None, "users": 8, "rate": None, "interval": 4, "metric": "ttft_mean", "value": 250.0, "unit": "ms",
}  # fmt: skip


def test_engines_that_count_the_steps_between_have_one_more():
    rows = [ROW, ROW | {"engine": "sglang"}, ROW | {"engine": "atom", "interval": 0, "unit": "token/s"}]
    found = derive.derive(pd.DataFrame(rows))
    assert found.engine.tolist() == ["vllm", "sglang", "atom"]
    assert found.every.tolist() == [4, 5, 1]
    assert found.value.tolist() == [0.25, 0.25, 250.0]
    assert found.unit.tolist() == ["s", "s", "token/s"]
    assert found.n_out.isna().all()


def test_unknown_units_are_named():
    with pytest.raises(ValueError, match="units that are not known: furlong"):
        derive.derive(pd.DataFrame([ROW | {"unit": "furlong"}]))
