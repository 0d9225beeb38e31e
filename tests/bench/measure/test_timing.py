"""Timing, with a clock that is turned by hand."""

import itertools

import pytest
from hypothesis import given, strategies as st

from inference_math.workload.points import points
from inference_math_bench.measure.timing import rounds, sample

CHOSEN = points(2**12, 2**10, fp8=False)


class FakeClock:
    """Each run takes the next of some seconds, and time passes by as much."""

    def __init__(self, seconds):
        self.time, self.runs, self._seconds = 0.0, 0, itertools.cycle(seconds)

    def now(self):
        return self.time

    def seconds(self, run):
        run()
        self.runs += 1
        taken = next(self._seconds)
        self.time += taken
        return taken


def test_median_and_quartiles_are_those_of_the_repeats_after_the_warm_up():
    found = sample(FakeClock([900.0, 1.0, 2.0, 3.0, 4.0, 100.0]), lambda: None)
    assert (found.low, found.median, found.high, found.repeats) == (2.0, 3.0, 4.0, 5)


@given(seconds=st.floats(1e-6, 10))
def test_repeats_fill_their_time_within_limits(seconds):
    clock, calls = FakeClock([seconds]), []
    found = sample(clock, lambda: calls.append(1))
    assert 5 <= found.repeats <= 50
    # A run to warm up, and on for a twentieth of a second, but no more than fifty.
    warm = len(calls) - found.repeats
    assert warm == 1 or (1 < warm <= 50 and (warm - 1) * seconds < 0.05 + 1e-9)
    assert warm == 50 or warm * seconds >= 0.05 - 1e-9
    assert found.repeats == 50 or found.repeats == 5 or found.repeats * seconds >= 0.15 - 1e-9
    assert found.repeats == 5 or (found.repeats - 1) * seconds < 0.15 + 1e-9


@pytest.mark.parametrize("broken", [0.0, float("nan"), float("inf")])
def test_a_clock_that_does_not_work_is_refused(broken):
    with pytest.raises(ValueError, match="does the clock work"):
        sample(FakeClock([broken]), lambda: None)


def test_every_round_has_all_points_and_the_time_limit_ends_them():
    clock, found = FakeClock([1.0]), []
    for number, point in rounds(CHOSEN, set(), set(), clock, 2.5 * len(CHOSEN), 0):
        found.append((number, point))
        clock.time += 1.0
    assert len(found) == len(set(found)) == -(-5 * len(CHOSEN) // 2)
    for number in (1, 2):
        assert {point for n, point in found if n == number} == set(CHOSEN)
    assert {n for n, _ in found} == {1, 2, 3}


def test_what_is_done_is_not_done_again():
    done = {(1, point) for point in CHOSEN[::2]}
    clock = FakeClock([1.0])
    first = list(itertools.islice(rounds(CHOSEN, done, set(), clock, 1e9, 0), len(CHOSEN)))
    assert not done & set(first)
    assert {point for number, point in first if number == 1} == set(CHOSEN) - {p for _, p in done}


def test_what_does_not_fit_is_skipped_in_later_rounds_and_nothing_left_ends_them():
    clock, skipped, seen = FakeClock([1.0]), set(), []
    for number, point in rounds(CHOSEN, set(), skipped, clock, 1e9, 0):
        seen.append((number, point))
        skipped.add(point)
    assert len(seen) == len(CHOSEN)
    assert {number for number, _ in seen} == {1}
