from __future__ import annotations

import pytest

from inference_math.optimiser.case import Case
from inference_math.optimiser.choice import layouts_near, layouts_ranked
from inference_math.unit import Unit
from inference_math.workload import SLA, Workload
from inference_math_planner import layouts, plan, search

DENSE = Unit.of("llama-3-70b", "h100-sxm", 2, "fp8", "fp8")
CASE = Case(DENSE, Workload(2200, 170), SLA(1.0, 0.04))


def test_a_dense_model_has_tp_alone():
    found = list(layouts(DENSE, 8))
    assert [(one.tp, one.dp, one.ep) for one in found] == [(1, 1, 1), (2, 1, 1), (4, 1, 1), (8, 1, 1)]
    assert all(one.gpus <= 8 and one.weights == "fp8" for one in found)


def test_a_mixture_has_groups_with_whole_experts():
    found = {(one.tp, one.dp, one.ep) for one in layouts(Unit.of("gpt-oss-120b", "h100-sxm"), 4)}
    assert found == {(1, 1, 1), (2, 1, 1), (2, 1, 2), (4, 1, 1), (4, 1, 4), (1, 2, 2), (1, 4, 4), (2, 2, 4)}


def test_the_best_layout_is_the_plan():
    found, tried = search(CASE, 8)
    again = plan(found.case.unit, CASE.work, CASE.sla)
    assert found.case.unit.tp == tried.tp[0]
    assert found.best == again.best == tried.architecture[0]
    assert found["rate"] == again["rate"]
    assert found["tokens_per_gpu"] == pytest.approx(tried.tokens_per_gpu[0])
    assert tried.loss.is_monotonic_increasing
    assert tried.best_in.sum() == pytest.approx(1)
    assert tried.tokens_per_gpu.between(tried.low, tried.high).all()
    assert (tried[["ttft", "tpot"]] <= [CASE.sla.ttft, CASE.sla.tpot]).all(axis=None)
    assert (tried.rate * 170 / tried.gpus).tolist() == pytest.approx(tried.tokens_per_gpu.tolist())


def test_no_layout_that_was_left_out_would_have_been_the_first():
    found, _ = search(CASE, 8)
    best = found["tokens_per_gpu"]
    for one in layouts(DENSE, 8):
        other = plan(one, CASE.work, CASE.sla)
        assert not other.feasible or other["tokens_per_gpu"] <= best * 1.01


def test_layouts_are_ranked_by_what_they_serve_in_the_mean():
    told = layouts_ranked([[1.0, 4.0], [2.0, 2.0], [2.0, 2.0]], [1, 4, 2])
    assert told["loss"] == pytest.approx([0.0, 0.2, 0.2])
    assert told["order"] == [0, 2, 1]  # of equal ones the smaller unit
    assert told["best_in"] == [0.5, 0.5, 0.0]
    often = layouts_ranked([[0.0] * 6 + [10.0] * 4, [3.9] * 10], [1, 1])  # more in the mean, and mostly forbidden
    assert often["order"] == [1, 0]
    assert often["loss"] == pytest.approx([1 - 4 / 3.9, 0.0])
    assert layouts_ranked([[0.0, 0.0]], [1]) == {"order": [0], "loss": [1.0], "best_in": [0.0]}
    assert layouts_near([[1.0], [0.7], [0.8]]) == [0, 2]


def test_too_few_gpus_are_refused():
    with pytest.raises(ValueError, match="gpus must be enough for deepseek-v3"):
        search(Case(Unit.of("deepseek-v3", "h200-sxm", 8), CASE.work, CASE.sla), 2)
    with pytest.raises(ValueError, match="gpus must be a whole number"):
        list(layouts(DENSE, 0))
