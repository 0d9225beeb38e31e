import tomllib
from dataclasses import replace

import numpy as np
import pytest
import tomli_w
from refusals import refused

from inference_math import evidence
from inference_math.unit.coefficients import (
    COEFFICIENTS,
    DATASHEET,
    ENGINES,
    SHARES,
    Anchor,
    Calibration,
    Coefficients,
    Prediction,
)
from inference_math.unit.mixing import away

VLLM = Calibration.zero_shot("vllm")


def values(draws):
    return np.array([[one[name] for name in COEFFICIENTS] for one, _ in draws])


@pytest.mark.parametrize("engine", ENGINES)
def test_zero_shot_coefficients_are_shares_and_medians_of_their_draws(engine):
    found = Calibration.zero_shot(engine)
    c = found.coefficients
    assert 0.5 < c.memory == c.kv <= 1
    assert 0.3 < c.fp8 < c.bf16 <= 1
    assert 0 < c.layer < 1e-3
    assert 1e-8 < c.per_sequence_overhead < 1e-5
    assert all(found.sd(name) > 0 for name in COEFFICIENTS)
    assert 0.02 < found.spread < 0.2
    drawn = values(found.draws(1024))
    centre = np.array([getattr(c, name) for name in COEFFICIENTS])
    assert (drawn < centre).mean(axis=0) == pytest.approx(0.5, abs=0.02)
    assert len(np.unique(drawn[:, COEFFICIENTS.index("per_sequence_overhead")])) > 500  # none is cut off


def test_draws_scatter_as_the_covariance_says():
    draws = VLLM.draws(2000)
    logs = np.log(values(draws))
    for i, name in enumerate(COEFFICIENTS):
        centre, sd = np.log(getattr(VLLM.coefficients, name)), np.sqrt(VLLM.covariance[i, i])
        assert np.quantile(logs[:, i], 0.1) == pytest.approx(centre - 1.2816 * sd, abs=0.05 * sd), name
        assert VLLM.sd(name) == pytest.approx(sd * getattr(VLLM.coefficients, name))
    assert logs[:, -1].std() == pytest.approx(np.sqrt(VLLM.covariance[-1, -1]), rel=0.05)
    errors = np.log([factors[:2] for _, factors in draws])
    assert errors.std(axis=0) == pytest.approx([VLLM.spread] * 2, rel=0.03)
    assert abs(np.corrcoef(errors.T)[0, 1]) < 0.05  # the fit errs on prompts and on decodes by themselves
    assert VLLM.draws(5) == VLLM.draws(5)


def test_draws_keep_the_jackknife_s_correlations():
    """More FP8 compute goes with longer layers: they were fitted together. BF16 is of steps, and by itself."""
    together = np.corrcoef(np.log(values(VLLM.draws(2000))).T)
    at = COEFFICIENTS.index
    assert abs(together[at("memory"), at("bf16")]) < 0.1 < together[at("attention"), at("bf16")]
    assert together[at("fp8"), at("layer")] > 0.6
    assert abs(together[at("fp8"), at("per_sequence_overhead")]) < 0.1


def test_no_draw_leaves_what_is_possible():
    wide = replace(VLLM, covariance=3 * VLLM.covariance)
    drawn = values(wide.draws(200))
    assert (drawn > 0).all()
    assert (drawn[:, [COEFFICIENTS.index(name) for name in ("memory", "bf16", "fp8", "kv")]] <= 1).all()
    exact = values(DATASHEET.draws(8))
    assert (exact == values(DATASHEET.draws(8))[0]).all()
    assert exact[0].tolist() == [1] * len(SHARES) + [0] * 4


@pytest.mark.parametrize("name", ["bf16", "per_sequence_overhead"])
def test_ends_lie_as_many_deviations_away_on_both_sides(name):
    value = getattr(VLLM.coefficients, name)
    wide = 1.5 * VLLM.sd(name) / value
    assert VLLM.ends(name, 1.5) == pytest.approx((away(name, value, -wide), away(name, value, wide)))


WIDTH = evidence.load("widths").frame.set_index("name")["width"]["engine"]


def test_what_was_never_calibrated_widens_the_spread():
    inside = {"engine": "vllm", "gpu": "h100-sxm", "kind": "dense", "tp": 2, "n_in": 2048, "concurrency": 8}
    assert VLLM.widest(**inside) == VLLM.spread
    assert VLLM.spread_for(**inside) == VLLM.spread
    changes = {"gpu": "b200", "kind": "MLA", "tp": 16, "n_in": 100_000, "concurrency": 1000, "engine": "sglang"}
    spreads = {name: VLLM.widest(**{**inside, name: value}) for name, value in changes.items()}
    assert min(spreads.values()) > 1.3 * VLLM.spread
    assert max(spreads, key=spreads.get) == "kind"
    known = {"model": "qwen3-8b", "weights": "bf16"}  # silybench's points held
    assert VLLM.widest(**inside, **known) == VLLM.spread
    assert VLLM.widest(**inside, **known | {"weights": "int4"}) == spreads["engine"]
    assert VLLM.widest(**inside | {"engine": "sglang"}, **known) == spreads["engine"]  # once
    assert VLLM.foreign(**known | {"engine": "vllm", "gpu": "h200-sxm"})
    assert spreads["engine"] ** 2 - VLLM.spread**2 == pytest.approx(WIDTH**2)
    assert VLLM.widest(**{**inside, "gpu": "b200", "kind": "MLA"}) > max(spreads["gpu"], spreads["kind"])
    # Each point by itself, as if it had been asked alone.
    points = VLLM.spread_for(**{**inside, "concurrency": np.array([1, 8, 1000])})
    assert points == pytest.approx([VLLM.spread, VLLM.spread, spreads["concurrency"]])


def test_a_calibration_comes_back_from_its_file_with_or_without_a_byte_order_mark(tmp_path):
    path, given = tmp_path / "mine.toml", replace(VLLM, anchors=(Anchor(2048, 170, 1e-4), Anchor(128, 128, -2e-5)))
    given.save(path)
    for mark in (b"", b"\xef\xbb\xbf"):
        path.write_bytes(mark + path.read_bytes())
        found = Calibration.load(path)
        assert (found.coefficients, found.anchors) == (given.coefficients, given.anchors)
        assert (found.mode, found.spread, dict(found.scope)) == (given.mode, given.spread, dict(given.scope))
        np.testing.assert_array_equal(found.covariance, given.covariance)
    DATASHEET.save(path)
    assert Calibration.load(path).coefficients == Coefficients()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("mode = = ", "must be a calibration"),
        ("anchors = " + "[" * 5000 + "]" * 5000, "nested too deeply"),
        ("x" * 2_000_000, "must be a calibration: it is no file of at most"),
        ({"mode": None}, "'mode' is missing"),
        ({"mode": "guess"}, "mode must be one of"),
        ({"spread": 3}, "spread must be a number from 0 to 2"),
        ({"coefficients": [1]}, "coefficients must be a table"),
        ({"coefficients": {"memory": 0.5}}, "'bf16' is missing"),
        ({"coefficients": dict.fromkeys(COEFFICIENTS, 1e-9)}, "memory must be a number from 0.001 to 1"),
        ({"coefficients": dict.fromkeys(COEFFICIENTS, 0.5) | {"layer": 60}}, "layer must be a number from 0 to 10"),
        ({"log_covariance": {name: [0.0] for name in COEFFICIENTS}}, "log_covariance must have 14 numbers"),
        ({"log_covariance": {name: [11.0] * 14 for name in COEFFICIENTS}}, "log_covariance must be a number from -10"),
        ({"scope": {"tp": [2, 1]}}, "scope.tp must be the two ends of a range"),
        ({"anchors": [{"n_in": 1}]}, "an anchor must have n_in, n_out, seconds"),
        ({"anchors": [{"n_in": 1, "n_out": 1, "seconds": 2}]}, "seconds of an anchor must be a number from -0.1 to 1"),
    ],
)
def test_a_broken_file_is_refused(tmp_path, change, words):
    path = tmp_path / "mine.toml"
    VLLM.save(path)
    if isinstance(change, dict):
        content = tomllib.loads(path.read_text("utf-8")) | change
        change = tomli_w.dumps({name: value for name, value in content.items() if value is not None})
    path.write_text(change)
    with pytest.raises(ValueError, match=words):
        Calibration.load(path)


def test_what_is_no_file_is_not_read(tmp_path):
    with pytest.raises(ValueError, match="must be a calibration: it is no file of at most"):
        Calibration.load(tmp_path)
    with pytest.raises(FileNotFoundError):
        Calibration.load(tmp_path / "none.toml")


def test_a_save_that_fails_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "mine.toml"
    VLLM.save(path)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(OSError, match="No space left"):
        DATASHEET.save(path)
    assert Calibration.load(path).coefficients == VLLM.coefficients
    assert [file.name for file in tmp_path.iterdir()] == ["mine.toml"]


def test_kernels_alone_add_nothing_for_a_request():
    found = replace(VLLM, anchors=(Anchor(2048, 170, 1e-4),)).kernels
    assert found.coefficients == replace(VLLM.coefficients, per_sequence_overhead=0)
    assert found.anchors == ()
    assert {one["per_sequence_overhead"] for one, _ in found.draws(16)} == {0}


def test_the_nearest_anchor_counts():
    given = replace(VLLM, anchors=(Anchor(2048, 170, 1e-4), Anchor(128, 128, -2e-5)))
    assert given.anchor(2000, 200) == 1e-4
    assert given.anchor(100, 100) == -2e-5
    assert VLLM.anchor(100, 100) == 0


def test_the_scope_names_what_is_outside():
    assert VLLM.outside(gpu="h100-sxm", tp=2, n_in=2048) == ()
    assert VLLM.outside(gpu="b200") == ("GPU b200 is not among the calibrated: h100-sxm",)
    assert VLLM.outside(n_in=[100, 20_000]) == (
        "prompt length 100 to 20,000 is outside the calibrated range, 1 to 16,384",
    )
    assert VLLM.outside(colour="red") == ()


def test_impossible_coefficients():
    refused(Coefficients, {}, {"memory": 0}, {"memory": 1.1}, {"memory": "1"}, {"bf16": 0}, {"layer": -1e-6})


def test_impossible_calibrations():
    with pytest.raises(ValueError, match="covariance must be 14 x 14"):
        replace(VLLM, covariance=np.eye(5))
    skewed = np.eye(14)
    skewed[0, 1] = 0.5
    negative = np.eye(14)
    negative[0, 1] = negative[1, 0] = 2.0
    for matrix in (-np.eye(14), skewed, negative):
        with pytest.raises(ValueError, match="symmetric and positive semidefinite"):
            replace(VLLM, covariance=matrix)
    with pytest.raises(ValueError, match="covariance must be of logarithms"):
        replace(VLLM, covariance=1e300 * np.eye(14))
    ranges = ({"tp": [1]}, {"n_in": [5, 1]}, {"tp": 5}, {"tp": [1, np.inf]}, {"tp": ["1", "2"]})
    for scope in (*ranges, {"gpu": "h100-sxm"}, {"gpu": []}, {"gpus": ["b200"]}, {"gpu": [1, 2]}):
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


def test_a_prediction_prints_itself_and_says_of_what_its_interval_holds_its_share():
    found = Prediction(0.0123456, 0.01, 0.015, 0.9, "profile", ())
    assert str(found) == "0.0123 s (0.01 to 0.015, 90%, profile)"
    assert str(replace(found, value=np.array([1.0, 2.0]))).startswith("[1, 2] s")
    assert str(replace(found, mode="zero-shot")) == "0.0123 s (0.01 to 0.015, 90% for an engine like ours, zero-shot)"
    assert replace(found, mode="served", foreign=True).word == "90% for another engine"
    assert replace(found, foreign=True).word == "90%"  # a profile's is that which ran
    outside = replace(found, outside=("tp 3 is outside",))
    assert str(outside) == "0.0123 s (0.01 to 0.015, range, profile); tp 3 is outside"
    assert replace(found, level=0.5).word == "50%"
