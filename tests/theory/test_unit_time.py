import pytest
from hypothesis import given, strategies as st
from played import Hardware

from inference_math import theory

times = st.floats(1e-5, 1.0)
answers = st.integers(2, 1000)


@given(t_w=times, delta_p=times, delta_h=times, room=times, n_out=answers, faster=st.floats(1, 1000))
def test_offloading_shortens_what_a_prompt_adds_and_no_weight_read(t_w, delta_p, delta_h, room, n_out, faster):
    numbers = {"delta_h": delta_h, "t_w": t_w, "sla_tpot": t_w + max(room, delta_h)}
    plain = theory.unit_time_aggregated(delta_p=delta_p, **numbers)
    for kind in ("chunked", "chunked_serial"):
        shorter = theory.CATALOGUE[f"unit_time_{kind}"](delta_p=delta_p / faster + t_w / n_out, **numbers)
        found = theory.CATALOGUE[f"offload_gain_{kind}"](delta_p=delta_p, n_out=n_out, x=faster, **numbers)
        assert found == pytest.approx(plain / shorter)
        bound = theory.gain_bound(delta_p=delta_p, delta_h=delta_h)
        assert found <= bound * (1 + 1e-9)


@given(t_w=times, delta_p=times, delta_h=times, room=times, n_out=answers)
def test_chunks_reach_the_talks_bound_if_answers_outnumber_the_decodes_and_pools_never_do(
    t_w, delta_p, delta_h, room, n_out
):
    """1 + ΔP/ΔH over plain aggregated serving, for pools with the reads of N_out − 1 decodes [C31]."""
    room = max(room, delta_h)
    numbers = {"delta_p": delta_p, "delta_h": delta_h, "t_w": t_w, "sla_tpot": t_w + room, "n_out": n_out, "x": 1e12}
    bound = theory.gain_bound(delta_p=delta_p, delta_h=delta_h)
    decodes = room / delta_h
    if decodes <= 0.99 * n_out:
        assert theory.offload_gain_chunked(**numbers) == pytest.approx(bound)
        assert theory.offload_gain_chunked_serial(**numbers) == pytest.approx(bound)
    if decodes >= 1.01 * n_out:
        assert theory.offload_gain_chunked_serial(**numbers) < bound
    assert theory.offload_gain_pdd(**numbers) < 1 + delta_p / ((1 - 1 / n_out) * delta_h)


@pytest.mark.parametrize("faster", [1, 2, 5, 40])
def test_pools_that_are_played_with_a_store_gain_what_the_formula_says(faster):
    """The case on a pair of H100s with 19 users, and a store that makes prefills so many times faster."""
    plain, stored = Hardware(170, 0.181, 0.000166, 0.01673), Hardware(170, 0.181 / faster, 0.000166, 0.01673)
    rate, gap = plain.together(19)
    numbers = {"delta_p": plain.prompt / 170, "delta_h": plain.read, "t_w": plain.t_w, "n_out": 170}
    found = theory.offload_gain_pdd(**numbers, sla_tpot=gap, x=faster)
    assert found == pytest.approx(stored.apart(gap) / rate, rel=0.01)


@given(t_w=times, delta_p=times, delta_h=times, room=times, n_out=answers, faster=st.floats(1, 1000))
def test_pools_stop_paying_where_a_store_brings_a_prompt_below_the_limit(t_w, delta_p, delta_h, room, n_out, faster):
    """Over aggregated serving with the same store, by the sign theorem with P/x [C31]."""
    room = max(room, delta_h)
    numbers = {"delta_h": delta_h, "t_w": t_w, "sla_tpot": t_w + room, "n_out": n_out}
    aggregated = theory.unit_time_aggregated_full(delta_p=delta_p, **numbers)
    with_store = aggregated / theory.unit_time_aggregated_full(delta_p=delta_p / faster, **numbers)
    pools = theory.offload_gain_pdd(delta_p=delta_p, x=faster, **numbers)
    last = (1 - 1 / n_out) * (n_out * delta_p / faster - delta_h)
    assert (pools / with_store - 1) * (room - delta_h) * (last - room) >= -1e-9


@given(t_w=times, delta_p=times, delta_h=times, room=times, n_out=answers)
def test_chunks_hide_entirely_from_the_masking_speedup_on(t_w, delta_p, delta_h, room, n_out):
    room = max(room, delta_h)
    numbers = {"delta_p": delta_p, "delta_h": delta_h, "t_w": t_w, "sla_tpot": t_w + room, "n_out": n_out}
    bound = theory.gain_bound(delta_p=delta_p, delta_h=delta_h)
    if delta_h * n_out > 1.001 * t_w * room / (t_w + room):
        enough = theory.masking_speedup(**numbers)
        assert theory.offload_gain_chunked(x=1.001 * enough, **numbers) == pytest.approx(bound)
        assert theory.offload_gain_chunked(x=0.9 * enough, **numbers) < bound
