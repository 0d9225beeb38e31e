from __future__ import annotations

import re

import numpy as np
import pytest

from inference_math import catalogue, simulate, theory
from inference_math.unit import costs
from inference_math.unit.operators import Operators
from inference_math.workload import Workload

LLAMA = catalogue.model("llama-3-70b")
H100 = catalogue.gpu("h100-sxm")


def operators(tp=2):
    return Operators(LLAMA, tp=tp, weights="fp8", kv="fp8")


def test_datasheet_numbers_are_the_formulas_at_datasheet_rates():
    found = costs.datasheet(LLAMA, H100, 2048, 170, tp=2, weights="fp8", kv="fp8")
    flops = 2 * H100.flops("fp8")
    T = theory.token_time_causal(**LLAMA.shape, n_in=2048, flops=flops)
    assert found.ttft_1 == pytest.approx(2048 * T)
    assert found.delta_h == pytest.approx((2048 + 85) * 163_840 / (2 * 3.35e12))
    assert found.t_w == pytest.approx((LLAMA.n_params + 2 * LLAMA.lm_head_params) / (2 * 3.35e12))
    assert found.tpot_1 == pytest.approx(found.t_w + found.delta_h)


@pytest.mark.parametrize("tp", [1, 2, 4, 8])
def test_measured_numbers_are_slower_than_the_datasheet_s(tp):
    n_in = np.array([256, 512, 1024, 2048, 4096])
    measured = costs.measured(operators(tp), n_in, 170)
    limit = costs.datasheet(LLAMA, H100, n_in, 170, tp=tp, weights="fp8", kv="fp8")
    assert (measured.ttft_1 + measured.t_w > limit.ttft_1).all()
    assert (measured.delta_h > limit.delta_h).all()
    assert (measured.t_w > limit.t_w).all()
    assert measured.T_decode > 0
    assert measured.kv_capacity == limit.kv_capacity


def test_a_request_alone_takes_what_was_measured():
    unit = operators()
    found = costs.measured(unit, 2048, 2)
    assert found.ttft(1) == pytest.approx(unit.prefills().set_index("n_in").total[2048])
    context = 2048 + 1
    alone = unit.steps().query("batch == 1").sort_values("context")
    assert found.tpot(1) == pytest.approx(np.interp(context, alone.context, alone.total), rel=1e-6)


def test_the_limits_are_met_and_one_more_request_breaks_the_binding_one():
    for stored in (0, 0.5, 0.9):
        numbers = costs.measured(operators(1), 1000, 64).with_prefill(theory.speedup_layerwise(alpha=stored, e=9))
        limits = numbers.batch_limits(0.040, 0.400).iloc[0]
        batch = int(limits.batch)
        assert batch == min(limits.TPOT, limits.TTFT, limits.memory)
        assert numbers.tpot(batch) <= 0.040
        assert numbers.ttft(batch) <= 0.400
        assert batch * 1064 <= numbers.kv_capacity
        broken = {
            "TPOT": numbers.tpot(batch + 1) > 0.040,
            "TTFT": numbers.ttft(batch + 1) > 0.400,
            "memory": (batch + 1) * 1064 > numbers.kv_capacity,
        }
        assert broken[limits.binding]


def test_no_batch_where_a_request_alone_misses_its_limit():
    limits = costs.measured(operators(1), np.array([1000, 3500]), 64).batch_limits(0.040, 0.400)
    assert list(limits.binding) == ["TPOT", "none fits"]
    assert limits.batch[1] == 0


def test_the_simulator_takes_the_numbers():
    numbers = costs.measured(operators(), 2048, 64)
    run = simulate.closed_loop(
        Workload(2048, 64, lengths="geometric"), numbers.step_cost(), concurrency=16, requests=20_000, seed=1
    )
    assert run.gaps.mean == pytest.approx(numbers.tpot(16), rel=0.01)
    assert run.request_rate == pytest.approx(numbers.rate(16), rel=0.01)


def test_the_price_list_gives_back_what_it_was_read_off():
    unit = operators()
    cost = costs.step_cost(unit)
    prefill = unit.prefills().set_index("n_in").loc[2048]
    matrices = cost(0, 0, 1, 2048, 0.0)
    assert matrices == pytest.approx(prefill.gemm + prefill.allreduce)
    alone = unit.steps().query("batch == 1 and context == 2048").total.iloc[0]
    assert cost(1, 2048) == pytest.approx(alone, rel=1e-4)


@pytest.mark.parametrize("n_in", [256, 512, 1024, 4096])
def test_the_price_list_comes_near_prompts_that_it_was_not_read_off(n_in):
    unit = operators()
    found = costs.step_cost(unit)(0, 0, 1, n_in, n_in**2 / 2)
    assert found == pytest.approx(unit.prefills().set_index("n_in").total[n_in], rel=0.06)


def test_the_fewest_gpus():
    assert costs.smallest_tp(LLAMA, H100, "fp8", share=1) == 1
    assert costs.smallest_tp(LLAMA, H100, "fp8") == 2
    assert costs.smallest_tp(LLAMA, H100, "bf16") == 2
    assert costs.smallest_tp(catalogue.model("deepseek-v3"), H100, "fp8") is None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: costs.datasheet(LLAMA, H100, 2048, 170, tp=1), "tp must leave room for a KV cache"),
        (lambda: costs.datasheet(LLAMA, H100, 2048, 170, tp=1.5), "tp must be a whole number"),
        (lambda: costs.datasheet(LLAMA, catalogue.gpu("a6000"), 2048, 170, tp=2, weights="fp8"), "fp8"),
        (lambda: costs.measured(operators(), 10, 170), "n_in must be from 64 to"),
        (lambda: costs.measured(operators(), 2048, 200_000), "n_in + n_out / 2 must be"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
