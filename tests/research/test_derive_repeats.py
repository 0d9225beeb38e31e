"""Repeated runs: which are taken, and their units."""

from __future__ import annotations

import derive_repeats as derive
import pandas as pd
import pytest

ROW = {
    "gpu": "B200", "engine": "vLLM", "users": 4.0, "ttft_mean_s": 0.5, "ttft_p50_s": 0.4, "tpot_mean_ms": 20.0,
    "output_tok_s": 100.0,
}  # fmt: skip


def made(**changes):
    rows = [
        ROW | {"pair": name, "run_id": f"{name}_{number}_{arm}"} | changes
        for name in derive.REPEATED for number, arm in enumerate(("on", "off_c8", "sa"))
    ]  # fmt: skip
    return pd.DataFrame([*rows, ROW | {"pair": "another", "run_id": "another_on"}])


def test_only_what_differs_in_the_recorder_is_a_repeat():
    found = derive.derive(made())
    assert found.groupby("set_up").size().to_dict() == dict.fromkeys(derive.REPEATED, 2)
    assert set(found[found.set_up.str.contains("8k1k")].lengths) == {"fixed"}
    assert set(found[~found.set_up.str.contains("8k1k")].lengths) == {"agents"}
    assert found.tpot_s.tolist() == pytest.approx([0.02] * len(found))
    assert (set(found.gpu), set(found.engine)) == ({"b200"}, {"vllm"})


def test_a_set_up_without_a_repeat_is_named():
    with pytest.raises(ValueError, match="no repeats of glm52_b200_hicache"):
        derive.derive(made().query("run_id != 'glm52_b200_hicache_0_on'"))
