from __future__ import annotations

import from_operators
import numpy as np
import pandas as pd
import pytest

from inference_math import evidence
from inference_math.unit.coefficients import Coefficients

pytestmark = pytest.mark.long

TRUTH = Coefficients(memory=0.8, kv=0.8, bf16=0.6, attention=0.6, fp8=0.45, layer=3e-5)


@pytest.fixture(scope="module")
def steps():
    return from_operators.composed_steps()


def test_the_committed_coefficients_are_the_fit(steps):
    table = evidence.load("coefficients").frame.set_index(["engine", "name"])
    for engine in ("vllm", "trtllm"):
        found = from_operators.fit(steps[steps.engine == engine])
        others = from_operators.left_out(steps[steps.engine == engine], "model")
        covariance = from_operators.new_model(others)
        # Whole steps set `bf16`, slower than kernels one by one: it goes with nothing that the operators tell.
        own = [name for name in from_operators.FITTED if name != "bf16"]
        steps_tell = table.loc[(engine, "bf16")]
        assert steps_tell.value < found.coefficients.bf16
        assert (steps_tell[own] == 0).all()
        assert steps_tell["attention"] == 1
        for name in own:
            row = table.loc[(engine, name)]
            assert getattr(found.coefficients, name) == pytest.approx(row.value, rel=1e-3)
            assert covariance.loc[name, name] ** 0.5 * row.value == pytest.approx(row.sd, rel=1e-3)
            assert row.low < row.value < row.high + 1e-9
            assert row["bf16"] == 0
            for other in own:
                both = covariance.loc[name, name] * covariance.loc[other, other]
                assert row[other] == pytest.approx(covariance.loc[name, other] / both**0.5, abs=2e-3)
        assert table.loc[(engine, "kv")].value == table.loc[(engine, "memory")].value
        assert (others.spread**2).mean() ** 0.5 == pytest.approx(table.loc[(engine, "spread")].value, rel=1e-3)


def test_a_model_that_was_left_out_is_predicted_as_well(steps):
    """What transfers to a new model: an error near that of the fit itself."""
    frame = from_operators.left_out(steps[steps.engine == "vllm"], "model")
    assert len(frame) == 5
    assert frame.mape.max() < 0.1


def test_the_fit_finds_what_made_the_steps(steps):
    made = steps.assign(measured=from_operators.predicted(steps, TRUTH))
    found = from_operators.fit(made).coefficients
    for name in from_operators.FITTED:
        assert getattr(found, name) == pytest.approx(getattr(TRUTH, name), rel=1e-4)


def test_no_measured_step_beats_the_datasheet(steps):
    """The composed work at full rates is below every measured time: nothing was counted twice."""
    work = from_operators.predicted(steps, Coefficients())
    assert (work < steps.measured * 1.02).mean() > 0.999
    assert np.isfinite(work).all()


def test_one_precision_is_not_enough(steps):
    with pytest.raises(ValueError, match="steps must be of both precisions, not bf16"):
        from_operators.fit(steps[steps.weights_in == "bf16"])


def test_a_new_model_is_as_unsure_as_student_s_t_says():
    """Of a mean the jackknife is the standard error; one more value scatters about it by s·sqrt(1 + 1/n), as t does."""
    logs = np.array([1.0, 2.0, 4.0, 7.0, 7.5])
    n = len(logs)
    without = np.exp([(logs.sum() - value) / (n - 1) for value in logs])
    found = from_operators.new_model(pd.DataFrame(dict.fromkeys(from_operators.FITTED, without)))
    t = (n - 1) / (n - 3)  # the variance of t with n - 1 degrees of freedom
    assert found.to_numpy() == pytest.approx(logs.var(ddof=1) * (1 + 1 / n) * t)


def test_models_fitted_alone_scatter_as_the_table_says(steps):
    """The sd between models, not that of their mean: FP8 from 0.48 to 0.62 under vLLM."""
    vllm = steps[steps.engine == "vllm"]
    alone = [from_operators.fit(vllm[vllm.model == model]).coefficients.fp8 for model in vllm.model.unique()]
    row = evidence.load("coefficients").frame.set_index(["engine", "name"]).loc[("vllm", "fp8")]
    assert np.std(alone, ddof=1) < row.sd < 3 * np.std(alone, ddof=1)
    assert row.low < min(alone) < max(alone) < row.high


def test_what_lies_beyond_is_predicted_from_what_does_not(steps):
    made = steps.assign(measured=from_operators.predicted(steps, TRUTH))
    assert from_operators.beyond(made, "batch", 64) == pytest.approx(0, abs=1e-4)
    slower = made.assign(measured=made.measured * np.where(made.batch > 64, 1.2, 1.0))
    assert from_operators.beyond(slower, "batch", 64) == pytest.approx(np.log(1.2), rel=1e-3)
