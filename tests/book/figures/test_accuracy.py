from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from inference_math.unit import Unit
from inference_math.unit.coefficients import Calibration
from inference_math_book.figures import accuracy as plots
from inference_math_book.predicted import beside


def test_intervals_are_drawn_on_both_sides():
    frame = pd.DataFrame({"set": "a", "measured": [1.0, 2.0], "predicted": [1.1, 1.9], "low": 1.0, "high": 2.5})
    ax = Figure().subplots()
    plots.compared(ax, frame, "set", "ms")
    (bars,) = ax.containers
    assert bars.lines[0].get_xdata().tolist() == [1000, 2000]
    spans = [segment[:, 1].tolist() for segment in bars.lines[2][0].get_segments()]
    assert spans == [[1000, 2500], [1000, 2500]]


def test_a_line_for_each_pair_of_lengths():
    names = {"prompt_tokens": "n_in", "output_tokens": "n_out", "concurrency": "users", "e2e_s": "measured"}
    frame = beside("silybench").rename(columns=names | {"e2e": "predicted"})
    drawn = plots.errors_by_load(Figure().subplots(1, 2), frame)
    assert drawn.error.to_numpy() == pytest.approx((frame.predicted / frame.measured - 1).to_numpy())


def test_compute_alone_would_lie_on_the_root_s_line():
    """Steps that the unit itself predicts add their z, and leave nothing."""
    unit = Unit.of("llama-3-8b", "h100-sxm", calibration=Calibration.zero_shot("vllm").kernels)
    batch, context = np.array([64.0, 256.0]), np.array([600.0, 600.0])
    seconds = unit.step_time(batch, context)
    frame = pd.DataFrame(
        {"model": "llama-3-8b", "tp": 1, "batch": batch, "context": context, "measured": seconds, "predicted": seconds}
    )
    drawn = plots.implied_share(tuple(Figure().subplots(1, 2)), frame, {("llama-3-8b", 1): unit})
    assert drawn.implied.to_numpy() == pytest.approx(drawn.root.to_numpy(), abs=0.15)  # activations are on top
    assert drawn.left_us.to_numpy() == pytest.approx(0, abs=1e-9)
