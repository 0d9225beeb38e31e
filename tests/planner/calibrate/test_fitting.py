"""Coefficients under a prior: recovered where told, kept where not."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from inference_math.unit.coefficients import COEFFICIENTS, Calibration
from inference_math_planner.calibrate.fitting import moved_to

START = Calibration.zero_shot("vllm")
WIDTHS = {"bf16": 0.2, "kv": 0.35, "layer": 1.0, "per_sequence_overhead": 0.5}
WORK = np.random.default_rng(0).uniform(0.1, 1, (40, 3))


def predicted(at: Calibration):
    """Seconds of compute, reads and requests; nothing depends on a layer."""
    c = at.coefficients
    return WORK @ np.array([1 / c.bf16, 1 / c.kv, 5e5 * c.per_sequence_overhead])


@given(bf16=st.floats(0.5, 0.85), kv=st.floats(0.6, 0.99), request=st.floats(4e-8, 4e-6))
def test_what_is_told_is_found_and_the_rest_is_kept(bf16, kv, request):
    truth = replace(START, coefficients=replace(START.coefficients, bf16=bf16, kv=kv, per_sequence_overhead=request))
    found, kept = moved_to(predicted(truth), predicted, START, WIDTHS, "profile")
    # Noise of a twentieth is assumed, so the prior still pulls a little.
    assert found.coefficients.bf16 == pytest.approx(bf16, rel=0.02)
    assert found.coefficients.kv == pytest.approx(kv, rel=0.02)
    assert found.coefficients.per_sequence_overhead == pytest.approx(request, rel=0.1, abs=1e-7)
    assert kept == ("layer",)
    assert found.coefficients.layer == START.coefficients.layer
    assert found.sd("layer") == pytest.approx(START.sd("layer"))
    assert found.coefficients.memory == START.coefficients.memory
    assert found.mode == "profile"


def test_shares_stay_shares_and_seconds_stay_positive():
    fast, _ = moved_to(0.2 * predicted(START), predicted, START, WIDTHS, "profile")
    assert fast.coefficients.bf16 <= 1
    assert fast.coefficients.kv <= 1
    assert 0 < fast.coefficients.per_sequence_overhead < START.coefficients.per_sequence_overhead / 10


def test_the_covariance_is_one_and_smaller_than_the_prior():
    seconds = predicted(START) * np.exp(np.random.default_rng(1).normal(0, 0.05, len(WORK)))
    found, _ = moved_to(seconds, predicted, START, WIDTHS, "profile")
    assert found.covariance.shape == (len(COEFFICIENTS),) * 2
    assert found.sd("bf16") < WIDTHS["bf16"] * START.coefficients.bf16
    assert 0.03 < found.spread < 0.07
    # What was fitted goes no longer with what was not.
    memory, kv = COEFFICIENTS.index("memory"), COEFFICIENTS.index("kv")
    assert found.covariance[memory, kv] == 0 != START.covariance[memory, kv]


def test_what_is_sure_already_moves_little():
    """The prior is the calibration's own covariance: seconds that contradict it move a sure coefficient less."""
    sure = replace(START, covariance=1e-4 * START.covariance)
    seconds = 1.3 * predicted(START)
    widths = dict.fromkeys(WIDTHS, 0.0)
    loose, _ = moved_to(seconds, predicted, START, widths, "profile")
    tight, _ = moved_to(seconds, predicted, sure, widths, "profile")
    moved = [abs(np.log(one.coefficients.kv / START.coefficients.kv)) for one in (tight, loose)]
    assert moved[0] < 0.1 * moved[1]
