"""Tables of a page."""

from __future__ import annotations

import pandas as pd

from inference_math.book.figures import Shown


def test_words_stand_left_and_numbers_are_rounded():
    frame = pd.DataFrame({"name": ["a"], "time": [1.25], "count": [3], "missing": [float("nan")]})
    html = Shown(frame, "t", numbers="{:.1f}")._repr_mimebundle_()["text/html"]
    assert "#T_t .col0 {\n  text-align: left" in html
    assert ".col1 {" not in html
    assert ">1.2<" in html
    assert ">3<" in html
    assert ">–<" in html
