import pickle

import sympy as sp

from inference_math.theory import notation
from inference_math.theory.notation import QUANTITIES


def test_every_symbol_is_defined_once_and_is_importable_by_its_name():
    symbols = {n: v for n, v in vars(notation).items() if isinstance(v, sp.Symbol)}
    assert set(symbols) == set(QUANTITIES)
    assert all(symbols[name] == QUANTITIES[name].symbol and symbols[name].name == name for name in symbols)


def test_latex_names_are_distinct():
    names = [q.latex for q in QUANTITIES.values()]
    assert len(names) == len(set(names))


def test_units_use_known_words_only():
    words = {w for q in QUANTITIES.values() for w in q.unit.replace("/", " ").split()}
    assert words <= {"1", "s", "token", "byte", "FLOP"}


def test_a_symbol_prints_as_the_notation_says_and_survives_pickling():
    assert sp.latex(2 * notation.alpha) == r"2 \alpha"
    assert sp.latex(notation.n_params) == r"\lvert\mathrm{model}\rvert"
    assert pickle.loads(pickle.dumps(notation.alpha)) == notation.alpha


def test_assumptions_follow_the_accepted_range():
    assert notation.e.is_positive
    assert notation.alpha.is_nonnegative
    assert notation.alpha.is_positive is None


def test_the_increment_and_its_parts_have_three_names():
    meanings = [QUANTITIES[name].meaning.partition(":")[0] for name in ("delta_h", "cache_read", "decode_read")]
    assert meanings == ["increment", "KV read", "read of a decode with its rows"]
