from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from inference_math.unit.coefficients import (
    COEFFICIENTS,
    DATASHEET,
    ENGINES,
    Anchor,
    Calibration,
    Coefficients,
    Prediction,
)

VLLM = Calibration.zero_shot("vllm")


@pytest.mark.parametrize("engine", ENGINES)
def test_zero_shot_coefficients_are_shares(engine):
    found = Calibration.zero_shot(engine)
    c = found.coefficients
    assert 0.5 < c.memory <= 1
    assert c.kv == c.memory
    assert 0.3 < c.fp8 < c.bf16 <= 1
    assert 0 < c.layer < 1e-3
    assert c.request == 0
    assert all(found.sd(name) > 0 for name in COEFFICIENTS)
    assert 0.02 < found.spread < 0.2


def test_draws_scatter_as_the_covariance_says():
    draws = VLLM.draws(2000)
    values = np.array([[getattr(one.calibration.coefficients, name) for name in COEFFICIENTS] for one in draws])
    for i, name in enumerate(COEFFICIENTS):
        if name == "request":  # cut off at 0: half of the draws lie there
            assert (values[:, i] == 0).mean() == pytest.approx(0.5, abs=0.02)
            assert np.quantile(values[:, i], 0.9) == pytest.approx(1.2816 * VLLM.sd(name), rel=0.05)
        else:
            assert values[:, i].mean() == pytest.approx(getattr(VLLM.coefficients, name), rel=0.01)
            assert values[:, i].std() == pytest.approx(VLLM.sd(name), rel=0.05)
    # KV caches are read at the share of all reads.
    memory, kv = COEFFICIENTS.index("memory"), COEFFICIENTS.index("kv")
    np.testing.assert_allclose(values[:, memory], values[:, kv])
    errors = np.log([[one.step, one.prompt] for one in draws])
    assert errors.std(axis=0) == pytest.approx([VLLM.spread] * 2, rel=0.03)
    assert abs(np.corrcoef(errors.T)[0, 1]) < 0.05  # the fit errs on prompts and on decodes by themselves
    assert [d.calibration.coefficients for d in VLLM.draws(5)] == [d.calibration.coefficients for d in VLLM.draws(5)]


def test_no_draw_leaves_what_is_possible():
    wide = replace(VLLM, covariance=100 * VLLM.covariance)
    for one, *_ in wide.draws(200):
        assert all(0 < getattr(one.coefficients, name) <= 1 for name in ("memory", "bf16", "fp8", "kv"))
        assert one.coefficients.layer >= 0
        assert one.coefficients.request >= 0


def test_a_calibration_comes_back_from_its_file(tmp_path):
    given = VLLM.anchored((Anchor(2048, 170, 1e-4), Anchor(128, 128, -2e-5)))
    given.save(tmp_path / "mine.toml")
    found = Calibration.load(tmp_path / "mine.toml")
    assert found.coefficients == given.coefficients
    assert found.anchors == given.anchors
    assert dict(found.scope) == dict(given.scope)
    assert (found.mode, found.spread) == (given.mode, given.spread)
    np.testing.assert_array_equal(found.covariance, given.covariance)
    DATASHEET.save(tmp_path / "none.toml")
    assert Calibration.load(tmp_path / "none.toml").coefficients == Coefficients()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("mode =", "mood =", "'mode' is missing"),
        ("memory = 0.9488", "memory = 1.2", "memory must be"),
        ('mode = "zero-shot"', 'mode = "guess"', "mode must be one of"),
        ("spread = 0", "spread = -0", "spread must be"),
        ("mode", "mode = = ", "must be a calibration"),
        ("fp8 = 0.5386", "fp9 = 0.5386", "fp9"),
        ("layer = [", "layer = [1.0, ", "covariance must be|must be a calibration"),
    ],
)
def test_a_broken_file_is_refused(tmp_path, old, new, words):
    path = tmp_path / "mine.toml"
    VLLM.save(path)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(ValueError, match=words):
        Calibration.load(path)


def test_the_nearest_anchor_counts():
    given = VLLM.anchored((Anchor(2048, 170, 1e-4), Anchor(128, 128, -2e-5)))
    assert given.anchor(2000, 200) == 1e-4
    assert given.anchor(100, 100) == -2e-5
    assert VLLM.anchor(100, 100) == 0


def test_the_scope_names_what_is_outside():
    assert VLLM.outside(gpu="h100-sxm", tp=2, n_in=2048) == ()
    assert VLLM.outside(gpu="b200") == ("gpu b200 is not among the calibrated: h100-sxm",)
    assert VLLM.outside(n_in=[100, 20_000]) == ("n_in 100 to 20000 is outside the calibrated range, 1 to 16384",)
    assert VLLM.outside(colour="red") == ()


@pytest.mark.parametrize(
    ("values", "words"),
    [({"memory": 1.1}, "memory must be"), ({"bf16": 0}, "bf16 must be"), ({"layer": -1e-6}, "layer must be")],
)
def test_impossible_coefficients(values, words):
    with pytest.raises(ValueError, match=words):
        Coefficients(**values)


def test_impossible_calibrations():
    with pytest.raises(ValueError, match="covariance must be 6 x 6"):
        replace(VLLM, covariance=np.eye(5))
    skewed = np.eye(6)
    skewed[0, 1] = 0.5
    negative = np.eye(6)
    negative[0, 1] = negative[1, 0] = 2.0
    for matrix in (-np.eye(6), skewed, negative):
        with pytest.raises(ValueError, match="symmetric and positive semidefinite"):
            replace(VLLM, covariance=matrix)
    for scope in ({"tp": [1]}, {"gpu": "h100-sxm"}, {"tp": []}, {"n_in": [5, 1]}, {"tp": 5}):
        with pytest.raises(ValueError, match="scope"):
            replace(VLLM, scope=scope)
    with pytest.raises(ValueError, match="spread must be"):
        replace(VLLM, spread=300.0)
    for bad in ({"n_in": 0}, {"seconds": np.nan}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            Anchor(**({"n_in": 10, "n_out": 10, "seconds": 0.1} | bad))
    with pytest.raises(ValueError, match="engine must be one of"):
        Calibration.zero_shot("mine")
    with pytest.raises(ValueError, match="name must be one of"):
        VLLM.sd("speed")


def test_a_prediction_prints_itself():
    found = Prediction(0.0123456, 0.01, 0.015, 0.9, "profile", ("tp 3 is outside",))
    assert str(found) == "0.01235 s (0.01 to 0.015, 90%, profile); tp 3 is outside"
    assert str(replace(found, value=np.array([1.0, 2.0]))).startswith("[1.0, 2.0] s")
