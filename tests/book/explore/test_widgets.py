"""The same figures in a running notebook."""

from __future__ import annotations

import pytest

from inference_math import theory
from inference_math.theory.notation import alpha, e
from inference_math_book import explore


@pytest.fixture
def widget():
    chart = explore.curves(
        {"talk": theory.speedup_layerwise}, alpha, (0, 1, 0.1),
        params=[explore.slider(e, 9, 0.25, 40, 0.25), explore.choice("gpu", "GPU", ["a", "b"], "a")], y_title="x",
    )  # fmt: skip
    return explore.Live(chart, "One curve.").widget()


def test_a_control_and_the_figure_share_their_value(widget):
    slider, gpu, figure = widget.children
    slider.value = 20
    gpu.value = "b"
    assert (figure.params.e, figure.params.gpu) == (20, "b")
    figure.params.e = 3.5
    assert slider.value == 3.5


def test_controls_have_the_figure_s_range_and_words_and_stand_once(widget):
    slider, gpu, figure = widget.children
    assert (slider.min, slider.max, slider.step) == (0.25, 40, 0.25)
    assert slider.description == "e: token acceleration of loading over computing, T/R"
    assert gpu.options == ("a", "b")
    assert not any("bind" in param for param in figure.chart.to_dict()["params"])
