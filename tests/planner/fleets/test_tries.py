import pytest
from made import Made

from inference_math.unit.types import Layout
from inference_math_planner.fleets import queues, tries

SOLVED = Made({"rates": {"chunked": [3.0], "disaggregated": [4.0], "aggregated": [0.0]}})
SOLVED["goodput"] = {name: rates[0] for name, rates in SOLVED["rates"].items()}
ASKED = Made({"unit": Made({"gpus": 2}), "units": 8, "pools": []})
BOTH = [*tries.TOGETHER, *tries.IN_POOLS]


def test_layouts_in_a_node():
    assert [one.tp for one in tries.tried_in_a_node(4, False)] == [1, 2, 4]
    assert Layout(tp=2, ep=4, dp=2, pp=1) in tries.tried_in_a_node(4, True)


def test_pools_fit_where_two_units_do():
    found = tries.rates_that_fit(ASKED, SOLVED, BOTH, 4.0)
    assert found == tries.rates_that_fit(ASKED, SOLVED, BOTH, 0.0) == [[2, 1.5], [4, 2.0]]
    assert tries.rates_that_fit(ASKED, SOLVED, BOTH, 3.0) == [[2, 1.5]]
    assert tries.rates_that_fit(ASKED, SOLVED, tries.IN_POOLS, 3.0) == []


def test_pairs_come_by_what_no_split_exceeds():
    """A unit of 2 GPUs feeds 4 and takes 2 a second, one of 4 feeds 4 and takes 12: of a GPU 2 and 3 are the most."""
    found = tries.pairs_by_bound([[4.0, 2.0], [4.0, 12.0], [0.0, 4.0]], [2, 4, 1])
    assert [one[1:] for one in found] == [[0, 2], [0, 1], [1, 2], [1, 1], [0, 0], [1, 0]]
    assert [one[0] for one in found] == pytest.approx([1 / (1 / 2 + 1 / 4), 1.2, 0.8, 0.75, 1 / 1.5, 0.5])


def test_three_of_each_tp_and_none_that_serves_nothing():
    assert tries.firsts([1, 1, 1, 1, 2, 2], [1.0, 4.0, 2.0, 3.0, 0.0, 5.0]) == [5, 1, 3, 2]


def test_a_replica_of_two_units_serves_twice():
    """Of eight GPUs two pairs of pools, each of whose units serves 4."""
    assert tries.expected_cost(ASKED, SOLVED, BOTH, 0.0, 8.0) == pytest.approx(-queues.GUESS * 4.0 * 2 * 2)
