"""What aiconfigurator predicts for closed loops: the committed tables, and the script that wrote them."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import sys

import numpy as np
import pandas as pd
import peers
import pytest
import served

from inference_math import catalogue, evidence

QWEN, H100 = catalogue.model("qwen3-8b"), catalogue.gpu("h100-sxm")


@pytest.fixture(scope="module")
def committed():
    return pd.read_csv(evidence.data_dir() / "published" / "peers.csv")


@pytest.fixture(scope="module")
def measured():
    return evidence.load("silybench").frame.query("used")


@pytest.fixture(scope="module")
def points():
    """The committed predictions of served points, beside what was measured."""
    found = evidence.load("peers_served").frame.fillna({"reason": ""})
    both = peers.validation().merge(found, on="row", suffixes=("", "_peer"))
    told = {"aggregated": both.ttft_s_peer + (both.n_out - 1) * both.tpot_s_peer}
    return both.assign(**told, static=both.static_ttft_s + (both.n_out - 1) * both.static_tpot_s)


def test_without_aiconfigurator_the_script_says_what_to_install(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr(sys, "argv", ["", "--out", str(tmp_path)])
    assert peers.main() == 2
    assert capsys.readouterr().out == (
        "aiconfigurator-core is not installed; run: python -m pip install aiconfigurator-core==0.12.0\n"
    )
    assert not list(tmp_path.iterdir())


def test_another_version_is_refused(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: object())
    monkeypatch.setattr(importlib.metadata, "version", lambda _: "0.11.0")
    with pytest.raises(peers.MissingError, match=r"must be 0\.12\.0, not 0\.11\.0; run: python -m pip install"):
        peers.predict(pd.DataFrame())


def test_the_table_has_a_row_for_each_row_in_use(committed, measured):
    pd.testing.assert_frame_equal(committed[peers.KEY], measured[peers.KEY].reset_index(drop=True), check_dtype=False)
    assert committed[["tool", "version", "way"]].drop_duplicates().to_numpy().tolist() == [
        ["aiconfigurator", "0.12.0", "static"]
    ]
    e2e = committed.ttft_s + (committed.output_tokens - 1) * committed.tpot_s
    np.testing.assert_allclose(committed.e2e_s, e2e, rtol=1e-4)


def test_no_prediction_is_below_what_the_hardware_must_do(committed):
    weights = committed.precision.map(QWEN.weight_bytes) / H100.hbm_bw
    attention = 2 * QWEN.n_layers * QWEN.d_att * committed.prompt_tokens**2 / H100.bf16_flops
    matrices = 2 * QWEN.n_params * committed.prompt_tokens / committed.precision.map(H100.flops)
    assert (committed.tpot_s < weights).sum() == 0
    assert (committed.ttft_s < committed.concurrency * (matrices + attention)).sum() == 0


def test_aiconfigurator_gives_the_rows_of_the_table(committed, measured):
    try:
        found = peers.formatted(peers.predict(measured.iloc[::16]))
    except peers.MissingError as error:
        pytest.skip(str(error))
    times = ["ttft_s", "tpot_s", "e2e_s"]
    np.testing.assert_allclose(found[times].astype(float), committed[times].iloc[::16], rtol=1e-4)


def test_each_served_point_has_times_or_a_reason(points):
    assert len(points) == len(peers.validation()) == len(evidence.load("peers_served").frame)
    refused = points.reason != ""
    times = [*peers.TIMES[2:], "tpot_s_peer", "ttft_s_peer"]
    assert (points[times].isna().eq(refused, axis=0)).all(axis=None)
    # Two GPUs and more that share each expert: the tool has measured only whole ones.
    cut = (points.model == "gpt-oss-120b") & (points.engine == "trtllm") & (points.tp * points.dp > points.ep)
    assert (refused == cut).all()
    assert set(points.reason[refused]) == {"MoE data missing"}


def test_no_served_prediction_is_below_the_floor(points):
    for loop in served.loops(points[points.reason == ""]):
        for way in ("static", "aggregated"):
            assert (loop.rows[way] > loop.unit.floor.e2e(loop.work, loop.users)).all()


@pytest.mark.parametrize(("way", "percent", "others"), [("static", 17.1, 14.1), ("aggregated", 17.0, 14.3)])
def test_error_of_the_served_points(way, percent, others, points):
    chosen = points[(points.left_out == "") & (points.reason == "")]
    error = 100 * (chosen[way] / chosen.e2e_s - 1).abs()
    assert error.mean() == pytest.approx(percent, abs=0.05)
    assert error[chosen.model != "deepseek-v3"].mean() == pytest.approx(others, abs=0.06)


def test_requests_of_a_rank_are_the_users_by_rank_and_lengths_whole():
    asked: list[tuple[object, ...]] = []

    def run(*what: object) -> tuple[float, float]:
        asked.append(what)
        return 0.5, 0.01

    row = peers.validation().query("dp == 8").iloc[0]
    assert peers._asked(run, row, "static") == (0.5, 0.01, "")
    assert asked == [(round(row.n_in), round(row.n_out), row.users // 8, "static")]


def test_aiconfigurator_gives_the_served_rows_of_the_table():
    try:
        found = peers.predict_served(peers.validation().iloc[::32])
    except peers.MissingError as error:
        pytest.skip(str(error))
    committed = evidence.load("peers_served").frame.fillna({"reason": ""})
    both = found.merge(committed, on="row", suffixes=("", "_committed"), validate="1:1")
    assert len(both) == len(found)
    assert (both.reason == both.reason_committed).all()
    for name in peers.TIMES:
        np.testing.assert_allclose(both[name], both[f"{name}_committed"], rtol=1e-3)


def test_every_validation_point_has_a_checkpoint_and_a_system():
    rows = peers.validation()
    assert set(rows.gpu) <= set(peers.SYSTEMS)
    assert set(zip(rows.model, rows.weights, strict=True)) == set(peers.CHECKPOINTS)
