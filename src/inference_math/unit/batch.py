"""What B requests see whose prompts are computed whole, prefill first: means and quantiles of their steps, exactly.

Beside a tagged request each of the others prefills with probability 1/n_out, independently [C12]. So a step takes one
of B values, and its mean is a sum: no step need be convex, linear or anything else for it to hold.
"""

from __future__ import annotations

from collections.abc import Callable
from math import floor, inf

from inference_math.unit.types import Step

MOST_TOGETHER = 4096  # decodes or prompts in a step
NEGLIGIBLE = 1e-15


def largest_whole(most: float, good: Callable[[int], bool]) -> int:
    """Return the largest whole number from 1 to `most` that is good, 0 if none; what is good does not come back."""
    low, high = 0, floor(most) + 1
    while high - low > 1:
        middle = (low + high) // 2
        if good(middle):
            low = middle
        else:
            high = middle
    return low


def largest_from(guess: int, most: float, good: Callable[[int], bool]) -> int:
    """Return `largest_whole`, looked for from a guess outwards: quick where the guess is near."""
    top = floor(most)
    low, high, width = 0, top + 1, 1
    at = min(max(guess, 1), top)
    while low < at < high:
        if good(at):
            low = at
            at += width
        else:
            high = at
            at -= width
        width *= 2
    return low + largest_whole(high - low - 1, lambda k: good(low + k))


def concurrent_prefill_pmf(B: int, n_out: float) -> list[list[float]]:
    """Return (number, share) of the other requests that prefill in a step, Binom(B - 1, 1/n_out) [C12].

    From its most likely number outwards, as far as shares count.
    """
    others = B - 1
    if n_out <= 1:  # whoever is not there yet prefills: answers of one token have no decode
        return [[others, 1.0]]
    odds = 1 / (n_out - 1)
    middle = min(floor(B / n_out), others)
    rows, total = [[middle, 1.0]], 1.0
    share, k = 1.0, middle
    while k < others and share > NEGLIGIBLE:
        share *= (others - k) / (k + 1) * odds
        k += 1
        rows.append([k, share])
        total += share
    share, k = 1.0, middle
    while k > 0 and share > NEGLIGIBLE:
        share *= k / ((others - k + 1) * odds)
        k -= 1
        rows.append([k, share])
        total += share
    return [[row[0], row[1] / total] for row in rows]


def mean_seen(step: Step, B: int, n_out: float, own: int) -> float:
    """Return the mean step that a request sees which prefills itself (`own` = 1) or decodes (0) [C13, C14]."""
    mean = 0.0
    for count, share in concurrent_prefill_pmf(B, n_out):
        mean += share * step(B - own - count, own + count)
    return mean


def seen(step: Step, B: int, n_out: float, own: int, quantile: float) -> float:
    """Return the same, or above 0 that quantile of the steps."""
    if not quantile > 0:
        return mean_seen(step, B, n_out, own)
    steps = [[step(B - own - row[0], own + row[0]), row[1]] for row in concurrent_prefill_pmf(B, n_out)]
    steps.sort(key=lambda row: row[0])
    reached = 0.0
    for seconds, share in steps:
        reached += share
        if reached >= quantile * (1 - 1e-12):
            return seconds
    return steps[-1][0]


def round_trip(step: Step, B: int, n_out: float) -> float:
    """Return the mean seconds from a request's admission to its end: its prefill's step, and n_out - 1 decodes."""
    return mean_seen(step, B, n_out, 1) + (n_out - 1) * mean_seen(step, B, n_out, 0)


def largest_batch(step: Step, guess: int, most: float, n_out: float, tpot: float, ttft: float, quantile: float) -> int:
    """Return the largest batch within limits, aggregated, at most so many; an infinite limit is none."""

    def good(B: int) -> bool:
        if tpot < inf and seen(step, B, n_out, 0, quantile) > tpot:
            return False
        return ttft >= inf or seen(step, B, n_out, 1, quantile) <= ttft

    return largest_from(guess, most, good)
