"""Measured rows with what is predicted for them."""

import numpy as np
import pandas as pd
import pytest

from inference_math.evidence import load
from inference_math_book.predicted import beside, by_source, chance_by, difference, served_both_ways


def test_each_row_stands_beside_its_prediction():
    rows, said, measured = beside("silybench"), load("predicted_silybench").frame, load("silybench").frame
    assert rows["used"].all()
    assert list(rows.columns) == [*measured.columns, *said.columns.drop("row")]
    assert rows["e2e_s"].tolist() == measured["e2e_s"][said["row"] - 2].tolist()


def test_sources_differ_by_more_than_their_intervals_hold_and_set_ups_by_somewhat_more():
    found = by_source().set_index("source")
    assert found["inside"].loc[["silybench", "ATOM recipes", "ML.ENERGY", "our own"]].min() > 0.8
    assert found["inside"].loc["SGLang cookbook"] < 0.7
    width = load("widths").frame.set_index("name")["width"]["engine"]
    assert found["mean"].std() < width


def test_a_plan_s_chances_are_no_better_than_users_on_a_gpu_tell_and_played_ones_are():
    """Brier's scores of the pairs that a plan answers, by curves that the other pairs set."""
    pairs = served_both_ways()
    users, speed = (chance_by(name, pairs) for name in ("crowd", "speed"))
    judged = pairs[(pairs.part == "score") & pairs.planned_chance.notna()]

    def square(chance):
        return (chance[judged.index] - (judged.gain > 1)) ** 2

    scores = [square(one).mean() for one in (users, speed, pairs.planned_chance, pairs.played_chance)]
    assert scores == pytest.approx([0.164, 0.218, 0.138, 0.042], abs=0.001)
    apart, low, high = difference(square(pairs.planned_chance), square(users), judged.rival)
    assert apart == pytest.approx(scores[2] - scores[0])
    assert low < apart < 0 < high
    assert difference(square(pairs.played_chance), square(users), judged.rival)[2] < 0


def test_a_curve_of_one_number_finds_the_one_that_made_the_pairs():
    x = np.exp(np.linspace(-3, 3, 2000))
    true = 1 / (1 + np.exp(-(0.5 + 1.5 * np.log(x))))
    won = np.random.default_rng(0).random(2000) < true
    made = pd.DataFrame(
        {"crowd": x, "gain": np.where(won, 2.0, 0.5), "part": np.where(np.arange(2000) % 2, "choose", "score")}
    )
    assert np.abs(chance_by("crowd", made) - true).max() < 0.05
    turned = made.assign(gain=made.gain.where(made.part == "choose", 1 / made.gain))  # what scores sets nothing
    assert chance_by("crowd", turned).equals(chance_by("crowd", made))
