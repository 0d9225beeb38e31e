"""What a store brings: against unit times, by hand, and where it collapses."""

import pytest
import sympy as sp
from hypothesis import given, strategies as st

from inference_math import theory
from inference_math.theory.notation import delta_h, delta_p, left, prompt_share


@given(
    dp=st.floats(1e-4, 0.1), dh=st.floats(1e-5, 0.01), tw=st.floats(0, 0.05), batch=st.integers(1, 200),
    kept=st.floats(0, 2),
)  # fmt: skip
def test_the_gain_is_that_of_the_engine_s_time_for_a_token(dp, dh, tw, batch, kept):
    """A token takes ΔP + ΔH and its part of the weight read; with a store the first of them shrinks."""
    plain, stored = (tw / batch + share * dp + dh for share in (1.0, kept))
    share = dp / plain
    if share * (1 - kept) < 1:
        assert theory.store_gain(prompt_share=share, left=kept) == pytest.approx(plain / stored)


def test_free_prefills_bring_the_talks_bound():
    share = delta_p / (delta_p + delta_h)  # a batch so large that the weight read counts nothing
    assert sp.simplify(theory.store_gain.expr.subs({left: 0, prompt_share: share}) - (1 + delta_p / delta_h)) == 0


def test_a_path_slower_than_computing_does_harm():
    """Half is found; loading takes as long as computing, storing twice as long: 0.5 · 3 + 0.5 of 1."""
    assert theory.prefill_left(missed=0.5, missed_without=1.0, loaded=0.5, e=1.0, write=2.0) == pytest.approx(2.0)
    assert theory.store_gain(prompt_share=0.5, left=2.0) == pytest.approx(1 / 1.5)


@given(e=st.floats(1.1, 100), write=st.floats(0, 5), reads=st.floats(0, 20))
def test_a_stored_token_repays_itself_after_so_many_reads(e, write, reads):
    """Computed once, stored, and loaded so often, against computed each time."""
    stored, computed = 1 + write + reads / e, 1 + reads
    pays = theory.break_even_reads(e=e, write=write)
    assert (stored < computed) == (reads > pays) or abs(reads - pays) < 1e-9


def test_what_is_loaded_no_faster_than_computed_never_repays_itself():
    with pytest.raises(ValueError, match="break_even_reads needs e > 1"):
        theory.break_even_reads(e=0.5, write=1.0)


@given(size=st.floats(0.2, 0.95), think=st.floats(1, 60), alone=st.floats(0.1, 20))
def test_from_the_collapse_on_turns_in_flight_leave_nothing_to_be_found(size, think, alone):
    """At a rate that does not hang on the users, nothing found keeps itself up from U0 on, and not below."""
    known = {"kv_capacity": 2e6, "again": 50_000.0, "brought": 2000.0, "think": think}
    users = theory.users_collapse(rate=1 / alone, **known)

    def found(many: float) -> float:  # by Little's law each turn takes what users and rate leave
        return theory.held_share(users=many, served=max(0.0, many * alone - think), **known)

    assert found(users * (1 + 1e-6)) == 0
    assert found(users * (1 - 1e-3)) > 0


def test_a_link_carries_a_turn_in_the_time_of_its_tokens():
    assert theory.link_rate(again=40_000, R=25e-6) == pytest.approx(1.0)
