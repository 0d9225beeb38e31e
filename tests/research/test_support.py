from __future__ import annotations

import pytest
import support

from inference_math import Unit, catalogue
from inference_math.catalogue.precisions import PRECISIONS

TABLE = support.matrix()


def row(model, gpu, engine, weights):
    key = {"model": model, "gpu": gpu, "engine": engine, "weights": weights}
    (found,) = TABLE[(TABLE[list(key)] == list(key.values())).all(axis=1)].to_dict("records")
    return found


def test_every_family_gpu_engine_and_precision_has_a_line():
    assert set(TABLE.gpu) == set(catalogue.GPUS)
    assert set(TABLE.model) == set(support.FAMILIES)
    assert set(TABLE.stands) == set(support.STANDS)
    assert set(PRECISIONS) <= set(TABLE.weights)
    assert not TABLE.duplicated(["model", "gpu", "engine", "weights"]).any()


@pytest.mark.parametrize(
    ("key", "stands"),
    [
        (("dense", "h200-sxm", "trtllm", "fp8"), "calibrated"), (("dense", "b200", "trtllm", "fp8"), "measured"),
        (("dense", "mi300x", "vllm", "bf16"), "scaled"), (("dense", "h100-sxm", "vllm", "fp8"), "measured"),
        (("MLA", "l40s", "sglang", "fp8"), "refused"), (("hybrid", "b300", "sglang", "bf16"), "calibrated"),
    ],
)  # fmt: skip
def test_what_stands_behind_it_is_said(key, stands):
    assert row(*key)["stands"] == stands


def test_errors_are_those_that_are_published_and_only_where_something_was_served():
    assert row("dense", "b200", "trtllm", "fp8")["error"] == pytest.approx(5.9, abs=1.5)
    scaled = TABLE[TABLE.stands.isin(["scaled", "refused"])]
    assert scaled.error.isna().all()
    assert TABLE[TABLE.stands == "calibrated"].error.notna().mean() > 0.7
    assert (TABLE.points.notna() == TABLE.error.notna()).all()
    assert row("dense", "b200", "trtllm", "fp8")["points"] > 1


def test_a_unit_of_one_s_own_gpu_is_scaled():
    assert support.stands_behind(Unit.of("llama-3-8b", "h20")) == "scaled"
