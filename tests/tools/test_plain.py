"""Functions without SymPy: what the tool writes is what stands in the rooms."""

import plain
import pytest
import sympy as sp

from inference_math.theory.formula import Formula
from inference_math.theory.notation import alpha, e


@pytest.mark.parametrize("module", plain.MODULES)
def test_a_module_has_what_others_take_from_it_as_its_formulas_are(module):
    """Where this fails: `python tools/plain.py`."""
    assert plain.path_of(module).read_text(encoding="utf-8") == plain.written(module)


def test_a_function_has_the_name_the_arguments_and_the_expression_of_its_formula():
    rise = Formula("rise", (e, alpha), lambda e, alpha: sp.sqrt(e - alpha), "y", "1", "C01", "test", "test")
    for kind, words in (("plain", "float sqrt"), ("arrays", "Numbers numpy.sqrt")):
        one, root = words.split()
        head = f"def rise(e: {one}, alpha: {one}) -> {one}:\n"
        assert plain.function(rise, kind) == f"{head}    return {root}(-alpha + e)\n"
