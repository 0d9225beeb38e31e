from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pandas as pd
import pytest
import splits

from inference_math.evidence import load
from inference_math.unit.nearest import known_comparisons


def points(rows):
    table = pd.DataFrame(rows, columns=["speed", "per_gpu", "prefill_workers"])
    same = {"gpu": "g", "weights": "fp8", "n_in": 1.0, "n_out": 2.0, "drafts": "none", "engine": "sglang"}
    return table.assign(**same)


def test_a_split_is_set_beside_the_best_that_is_about_as_fast():
    found = splits.pairs(points([(10, 300, 1), (20, 200, 2), (12, 100, 0), (15, 90, 0), (29, 50, 0), (9.9, 999, 0)]))
    assert found["rival"].tolist() == [2, 4]  # the last one is too slow for either
    assert found["gain"].tolist() == [3.0, 4.0]


def test_what_is_much_faster_is_no_rival():
    assert splits.pairs(points([(10, 300, 1), (15.1, 100, 0)])).empty
    assert not splits.pairs(points([(10, 300, 1), (15.0, 100, 0)])).empty


FRAME = splits.points()
# A split and its rival of few users, quick to play.
PAIRS = splits.pairs(FRAME[FRAME["part"] == "choose"])
SMALL = PAIRS[PAIRS["users"] == 8].iloc[0]
FOUND = load("predicted_split_gains").frame


def test_gpus_are_those_of_the_layout_and_rivals_are_of_the_same_set_up():
    one = FRAME[(FRAME["prefill_workers"] == 2) & (FRAME["prefill_dp"] == 8)].iloc[0]
    assert one["gpus"] == 16 + one["workers"] * one["tp"] * one["dp"]
    both = PAIRS[splits.SAME].reset_index(drop=True)
    pd.testing.assert_frame_equal(both, FRAME.loc[PAIRS["rival"], splits.SAME].reset_index(drop=True))


def test_factors_multiply_to_the_played_gain():
    product = FOUND[splits.FACTORS].prod(axis=1, skipna=False)
    assert product.dropna().to_numpy() == pytest.approx(FOUND["played"][product.notna()].to_numpy(), rel=1e-4)
    assert product.notna().mean() > 0.9


def test_what_is_stored_is_what_is_compared():
    one = FRAME.loc[[SMALL.name, SMALL["rival"]]]
    (again,) = splits.compared(one).to_dict("records")
    stored = FOUND[FOUND["row"] == SMALL.name + 2].iloc[0]
    for name in ("gain", "played", "planned", *splits.FACTORS):
        assert again[name] == pytest.approx(stored[name], rel=1e-4)


def test_what_is_planned_is_stored_too():
    for row in FOUND.dropna(subset=["planned"]).itertuples():
        found = splits.gain_planned(FRAME.loc[row.row - 2], FRAME.loc[row.rival - 2])
        assert found == pytest.approx(row.planned, rel=1e-4), row.row


def test_a_split_is_played_in_its_own_layouts():
    """Prefill GPUs that share attention by requests: a prompt alone takes longer, and decodes as long as before."""
    row = FRAME.loc[SMALL.name]
    other = row.copy()
    other["prefill_dp"], other["prefill_tp"] = row["prefill_tp"], 1
    plain, slow = splits.played(row), splits.played(other)
    assert slow["ttft"] > plain["ttft"]
    assert slow["tpot"] == pytest.approx(plain["tpot"], rel=0.02)


def test_chances_are_even_where_no_gain_is_predicted():
    table = pd.DataFrame(
        {"gpu": ["b200"] * 3, "n_in": 7373.0, "n_out": 921.6, "played": [0.5, 1.0, 2.0], "planned": np.nan}
    )
    found = splits.chances(table)
    assert found["planned"].isna().all()
    assert found["played"].is_monotonic_increasing
    error = known_comparisons()["pools, played"]  # even but for a bias
    assert found["played"][1] == pytest.approx(NormalDist().cdf(error.bias / error.sd), abs=0.02)


def test_chances_are_those_that_are_stored():
    found = splits.chances(FOUND)
    for how in splits.HOW:
        assert found[how].to_numpy() == pytest.approx(FOUND[f"{how}_chance"].to_numpy(), rel=1e-4, nan_ok=True)


def test_places_on_the_map_are_stored_as_they_are_computed():
    stored = load("predicted_split_places").frame
    assert stored["row"].tolist() == (splits.pairs(FRAME).index + 2).tolist()
    one = PAIRS.loc[[SMALL.name]]
    again = splits.places(one, FRAME).iloc[0]
    here = stored[stored["row"] == SMALL.name + 2].iloc[0]
    assert here[["fits", "prompt", "steps"]].tolist() == pytest.approx(again.tolist(), rel=1e-3)
