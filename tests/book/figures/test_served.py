"""Figures of served Llama-3-70B: what is drawn is what was measured, fitted and played."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from inference_math_book import served
from inference_math_book.figures import served as plots


def test_every_row_is_a_dot_and_those_with_a_queue_are_open(ax):
    rows = plots.tpot(ax, 2)
    drawn = {False: [], True: []}
    for line in ax.lines:
        if line.get_marker() == "o":
            drawn[line.get_markerfacecolor() == "none"] += list(line.get_ydata())
    queue = rows.ttft_s > served.QUEUE
    assert sorted(drawn[False]) == pytest.approx(sorted(1e3 * rows.tpot_s[~queue]))
    assert sorted(drawn[True]) == pytest.approx(sorted(1e3 * rows.tpot_s[queue]))
    assert all(1e3 * served.fit(served.rows(2)).t_1 == line.get_ydata()[0] for line in ax.lines[::3])


def test_misses_are_those_of_rows_left_out(ax):
    plots.misses(ax, (2,))
    assert ax.lines[0].get_ydata() == pytest.approx(100 * served.left_out(served.rows(2)))


def test_first_tokens_are_measured_by_law_and_played(ax):
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


def test_the_gap_is_drawn_with_its_intervals():
    ax = Figure().subplots()
    plots.gap(ax, 170)
    low, high = served.interval(served.rows(2), lambda one: 1e3 * float(one.delta_p(7373.0, 170)))
    bars = ax.containers[0].lines[2][0].get_segments()
    assert [bars[1][0][1], bars[1][1][1]] == pytest.approx([low, high])
    assert ax.containers[1].lines[0].get_ydata()[0] == pytest.approx(
        1e3 * served.fit(served.rows(2)).delta_h(921.6, 170)
    )
