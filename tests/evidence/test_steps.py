"""What our own measurements of GPUs say of the claims: nothing here is fitted but where it says so."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from grids import rest_long

from inference_math import evidence, theory
from inference_math.catalogue import GPUS
from inference_math_planner.calibrate import from_kernels, schedules

NAMES = [name for name in evidence.tables() if name.startswith("steps_")]


@cache
def times(name: str) -> pd.DataFrame:
    return from_kernels.times(evidence.load(name))


@cache
def fitted(name: str):
    """Return a measured unit, and what is fitted to its steps."""
    unit = from_kernels.unit(evidence.load(name))
    return unit, from_kernels.fit(times(name), unit)


def loads(name: str) -> tuple[pd.DataFrame, int]:
    layers = from_kernels.unit(evidence.load(name)).model.n_layers
    return schedules.loads(times(name), layers), layers


def test_there_are_three_models_in_two_precisions_on_two_gpus() -> None:
    of = [evidence.load(name).setup for name in NAMES]
    assert {(s["gpu"], s["model"], s["weights"]) for s in of} == {
        ("h100-sxm", "llama-3-8b", "bf16"), ("h100-sxm", "llama-3-8b", "fp8"), ("h100-sxm", "qwen3-14b", "bf16"),
        ("h100-sxm", "qwen3-32b", "fp8"), ("h200-sxm", "llama-3-8b", "bf16"),
    }  # fmt: skip
    assert not any(s["toy"] for s in of)


@pytest.mark.parametrize("name", rest_long(NAMES))
def test_no_step_and_no_rate_beats_the_hardware(name: str) -> None:
    (unit, fit), found = fitted(name), times(name)
    assert fit.unusable.empty
    gpu = GPUS[unit.gpu.name]
    limits = {
        "copy": gpu.hbm_bw, "load": gpu.pcie_bw, "product-bf16": gpu.flops("bf16"), "product-fp8": gpu.flops("fp8"),
    }  # fmt: skip
    rates = from_kernels.rates(found)
    share = rates["rate"] / rates["what"].map(limits)
    # A wrong unit would pass the first bound: each comes near its own.
    assert share.max() < 1
    assert share.min() > 0.7


@pytest.mark.parametrize("name", NAMES)
def test_a_mixed_step_is_products_of_both_then_reads_then_attention(name: str) -> None:
    found = schedules.overlaps(times(name))
    assert len(found) == 18
    off = {model: found[model] / found["measured"] - 1 for model in schedules.OVERLAPS}
    assert found["closure"].abs().max() < 0.015
    assert off["serial_kv"].abs().max() < 0.06
    assert off["serial_kv"].abs().mean() < 0.03
    assert off["none"].mean() > 0.15
    assert off["full"].mean() < -0.1


@pytest.mark.parametrize("name", NAMES)
def test_two_streams_hide_little_and_reading_the_weights_twice_never_wins(name: str) -> None:
    found = schedules.overlaps(times(name))
    hidden = schedules.hidden(found)
    assert -0.05 < hidden["attention"] < 0.2
    assert 0.1 < hidden["steps"] < 0.2
    assert (found["steps_beside"] > found["measured"]).all()


@pytest.mark.parametrize("name", NAMES)
def test_loads_are_a_pipeline_of_their_measured_parts_and_formulas_promise_more(name: str) -> None:
    found, layers = loads(name)
    parts = found["layerwise"] / found["parts_layerwise"] - 1
    assert parts.abs().median() < 0.02
    assert (parts.abs() < 0.03).sum() >= len(parts) - 1
    assert (found["law_layerwise"] / found["layerwise"] - 1).max() > 0.3
    gain = found["layerwise"] / found["first"]
    assert 1.5 < gain.max() < theory.pipelining_gain_layers(n_layers=layers) < 2


@pytest.mark.parametrize("name", NAMES)
def test_the_best_share_lies_right_of_the_crossover(name: str) -> None:
    found, _ = loads(name)
    star = theory.crossover(e=float(found["e"].median()))
    assert found["alpha"][found["layerwise"].idxmax()] > star
    # Who stops at the crossover gives speed away; who loads all that there is loses next to nothing.
    at_star = 1 / np.interp(star, found["alpha"], 1 / found["parts_layerwise"])
    assert found["parts_layerwise"].iloc[-1] > 1.4 * at_star
    assert found["layerwise"].iloc[-1] > 0.97 * found["layerwise"].max()


@pytest.mark.parametrize("name", rest_long(NAMES))
def test_mixed_steps_that_no_fit_saw_are_met_by_the_fitted_form(name: str) -> None:
    (unit, fit), found = fitted(name), times(name)
    mixed = found[found["what"] == "mixed"].reset_index(drop=True)
    off = np.abs(from_kernels.predicted(mixed, unit.calibrated(fit.calibration)) / mixed["seconds"] - 1)
    assert off.mean() < 0.08
    if unit.weights == "fp8":  # the shipped rate of BF16 is of these very steps
        assert off.mean() < np.abs(from_kernels.predicted(mixed, unit) / mixed["seconds"] - 1).mean()
