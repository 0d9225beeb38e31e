from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from inference_math import evidence
from inference_math.profiles import from_operators
from inference_math.unit.coefficients import Calibration, Coefficients


@pytest.fixture(scope="module")
def steps():
    return from_operators.composed_steps()


def test_the_committed_coefficients_are_the_fit(steps):
    table = evidence.load("coefficients").frame.set_index(["engine", "name"])
    for engine in ("vllm", "trtllm"):
        found = from_operators.fit(steps[steps.engine == engine])
        others = from_operators.left_out(steps[steps.engine == engine], "model")
        for name, sd in from_operators.jackknife(others).items():
            row = table.loc[(engine, name)]
            assert getattr(found.coefficients, name) == pytest.approx(row.value, rel=1e-3)
            assert sd == pytest.approx(row.sd, rel=1e-3)
            assert row.low < row.value < row.high + 1e-9
        assert table.loc[(engine, "kv")].value == table.loc[(engine, "memory")].value
        assert (others.spread**2).mean() ** 0.5 == pytest.approx(table.loc[(engine, "spread")].value, rel=1e-3)


def test_a_model_that_was_left_out_is_predicted_as_well(steps):
    """What transfers to a new model: an error near that of the fit itself."""
    frame = from_operators.left_out(steps[steps.engine == "vllm"], "model")
    assert len(frame) == 5
    assert frame.mape.max() < 0.1


def test_the_fit_finds_what_made_the_steps(steps):
    truth = Coefficients(memory=0.8, kv=0.8, bf16=0.6, fp8=0.45, layer=3e-5)
    made = steps.assign(measured=from_operators.predicted(steps, truth))
    found = from_operators.fit(made).coefficients
    for name in from_operators.FITTED:
        assert getattr(found, name) == pytest.approx(getattr(truth, name), rel=1e-4)


def test_no_measured_step_beats_the_datasheet(steps):
    """The composed work at full rates is below every measured time: nothing was counted twice."""
    work = from_operators.predicted(steps, Coefficients())
    assert (work < steps.measured * 1.02).mean() > 0.999
    assert np.isfinite(work).all()


def test_one_precision_is_not_enough(steps):
    with pytest.raises(ValueError, match="steps must be of both precisions, not bf16"):
        from_operators.fit(steps[steps.weights_in == "bf16"])


def test_the_jackknife_is_the_textbook_s():
    """Of a mean, it is the standard error."""
    values = np.array([1.0, 2.0, 4.0, 7.0])
    means = [(values.sum() - v) / 3 for v in values]
    frame = pd.DataFrame(dict.fromkeys(from_operators.FITTED, means))
    expected = values.std(ddof=1) / 2
    assert from_operators.jackknife(frame).to_numpy() == pytest.approx(expected)


def test_an_engine_adds_something_for_each_request():
    """ML.ENERGY's medians, vLLM 0.11: without it they are a quarter off, with it a twentieth."""
    vllm = Calibration.zero_shot("vllm")
    seconds = from_operators.request_overhead(vllm.coefficients)
    assert seconds == pytest.approx(vllm.sd("request"), rel=0.01)
    assert 20e-6 < seconds < 80e-6
    # Longer prompts leave less to explain.
    assert from_operators.request_overhead(vllm.coefficients, context=1024) < seconds
