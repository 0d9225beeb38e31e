"""Measured rows with what is predicted for them."""

import numpy as np
import pandas as pd

from inference_math.evidence import load
from inference_math_book.predicted import beside, chance_by


def test_each_row_stands_beside_its_prediction():
    rows, said, measured = beside("silybench"), load("predicted_silybench").frame, load("silybench").frame
    assert rows["used"].all()
    assert list(rows.columns) == [*measured.columns, *said.columns.drop("row")]
    assert rows["e2e_s"].tolist() == measured["e2e_s"][said["row"] - 2].tolist()


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
