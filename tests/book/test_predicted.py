"""Measured rows with what is predicted for them."""

from __future__ import annotations

from inference_math.evidence import load
from inference_math_book.predicted import beside, by_source


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
