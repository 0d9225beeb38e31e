"""Which calibration a unit gets by itself."""

from dataclasses import replace

import numpy as np
import pytest
from msgspec import structs

from inference_math import Unit, Workload, catalogue
from inference_math.catalogue.engines import engine
from inference_math.evidence import load
from inference_math.unit import nearest
from inference_math.unit.coefficients import COEFFICIENTS
from inference_math.unit.nearest import SERVED_SCOPE, TOGETHER_SCOPE, engine_generation, plans_ahead, select_calibration


def test_each_unit_says_where_its_calibration_comes_from():
    assert Unit.of("llama-3-8b", "h100-sxm").calibration.mode == "zero-shot"
    assert Unit.of("llama-3-8b", "h100-sxm", version="0.11.0").calibration.mode == "served"
    for model, gpu, tp in (("llama-3-8b", "b200", 1), ("gpt-oss-120b", "h100-sxm", 1), ("deepseek-v3", "h200-sxm", 8)):
        found = Unit.of(model, gpu, tp).predict("tpot", Workload(1000, 200), 8)
        assert found.mode == "served"
        assert found.low < found.value < found.high
        assert found.foreign == (model != "gpt-oss-120b")
        assert not found.outside
        assert found.word == ("90% for another engine" if found.foreign else "90% for an engine like ours")


@pytest.mark.parametrize(
    ("engine", "version", "name"),
    [
        ("vllm", "", "vllm"), ("vllm", "0.12.0", "vllm-2025"), ("vllm", "v0.13.1", "vllm"), ("vllm", "1.2", "vllm"),
        ("vllm", "nightly-5b8c30d", "vllm"), ("trtllm", "0.9", "trtllm"), ("sglang", "0.5.9", "sglang"),
    ],
)  # fmt: skip
def test_generations_of_engines(engine, version, name):
    assert engine_generation(engine, version) == name


def test_an_engine_that_takes_another_s_coefficients_has_habits_of_its_own(monkeypatch):
    slow = structs.replace(engine("vllm").scheduler, ahead=False)
    mine = structs.replace(engine("vllm"), like="vllm", older={}, scheduler=slow)
    monkeypatch.setattr(nearest, "engine_record", lambda name: mine if name == "mine" else engine(name))
    assert [engine_generation(name, "0.12") for name in ("vllm", "mine")] == ["vllm-2025", "vllm-2025"]
    assert [plans_ahead("vllm", version) for version in ("0.12", "0.13", "")] == [False, True, True]
    assert [plans_ahead("mine", version) for version in ("0.12", "0.13")] == [False, False]


def test_operators_alone_get_a_host_and_only_where_no_step_is_planned_ahead():
    """A step grows by the host's seconds, and by those for a request in place of `per_sequence_overhead`."""
    own, asked = nearest.host(), {"model": "llama-3-70b", "gpu": "h100-sxm", "tp": 2, "weights": "fp8"}
    plain, without = (Unit.of(**asked, async_scheduling=told) for told in (None, False))
    grown = [without.step_time(n, 0) - plain.step_time(n, 0) for n in (1, 65)]
    lean = 80 * plain.coefficients.per_sequence_overhead
    assert grown == pytest.approx([own.step + n * (own.request - lean) for n in (1, 65)], rel=1e-9)
    assert without.resized(tp=4).coefficients.layer == without.coefficients.layer > plain.coefficients.layer
    for same in ({"async_scheduling": True}, {"async_scheduling": None}):
        assert Unit.of(**asked, **same).coefficients == plain.coefficients
    for more in ({"version": "0.11"}, {"gpu": "b200"}):  # from served points: with whatever their host did
        told = [Unit.of(**(asked | more), async_scheduling=flag) for flag in (None, True, False)]
        assert {one.calibration.mode for one in told} == {"served"}
        assert told[0].coefficients == told[1].coefficients == told[2].coefficients


def test_a_host_is_as_unsure_as_its_table_says_and_moves_nothing_else():
    plain, own = Unit.of("llama-3-8b", "h100-sxm"), nearest.host()
    found, seconds = plain.calibration.hosted(own, 32), 32 * 1e6
    rows = load("host").frame.set_index("name")
    assert found.sd("per_sequence_overhead") * seconds == pytest.approx(1e6 * rows["sd"]["request"], rel=1e-6)
    both = np.hypot(plain.calibration.sd("layer") * seconds, 1e6 * rows["sd"]["step"])
    assert found.sd("layer") * seconds == pytest.approx(both, rel=1e-6)
    moved = [COEFFICIENTS.index(name) for name in ("layer", "per_sequence_overhead")]
    widths = rows["sd"] / rows["seconds"]
    both_move = rows.loc["step", "request"] * widths.prod() * rows["seconds"]["step"] / (32 * found.coefficients.layer)
    assert found.covariance[*moved] == found.covariance[*moved[::-1]] == pytest.approx(both_move, rel=1e-6)
    others = [place for place in range(len(COEFFICIENTS)) if place not in moved]
    square = np.ix_(others, others)
    assert (found.covariance[square] == plain.calibration.covariance[square]).all()


def test_points_that_were_served_otherwise_are_another_engine_s():
    asked = {"model": "gpt-oss-120b", "gpu": "h100-sxm", "tp": 2}
    work = Workload(1000, 200)
    known, same, unlike = (Unit.of(**asked, async_scheduling=told) for told in (None, True, False))
    assert known.left(work) == same.left(work) < unlike.left(work)
    assert not known.outside(work, 8)
    assert "vllm --no-async-scheduling" in unlike.outside(work, 8)[0]
    operators = Unit.of("llama-3-70b", "h100-sxm", 2, "fp8", async_scheduling=False)  # which have the host on top
    assert not operators.outside(work, 8)


def test_the_scope_names_the_models_and_gpus_that_were_fitted():
    rows = load("served_left_out").frame  # each group that was
    assert tuple(sorted(set(rows.model))) == SERVED_SCOPE["model"]
    assert set(rows.gpu) == set(TOGETHER_SCOPE["gpu"])
    mixture, latent = (Unit.of(name, "mi300x", 8, "fp8", engine="sglang") for name in ("minimax-m2", "deepseek-v3"))
    assert "mi300x" not in mixture.calibration.scope["gpu"]  # of which none was served there
    assert "mi300x" in latent.calibration.scope["gpu"]


WORK = Workload(1000, 200)
OSS, DEEP = Unit.of("gpt-oss-120b", "b200"), Unit.of("deepseek-v3", "h200-sxm", 8, "fp8", engine="sglang")


@pytest.mark.parametrize(
    ("known", "other", "said"),
    [
        (OSS.resized(version="0.19.0"), OSS.resized(version="nightly-5b8c30d"), "engine vllm nightly-5b8c30d"),
        (Unit.of("minimax-m2", "h200-sxm", 4), Unit.of("qwen3-235b-a22b", "h200-sxm", 4), "model qwen3-235b-a22b"),
        (DEEP, Unit.of("deepseek-v3", "mi325x", 8, "fp8", engine="sglang"), "GPU mi325x"),
        (Unit.of("gpt-oss-120b", "h100-sxm"), OSS, "weights mxfp4"),  # a combination of which the parts were served
    ],
    ids=["version", "model", "gpu", "combination"],
)
def test_what_was_never_served_is_said_and_wider(known, other, said):
    assert f"{said} is not among the calibrated" in " ".join(other.outside(WORK, 8))
    assert said.split()[0] not in " ".join(known.outside(WORK, 8))
    if known.model == other.model:
        widths = [np.diag(unit.calibration.covariance) for unit in (known, other)]
        assert (widths[0] <= widths[1] * (1 + 1e-9)).all()
    sure, unsure = (unit.predict("tpot", WORK, 8) for unit in (known, other))
    assert unsure.high / unsure.low > sure.high / sure.low
    if said.startswith("engine"):  # of unknown age: today's
        assert known.coefficients == other.coefficients
    if said.startswith("model"):  # adds its variance to that of the kind
        errors = [np.std(np.log([factors[0] for _, factors in one.draws(WORK, 256)])) for one in (other, known)]
        assert errors[0] ** 2 - errors[1] ** 2 > 0.1**2


def test_a_calibration_of_one_s_own_stays_and_one_that_ships_is_chosen_anew():
    unit = Unit.of("llama-3-8b", "h100-sxm")
    assert unit.resized(weights="nvfp4").calibration.mode == "served"
    own = unit.at_datasheet
    assert own.resized(tp=2).calibration.mode == "datasheet"
    assert select_calibration(unit.model, unit.gpu, "bf16", "vllm").coefficients == unit.coefficients


@pytest.mark.parametrize("engine", ["vllm", "trtllm", "sglang"])
@pytest.mark.parametrize("gpu", ["h100-sxm", "h200-sxm", "b200", "gb300", "h20", "l40s"])
@pytest.mark.parametrize("name", ["mixtral-8x7b", "qwen3-30b-a3b", "gpt-oss-20b", "llama-4-scout", "llama-3-8b"])
def test_a_model_in_fp8_takes_no_longer_than_in_bf16(name, gpu, engine):
    """Prompts of mixtures took up to 1.7 times as long where BF16 was never served and FP8's kernels are for blocks."""
    tp = 8 if name == "llama-4-scout" else 4
    plain, fp8 = (Unit.of(name, gpu, tp, weights, engine=engine) for weights in ("bf16", "fp8"))
    for users in (1, 16, 256):
        assert fp8.step_time(users, 1500) <= plain.step_time(users, 1500)
    for n_in in (256, 2048, 8192):
        assert fp8.prefill_time(n_in) <= plain.prefill_time(n_in)


def test_fp8_without_blocks_reads_and_computes_as_its_own_kernels_do():
    """Nemotron 3 Nano and Gemma 4 have a scale for a tensor: predicted slower than BF16, and 3 % faster, before."""
    model = catalogue.model("qwen3-30b-a3b")
    served, plain = (Unit.of(replace(model, blocks=way), "h200-sxm", weights="fp8") for way in (True, False))
    assert served.calibration.scope["weights"] != plain.calibration.scope["weights"]
    assert "weights fp8 is not among the calibrated: fp8 in blocks" in " ".join(plain.outside(WORK, 8))
    assert "weights" not in " ".join(served.outside(WORK, 8))
    widths = [np.diag(unit.calibration.covariance) for unit in (served, plain)]
    assert (widths[0] < widths[1]).sum() > 5
    assert plain.prefill_time(4096) < served.prefill_time(4096)
