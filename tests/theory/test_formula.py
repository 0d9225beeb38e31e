import inspect

import numpy as np
import pytest
import sympy as sp
from grids import each

from inference_math import theory
from inference_math.theory.formula import DERIVED, Formula, formula, to_numpy, to_vega
from inference_math.theory.notation import alpha, e, n_in

EVERY = list(theory.CATALOGUE.values())


def test_a_derivation_that_ends_in_the_formula_shows_it_however_it_is_written():
    for result in (1 / sp.Max(alpha / e, 1 - alpha), n_in / sp.Max(n_in * alpha / e, n_in * (1 - alpha))):
        shown = theory.speedup_layerwise.derived(result)
        assert repr(shown) == "theory.speedup_layerwise(alpha, e)"
    bundle = shown._repr_mimebundle_()
    assert bundle[DERIVED] == {"name": "speedup_layerwise"}
    assert bundle["text/latex"].startswith(rf"$\displaystyle {theory.speedup_layerwise.latex}\qquad")
    assert r"\text{C05}\;\mathtt{theory.speedup\_layerwise}$" in bundle["text/latex"]


@pytest.mark.parametrize("wrong", [1 / sp.Max(alpha / e, 1), 1 / sp.Min(alpha / e, 1 - alpha), 1 + e])
def test_a_derivation_that_ends_elsewhere_is_refused(wrong):
    with pytest.raises(ValueError, match=r"speedup_layerwise: .* is not shown to be"):
        theory.speedup_layerwise.derived(wrong)


def test_a_number_gives_a_float_and_arrays_broadcast():
    assert theory.crossover(e=9) == 0.9
    assert type(theory.crossover(e=9)) is float
    result = theory.speedup_layerwise(alpha=[0.0, 0.5, 1.0], e=np.array([[1.0], [9.0]]))
    np.testing.assert_allclose(result, [[1, 2, 1], [1, 2, 9]])


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"alpha": 0.5}, TypeError, "missing e"),
        ({"alpha": 0.5, "e": 1, "E": 2}, TypeError, "unknown E"),
        ({"alpha": "0.5", "e": 1}, TypeError, "alpha must be a number"),
        ({"alpha": 1.1, "e": 1}, ValueError, "alpha must be a number from 0 to 1"),
        ({"alpha": float("nan"), "e": 1}, ValueError, "alpha .* not nan"),
        ({"alpha": 0.5, "e": -1}, ValueError, "e must be a finite number > 0"),
        ({"alpha": [0.1, 0.2], "e": [1, 2, 3]}, ValueError, r"do not broadcast: alpha \(2,\), e \(3,\)"),
    ],
)
def test_bad_input_names_the_argument(arguments, error, words):
    with pytest.raises(error, match=words):
        theory.speedup_layerwise(**arguments)


def test_no_finite_value_is_an_error_that_says_where():
    with pytest.raises(ValueError, match="acceleration_needed has no finite value at alpha=1"):
        theory.acceleration_needed(alpha=[0.5, 1.0])


def test_the_signature_is_the_catalogue_s_by_name_only():
    assert str(inspect.signature(theory.ttft_kv)) == "(*, n_in, T, alpha, e, W)"
    with pytest.raises(TypeError):
        theory.crossover(9)


def test_arguments_must_be_the_symbols_of_the_expression():
    with pytest.raises(ValueError, match="not the symbols"):
        _ = Formula("f", (alpha, e), lambda alpha, e: alpha + 1, "f", "1", "C00", "", "").expr


def test_a_function_becomes_a_formula_of_its_module():
    @formula("y", claim="C01", unit="s", domain=alpha < e)
    def rise(e, alpha):
        """The first line,
        and the second one.
        """
        return e - alpha

    try:
        assert type(rise) is Formula
        assert (rise.usage, rise.meaning) == ("rise(e, alpha)", "The first line, and the second one.")
        assert (rise.source, rise.unit, rise.domain, rise.where) == (theory.BOOK, "s", alpha < e, {})
        assert rise.latex == "y = e - \\alpha"
    finally:
        assert globals().pop("__all__") == ["rise"]
    with pytest.raises(ValueError, match=r"a parameter of f must be one of .* not 'alphas'; did you mean 'alpha'"):

        @formula("f", claim="C01")
        def f(alphas):
            return alphas


def test_equals_tells_equal_from_different():
    assert theory.crossover.equals(1 - 1 / (1 + e))
    assert not theory.crossover.equals(e / (2 + e))


@each(list(EVERY), lambda formula: formula.name)
def test_every_formula_is_complete_and_prints(formula):
    assert formula.name in theory.CATALOGUE
    assert formula.claim[0] in "CE"
    assert 1 <= int(formula.claim[1:]) <= {"C": 37, "E": 12}[formula.claim[0]]
    assert formula.source
    assert formula.meaning
    assert formula.latex.startswith(formula.latex_name + " = ")
    assert "Max" not in formula.vega()
    assert "Math" not in formula.vega()


def test_vega_reads_the_axis_from_the_row():
    assert to_vega(sp.Max(alpha, e), datum={"alpha"}) == "max(datum.alpha, e)"
    assert to_vega(sp.sqrt(alpha) + alpha**2) == "sqrt(alpha) + pow(alpha, 2)"


def test_a_figure_prints_six_digits_but_in_counts():
    assert to_vega(0.073729940942418 * e) == to_numpy(0.073729940942418 * e) == "0.0737299*e"
    assert to_vega(sp.floor(e / 81920.0)) == "floor(1.220703125e-5*e)"  # with six digits 81920 would count as none


@pytest.mark.parametrize("expr", [sp.Sum(alpha, (e, 1, 3)), sp.gamma(alpha), sp.Function("f")(alpha), sp.oo * e])
def test_vega_refuses_what_the_browser_cannot_evaluate(expr):
    with pytest.raises(ValueError, match="a browser cannot evaluate"):
        to_vega(expr)


def test_outside_its_domain_a_formula_says_what_it_needs():
    numbers = {"delta_p_gross": 1e-3, "delta_h": 1e-4, "t_w": 0.02}
    assert theory.chunked_gain_sla(**numbers, sla_tpot=0.03) > 1
    with pytest.raises(ValueError, match=r"chunked_gain_sla needs sla_tpot >= .*, not .*t_w=0.02, sla_tpot=0.02"):
        theory.chunked_gain_sla(**numbers, sla_tpot=[0.03, 0.02])
    with pytest.raises(ValueError, match=r"pdd_gain_same needs .*, not .*t_w=0.02, sla_tpot=0.03, n_out=1$"):
        theory.pdd_gain_same(delta_p=1e-3, delta_h=1e-4, t_w=0.02, sla_tpot=[0.03, 0.04], n_out=[[2], [1]])


def test_parts_with_a_symbol_of_their_own_are_printed_and_put_in():
    """Nobody calls the formula with them, and its expression does not have them."""
    formula = theory.max_batch_growing
    assert {symbol.name for symbol in formula.where} == {"nbar", "sigma_n", "zeta"}
    assert not set(formula.where) & formula.expr.free_symbols
    assert formula.latex.count(r",\quad ") == 3
    assert r"\bar{n} = N_{\mathrm{in}} +" in formula.latex
    held, deviation = 400.0, 2.33 * 300 * (2 * 6 / 12) ** 0.5
    # Room for B of them and 2.33 deviations: m·B + d·√B = C, a quadratic in √B.
    found = formula(kv_capacity=60_000, n_in=100, n_out=300, cv=1)
    assert found == int(((deviation**2 + 4 * held * 60_000) ** 0.5 - deviation) ** 2 / (4 * held**2))
    assert theory.crossover.where == {}
    part, told = sp.Symbol("part"), ("a", "1", "C01", "", "")
    for where in ({n_in: n_in + 1}, {part: n_in}):
        with pytest.raises(ValueError, match="the symbols of where"):
            _ = Formula("a", (n_in,), lambda n_in: 2 * n_in, *told, where=where).expr
    assert Formula("a", (n_in,), lambda n_in: 2 * part, *told, where={part: n_in}).expr == 2 * n_in
    assert theory.crossover.latex == r"\alpha^{*} = \frac{e}{1 + e}"
