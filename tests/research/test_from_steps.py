"""What whole steps reach: four tables agree, steps that were left out too, and operators one by one reach more."""

from __future__ import annotations

from dataclasses import replace

import from_operators
import from_steps
import numpy as np
import pandas as pd
import pytest

from inference_math import Unit, evidence
from inference_math.unit.coefficients import COEFFICIENTS, Calibration

VLLM = Calibration.zero_shot("vllm")
RATES = from_steps.rates(VLLM.coefficients)


def test_the_committed_rate_is_what_was_derived():
    value, between = from_steps.new_unit(RATES)
    assert VLLM.coefficients.bf16 == VLLM.coefficients.attention == pytest.approx(value, rel=1e-3)
    bf16, attention = COEFFICIENTS.index("bf16"), COEFFICIENTS.index("attention")
    assert VLLM.covariance[bf16, bf16] ** 0.5 == pytest.approx(between, rel=5e-3)
    others = np.delete(VLLM.covariance[bf16], [bf16, attention])
    assert (others == 0).all()


def test_tables_agree_and_stay_below_products_that_are_timed_one_by_one():
    isolated = from_operators.fit(from_operators.composed_steps(("llama-3-8b", "llama-3-70b"), ("vllm",))).coefficients
    assert RATES.max() / RATES.min() < 1.08
    assert RATES.max() < 0.9 * isolated.bf16


def test_a_planted_rate_is_found(monkeypatch):
    def planted(rows, of):
        return rows["tokens"].to_numpy(float) / of.coefficients.bf16

    monkeypatch.setattr(from_steps.from_kernels, "predicted", planted)
    seen = from_steps.from_kernels.times
    monkeypatch.setattr(
        from_steps.from_kernels, "times", lambda table: seen(table).assign(seconds=lambda t: t["tokens"] / 0.55)
    )
    assert from_steps.rates(VLLM.coefficients).to_numpy() == pytest.approx(0.55, rel=1e-4)


def test_what_is_equal_leaves_nothing_open():
    assert from_steps.new_unit(pd.Series([0.5] * 4)) == pytest.approx((0.5, 0.0))


@pytest.mark.parametrize("what", ["prompts of our vLLM", "long prompts of vLLM's blog"])
def test_it_holds_for_engines_that_were_left_out(what):
    """Of neither run a point was fitted to: the error falls by half."""
    if what == "prompts of our vLLM":
        rows = evidence.load("lab_gpu_steps").frame.query("offloading == 0 and prompts == 1 and tokens >= 512")
        asked = (rows["decodes"], rows["context"], rows["tokens"])
        measured = rows["step_ms"].to_numpy() / 1e3
    else:
        rows = evidence.load("vllm_kv_offload").frame
        asked = (0, 0, rows["prompt_tokens"])
        measured = rows["compute_ms"].to_numpy() / 1e3
    one_by_one = replace(VLLM, coefficients=replace(VLLM.coefficients, bf16=0.7956, attention=0.7956))
    off = [
        np.abs(Unit.of("llama-3-8b", "h100-sxm", calibration=own).step_time(*asked) / measured - 1).mean()
        for own in (VLLM, one_by_one)
    ]
    assert off[0] < 0.05
    assert off[0] < off[1] / 2
