"""Recorded arrivals, played: the same requests, the engine's limits, and how far off."""

from __future__ import annotations

import arrivals
import numpy as np
import pytest

from inference_math.evidence import load
from inference_math.simulate import Chunked
from inference_math.unit.coefficients import DATASHEET

KEY = ["model", "arrival_s", "n_in", "n_out", "e2e_s"]


@pytest.fixture(scope="module")
def found():
    return arrivals.played()


def test_every_request_is_played_once_and_stays_the_same(found):
    table = load("queue_runs").frame.sort_values(KEY, ignore_index=True)
    assert found.sort_values(KEY, ignore_index=True)[table.columns].equals(table)
    assert np.isfinite(found[["ttft", "tpot", "e2e"]]).all(axis=None)
    for _, rows in found.groupby("model"):  # those of a request, not of its neighbour
        assert np.corrcoef(rows["e2e"], rows["e2e_s"])[0, 1] > 0.95
        assert np.corrcoef(rows["ttft"], rows["ttft_s"])[0, 1] > 0.9


def test_a_dense_model_on_one_card_is_predicted_with_its_queue(found):
    """Nothing was fitted on that card: shares of the H100's operators, and the scheduler."""
    errors = arrivals.compared(found).set_index(["model", "time"])["error"]
    assert errors["llama-3-8b"].abs().max() < 0.1
    assert abs(errors["qwen3-30b-a3b", "e2e"]) < 0.15
    assert errors["qwen3-32b", "tpot"] < -0.15  # two cards without NVLink


def test_no_more_than_the_engine_s_places_are_taken(found):
    """Who finds all 128 taken waits: the first to wait is not among the first 128."""
    rows = found[found["model"] == "llama-3-8b"].sort_values("arrival_s")
    assert rows["ttft"].iloc[:100].max() < 1
    assert rows["ttft"].iloc[200:].min() > 3


def test_each_group_of_attention_has_its_own_budget_and_places(monkeypatch):
    seen = []
    monkeypatch.setattr(arrivals.simulate, "Chunked", lambda **given: seen.append(given) or Chunked(**given))
    arrivals.played()
    assert [one["budget"] for one in seen] == [2048, 4096, 2048]
    assert [one["max_batch"] for one in seen] == [128, 256, 128]
    assert all(one["grows"] for one in seen)


def test_at_the_datasheet_nobody_is_slower(found):
    fast = arrivals.played(lambda unit: unit.calibrated(DATASHEET))
    assert (fast.groupby("model")["e2e"].mean() < found.groupby("model")["e2e"].mean()).all()


def test_means_and_errors_by_hand():
    frame = load("queue_runs").frame.query("model == 'qwen3-32b'")
    made = frame.assign(ttft=2 * frame["ttft_s"], tpot=frame["tpot_s"], e2e=frame["e2e_s"] / 2)
    table = arrivals.compared(made).set_index("time")
    assert table.loc["ttft", "predicted P90"] == pytest.approx(2 * frame["ttft_s"].quantile(0.9))
    assert table.loc["e2e", "P90"] == pytest.approx(frame["e2e_s"].quantile(0.9))
    errors = table["error"]
    assert errors.to_dict() == pytest.approx({"ttft": 1, "tpot": 0, "e2e": -0.5})
