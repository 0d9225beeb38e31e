from math import exp, log

import pytest
from hypothesis import given, strategies as st
from msgspec.structs import replace

from inference_math.unit import mixing as calibrate
from inference_math.unit.coefficients import SHARES
from inference_math.unit.types import AttentionKernel, Kernel, Kernels, MixedEffects, Operators

KERNEL = Kernel(memory=0.8, compute=0.6, launch=4e-6, rate="bf16")
LOOKS = AttentionKernel(memory=0.9, compute=0.6, launch=1e-5, rate="bf16", decode=0.7, slower=1.0, choosing=0.0)
KERNELS = Kernels(
    like={"h100": "h100", "h20": "h100"},
    products={"vllm": {"h100": {"bf16": KERNEL, "fp8": replace(KERNEL, compute=0.5, rate="fp8")}}},
    attention={"vllm": {"h100": {"head 128, bf16": LOOKS}}},
    experts={"vllm": {"h100": {"fp8 blocks": Kernel(memory=0.4, compute=0.2, launch=3e-5, rate="fp8")}}},
    links={"vllm": {"h100": {"4": replace(KERNEL, memory=0.7, launch=9e-6)}}},
)
CENTRE = dict.fromkeys(SHARES, 0.3) | {"layer": 1e-5, "collective_latency": 1e-6}
NONE = dict.fromkeys(CENTRE, 0.0)
FAR = dict.fromkeys(CENTRE, 0.3)
LEVELS = MixedEffects(
    intercept={"vllm": CENTRE, "vllm-2025": CENTRE},
    effects={
        "engine": {"vllm": NONE | {"bf16": -0.1, "layer": 0.2}},
        "model": {"vllm/a": NONE | {"layer": 0.5}},
        "generation": {"Hopper": NONE | {"bf16": -0.1}},
        "kind": {"dense": NONE | {"bf16": 0.05}},
        "weights": {"fp8": NONE},
    },
    interactions=[["Hopper", "dense", "fp8"]],
    sd_seen=dict.fromkeys(CENTRE, 0.1),
    sd_unseen=dict.fromkeys(("engine", "generation", "kind"), FAR)
    | {"model": NONE | {"layer": 0.4}, "weights": dict.fromkeys(CENTRE, 0.2)},
    spread={},
)
FINE = {
    "fp8": {"attention": "fp8", "ffn": "fp8", "experts": "fp8"},
    "bf16": dict.fromkeys(("attention", "ffn", "experts"), "bf16"),
    "mxfp4": {"attention": "bf16", "ffn": "mxfp4", "experts": "mxfp4"},
}
DENSE = Operators(name="a", kind="dense", heads="head 128", products=4.0, mixed=0.0, blocks="fp8", fine=FINE)
SPARSE = replace(DENSE, name="b", kind="mixture of experts", products=3.0, mixed=0.5, blocks="fp8 blocks")
GENERATION = {"generation": "Hopper", "kind": "dense", "weights": "fp8"}


def at(of=DENSE, engine="vllm", gpu="h100", generation="Hopper", weights="fp8", kv="bf16", together=1):
    given = {"gpu": gpu, "generation": generation, "weights": weights, "kv": kv}
    return calibrate.coefficient_key_of(engine, "vllm", given, together, of)


def test_a_unit_stands_at_the_levels_of_its_parts_and_at_its_own_kernels():
    here = at(SPARSE, together=6)
    assert here.levels == {
        "engine": "vllm", "model": "vllm/b", "generation": "Hopper", "kind": "mixture of experts", "weights": "fp8",
    }  # fmt: skip
    assert (here.common, here.routed, here.links) == ("fp8 blocks", "fp8 blocks", "4")
    assert (at().common, at().routed, at().links) == ("fp8", "", "")
    assert (at(SPARSE, weights="mxfp4").common, at(SPARSE, weights="mxfp4").routed) == ("bf16", "mxfp4")
    assert [at(together=n).links for n in (1, 2, 3, 4, 8, 16)] == ["", "2", "2", "4", "8", "8"]


def test_kernels_take_the_place_of_a_centre_where_they_were_measured():
    dense = calibrate.kernel_values(KERNELS, CENTRE, at())
    expected = {"memory": 0.8, "bf16": 0.6, "fp8": 0.5, "kv": 0.9, "attention": 0.6, "decode_attention": 0.7}
    expected |= {"launch": 4 * 4e-6 + 1e-5}
    assert dense == pytest.approx(CENTRE | expected)
    sparse = calibrate.kernel_values(KERNELS, CENTRE, at(SPARSE, together=4))
    # Of experts what they reach of the products' shares, and their launches in the layers that have them.
    reached = {"experts": calibrate.MOST, "grouped": 0.2 / 0.3, "interconnect_efficiency": 0.7}
    assert sparse["experts"] == pytest.approx(min(calibrate.MOST, 0.4 / 0.3))
    assert {name: sparse[name] for name in reached} == pytest.approx(reached)
    assert sparse["collective_latency"] == 9e-6
    assert sparse["launch"] == pytest.approx(3 * 4e-6 + 1e-5 + 0.5 * 3e-5)
    assert calibrate.kernel_values(KERNELS, CENTRE, at(gpu="h20")) == dense
    assert calibrate.kernel_values(KERNELS, CENTRE, at(engine="vllm-2025")) == dense


def test_levels_multiply_what_an_engine_adds_comes_on_top_and_the_unseen_is_wider():
    known = calibrate.composed(LEVELS, KERNELS, at())
    launch, added = 2.6e-5, 1e-5 * exp(0.7)
    assert known["values"]["bf16"] == pytest.approx(0.6 * exp(-0.15))
    assert known["values"]["layer"] == pytest.approx(launch + added)
    assert known["widths"]["bf16"] == pytest.approx(0.1)
    assert known["widths"]["layer"] == pytest.approx(0.1 * added / (launch + added))  # launches were measured
    other = calibrate.composed(LEVELS, KERNELS, at(generation="CDNA 3"))
    assert other["values"]["bf16"] == pytest.approx(0.6 * exp(-0.05))
    # The generation, and the combination with it.
    assert other["widths"]["bf16"] == pytest.approx((0.01 + 0.09 + 0.04) ** 0.5)
    stranger = calibrate.composed(LEVELS, KERNELS, at(replace(DENSE, name="c")))
    added = 1e-5 * exp(0.2)
    assert stranger["values"]["layer"] == pytest.approx(launch + added)
    assert stranger["widths"]["layer"] == pytest.approx((0.01 + 0.16) ** 0.5 * added / (launch + added))
    assert stranger["values"]["bf16"] == known["values"]["bf16"]
    assert set(known["values"]) == set(CENTRE)


def test_fp8_with_one_scale_for_a_tensor_stands_at_a_level_that_nobody_served():
    here = at(replace(SPARSE, blocks="fp8"))
    assert (here.levels["weights"], here.common, here.routed) == (calibrate.ONE_SCALE, "fp8", "fp8")
    assert at(DENSE).levels["weights"] == "fp8"  # of dense models both were
    known = replace(LEVELS, effects=LEVELS.effects | {"weights": {"fp8": NONE | {"fp8": 0.2}}})
    one, blocks = (calibrate.composed(known, KERNELS, at(replace(SPARSE, blocks=way))) for way in ("fp8", "fp8 blocks"))
    assert blocks["values"]["fp8"] == pytest.approx(one["values"]["fp8"] * exp(0.2) * 0.3 / 0.5)
    assert one["widths"]["fp8"] > blocks["widths"]["fp8"]
    told = replace(LEVELS, interactions=[["Hopper", "dense", "fp8"], ["Hopper", "dense", "nvfp4"]])
    given = at().levels
    assert calibrate.precisions_known(told, given) == ["fp8", "nvfp4"]
    assert calibrate.precisions_known(told, given | {"weights": calibrate.ONE_SCALE}) == ["fp8 in blocks", "nvfp4"]


@pytest.mark.parametrize("served", [False, True])
def test_a_mixture_in_bf16_that_nobody_served_is_no_faster_than_its_own_in_fp8(served):
    slow = {"layer": 1.0, "grouped": -1.0}
    centre = {"vllm": CENTRE | {"expert_imbalance": 1.0}}
    none = NONE | {"expert_imbalance": 0.0}
    moves = {factor: {level: none | move for level, move in each.items()} for factor, each in LEVELS.effects.items()}
    moves["weights"] = {"fp8": none | slow | {"expert_imbalance": 0.5}, "bf16": none | {"expert_imbalance": -0.5}}
    if served:
        moves["model"]["vllm/b"] = none
    wide = {name: dict(each, expert_imbalance=0.1) for name, each in LEVELS.sd_unseen.items()}
    levels = MixedEffects(
        intercept=centre, effects=moves, sd_seen=LEVELS.sd_seen | {"expert_imbalance": 0.1}, sd_unseen=wide, spread={},
        interactions=[["Hopper", SPARSE.kind, "fp8"], ["Hopper", SPARSE.kind, "bf16"]],
    )  # fmt: skip
    plain, fp8 = (calibrate.composed(levels, KERNELS, at(SPARSE, weights=way))["values"] for way in ("bf16", "fp8"))
    rates = plain["bf16"] * plain["grouped"], 2 * fp8["fp8"] * fp8["grouped"]
    if served:
        assert plain["layer"] < fp8["layer"]
        assert plain["expert_imbalance"] < fp8["expert_imbalance"]
        assert rates[0] > rates[1]
    else:
        assert plain["layer"] == fp8["layer"]
        assert plain["expert_imbalance"] == fp8["expert_imbalance"]
        assert rates[0] == pytest.approx(rates[1])


def test_no_share_reaches_the_datasheet():
    wild = replace(LEVELS, effects=LEVELS.effects | {"kind": {"dense": NONE | {"bf16": 3.0, "layer": 3.0}}})
    values = calibrate.composed(wild, KERNELS, at())["values"]
    assert values["bf16"] == calibrate.MOST < 1
    assert values["layer"] > 1e-4


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


def test_operators_stand_nearest_to_what_they_were_measured_on():
    assert calibrate.by_operators(True, GENERATION)
    assert not calibrate.by_operators(False, GENERATION)
    for changed in ({"weights": "nvfp4"}, {"kind": "MLA"}, {"generation": "Blackwell"}):
        assert not calibrate.by_operators(True, GENERATION | changed)


@pytest.mark.parametrize(
    ("kv", "usual", "told"),
    [("bf16", "bf16", ""), ("fp8", "bf16", "fp8"), ("fp8", "fp8", "fp8"), ("bf16", "fp8", "bf16")],
)
def test_an_engine_is_told_fp8_and_what_it_would_not_take_by_itself(kv, usual, told):
    assert calibrate.told_kv(kv, usual) == told
