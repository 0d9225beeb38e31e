"""Steps and prefills added up from measured operators."""

import numpy as np
import pandas as pd
import pytest
from refusals import refused

from inference_math import catalogue, evidence, theory
from inference_math.unit.operators import H100, H100_L2_BYTES, Operators, _between

LLAMA = catalogue.model("llama-3-70b")
GPU = catalogue.gpu(H100)
SETUPS = [(tp, p, engine) for tp in (1, 2, 4, 8) for p in ("bf16", "fp8") for engine in ("vllm", "trtllm")]


def operators(tp: int, precision: str, engine: str = "vllm") -> Operators:
    return Operators(LLAMA, tp=tp, weights=precision, kv=precision, engine=engine)


def test_a_prefill_is_the_sum_of_its_operators():
    """Added up by hand from the tables, for one point that needs no interpolation."""
    row = operators(2, "fp8").prefills().set_index("n_in").loc[2048]
    gemm = evidence.load("h100_gemm").frame.query("engine == 'vllm' and tokens in (1, 2048)")
    times = gemm.set_index(["dtype", "n", "k", "tokens"]).time_us
    layer = sum(times["fp8", n, k, 2048] for n, k in ((5120, 8192), (8192, 4096), (28672, 8192), (8192, 14336)))
    assert row.gemm == pytest.approx((80 * layer + times["bf16", 64128, 8192, 1]) * 1e-6)
    attention = evidence.load("h100_prefill_attention").frame.query(
        "engine == 'vllm' and kv_dtype == 'fp8' and heads == 32 and kv_heads == 4 and batch == 1 and length == 2048"
    )
    assert row.attention == pytest.approx(80 * attention.time_us.item() * 1e-6)
    ring = evidence.load("h100_allreduce").frame.query("engine == 'vllm' and gpus == 2").set_index("bytes").time_us
    assert row.allreduce == pytest.approx(2 * 80 * ring[2048 * 8192 * 2] * 1e-6)
    assert row.total == pytest.approx(row.gemm + row.attention + row.allreduce)


@pytest.mark.parametrize(("tp", "precision", "engine"), SETUPS)
def test_nothing_beats_the_datasheet_and_reads_come_near_it(tp, precision, engine):
    ops = operators(tp, precision, engine)
    prefills, steps = ops.prefills(), ops.steps()
    assert not prefills.n_in.duplicated().any()
    assert not steps.duplicated(["batch", "context"]).any()
    linear = 2 * LLAMA.n_params * prefills.n_in / (tp * GPU.flops(precision))
    assert (prefills.gemm >= linear).all()
    weights = LLAMA.n_params * (2 if precision == "bf16" else 1) / (tp * GPU.hbm_bw)
    assert (steps.gemm >= weights).all()
    # Inside L2 the benchmark may well beat HBM; outside it must not.
    reads = steps[~steps.in_l2]
    cache = reads.batch * reads.context * LLAMA.kv_token(precision) / (tp * GPU.hbm_bw)
    assert (reads.attention >= cache).all()
    # The slope of the KV read is near the bandwidth.
    reads = ops.kv_reads()
    long = reads[reads.context.between(2048, 16384)]
    assert len(long) == 4
    assert long.share.between(0.6, 1.0).all()
    expected = theory.cache_read(n_in=reads.context, kv_token=LLAMA.kv_token(precision), hbm_bw=tp * GPU.hbm_bw)
    np.testing.assert_allclose(reads.cache_read * reads.share, expected)
    assert (reads.low <= reads.high).all()
    assert (reads.high[reads.points == 2] == reads.share[reads.points == 2]).all()


def test_points_inside_l2_are_marked_and_left_out_of_the_slope():
    steps = operators(1, "bf16").steps()
    layer = 2 * 8 * 128 * 2 * steps.batch * steps.context
    assert (steps.in_l2 == (layer <= H100_L2_BYTES)).all()
    # The jump at the L2's size that makes the mark necessary: twice the bytes, far more than twice the time.
    at_512 = steps[steps.context == 512].set_index("batch").attention
    assert at_512[32] / at_512[16] > 2.3


def test_slope_recovers_a_planted_bandwidth(monkeypatch):
    """On synthetic points, time = 20 µs + bytes/(90 % of the bandwidth), the fit gives back 90 %."""
    table = evidence.load("h100_decode_attention")
    layer = 2 * 8 * 128 * 2
    frame = table.frame.query("engine == 'vllm' and kv_dtype == 'bf16' and heads == 64").copy()
    frame["time_us"] = 20 + frame.batch * frame.context * layer / (0.9 * GPU.hbm_bw) * 1e6
    real = evidence.load

    def planted(name):
        return type("T", (), {"frame": frame}) if name == "h100_decode_attention" else real(name)

    monkeypatch.setattr(evidence, "load", planted)
    np.testing.assert_allclose(operators(1, "bf16").kv_reads().share, 0.9, rtol=1e-5)  # a fit has six digits


@pytest.mark.parametrize("name", ["llama-3-8b", "qwen3-14b", "qwen3-32b", "llama-3-70b"])
def test_products_follow_the_roofline_from_above(name):
    model = catalogue.model(name)
    frame = Operators(model).products()
    floor = np.maximum(2 * model.n_params * frame.tokens / GPU.flops("bf16"), 2 * model.n_params / GPU.hbm_bw)
    share = floor / frame.gemm
    assert share.between(0.3, 1).all()
    assert share.iloc[0] > 0.7  # one token reads all weights at most of the bandwidth
    row = Operators(model).prefills().set_index("n_in").gemm[2048]
    assert frame.set_index("tokens").gemm[2048] < row  # the LM head comes on top


def test_one_gpu_has_no_all_reduce_and_more_gpus_do():
    assert (operators(1, "fp8").steps().allreduce == 0).all()
    assert (operators(2, "fp8").steps().allreduce > 0).all()


def test_what_was_not_measured_is_refused_by_name():
    wrong = {"engine": "sglang"}, {"tp": 3}, {"tp": 0}, {"weights": "int4"}, {"kv": "fp4"}
    refused(lambda **asked: Operators(LLAMA, **asked).prefills(), {}, *wrong)
    for name in ("mixtral-8x7b", "opt-66b"):
        with pytest.raises(ValueError, match=name):
            Operators(catalogue.model(name)).prefills()


def test_sizes_outside_the_grid_are_refused():
    grid, times = pd.Series([1, 2, 4]), pd.Series([10.0, 20.0, 40.0])
    np.testing.assert_allclose(_between(grid, times, np.array([1, 3])), [1e-5, 3e-5])
    with pytest.raises(ValueError, match="sizes must be from 1 to 4, not 1 to 8"):
        _between(grid, times, np.array([1, 8]))
