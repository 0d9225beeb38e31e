"""The architectures, and searches over a range: where something ends, and where a function is highest."""

from __future__ import annotations

from collections.abc import Callable

from inference_math.unit.types import OperatingPoint

ARCHITECTURES = ["aggregated", "chunked", "disaggregated"]
HALVINGS = 27  # of an interval: no answer is asked for to more than eight digits
CUTS = 22  # of an interval around a peak: places to five digits are heights to ten
LOOKS = 24  # at a range before the search for a peak in it
GOLDEN = 0.6180339887498949
NEVER = float("nan")
INFEASIBLE = OperatingPoint()


def edge(good: Callable[[float], bool], inside: float, outside: float) -> float:
    """Return the number nearest to `outside` that is good, starting from `inside`, which is."""
    if good(outside):
        return outside
    for _ in range(HALVINGS):
        middle = (inside + outside) / 2
        if good(middle):
            inside = middle
        else:
            outside = middle
    return inside


def peak(height: Callable[[float], float], low: float, high: float, cuts: int) -> float:
    """Return where a function with one peak between `low` and `high` is highest, by golden section."""
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = height(left), height(right)
    for _ in range(cuts):
        if at_left < at_right:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = height(right)
        else:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = height(left)
    return left


def highest(height: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function is highest between `low` and `high`: the best of a grid, then the peak beside it."""
    width, best, top = (high - low) / LOOKS, high, height(high)
    for i in range(LOOKS):
        place = low + i * width
        here = height(place)
        if here > top:
            best = place
            top = here
    inner = peak(height, max(low, best - width), min(high, best + width), CUTS)
    return inner if height(inner) > top else best
