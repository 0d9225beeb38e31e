"""Tables of a page, numbers at ticks."""

from __future__ import annotations

import re

import altair as alt
import matplotlib as mpl
import pandas as pd
import pytest
import vl_convert
from matplotlib.figure import Figure

from inference_math_book.explore.theme import EVERYWHERE
from inference_math_book.figures import Shown
from inference_math_book.figures.style import plain, use_book_style


def test_words_stand_left_and_numbers_are_rounded():
    frame = pd.DataFrame({"name": ["a"], "time": [1.25], "count": [3], "missing": [float("nan")]})
    html = Shown(frame, "t", numbers="{:.1f}")._repr_mimebundle_()["text/html"]
    assert "#T_t .col0 {\n  text-align: left" in html
    assert ".col1 {" not in html
    assert all(f">{shown}<" in html for shown in ("1.2", "3", "–"))


def test_no_form_of_a_table_shows_a_digit_that_another_computer_may_not_find():
    """The notebooks' tests compare the plain text, too: two fits that agree in what is shown are the same."""
    here, there = (pd.DataFrame({"name": ["a"], "time": [time]}) for time in (1.24, 1.2400001))
    for numbers in ("{:.1f}", "{:.3g}", "{:,.0f}"):
        assert Shown(here, "t", numbers)._repr_mimebundle_() == Shown(there, "t", numbers)._repr_mimebundle_()
    plain = Shown(pd.DataFrame({"time": [1250.0, float("nan")]}), "t")._repr_mimebundle_()["text/plain"]
    assert plain.split() == ["time", "1,250.0", "–"]


def test_nothing_is_printed_as_minus_nought():
    for numbers, words in (("{:.0f}", "0"), ("{:+.1f}", "+0.0"), ("{:,.1f}", "0.0")):
        plain = Shown(pd.DataFrame({"time": [-0.004]}), "t", numbers)._repr_mimebundle_()["text/plain"]
        assert plain.split() == ["time", words]


def test_large_numbers_have_neither_decimals_nor_an_exponent():
    shown = {"{:,.1f}": "131,072", "{:.2g}": "130,000", "{:.3g}": "131,000"}
    for numbers, said in shown.items():
        told = Shown(pd.DataFrame({"bytes": [131_072.0, 1.25]}), "t", numbers)._repr_mimebundle_()
        assert f">{said}<" in told["text/html"]
        assert said in told["text/plain"]
    assert ">100<" in Shown(pd.DataFrame({"ms": [102.0]}), "t", "{:.2g}")._repr_mimebundle_()["text/html"]


@pytest.fixture
def labels():
    """Return the numbers at the ticks of an axis in the book's style."""

    def of(scale: str, low: float, high: float, **kwargs: float) -> list[str]:
        ax = Figure().subplots()
        ax.set_xscale(scale, **kwargs)
        ax.set_xlim(low, high)
        ax.figure.draw_without_rendering()
        # Also those of small ticks, which have none.
        shown = [*ax.get_xticklabels(minor=False), *ax.get_xticklabels(minor=True)]
        return [one.get_text() for one in shown if low <= one.get_position()[0] <= high and one.get_text()]

    with mpl.rc_context():
        use_book_style()
        yield of


def test_a_linear_axis_has_plain_numbers(labels):
    assert labels("linear", 0, 3e7)[:2] == ["0", "5,000,000"]
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
