"""How often verdicts were right, counted by hand."""

from __future__ import annotations

from math import nan
from types import SimpleNamespace

import pandas as pd

from inference_math_planner.answers import verdicts


def test_a_verdict_counts_under_its_word_and_is_right_where_the_named_way_won(monkeypatch):
    pairs = [
        ("score", 0.95, 2.0), ("score", 0.05, 0.5), ("score", 0.9, 0.9),
        ("score", 0.75, 1.5), ("score", 0.3, 1.2),
        ("score", 0.55, 1.1), ("score", 0.45, 1.2), ("score", 0.69, 1.1),
        ("score", nan, 2.0), ("choose", 0.95, 2.0),
    ]  # fmt: skip
    table = pd.DataFrame(pairs, columns=["part", "planned_chance", "gain"])
    monkeypatch.setattr(verdicts, "load", lambda name: SimpleNamespace(frame=table))
    assert verdicts.scored.__wrapped__() == {"sure": [2, 3], "likely": [1, 2], "open": [2, 3]}


def test_served_splits_are_counted_by_users_on_a_gpu(monkeypatch):
    pairs = [(8, 8, 0.9), (8, 8, 1.2), (9, 8, 1.1), (24, 8, 0.5), (800, 8, 2.0)]
    table = pd.DataFrame(pairs, columns=["users", "gpus", "gain"])
    monkeypatch.setattr(verdicts, "load", lambda name: SimpleNamespace(frame=table))
    found = verdicts.crowds.__wrapped__()
    assert [one[1:] for one in found] == [[1, 2], [1, 2], [0, 0], [1, 1]]
