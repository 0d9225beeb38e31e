"""What many draws say of a number: the median, one of the draws itself, and the ends of nine in ten of them."""

from __future__ import annotations

from math import ceil, isfinite

TAIL = 0.05


def median(drawn: list[float]) -> float:
    """Return the lower median: one of the draws itself."""
    ordered = list(drawn)
    ordered.sort(key=lambda one: one)
    return ordered[ceil(0.5 * len(ordered)) - 1]


def mean_of(drawn: list[float]) -> float:
    """Return the mean, 0 of none."""
    total = 0.0
    for one in drawn:
        total += one
    return total / max(len(drawn), 1)


def interval(value: float, drawn: list[float]) -> list[float]:
    """Return the lower median of the draws, and the ends between which all but `TAIL` at each side of them lie.

    Three times the value where there are none.
    """
    ordered = [one for one in drawn if isfinite(one)]
    if len(ordered) < 1:
        return fixed(value)
    ordered.sort(key=lambda one: one)
    low = ordered[max(ceil(TAIL * len(ordered)) - 1, 0)]
    high = ordered[ceil((1 - TAIL) * len(ordered)) - 1]
    return [median(ordered), low, high]


def fixed(value: float) -> list[float]:
    """Return a number that no draw moves."""
    return [value, value, value]
