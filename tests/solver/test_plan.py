from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_math import solver
from inference_math.coefficients import DATASHEET
from inference_math.planner.solve import Case
from inference_math.tiers import tier
from inference_math.unit import Unit
from inference_math.workload import SLA, Workload

UNIT = Unit.of("llama-3-70b", "h100-sxm", 2, "fp8", "fp8")
CASE = Case(UNIT, Workload(2200, 170, 0.5), SLA(0.4, 0.04), tier=tier("local_ssd"), price=2.5)


def solved(case=CASE, factor=1.0, order=()):
    return solver.solve(case.plain, asdict(case.unit.coefficients), asdict(DATASHEET.coefficients), factor, list(order))


@given(st.floats(1, 10), st.lists(st.floats(0.1, 100), min_size=1, max_size=50))
def test_an_interval_is_of_the_draws_and_holds_the_value(value, drawn):
    low, high = solver.interval(value, [*drawn, float("nan")])
    bottom, top = np.quantile(drawn, (0.05, 0.95), method="inverted_cdf")
    assert (low, high) == (min(bottom, value), max(top, value))


def test_no_draws_no_interval():
    assert solver.interval(3.0, []) == [3.0, 3.0]


def test_the_order_asked_for_is_kept():
    found = solved()
    best, second, third = found["order"]
    assert found["best"] == best
    assert found["numbers"]["rate"] == found["rows"][best]["rate"]
    other = solved(order=(second, third))["numbers"]
    assert other["rate"] == found["rows"][second]["rate"]
    assert other["margin"] == pytest.approx(found["rows"][second]["rate"] / found["rows"][third]["rate"] - 1)


def test_the_careful_row_is_of_the_slowest_but_one_in_ten():
    draws = [solved(factor=f) for f in np.linspace(1, 1.3, 20)]
    row = solver.careful("chunked", draws)
    rates = sorted(one["rows"]["chunked"]["rate"] for one in draws)
    assert row["rate"] == rates[2]
    kept = [solver.keeps(CASE.plain, "chunked", one, row) for one in draws]
    assert kept == [f <= np.linspace(1, 1.3, 20)[17] for f in np.linspace(1, 1.3, 20)]


def test_replicas_are_whole_and_enough():
    many, gpus = solver.replicas(CASE.plain, "disaggregated", 4.0, 40)
    assert (many, gpus) == (2, 2 * 8 * 2)
    assert solver.replicas(CASE.plain, "chunked", 4.0, 41) == [11, 22]
