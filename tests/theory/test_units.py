"""Every formula keeps its promise about units.

The check: convert all arguments from SI into other units with Pint, evaluate, convert back. The
number must be the same. Tokens, FLOPs and parameters are counts and have no dimension of their own;
seconds and bytes have.
"""

import pint
import pytest
import sympy as sp

from inference_math import theory
from inference_math.theory.formula import Formula
from inference_math.theory.notation import QUANTITIES, flops, hbm_bw, kv_token, n_in, n_layers, n_out, n_params

ureg = pint.UnitRegistry(None)
for definition in ("s = [time]", "byte = [data]", "token = []", "FLOP = []", "blink = 0.31 * s", "word = 4.7 * byte"):
    ureg.define(definition)


def in_other_units(value: float, unit: str) -> tuple[float, pint.Quantity]:
    quantity = ureg.Quantity(value, ureg.parse_units(unit))
    other = unit.replace("byte", "word").split("/")
    other = "/".join("blink" if part == "s" else part for part in other)
    return quantity.to(ureg.parse_units(other)).magnitude, ureg.parse_units(other)


def keeps_its_unit(formula: Formula) -> bool:
    # Nothing below the least number accepted (the largest share is set just below).
    lowest = {s.name: QUANTITIES[s.name].accepted.low for s in formula.arguments}
    arguments = {name: 0.31 + 0.17 * i + low for i, (name, low) in enumerate(lowest.items())}
    for name in arguments:
        if QUANTITIES[name].accepted.high == 1:
            arguments[name] = 0.37
    # At least one output token and one request; a limit above the weight read; loads faster than computing; enough
    # decode units for the prefill units.
    least = {"n_out": 3.7, "B": 2.9, "sla_tpot": 7.3, "e": 2.3, "decode_units": 5.1}
    arguments |= {name: value for name, value in least.items() if name in arguments}
    converted = {name: in_other_units(value, QUANTITIES[name].unit)[0] for name, value in arguments.items()}
    expected, _ = in_other_units(formula(**arguments), formula.unit)
    return formula(**converted) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("formula", theory.CATALOGUE.values(), ids=lambda f: f.name)
def test_units(formula):
    assert keeps_its_unit(formula)


def test_the_check_finds_a_wrong_unit_and_a_wrong_formula():
    wrong_unit = Formula("f", (kv_token, hbm_bw), lambda read, rate: read / rate, "f", "1", "C00", "test", "test")
    assert not keeps_its_unit(wrong_unit)
    # The other reading of claim C19: the square root over the cache size, too.
    ratio = sp.sqrt(n_params / kv_token) * hbm_bw / flops * n_in / n_out
    symbols = (n_params, kv_token, hbm_bw, flops, n_in, n_out)
    other = Formula("f", symbols, lambda *_: ratio, "f", "1", "C19", "test", "test")
    assert not keeps_its_unit(other)
    right = Formula("f", (n_layers, n_in), lambda layers, n_in: n_in / layers, "f", "token", "C00", "test", "test")
    assert keeps_its_unit(right)
