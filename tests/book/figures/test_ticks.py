"""Numbers at ticks: plain, alike in Matplotlib and in Vega, and none on another."""

import re
from itertools import pairwise

import altair as alt
import matplotlib as mpl
import pandas as pd
import pytest
import vl_convert
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from inference_math_book.explore.theme import EVERYWHERE
from inference_math_book.figures.style import use_book_style
from inference_math_book.figures.ticks import plain


@pytest.fixture
def drawn():
    """Return a picture in the book's style, whose axis is of a scale and has two ends."""

    def of(scale: str, low: float, high: float, width: float = 6.4, **kwargs: float) -> Axes:
        ax = Figure((width, 4)).subplots()
        ax.set_xscale(scale, **kwargs)
        ax.set_xlim(low, high)
        ax.figure.draw_without_rendering()
        return ax

    with mpl.rc_context():
        use_book_style()
        yield of


@pytest.fixture
def labels(drawn):
    """Return the numbers at the ticks of such an axis; small ticks have none."""

    def of(scale: str, low: float, high: float, **kwargs: float) -> list[str]:
        ax = drawn(scale, low, high, **kwargs)
        shown = [*ax.get_xticklabels(minor=False), *ax.get_xticklabels(minor=True)]
        return [one.get_text() for one in shown if low <= one.get_position()[0] <= high and one.get_text()]

    return of


def test_a_linear_axis_has_plain_numbers(labels):
    assert labels("linear", 0, 3e7)[:2] == ["0", "10,000,000"]
    assert labels("linear", -0.2, 0.2)[::2] == ["−0.2", "−0.1", "0", "0.1", "0.2"]


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ((1, 1e6), ["1", "10", "100", "1,000", "10,000", "100,000", "1,000,000"]),
        ((20, 400), ["20", "50", "100", "200"]),
        ((20, 30), ["20", "22", "24", "26", "28", "30"]),
        ((0.003, 0.4), ["0.005", "0.01", "0.02", "0.05", "0.1", "0.2"]),
    ],
)
def test_a_logarithmic_axis_has_no_powers_and_at_least_three_numbers(labels, ends, expected):
    assert labels("log", *ends) == expected


def test_one_of_powers_of_two_keeps_them(labels):
    assert labels("log", 1, 4096, base=2) == ["1", "4", "16", "64", "256", "1,024", "4,096"]


def test_vega_prints_numbers_alike():
    numbers = [-2500, 0, 0.1, 0.3, 12.5, 1000, 20_000_000]
    chart = alt.Chart(pd.DataFrame({"x": numbers})).mark_point()
    chart = chart.encode(x=alt.X("x:Q", axis=alt.Axis(values=numbers, labelOverlap=False), title=""))
    svg = vl_convert.vegalite_to_svg(chart.to_dict() | {"config": dict(EVERYWHERE)})
    assert re.findall(r">([^<>]+)</text>", svg) == [plain(number) for number in numbers]


@pytest.mark.parametrize("ends", [(1e4, 3e8), (20, 400), (200, 4000), (1, 2000), (0.001, 0.9), (30_000, 60_000)])
@pytest.mark.parametrize("scale", ["linear", "log"])
@pytest.mark.parametrize("width", [2.4, 3.2, 6.4])
def test_no_number_stands_on_another(drawn, scale, ends, width):
    ends = (0, ends[1]) if scale == "linear" else ends
    ax = drawn(scale, *ends, width)
    boxes = [one.get_window_extent() for one in ax.get_xticklabels() if ends[0] <= one.get_position()[0] <= ends[1]]
    assert len(boxes) >= 2
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))
