from __future__ import annotations

import pytest
from matplotlib.figure import Figure

from inference_math import evidence
from inference_math.catalogue import tiers
from inference_math_book.figures import offloading as plots

TRACES = ("mooncake-conversation", "mooncake-synthetic")


def test_shares_are_a_distribution():
    frame = plots.shares_of_requests(Figure().subplots(), TRACES)
    for trace, rows in frame.groupby("trace"):
        assert rows.percent.is_monotonic_increasing
        assert rows.alpha.between(0, 1).all()
        row = evidence.load("traces_alpha").frame.set_index("trace").loc[trace]
        assert rows[rows.alpha == 0.9].percent.iloc[0] == pytest.approx(100 * (1 - row["share_0.9"]))


def test_the_reuse_curve_is_what_reach_reads():
    frame = plots.reuse_by_capacity(Figure().subplots(), TRACES, {"here": 1e6})
    row = frame.iloc[-1]
    assert tiers.reach(row.trace, row.capacity_tokens) == pytest.approx(row.token_share)


def test_loading_what_pays_never_costs():
    frame = plots.saved_by_acceleration(Figure().subplots(), TRACES[0], {"SSD": 3.0})
    assert (frame.saved_mixed > 0).all()
    assert frame.saved_load_all.min() < 0 < frame.saved_load_all.max()
    assert frame.saved_mixed.is_monotonic_increasing
    assert plots.load_or_compute(Figure().subplots()).e.is_monotonic_increasing
