"""Tables of a page."""

import pandas as pd

from inference_math_book.figures import Shown


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
