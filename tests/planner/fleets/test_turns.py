"""Users who come back: the law against stores that are played, its limits, its errors."""

from math import exp, inf

import numpy as np
import pytest
from hypothesis import given, strategies as st
from refusals import refused

from inference_math import theory
from inference_math.evidence import load
from inference_math_planner.fleets.caches import play
from inference_math_planner.fleets.turns import Sessions, Turns

TURNS = {"turns": 12, "first": 30, "message": 3, "answer": 2}


@pytest.mark.parametrize(("cv", "shared"), [(0.5, 20), (1.0, 0), (1.5, 20)])
def test_a_store_that_is_played_finds_what_the_law_says(cv, shared):
    """Least recently used, block by block: within two points over a range of sizes."""
    users, gap = 60, 10.0
    turns = Turns(**TURNS, think=gap, cv=cv, shared=shared)
    stream, law = turns.drawn(users, 400.0), turns.sessions(0.0).of(users)
    sizes = [int(share * users * 60) for share in (0.2, 0.4, 0.7, 1.0, 1.5, 3.0)]
    played = [sum(play(stream, [size], skip=len(stream) // 3)) for size in sizes]
    for size, found in zip(sizes, played, strict=True):
        assert law.found(size) == pytest.approx(found, abs=0.02), size
    assert max(played) - min(played) > 0.3  # a range that tells


def test_one_half_of_a_recorded_hour_foresees_the_other():
    """By the returns of its first half, within a point; by blocks that are independent, it is tens of points off."""
    halves = load("traces_halves").frame
    hour = halves[halves.trace == "mooncake-conversation"]
    assert (hour.law - hour.other).abs().max() < 0.01
    assert (hour.independent - hour.other).max() > 0.3
    assert (halves.law - halves.same).abs().max() < 0.015
    assert (halves.best >= halves[["same", "other"]].max(axis=1) - 0.01).all()


@pytest.mark.parametrize(("lifetime", "size"), [(3.0, 10_000), (12.0, 10_000), (12.0, 1500)])
def test_a_lifetime_ends_what_a_store_keeps(lifetime, size):
    turns = Turns(**TURNS, think=10.0)
    stream, law = turns.drawn(60, 400.0), turns.sessions(0.0).of(60)
    played = sum(play(stream, [size], skip=len(stream) // 3, lifetime=lifetime))
    assert law.found(size, lifetime) == pytest.approx(played, abs=0.02)
    assert law.found(size, lifetime) == min(law.found(size), law.within(lifetime))
    assert law.found(size, None) == law.found(size)


def test_with_equal_gaps_a_store_finds_all_or_nothing():
    turns = Turns(**TURNS, think=10.0, cv=0)
    stream, law = turns.drawn(40, 300.0), turns.sessions(0.0)
    size = 40 * (law.again + law.brought)
    few, many = (sum(play(stream, [int(part * size)], skip=len(stream) // 3)) for part in (0.8, 1.2))
    assert few < 0.05
    assert many == pytest.approx(law.of(40).ceiling, abs=0.02)
    assert [law.of(40).found(part * size) for part in (0.8, 1.2)] == [0, law.of(40).ceiling]
    border = theory.users_border(kv_capacity=size, brought=law.brought, again=law.again)
    assert law.border(size) == pytest.approx(border) == pytest.approx(40)


@given(
    again=st.floats(0, 1e6), brought=st.floats(1, 1e5), gap=st.floats(0.1, 1e4), users=st.floats(1, 1e4),
    capacity=st.floats(1, 1e10),
)  # fmt: skip
def test_exponential_gaps_are_the_formula_and_the_kept_time_solves_it(again, brought, gap, users, capacity):
    one = Sessions(again, brought, gap)
    kept = one.of(users).kept(capacity)
    told = theory.working_set(users=users, brought=brought, again=again, turn_gap=gap, kept=kept)
    assert told == pytest.approx(capacity, rel=1e-6)
    assert one.come_back(kept) == pytest.approx(theory.kept_share(turn_gap=gap, kept=kept), abs=1e-9)


@given(capacity=st.floats(1e3, 1e8), more=st.floats(1.01, 10), cv=st.sampled_from([0.0, 0.3, 1.0, 2.0]))
def test_more_room_finds_no_less_and_more_users_no_more(capacity, more, cv):
    one = Sessions(again=50_000, brought=2_000, gap=20, cv=cv, answer=500, shared=1_000)
    found = one.of(100).found(capacity)
    assert one.of(100).found(more * capacity) >= found - 1e-9
    assert one.of(100 * more).found(capacity) <= found + 1e-9
    assert 0 <= found <= one.of(100).ceiling < 1


def test_the_mean_time_to_think_is_an_integral():
    one = Sessions(1, 1, gap=9.0, cv=1.0, served=5.0)
    assert one.mean_think(6.0) == pytest.approx(4 * (1 - exp(-1.5)))
    assert one.mean_think(inf) == 4.0
    assert Sessions(1, 1, gap=4.0, cv=0).mean_think(3.0) == 3.0


def test_turns_in_flight_hold_their_tokens():
    """Ten of forty users are being served: their tokens are there, however little the store keeps."""
    law = Sessions(again=900, brought=100, gap=40.0, served=10.0).of(40)
    assert law.working_set(0.0) == pytest.approx(10 * 1000)
    assert law.found(9_999) == 0
    plain = Sessions(again=900, brought=100, gap=40.0).of(40)
    assert law.found(20_000) < plain.found(20_000)
    assert law.found(law.size_for(0.9)) == pytest.approx(0.9 * law.ceiling)
    always = Sessions(again=900, brought=100, gap=40.0, served=40.0).of(40)  # nobody thinks: there, or not
    assert always.found(39_999) == 0
    assert always.found(40_001) == pytest.approx(always.ceiling)


def test_what_all_share_is_found_where_turns_in_flight_leave_nothing():
    law = Sessions(again=900, brought=100, gap=40.0, served=10.0, shared=500).of(40)
    assert law.found(8_000) == pytest.approx(500 / 1500)
    assert law.found(499) == 0
    with pytest.raises(ValueError, match="served must be 0"):
        law.found_from_empty(8_000, 10.0)


def test_turns_are_the_sessions_of_the_law():
    """Three turns: prompts of 12, 19 and 26 tokens, of which 2, 16 and 23 were there, answers included."""
    turns = Turns(turns=3, first=10, message=3, answer=4, think=5.0, shared=2)
    one = turns.sessions(served=2.0)
    assert [turns.prompt(turn) for turn in range(3)] == [12, 19, 26]
    assert one.prompt == pytest.approx((12 + 19 + 26) / 3)
    assert one.again == pytest.approx((14 + 21) / 3)
    assert one.brought == pytest.approx((10 + 3 + 3) / 3 + 4)
    assert one.of(1).ceiling == pytest.approx((2 + 16 + 23) / 57)
    assert (one.gap, one.served, one.think) == (7.0, 2.0, 5.0)
    rng = np.random.default_rng(1)
    drawn = [turns.thought(rng) for _ in range(4000)]
    assert np.mean(drawn) == pytest.approx(5.0, rel=0.06)
    assert np.std(drawn) == pytest.approx(5.0, rel=0.06)
    assert Turns(1, 1, 0, 1, think=3.0, cv=0).thought(rng) == 3.0
    assert Turns(1, 1, 0, 1, think=0.0).thought(rng) == 0.0


def test_turns_refuse_what_is_none():
    good = {"turns": 2, "first": 1, "message": 0, "answer": 1, "think": 1.0}
    refused(Turns, good, {"turns": 0}, {"first": 0}, {"answer": 0}, {"think": -1}, {"cv": -1}, {"shared": 0.5})


@given(users=st.integers(1, 400))
def test_with_equal_gaps_the_size_for_any_share_finds_all(users):
    law = Sessions(again=52.25, brought=7.25, gap=10, cv=0).of(users)
    assert law.found(law.size_for(0.9)) == law.ceiling


@pytest.mark.parametrize("cv", [0.0, 1.0])
def test_what_all_share_is_found_by_a_store_of_its_size(cv):
    law = Sessions(100, 10, 1, cv=cv, shared=1000).of(50)
    assert law.size_for(0.5) == 1000
    assert law.found(1000) == pytest.approx(1000 / 1110)
    assert law.found(999) == 0


@given(share=st.floats(0.05, 0.99), cv=st.sampled_from([0.4, 1.0, 2.0]))
def test_the_size_for_a_share_finds_it(share, cv):
    law = Sessions(again=60_000, brought=1_500, gap=30, cv=cv, answer=500).of(200)
    assert law.found(law.size_for(share)) == pytest.approx(share * law.ceiling, rel=1e-6)


@pytest.mark.parametrize("size", [400, 800, 1600])
def test_a_pool_of_prefixes_is_users_who_are_picked_at_random_and_begins_empty(size):
    """A clock that counts requests: each prefix comes back after an exponential number of them."""
    rng = np.random.default_rng(5)
    stream = [
        (float(i), 25, [(int(p), k) for k in range(20)] + [(-i, k) for k in range(5)])
        for i, p in enumerate(rng.integers(40, size=400), 1)
    ]
    law = Sessions(again=20, brought=5, gap=40).of(40)
    assert law.found_from_empty(size, 100) == pytest.approx(sum(play(stream[:100], [size])), abs=0.05)
    assert law.found(size) == pytest.approx(sum(play(stream, [size], skip=150)), abs=0.05)
    assert law.found_from_empty(size, 1e9) == pytest.approx(law.found(size))


def test_what_is_no_session_is_refused():
    good = {"again": 10.0, "brought": 2000.0, "gap": 5.0}
    refused(Sessions, good, {"gap": 0}, {"again": -1}, {"brought": 0}, {"answer": 3000}, {"cv": -1})
    refused(Sessions(10, 20, 5).of, {}, {"users": 0})
