"""The plays that pages read are what their functions give today."""

import long_plays
import pytest

from inference_math.evidence import load
from inference_math_book.plays import stored

TABLE = load("plays").frame
SETTINGS = [(name, number) for name, play in long_plays.PLAYS.items() for number in range(len(play.settings))]


def same(before: str, after: str) -> bool:
    try:
        return float(after) == pytest.approx(float(before), rel=1e-6, abs=1e-12)
    except ValueError:
        return before == after


def late(name: str, number: int) -> bool:
    return number > 0 or long_plays.PLAYS[name].long


@pytest.mark.parametrize(
    ("name", "number"),
    [pytest.param(*setting, marks=[pytest.mark.long] if late(*setting) else []) for setting in SETTINGS],
)
def test_a_play_gives_again_what_is_stored(name, number):
    """Of each but the longest one setting, of all before a release."""
    cells = TABLE[(TABLE.play == name) & (TABLE.row > number)]
    for row, played in enumerate(long_plays.PLAYS[name].rows(number), start=number + 1):
        before = cells[cells.row == row].set_index("column").cell.to_dict()
        assert before.keys() == played.keys()
        assert [
            (column, before[column], cell) for column, cell in played.items() if not same(before[column], cell)
        ] == []


def test_each_play_is_stored_as_its_function_stands():
    """Else run `python tools/long_plays.py NAME`."""
    noted = TABLE[TABLE.row == 0].set_index("play").cell.str.removeprefix(long_plays.TEXT)
    assert noted.to_dict() == {name: play.digest for name, play in long_plays.PLAYS.items()}
    assert set(TABLE.play) == set(long_plays.PLAYS)


def test_each_play_is_shown(root):
    texts = "".join(
        path.read_text(encoding="utf-8")
        for path in (*(root / "book").rglob("*.md"), root / "src/inference_math_book/card.py")
    )
    assert [name for name in long_plays.PLAYS if f'stored("{name}")' not in texts] == []


@pytest.mark.parametrize(
    ("value", "cell"), [(3, "3"), (3.0, "3.0"), (1 / 3, "0.333333333"), (float("inf"), "inf"), ("3", "'3"), ("a", "a")]
)
def test_a_cell_says_what_it_is(value, cell):
    assert long_plays.printed(value) == cell


def test_texts_stay_texts_and_numbers_are_numbers():
    chart = stored("decision_chart")
    assert set(chart["per GPU (1/s)"].map(type)) <= {str, float}
    assert chart["per GPU (1/s)"].dropna().str.fullmatch(r"\d+\.\d\d").all()
    table = stored("cadence_ranks")
    assert table.dtypes.astype(str).to_list() == ["int64", "int64", "float64", "float64"]
    with pytest.raises(ValueError, match="name must be that of a play"):
        stored("none")
