"""The laboratory's figures draw the tables that they are given."""

import pytest
from matplotlib.figure import Figure

from inference_math import evidence
from inference_math_bench.lab.experiments import Counts, Reuse, Store
from inference_math_book.figures import laboratory as plots

FOUND, LAWS = evidence.load("lab_arms").frame, evidence.load("lab_laws").frame


@pytest.fixture
def axes():
    return Figure().subplots(1, 4)


def test_found_lies_at_ratio_times_predicted(axes):
    rows = plots.means(axes[0], FOUND)
    assert set(rows.quantity) == {"ttft", "tpot"}
    law, found = axes[0].get_lines()[:2]
    one = rows[rows.quantity == "ttft"].sort_values("users")
    assert law.get_ydata() == pytest.approx(1e3 * one.predicted)
    assert found.get_ydata() == pytest.approx(1e3 * one.predicted * one.ratio)


def test_counts_stand_beside_the_binomial_law(axes):
    names = ["geometric", "uniform", "two lengths", "fixed"]
    table = evidence.load("lab_counts").frame
    drawn = plots.counts(dict(zip(names, axes, strict=True)), table, Counts.n_out)
    assert drawn.groupby("lengths").binomial.sum().to_numpy() == pytest.approx(1)
    assert drawn.groupby("lengths").vllm.sum().to_numpy() == pytest.approx(1)


def test_parts_store_reuse_chunks_and_pools_draw_every_setting(axes):
    assert len(plots.parts(axes[0], axes[1], FOUND)) == 15
    assert len(plots.store(axes[2], FOUND, LAWS, True, Store.n_in)) == 15
    assert plots.reuse(axes[3], FOUND, LAWS, Reuse.n_in).share.max() == pytest.approx(992 / 1024)
    axes[0].set_yscale("linear")
    assert len(plots.chunked(axes[0], FOUND, LAWS, "gap_p99", 16)) == 5
    assert set(plots.pools(axes[1], FOUND, 8).users) == {4, 8, 16}


def test_tables_name_what_they_compare():
    limits = plots.limits(FOUND, LAWS)
    assert {"printed", "corrected", "vLLM"} <= set(limits.columns)
    sheet = plots.agreement(FOUND, {"a step": ("step", "seconds")})
    assert sheet.settings.tolist() == [(FOUND.experiment == "step").sum()]
