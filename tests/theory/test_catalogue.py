"""What holds for every formula of the catalogue, and for the functions that are written of it."""

from functools import cache
from importlib import import_module

import mpmath
import numpy as np
import plain
import pytest
import sympy as sp
from hypothesis import assume, given, settings, strategies as st

from inference_math import theory
from inference_math.theory.notation import QUANTITIES

EVERY = pytest.mark.parametrize("formula", theory.CATALOGUE.values(), ids=lambda f: f.name)


@EVERY
@given(data=st.data())
@settings(max_examples=10)
def test_numpy_computes_what_sympy_means(formula, data):
    """Compiled functions, and those without SymPy, against 40 digits, at random points inside the accepted ranges."""
    given_ = {}
    for symbol in formula.arguments:
        high = 0.99 if QUANTITIES[symbol.name].accepted.high == 1 else 1e3
        # A request has at least one output token.
        low = 1.01 if symbol.name == "n_out" else max(0.01, QUANTITIES[symbol.name].accepted.low)
        if symbol.name == "sla_tpot":  # long enough for a decode
            low, high = (end + given_.get("t_w", 0) + given_.get("delta_h", 0) for end in (low, high))
        given_[symbol.name] = data.draw(st.floats(low, high), label=symbol.name)
    assume(bool(formula.domain.subs({s: given_[s.name] for s in formula.arguments})))
    check_against_forty_digits(formula, given_)


@pytest.mark.parametrize("turns", [1.0, 2.0])
def test_what_hypothesis_once_found_stays_found(turns):
    check_against_forty_digits(theory.CATALOGUE["reuse_local"], {"turns": turns, "units": 521.0})


def test_a_constant_of_five_digits_is_its_decimal():
    given_ = {"B": 0.5, "rounds": 2.0, "together": 1.0, "n_out": 2.0, "cv": 0.25}
    check_against_forty_digits(theory.CATALOGUE["prompts_met"], given_)


# Each of its two differences is as long as its larger part, and both are multiplied: the last digit of units². A share
# of stored tokens of a thousand units is still right to nine decimals.
# Near e = 1 what loading saves is a difference of nearly equal numbers.
EPS = np.finfo(float).eps
LOST = {
    "reuse_local": lambda turns, units: 2 * EPS * units**2,
    "break_even_reads": lambda write, e: 2 * EPS * write / (1 - 1 / e) ** 2,
}


def check_against_forty_digits(formula, given_):
    exact = in_forty_digits(formula, given_)
    # A floor jumps where its argument is a whole number, to the last digit of the argument.
    first = formula.arguments[0].name
    beside = [in_forty_digits(formula, given_ | {first: given_[first] * (1 + h)}) for h in (-1e-12, 1e-12)]
    accepted = [exact, *(beside if formula.expr.has(sp.floor) else [])]
    # Rounding moves a difference by its larger part's last digits, and a power by its exponent's.
    lost = max(1e-11, LOST[formula.name](**given_) if formula.name in LOST else 0)
    for function in (formula, *without_sympy(formula)):
        assert any(function(**given_) == pytest.approx(float(v), rel=1e-11, abs=lost) for v in accepted)
    many = formula(**{name: np.full((2, 3), value) for name, value in given_.items()})
    assert many == pytest.approx(np.full((2, 3), formula(**given_)), rel=1e-12)


def without_sympy(formula):
    """Return the functions that were written of a formula."""
    rooms = map(import_module, plain.MODULES)
    return [getattr(room, formula.name) for room in rooms if hasattr(room, formula.name)]


def in_forty_digits(formula, values):
    with mpmath.workdps(40):
        return high_precision(formula.name)(**{name: mpmath.mpf(value) for name, value in values.items()})


@cache
def high_precision(name):
    formula = theory.CATALOGUE[name]
    # A constant is its decimal, as in the compiled function, and not its binary number of five digits.
    decimal = {constant: sp.Rational(str(constant)) for constant in formula.expr.atoms(sp.Float)}
    return sp.lambdify(formula.arguments, formula.expr.xreplace(decimal), "mpmath")
