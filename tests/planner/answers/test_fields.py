"""The table of what is asked."""

import pytest

from inference_math_book.extension.planner import Field, inputs
from inference_math_planner.answers.fields import fields, on_page
from inference_math_planner.cli.options import COMMANDS, flagged


def test_sections_are_those_of_the_commands_and_of_the_page():
    assert fields().keys() == {section for _, sections in COMMANDS.values() for section in sections} | {"page"}


def test_every_row_of_the_table_with_a_label_is_asked_on_a_page_and_the_other_way_round():
    rows = [row for groups in inputs().values() for group in groups for row in (*group.fields, *group.more)]
    assert on_page().keys() == {row.name for row in rows}
    for row in rows:
        if isinstance(row, Field):
            assert row.low < row.high
            assert row.value is None or row.low <= row.value <= row.high
            assert (row.value is None) == bool(row.empty)


@pytest.mark.parametrize(
    ("command", "message", "expected"),
    [
        ("plan", "n_in must be positive", "--prompt must be positive"),
        ("benchmark", "n_in must be positive", "--random-input-len must be positive"),
        ("watch", "budget must be positive", "--budget must be positive"),
        ("store", "n_in must be positive", "n_in must be positive"),
        ("plan", "n_in is odd", "n_in is odd"),
    ],
)  # fmt: skip
def test_an_error_is_about_an_option_that_its_command_has(command, message, expected):
    assert flagged(message, command) == expected
