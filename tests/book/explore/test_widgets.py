"""Controls of a figure that Python computes."""

from __future__ import annotations

from inference_math import theory
from inference_math.theory.notation import alpha, e
from inference_math_book import explore
from inference_math_book.explore.widgets import drawn_again


def test_controls_have_the_figure_s_range_and_words_and_what_is_moved_is_drawn_again():
    chart = explore.curves(
        {"talk": theory.speedup_layerwise}, alpha, (0, 1, 0.1),
        params=[explore.slider(e, 9, 0.25, 40, 0.25), explore.choice("gpu", "GPU", ["a", "b"], "a")], y_title="x",
    )  # fmt: skip
    drawn = []
    slider, gpu, _ = drawn_again(chart, ["e", "gpu"], lambda **moved: drawn.append(moved)).children
    assert (slider.min, slider.max, slider.step) == (0.25, 40, 0.25)
    assert slider.description == "e: token acceleration of loading over computing, T/R"
    assert gpu.options == ("a", "b")
    slider.value = 20
    gpu.value = "b"
    assert drawn == [{"e": 9, "gpu": "a"}, {"e": 20, "gpu": "a"}, {"e": 20, "gpu": "b"}]
