from __future__ import annotations

import numpy as np
import pytest

from inference_math.planner import layouts, plan, search
from inference_math.planner.case import Case, solve
from inference_math.planner.layouts import _decode, _drawn, _paired, _prefill, _Tried
from inference_math.unit import Unit
from inference_math.workload import SLA, Workload

DENSE = Unit.of("llama-3-70b", "h100-sxm", 2, "fp8", "fp8")
WORK, LIMITS = Workload(2200, 170), SLA(1.0, 0.04)


def test_a_dense_model_has_tp_alone():
    found = list(layouts(DENSE, 8))
    assert [(one.tp, one.dp, one.ep) for one in found] == [(1, 1, 1), (2, 1, 1), (4, 1, 1), (8, 1, 1)]
    assert all(one.gpus <= 8 and one.weights == "fp8" for one in found)


def test_a_mixture_has_groups_with_whole_experts():
    found = {(one.tp, one.dp, one.ep) for one in layouts(Unit.of("gpt-oss-120b", "h100-sxm"), 4)}
    assert found == {(1, 1, 1), (2, 1, 1), (2, 1, 2), (4, 1, 1), (4, 1, 4), (1, 2, 2), (1, 4, 4), (2, 2, 4)}


def test_a_search_answers_as_a_plan_does():
    table = search(DENSE, WORK, LIMITS, 4)
    alone = plan(DENSE, WORK, LIMITS, intervals=False).compared.set_index("architecture")
    same = table[(table.layout == "TP 2") & (table["prefill layout"] == "")].set_index("architecture")
    for name in ("aggregated", "chunked"):
        assert same.rate[name] == pytest.approx(alone.rate[name])
    assert table.tokens_per_gpu.is_monotonic_decreasing
    assert (table.rate * WORK.n_out / table.gpus).to_numpy() == pytest.approx(table.tokens_per_gpu.to_numpy())


def test_the_first_layouts_have_draws_and_one_is_the_first_in_each():
    table = search(DENSE, WORK, LIMITS, 8)
    drawn = table[table["best_in"].notna()]
    assert list(drawn.index) == list(range(6))
    assert drawn["best_in"].sum() == pytest.approx(1)
    assert (drawn["low"] < drawn["tokens_per_gpu"]).all()
    assert (drawn["tokens_per_gpu"] < drawn["high"]).all()
    assert table.loc[6:, ["low", "high", "best_in"]].isna().all(axis=None)
    # The draws are those of a plan, and each is asked of the row's own architecture.
    case = Case(DENSE, WORK, LIMITS)
    drawn_rows = [solve(case, one).found["rows"] for one in case.draws(32)]
    for name in ("chunked", "aggregated"):
        for row in drawn[(drawn["layout"] == "TP 2") & (drawn["architecture"] == name)].to_dict("records"):
            rates = [rows[name]["rate"] for rows in drawn_rows]
            assert row["low"] == pytest.approx(np.quantile(rates, 0.05) * WORK.n_out / 2)


def test_the_first_in_a_draw_has_the_most_tokens_of_a_gpu():
    tried = [_Tried({"gpus": 2}, lambda draw: 1.0), _Tried({"gpus": 1}, lambda draw: 2.0 if draw else 0.1)]
    first, second = _drawn(tried, 10.0)
    assert (first["best_in"], second["best_in"]) == (1 / 32, 31 / 32)
    assert (first["low"], first["high"], second["high"]) == (5, 5, 20)
    assert _drawn([], 10.0) == []


def test_pools_are_asked_under_draws_on_both_sides():
    case = Case(DENSE, WORK, LIMITS)
    rate = _paired(case, 1, case, 3)
    for number, draw in list(enumerate(case.draws(32)))[::8]:
        fed, served = _prefill(case, draw)[0], _decode(case, draw)[0]
        assert rate(number) == pytest.approx(min(fed, 3 * served))
    many = _paired(case, 100, case, 1)  # decodes bind
    assert len({round(many(number), 6) for number in range(8)}) > 1


def test_pools_keep_their_limits_and_their_gpus():
    table = search(DENSE, WORK, LIMITS, 8).set_index("architecture")
    row = table.loc["disaggregated"]
    assert row.gpus <= 8
    assert row.ttft <= LIMITS.ttft
    assert row.tpot <= LIMITS.tpot
    # A pair of layouts is at least as good as one layout split by a plan with as many GPUs.
    split = plan(DENSE, WORK, LIMITS, units=4, intervals=False).compared.set_index("architecture").rate["disaggregated"]
    assert row.tokens_per_gpu >= 0.95 * split * WORK.n_out / DENSE.gpus


def test_too_few_gpus_are_refused():
    with pytest.raises(ValueError, match="gpus must be enough for deepseek-v3"):
        search(Unit.of("deepseek-v3", "h200-sxm", 8), WORK, LIMITS, 2)
    with pytest.raises(ValueError, match="gpus must be a whole number"):
        list(layouts(DENSE, 0))


def test_layouts_that_draft_answer_as_a_plan_does():
    unit = Unit.of("llama-3-70b", "h100-sxm", 2, "fp8", drafts=3, accepted=0.6)
    work, sla = Workload(1000, 200), SLA(1, 0.02)
    rows = solve(Case(unit, work, sla)).compared.set_index("architecture")
    found = search(unit, work, sla, 2)
    (row,) = found[(found.architecture == "aggregated") & (found.layout == "TP 2")].itertuples()
    assert row.tpot == pytest.approx(unit.tpot(work, int(row.batch)))
    rate, batch, gap = _decode(Case(unit, work, sla))
    assert batch == rows.batch["disaggregated"]
    assert gap == pytest.approx(rows.tpot["disaggregated"])
    assert rate == pytest.approx(batch / (199 * gap))
