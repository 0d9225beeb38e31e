from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from inference_math_book.figures import cadence as plots

PARTS = {"t_w": 0.02, "ttft_1": 0.1, "delta_h": 1e-4}


def test_a_larger_cadence_has_fewer_long_gaps_and_longer_ones():
    drawn = plots.gaps(Figure().subplots(), PARTS, 16, 100, 4, (1, 8))
    one, eight = (drawn[drawn.every == every].set_index("level").seconds for every in (1, 8))
    assert eight.asof(0.8) < one.asof(0.8)
    assert eight.asof(0.99) > one.asof(0.99)


def test_one_rank_keeps_its_mean_gap_and_many_gain():
    rows = []
    for ranks, every in product((1, 8), (1, 2, 8)):
        run = plots.opened(PARTS, 2.0 * ranks, 100, every, ranks)
        found = {"gap simulated": run.gaps.mean, "ttft simulated": run.requests.ttft.mean()}
        rows.append({"ranks": ranks, "every": every} | found)
    table = plots.by_cadence(Figure().subplots(1, 2), PARTS, 2.0, 100, pd.DataFrame(rows))
    by = table.set_index(["ranks", "every"])
    assert by.gap[1, 8] == pytest.approx(by.gap[1, 1], rel=0.02)
    assert by.gap[8, 8] < 0.7 * by.gap[8, 1]
    assert by.ttft[8, 2] < by.ttft[8, 1]  # one that plans ahead no longer waits for a long step
    for name in ("gap", "ttft"):
        assert (table[f"{name} simulated"] / table[name]).to_numpy() == pytest.approx(1, abs=0.05)


def test_the_grid_has_each_setting_once():
    table = plots.grid(PARTS, 100, (1, 4), (0.2, 0.5), (1, 4))
    assert len(table) == 2 * 2 * 2 * 5
    wide = table.pivot_table("ms", ["ranks", "load", "every"], "what")
    assert (wide[["P50 of gaps", "P90 of gaps", "P99 of gaps"]].diff(axis=1).iloc[:, 1:] >= 0).all(axis=None)


def test_the_best_group_lies_at_the_bottom_of_its_curve():
    table = plots.groups(Figure().subplots(), 24, 0.1, 0.4, 0.1, (1, 8))
    for _, rows in table.groupby("every"):
        assert 1 < rows.together[rows.ttft.idxmin()] < 24
    lows = table.loc[table.groupby("every").ttft.idxmin()].set_index("every").together
    assert lows[8] > lows[1]
    assert np.isfinite(table.ttft).all()


def test_schedules_of_one_family_trade_first_tokens_for_gaps():
    """Chunks shorten the longest gaps and a cadence does not; on ranks it shortens the mean."""
    table = pd.DataFrame(
        {"ranks": ranks, "schedule": name, "set": setting}
        | plots.scheduled(PARTS, 2048, 100, ranks, load, name, setting)
        for ranks, load in ((1, 0.5), (8, 0.35))
        for name, settings in plots.FAMILY.items()
        for setting in settings
    )
    plots.family(Figure().subplots(2, 2), table, (0.4, 0.04))
    by = table.set_index(["ranks", "schedule", "set"]).sort_index()
    for ranks in (1, 8):
        every, chunks, pools = (by.loc[ranks, name] for name in ("every N-th step", "chunks", "pools"))
        assert every["ttft"][32] > 2 * every["ttft"][2]
        assert every["P99 of gaps"][32] >= every["P99 of gaps"][1]
        assert chunks["P99 of gaps"].is_monotonic_increasing
        assert chunks["P99 of gaps"][384] < 0.2 * every["P99 of gaps"][1]
        assert pools["mean gap"].max() < min(chunks["mean gap"].min(), every["mean gap"].min())
    one, eight = (by.loc[ranks, "every N-th step"]["mean gap"] for ranks in (1, 8))
    assert one.to_numpy() == pytest.approx(one[1], rel=0.1)
    assert eight[8] < 0.4 * eight[1]
