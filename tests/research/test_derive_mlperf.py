from __future__ import annotations

import derive_mlperf
import pandas as pd
import pytest

from inference_math import evidence

ROW = {"org": "NVIDIA", "system": "DGX-H100_H100-SXM-80GBx8_TRT", "bench": "llama2-70b-99.9", "valid": True}
TIMES = {"ttft_mean_ms": 275.9, "ttft_p99_ms": 461.3, "tpot_mean_ms": 155.0, "tpot_p99_ms": 175.4}


def test_only_the_named_run_and_what_it_has():
    server = ROW | TIMES | {"scen": "Server", "tok_s": 21606.0, "sps": 74.42}
    offline = ROW | dict.fromkeys(TIMES, 0.0) | {"scen": "Offline", "tok_s": 24525.0, "sps": 84.48}
    others = [server | {"org": "Dell"}, server | {"bench": "gptj-99"}, server | {"valid": False}]
    table = derive_mlperf.derive(pd.DataFrame([offline, server, *others]))
    assert list(table[table.scenario == "offline"].quantity) == ["tokens_per_s", "requests_per_s"]
    assert len(table) == 2 + 6
    committed = evidence.load("mlperf").frame
    assert committed.value.to_numpy() == pytest.approx(table.value.to_numpy(), rel=1e-3)
    assert list(committed.quantity) == list(table.quantity)
