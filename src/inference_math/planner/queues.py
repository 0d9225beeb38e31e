"""What an architecture serves when requests arrive at random, by simulation; the planner's page runs this, too."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, floor, inf
from typing import Any

from inference_math.perf.answers import (
    GROWS,
    NEARLY,
    brought,
    computed_tokens,
    fresh_share,
    median,
    steps_of,
    whole_prompt,
)
from inference_math.perf.batch import largest_whole
from inference_math.perf.pace import Pace
from inference_math.perf.search import pooled, served
from inference_math.perf.steps import floor_terms, kv_held, kv_sent, kv_tokens, stored_tokens, unit_terms
from inference_math.perf.types import Asked, Found, Row, Step
from inference_math.simulate.goodput import goodput, requests_like, requests_of
from inference_math.simulate.schedulers import System

__all__ = [
    "PLACES",
    "by_speed",
    "corners",
    "cost",
    "decisive",
    "full",
    "idle_share",
    "longest_fits",
    "of_units",
    "pace_of",
    "reached",
    "robust",
    "share_of",
    "sizes",
    "sustained",
    "system_for",
    "trials",
    "units_of",
]

LARGER = [1, 2, 4]  # chunks, as multiples of a row's; and whole prompts
RUNGS = [0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95]  # of full load: rates at which draws are told apart
HOPEFUL = 1.2  # what a few requests told may be so much less than what is sustained
RANKED = 200  # requests that are measured for that
PLACES = [0.9, 0.05, 0.95]  # of the draws, the fastest first: what a fleet is sized for, and both ends
FULL = 0.97  # of what a replica serves at full load: beyond, queues grow for longer than is simulated
MOST_SPLITS = 24  # that are tried, evenly spread
IDLE = 1e-6  # requests/s of a replica that has next to nothing to do
FINE = 511  # rates that are tried, each a little above the last
APART = 1.0125
BEYOND = 2  # times what a KV cache has room for: more tokens are never held, even where caches grow
BEFORE = 0.25  # of the requests that are measured: so many come before them


def units_of(asked: Asked, name: str) -> int:
    """Return the units of a replica: both pools of a disaggregated one."""
    return asked["units"] if name == "disaggregated" else 1


def trials(asked: Asked, name: str, row: Row) -> list[Row]:
    """Return the rows to try: an architecture's own, with chunks up to whole prompts, or with all splits of the pools.

    At part load a larger chunk brings the first token sooner, and a request's mean TPOT bears some long steps. Pools
    that are equally fast at full load are not at part load: a prompt waits for a unit, a decode for nobody. Of the
    prompts that a row has a unit compute together, each of the unit's groups has its part.
    """
    if name == "aggregated":
        return [row]
    found: list[Row] = []
    n_in = asked["work"]["n_in"]
    if name == "disaggregated":
        apart = ceil((asked["units"] - 1) / MOST_SPLITS)
        chunk = n_in * ceil(row["chunk"] / n_in / ranks_of(asked) - 1e-6)
        for i in range(1, floor((asked["units"] - 1) / apart) + 1):
            found.append(changed(asked, row, chunk, i * apart))
        return found
    whole = max(asked["work"]["n_in"], row["chunk"])
    for factor in LARGER:
        if factor == 1 or factor * row["chunk"] < whole:
            found.append(changed(asked, row, factor * row["chunk"], row["prefill_units"]))
    if whole > row["chunk"]:
        found.append(changed(asked, row, whole, row["prefill_units"]))
    return found


def ranks_of(asked: Asked) -> int:
    """Return the groups of a unit's GPUs that share requests: of attention data parallelism and of pipeline stages."""
    layout = asked["unit"]["layout"]
    return layout["dp"] * layout["pp"]


def sizes(asked: Asked, name: str, row: Row, step: Step, traffic: float, have: float) -> list[tuple[float, int]]:
    """Return (`cost` at best, units) for each number of units that a replica may have, the best hope first.

    Pools may have as many units as are asked for, or fewer: two of six may serve what two of eight serve with ease.
    What a replica cannot serve at full load it does not serve with queues, either.
    """
    found: list[tuple[float, int]] = []
    most_units = asked["units"] if name == "disaggregated" else 0
    for fewer in range(most_units - 1):  # of equal ones the larger comes first: fewer replicas
        units = most_units - fewer
        of = of_units(asked, units)
        most = 0.0
        for one in trials(of, name, row):
            most = max(most, FULL * full(of, name, one, step))
        hope = cost(most, units * asked["unit"]["gpus"], traffic, have)
        if hope < inf:
            found.append((hope, units))
    found.sort(key=lambda pair: pair[0])
    return found


def cost(each: float, gpus: float, traffic: float, have: float) -> float:
    """Return the GPUs that a traffic takes, or where there are GPUs, minus the requests/s that they serve.

    By the requests/s of `each` replica, and its `gpus`. The less the better; infinity for what is not possible.
    """
    if each <= 0 or (have > 0 and gpus > have):
        return inf
    return -each * floor(have / gpus) if have > 0 else ceil(traffic / each) * gpus


def of_units(asked: Asked, units: int) -> Asked:
    """Return what is asked, of pools with so many units."""
    of: Any = dict(asked)
    of["units"] = units
    found: Asked = of
    return found


def changed(asked: Asked, row: Row, chunk: float, prefill: float) -> Row:
    """Return a row with another chunk, or another split of its units."""
    other: Any = dict(row)
    other["chunk"] = chunk
    other["computed"] = chunk * fresh_share(asked["work"])
    other["prefill_units"] = prefill
    found: Row = other
    return found


def system_for(asked: Asked, name: str, row: Row) -> System:
    """Return an architecture's row as what the simulator runs."""
    unit, work = asked["unit"], asked["work"]
    ranks = ranks_of(asked)
    n_in, batch = work["n_in"], ceil(row["batch"])
    cached = stored_tokens(n_in, work["alpha"])
    waits = kv_held(unit, cached) / cached / asked["read_bw"] if asked["read_bw"] > 0 and cached > 0 else 0.0
    prefill = row["prefill_units"] if name == "disaggregated" else 0
    budget, most = inf, batch
    if name == "aggregated" and asked["engine"] != "sglang":  # whose steps have a whole prompt's tokens
        budget = whole_prompt(asked) + batch * brought(asked)
    if name == "disaggregated":
        budget = computed_tokens(asked, row)
    if name == "chunked":  # prompts under way hold places, too
        budget = computed_tokens(asked, row) + batch * brought(asked)
        most = batch + ceil(row["chunk"] / n_in)
    return {
        "prefill_units": floor(prefill), "groups": ranks, "decode_units": floor(asked["units"] - prefill),
        "transfer": ranks * kv_sent(unit, n_in) / n_in / unit["pcie_bw"], "budget": budget, "max_batch": most,
        "kv_capacity": kv_tokens(unit, n_in + work["n_out"]), "grows": GROWS[asked["engine"]], "load": waits,
        "gives": unit["gives"], "brings": brought(asked),
    }  # fmt: skip


def longest_fits(mix: list[tuple[int, int, int]], system: System) -> bool:
    """Tell whether the KV cache of a unit has room for each request of a mix."""
    longest = 0
    for n_in, n_out, _ in mix:
        longest = max(longest, n_in + n_out)
    return longest <= system["kv_capacity"]


def by_speed(asked: Asked, name: str, row: Row, solved: list[Any]) -> list[int]:
    """Return the draws in the order of what a row serves under them at full load, most first."""
    order, n_in, steps = list(range(len(solved))), asked["work"]["n_in"], steps_of(asked)
    order.sort(key=lambda i: -pooled(solved[i]["mixed"], name, row, n_in, steps, asked["units"]))
    return order


def corners(asked: Asked, name: str, row: Row, solved: list[Any]) -> list[int]:
    """Return the draws that are slower than nine in ten: at full load, with a prompt alone, and with decodes alone."""
    prompts, decodes = list(range(len(solved))), list(range(len(solved)))
    prompts.sort(key=lambda i: solved[i]["mixed"](0.0, 1.0))
    decodes.sort(key=lambda i: solved[i]["mixed"](row["batch"], 0.0))
    return [placed(order, PLACES[0]) for order in [by_speed(asked, name, row, solved), prompts, decodes]]


def placed(order: list[int], place: float) -> int:
    """Return which of the draws in an order stands at a place."""
    return order[max(ceil(place * len(order)) - 1, 0)]


def robust(rows: int, slow: list[int], reach: Callable[[int, int], float]) -> tuple[int, float]:
    """Return the row that sustains most under the worst of the draws in `slow`, and what that is at best.

    The best under one draw may be bad under most: a split for fast prompts where prompts are slow. `reach` tells of a
    row and a draw about how many requests/s are sustained.
    """
    chosen = 0
    most = -1.0
    for row in range(rows):
        least = inf
        for draw in slow:
            if least > most:  # else another is better whatever comes
                least = min(least, reach(row, draw))
        if least > most:
            chosen = row
            most = least
    return chosen, HOPEFUL * most


def decisive(order: list[int], reach: Callable[[int], float]) -> list[int]:
    """Return which draws lie at `PLACES` in the order of what a replica sustains under them with queues, most first.

    Which draw is slow is another question with queues than at full load: where a prompt takes most of the limit on
    TTFT its time decides, and not that of the decodes. `reach` tells of a draw about how many requests/s are sustained.
    """
    by = list(order)
    by.sort(key=lambda i: -reach(i))
    return [placed(by, place) for place in PLACES]


def reached(
    asked: Asked, system: System, pace: Pace, gaps: list[float], lengths: list[float], mix: list[tuple[int, int, int]],
    tops: list[float], draw: int, share: float,
) -> float:  # fmt: skip
    """Return about the highest rate at which a replica keeps both limits for a share; `tops` are full loads by draw.

    Few requests do not show a queue that grows slowly, so it is never more than the draw's own full load.
    """
    usual = median(tops)
    low, high = -1, len(RUNGS)
    below = 1.0
    above = 0.0
    while high - low > 1:
        middle = floor((low + high) / 2)
        rate, kept = usual * RUNGS[middle], 0.0
        if rate <= tops[draw]:
            kept = share_of(asked, system, pace, gaps, lengths, mix, RANKED, rate, 0.0)
        if kept >= share:
            low = middle
            below = kept
        else:
            high = middle
            above = kept
    if high == len(RUNGS):
        return tops[draw]
    at = RUNGS[low] if low >= 0 else 0.0
    return min(tops[draw], usual * (at + (RUNGS[high] - at) * (below - share) / (below - above)))


def full(asked: Asked, name: str, row: Row, step: Step) -> float:
    """Return the requests/s of a replica at full load with the settings of a row, which each of its groups has."""
    n_in, units = asked["work"]["n_in"], asked["units"]
    chunk = row["chunk"] * ranks_of(asked) if name == "disaggregated" else row["chunk"]
    at = changed(asked, row, chunk, row["prefill_units"])
    return served(step, name, at, n_in, steps_of(asked), units) * units_of(asked, name)


def pace_of(asked: Asked, found: Found, factors: list[float]) -> Pace:
    """Return the steps of a unit under the coefficients `found`, a step and its prompts' part stretched."""
    unit, work = asked["unit"], asked["work"]
    room = BEYOND * kv_tokens(unit, work["n_in"] + work["n_out"])
    return Pace(unit_terms(unit, found), floor_terms(unit), factors[0], factors[1], room)


def share_of(
    asked: Asked, system: System, pace: Pace, gaps: list[float], lengths: list[float], mix: list[tuple[int, int, int]],
    count: int, rate: float, enough: float,
) -> float:  # fmt: skip
    """Return the share of a replica's requests within both limits at so many a second; see `goodput`.

    Of those that `gaps` and `lengths` make, `count` are measured, after a quarter of them and before the rest. Their
    tokens are those of the `mix`; without one, prompts are equal and answers geometric.
    """
    work, since = asked["work"], floor(BEFORE * count + 0.5)
    if len(mix) > 0:
        requests = requests_like(gaps, lengths, rate, mix)
    else:
        stored = stored_tokens(work["n_in"], work["alpha"])
        requests = requests_of(gaps, lengths, rate, max(floor(work["n_in"] + 0.5), 1), work["n_out"], stored)
    return goodput(system, pace, requests, asked["ttft"], asked["tpot"], since, since + count, enough)


def idle_share(
    asked: Asked, system: System, pace: Pace, gaps: list[float], lengths: list[float], mix: list[tuple[int, int, int]],
    count: int,
) -> float:  # fmt: skip
    """Return the share of the requests within both limits on a replica that has next to nothing to do."""
    return share_of(asked, system, pace, gaps, lengths, mix, count, IDLE, 0.0)


def sustained(tops: list[float], good: Callable[[int, float], bool]) -> list[float]:
    """Return the highest rate that is good at each of `PLACES`.

    `tops` has for each place what a replica serves at full load; `good` tells of a place and a rate whether it keeps
    its promise. Rates go down from the fastest, each by the same ratio; 0 where none is good.
    """
    most = FULL * max(tops[0], max(tops[1], tops[2]))

    def rate(k: int) -> float:
        return most * APART ** (k - FINE)

    def highest(place: int, low: int, high: int) -> int:
        return between(low, high, lambda k: rate(k) <= FULL * tops[place] * NEARLY and good(place, rate(k)))

    best = highest(0, 0, FINE)
    ends = [best, highest(1, best, FINE), highest(2, 0, best)]
    return [rate(k) if k > 0 else 0.0 for k in ends]


def between(low: int, high: int, good: Callable[[int], bool]) -> int:
    """Return the largest whole number above `low` and up to `high` that is good, `low` if none is."""
    return low + largest_whole(high - low, lambda k: good(low + k))
