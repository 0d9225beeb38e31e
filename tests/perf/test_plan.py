from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_math import perf
from inference_math.catalogue.tiers import tier
from inference_math.planner.solve import Case
from inference_math.unit import Unit
from inference_math.unit.coefficients import DATASHEET
from inference_math.workload import SLA, Workload

UNIT = Unit.of("llama-3-70b", "h100-sxm", 2, "fp8", "fp8")
CASE = Case(UNIT, Workload(2200, 170, 0.5), SLA(0.4, 0.04), tier=tier("local_ssd"), price=2.5)


def solved(case=CASE, factors=(1.0, 1.0), order=()):
    return perf.solve(
        case.plain, asdict(case.unit.coefficients), asdict(DATASHEET.coefficients), list(factors), list(order)
    )


@given(st.floats(1, 10), st.lists(st.floats(0.1, 100), min_size=1, max_size=50))
def test_an_interval_is_of_the_draws_and_holds_the_value(value, drawn):
    low, high = perf.interval(value, [*drawn, float("nan")])
    bottom, top = np.quantile(drawn, (0.05, 0.95), method="inverted_cdf")
    assert (low, high) == (min(bottom, value), max(top, value))


def test_no_draws_no_interval():
    assert perf.interval(3.0, []) == [3.0, 3.0]


def test_the_order_asked_for_is_kept():
    found = solved()
    best, second, third = found["order"]
    assert found["best"] == best
    assert found["numbers"]["rate"] == found["rows"][best]["rate"]
    other = solved(order=(second, third))["numbers"]
    assert other["rate"] == found["rows"][second]["rate"]
    assert other["margin"] == pytest.approx(found["rows"][second]["rate"] / found["rows"][third]["rate"] - 1)


def test_the_careful_row_keeps_the_sla_in_nine_of_ten_draws():
    factors = np.linspace(1, 1.3, 20)
    draws = [solved(factors=(f, f)) for f in factors]
    row = perf.careful(CASE.plain, "chunked", draws)
    assert row["rate"] == sorted(one["rows"]["chunked"]["rate"] for one in draws)[2]
    assert [perf.keeps(CASE.plain, "chunked", one, row) for one in draws] == [f <= factors[17] for f in factors]
    assert perf.kept(CASE.plain, "chunked", draws, row) == 0.9


def test_a_longer_prompt_part_alone_moves_what_prompts_cost():
    plain, slow = solved(), solved(factors=(1.0, 1.5))
    assert slow["numbers"]["t_w"] == plain["numbers"]["t_w"]
    assert slow["numbers"]["delta_h"] == plain["numbers"]["delta_h"]
    assert slow["numbers"]["delta_p"] == pytest.approx(1.5 * plain["numbers"]["delta_p"])
    bare = plain["mixed"](8, 0)
    assert slow["mixed"](8, 1) - bare == pytest.approx(1.5 * (plain["mixed"](8, 1) - bare))


def test_replicas_are_whole_and_enough():
    many, gpus = perf.replicas(CASE.plain, "disaggregated", 4.0, 40)
    assert (many, gpus) == (2, 2 * 8 * 2)
    assert perf.replicas(CASE.plain, "chunked", 4.0, 41) == [11, 22]
