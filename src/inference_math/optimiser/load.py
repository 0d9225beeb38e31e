"""What given settings do at full load at some costs, and which part of the limits they take."""

from __future__ import annotations

from math import floor, inf

from msgspec.structs import replace

from inference_math.optimiser.search import edge
from inference_math.theory.plain import chunk_size_full
from inference_math.unit.asked import NEARLY
from inference_math.unit.batch import round_trip, seen
from inference_math.unit.types import Row, Step, StepCosts, Target

LITTLE = 1e-9  # of a unit: GPUs divide as floating-point numbers


def settings_row(batch: float, chunk: float, prefill: float, decode: float) -> Row:
    """Return a row of settings alone; its rate only tells that there is one."""
    return Row(rate=1.0, batch=batch, decodes=batch, chunk=chunk, prefill_units=prefill, decode_units=decode)


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


def loaded(target: Target, one: StepCosts, name: str, row: Row) -> Row:
    """Return what the settings of a row do at full load at some costs, whatever limits say; TTFT with its front.

    `decodes` are those in flight at that rate: of pools whose prompts are the slower part, fewer than `batch`, the most
    that a unit may have.
    """
    batch, chunk, quantile = row.batch, row.chunk, target.quantile
    n_in, steps, step, front = target.n_in, target.steps, one.mixed, one.front
    if name == "aggregated":
        whole = round_trip(step, floor(batch), steps)
        first, gap = seen(step, floor(batch), steps, 1, quantile), seen(step, floor(batch), steps, 0, quantile)
        return done(target, row, batch / whole, batch, front + first, whole / steps, gap)
    if name == "chunked":
        prompts, groups = chunk / n_in, target.groups
        bare, lone, mixed = step(batch, 0.0), step(batch, prompts), one.apiece(batch, prompts)
        # Where the chunk is larger than it must be, not every group has one in every step. All wait for one that has;
        # each other one that has, too, makes it longer by as much.
        often = min(1.0, chunk_size_full(batch, n_in, steps) / (groups * chunk))
        any_has = 1 - (1 - often) ** groups
        more = (mixed - lone) / max(groups - 1, 1)
        mean = bare + any_has * (lone - bare) + (groups * often - any_has) * more
        own, gap = lone + often * (groups - 1) * more, mean
        if quantile > 0:
            gap = gap_beside(mixed, one.load, prompts, any_has, quantile) if any_has > 1 - quantile else bare
        return done(target, row, batch / ((steps - 1) * mean), batch, front + (n_in / chunk + 1) * own, mean, gap)
    rate = pools_rate(target, one, row)
    decodes = in_flight(step, batch, steps, rate / row.decode_units)
    gap = step(decodes, 0.0)
    first = front + target.handover + one.prefill(0.0, chunk / n_in)
    each = target.share * rate / used_units(target, row)
    return done(target, row, each, decodes, first, gap, gap + target.sent / (steps - 1))


def done(target: Target, row: Row, rate: float, decodes: float, first: float, step: float, gap: float) -> Row:
    """Return a row that does so much with the settings of another one."""
    computed, tpot = row.chunk * target.fresh, gap / target.sharing
    return replace(row, rate=rate, decodes=decodes, computed=computed, ttft=first, step=step, tpot=tpot)


def pools_each(target: Target, one: StepCosts, row: Row) -> list[float]:
    """Return the requests/s that a prefill unit feeds, and that a decode unit takes."""
    return [fed_by(target, one, row.chunk / target.n_in), taken_by(target, one, row.batch)]


def fed_by(target: Target, costs: StepCosts, prompts: float) -> float:
    """Return the requests/s that a prefill unit feeds with so many prompts together: its steps', or its link's."""
    return min(prompts / costs.prefill(0.0, prompts), carried(target) * target.prefill_gpus)


def taken_by(target: Target, costs: StepCosts, batch: float) -> float:
    """Return the requests/s that a decode unit takes with so many decodes: its steps', or its link's."""
    return min(batch / ((target.steps - 1) * costs.mixed(batch, 0.0)), carried(target))


def carried(target: Target) -> float:
    """Return the requests/s whose KV caches the link of a decode unit carries."""
    return 1 / target.sent if target.sent > 0 else inf


def left_to_decode(units: float, prefill: float, size: float) -> int:
    """Return how many of some units decode on the GPUs that prefill units leave, each `size` times as large."""
    return floor(units - prefill * size + LITTLE)


def most_prefill(units: float, size: float) -> int:
    """Return the most prefill units, each `size` times as large, that leave one of some units to decode."""
    return floor((units - 1) / size + LITTLE)


def used_units(target: Target, row: Row) -> float:
    """Return the units that both pools take, as large as one that decodes: some units may be left over."""
    return row.prefill_units * target.prefill_gpus + row.decode_units


def pools_rate(target: Target, one: StepCosts, row: Row) -> float:
    """Return the requests/s of both pools: those of the slower one."""
    fed, taken = pools_each(target, one, row)
    slower: float = min(row.prefill_units * fed, row.decode_units * taken)
    return slower


def in_flight(step: Step, most: float, steps: float, rate: float) -> float:
    """Return the decodes of a unit, at most so many, that finish `rate` requests a second."""

    def few(b: float) -> bool:
        return b <= rate * (steps - 1) * step(b, 0.0) * NEARLY

    return edge(few, 0.0, most)


def strain(target: Target, one: StepCosts, name: str, row: Row) -> float:
    """Return which part of its limits an architecture's settings take at some costs; above 1 they miss one."""
    n_in, steps, step = target.n_in, target.steps, one.mixed
    batch, prompts, quantile = row.batch, row.chunk / n_in, target.quantile
    if name == "aggregated":
        gap, first = seen(step, floor(batch), steps, 0, quantile), seen(step, floor(batch), steps, 1, quantile)
    elif name == "chunked":
        mixed = one.apiece(batch, prompts)
        gap, first = mixed, (1 / prompts + 1) * mixed
        if quantile > 0:
            gap = gap_beside(mixed, one.load, prompts, 1.0, quantile)
    else:
        gap, first = step(batch, 0.0) + target.sent / (steps - 1), target.handover + one.prefill(0.0, prompts)
    return max(gap / target.step, (one.front + first) / target.ttft)
