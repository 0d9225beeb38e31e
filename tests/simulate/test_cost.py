"""The cost of a step: its overlaps, and its line."""

from functools import partial
from math import hypot

import pytest
from hypothesis import given, strategies as st
from refusals import refused

from inference_math.simulate import OVERLAPS, StepCost

NAMES = ("t_w", "T", "T_decode", "prompt", "pair", "delta_h", "kv_read")
coefficients = st.fixed_dictionaries({name: st.just(0.0) | st.floats(1e-6, 1) for name in NAMES})
steps = st.tuples(
    st.integers(0, 64), st.integers(0, 10**5), st.floats(0, 8), st.integers(0, 10**4), st.floats(0, 10**8)
)


@given(c=coefficients, step=steps)
def test_an_overlap_is_the_formula_it_stands_for(c, step):
    decodes, context, prefills, tokens, pairs = step
    matrices = c["T"] * tokens + c["T_decode"] * decodes
    prompts = c["prompt"] * prefills + c["pair"] * pairs
    reads = c["delta_h"] * decodes + c["kv_read"] * context
    expected = {
        "none": c["t_w"] + matrices + prompts + reads,
        "quadrature": hypot(c["t_w"], matrices) + prompts + reads,
        "serial-kv": max(c["t_w"], matrices) + prompts + reads,
        "full": max(c["t_w"] + reads, matrices + prompts),
    }
    for overlap in OVERLAPS:
        assert StepCost(**c, overlap=overlap)(*step) == pytest.approx(expected[overlap], rel=1e-12)


@given(c=coefficients, overlap=st.sampled_from(OVERLAPS), decodes=st.integers(1, 64), more=st.integers(1, 10**5))
def test_the_line_is_the_cost_of_a_step_without_prompts(c, overlap, decodes, more):
    cost = StepCost(**c, overlap=overlap)
    line = cost.line(decodes, 0)
    if line is None:
        assert overlap == "full"
        assert cost(decodes, 0) == pytest.approx(c["T_decode"] * decodes)
    else:
        fixed, per_token, low, high = line
        assert low <= 0
        assert high >= more
        for context in (0, more):
            assert fixed + per_token * context == pytest.approx(cost(decodes, context), rel=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_a_coefficient_that_is_no_time_is_refused_by_name(name):
    refused(StepCost, {"t_w": 0.02}, *({name: value} for value in (-1e-9, float("inf"), "1", [0.1])))


def test_an_unknown_overlap_is_refused_by_name():
    refused(partial(StepCost, 0.02), {}, {"overlap": "max"})
