"""Requests at random over units: against all states added up, limits, errors."""

from itertools import product
from math import prod

import pytest
from hypothesis import given, strategies as st
from refusals import refused

from inference_math import theory
from inference_math_planner.laws.routing import spread_of


@given(users=st.integers(1, 6), units=st.integers(2, 4), added=st.floats(0.01, 10))
def test_the_step_and_the_idle_units_are_those_of_all_states_added_up(users, units, added):
    """The weight of a state is the product of what its requests wait: balance of the flows between states."""
    states = [state for state in product(range(users + 1), repeat=units) if sum(state) == users]
    weight = {s: prod((1 + k * added) / k for n in s for k in range(1, n + 1)) for s in states}
    speed = {s: sum(n / (1 + n * added) for n in s) for s in states}
    whole = sum(weight.values())
    rate = sum(weight[s] * speed[s] for s in states) / whole
    said = theory.routed_step(t_w=1.0, delta_p=added / 2, delta_h=added / 2, B=users, units=units)
    assert users / rate == pytest.approx(said)
    idle = sum(weight[s] for s in states if s[0] == 0) / whole
    assert spread_of(users, units, 1.0, added).pmf(0) == pytest.approx(idle)
    for state in states:  # what flows out flows in, over all moves of one request
        out = weight[state] * speed[state]
        into = 0.0
        for i, j in product(range(units), repeat=2):
            if state[j]:
                before = [n + (k == i) - (k == j) for k, n in enumerate(state)]
                n = before[i]
                into += weight[tuple(before)] * n / (1 + n * added) / units
        assert out == pytest.approx(into)


def test_the_ends_are_the_urn_without_and_with_one_ball():
    for count in (4, 16):
        assert spread_of(count, count, 1.0, 0.0).pmf(0) == pytest.approx((1 - 1 / count) ** count)
        shared = (count - 1) / (2 * count - 1)
        assert spread_of(count, count, 1.0, 1e9).pmf(0) == pytest.approx(shared, rel=1e-6)
    assert spread_of(5, 1, 1.0, 1.0).pmf(5) == 1


@given(users=st.integers(1, 500), units=st.integers(1, 50))
def test_balance_is_worth_less_than_one_request(users, units):
    costs = {"t_w": 0.01, "delta_p": 0.002, "delta_h": 0.001}
    lost = theory.routed_step(**costs, B=users, units=units) - (0.01 + 0.003 * users / units)
    assert lost == pytest.approx(0.003 * (1 - 1 / units), abs=1e-12)


def test_bad_input_is_refused():
    good = {"B": 2, "units": 2, "t_w": 1.0, "added": 1.0}
    refused(spread_of, good, {"B": 0}, {"units": 0}, {"t_w": 0}, {"added": -1})
