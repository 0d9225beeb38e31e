import pandas as pd
import pytest
from matplotlib.figure import Figure

from inference_math_book.figures import cadence as plots

PARTS = {"t_w": 0.02, "ttft_1": 0.1, "delta_h": 1e-4}


def test_the_grid_has_each_setting_once():
    table = plots.grid(PARTS, 100, (1, 4), (0.2, 0.5), (1, 4))
    assert len(table) == 2 * 2 * 2 * 5
    wide = table.pivot_table("ms", ["ranks", "load", "every"], "what")
    assert (wide[["P50 of gaps", "P90 of gaps", "P99 of gaps"]].diff(axis=1).iloc[:, 1:] >= 0).all(axis=None)


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
