from __future__ import annotations

import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from inference_math import theory
from inference_math.theory.notation import delta_h, delta_p, sla_tpot, t_w, x

times = st.floats(1e-5, 1.0)


@given(t_w=times, delta_p=times, delta_h=times, room=times, faster=st.floats(1, 1000))
def test_offloading_puts_the_shorter_prefill_into_each_unit_time(t_w, delta_p, delta_h, room, faster):
    numbers = {"delta_h": delta_h, "t_w": t_w, "sla_tpot": t_w + room}
    plain = theory.unit_time_aggregated(delta_p=delta_p, **numbers)
    for gain, time in (
        ("pdd", "disaggregated"), ("chunked", "chunked"), ("chunked_serial", "chunked_serial"),
    ):  # fmt: skip
        shorter = theory.CATALOGUE[f"unit_time_{time}"](delta_p=delta_p / faster, **numbers)
        found = theory.CATALOGUE[f"offload_gain_{gain}"](delta_p=delta_p, x=faster, **numbers)
        assert found == pytest.approx(plain / shorter)
        bound = theory.gain_bound(delta_p=delta_p, delta_h=delta_h)
        assert found <= bound * (1 + 1e-9)


def test_every_architecture_tends_to_the_talks_bound():
    """1 + ΔP/ΔH over plain aggregated serving [C31]."""
    bound = theory.gain_bound.expr
    assert sp.simplify(sp.limit(theory.offload_gain_pdd.expr, x, sp.oo) - bound) == 0
    numbers = {delta_p: sp.Rational(3, 1000), delta_h: sp.Rational(1, 2500), t_w: 0, sla_tpot: sp.Rational(1, 25)}
    for gain in (theory.offload_gain_chunked, theory.offload_gain_chunked_serial):
        at_rest = gain.expr.subs(numbers | {t_w: sp.Rational(16, 1000)})
        assert at_rest.subs(x, 10**6) == bound.subs(numbers)


@given(b=st.floats(1, 500), t_w=times, delta_p=times, delta_h=times, room=times)
def test_chunks_hide_entirely_from_the_masking_speedup_on(b, t_w, delta_p, delta_h, room):
    numbers = {"delta_p": delta_p, "delta_h": delta_h, "t_w": t_w, "sla_tpot": t_w + room}
    enough = theory.masking_speedup(**numbers)
    bound = theory.gain_bound(delta_p=delta_p, delta_h=delta_h)
    assert theory.offload_gain_chunked(x=enough, **numbers) == pytest.approx(bound)
    assert theory.offload_gain_chunked(x=0.9 * enough, **numbers) == pytest.approx(0.9 * bound)
    at_batch = theory.masking_speedup_batch(b=b, t_w=t_w, delta_p=delta_p, delta_h=delta_h)
    assert b * delta_p / at_batch == pytest.approx(t_w + b * delta_h)
