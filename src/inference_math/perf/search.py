"""The best batch, chunk and pools within limits: searches over whole numbers and over one peak.

A step is a function of decodes and prompts, a chunk counting as its share of a prompt. It grows with both, and it is
convex, as of dense models it is.
"""

from __future__ import annotations

from collections.abc import Callable
from math import floor

from inference_math.theory import chunk_size as _chunk_size

__all__ = ["NONE", "aggregated", "chunked", "disaggregated", "largest_within", "seen"]

chunk_size = _chunk_size.plain

Step = Callable[[float, float], float]
Row = dict[str, float]

MOST_TOGETHER = 4096  # decodes or prompts in a step
HALVINGS = 34  # of an interval: no answer is asked for to more than nine digits
GOLDEN = 0.6180339887498949
NEGLIGIBLE = 1e-18
NEARLY_ALL = 0.99
NEVER = float("nan")
NONE = {
    "rate": 0.0, "batch": 0.0, "chunk": NEVER, "prefill_units": NEVER, "ttft": NEVER, "step": NEVER, "tpot": NEVER,
}  # fmt: skip


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


def peak(height: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function with one peak between `low` and `high` is highest, by golden section."""
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = height(left), height(right)
    for _ in range(HALVINGS):
        if at_left < at_right:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = height(right)
        else:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = height(left)
    return left


def beside(B: int, n_out: float) -> list[list[float]]:
    """Return (number, share) of the other requests that prefill in a step, Binom(B - 1, 1/n_out) [C12].

    From its most likely number outwards, as far as shares count.
    """
    others, odds = B - 1, 1 / (n_out - 1)
    middle = floor(B / n_out)
    found, total = [[middle, 1.0]], 1.0
    share, k = 1.0, middle
    while k < others and share > NEGLIGIBLE:
        share *= (others - k) / (k + 1) * odds
        k += 1
        found.append([k, share])
        total += share
    share, k = 1.0, middle
    while k > 0 and share > NEGLIGIBLE:
        share *= k / ((others - k + 1) * odds)
        k -= 1
        found.append([k, share])
        total += share
    return [[row[0], row[1] / total] for row in found]


def seen(step: Step, B: int, n_out: float, own: int, quantile: float) -> float:
    """Return the mean step that a request sees which prefills itself (`own` = 1) or not (0); or a quantile, above 0."""
    steps = [[step(B - own - row[0], own + row[0]), row[1]] for row in beside(B, n_out)]
    if not quantile > 0:
        mean = 0.0
        for seconds, share in steps:
            mean += seconds * share
        return mean
    steps.sort(key=lambda row: row[0])
    reached = 0.0
    for seconds, share in steps:
        reached += share
        if reached >= quantile * (1 - 1e-12):
            return seconds
    return steps[-1][0]


def largest_within(step: Step, places: float, n_out: float, tpot: float, ttft: float, quantile: float) -> int:
    """Return the largest batch within limits, prefill first, at most `places`."""

    def good(B: int) -> bool:
        return seen(step, B, n_out, 0, quantile) <= tpot and seen(step, B, n_out, 1, quantile) <= ttft

    return largest_whole(min(places, MOST_TOGETHER), good)


def aggregated(step: Step, places: float, n_out: float, tpot: float, ttft: float, quantile: float) -> Row:
    """Take the largest batch."""
    batch = largest_within(step, places, n_out, tpot, ttft, quantile)
    if batch < 1:
        return NONE
    # Each of B requests prefills in one of n_out steps: the mean over both kinds of step.
    gap = seen(step, batch, n_out, 0, 0)
    whole = ((n_out - 1) * gap + seen(step, batch, n_out, 1, 0)) / n_out
    return {
        "rate": batch / (n_out * whole), "batch": batch, "chunk": NEVER, "prefill_units": NEVER,
        "ttft": seen(step, batch, n_out, 1, quantile), "step": whole, "tpot": seen(step, batch, n_out, 0, quantile),
    }  # fmt: skip


def chunked(step: Step, places: float, n_in: float, n_out: float, tpot: float, ttft: float) -> Row:
    """Take the mean number of decodes with the highest rate, and the smallest chunk that feeds them within limits."""
    decoded = n_out - 1  # the first token is the prompt's
    room = min(places, MOST_TOGETHER)

    def prompt(b: float, chunk: float) -> float:
        seconds: float = (n_in / chunk + 1) * step(b, chunk / n_in)
        return seconds  # it begins and ends within chunks

    def in_time(b: float) -> float:
        balance, free = chunk_size(b, n_in, decoded), room - b
        # Prompts under way hold places, too: balance / chunk of one, or balance / n_in where a chunk is longer.
        if balance > free * n_in or not free > 0:
            return 0.0
        least: float = max(balance, max(balance / free, 1.0))
        if step(b, least / n_in) > tpot:
            return 0.0
        if prompt(b, least) <= ttft:
            return least
        most = edge(lambda chunk: step(b, chunk / n_in) <= tpot, least, max(4 * n_in, least))
        quickest = peak(lambda chunk: -prompt(b, chunk), least, most)
        if prompt(b, quickest) > ttft:
            return 0.0
        return edge(lambda chunk: prompt(b, chunk) <= ttft, quickest, least)

    def row(b: float) -> Row:
        chunk = in_time(b)
        if not chunk > 0:
            return NONE
        bare, mixed = step(b, 0.0), step(b, chunk / n_in)
        # Where the chunk is larger than it must be, not every step has one.
        mean = bare + min(1.0, chunk_size(b, n_in, decoded) / chunk) * (mixed - bare)
        return {
            "rate": b / (decoded * mean), "batch": b, "chunk": chunk, "prefill_units": NEVER,
            "ttft": prompt(b, chunk), "step": mean, "tpot": mean,
        }  # fmt: skip

    few = 1e-3
    if not row(few)["rate"] > 0:
        return NONE
    most = edge(lambda b: row(b)["rate"] > 0, few, max(room, few))
    best = peak(lambda b: row(b)["rate"], few, most)
    full, inner = row(most), row(best)
    return inner if inner["rate"] > full["rate"] else full


def disaggregated(step: Step, capacity: float, places: float, n_in: float, n_out: float, tpot: float, ttft: float,
                  units: int) -> Row:  # fmt: skip
    """Take the pools of which the slower one finishes most, prompts computed together as far as that helps."""
    batch = largest_whole(min(places, MOST_TOGETHER), lambda b: step(b, 0.0) <= tpot)
    together = largest_whole(min(capacity / n_in, MOST_TOGETHER), lambda k: step(0.0, k) <= ttft)
    if batch < 1 or together < 1:
        return NONE
    gap = step(batch, 0.0)
    decode = batch / ((n_out - 1) * gap)  # requests/s; the first token is the prefill's

    def split(prompts: int) -> list[float]:
        """Return (requests/s of a unit, prefill units, seconds of a prefill) of the best split."""
        seconds, best, pool = step(0.0, prompts), 0.0, 0
        for prefill in range(1, units):
            slower = min(prefill * prompts / seconds, (units - prefill) * decode) / units
            if slower > best:
                best = slower
                pool = prefill
        return [best, pool, seconds]

    # Together prompts share the weight read, so more are faster; but they wait for each other: take the fewest that
    # give nearly all.
    enough = NEARLY_ALL * split(together)[0]
    prompts = largest_whole(together, lambda k: split(k)[0] < enough) + 1
    rate, prefill_units, seconds = split(prompts)
    return {
        "rate": rate, "batch": batch, "chunk": prompts * n_in, "prefill_units": prefill_units,
        "ttft": seconds, "step": gap, "tpot": gap,
    }  # fmt: skip
