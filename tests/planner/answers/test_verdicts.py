"""How often verdicts were right, counted by hand."""

from math import nan
from types import SimpleNamespace

import pandas as pd
import pytest

from inference_math_planner.answers import verdicts


def test_a_verdict_counts_under_its_word_and_is_right_where_the_named_way_won(monkeypatch):
    pairs = [
        ("score", 0.95, 2.0), ("score", 0.05, 0.5), ("score", 0.9, 0.9),
        ("score", 0.75, 1.5), ("score", 0.3, 1.2),
        ("score", 0.55, 1.1), ("score", 0.45, 1.2), ("score", 0.69, 1.1),
        ("score", nan, 2.0), ("choose", 0.95, 2.0),
    ]  # fmt: skip
    table = pd.DataFrame(pairs, columns=["part", "planned_chance", "gain"]).assign(
        users=[8, 8, 8, 8, 8, 80, 80, 8, 8, 8]
    )
    monkeypatch.setattr(verdicts, "load", lambda name: SimpleNamespace(frame=table.assign(gpus=8)))
    monkeypatch.setattr(verdicts, "rule", lambda: 1.0)
    assert verdicts.scored.__wrapped__() == {"sure": [2, 3, 2], "likely": [1, 2, 0], "open": [2, 3, 2]}


def test_the_rule_is_the_number_that_is_right_most_often_where_one_chooses(monkeypatch):
    pairs = [(4, 0.9), (8, 0.8), (8, 1.1), (16, 0.9), (24, 1.2), (32, 1.3)]  # above 16 of 8 GPUs all gain
    table = pd.DataFrame(pairs, columns=["users", "gain"]).assign(gpus=8, part="choose")
    score = table.assign(part="score", gain=2 - table["gain"])  # would turn it round
    monkeypatch.setattr(verdicts, "load", lambda name: SimpleNamespace(frame=pd.concat([table, score])))
    assert verdicts.rule.__wrapped__() == 2.0


def test_on_the_pairs_that_score_one_number_is_right_as_often_as_the_plan():
    """A baseline that hurts: 35 of 44, of which always naming the split has 28."""
    right, count, alone = (sum(column) for column in zip(*verdicts.scored().values(), strict=True))
    assert (right, count, alone) == (35, 44, 35)


def test_points_kept_for_a_score_count_alike_whatever_their_source(monkeypatch):
    rows = pd.DataFrame(
        {
            "source": ["a", "a, set aside", "set aside", "b, set aside"],
            "error": [9, 0.1, 9, 0.4],
            "points": [1, 2, 1, 1],
        }
    )
    monkeypatch.setattr(verdicts, "load", lambda name: SimpleNamespace(frame=rows))
    assert verdicts.unseen.__wrapped__() == pytest.approx(0.2)


def test_served_splits_are_counted_by_users_on_a_gpu(monkeypatch):
    pairs = [(8, 8, 0.9), (8, 8, 1.2), (9, 8, 1.1), (24, 8, 0.5), (800, 8, 2.0)]
    table = pd.DataFrame(pairs, columns=["users", "gpus", "gain"])
    monkeypatch.setattr(verdicts, "load", lambda name: SimpleNamespace(frame=table))
    found = verdicts.concurrency_bins.__wrapped__()
    assert [one[1:] for one in found] == [[1, 2], [1, 2], [0, 0], [1, 1]]
