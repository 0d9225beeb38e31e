"""What is pasted on the planner's page, read there as here."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace

import numpy as np
import pytest

from inference_math import SLA, Unit, Workload, plan
from inference_math.catalogue import Model
from inference_math.evidence import data_dir
from inference_math.planner import fleet
from inference_math.unit.coefficients import Anchor, Calibration
from inference_math.workload.traces import read as read_trace
from inference_math_book.explore import pasted

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
    said = json.loads(pasted.answer("model", json.dumps(CONFIGS["gpt-oss-120b"])))["said"]
    assert said.startswith("36 layers, 117 B parameters, 5.13 B active, KV 73.7 MB per 1,000 tokens in BF16")
    assert said.endswith("stored in MXFP4")


def read(page, text: str, what: str = "model") -> str:
    """Paste a text, press the button, and return what the page says of it."""
    page.locator(f"#planner-{what}").evaluate("own => { own.open = true; }")
    page.locator(f"#planner-{what} textarea").fill(text)
    status = page.locator(f"#planner-{what} [role=status]")
    status.evaluate("status => { status.textContent = ''; }")
    page.locator(f"#planner-{what}").get_by_role("button", name="Read").click()
    read = "e => window.complained || (e.textContent && !e.textContent.startsWith('Reading'))"
    page.wait_for_function(read, arg=status.element_handle())
    assert not page.evaluate("window.complained")
    return status.text_content().removesuffix(". What was read before still counts.")


def test_a_root_is_that_of_numpy():
    rng = np.random.default_rng(1)
    for rank in (13, 5, 1):
        factor = rng.normal(size=(13, rank)) * np.geomspace(1, 1e-6, rank)
        own = np.array(pasted.root_of((factor @ factor.T).tolist()))
        np.testing.assert_allclose(own @ own, factor @ factor.T, atol=1e-12)
        np.testing.assert_allclose(own, own.T, atol=1e-15)
        assert np.linalg.eigvalsh(own).min() > -1e-8
    own = Calibration.zero_shot("vllm")
    np.testing.assert_allclose(pasted.root_of(own.covariance.tolist()), own.root, atol=1e-7)
    assert pasted.root_of([[0.0]]) == [[0.0]]


@pytest.mark.parametrize("matrix", [[[1.0, 2.0], [2.0, 1.0]], [[1.0, 0.5], [0.4, 1.0]], [[-1.0]]])
def test_what_is_no_covariance_has_no_root(matrix):
    with pytest.raises(ValueError, match="log_covariance must be symmetric and positive semidefinite"):
        pasted.root_of(matrix)


@pytest.mark.browser
def test_the_page_reads_what_the_package_reads(open_page):
    page = open_page(PAGE)
    for config in (LLAMA, *CONFIGS.values()):
        expected = json.loads(pasted.answer("model", json.dumps(config)))
        assert read(page, json.dumps(config)) == f"Read: {expected['said']}."
        assert page.evaluate("name => window.inferenceMath.data.models[name]", pasted.NAME) == expected["record"]


@pytest.mark.browser
def test_the_page_refuses_in_the_same_words(open_page):
    page = open_page(PAGE)
    for what, text in REFUSED.items():
        assert read(page, text) == json.loads(pasted.answer("model", text))["wrong"], what


@pytest.mark.browser
def test_a_pasted_model_is_planned_as_in_the_package(open_page):
    page = open_page(PAGE)
    read(page, json.dumps(LLAMA))
    page.wait_for_selector("#planner-form[data-complete=true]")
    solve = """() => {
        const math = window.inferenceMath, page = window.inferenceMathPlanner, given = page.state();
        const found = math.solve(page.question(given), [[page.coefficients(given), [1, 1, 0]]]);
        return [found.best, found.rates[found.best][0]];
    }"""
    model = Model.from_config(LLAMA, pasted.NAME)
    unit = Unit.of(model, "h100-sxm", 2, model.stored, "fp8", "vllm")  # as the checkpoint is stored
    expected = plan(unit, Workload(2200, 170), SLA(0.4, 0.04), units=8, price=2.5, intervals=False)
    best, rate = page.evaluate(solve)
    assert best == expected.best
    assert rate == pytest.approx(expected["rate"], rel=1e-9)
    assert 'Model.from_config("config.json")' in page.evaluate("window.inferenceMathPlanner.asPython()")


REQUESTS = {
    "lengths": "n_in,n_out\n" + "".join(f"{100 + 37 * i % 3000},{10 + 7 * i % 300}\n" for i in range(500)),
    "azure": "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.68,374,44\n2023-11-16 18:15:50,396,109\n",
    "mooncake": '{"timestamp": 0, "input_length": 600, "output_length": 52, "hash_ids": [0, 1]}\n{"timestamp": 5}\n',
    "twice": '{"timestamp": 0, "input_length": 6, "input_length": 5, "output_length": 5}\n',
    "nothing": "", "no columns": "a,b\n1,2\n", "no number": "n_in,n_out\n1,x\n", "too long": "n_in,n_out\n1,1e10\n",
    "separators": "n_in,n_out\n1_0,1\n", "negative": "n_in,n_out\n-1,1\n5,5\n",
}  # fmt: skip


@pytest.mark.browser
def test_the_page_reads_requests_as_the_package_does(open_page):
    page = open_page(PAGE)
    for name, text in REQUESTS.items():
        expected = json.loads(pasted.answer("requests", text))
        said = expected.get("wrong") or f"Read: {expected['said']}."
        assert read(page, text, "requests") == said, name
        if "rows" in expected:
            assert page.evaluate("window.inferenceMath.data.mixes.own.rows") == expected["rows"]
            assert page.locator("[name=prompt]").is_disabled()
    read(page, "a,b\n1,2\n", "requests")
    assert page.locator("#planner-requests [role=status]").text_content().endswith("before still counts.")


@pytest.mark.browser
def test_pasted_requests_are_played_as_in_the_package(open_page, tmp_path):
    page = open_page(PAGE)
    page.locator("[name=ttft]").fill("1500")
    read(page, REQUESTS["lengths"], "requests")
    page.wait_for_selector("#planner-form[data-sized=true]")
    path = tmp_path / "requests.csv"
    path.write_text(REQUESTS["lengths"])
    trace = read_trace(path).trace()
    unit = Unit.of("llama-3-70b", "h100-sxm", 2, "fp8", "fp8", "vllm")
    found = fleet(plan(unit, Workload.from_trace(trace), SLA(1.5, 0.04), units=8, price=2.5), 40, mix=trace)
    assert page.locator("#planner-headline").inner_text().rstrip(".").lower() == found.headline.lower()
    assert page.locator("#planner-how").inner_text().rstrip(".").lower() == found.how.lower()
    code = page.evaluate("window.inferenceMathPlanner.asPython()")
    assert 'requests = read("requests.csv").trace()' in code
    assert "mix=requests" in code
    # Back to equal ones: the fields may be written again.
    page.locator("[name=lengths]").select_option("fixed")
    assert page.locator("[name=prompt]").is_enabled()


@pytest.mark.browser
def test_a_pasted_calibration_is_drawn_from_as_in_the_package(open_page, tmp_path):
    own = Calibration.zero_shot("trtllm")
    own = replace(own, mode="profile", scope={"gpu": ("b200",)}, anchors=(Anchor(2000, 200, 0.002), Anchor(9, 9, 0.5)))
    path = tmp_path / "calibration.toml"
    own.save(path)
    page = open_page(PAGE)
    assert read(page, path.read_text("utf-8"), "calibration") == "Read: a profile calibration of b200."
    page.wait_for_selector("#planner-form[data-complete=true]")
    unit = Unit.of("llama-3-70b", "h100-sxm", 2, "fp8", "fp8", "vllm", own)
    found = plan(unit, Workload(2200, 170), SLA(0.4, 0.04), units=8, price=2.5)
    assert page.locator("#planner-verdict").inner_text().rstrip(".").lower() == found.verdict.rstrip(".").lower()
    assert "not calibrated" in page.locator("#planner-notes").inner_text().lower()
    assert 'Calibration.load("calibration.toml")' in page.evaluate("window.inferenceMathPlanner.asPython()")
    for text in ("", "a = 1", path.read_text("utf-8").replace("spread = 0", "spread = 5")):
        assert read(page, text, "calibration") == json.loads(pasted.answer("calibration", text))["wrong"]
