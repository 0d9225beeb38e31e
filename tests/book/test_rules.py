"""The rules of thumb in the answer boxes, followed on a grid."""

from __future__ import annotations

from itertools import pairwise

import pytest

from inference_math import planner
from inference_math.perf.load import loaded, settings_row
from inference_math_book import rules

ROWS = rules.followed().set_index("name")


def test_every_rule_speaks_and_none_beats_the_plan():
    assert ROWS.cases.to_dict() == {
        "theorem": 89, "always pools": 89, "split": 89, "small split": 21, "chunk": 132, "near": 9, "pays": 138,
        "pays nothing": 12, "memory": 8, "store": 129,
    }  # fmt: skip
    for rule in rules.RULES:
        costs = [cost for one in rules.setups() if (cost := rule.costs(one)) is not None]
        assert min(costs) >= -1e-6, rule.name


def test_rules_of_the_boxes_are_as_good_as_their_chapters_say():
    right = ROWS.right
    assert right["near"] == right["pays"] == 1
    assert right["theorem"] > right["always pools"]
    assert right["theorem"] > 0.9
    assert right["small split"] > 0.8
    assert min(right["chunk"], right["store"]) > 0.9
    assert right["split"] < 0.6  # so the box gives it with its condition


def test_where_rules_fail_is_said():
    assert "256 in" in ROWS.worst_at["theorem"]  # prompts that are computed several at a time
    assert "20 ms" in ROWS.worst_at["chunk"]  # limits with hardly any room
    assert ROWS.right["memory"] == ROWS.right["pays nothing"] == 0
    assert 0.1 < ROWS["mean"]["pays nothing"] < ROWS.worst["pays nothing"] <= 1 / 3 + 0.01  # 1 - 1 / 1.5


def test_a_faster_store_is_one_and_what_pays_too_little_does_not_pay():
    assert ROWS.worst["store"] > rules.FINE  # of some set-ups a store twice as fast brings more
    (pays,) = [rule for rule in rules.RULES if rule.name == "pays"]

    class Hardly:
        best = 1.0

        stored = type("Store", (), {"best": 1.02})

    assert pays.costs(Hardly()) == rules.FINE  # which counts as wrong: right is what costs less


def test_a_set_up_s_rates_are_the_plan_s():
    for one in rules.setups()[::17]:
        case = one.case
        found = planner.plan(case.unit, case.work, case.sla, intervals=False)
        assert one.best == pytest.approx(found["rate"])
        assert one.rates["disaggregated"] == pytest.approx(found.solved["rates"]["disaggregated"][0])


def test_what_a_rule_costs_counted_anew():
    """The theorem and the split of one set-up, from steps alone."""
    one = next(
        one for one in rules.setups()
        if (one.case.unit.model.name, one.case.work.n_in, one.case.work.n_out, one.case.sla.tpot)
        == ("qwen3-32b", 8000, 170, 0.02)
    )  # fmt: skip
    row = one.plan.solved["settings"]["disaggregated"]
    prefill, decode = 1 / one.step(0, 1), row["batch"] / (169 * one.step(row["batch"], 0))
    rates = {p: min(p * prefill, (8 - p) * decode) / 8 for p in range(1, 8)}
    best = max(rates, key=lambda p: rates[p])
    assert row["prefill_units"] == best
    (split,) = [rule for rule in rules.RULES if rule.name == "split"]
    assert split.costs(one) == pytest.approx(1 - rates[best + 1] / rates[best])
    ordered = [rates[p] for p in range(best, 8)]
    assert all(more >= less for more, less in pairwise(ordered))
    served = loaded(one.target, one.costs, "disaggregated", settings_row(row["batch"], row["chunk"], best))
    assert served["rate"] == pytest.approx(rates[best])
