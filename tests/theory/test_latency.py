from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_math import theory
from inference_math.theory import latency

times = st.floats(1e-4, 0.5)


def exact_quantile(q, B, n_out, own, prefill, read):
    """All values of the step with their probabilities, sorted by value."""
    k = np.arange(B)
    values = own + (B - 1 - k) * read + k * prefill
    order = np.argsort(values)
    reached = np.cumsum(latency.prefills_beside(B, n_out).pmf(k)[order])
    return values[order][np.argmax(reached >= q * (1 - 1e-12))]


@given(
    q=st.floats(0.01, 0.99), B=st.integers(1, 200), n_out=st.integers(2, 500), tpot_1=times, prefill=times, read=times
)
def test_the_gap_quantile_is_that_of_the_whole_distribution(q, B, n_out, tpot_1, prefill, read):
    found = latency.gap_quantile(q, B, n_out, tpot_1, prefill / n_out, read)
    beside = [exact_quantile(p, B, n_out, tpot_1, prefill, read) for p in (q - 1e-9, q, q + 1e-9)]
    assert min(beside) * (1 - 1e-9) <= found <= max(beside) * (1 + 1e-9)


@given(B=st.integers(1, 200), n_out=st.integers(2, 500), ttft_1=times, read=times, t_w=times)
def test_ttft_is_the_gap_with_one_s_own_prefill(B, n_out, ttft_1, read, t_w):
    gap = latency.gap_quantile(0.9, B, n_out, t_w + read, ttft_1 / n_out, read)
    assert latency.ttft_quantile(0.9, B, n_out, ttft_1, read, t_w) - gap == pytest.approx(ttft_1 - read, abs=1e-9)


def test_the_quantiles_jump_where_the_closed_form_says():
    law = {"n_out": 170, "tpot_1": 0.0165, "delta_p": 0.0008, "delta_h": 0.00008}
    for q in (0.5, 0.9, 0.99):
        B = int(theory.max_batch_undisturbed(q=q, n_out=170))
        assert latency.gap_quantile(q, B, **law) == pytest.approx(0.0165 + (B - 1) * 0.00008)
        assert latency.gap_quantile(q, B + 1, **law) > 0.0165 + 170 * 0.0008


@given(q=st.floats(0.5, 0.99), sla=st.floats(0.02, 0.5), n_out=st.integers(4, 300), prefill=st.floats(0.01, 0.3))
def test_the_largest_batch_meets_the_limit_and_one_more_does_not(q, sla, n_out, prefill):
    law = {"n_out": n_out, "tpot_1": 0.016, "delta_p": prefill / n_out, "delta_h": 1e-4}
    batch = latency.max_batch_quantile(q, sla, **law)
    assert latency.gap_quantile(q, batch, **law) <= sla < latency.gap_quantile(q, batch + 1, **law)


def test_no_batch_meets_a_limit_below_a_request_alone():
    assert latency.max_batch_quantile(0.9, 0.01, 64, 0.016, 0.001, 1e-4) == 0
    assert latency.max_batch_ttft_quantile(0.9, 0.1, 64, 0.2, 1e-4, 0.016) == 0
    assert latency.max_batch_ttft_quantile(0.9, 0.3, 64, 0.2, 1e-4, 0.016) >= 1


def test_quantiles_broadcast():
    gaps = latency.gap_quantile(0.9, np.array([[1], [32], [64]]), np.array([16, 64]), 0.016, 0.001, 1e-4)
    assert gaps.shape == (3, 2)
    assert (np.diff(gaps, axis=0) > 0).all()
    assert isinstance(latency.gap_quantile(0.9, 32, 64, 0.016, 0.001, 1e-4), float)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: latency.prefills_beside(2.5, 64), "B must be a whole number"),
        (lambda: latency.prefills_beside(0, 64), "B must be a finite number >= 1"),
        (lambda: latency.prefills_beside(4, 0.5), "n_out must be"),
        (lambda: latency.gap_quantile(1.5, 4, 64, 0.01, 0.001, 0), "q must be a number from 0 to 1"),
        (lambda: latency.gap_quantile(0.5, 4, 64, -1, 0.001, 0), "tpot_1 must be"),
        (lambda: latency.max_batch_quantile(0.5, 0, 64, 0.01, 0.001, 0), "sla_tpot must be"),
        (lambda: latency.max_batch_quantile(0.5, 1, 64, 0.01, 0, 0), "must limit the batch"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
