from __future__ import annotations

import base64
import io
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_math import theory
from inference_math_book.figures import Download, prefill


@given(alpha=st.floats(0, 1), e=st.floats(0.01, 100), n_layers=st.integers(1, 100))
def test_the_simulated_pipeline_ends_when_the_theorem_says(alpha, e, n_layers):
    schedule = prefill.layer_schedule(alpha=alpha, e=e, n_layers=n_layers)
    end = schedule.compute_end.iloc[-1]
    assert 1 / end == pytest.approx(theory.speedup_pipelined(alpha=alpha, e=e, n_layers=n_layers), rel=1e-9)


def test_a_schedule_keeps_the_order_of_the_layers():
    s = prefill.layer_schedule(alpha=0.8, e=2, n_layers=8)
    assert (s.compute_start >= s.load_end - 1e-12).all()
    assert (s.compute_start.iloc[1:].to_numpy() >= s.compute_end.iloc[:-1].to_numpy() - 1e-12).all()


@pytest.mark.parametrize("wrong", [{"alpha": 2}, {"n_layers": 0}])
def test_bad_input_is_named(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        prefill.layer_schedule(**{"alpha": 0.5, "e": 1, "n_layers": 1} | wrong)


def test_what_is_drawn_is_what_is_returned(ax):
    frame = prefill.speedup_by_acceleration(ax)
    drawn = np.concatenate([line.get_ydata() for line in ax.lines if len(line.get_xdata()) > 1])
    np.testing.assert_array_equal(drawn, frame.x)
    assert frame.groupby("e").x.max().to_numpy() == pytest.approx([2, 4, 10, 31], rel=0.02)


def test_lines_cross_at_the_crossover(ax):
    frame = prefill.ttft_lines(ax, e=9)
    crossing = frame.alpha[(frame.load - frame.compute).abs().idxmin()]
    assert crossing == pytest.approx(0.9, abs=0.0025)


def test_the_largest_gap_of_p05_is_two(ax):
    frame = prefill.whole_against_layerwise(ax)
    assert (frame.layer_by_layer / frame.whole).groupby(frame.e).max().to_numpy() == pytest.approx([2, 2, 2], abs=0.02)


def test_a_download_carries_the_frame():
    frame = pd.DataFrame({"a": [1.0, 2.5], "b": ["x", "y"]})
    html = Download(frame, "n")._repr_mimebundle_()["text/html"]
    data = base64.b64decode(re.search(r"base64,([^\"]+)", html)[1])
    pd.testing.assert_frame_equal(pd.read_csv(io.BytesIO(data)), frame)
    assert 'download="n.csv"' in html
