import pytest
from hypothesis import assume, given, strategies as st

from inference_math import theory

times = st.floats(1e-4, 1.0)
outputs = st.integers(2, 5000)


@given(sla_tpot=times, tpot_1=times, delta_p=times, delta_h=times)
def test_the_largest_batch_meets_the_limit_and_one_more_does_not(sla_tpot, tpot_1, delta_p, delta_h):
    cost = {"tpot_1": tpot_1, "delta_p": delta_p, "delta_h": delta_h}
    batch = theory.max_batch(sla_tpot=sla_tpot, **cost)
    if batch:
        assert theory.expected_tpot(B=batch, **cost) <= sla_tpot * (1 + 1e-9)
        assert theory.max_batch_printed(sla_tpot=sla_tpot, **cost) == batch - 1
    else:
        assert tpot_1 > sla_tpot
    assert theory.expected_tpot(B=batch + 1, **cost) > sla_tpot * (1 - 1e-9)


def test_a_limit_that_a_request_alone_just_meets_admits_one():
    assert theory.max_batch(sla_tpot=0.02, tpot_1=0.02, delta_p=1e-3, delta_h=1e-4) == 1
    assert theory.max_batch(sla_tpot=0.0199, tpot_1=0.02, delta_p=1e-3, delta_h=1e-4) == 0
    assert theory.max_batch_ttft(sla_ttft=0.2, ttft_1=0.2, n_out=64) == 1
    assert theory.max_batch_ttft(sla_ttft=0.1999, ttft_1=0.2, n_out=64) == 0


@given(sla_ttft=times, n_out=outputs, ttft_1=times, delta_h=times, t_w=times)
def test_the_ttft_limits(sla_ttft, n_out, ttft_1, delta_h, t_w):
    printed = theory.max_batch_ttft(sla_ttft=sla_ttft, ttft_1=ttft_1, n_out=n_out)
    full = theory.max_batch_ttft_full(sla_ttft=sla_ttft, n_out=n_out, ttft_1=ttft_1, delta_h=delta_h, t_w=t_w)
    assert full <= printed
    if full:
        assert theory.expected_ttft_full(B=full, n_out=n_out, ttft_1=ttft_1, delta_h=delta_h, t_w=t_w) <= sla_ttft * (
            1 + 1e-9
        )


@given(n_out=outputs, ttft_1=times, delta_h=times, t_w=times, room=st.floats(1e-3, 1.0))
def test_the_matching_limit_admits_the_same_batch(n_out, ttft_1, delta_h, t_w, room):
    sla_tpot = t_w + delta_h + room
    sla_ttft = theory.sla_ttft_matching(sla_tpot=sla_tpot, ttft_1=ttft_1, delta_h=delta_h)
    assume(sla_ttft > 0)
    by_tpot = theory.max_batch(
        sla_tpot=sla_tpot, tpot_1=t_w + delta_h, delta_p=ttft_1 / n_out, delta_h=(1 - 1 / n_out) * delta_h
    )
    by_ttft = theory.max_batch_ttft_full(sla_ttft=sla_ttft, n_out=n_out, ttft_1=ttft_1, delta_h=delta_h, t_w=t_w)
    assert by_ttft == pytest.approx(by_tpot, abs=1)  # equal but for rounding at a whole number


def test_memory():
    at = {"hbm_bytes": 80e9, "workspace": 2e9, "kv_token": 1e5}
    assert theory.kv_capacity(hbm_share=1, weight_bytes=70e9, **at) == pytest.approx(80_000)
    assert theory.kv_capacity(hbm_share=0.95, weight_bytes=70e9, **at) == pytest.approx(40_000)
    assert theory.kv_capacity(hbm_share=0.9, weight_bytes=70e9, **at) == pytest.approx(0)
    assert theory.kv_capacity(hbm_share=0.9, weight_bytes=90e9, **at) == 0
    assert theory.max_batch_memory(kv_capacity=10_000, n_in=900, n_out=100) == 10


@given(q=st.floats(0.5, 0.999), n_out=outputs)
def test_up_to_the_undisturbed_batch_the_quantile_sees_no_prefill(q, n_out):
    batch = theory.max_batch_undisturbed(q=q, n_out=n_out)
    assert theory.undisturbed_share(B=batch, n_out=n_out) >= q * (1 - 1e-9)
    assert theory.undisturbed_share(B=batch + 1, n_out=n_out) <= q * (1 + 1e-9)


@given(delta_p=times, delta_h=times, alpha=st.floats(0, 1), e=st.floats(0.1, 100))
def test_gains_are_ordered(delta_p, delta_h, alpha, e):
    """All waiting on top ≤ not waiting ≤ bound; the former ≤ what the best speedup, 1 + e, would give."""
    x = theory.speedup_layerwise(alpha=alpha, e=e)
    waiting = theory.batch_gain(delta_p=delta_p, delta_h=delta_h, x=x)
    not_waiting = theory.batch_gain_async(delta_p=delta_p, delta_h=delta_h, alpha=alpha, e=e)
    bound = theory.gain_bound(delta_p=delta_p, delta_h=delta_h)
    assert waiting <= not_waiting * (1 + 1e-12)
    assert not_waiting <= bound * (1 + 1e-12)
    assert waiting <= theory.batch_gain(delta_p=delta_p, delta_h=delta_h, x=1 + e) * (1 + 1e-12)
