"""What a store finds of a recorded stream, from when its tokens come back."""

from __future__ import annotations

import numpy as np
import pytest

from inference_math.workload.returns import Recorded, ladder
from inference_math.workload.stores import drawn
from inference_math.workload.traces import reuse_curve


def recorded(cv=1.0, seconds=300.0):
    stream = drawn(12, 30, 3, 2, 10.0, cv, 60, seconds)
    arrivals, prompts = np.array([turn.arrival for turn in stream]), np.array([turn.n_in for turn in stream])
    asked = [turn.blocks[: turn.n_in] for turn in stream]
    return Recorded.of(asked, arrivals, prompts, 1), asked, arrivals, prompts


@pytest.mark.parametrize("cv", [0.3, 1.0])
def test_a_stream_s_own_returns_say_what_stack_distances_do(cv):
    """Of the same stream, whose store begins empty: two ways to the same hits."""
    law, blocks, _, prompts = recorded(cv)
    sizes = np.array([500.0, 1000.0, 1500.0, 2500.0, 4000.0])
    exact = reuse_curve(blocks, prompts, 1, sizes).token_share
    assert [law.within(law.kept(size)) for size in sizes] == pytest.approx(exact.tolist(), abs=0.03)


def test_returns_of_one_half_say_what_a_store_finds_in_the_other():
    _, blocks, arrivals, prompts = recorded(seconds=1200.0)
    half = len(blocks) // 2
    law = Recorded.of(blocks[:half], arrivals[:half], prompts[:half], 1)
    sizes = np.array([1000.0, 2000.0, 3000.0])
    other = reuse_curve(blocks[half:], prompts[half:], 1, sizes).token_share
    assert [law.within(law.kept(size)) for size in sizes] == pytest.approx(other.tolist(), abs=0.03)


def test_the_working_set_by_hand():
    """Two prompts that come every second in turn, of 3 and 5 blocks: all that is used within 2 s is 8 blocks."""
    blocks = [[("a", k) for k in range(3)] if i % 2 == 0 else [("b", k) for k in range(5)] for i in range(100)]
    law = Recorded.of(blocks, np.arange(100.0), [len(block) for block in blocks], 1)
    assert law.working_set(1.0) == pytest.approx(400 / 99)
    assert law.kept(3.0) == pytest.approx(3 * 99 / 400)
    assert law.within(1.9) == 0
    assert law.within(2.0) == pytest.approx((49 * 2 + 49 * 4) / 400)  # the last token of a prompt is computed
    assert law.kept(20.0) == np.inf
    assert law.within(law.kept(20.0)) == law.within(2.0)


def test_what_comes_back_at_once_is_found_by_the_first_tier():
    law = Recorded.of([[1, 2], [1, 2], [3, 4], [3, 4]], [0.0, 0.0, 1.0, 1.0], [8, 8, 8, 8], 4)
    assert sum(ladder(law, [4.0, 4.0])) == pytest.approx(14 / 32)


def test_what_never_returns_is_never_found():
    law = Recorded.of([[1], [2], [3]], [0.0, 1.0, 2.0], [4, 4, 4], 4)
    assert law.within(np.inf) == 0
    assert law.kept(1.0) == np.inf  # nothing that was ever asked for again is dropped


@pytest.mark.parametrize("arrival", [[0.0, 0.0], [0.0], [-1.0, 1.0]])
def test_a_stream_without_time_is_refused(arrival):
    with pytest.raises(ValueError, match="arrival must"):
        Recorded.of([[1], [1]], arrival, [4, 4], 4)
