"""What is left beside coefficients: intervals hold nine tenths of what nothing was fitted to."""

from __future__ import annotations

from dataclasses import replace

import fit_served
import from_served
import halves
import numpy as np
import pandas as pd
import pytest
import served
from served import GROUP


def table(off, wide):
    rows = pd.DataFrame({name: ["one"] * len(off) for name in GROUP})
    ends = np.exp(from_served.NINE_TENTHS * np.broadcast_to(wide, off.shape))
    return rows.assign(kind="dense", e2e=1.0, low=1 / ends, high=ends, e2e_s=np.exp(off))


@pytest.mark.parametrize("wide", [0.0, 0.1, 0.15])
def test_with_the_spread_intervals_hold_nine_tenths(wide):
    off = 0.2 * np.random.default_rng(3).standard_normal(2000)
    spread = from_served.spreads(table(off, wide))["dense"]
    assert np.hypot(spread, wide) == pytest.approx(0.2, rel=0.05)
    held = np.abs(off) <= from_served.NINE_TENTHS * np.hypot(spread, wide) * (1 + 1e-9)
    assert held.mean() == pytest.approx(0.9, abs=0.001)


def test_where_coefficients_explain_all_nothing_is_left():
    off = np.linspace(-0.1, 0.1, 50)
    assert from_served.spreads(table(off, 0.3)) == {"dense": 0.0}


def test_rows_in_which_kernels_were_compiled_set_no_coefficient():
    """Their recipe has no warm-up, and the first step more tokens than one prompt of it."""
    points = served.points("calibration").query("left_out == '' and model == 'deepseek-v3' and weights == 'nvfp4'")
    given = [loop for loop in served.loops(points) if loop.unit.gpu.name == "b200" and loop.unit.tp == 8]
    kept = pd.concat([loop.rows for loop in from_served.loops_of(given)])
    gone = pd.concat([loop.rows for loop in given]).drop(kept.index)
    assert (gone["version"] == "").all()
    assert (gone["users"] * gone["n_in"] > 15_000).all()
    assert gone["ttft_s"].median() > 5 > kept["ttft_s"].median()


def test_an_engine_that_the_catalogue_lacks_has_levels_of_its_own_that_do_not_ship():
    loops = [loop for loop in halves.closed() if loop.unit.gpu.name == "mi355x"]
    asked = from_served.Asked(loops[0], 1.0)
    assert (asked.levels["engine"], asked.levels["model"]) == ("atom", "atom/deepseek-v3")
    assert asked.levels["generation"] == "CDNA 4"
    found = from_served.fit(loops, most=5).levels
    assert found.effects["engine"].keys() == {"atom"}
    assert set(fit_served.table(found)["factor"]) == {"generation", "kind", "weights", "seen", "unseen"}


def test_kernels_that_nobody_measured_may_be_further_from_those_that_stand_for_them():
    wide, narrow = from_served.between("generation", "CDNA 3"), from_served.between("generation", "Hopper")
    assert all(wide[name] >= narrow[name] for name in narrow)
    assert wide["layer"] > narrow["layer"] == 0
    assert from_served.between("engine", "CDNA 3") == from_served.BETWEEN["engine"]


def test_a_row_that_something_held_up_is_left_out_of_fits():
    loop = halves.closed()[0]
    held = loop.rows.assign(slowed=loop.rows["users"] == loop.rows["users"].max())
    kept = fit_served.sound([replace(loop, rows=held), replace(loop, rows=held.assign(slowed=True))])
    assert len(kept) == 1
    assert len(kept[0].rows) == len(loop.rows) - 1
