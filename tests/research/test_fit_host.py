"""What a host takes: planted seconds are found, the table is what was derived, and no run of ours is in it."""

from __future__ import annotations

import fit_host
import numpy as np
import pandas as pd
import pytest
import transfer

from inference_math.evidence import load
from inference_math.unit.coefficients import Calibration

ROWS = transfer.chats(Calibration.zero_shot("vllm").coefficients)


def test_planted_seconds_are_found_and_the_same_of_every_model_are_sure():
    planted = ROWS.assign(measured=ROWS["step"] + 2e-3 + 5e-5 * ROWS["batch"])
    found = fit_host.derive(planted).set_index("name")
    assert found["seconds"].to_dict() == pytest.approx({"step": 2e-3, "request": 5e-5}, rel=1e-4)
    assert (found["sd"] < 1e-3 * found["seconds"]).all()


def test_the_committed_table_is_what_was_derived(monkeypatch, tmp_path):
    monkeypatch.setattr("sys.argv", ["fit_host.py", "--out", str(tmp_path)])
    fit_host.main()
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "host.csv"), load("host").frame, check_dtype=False, rtol=1e-2)


def test_a_host_works_for_requests_not_for_layers():
    """Models have 32 to 80 layers: seconds for each layer explain twice as little."""

    def off(*terms):
        counts = np.column_stack(terms)
        told = ROWS["step"] + counts @ transfer.added(ROWS, *terms)
        return float((told / ROWS["measured"] - 1).abs().mean())

    one, users, layers = np.ones(len(ROWS)), ROWS["batch"], ROWS["layers"]
    assert 1.8 * off(one, users) < off(layers, users * layers)
