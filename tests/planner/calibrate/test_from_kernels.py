"""What a GPU's own measurement says, tested on files whose truth is known."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from inference_math import Unit, catalogue, evidence
from inference_math.unit.coefficients import Calibration, Coefficients
from inference_math.workload.points import Point, points
from inference_math_bench.measure.record import Record, Row, Setup
from inference_math_bench.measure.timing import Sample
from inference_math_planner.calibrate import from_kernels

LLAMA = catalogue.model("llama-3-8b")
TRUTH = Coefficients(memory=0.9, bf16=0.7, attention=0.7, kv=0.8, layer=5e-5)
START = Calibration.zero_shot("vllm")
SETUP = Setup("llama-3-8b", 16, 2**17, "bf16", "bf16", "h200-sxm", 0, False, {"device": "NVIDIA H200"})
CHOSEN = [
    p for p in points(2**18, 2**13, fp8=False)
    if p.what in ("decode", "prefill", "matrices") or (p.what == "attention" and p.prompts and not p.cached)
]  # fmt: skip


def truth(**changed) -> Unit:
    calibration = replace(START, coefficients=replace(TRUTH, **changed))
    return Unit.of(replace(LLAMA, n_layers=16), "h200-sxm", calibration=calibration)


def seconds(point: Point, of: Unit) -> float:
    if point.what == "attention":
        return float(of.terms.caches[0].pair * point.tokens**2 / 2)
    frame = pd.DataFrame([{name: getattr(point, name) for name in from_kernels.SIZES}])
    return float(from_kernels.predicted(frame, of)[0])


def written(path, of=None, setup=SETUP, noise=0.0, chosen=CHOSEN, rounds=2):
    """A file as `measure` writes it, of a GPU that does exactly what a unit says."""
    record, random = Record(path, setup), np.random.default_rng(0)
    for number in range(1, rounds + 1):
        for point in chosen:
            s = seconds(point, of or truth()) * float(np.exp(random.normal(0, noise)))
            record.add(Row(number, point, Sample(s, 0.99 * s, 1.02 * s, 9)))
    return evidence.read(path)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """The file of a GPU that does what `truth` says."""
    return written(tmp_path_factory.mktemp("kernels") / "mine.csv")


@pytest.fixture(scope="module")
def times(table):
    return from_kernels.times(table)


@pytest.fixture(scope="module")
def fitted(table, times):
    return from_kernels.fit(times, from_kernels.unit(table))


def calibrated(table):
    return from_kernels.fit(from_kernels.times(table), from_kernels.unit(table)).calibration


def test_the_fit_finds_what_made_the_times(fitted):
    found = fitted
    for name in ("bf16", "kv"):
        assert getattr(found.calibration.coefficients, name) == pytest.approx(getattr(TRUTH, name), rel=0.01)
    # A weight read that is a little slower and a layer that is a little longer are nearly the same.
    for name in ("memory", "layer"):
        assert getattr(found.calibration.coefficients, name) == pytest.approx(getattr(TRUTH, name), rel=0.15)
    # Kernels say nothing about what an engine does for each request: as unsure as before.
    assert found.calibration.coefficients.per_sequence_overhead == START.coefficients.per_sequence_overhead
    assert found.calibration.sd("per_sequence_overhead") == START.sd("per_sequence_overhead") > 1e-7
    assert found.mape < 0.005
    # BF16 points say nothing about FP8.
    assert found.kept == ("fp8",)
    assert found.calibration.coefficients.fp8 == START.coefficients.fp8


def test_noise_widens_the_intervals_and_they_hold_the_truth(tmp_path):
    sharp, blurred = (calibrated(written(tmp_path / f"{noise}.csv", noise=noise)) for noise in (0.01, 0.1))
    assert blurred.spread > 3 * sharp.spread
    for name in ("bf16", "kv"):
        assert blurred.sd(name) > sharp.sd(name)
        assert abs(getattr(blurred.coefficients, name) - getattr(TRUTH, name)) < 4 * blurred.sd(name)


def test_the_calibration_predicts_the_whole_model_and_says_where_it_was_found(fitted, tmp_path):
    """Half of the layers were measured; the rest is arithmetic."""
    found = fitted.calibration
    whole = Unit.of(LLAMA, "h200-sxm", calibration=found)
    true = Unit.of(LLAMA, "h200-sxm", calibration=replace(found, coefficients=TRUTH))
    added = 32 * 64 * found.coefficients.per_sequence_overhead  # an engine's, not the kernels'
    assert whole.step_time(64, 2048) - added == pytest.approx(true.step_time(64, 2048), rel=0.01)
    assert found.mode == "measured"
    assert found.scope["gpu"] == ("h200-sxm",)
    assert found.scope["n_in"] == (128, 1008 + 8192)  # the longest is a chunk behind a prefix
    assert any("engine" in text for text in found.outside(engine="vllm"))
    found.save(tmp_path / "mine.toml")
    assert Calibration.load(tmp_path / "mine.toml").mode == "measured"


def test_mixed_steps_and_loads_are_kept_back(fitted, tmp_path):
    """They test the model, so they must not set it."""
    more = [*CHOSEN, Point("mixed", 16, 2048, 1, 512), Point("load-first", prompts=1, tokens=64, cached=448)]
    other = calibrated(written(tmp_path / "b.csv", chosen=more))
    assert other.coefficients == fitted.calibration.coefficients


def test_points_that_beat_the_hardware_are_not_used(table, times):
    quick = times.index[times["what"] == "decode"][3]
    changed = times.assign(seconds=times["seconds"] * np.where(times.index == quick, 0.1, 1))
    found = from_kernels.fit(changed, from_kernels.unit(table))
    assert len(found.unusable) == 1
    assert "faster than the hardware allows" in found.unusable["reason"].iloc[0]
    assert found.unusable["source"].iloc[0].startswith(times.loc[quick, "what"])
    assert found.calibration.coefficients.bf16 == pytest.approx(TRUTH.bf16, rel=0.02)


def test_the_page_s_example_reads_a_measurement(tmp_path, monkeypatch, root):
    page = (root / "book" / "reference" / "api-measure.md").read_text(encoding="utf-8")
    written(tmp_path / "mine.csv")
    monkeypatch.chdir(tmp_path)
    exec(re.search(r"```python\n(.*?)```", page, re.S)[1], {})
    assert Calibration.load(tmp_path / "mine.toml").mode == "measured"


def test_times_over_the_rounds(tmp_path):
    record = Record(tmp_path / "mine.csv", SETUP)
    for number, (s, wide) in enumerate(((1.0, 0.03), (1.4, 0.3), (1.1, 0.04)), start=1):
        record.add(Row(number, Point("decode", 1, 512), Sample(s, s - 0.01, s - 0.01 + wide, 9)))
        if number == 1:
            assert np.isnan(from_kernels.times(record.table)["between"][0])  # one round knows no spread
    (row,) = from_kernels.times(record.table).itertuples()
    assert (row.seconds, row.rounds) == (pytest.approx(1.1), 3)
    assert row.between == pytest.approx(np.std([1.0, 1.4, 1.1], ddof=1) / 1.1)
    assert row.within == pytest.approx(0.04 / 1.1)  # medians both: a round that was disturbed moves neither


def test_rates_of_the_device(tmp_path):
    record = Record(tmp_path / "mine.csv", SETUP)
    record.add(Row(1, Point("copy"), Sample(1e-3, 1e-3, 1e-3, 9), bytes=4e9))
    record.add(Row(1, Point("load", prompts=1, cached=100), Sample(1e-3, 1e-3, 1e-3, 9), bytes=5e7))
    record.add(Row(1, Point("load-first", prompts=1, tokens=9, cached=100), Sample(1, 1, 1, 9), bytes=5e7))
    record.add(Row(1, Point("product-bf16"), Sample(2e-3, 2e-3, 2e-3, 9), flop=1e12))
    record.add(Row(1, Point("decode", 1, 512), Sample(1, 1, 1, 9)))
    found = from_kernels.rates(from_kernels.times(record.table)).set_index("what")["rate"]
    assert found.to_dict() == {"copy": 4e12, "load": 5e10, "product-bf16": 5e14}


def test_the_slope_of_the_reads_does_not_take_the_batch_s_compute(tmp_path):
    """Which bends the step; a plane in B and B·c would make r beat the hardware."""
    slow = truth(bf16=0.3)
    found, points_ = from_kernels.lines(from_kernels.times(written(tmp_path / "mine.csv", of=slow)), slow)
    assert found.set_index("name").loc["r", "share"] == pytest.approx(TRUTH.kv, rel=0.001)
    assert points_[points_["what"] == "decode"]["error"].abs().max() < 1e-3


def test_lines_find_the_terms_of_a_straight_unit(times, tmp_path):
    """No matrix compute beside the weight read, so that the step is the talks' line: t_w + B·ΔH."""
    free = replace(truth(bf16=1.0, attention=1.0), gpu=replace(catalogue.gpu("h200-sxm"), bf16_flops=1e30))
    found, points_ = from_kernels.lines(from_kernels.times(written(tmp_path / "mine.csv", of=free)), free)
    line = found.set_index("name")
    assert points_[points_["what"] == "decode"]["error"].abs().max() < 0.001
    assert line.loc["r", "share"] == pytest.approx(TRUTH.kv, rel=0.01)
    assert line.loc["t_w", "value"] == pytest.approx(free.step_time(1, 0), rel=0.001)
    assert line.loc["growth", "value"] == pytest.approx((free.step_time(64, 0) - free.step_time(1, 0)) / 63, rel=0.01)
    # With the real compute rate T is the products' and what activations cost, p the attention's.
    real, _ = from_kernels.lines(times, truth())
    terms = truth().terms
    assert real.set_index("name").loc["T", "value"] == pytest.approx(terms.matrices + terms.move, rel=0.05)
    assert real.set_index("name").loc["p", "value"] == pytest.approx(terms.caches[0].pair, rel=1e-6)


def test_floors_are_those_of_the_datasheet_in_the_precision_of_each_part(tmp_path):
    setup = replace(SETUP, weights="fp8")
    of = Unit.of(replace(LLAMA, n_layers=16), "h200-sxm", 1, "fp8", "bf16", calibration=truth().calibration)
    found, _ = from_kernels.lines(from_kernels.times(written(tmp_path / "mine.csv", of=of, setup=setup)), of)
    floor, gpu = found.set_index("name")["floor"], catalogue.gpu("h200-sxm")
    layers = 16 * (2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336)  # weights, a byte each; the LM head is BF16
    assert floor["t_w"] == pytest.approx((layers + 2 * 128_256 * 4096) / gpu.hbm_bw, rel=1e-3)
    assert floor["r"] == pytest.approx(2 * 16 * 8 * 128 * 2 / gpu.hbm_bw)
    assert floor["T"] == pytest.approx(2 * layers / gpu.fp8_flops, rel=1e-3)
    assert floor["p"] == pytest.approx(4 * 16 * 4096 / gpu.bf16_flops)
    assert np.isnan(floor["growth"])
    assert found["share"].dropna().to_numpy() == pytest.approx((found["floor"] / found["value"]).dropna().to_numpy())


@pytest.mark.parametrize("which", ["min", "max"])
def test_lines_are_least_squares_of_relative_errors(times, which):
    """With one step a tenth off, be it short or long, no other r has smaller ones at the same heights."""
    reads = (times["decodes"] * times["context"]).where(times["what"] == "decode")
    rows = times.assign(seconds=times["seconds"] * np.where(reads == reads.agg(which), 1.1, 1.0))
    line, drawn = from_kernels.lines(rows, truth())
    r, steps = line.set_index("name").loc["r", "value"], drawn[drawn["error"].notna() & (drawn["what"] == "decode")]

    def off(by):
        moved = steps["line"] + by * r * steps["decodes"] * steps["context"]
        return float(((moved / steps["seconds"] - 1) ** 2).sum())

    assert off(0) < min(off(0.01), off(-0.01))


def test_the_growth_is_that_of_batches_up_to_64(times):
    before = from_kernels.lines(times, truth())[0].set_index("name")["value"]
    crowded = times.assign(seconds=times["seconds"] + 0.01 * ((times["what"] == "decode") & (times["decodes"] > 64)))
    after = from_kernels.lines(crowded, truth())[0].set_index("name")["value"]
    assert after["growth"] == pytest.approx(before["growth"], rel=1e-6)


def test_products_alone_are_in_the_fit_and_those_with_a_chunk_are_not(times, fitted):
    found = fitted.table
    products = found[found["what"] == "matrices"]
    assert len(products) == ((times["what"] == "matrices") & (times["prompts"] == 0)).sum() > 0
    assert (products["prompts"] == 0).all()
    assert set(found["what"]) == {"decode", "prefill", "matrices"}


def test_a_batch_whose_kernel_is_slow_makes_the_fit_less_sure(tmp_path):
    """A family left out at a time: what hangs on one batch is not known as well as its many points say."""
    times = from_kernels.times(written(tmp_path / "mine.csv", noise=0.01))
    slow = times.assign(seconds=times["seconds"] * np.where(times["decodes"] == 8, 1.3, 1.0))
    sure, unsure = (from_kernels.fit(one, truth()).calibration.sd("kv") for one in (times, slow))
    assert unsure > 1.5 * sure


def test_too_few_points_are_refused(tmp_path):
    few = from_kernels.times(written(tmp_path / "mine.csv", chosen=[Point("decode", b, 512) for b in (1, 8)]))
    with pytest.raises(ValueError, match="at least 12 usable decode steps and prefills, not 2"):
        from_kernels.fit(few, truth())
    with pytest.raises(ValueError, match="decode steps must be of two batches up to 64 at least, and of two contexts"):
        from_kernels.lines(few, truth())
    decodes = [p for p in CHOSEN if p.what == "decode"]
    with pytest.raises(ValueError, match="prompts of 512 tokens and more must be three at least, not 0"):
        from_kernels.lines(from_kernels.times(written(tmp_path / "b.csv", chosen=decodes)), truth())


def test_times_of_another_model_are_refused(times):
    with pytest.raises(ValueError, match=r"the table must be of llama-3-8b .* the best fit is .* off, most at"):
        from_kernels.fit(times.assign(seconds=times["seconds"] * np.where(times["what"] == "prefill", 40, 1)), truth())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"toy": True}, "is of a toy on a CPU: it is no measurement"),
        ({"gpu": "", "machine": {"device": "NVIDIA X1"}}, "gpu must be given: NVIDIA X1 is none of h100-sxm"),
    ],
)
def test_tables_that_are_no_measurement_of_a_known_gpu_are_refused(tmp_path, change, words):
    table = Record(tmp_path / "mine.csv", replace(SETUP, **change)).table
    with pytest.raises(ValueError, match=words):
        from_kernels.unit(table)


def test_a_gpu_may_be_named_and_other_tables_are_refused(tmp_path):
    table = Record(tmp_path / "mine.csv", replace(SETUP, gpu="")).table
    assert from_kernels.unit(table, "h20").gpu.name == "h20"
    assert from_kernels.unit(table, "h20").model.n_layers == 16
    with pytest.raises(ValueError, match=r"h100_gemm must be a table of `inference-math measure`"):
        from_kernels.unit(evidence.load("h100_gemm"))
