"""What given settings do at full load at some costs, and which part of the limits they take."""

from __future__ import annotations

from math import floor

from inference_math.perf.asked import NEARLY, fresh_share, longest_step, sent_seconds, sharing, steps_of
from inference_math.perf.batch import round_trip, seen
from inference_math.perf.search import ALWAYS, NEVER, chunk_size, edge, gap_beside
from inference_math.perf.types import Asked, Row, Step, StepCosts

__all__ = ["loaded", "pools_each", "pools_rate", "settings_row", "strain"]


def settings_row(batch: float, chunk: float, prefill: float) -> Row:
    """Return a row of settings alone; its rate only tells that there is one."""
    return {
        "rate": 1.0,
        "batch": batch,
        "decodes": batch,
        "chunk": chunk,
        "prefill_units": prefill,
        "computed": NEVER,
        "ttft": NEVER,
        "step": NEVER,
        "tpot": NEVER,
    }


def loaded(asked: Asked, one: StepCosts, name: str, row: Row) -> Row:
    """Return what the settings of a row do at full load at some costs, whatever limits say; TTFT with its front.

    `decodes` are those in flight at that rate: of pools whose prompts are the slower part, fewer than `batch`, the most
    that a unit may have.
    """
    batch, chunk, quantile = row["batch"], row["chunk"], asked["quantile"]
    n_in, steps, step, front = asked["work"]["n_in"], steps_of(asked), one["mixed"], one["front"]
    if name == "aggregated":
        whole = round_trip(step, floor(batch), steps)
        first, gap = seen(step, floor(batch), steps, 1, quantile), seen(step, floor(batch), steps, 0, quantile)
        return done(asked, row, batch / whole, batch, front + first, whole / steps, gap)
    if name == "chunked":
        prompts = chunk / n_in
        bare, mixed = step(batch, 0.0), step(batch, prompts)
        # Where the chunk is larger than it must be, not every step has one.
        often = min(1.0, chunk_size(batch, n_in, steps - 1) / chunk)
        mean = bare + often * (mixed - bare)
        gap = mean
        if quantile > 0:
            gap = gap_beside(mixed, one["load"], prompts, often, quantile) if often > 1 - quantile else bare
        return done(asked, row, batch / ((steps - 1) * mean), batch, front + (n_in / chunk + 1) * mixed, mean, gap)
    prefill = row["prefill_units"]
    rate = pools_rate(asked, step, row, prefill)
    decodes = in_flight(step, batch, steps, rate * asked["units"] / (asked["units"] - prefill))
    gap = step(decodes, 0.0)
    first = front + step(0.0, chunk / n_in)
    return done(asked, row, rate, decodes, first, gap, gap + sent_seconds(asked) / (steps - 1))


def done(asked: Asked, row: Row, rate: float, decodes: float, first: float, step: float, gap: float) -> Row:
    """Return a row that does so much with the settings of another one."""
    return {
        "rate": rate,
        "batch": row["batch"],
        "decodes": decodes,
        "chunk": row["chunk"],
        "prefill_units": row["prefill_units"],
        "computed": row["chunk"] * fresh_share(asked["work"]),
        "ttft": first,
        "step": step,
        "tpot": gap / sharing(asked),
    }


def pools_each(asked: Asked, step: Step, row: Row) -> list[float]:
    """Return the requests/s that a prefill unit feeds, and that a decode unit takes: its steps', or its link's."""
    sent, steps = sent_seconds(asked), steps_of(asked)
    prompts, linked = row["chunk"] / asked["work"]["n_in"], 1 / sent if sent > 0 else ALWAYS
    taken = row["batch"] / ((steps - 1) * step(row["batch"], 0.0))
    return [min(prompts / step(0.0, prompts), linked), min(taken, linked)]


def pools_rate(asked: Asked, step: Step, row: Row, prefill: float) -> float:
    """Return the requests/s of a unit of pools of which so many prefill: those of the slower pool."""
    fed, taken = pools_each(asked, step, row)
    slower: float = min(prefill * fed, (asked["units"] - prefill) * taken)
    return slower / asked["units"]


def in_flight(step: Step, most: float, steps: float, rate: float) -> float:
    """Return the decodes of a unit, at most so many, that finish `rate` requests a second."""

    def few(b: float) -> bool:
        return b <= rate * (steps - 1) * step(b, 0.0) * NEARLY

    return edge(few, 0.0, most)


def strain(asked: Asked, one: StepCosts, name: str, row: Row) -> float:
    """Return which part of its limits an architecture's settings take at some costs; above 1 they miss one."""
    n_in, steps, tpot, step = asked["work"]["n_in"], steps_of(asked), longest_step(asked), one["mixed"]
    batch, prompts, quantile = row["batch"], row["chunk"] / n_in, asked["quantile"]
    if name == "aggregated":
        gap, first = seen(step, floor(batch), steps, 0, quantile), seen(step, floor(batch), steps, 1, quantile)
    elif name == "chunked":
        mixed = step(batch, prompts)
        gap, first = gap_beside(mixed, one["load"], prompts, 1.0, quantile), (1 / prompts + 1) * mixed
    else:
        gap, first = step(batch, 0.0) + sent_seconds(asked) / (steps - 1), step(0.0, prompts)
    part: float = max(gap / tpot, (one["front"] + first) / asked["ttft"])
    return part
