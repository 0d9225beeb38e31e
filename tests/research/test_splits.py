from __future__ import annotations

import pandas as pd
import pytest
import splits


def points(rows):
    table = pd.DataFrame(rows, columns=["per_user", "per_gpu", "split"])
    return table.assign(model="m", gpu="g", weights="fp8", n_in=1.0, n_out=2.0)


def test_a_split_is_set_beside_the_best_that_is_as_fast():
    found = splits.gains(points([(10, 300, True), (20, 200, True), (15, 150, True), (12, 100, False), (30, 50, False)]))
    assert found.per_user.tolist() == [10, 20]  # the third is beaten in both
    assert found.aggregated.tolist() == [100, 50]
    assert found.gain.tolist() == [3.0, 4.0]
    assert found.near.tolist() == [True, True]
    (far,) = splits.gains(points([(10, 300, True), (30, 50, False)])).near
    assert not far


def test_where_nothing_is_as_fast_there_is_no_gain():
    (gain,) = splits.gains(points([(40, 10, True), (12, 100, False)])).gain
    assert pd.isna(gain)


def test_only_set_ups_served_both_ways_are_compared():
    both = splits.beside()
    assert set(both.model) == {"deepseek-v3"}
    assert both.groupby(splits.SAME).split.nunique().eq(2).all()
    row = both[both.split].iloc[0]
    assert row.per_gpu == pytest.approx(row.users * row.n_out / (row.gpus * row.n_out / row.per_user), rel=0.5)
