from __future__ import annotations

import fit_handover
import numpy as np
import pandas as pd
import pytest
import splits

from inference_math.evidence import load

KNOWN = load("handover").frame
SET_UP = {"gpu": "g", "engine": "e", "weights": "fp8", "n_in": 1.0, "n_out": 2.0, "drafts": "none", "users": 4}


def points(rows, **more):
    """Points of one set-up: date, prefill workers, measured TTFT; all are played in a second."""
    table = pd.DataFrame(rows, columns=["date", "prefill_workers", "ttft_s"])
    layout = {name: 1 for name in fit_handover.LAYOUT if name not in {*SET_UP, "prefill_workers"}}
    return table.assign(**SET_UP | layout | more)


@pytest.fixture
def a_second(monkeypatch):
    monkeypatch.setattr(splits, "played", lambda row: {"ttft": 1.0})


@pytest.mark.usefixtures("a_second")
def test_what_a_split_adds_is_seen_beside_the_aggregated_point_of_its_days():
    found = fit_handover.added(
        points([("2026-03-02", 1, 1.3), ("2026-03-01", 0, 0.9), ("2026-05-01", 0, 0.1), ("2026-03-01", 0, 1.0)])
    )
    assert found["beside"].tolist() == pytest.approx([-0.05])
    assert found["added"].tolist() == pytest.approx([0.35])


@pytest.mark.usefixtures("a_second")
def test_splits_with_many_users_and_those_without_a_point_beside_them_say_nothing():
    both = points([("2026-03-01", 1, 1.3), ("2026-03-01", 0, 1.0)])
    assert len(fit_handover.added(both)) == 1
    assert fit_handover.added(both.assign(users=fit_handover.FEW + 1)).empty
    assert fit_handover.added(both.assign(gpu=["g", "h"])).empty


@pytest.mark.parametrize(("seconds", "sd"), [(0.05, 0.5), (0.2, 0.1)])
def test_seconds_and_spread_are_found_again(seconds, sd):
    drawn = seconds * np.exp(np.random.default_rng(1).normal(0, sd, 400))
    rows = points([("2026-03-01", 1, 1.0)] * 400, users=range(400)).assign(added=drawn)
    found = fit_handover.fitted(rows)
    assert found["seconds"] == pytest.approx(seconds, rel=0.05)
    assert found["sd"] == pytest.approx(sd, rel=0.15)
    rows.loc[:20, "added"] = 100 * seconds  # waits for something else
    assert fit_handover.fitted(rows)["seconds"] == pytest.approx(seconds, rel=0.2)


def test_a_split_that_was_served_again_counts_once_and_none_takes_less_than_nothing():
    again = points([("2026-03-01", 1, 1.0)] * 5, users=[1, 1, 1, 2, 3]).assign(added=[0.5, 0.4, 9.0, 0.5, 0.5])
    assert fit_handover.fitted(again)["seconds"] == pytest.approx(0.5)
    lower = fit_handover.fitted(again.assign(added=-0.1))
    assert lower == {
        "seconds": pytest.approx(fit_handover.LEAST),
        "sd": pytest.approx(0, abs=1e-3),
        "splits": 3,
        "rows": 5,
    }
    assert np.isnan(fit_handover.fitted(again[:3])["sd"])


def test_the_table_is_fitted_to_the_part_that_chooses_alone(monkeypatch, tmp_path):
    added = fit_handover.added

    def only(frame):
        assert frame["part"].unique().tolist() == ["choose"]
        return added(frame)

    monkeypatch.setattr(fit_handover, "added", only)
    monkeypatch.setattr("sys.argv", ["fit_handover.py", "--out", str(tmp_path)])
    fit_handover.main()
    again = pd.read_csv(tmp_path / "handover.csv")
    pd.testing.assert_frame_equal(again, KNOWN, check_dtype=False, rtol=0.05)


@pytest.mark.usefixtures("a_second")
def test_a_score_has_errors_without_and_with_the_seconds():
    both = points([("2026-03-01", 1, 1.25), ("2026-03-01", 0, 1.0)])
    found = fit_handover.scored(both, 0.25)
    assert found["without"].tolist() == pytest.approx([0.2] * 3)
    assert found["with"].tolist() == pytest.approx([0.0] * 3)
