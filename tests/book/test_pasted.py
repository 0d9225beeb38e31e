"""A configuration that is pasted on the planner's page, read there as here."""

from __future__ import annotations

import json
import tomllib

import pytest

from inference_math import SLA, Unit, Workload, plan
from inference_math.book.explore import pasted
from inference_math.catalogue import Model
from inference_math.evidence import data_dir

PAGE = "book/planner.html"
CONFIGS = {name: one["config"] for name, one in tomllib.loads((data_dir() / "configs.toml").read_text("utf-8")).items()}
LLAMA = {
    "model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
    "intermediate_size": 11008, "vocab_size": 32000, "tie_word_embeddings": False,
}  # fmt: skip
REFUSED = {
    "nothing": "", "half": "{", "a list": "[1]", "a comma": '{"a": 1,}',
    "another type": json.dumps({"model_type": "qwen5"}), "too large": json.dumps(LLAMA | {"hidden_size": 2**60}),
    "no number": json.dumps(LLAMA | {"hidden_size": "4096"}), "a fraction": json.dumps(LLAMA | {"hidden_size": 4096.5}),
    "no size": json.dumps(LLAMA | {"vocab_size": None}), "not divided": json.dumps(LLAMA | {"num_key_value_heads": 5}),
    "windows": json.dumps(LLAMA | {"sliding_window": 4096}),
    "its precision": json.dumps(LLAMA | {"quantization_config": {"quant_method": "bitsandbytes"}}),
}  # fmt: skip


def test_what_was_read_is_said_in_a_line():
    said = json.loads(pasted.answer(json.dumps(CONFIGS["gpt-oss-120b"])))["said"]
    assert said.startswith("36 layers, 117 B parameters, 5.13 B active, KV 73.7 MB per 1,000 tokens in BF16")
    assert said.endswith("stored in MXFP4")


def read(page, text: str) -> str:
    """Paste a text, press the button, and return what the page says of it."""
    page.locator("#planner-own").evaluate("own => { own.open = true; }")
    page.locator("#planner-own textarea").fill(text)
    status = page.locator("#planner-own [role=status]")
    status.evaluate("status => { status.textContent = ''; }")
    page.get_by_role("button", name="Read").click()
    page.wait_for_function("e => e.textContent && !e.textContent.startsWith('Reading')", arg=status.element_handle())
    return status.text_content()


@pytest.mark.browser
def test_the_page_reads_what_the_package_reads(open_page):
    page = open_page(PAGE)
    for config in (LLAMA, *CONFIGS.values()):
        expected = json.loads(pasted.answer(json.dumps(config)))
        assert read(page, json.dumps(config)) == f"Read: {expected['said']}."
        assert page.evaluate("name => window.inferenceMath.data.models[name]", pasted.NAME) == expected["record"]


@pytest.mark.browser
def test_the_page_refuses_in_the_same_words(open_page):
    page = open_page(PAGE)
    for what, text in REFUSED.items():
        assert read(page, text) == json.loads(pasted.answer(text))["wrong"], what


@pytest.mark.browser
def test_a_pasted_model_is_planned_as_in_the_package(open_page):
    page = open_page(PAGE)
    read(page, json.dumps(LLAMA))
    page.wait_for_selector("#planner-form[data-complete=true]")
    solve = """() => {
        const math = window.inferenceMath, page = window.inferenceMathPlanner, given = page.state();
        const found = math.solve(page.question(given), page.coefficients(given), [1, 1]);
        return [found.best, found.numbers.rate];
    }"""
    model = Model.from_config(LLAMA, pasted.NAME)
    unit = Unit.of(model, "h100-sxm", 2, model.stored, "fp8", "vllm")  # as the checkpoint is stored
    expected = plan(unit, Workload(2200, 170), SLA(0.4, 0.04), units=8, price=2.5, intervals=False)
    best, rate = page.evaluate(solve)
    assert best == expected.best
    assert rate == pytest.approx(expected["rate"], rel=1e-9)
    assert 'Model.from_config("config.json")' in page.evaluate("window.inferenceMathPlanner.asPython()")
