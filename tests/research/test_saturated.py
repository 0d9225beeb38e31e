"""Offline runs: what the table says is what a play finds, and nothing beats the hardware."""

from __future__ import annotations

import pytest
import saturated

from inference_math.evidence import load

RUNS = load("saturated").frame
TABLE = load("saturated_error").frame


def test_every_run_is_scored_and_none_is_beyond_the_hardware():
    assert TABLE.points.sum() == len(RUNS) == 514
    assert TABLE.nearest.max() < 1
    assert set(TABLE.layout) <= set(saturated.LAYOUTS.values())


@pytest.mark.long
def test_the_table_is_what_a_play_finds():
    rows = RUNS[(RUNS.gpu == "rtx-pro-6000") & (RUNS.pp == 1)]
    found = saturated.played(rows)
    assert (found.said < found.most).all()
    assert (found.places <= saturated.MOST * found.dp).all()
    key = ["memory", "kind", "layout", "crowd"]
    again, told = saturated.by_layout(found).set_index(key), TABLE.set_index(key)
    assert len(again) == 7
    for name in ("error", "bias", "nearest", "points"):
        assert again[name].to_dict() == pytest.approx(told.loc[again.index, name].to_dict(), rel=2e-3, abs=1e-4)


def test_filling_and_draining_count_the_less_the_more_requests_there_are():
    """As many at once in each: only how often the places are filled again differs."""
    rows = RUNS[(RUNS.model == "llama-3-8b") & (RUNS.gpu == "h100-sxm") & (RUNS.n_in == 1000)]
    few, many = (saturated.played(rows.assign(requests=count)) for count in (700, 7000))
    assert few.places.tolist() == many.places.tolist()
    assert (few.places < 700).all()
    assert (few.said < many.said).all()
