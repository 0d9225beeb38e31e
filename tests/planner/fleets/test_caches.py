"""Stores that are played: against stack distances, by hand, and their errors."""

from functools import cache
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from refusals import refused

from inference_math_planner.fleets.caches import clairvoyant, play
from inference_math_planner.fleets.traces import reuse_curve
from inference_math_planner.fleets.turns import Turns


@given(seed=st.integers(0, 50), sizes=st.lists(st.integers(0, 200), min_size=1, max_size=3))
def test_a_ladder_is_one_store_of_its_size_and_that_is_what_stack_distances_say(seed, sizes):
    rng = np.random.default_rng(seed)
    prompts = [[(int(s), k) for k in range(int(rng.integers(1, 12)))] for s in rng.integers(6, size=40)]
    stream = [(0.0, len(prompt), prompt) for prompt in prompts]
    found = play(stream, sizes)
    assert sum(found) == pytest.approx(sum(play(stream, [sum(sizes)])))
    exact = reuse_curve(prompts, [len(prompt) for prompt in prompts], 1, [sum(sizes)]).block_share.item()
    assert sum(found) == pytest.approx(exact)
    assert found[0] == pytest.approx(play(stream, sizes[:1])[0])


@settings(max_examples=40)
@given(uses=st.lists(st.integers(0, 4), min_size=9, max_size=9), size=st.integers(0, 4))
def test_a_store_that_knows_what_will_come_finds_the_most_of_all_choices(uses, size):
    """By hand: the best over all ways to keep a subset of the blocks after each use."""

    @cache
    def most(place, kept):
        if place == len(uses):
            return 0
        choices = kept | {uses[place]}
        after = [frozenset(some) for some in combinations(choices, min(size, len(choices)))]
        return (uses[place] in kept) + max(most(place + 1, each) for each in after)

    assert sum(clairvoyant([uses], size)) == most(0, frozenset())
    seen = [block in uses[:k] for k, block in enumerate(uses)]
    assert clairvoyant([uses[:4], uses[4:]], 99) == [sum(seen[:4]), sum(seen[4:])]


def test_what_nobody_used_for_its_lifetime_is_lost():
    requests = [(0.0, 2, "ab"), (4.0, 2, "ab"), (9.5, 2, "ab"), (14.5, 2, "ab")]
    assert play(requests, [2], lifetime=5) == [0.5]  # after 4 and after 5 seconds, not after 5.5
    assert play(requests, [2]) == [0.75]
    assert play([(0.0, 1, "a"), (1.0, 1, "b"), (5.5, 1, "a")], [1, 1], lifetime=5) == [0.0, 0.0]  # below, it ages on


def test_drawn_sessions_grow_by_message_and_answer_and_follow_each_other():
    stream = Turns(turns=3, first=10, message=3, answer=4, think=5.0, cv=0, shared=2).drawn(1, 60.0)
    lengths = [turn.n_in for turn in stream]
    start = lengths.index(12)
    assert lengths[start : start + 6] == [12, 19, 26, 12, 19, 26]
    assert np.diff([turn.arrival for turn in stream]) == pytest.approx(5.0)
    one, two, other = stream[start], stream[start + 1], stream[start + 3]
    assert two.blocks[: len(one.blocks)] == one.blocks
    assert set(other.blocks) & set(one.blocks) == {(-1, 0), (-1, 1)}


def test_bad_input_is_refused():
    refused(play, {"requests": [(0.0, 1, ["a"])], "tiers": [1]}, {"tiers": [-1]}, {"skip": 1}, {"lifetime": 0})
    refused(Turns(1, 1, 1, 1, 1.0).drawn, {"users": 1, "seconds": 1.0}, {"users": 0})
    with pytest.raises(ValueError, match="think must be"):
        Turns(1, 1, 1, 1, 0.0).drawn(1, 1.0)
