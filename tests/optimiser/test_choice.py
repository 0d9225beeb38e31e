"""The rule by itself: whose loss is least, by how much that varies, and what is a tie."""

from __future__ import annotations

from itertools import pairwise
from math import isnan

import numpy as np
import pytest
from grids import rest_long
from hypothesis import given
from hypothesis import strategies as st

from inference_math import SLA, Unit, Workload
from inference_math.optimiser.case import Case
from inference_math.optimiser.choice import CAREFUL, chosen, scattered, served_beside, shares_best, tied
from inference_math.unit.asked import target_of
from inference_math_planner import plan

NAMES = ("aggregated", "chunked", "disaggregated")
rates = st.lists(st.tuples(*[st.just(0.0) | st.floats(0.1, 100)] * 3), min_size=1, max_size=20)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_leads_that_vary_alike_to_both_sides_scatter_by_their_standard_deviation(ahead):
    both = [*ahead, *(2 - one for one in ahead)]
    assert scattered([1.0] * len(both), both, [0.0] * len(both)) == pytest.approx(np.std(both), abs=1e-9)


def test_a_draw_in_which_the_other_serves_nothing_is_no_reason_for_doubt():
    """Ahead in each of a hundred draws, by a tenth, and once by all: the lead is sure."""
    rates = {"aggregated": [1.0] * 100, "chunked": [0.9] * 99 + [0.0], "disaggregated": [0.1] * 100}
    assert chosen(rates)["tie"] is False


def test_draws_that_serve_nothing_do_not_scatter():
    assert scattered([0, 2, 2], [0, 2, 1], [0, 1, 1]) == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("best_in", "lead", "scatter", "told"),
    [
        (1.0, 0.0, 0.0, False), (0.5, 1.0, 0.0, False), (0.49, 1.0, 0.0, True), (1.0, 0.1, 0.2, True),
        (1.0, 0.2, 0.1, False), (1.0, float("nan"), 0.1, False),
    ],
)  # fmt: skip
def test_a_tie(best_in, lead, scatter, told):
    assert tied(best_in, lead, scatter) is told


@given(rates)
def test_the_rule_on_any_rates(drawn):
    by = np.array(drawn).T
    found = chosen(dict(zip(NAMES, by.tolist(), strict=True)))
    best = by.max(axis=0)
    able = best > 0
    assert sum(found["best_in"].values()) + found["none_in"] == pytest.approx(1)
    if not able.any():
        assert found["best"] == ""
        assert found["tie"] is False
        assert isnan(found["lead"])
        return
    lost = {name: (1 - one[able] / best[able]).mean() for name, one in zip(NAMES, by, strict=True)}
    first, second, _ = found["order"]
    assert lost[first] == pytest.approx(min(lost.values()))
    ahead = (by[NAMES.index(first)] - by[NAMES.index(second)])[able] / best[able]
    missing = np.minimum(ahead - ahead.mean(), 0)
    assert found["scatter"] == pytest.approx((2 * (missing**2).mean()) ** 0.5, abs=1e-9)
    if not isnan(found["lead"]):
        assert found["lead"] == pytest.approx(ahead.mean(), abs=1e-9)


@given(rates, st.lists(st.floats(0.1, 10), min_size=20, max_size=20))
def test_an_error_common_to_all_cancels(drawn, factors):
    """The proposition of *Plan a deployment*: one factor in each draw moves no loss and no scatter."""
    by = np.array(drawn).T
    plain, moved = (
        chosen(dict(zip(NAMES, one.tolist(), strict=True))) for one in (by, by * np.array(factors)[: by.shape[1]])
    )
    for name in NAMES:
        assert moved["loss"][name] == pytest.approx(plain["loss"][name], abs=1e-9)
    assert moved["scatter"] == pytest.approx(plain["scatter"], abs=1e-6) or moved["order"] != plain["order"]


def test_equal_ones_share_a_draw_and_draws_that_serve_nothing_go_to_none():
    rates = {"aggregated": [1.0, 2.0, 0.0, 3.0], "chunked": [1.0, 1.0, 0.0, 3.0], "disaggregated": [0.5, 0.1, 0.0, 3.0]}
    assert shares_best(rates) == pytest.approx(
        {"aggregated": 0.125 + 0.25 + 1 / 12, "chunked": 0.125 + 1 / 12, "disaggregated": 1 / 12}
    )


TALK = Unit.of("llama-3-70b", "h100-sxm", 2, "fp8", "fp8")


def test_a_looser_limit_serves_no_less_and_nine_in_ten_draws_keep_it():
    """Within what the search for a chunk leaves, a few in a thousand."""
    for name, limits in (
        ("tpot", [SLA(0.4, 0.04 * 1.5**k) for k in range(4)]),
        ("ttft", [SLA(0.32 * 1.5**k, 0.04) for k in range(4)]),
    ):
        plans = [plan(TALK, Workload(2200, 170), sla) for sla in limits]
        for architecture in ("aggregated", "chunked", "disaggregated"):
            rates = [one.compared.set_index("architecture").rate[architecture] for one in plans]
            assert all(b >= a * 0.997 for a, b in pairwise(rates)), (name, architecture, rates)
            kept = [one.solved["kept"][architecture] for one, rate in zip(plans, rates, strict=True) if rate > 0]
            assert sum(share >= CAREFUL for share in kept) >= len(kept) - 1, (name, architecture, kept)


@pytest.mark.parametrize(("n_in", "n_out"), rest_long([(50, 5), (2000, 300), (16, 16), (200, 20), (20, 200)], 2))
def test_chunks_serve_as_much_as_the_best_of_a_scan(n_in, n_out):
    """Short prompts ask for chunks of many of them; what is scanned is chunk by chunk, with all draws."""
    found = plan(Unit.of("llama-3-8b", "h100-sxm"), Workload(n_in, n_out), SLA(2, 0.1))
    target, drawn = target_of(found.case.asked), list(found.solved["costs"])
    rates = [served_beside(target, drawn, chunk, CAREFUL) for chunk in np.geomspace(1, 3e5, 200)]
    assert found.compared.set_index("architecture").rate["chunked"] >= 0.99 * max(rates)


def test_a_narrow_window_of_chunks_is_found():
    """Where few chunks alone keep the limits in nine of ten draws, they are what is searched."""
    unit = Unit.of("gpt-oss-120b", "h100-sxm", weights="mxfp4")
    found = plan(unit, Workload(2000, 500), SLA(0.68, 0.0295))
    target, drawn = target_of(found.case.asked), list(found.solved["costs"])
    most = max(served_beside(target, drawn, chunk, CAREFUL) for chunk in np.geomspace(20, 2000, 120))
    assert most > 0
    assert found.solved["kept"]["chunked"] >= CAREFUL
    assert found.compared.set_index("architecture").rate["chunked"] >= 0.98 * most


@pytest.mark.parametrize(("n_in", "prompts"), [(1000, 16), (8192, 2), (8193, 1), (20_000, 1)])
def test_prompts_of_a_pool_are_computed_together_up_to_the_workspace(n_in, prompts):
    """16,384 tokens, and one prompt at least, where the KV cache has room for more."""
    case = Case(Unit.of("llama-3-8b", "h100-sxm"), Workload(n_in, 200), SLA(1e3, 1.0))
    assert target_of(case.asked)["together"] == prompts
