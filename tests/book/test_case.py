"""The case is worked once: every page that glues its numbers has the same ones, and one winner."""

from __future__ import annotations

import re

import pytest
from forms import DEFAULT, case_of
from glued import glued

import inference_math_planner as planner
from inference_math import evidence
from inference_math.optimiser.architectures import compare
from inference_math_book import case, served
from inference_math_book.extension.planner import inputs, presets


def test_the_case_of_the_plan_is_that_of_the_companion(root):
    """Model, GPUs, weights, engine, lengths and limits; of the cache `test_served` says what the runs tell."""
    unit, runs = case.UNIT, evidence.load("served").frame
    tried = runs[(runs.tp == unit.tp) & (runs.model == unit.model.name) & (runs.gpu == unit.gpu.name)]
    assert len(tried) == len(served.rows(unit.tp, queued=True))
    assert set(tried.weights) == {unit.weights}
    assert set(tried.engine) == {unit.engine}
    law = served.fit(served.rows(unit.tp))
    assert float(law.delta_p(*case.LENGTHS)) == served.CASE.delta_p
    assert float(law.delta_h(*case.LENGTHS)) == served.CASE.delta_h
    chapter = (root / "book" / "01-what-does-a-token-cost.md").read_text(encoding="utf-8")
    (said,) = (one for one in chapter.split("\n\n") if "We call it **the case**" in one)
    assert re.findall(r"(\d+) ms", said) == [f"{1e3 * limit:.0f}" for limit in (case.LIMITS.ttft, case.LIMITS.tpot)]
    assert re.findall(r"prompt has ([\d,]+) tokens and an answer (\d+)", said) == [("2,200", "170")]
    assert case.LENGTHS == (2200, 170)


def test_the_kernels_are_those_of_the_unit():
    unit, kernels = case.UNIT, case.KERNELS
    assert (kernels.model, kernels.tp, kernels.weights, kernels.kv) == (unit.model, unit.tp, unit.weights, unit.kv)


def test_the_planner_s_page_opens_with_the_case():
    opened = {one.name: getattr(one, "value", "") for group in inputs() for one in (*group.fields, *group.more)}
    opened = {name: f"{value:g}" if isinstance(value, int | float) else value or "" for name, value in opened.items()}
    asked = case_of(opened)
    assert (asked.work, asked.sla) == (case.WORK, case.LIMITS)
    for part in ("model", "gpu", "gpus", "tp", "weights", "kv", "engine", "drafts"):
        assert getattr(asked.unit, part) == getattr(case.UNIT, part), part
    assert {name: opened[name] for name in DEFAULT} == DEFAULT
    assert next(iter(presets().values())) == {}  # the page's own values, as of a link that names nothing


def test_all_pages_have_the_same_numbers(root):
    twins = sorted([*(root / "notebooks").rglob("*.ipynb"), *(root / "_build" / "pages").rglob("*.ipynb")])
    found = {twin.stem: {k: v for k, v in glued(twin).items() if k.startswith("case_")} for twin in twins}
    found = {page: numbers for page, numbers in found.items() if numbers}
    assert {"01-one-unit", "03-plan-a-deployment"} < set(found)
    for page, numbers in found.items():
        assert numbers == case.numbers(), page


def test_one_winner():
    """By the kernels, by the fitted form and by the plan; with a store less is won by it."""
    numbers = case.numbers()
    assert {numbers[f"case_{side}_best"] for side in ("kernels", "fitted", "plan")} == {case.planned().best}
    assert not case.planned().tie
    assert case.planned(stored=True).solved["lead"] < case.planned().solved["lead"]


def test_pages_that_name_the_case_s_winner_take_it_from_there(root):
    """No page types it: who names 2,200 and 170 beside an architecture that 'serves most' glues it."""
    for path in sorted((root / "book").rglob("*.md")):
        for paragraph in re.split(r"\n\s*\n", path.read_text(encoding="utf-8")):
            if "2,200" in paragraph and re.search(r"\*\*(chunked|disaggregated|aggregated)\*\*", paragraph):
                pytest.fail(f"{path.name}: {paragraph[:80]}")


def test_the_table_is_that_of_the_rooms_it_names():
    fitted = case.table().set_index("quantity")["fitted"]
    costs = case.UNIT.costs(case.WORK)
    rows = compare(costs, case.LIMITS.tpot, case.WAIT).set_index("architecture")
    assert float(fitted["chunked (requests/s of a unit)"]) == pytest.approx(rows.rate["chunked"], rel=5e-3)
    assert float(fitted["prompt alone (ms)"]) == pytest.approx(1e3 * case.UNIT.prefill_time(2200), rel=5e-3)
    plain = planner.plan(case.UNIT, case.WORK, case.LIMITS, intervals=False)
    assert float(fitted["batch, step by step"]) == plain["batch"]
    assert float(fitted["1 + ΔP/ΔH"]) == pytest.approx(plain["gain_bound"], rel=5e-3)


def test_what_a_decode_adds_has_a_name_for_each_account_of_it():
    """The read of the cache, that with a decode's rows by kernels, and an engine's increment are three quantities."""
    rows = case.table().set_index("quantity")
    read, with_rows = rows.loc["KV read (ms)"], rows.loc["read of a decode with its rows (ms)"]
    increment = rows.loc["ΔH, an engine's increment (ms)"]
    assert list(rows.columns[with_rows != ""]) == ["datasheet", "kernels"]
    assert list(rows.columns[increment != ""]) == ["fitted", "plan"]
    assert float(read["kernels"]) < float(with_rows["kernels"]) < float(increment["fitted"]) < float(increment["plan"])
    assert float(increment["plan"]) == pytest.approx(1e3 * case.planned()["delta_h"], rel=5e-3)
