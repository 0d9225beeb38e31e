"""The formulas as plain functions: what the tool writes is what stands in the rooms."""

from __future__ import annotations

import plain
import pytest

from inference_math.theory.formula import Formula
from inference_math.theory.notation import alpha, e


@pytest.mark.parametrize("room", plain.MODULES)
def test_a_room_s_plain_functions_are_those_of_its_formulas(room):
    """Where this fails: `python tools/plain.py`."""
    assert plain.MODULES[room].read_text(encoding="utf-8") == plain.written(room)


def test_a_plain_function_has_the_name_the_arguments_and_the_expression_of_its_formula():
    rise = Formula("rise", (e, alpha), lambda e, alpha: e - alpha**2, "y", "1", "C01", "test", "test")
    assert plain.function(rise) == "def rise(e: float, alpha: float) -> float:\n    return -alpha**2 + e\n"
