"""The best batch, chunk and pools within limits: searches over whole numbers and over peaks.

A step is a function of decodes and prompts, a chunk counting as its share of a prompt. It grows with both; that is all
the searches need: between candidates a look at a grid finds the highest peak before its top is found.
"""

from __future__ import annotations

from collections.abc import Callable
from math import floor

from inference_math.perf.batch import MOST_TOGETHER, largest_whole, round_trip, seen
from inference_math.perf.types import Row, Step
from inference_math.theory import chunk_size as _chunk_size

__all__ = ["ARCHITECTURES", "NONE", "aggregated", "chunked", "disaggregated", "edge", "gap_beside"]

chunk_size = _chunk_size.plain

ARCHITECTURES = ["aggregated", "chunked", "disaggregated"]
HALVINGS = 27  # of an interval: no answer is asked for to more than eight digits
CUTS = 22  # of an interval around a peak: places to five digits are heights to ten
LOOKS = 24  # at a range before the search for a peak in it
GOLDEN = 0.6180339887498949
NEARLY_ALL = 0.99
NEVER = float("nan")
ALWAYS = 1e300  # requests/s: no bound
NONE: Row = {
    "rate": 0.0,
    "batch": 0.0,
    "decodes": 0.0,
    "chunk": NEVER,
    "prefill_units": NEVER,
    "computed": NEVER,
    "ttft": NEVER,
    "step": NEVER,
    "tpot": NEVER,
}


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
    for _ in range(CUTS):
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
    inner = peak(height, max(low, best - width), min(high, best + width))
    return inner if height(inner) > top else best


def aggregated(step: Step, batch: int, n_out: float, quantile: float) -> Row:
    """Take the largest batch, which `batch.largest_within` finds."""
    if batch < 1:
        return NONE
    whole = round_trip(step, batch, n_out)
    return {
        "rate": batch / whole,
        "batch": batch,
        "chunk": NEVER,
        "prefill_units": NEVER,
        "ttft": seen(step, batch, n_out, 1, quantile),
        "step": whole / n_out,
        "tpot": seen(step, batch, n_out, 0, quantile),
    }


def gap_beside(seconds: float, load: float, prompts: float, often: float, quantile: float) -> float:
    """Return the gap that a promise is about, beside chunks that so often are there: their mean step, `seconds`.

    Or at a quantile that of a step which begins a prompt, and waits for what that loads, if such ones are more than the
    quantile leaves; else that of one which does not.
    """
    begun = min(prompts, 1.0)
    if not (quantile > 0 and load > seconds and begun < 1):
        return seconds
    own: float = (seconds - begun * load) / (1 - begun)  # of which `seconds` are the mean with those that wait
    return load if often * begun > 1 - quantile else own


def chunked(
    step: Step, load: float, quantile: float, places: float, n_in: float, n_out: float, tpot: float, ttft: float
) -> Row:
    """Take the mean number of decodes with the highest rate, and the smallest chunk that feeds them within limits.

    The limit on TPOT is for `gap_beside` prompts that need `load` seconds each from a store.
    """
    decoded = n_out - 1  # the first token is the prompt's
    room = min(places, MOST_TOGETHER)

    def in_limit(b: float, chunk: float) -> bool:
        prompts = chunk / n_in
        return gap_beside(step(b, prompts), load, prompts, 1.0, quantile) <= tpot

    def prompt(b: float, chunk: float) -> float:
        seconds: float = (n_in / chunk + 1) * step(b, chunk / n_in)
        return seconds  # it begins and ends within chunks

    def in_time(b: float) -> float:
        balance, free = chunk_size(b, n_in, decoded), room - b
        # Prompts under way hold places, too: balance / chunk of one, or balance / n_in where a chunk is longer.
        if balance > free * n_in or not free > 0:
            return 0.0
        least: float = max(balance, max(balance / free, 1.0))
        if not in_limit(b, least):
            return 0.0
        if prompt(b, least) <= ttft:
            return least
        most = edge(lambda chunk: in_limit(b, chunk), least, max(4 * n_in, least))
        quickest = highest(lambda chunk: -prompt(b, chunk), least, most)
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
            "rate": b / (decoded * mean),
            "batch": b,
            "chunk": chunk,
            "prefill_units": NEVER,
            "ttft": prompt(b, chunk),
            "step": mean,
            "tpot": mean,
        }

    few = 1e-3
    if not row(few)["rate"] > 0:
        return NONE
    most = edge(lambda b: row(b)["rate"] > 0, few, max(room, few))
    return row(highest(lambda b: row(b)["rate"], few, most))


def disaggregated(
    step: Step,
    capacity: float,
    places: float,
    n_in: float,
    n_out: float,
    tpot: float,
    ttft: float,
    units: int,
    sent: float,
) -> Row:
    """Take the pools of which the slower one finishes most, prompts computed together as far as that helps.

    A request keeps the link of a unit busy for `sent` seconds, on either side.
    """
    fits = tpot - sent / (n_out - 1)
    linked = 1 / sent if sent > 0 else ALWAYS
    batch = largest_whole(min(places, MOST_TOGETHER), lambda b: step(b, 0.0) <= fits)
    together = largest_whole(min(capacity / n_in, MOST_TOGETHER), lambda k: step(0.0, k) <= ttft)
    if batch < 1 or together < 1:
        return NONE
    gap = step(batch, 0.0)
    decode = min(batch / ((n_out - 1) * gap), linked)  # requests/s; the first token is the prefill's

    def split(prompts: int) -> list[float]:
        """Return (requests/s of a unit, prefill units, seconds of a prefill) of the best split."""
        seconds, best, pool = step(0.0, prompts), 0.0, 0.0
        fed = min(prompts / seconds, linked)
        balance = floor(units * decode / (fed + decode))  # where both pools are equally fast
        for prefill in [max(1, min(units - 1, balance)), max(1, min(units - 1, balance + 1))]:
            slower = min(prefill * fed, (units - prefill) * decode) / units
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
        "rate": rate,
        "batch": batch,
        "chunk": prompts * n_in,
        "prefill_units": prefill_units,
        "ttft": seconds,
        "step": gap,
        "tpot": gap + sent / (n_out - 1),
    }
