from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

from inference_math import Unit, Workload, catalogue, simulate, theory
from inference_math.unit import costs
from inference_math.unit.operators import Operators

LLAMA = catalogue.model("llama-3-70b")
H100 = catalogue.gpu("h100-sxm")


@cache
def operators(tp=2):
    return Operators(LLAMA, tp=tp, weights="fp8", kv="fp8")


@cache
def measured(n_in=2048, n_out=170):
    return costs.measured(operators(), n_in, n_out)


@pytest.mark.parametrize("tp", [1, 8])
def test_measured_steps_are_slower_than_the_floor(tp):
    n_in = np.array([256, 512, 1024, 2048, 4096])
    numbers = costs.measured(operators(tp), n_in, 170)
    unit = Unit.of("llama-3-70b", "h100-sxm", tp, "fp8", "fp8")
    for one, n in zip(numbers.each, n_in.tolist(), strict=True):
        for decodes, prompts in ((1, 0), (64, 0), (16, 0.2), (0, 1)):
            least = unit.floor.step_time(decodes, n + 85, prompts * n)
            assert one.step_seconds(decodes, prompts) > least
    assert (numbers.T_decode > 0).all()
    assert numbers.kv_capacity == pytest.approx(unit.kv_capacity)
    assert numbers.places.tolist() == [unit.places(Workload(n, 170)) for n in n_in.tolist()]


def test_several_lengths_are_one_after_the_other():
    n_in = np.array([512, 2048])
    both, one = costs.measured(operators(), n_in, 170), measured()
    for name in ("t_w", "ttft_1", "cache_read", "T_decode", "delta_p", "delta_p_gross", "delta_h"):
        assert getattr(both, name)[1] == pytest.approx(getattr(one, name))
    faster, quick = both.with_prefill(4), one.with_prefill(4)
    for several, single in ((both, one), (faster, quick), (both.additive, one.additive)):
        assert several.tpot(8)[1] == pytest.approx(single.tpot(8))
        assert several.rate(8)[1] == pytest.approx(single.rate(8))
        assert several.batch_limits(0.04, 1.0).batch[1] == single.batch_limits(0.04, 1.0).batch[0]


def test_a_mean_is_the_sum_over_who_prefills_and_the_talk_s_in_a_step_that_is_a_sum():
    numbers, shares = measured(), stats.binom(31, 1 / 170).pmf(np.arange(32))
    seconds = [numbers.step_seconds(32 - k, k) for k in range(32)]
    assert numbers.tpot(32) == pytest.approx(shares @ seconds)
    talk = numbers.additive
    full = {"B": 32, "n_out": 170, "ttft_1": talk.ttft_1, "delta_h": talk.delta_h, "t_w": talk.t_w}
    assert talk.ttft(32) == pytest.approx(theory.expected_ttft_full(**full))
    assert talk.tpot(32) == pytest.approx(
        theory.expected_tpot_full(
            B=32, n_out=170, tpot_1=talk.tpot_1, delta_p=talk.delta_p, delta_h=talk.delta_h, T=1, z=0
        )
    )
    assert talk.rate(32) == pytest.approx(
        theory.request_rate(B=32, n_out=170, t_w=talk.t_w, delta_p=talk.delta_p, delta_h=talk.delta_h)
    )


def test_a_request_alone_takes_what_was_measured():
    unit = operators()
    found = measured(2048, 2)
    assert found.ttft(1) == pytest.approx(unit.prefills().set_index("n_in").total[2048], rel=1e-4)
    context = 2048 + 1
    alone = unit.steps().query("batch == 1").sort_values("context")
    assert found.tpot(1) == pytest.approx(np.interp(context, alone.context, alone.total), rel=1e-3)


def test_the_limits_are_met_and_one_more_request_breaks_the_binding_one():
    for stored in (0, 0.5, 0.9):
        numbers = costs.measured(operators(1), 1000, 64).with_prefill(theory.speedup_layerwise(alpha=stored, e=9))
        limits = numbers.batch_limits(0.040, 0.400).iloc[0]
        batch = int(limits.batch)
        assert batch == min(limits.TPOT, limits.TTFT, limits.memory)
        assert numbers.tpot(batch) <= 0.040
        assert numbers.ttft(batch) <= 0.400
        assert batch <= numbers.places
        broken = {
            "TPOT": numbers.tpot(batch + 1) > 0.040,
            "TTFT": numbers.ttft(batch + 1) > 0.400,
            "memory": batch + 1 > numbers.places,
        }
        assert broken[limits.binding]


def test_no_batch_where_a_request_alone_misses_its_limit():
    limits = costs.measured(operators(1), np.array([1000, 3500]), 64).batch_limits(0.040, 0.400)
    assert list(limits.binding) == ["memory", "none fits"]
    assert limits.batch[1] == 0


def test_the_simulator_takes_the_numbers():
    numbers = measured(2048, 64)
    run = simulate.closed_loop(
        Workload(2048, 64, lengths="geometric"), numbers.step_cost(), concurrency=16, requests=20_000, seed=1
    )
    assert run.gaps.mean == pytest.approx(numbers.tpot(16), rel=0.01)
    assert run.request_rate == pytest.approx(numbers.rate(16), rel=0.01)


def test_the_price_list_gives_back_what_it_was_read_off():
    unit = operators()
    cost = costs.step_cost(unit)
    assert cost.T_decode == cost.T  # a decode's row stands in the matrices, too
    prefill = unit.prefills().set_index("n_in").loc[2048]
    matrices = cost(0, 0, 1, 2048, 0.0)
    assert matrices == pytest.approx(prefill.gemm + prefill.allreduce, rel=2e-3)
    alone = unit.steps().query("batch == 1 and context == 2048").total.iloc[0]
    assert cost(1, 2048) == pytest.approx(alone, rel=1e-3)
    with_prompt = cost(32, 32 * 2048, 1, 2048, 2048**2 / 2)
    assert with_prompt > cost(32, 32 * 2048) + 0.5 * matrices  # one product of all tokens, never two
    assert with_prompt < cost(32, 32 * 2048) + cost(0, 0, 1, 2048, 2048**2 / 2)
    for n_in in (256, 4096):  # it comes near prompts that it was not read off
        found = cost(0, 0, 1, n_in, n_in**2 / 2)
        assert found == pytest.approx(unit.prefills().set_index("n_in").total[n_in], rel=0.08)


def test_a_shorter_prompt_is_a_part_of_one_and_a_decode_stays_whole():
    numbers = measured()
    shorter = numbers.with_prefill(4)
    assert shorter.step_seconds(3, 1) == numbers.step_seconds(3, 0.25)
    assert shorter.ttft_1 == pytest.approx(numbers.step_seconds(0, 0.25) - numbers.t_w)
    assert shorter.step_seconds(3, 0) == numbers.step_seconds(3, 0)
    before, after = numbers.overlapping("serial-kv"), shorter.overlapping("serial-kv")
    assert after(300, 0) == pytest.approx(before(300, 0))
    assert after(0, 4) == pytest.approx(before(0, 1))


def test_a_load_hides_under_all_that_a_step_does():
    numbers = measured()
    step = numbers.step_seconds(8, 0.5)
    assert numbers.with_store(0.5, 0.99 * step).step_seconds(8, 1) == step
    assert numbers.with_store(0.5, 1.01 * step).step_seconds(8, 1) == pytest.approx(1.01 * step)
    assert numbers.with_store(1.0, 0.0).ttft_1 > 0
    with pytest.raises(ValueError, match="overlap must be None for numbers with a store"):
        numbers.with_store(0.5, 1.0).overlapping("full")
    slow = numbers.with_store(0.5, 1.0)
    assert slow.ttft_1 + slow.t_w == 1.0
    assert slow.step_seconds(8, 0) == numbers.step_seconds(8, 0)
    # The same as the form's own account of a slow store.
    unit = Unit.of(LLAMA, H100, 2, "fp8", "fp8")
    read_bw = 5e8
    load = theory.kv_load_time(kv_token=LLAMA.kv_token("fp8"), io_bw=read_bw) * 0.5 * 2200
    said = unit.costs(Workload(2200, 170, 0.5), read_bw)
    assert unit.costs(Workload(2200, 170)).with_store(0.5, load).step_seconds(8, 1) == pytest.approx(
        said.step_seconds(8, 1)
    )


@given(alpha=st.floats(0, 1), e=st.floats(0.2, 50), B=st.integers(1, 200))
@settings(max_examples=25)
def test_waiting_lies_between_not_waiting_and_all_of_it_on_top(alpha, e, B):
    """The mean of a maximum: at least the larger mean, at most the reads and the larger part of each prompt."""
    one = measured().additive
    load = alpha * one.ttft_1 / e
    waits = one.with_store(alpha, load).tpot(B)
    met = (B - 1) / 170
    computed = one.t_w + B * one.delta_h + met * ((1 - alpha) * one.ttft_1 - one.delta_h)
    assert waits >= max(computed, met * load) * (1 - 1e-9)
    assert waits <= (computed + met * max(0.0, load - (1 - alpha) * one.ttft_1)) * (1 + 1e-9)


def test_the_fewest_gpus():
    assert costs.smallest_tp(LLAMA, H100, "fp8", share=1) == 1
    assert costs.smallest_tp(LLAMA, H100, "fp8") == 2
    assert costs.smallest_tp(LLAMA, H100, "bf16") == 2
    assert costs.smallest_tp(catalogue.model("deepseek-v3"), H100, "fp8") is None


@pytest.mark.parametrize(
    ("n_in", "n_out", "message"), [(10, 170, "n_in must be from 64 to"), (2048, 200_000, "n_in [+] n_out / 2 must be")]
)
def test_lengths_outside_the_grid_are_named(n_in, n_out, message):
    with pytest.raises(ValueError, match=message):
        costs.measured(operators(), n_in, n_out)


def test_delta_h_is_the_kv_read_and_what_else_a_decode_adds():
    """Of kernels 0.075 ms are read, 0.090 ms with a decode's rows; an engine's increment is more than both."""
    kernels = costs.measured(Operators(catalogue.model("llama-3-70b"), tp=2, weights="fp8", kv="fp8"), 2200, 170)
    engine = Unit.of("llama-3-70b", "h100-sxm", 2, "fp8", "fp8").costs(Workload(2200, 170))
    assert [round(1e3 * float(one), 3) for one in (kernels.cache_read, kernels.delta_h)] == [0.075, 0.09]
    for one in (kernels, engine):
        assert one.delta_h == pytest.approx(one.cache_read + one.T_decode)
        assert one.law["delta_h"] == one.delta_h
    assert engine.delta_h > kernels.delta_h > kernels.cache_read
