from __future__ import annotations

import json

import pytest
from bs4 import BeautifulSoup

from inference_math import theory
from inference_math.theory.notation import alpha, e, n_in, phi, sla_tpot
from inference_math_book import explore


@pytest.fixture
def chart():
    return explore.curves(
        {"talk": theory.speedup_layerwise, "causal": theory.speedup_layerwise_causal},
        alpha,
        (0, 1, 0.1),
        params=[explore.slider(e, 9, 0.25, 40, 0.25), explore.slider(phi, 0.05, 0, 1, 0.05)],
        y_title="x",
    )


def test_curves_are_the_formulas_printed_for_vega(chart):
    transforms = chart.to_dict()["transform"]
    printed = {t["as"]: t["calculate"] for t in transforms if "calculate" in t}
    assert printed["talk"] == theory.speedup_layerwise.vega(datum={"alpha"})
    assert {"fold": ["talk", "causal"], "as": ["curve", "value"]} in transforms
    assert chart.to_dict()["data"]["sequence"]["stop"] > 1  # the last point is not lost to rounding


def test_a_slider_says_its_name_meaning_and_unit():
    bind = explore.slider(n_in, 100, 1, 1000, 1).param.to_dict()["bind"]
    assert bind["name"] == "prompt tokens of a request (token) "  # not N_in: plain text has no subscripts
    assert explore.slider(e, 9, 1, 40, 1).param.to_dict()["bind"]["name"].startswith("e: ")


def test_an_axis_in_seconds_is_read_in_milliseconds_as_the_sliders_are():
    chart = explore.curves(
        {"steps": sla_tpot}, sla_tpot, (0.02, 0.3, 0.01), params=[], y_title="time (s)", x_title="limit on TPOT (s)"
    )
    across, up = (chart.to_dict()["encoding"][place] for place in "xy")
    assert (across["title"], up["title"]) == ("limit on TPOT (ms)", "time (ms)")
    assert "1000 * datum.value" in across["axis"]["labelExpr"] == up["axis"]["labelExpr"]


def test_the_page_carries_the_specification_and_words_for_it(chart):
    html = explore.Live(chart, "Two curves </script><b>.", "1 < 2?")._repr_mimebundle_()["text/html"]
    assert "1 &lt; 2?" in html
    page = BeautifulSoup(html, "html.parser")
    spec = json.loads(page.script.string)
    assert spec["description"] == "Two curves </script><b>."
    assert page.find("b") is None
    assert [p["name"] for p in spec["params"]] == ["e", "phi", "in_python"]


def test_numbers_are_rounded_to_six_digits():
    rows = explore.table("t", {"a": {"x": 1 / 3, "y": 123456789.123}})
    chart = explore.curves(
        {"c": alpha * e}, alpha, (0, 1, 0.5), params=[rows, explore.slider(e, 1, 0, 2, 1)], y_title=""
    )
    spec = explore.Live(chart, "a").spec()
    value = next(p for p in spec["params"] if p["name"] == "t")["value"]
    assert value == {"a": {"x": 0.333333, "y": 123457000.0}}


def test_three_controls_are_in_view_at_most_and_the_others_open(chart):
    assert "usermeta" not in explore.Live(chart, "two controls").spec()
    many = chart.add_params(*(explore.named_slider(name, name, 1, 0, 2, 1) for name in "abc"))
    assert explore.Live(many, "five").spec()["usermeta"] == {"shown": explore.IN_VIEW}
    assert explore.Live(chart, "two controls", shown=0).spec()["usermeta"] == {"shown": 0}
    with pytest.raises(ValueError, match="shown must be a whole number"):
        explore.Live(many, "five", shown=4).spec()


def test_a_computed_parameter_and_a_rule_are_printed_from_sympy():
    assert explore.computed(e, 2 * phi).param.to_dict()["expr"] == "2*phi"
    rule = explore.rule(theory.crossover, alpha, "computing", "loading").to_dict()
    line, *names = rule["layer"]
    assert line["transform"] == [{"calculate": "e/(e + 1)", "as": "alpha"}]
    assert [layer["mark"]["text"] for layer in names] == ["◂ computing", "loading ▸"]


def test_a_strip_has_the_colour_of_the_curve_that_counts():
    formulas = {"up": alpha, "down": 1 - alpha}
    for counts, how in (("highest", "max"), ("lowest", "min")):
        chart = explore.curves(formulas, alpha, (0, 1, 0.1), params=[], y_title="", counts=counts)
        _, strip = chart.to_dict()["layer"]
        best = next(step for step in strip["transform"] if "joinaggregate" in step)
        assert (best["joinaggregate"][0]["op"], best["groupby"]) == (how, ["alpha"])
        assert ("> 0" in str(strip["transform"])) == (counts == "highest")  # the lowest of times may be none
    with pytest.raises(ValueError, match="counts must be one of highest, lowest"):
        explore.curves(formulas, alpha, (0, 1, 0.1), params=[], y_title="", counts="best")
