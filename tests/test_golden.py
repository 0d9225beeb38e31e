"""What rebuilds the code moves no answer."""

import golden
import pytest
from grids import rest_long

KEPT = golden.kept()


def test_each_question_has_its_answer():
    assert [*KEPT] == golden.questions()
    assert len(KEPT) == 60
    assert {found["status"] for found in KEPT.values()} == {0, 1, 2}


@pytest.mark.parametrize("question", rest_long([*KEPT], 7))
def test_an_answer_is_the_same(question):
    """In every word, and in numbers within a part in 10^7, for another processor may round otherwise."""
    assert [*golden.moved(KEPT[question], golden.answer(question))] == []


def test_what_moved_is_seen():
    old = {"a": [1.0, {"b": "x"}], "c": None}
    assert [*golden.moved(old, {"a": [1.0 + 1e-9, {"b": "x"}], "c": None})] == []
    assert [*golden.moved(old, {"a": [1.0 + 1e-6, {"b": "y"}], "d": None})] == [
        ("/a/0", 1.0, 1.0 + 1e-6), ("/a/1/b", "x", "y"), ("/c", None, "absent"), ("/d", "absent", None),
    ]  # fmt: skip
