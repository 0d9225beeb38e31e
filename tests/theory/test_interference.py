import numpy as np
import pytest
from hypothesis import given, strategies as st

from inference_math import theory
from inference_math_planner.laws.latency import prefills_beside

times = st.floats(1e-5, 1.0)
batches = st.integers(1, 500)
outputs = st.floats(2, 5000)


def test_a_prefill_alone_contains_the_weight_read_once():
    assert theory.delta_p_net(ttft_alone=0.120, t_w=0.020, n_out=100) == pytest.approx(1e-3)
    assert theory.delta_p_net(ttft_alone=0.010, t_w=0.020, n_out=100) == 0


@given(B=batches, n_out=st.integers(2, 5000))
def test_the_closed_forms_are_those_of_the_binomial_law(B, n_out):
    law = prefills_beside(B, n_out)
    assert theory.concurrent_prefills(B=B, n_out=n_out) == pytest.approx(law.mean())
    assert theory.undisturbed_share(B=B, n_out=n_out) == pytest.approx(law.pmf(0))


@given(B=batches, n_out=outputs, ttft_1=times, delta_h=times, t_w=times)
def test_one_increment_for_ttft_and_tpot(B, n_out, ttft_1, delta_h, t_w):
    def tpot(requests):
        return theory.expected_tpot_full(
            B=requests, n_out=n_out, tpot_1=t_w + delta_h, delta_p=ttft_1 / n_out, delta_h=delta_h, T=1, z=0
        )

    def ttft(requests):
        return theory.expected_ttft_full(B=requests, n_out=n_out, ttft_1=ttft_1, delta_h=delta_h, t_w=t_w)

    assert ttft(1) == pytest.approx(ttft_1 + t_w)
    assert ttft(B) - tpot(B) == pytest.approx(ttft_1 - delta_h, abs=1e-9 * B)


@given(B=batches, n_out=outputs, ttft_1=times, delta_h=times, t_w=times)
def test_latency_is_n_out_steps_and_the_rate_is_little_s(B, n_out, ttft_1, delta_h, t_w):
    step = theory.mean_step(B=B, n_out=n_out, t_w=t_w, delta_p=ttft_1 / n_out, delta_h=delta_h)
    ttft = theory.expected_ttft_full(B=B, n_out=n_out, ttft_1=ttft_1, delta_h=delta_h, t_w=t_w)
    tpot = theory.expected_tpot_full(
        B=B, n_out=n_out, tpot_1=t_w + delta_h, delta_p=ttft_1 / n_out, delta_h=delta_h, T=1, z=0
    )
    assert ttft + (n_out - 1) * tpot == pytest.approx(n_out * step)
    rate = theory.request_rate(B=B, n_out=n_out, t_w=t_w, delta_p=ttft_1 / n_out, delta_h=delta_h)
    assert rate * n_out * step == pytest.approx(B)


def test_printed_means_are_the_complete_ones_where_answers_are_long():
    numbers = {"B": 32, "n_out": 1e6}
    printed = theory.expected_tpot(B=32, tpot_1=0.02, delta_p=1e-3, delta_h=1e-4)
    complete = theory.expected_tpot_full(**numbers, tpot_1=0.02, delta_p=1e-3, delta_h=1e-4, T=1e-5, z=0)
    assert complete == pytest.approx(printed, rel=1e-6)
    assert theory.expected_ttft_full(**numbers, ttft_1=0.2, delta_h=0, t_w=0) == theory.expected_ttft(
        **numbers, ttft_alone=0.2
    )


@given(lengths=st.lists(st.integers(1, 50), min_size=2, max_size=20).filter(lambda n: max(n) > 1))
def test_the_mean_context_is_all_reads_over_all_steps(lengths):
    reads = [100 + j - 1 for n in lengths for j in range(2, n + 1)]
    mean, cv = np.mean(lengths), np.std(lengths) / np.mean(lengths)
    assert theory.mean_context(n_in=100, n_out=mean, cv=cv) == pytest.approx(np.mean(reads))


def test_prefill_share_of_one_request_alone():
    assert theory.prefill_share(B=1, n_out=10, t_w=0.02, delta_p=0.01, delta_h=0) == pytest.approx(1 / 3)
