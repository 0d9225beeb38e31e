from __future__ import annotations

import pytest

from inference_math_planner.fleets import queues, tries

SOLVED = {"order": ["chunked", "disaggregated"], "rates": {"chunked": [3.0], "disaggregated": [4.0]}}


def test_layouts_in_a_node():
    assert [one["tp"] for one in tries.tried_in_a_node(4, False)] == [1, 2, 4]
    assert {"tp": 2, "ep": 4, "dp": 2, "pp": 1} in tries.tried_in_a_node(4, True)


def test_pools_fit_where_two_units_do():
    assert tries.rates_that_fit(SOLVED, 2, 4.0) == tries.rates_that_fit(SOLVED, 2, 0.0) == [[2, 3.0], [4, 4.0]]
    assert tries.rates_that_fit(SOLVED, 2, 3.0) == [[2, 3.0]]


def test_three_of_each_tp_and_none_that_serves_nothing():
    assert tries.firsts([1, 1, 1, 1, 2, 2], [1.0, 4.0, 2.0, 3.0, 0.0, 5.0]) == [5, 1, 3, 2]


def test_a_replica_of_two_units_serves_twice():
    """Of eight GPUs two pairs of pools, each of whose units serves 4."""
    assert tries.expected_cost(SOLVED, 2, 0.0, 8.0) == pytest.approx(-queues.GUESS * 4.0 * 2 * 2)
