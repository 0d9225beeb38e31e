"""Which calibration a unit gets by itself."""

from __future__ import annotations

import numpy as np
import pytest

from inference_math import catalogue
from inference_math.evidence import load
from inference_math.unit import Unit
from inference_math.unit.coefficients import COEFFICIENTS, SHARES
from inference_math.unit.mixing import FACTORS
from inference_math.unit.nearest import SERVED_SCOPE, engine_generation, levels, select_calibration
from inference_math.workload import Workload


def test_each_unit_says_where_its_calibration_comes_from():
    assert Unit.of("llama-3-8b", "h100-sxm").calibration.mode == "zero-shot"
    assert Unit.of("llama-3-8b", "h100-sxm", version="0.11.0").calibration.mode == "served"
    for model, gpu, tp in (("llama-3-8b", "b200", 1), ("gpt-oss-120b", "h100-sxm", 1), ("deepseek-v3", "h200-sxm", 8)):
        found = Unit.of(model, gpu, tp).predict("tpot", Workload(1000, 200), 8)
        assert found.mode == "served"
        assert found.low < found.value < found.high
        assert found.word == ("range" if found.outside else "90% within our sources")


@pytest.mark.parametrize(
    ("engine", "version", "name"),
    [
        ("vllm", "", "vllm"), ("vllm", "0.12.0", "vllm-2025"), ("vllm", "v0.13.1", "vllm"), ("vllm", "1.2", "vllm"),
        ("vllm", "nightly-5b8c30d", "vllm"), ("trtllm", "0.9", "trtllm"), ("sglang", "0.5.9", "sglang"),
    ],
)  # fmt: skip
def test_generations_of_engines(engine, version, name):
    assert engine_generation(engine, version) == name


def test_a_version_of_unknown_age_is_today_s_is_said_and_widens():
    work = Workload(1000, 200)
    known, other = (Unit.of("gpt-oss-120b", "b200", version=version) for version in ("0.19.0", "nightly-5b8c30d"))
    assert known.coefficients == other.coefficients
    assert not any("engine" in one for one in known.outside(work, 8))
    assert any("engine vllm nightly-5b8c30d is not among the calibrated" in one for one in other.outside(work, 8))
    sure, unsure = known.predict("tpot", work, 8), other.predict("tpot", work, 8)
    assert unsure.high / unsure.low > sure.high / sure.low


def test_an_unknown_engine_is_refused():
    with pytest.raises(ValueError, match="engine must be one of"):
        engine_generation("tgi")


def test_the_table_has_every_level_and_coefficient():
    found = levels()
    moves = found["moves"]
    assert set(moves["engine"]) == set(found["centre"]) == {"vllm", "vllm-2025", "sglang", "trtllm"}
    assert set(moves["generation"]) == {"Hopper", "Blackwell"}
    assert set(moves["kind"]) == set(found["spread"]) == {"dense", "mixture of experts", "MLA", "hybrid"}
    assert set(moves["weights"]) == {"bf16", "fp8", "int4", "mxfp4", "nvfp4"}
    assert "vllm/kimi-k2" in moves["model"]
    assert set(found["unseen"]) == set(FACTORS) == set(moves)
    for values in found["centre"].values():
        assert list(values) == list(COEFFICIENTS)
        assert all(0 < values[name] < 1 for name in SHARES)


def test_constants_move_with_the_model_and_shares_do_not():
    """What an engine adds is a model's, whatever GPU it runs on; what kernels reach is no model's."""
    found = levels()
    added = {"layer", "per_sequence_overhead"}
    for name in COEFFICIENTS:
        assert (found["unseen"]["model"][name] > 0) == (name in added)
        assert (found["unseen"]["generation"][name] == 0) == (name in added)
        assert all((move[name] == 0) or name in added for move in found["moves"]["model"].values())


def test_the_scope_names_the_models_that_were_fitted():
    rows = load("predicted_fronts").frame  # of calibration rows that can be used
    assert tuple(sorted(set(rows.model))) == SERVED_SCOPE["model"]
    gpus = set(rows.gpu)
    assert gpus == set(SERVED_SCOPE["gpu"])


def test_a_model_that_was_never_served_is_wider_and_is_said():
    known, other = Unit.of("minimax-m2", "h200-sxm", 4), Unit.of("qwen3-235b-a22b", "h200-sxm", 4, "fp8")
    work = Workload(1000, 200)
    assert not any("model" in one for one in known.outside(work, 8))
    assert any("model qwen3-235b-a22b" in one for one in other.outside(work, 8))
    # What is never served adds its variance to that of the kind.
    errors = [np.std(np.log([factors[0] for _, factors in one.draws(work, 256)])) for one in (other, known)]
    assert errors[0] ** 2 - errors[1] ** 2 > 0.1**2


def test_what_was_never_served_is_wider():
    deep, weights = catalogue.model("deepseek-v3"), "fp8"
    known, other = (select_calibration(deep, catalogue.gpu(gpu), weights, "sglang") for gpu in ("h200-sxm", "mi355x"))
    wider = np.diag(other.covariance) > np.diag(known.covariance)
    assert [name for name, wide in zip(COEFFICIENTS, wider, strict=True) if not wide] == ["per_sequence_overhead"]
    assert other.spread == known.spread
    assert other.outside(gpu="mi355x")
    assert not known.outside(gpu="h200-sxm")


def test_a_combination_of_which_only_the_parts_were_served_is_said_and_wider():
    dense, oss = catalogue.model("llama-3-70b"), catalogue.model("gpt-oss-120b")
    b200, h100 = catalogue.gpu("b200"), catalogue.gpu("h100-sxm")
    apart, together = select_calibration(oss, b200, "mxfp4", "vllm"), select_calibration(oss, h100, "mxfp4", "vllm")
    assert (np.diag(apart.covariance)[:9] > np.diag(together.covariance)[:9]).all()
    assert Unit.of(oss, b200).outside(Workload(1000, 200), 8) == (
        "weights mxfp4 is not among the calibrated: fp8, nvfp4",
    )
    assert not Unit.of(oss, h100).outside(Workload(1000, 200), 8)
    assert select_calibration(dense, b200, "nvfp4", "trtllm").mode == "served"


def test_a_calibration_of_one_s_own_stays_and_one_that_ships_is_chosen_anew():
    unit = Unit.of("llama-3-8b", "h100-sxm")
    assert unit.resized(weights="nvfp4").calibration.mode == "served"
    own = unit.at_datasheet
    assert own.resized(tp=2).calibration.mode == "datasheet"
    assert select_calibration(unit.model, unit.gpu, "bf16", "vllm").coefficients == unit.coefficients
