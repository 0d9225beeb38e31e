"""Timing: warm-up, repeats, medians and quartiles, rounds within a time limit.

Whoever keeps the time is handed in, so that the tests can turn the clock by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from inference_math.workload.points import Point, shuffled

__all__ = ["Clock", "Sample", "rounds", "sample"]

# Short: what moves in minutes shows between rounds, and a second round says more than a second's repeats.
_WARM_UP, _WARM_SECONDS = 1, 0.05  # clocks and power of a short run come from what ran before
_FEWEST, _MOST, _SECONDS = 5, 50, 0.15


class Clock(Protocol):
    """Keeps the time."""

    def now(self) -> float:
        """Return seconds since some moment."""

    def seconds(self, run: Callable[[], Any]) -> float:
        """Run once with cold caches and return how long it took on the device."""


@dataclass(frozen=True)
class Sample:
    """The repeats of one run: median and quartiles in seconds, and how many."""

    median: float
    low: float
    high: float
    repeats: int


def sample(clock: Clock, run: Callable[[], Any]) -> Sample:
    """Warm up for a run and a twentieth of a second, then repeat a run.

    At least 5 times, and on until 0.15 seconds or 50 repeats are full.

    Raises
    ------
    ValueError
        For a clock that returns no positive, finite time.
    """
    warm, count = 0.0, 0
    while count < _WARM_UP or (count < _MOST and warm < _WARM_SECONDS):
        warm, count = warm + clock.seconds(run), count + 1
    found: list[float] = []
    while len(found) < _FEWEST or (len(found) < _MOST and sum(found) < _SECONDS):
        seconds = clock.seconds(run)
        if not 0 < seconds < float("inf"):
            raise ValueError(f"a run must take a positive time, not {seconds!r} s: does the clock work?")
        found.append(seconds)
    low, median, high = np.quantile(found, (0.25, 0.5, 0.75)).tolist()
    return Sample(median, low, high, len(found))


def rounds(
    chosen: Iterable[Point],
    done: Collection[tuple[int, Point]],
    skipped: Collection[Point],
    clock: Clock,
    until: float,
    seed: int,
) -> Iterator[tuple[int, Point]]:
    """Yield (round, point) of what is not done yet, all points in each round, as long as the clock is before `until`.

    The spread of a point between rounds is what it moves by in minutes; quartiles are what it moves by in a second.
    Points may be added to `skipped` on the way.
    """
    every = sorted(set(chosen))
    number = 1
    while any(point not in skipped for point in every):
        for point in shuffled(every, number, seed):
            if (number, point) in done or point in skipped:
                continue
            if clock.now() >= until:
                return
            yield number, point
        number += 1
