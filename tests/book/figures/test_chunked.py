from __future__ import annotations

import pytest
from matplotlib.figure import Figure

from inference_math import theory
from inference_math_book.figures import chunked as plots


def test_the_lines_are_ordered():
    frame = plots.step_lines(Figure().subplots(), t_w=0.016, delta_p=0.0002, delta_h=0.0001, most=256)
    assert (frame["maximum"] <= frame["serial KV"] + 1e-12).all()
    assert (frame["serial KV"] <= frame["sum"] + 1e-12).all()


@pytest.mark.parametrize("overlap", ["full", "serial-kv"])
def test_each_tent_peaks_where_the_chunk_balances(overlap):
    numbers = {"b": 32, "T": 7e-5, "t_w": 0.0165, "delta_h": 9.5e-5}
    frame = plots.offbalance_tents(Figure().subplots(), (256, 512, 1024), overlap=overlap, **numbers)
    peaks = frame.loc[frame.groupby("chunk").gain.idxmax()].set_index("chunk")
    for chunk in (256, 512, 1024):
        assert peaks.pd_ratio[chunk] == pytest.approx(chunk / 32, rel=0.25)
        best = peaks.gain[chunk]
        assert 1 < best <= 2
        if overlap == "full":
            balanced = theory.chunked_gain_weights(b=32, t_w=0.0165, delta_p=chunk / 32 * 7e-5, delta_h=9.5e-5)
            assert best >= balanced * (1 - 1e-9)
