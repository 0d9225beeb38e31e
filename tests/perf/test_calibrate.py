from __future__ import annotations

from math import exp, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_math.perf import calibrate

LEVELS = {
    "engine": {"vllm": {"bf16": 0.8, "layer": 1e-5}},
    "generation": {"Hopper": {"bf16": -0.1, "layer": 0.2}},
    "kind": {"dense": {"bf16": 0.05, "layer": 0.0}},
    "weights": {"fp8": {"bf16": 0.0, "layer": 0.3}},
    "together": [["Hopper", "dense", "fp8"]],
    "seen": {"bf16": 0.1, "layer": 0.2}, "unseen": {"bf16": 0.3, "layer": 0.4},
}  # fmt: skip
KNOWN = {"generation": "Hopper", "kind": "dense", "weights": "fp8"}


def test_levels_multiply_and_the_unseen_moves_nothing_but_is_wider():
    known = calibrate.composed(LEVELS, "vllm", KNOWN)
    assert known["values"] == pytest.approx({"bf16": 0.8 * exp(-0.05), "layer": 1e-5 * exp(0.5)})
    assert known["widths"] == pytest.approx({"bf16": 0.1, "layer": 0.2})
    other = calibrate.composed(LEVELS, "vllm", KNOWN | {"generation": "CDNA 3"})
    assert other["values"] == pytest.approx({"bf16": 0.8 * exp(0.05), "layer": 1e-5 * exp(0.3)})
    # The generation, and the combination with it.
    assert other["widths"] == pytest.approx({"bf16": (0.01 + 2 * 0.09) ** 0.5, "layer": (0.04 + 2 * 0.16) ** 0.5})


def test_no_share_reaches_the_datasheet():
    wild = LEVELS | {"kind": {"dense": {"bf16": 3.0, "layer": 3.0}}}
    values = calibrate.composed(wild, "vllm", KNOWN)["values"]
    assert values["bf16"] == calibrate.MOST < 1
    assert values["layer"] > 1e-5


@given(value=st.floats(0.05, 0.999), moved=st.floats(-5, 5))
def test_a_share_stays_a_share_and_moves_as_its_logarithm_at_first(value, moved):
    away = calibrate.away("bf16", value, moved)
    assert 0 < away <= 1
    assert (away >= value) == (moved >= 0) or away == pytest.approx(value)
    assert calibrate.away("bf16", value, 1e-6) == pytest.approx(value * (1 + 1e-6), rel=1e-9)
    assert calibrate.away("layer", value, moved) == pytest.approx(value * exp(moved))


def test_draws_follow_the_root_and_carry_three_errors():
    names, values = ["bf16", "layer"], {"bf16": 0.5, "layer": 2e-5, "anchor": 0.001}
    root = calibrate.own_root(names, {"bf16": 0.0, "layer": 0.1})
    (found, (step, prompt, front)), *_ = calibrate.drawn(names, values, root, [[1.0, 2.0, 1.0, -1.0, 0.5]], 0.2)
    assert found == pytest.approx({"bf16": 0.5, "layer": 2e-5 * exp(0.2), "anchor": 0.001})
    assert (step, prompt, front) == pytest.approx((exp(0.2), exp(-0.2), 0.5))


def test_a_front_is_the_product_of_the_levels_that_were_measured():
    levels = calibrate.front_levels("vllm", "dense", "a", "b")
    known = {"base": {"all": log(0.05)}, "kind": {"dense": log(2)}, "engine, model, gpu": {"vllm/a/b": log(3)}}
    moves = {factor: known.get(factor, {}) for factor in calibrate.FRONTS}
    assert calibrate.fronted(moves, levels) == pytest.approx(0.3)
    assert calibrate.fronted(moves, levels | {"kind": "never seen"}) == pytest.approx(0.15)


def test_the_anchor_with_the_nearest_lengths_counts():
    anchors = [{"n_in": 100, "n_out": 10, "seconds": 0.1}, {"n_in": 1000, "n_out": 10, "seconds": 0.2}]
    assert calibrate.anchored(anchors, 150, 10) == 0.1
    assert calibrate.anchored(anchors, 900, 20) == 0.2
    assert calibrate.anchored([], 900, 20) == 0


@pytest.mark.parametrize(
    ("kernels", "changed", "operators"),
    [
        (True, {}, True),
        (True, {"weights": "nvfp4"}, False),
        (True, {"kind": "MLA"}, False),
        (True, {"generation": "Blackwell"}, False),
        (False, {}, False),
    ],
)
def test_operators_stand_nearest_to_what_they_were_measured_on(kernels, changed, operators):
    assert calibrate.by_operators(kernels, KNOWN | changed) is operators
