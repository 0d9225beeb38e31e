"""What a calibration's file states; that a covariance is one, test_coefficients asks."""

from __future__ import annotations

import tomllib

import pytest

from inference_math.unit.coefficients import COEFFICIENTS, Calibration
from inference_math.unit.stored import Coefficients, stored


@pytest.fixture
def fields(tmp_path):
    path = tmp_path / "calibration.toml"
    Calibration.zero_shot("vllm").save(path)
    return tomllib.loads(path.read_text("utf-8"))


def test_what_was_saved_is_what_is_stated(fields):
    own, found = Calibration.zero_shot("vllm"), stored(fields)
    assert found.coefficients == own.coefficients
    assert found.covariance == own.covariance.tolist()
    assert (found.mode, found.spread, found.scope) == (own.mode, own.spread, dict(own.scope))


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("mode", "guessed", "mode must be one of"),
        ("spread", 3, "spread must be a number from 0 to 2"),
        ("coefficients", [1], "coefficients must be a table"),
        ("coefficients", dict.fromkeys(COEFFICIENTS, 1e-9), "memory must be a number from 0.001 to 1"),
        ("coefficients", dict.fromkeys(COEFFICIENTS, 0.5) | {"layer": 60}, "layer must be a number from 0 to 10"),
        ("log_covariance", {name: [0.0] for name in COEFFICIENTS}, "log_covariance must have 14 numbers"),
        (
            "log_covariance",
            {name: [11.0] * 14 for name in COEFFICIENTS},
            "log_covariance must be a number from -10 to 10",
        ),
        ("scope", {"gpu": [1]}, "scope.gpu must be names"),
        ("scope", {"tp": [2, 1]}, "scope.tp must be the two ends of a range"),
        ("anchors", [{"n_in": 1}], "an anchor must have n_in, n_out, seconds"),
        ("anchors", [{"n_in": 1, "n_out": 1, "seconds": 2}], "seconds of an anchor must be a number from -0.1 to 1"),
    ],
)
def test_what_is_out_of_range_is_refused(fields, name, value, words):
    with pytest.raises((TypeError, ValueError), match=words):
        stored(fields | {name: value})


def test_what_is_missing_is_named(fields):
    del fields["anchors"]
    with pytest.raises(KeyError, match="anchors"):
        stored(fields)


@pytest.mark.parametrize("value", [0, 1.1, float("nan"), "1", None, True])
def test_a_share_is_a_share(value):
    with pytest.raises((TypeError, ValueError), match="memory must be a number"):
        Coefficients(memory=value)
