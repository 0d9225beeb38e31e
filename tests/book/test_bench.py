"""The benchmark on the planner's page: the numbers of the package, what a reader clicks, what is refused."""

import json
import re

import pytest
from forms import unit_of
from grids import rest_long

from inference_math_planner import Benchmark, cadences, foresee
from inference_math_planner.fleets.benchmarks import COLUMNS, cadence_errors_of

pytestmark = pytest.mark.browser
PAGE = "book/planner-benchmark.html"
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
        ({}, {"max-num-batched-tokens": None, "max-num-seqs": 4}),
        ({"gpu": "a100-80gb", "weights": "bf16", "tp": "4", "kv": "bf16"}, {"max-num-batched-tokens": None}),
    ], 2),
)  # fmt: skip
def test_a_benchmark_is_that_of_the_package(page, changes, plan):
    asked = PLAN | plan
    changes = {"tp": "2"} | changes
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
    assert told["notes"] == list(found.notes)
    for what in ("TTFT", "latency"):
        assert any(f"measure a mean {what} of" in line for line in told["said"])


@pytest.mark.parametrize(
    "changes", rest_long([{"model": "deepseek-v3", "gpu": "h200-sxm", "tp": "1", "dp": "8", "kv": "bf16"}, {}])
)
def test_cadences_are_those_of_the_package(page, changes):
    changes = {"tp": "2"} | changes
    given = page.evaluate("window.inferenceMathPlanner.state()") | changes
    told = page.evaluate(PLAY.replace(".play(", ".cadences("), [changes, PLAN])
    run = Benchmark(float(given["prompt"]), float(given["output"]), prompts=200, concurrency=16, range_ratio=0.2)
    found = cadences(unit_of(given), run)
    for here, there in zip(json.loads(told), found[COLUMNS].to_numpy().tolist(), strict=True):
        assert here == pytest.approx(there, rel=1e-6)
    gain_errors = page.evaluate("(given) => window.inferenceMathBench.gain_errors(given)", given)
    assert gain_errors == [pytest.approx(one) for one in cadence_errors_of(unit_of(given), run)]
    page.get_by_role("button", name="Compare cadences").click()
    page.get_by_text(re.compile("median gap")).first.wait_for()
    assert page.locator("#planner-table tr").count() == 6
    page.get_by_role("button", name="Play it").click()


def played(page):
    page.wait_for_selector("#planner-form[data-answered]")
    return page.locator("#planner-table tr")


def test_a_reader_plays_one(open_page):
    page = open_page(PAGE)
    rows = played(page)
    assert rows.nth(1).locator("th").inner_text() == "TTFT"
    page.locator("[name=num-prompts]").fill("64")
    few = played(page).nth(1).locator("td").first.inner_text()
    assert "--num-prompts 64" in page.locator("#planner-command").inner_text()
    assert "the front" in page.locator("#planner-first").inner_text()
    page.locator("[name=num-prompts]").fill("640")
    assert played(page).nth(1).locator("td").first.inner_text() != few
    assert "num-prompts=640" in page.evaluate("location.hash")
    page.locator("[name=max-concurrency]").fill("1")
    played(page)
    assert "1 × h100-sxm" in page.locator("#planner-headline").inner_text()  # which holds one request


def test_what_cannot_be_played_is_named_with_what_can(page):
    for name, value, words in (
        ("max-concurrency", "0", "Users at once must be a whole number from 1 to 4096, not 0"),
        ("num-prompts", "", "Prompts in all must be a whole number from 1 to 20000, not empty"),
        ("model", "lama-3-8b", "did you mean llama-3-8b"),
    ):
        field = page.locator(f"#planner-form [name={name}]")
        kept = field.input_value()
        field.fill(value)
        page.get_by_text(words).wait_for()
        assert not page.locator("#planner-table").is_visible()
        assert page.locator("#planner-fixes button").count() > 0
        field.fill(kept)
