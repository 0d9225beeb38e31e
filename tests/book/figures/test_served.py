"""Figures of served Llama-3-70B: what is drawn is what was measured, fitted and played."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from inference_math_book import served
from inference_math_book.figures import served as plots


def test_first_tokens_are_measured_by_law_and_played():
    ax = Figure().subplots()
    found = plots.first_tokens({2: ax}, 0.03, tps=(2,))
    rows = served.rows(2)
    assert found[list(rows)].equals(rows)
    for name, form in {"simulated": served.fit(rows), "second form": served.fit(rows).even()}.items():
        assert found[name].tolist() == served.played(form, rows).ttft_s.tolist()
    # A front adds to each first token at least itself, less what a play scatters.
    assert (found["simulated + front"] - found["simulated"]).min() > 0.02
    assert (found.simulated > found.law).all()
    dots = np.concatenate([line.get_ydata() for line in ax.lines if line.get_marker() == "o"])
    short = rows[rows.n_out == rows.n_out.min()]
    assert sorted(dots) == pytest.approx(sorted(1e3 * short.ttft_s))
