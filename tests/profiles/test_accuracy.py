"""Predictions beside the public sets: the bars, what each term is worth, what intervals hold."""

from __future__ import annotations

import numpy as np
import pytest

from inference_math.profiles import accuracy
from inference_math.unit import Unit


def test_silybench_zero_shot_is_within_the_bar_and_above_the_floor():
    frame = accuracy.silybench(accuracy.qwen())
    assert len(frame) == 67
    assert accuracy.mape(frame) <= 0.065
    assert (frame.limit < frame.measured).all()
    assert (frame.limit <= frame.low).all()
    assert accuracy.coverage(frame) >= 0.9


def test_runs_of_a_precision_keep_lengths_and_latencies():
    runs = accuracy.silybench_runs("fp8")
    frame = accuracy.silybench({"fp8": accuracy.qwen()["fp8"]})
    assert sorted(runs.table.e2e) == sorted(frame.measured)
    some = accuracy.silybench_runs("fp8", 24)
    assert len(some.table) == 24
    assert set(some.table.source) <= set(runs.table.source)
    assert some.unusable.empty


def test_the_ladder_ends_at_the_unit_and_starts_at_the_datasheet():
    unit = accuracy.qwen()["bf16"]
    forms = accuracy.ladder(unit, 2048, 512, np.array([1.0, 64.0]))
    assert tuple(forms) == accuracy.LADDER
    assert forms[accuracy.LADDER[-1]] == pytest.approx(unit.e2e(accuracy.Workload(2048, 512), np.array([1.0, 64.0])))
    for name in accuracy.LADDER[1:]:
        assert (forms[name] > forms[accuracy.LADDER[0]]).all()
    # With one user no repair of what others add matters, but the context and a decode's own compute do.
    assert forms[accuracy.LADDER[2]][0] == pytest.approx(forms[accuracy.LADDER[3]][0])


def test_engines_unlike_the_calibrated_are_outside_and_too_slow():
    """An honest failure: vLLM of 2023 without CUDA graphs, on eight GPUs worst."""
    frame = accuracy.splitwise()
    error = (frame.predicted / frame.measured - 1).groupby([frame.gpu, frame.tp]).mean()
    assert (error < -0.15).all()
    assert error["h100-sxm", 8] < error["h100-sxm", 2]
    assert accuracy.coverage(frame) < 0.05


def test_mlenergy_is_missed_by_what_an_engine_adds_and_held_by_the_interval():
    frame = accuracy.mlenergy()
    assert len(frame) == 64
    large = frame[frame.batch >= 64]
    assert (large.predicted < large.measured).all()
    assert accuracy.coverage(frame) >= 0.9
    assert (frame.low >= Unit.of("llama-3-8b", "h100-sxm").limit.step_time(1, 1)).all()
