"""Errors by group in one place, and the alarm where one grows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scores
import served

from inference_math.evidence import load

GROUP = {"model": "m", "gpu": "g", "engine": "vllm", "weights": "w", "drafts": "none", "part": "choose"}


def rows(**columns):
    table = pd.DataFrame(columns)
    given = GROUP | {"tp": 1, "ep": 1, "dp": 1, "version": "", "n_in": 1.0, "n_out": 2.0}
    return table.assign(**{name: value for name, value in given.items() if name not in table})


@pytest.mark.long
def test_no_error_of_the_part_to_choose_by_has_grown():
    tried = served.points("validation").query("left_out != 'queue' and part == 'choose'")
    today = scores.by_group(served.scored(tried))
    before = load("accuracy").frame.query("part == 'choose'")
    assert scores.alarms(before, today).empty
    assert len(today) == len(before)
    both = before.merge(today, on=scores.BY)
    assert np.allclose(both.ttft_x, both.ttft_y, rtol=0.05)  # another BLAS moves the last digits, no more


def test_an_alarm_needs_two_points_and_a_tenth():
    before = pd.DataFrame([GROUP | {"ttft": 0.30, "tpot": 0.05, "e2e": 0.10}])

    def grown(**errors):
        return set(scores.alarms(before, before.assign(**errors)).error)

    assert grown() == set()
    assert grown(ttft=0.325) == set()  # two points and a half, but no tenth
    assert grown(tpot=0.065) == set()  # a third more, but no two points
    assert grown(tpot=0.08) == {"tpot"}
    assert grown(ttft=0.34, e2e=0.05) == {"ttft"}
    told = scores.alarms(before, before.assign(e2e=0.2)).iloc[0]
    assert (told.before, told.after) == (0.10, 0.2)
    assert grown(ttft=np.nan) == {"ttft"}
    assert set(scores.alarms(before, before.assign(model="other")).error) == {"ttft", "tpot", "e2e"}  # it is gone


def test_the_shape_is_over_the_first_point_of_the_curve():
    table = rows(users=[4, 8, 16], ttft=[0.2, 0.4, 0.9], ttft_s=[0.1, 0.2, 0.3])
    table = table.assign(tpot=1.0, tpot_s=1.0, e2e=[2.0, 1.0, 1.0], e2e_s=1.0)
    off = scores.shapes(table)
    assert off.ttft.tolist() == pytest.approx([np.nan, 0.0, 0.5], nan_ok=True)
    assert off.e2e.tolist() == pytest.approx([np.nan, 0.5, 0.5], nan_ok=True)


def test_noise_is_that_of_repeats_alone():
    table = rows(users=[4, 4, 8], ttft_s=[1.0, 1.1, 9.0], tpot_s=[1.0, 1.0, 2.0], e2e_s=[1.0, 1.02, 3.0])
    apart = scores.noise(table)
    assert apart.ttft == pytest.approx(np.log(1.1) / 2**0.5)
    assert apart.tpot == 0
    assert np.isnan(scores.noise(table.iloc[1:]).ttft)


def test_families_have_both_parts_and_the_peer():
    table = load("accuracy").frame
    assert set(table.part) == {"choose", "blind"}
    assert table.points.sum() == (served.points("validation").left_out != "queue").sum()
    assert table.peer.notna().sum() == (table.drafts != "mtp").sum()
    assert (table[["ttft", "tpot", "e2e"]] > 0).all(axis=None)
    assert (load("served_left_out").frame[["e2e", "tpot"]] > 0).all(axis=None)
