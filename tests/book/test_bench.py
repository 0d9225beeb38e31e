"""The benchmark on the planner's page: the numbers of the package, what a reader clicks, what is refused."""

from __future__ import annotations

import json

import pytest
from forms import unit_of
from grids import rest_long

from inference_math_planner import Benchmark, cadences, foresee

pytestmark = pytest.mark.browser
PAGE = "book/planner.html"
SECTION = "#planner-bench"
PLAY = """([changes, plan]) => {
    const page = window.inferenceMathPlanner;
    const empty = { "request-rate": Infinity, "max-num-batched-tokens": Infinity };
    const told = window.inferenceMathBench.play({ ...page.state(), ...changes }, { ...empty, ...plan });
    return JSON.stringify(told, (_, value) => (value === Infinity ? "inf" : value));
}"""
PLAN = {"max-concurrency": 16, "num-prompts": 200, "random-range-ratio": 20, "max-num-batched-tokens": 8192}


@pytest.mark.parametrize(
    ("changes", "plan"),
    rest_long([
        ({}, {"request-rate": 2.5}), ({"engine": "sglang", "drafts": "2"}, {"max-num-batched-tokens": 4096}),
        ({}, {"random-range-ratio": 0}), ({"front": "10"}, {"max-concurrency": 3}),
        ({"engine": "trtllm", "gpu": "b200"}, {"max-concurrency": 200, "request-rate": 20}),
        ({"model": "deepseek-v3", "gpu": "h200-sxm", "tp": "1", "dp": "8", "experts": "whole", "kv": "bf16"}, {}),
        ({"tp": "1", "weights": "int4", "prompt": "20000", "output": "30"}, {"max-concurrency": 100}),
        ({}, {"max-num-batched-tokens": None, "max-num-seqs": 4}),
        ({"gpu": "a100-80gb", "weights": "bf16", "tp": "4", "kv": "bf16"}, {"max-num-batched-tokens": None}),
    ], 2),
)  # fmt: skip
def test_a_benchmark_is_that_of_the_package(page, changes, plan):
    asked = PLAN | plan
    given = page.evaluate("window.inferenceMathPlanner.state()") | changes
    sent = {name: value for name, value in asked.items() if value is not None}
    told = json.loads(page.evaluate(PLAY, [changes, sent]))
    run = Benchmark(
        float(given["prompt"]), float(given["output"]), asked["num-prompts"], asked["max-concurrency"],
        range_ratio=asked["random-range-ratio"] / 100, budget=asked["max-num-batched-tokens"],
        seqs=asked.get("max-num-seqs"),
        **({"rate": asked["request-rate"]} if "request-rate" in asked else {}),
    )  # fmt: skip
    found = foresee(unit_of(given), run, front=float(given["front"]) / 1000 if given["front"] else None)
    for row, name in (("TTFT", "ttft"), ("TPOT", "tpot"), ("ITL", "itl"), ("latency", "latency")):
        assert told[name] == pytest.approx(found.table.loc[row].tolist(), rel=1e-6), row
    for name in ("rate", "seconds", "burst", "steady", "enough"):
        value = float("nan") if told[name] is None else float(told[name])
        assert value == pytest.approx(getattr(found, name), rel=1e-6, nan_ok=True), name
    assert all(line in str(found) for line in told["said"])


@pytest.mark.parametrize(
    "changes", rest_long([{"model": "deepseek-v3", "gpu": "h200-sxm", "tp": "1", "dp": "8", "kv": "bf16"}, {}])
)
def test_cadences_are_those_of_the_package(page, changes):
    given = page.evaluate("window.inferenceMathPlanner.state()") | changes
    told = page.evaluate(PLAY.replace(".play(", ".cadences("), [changes, PLAN])
    run = Benchmark(float(given["prompt"]), float(given["output"]), prompts=200, concurrency=16, range_ratio=0.2)
    found = cadences(unit_of(given), run)
    for here, there in zip(json.loads(told), found.to_numpy().tolist(), strict=True):
        assert here == pytest.approx(there, rel=1e-6)
    section = page.locator(SECTION)
    section.get_by_role("button", name="Compare cadences").click()
    section.get_by_text("least median gap").wait_for()
    assert section.locator("table tr").count() == 6


def test_a_reader_plays_one(open_page):
    page = open_page(PAGE)
    section = page.locator(SECTION)
    section.locator("[name=num-prompts]").fill("64")
    section.get_by_role("button", name="Play it").click()
    rows = section.locator("table tr")
    rows.nth(4).wait_for()
    assert rows.nth(1).locator("th").inner_text() == "TTFT"
    assert "--num-prompts 64" in section.locator("pre").inner_text()
    assert "the front" in section.locator("ul").inner_text()
    few = rows.nth(1).locator("td").first.inner_text()
    section.locator("[name=num-prompts]").fill("640")
    section.locator("[name=num-prompts]").press("Enter")
    assert rows.nth(1).locator("td").first.inner_text() != few
    page.locator("#planner-form [name=prompt]").fill("500")
    section.get_by_text("The set-up has changed").wait_for()
    assert not section.locator("table").is_visible()


def test_what_cannot_be_played_is_named(page):
    section = page.locator(SECTION)
    for name, value, words in (
        ("max-concurrency", "0", "Users at once must be a whole number from 1 to 4096, not 0"),
        ("num-prompts", "", "Prompts in all must be a whole number from 1 to 20000, not empty"),
    ):
        kept = section.locator(f"[name={name}]").input_value()
        section.locator(f"[name={name}]").fill(value)
        section.get_by_role("button", name="Play it").click()
        section.get_by_text(words).wait_for()
        assert not section.locator("table").is_visible()
        section.locator(f"[name={name}]").fill(kept)
