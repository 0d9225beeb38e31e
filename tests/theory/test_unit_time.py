from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_math import theory

times = st.floats(1e-5, 1.0)
answers = st.integers(1, 1000)


@given(t_w=times, delta_p=times, delta_h=times, room=times, n_out=answers, faster=st.floats(1, 1000))
def test_offloading_shortens_what_a_prompt_adds_and_no_weight_read(t_w, delta_p, delta_h, room, n_out, faster):
    numbers = {"delta_h": delta_h, "t_w": t_w, "sla_tpot": t_w + room}
    plain = theory.unit_time_aggregated(delta_p=delta_p, **numbers)
    for gain, time in (
        ("pdd", "disaggregated"), ("chunked", "chunked"), ("chunked_serial", "chunked_serial"),
    ):  # fmt: skip
        shorter = theory.CATALOGUE[f"unit_time_{time}"](delta_p=delta_p / faster + t_w / n_out, **numbers)
        found = theory.CATALOGUE[f"offload_gain_{gain}"](delta_p=delta_p, n_out=n_out, x=faster, **numbers)
        assert found == pytest.approx(plain / shorter)
        bound = theory.gain_bound(delta_p=delta_p, delta_h=delta_h)
        assert found <= bound * (1 + 1e-9)
    unsaved = theory.offload_gain_pdd(delta_p=delta_p, n_out=n_out, x=1, **numbers)
    assert unsaved == pytest.approx(theory.pdd_gain_same(delta_p=delta_p, n_out=n_out, **numbers))


@given(t_w=times, delta_p=times, delta_h=times, room=times, n_out=answers)
def test_chunks_reach_the_talks_bound_if_answers_outnumber_the_decodes_and_pools_never_do(
    t_w, delta_p, delta_h, room, n_out
):
    """1 + ΔP/ΔH over plain aggregated serving [C31]."""
    numbers = {"delta_p": delta_p, "delta_h": delta_h, "t_w": t_w, "sla_tpot": t_w + room, "n_out": n_out, "x": 1e12}
    bound = theory.gain_bound(delta_p=delta_p, delta_h=delta_h)
    decodes = room / delta_h
    if decodes <= 0.99 * n_out:
        assert theory.offload_gain_chunked(**numbers) == pytest.approx(bound)
        assert theory.offload_gain_chunked_serial(**numbers) == pytest.approx(bound)
    if decodes >= 1.01 * n_out:
        assert theory.offload_gain_chunked_serial(**numbers) < bound
    u = room / (t_w + room)
    pools = theory.offload_gain_pdd(**numbers)
    assert pools == pytest.approx((delta_p + delta_h) / (delta_h + u * t_w / n_out), rel=1e-6)
    assert pools < bound


@given(t_w=times, delta_p=times, delta_h=times, room=times, n_out=answers, faster=st.floats(1, 1000))
def test_pools_stop_paying_where_a_store_brings_a_prompt_below_the_limit(t_w, delta_p, delta_h, room, n_out, faster):
    numbers = {"delta_h": delta_h, "t_w": t_w, "sla_tpot": t_w + room}
    aggregated = theory.unit_time_aggregated(delta_p=delta_p, **numbers)
    with_store = aggregated / theory.unit_time_aggregated(delta_p=delta_p / faster, **numbers)
    pools = theory.offload_gain_pdd(delta_p=delta_p, n_out=n_out, x=faster, **numbers)
    alone = t_w + n_out * delta_p / faster
    if abs(alone / (t_w + room) - 1) > 1e-6:
        assert (pools > with_store) == (alone > t_w + room)


@given(t_w=times, delta_p=times, delta_h=times, room=times, n_out=answers)
def test_chunks_hide_entirely_from_the_masking_speedup_on(t_w, delta_p, delta_h, room, n_out):
    numbers = {"delta_p": delta_p, "delta_h": delta_h, "t_w": t_w, "sla_tpot": t_w + room, "n_out": n_out}
    bound = theory.gain_bound(delta_p=delta_p, delta_h=delta_h)
    if delta_h * n_out > 1.001 * t_w * room / (t_w + room):
        enough = theory.masking_speedup(**numbers)
        assert theory.offload_gain_chunked(x=1.001 * enough, **numbers) == pytest.approx(bound)
        assert theory.offload_gain_chunked(x=0.9 * enough, **numbers) < bound
