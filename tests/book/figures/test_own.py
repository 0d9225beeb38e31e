"""The plots of one's own measurement draw what they are given, and models alone where nothing was measured."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from inference_math import theory
from inference_math_book.figures import own as plots


@pytest.fixture
def axes():
    return Figure().subplots(1, 3)


def mixed(measured):
    rows = [
        (b, c, n, 0, 3.0, 2.0, 1.0, measured, np.nan, np.nan) for b, c in ((16, 8192), (64, 1024)) for n in (256, 512)
    ]
    columns = ["decodes", "context", "tokens", "cached", "none", "serial_kv", "full", "measured"]
    columns += ["attention_beside", "steps_beside"]
    return pd.DataFrame(rows, columns=columns)


def test_mixed_steps_have_dots_only_where_they_were_measured_and_no_chunk_with_a_prefix(axes):
    plots.mixed_steps(axes[:2], mixed(np.nan))
    assert len(axes[0].get_lines()) == 3  # none, serial KV, full overlap
    plots.mixed_steps(axes[1:], mixed(0.0015))
    assert axes[2].get_lines()[-1].get_ydata().tolist() == [1.5, 1.5]
    steps = pd.concat([mixed(np.nan), mixed(np.nan).assign(cached=2048, none=99)])
    assert plots.mixed_steps(axes[:2], steps)["none"].max() == 3


def test_loads_are_the_formulas_and_the_measured(axes):
    drawn = plots.prefix_loads(axes[0], 9, pd.DataFrame())
    assert drawn["layer by layer"].max() == pytest.approx(10, rel=0.01)
    assert drawn["first, then compute"].iloc[0] == theory.speedup_whole(alpha=drawn["alpha"].iloc[0], e=9)
    plots.prefix_loads(axes[1], 9, pd.DataFrame({"alpha": [0.5], "first": [1.8], "layerwise": [1.9]}))
    assert [line.get_ydata().tolist() for line in axes[1].get_lines()[-2:]] == [[1.8], [1.9]]
