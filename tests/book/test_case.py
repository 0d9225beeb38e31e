"""The case is worked once: every page that glues its numbers has the same ones, and one winner."""

import re

import pytest
from forms import DEFAULT, case_of

from inference_math import evidence
from inference_math_book import case, served
from inference_math_book.extension.planner import defaults, presets


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
    opened = defaults() | {"tp": f"{case.UNIT.tp}"}  # the page searches layouts, and finds this one
    assert defaults()["tp"] == "auto"
    asked = case_of(opened)
    assert (asked.work, asked.sla) == (case.WORK, case.LIMITS)
    for part in ("model", "gpu", "gpus", "tp", "weights", "kv", "engine", "drafts"):
        assert getattr(asked.unit, part) == getattr(case.UNIT, part), part
    assert {name: opened[name] for name in DEFAULT} == DEFAULT
    assert next(iter(presets().values())) == {}  # the page's own values, as of a link that names nothing


def test_a_store_brings_the_architectures_of_the_case_nearer_to_each_other():
    assert case.planned().tie  # open, by what served gains say
    assert case.planned(stored=True).solved.lead < case.planned().solved.lead


def test_pages_that_name_the_case_s_winner_take_it_from_there(root):
    """No page types it: who names 2,200 and 170 beside an architecture that 'serves most' glues it."""
    for path in sorted((root / "book").rglob("*.md")):
        for paragraph in re.split(r"\n\s*\n", path.read_text(encoding="utf-8")):
            if "2,200" in paragraph and re.search(r"\*\*(chunked|disaggregated|aggregated)\*\*", paragraph):
                pytest.fail(f"{path.name}: {paragraph[:80]}")
