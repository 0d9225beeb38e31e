"""What given settings do at full load at some costs, and which part of the limits they take."""

from __future__ import annotations

from math import floor, inf

from msgspec.structs import replace

from inference_math.optimiser.search import edge
from inference_math.theory.plain import chunk_size_full
from inference_math.unit.batch import round_trip, seen
from inference_math.unit.problem import NEARLY
from inference_math.unit.types import OperatingPoint, SearchConstants, Step, StepCosts

LITTLE = 1e-9  # of a unit: GPUs divide as floating-point numbers


def settings_row(batch: float, chunk: float, prefill: float, decode: float) -> OperatingPoint:
    """Return a row of settings alone; its rate only tells that there is one."""
    return OperatingPoint(rate=1.0, batch=batch, decodes=batch, chunk=chunk, prefill_units=prefill, decode_units=decode)


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


def at_full_load(constants: SearchConstants, one: StepCosts, name: str, row: OperatingPoint) -> OperatingPoint:
    """Return what the settings of a row do at full load at some costs, whatever limits say; TTFT with its front.

    `decodes` are those in flight at that rate: of pools whose prompts are the slower part, fewer than `batch`, the most
    that a unit may have.
    """
    batch, chunk, quantile = row.batch, row.chunk, constants.quantile
    n_in, steps, step, front = constants.n_in, constants.steps, one.step_seconds, one.front
    if name == "aggregated":
        whole = round_trip(step, floor(batch), steps)
        first, gap = seen(step, floor(batch), steps, 1, quantile), seen(step, floor(batch), steps, 0, quantile)
        return done(constants, row, batch / whole, batch, front + first, whole / steps, gap)
    if name == "chunked":
        prompts, groups = chunk / n_in, constants.groups
        bare, lone, with_chunk = step(batch, 0.0), step(batch, prompts), one.step_with_chunk_each(batch, prompts)
        # Where the chunk is larger than it must be, not every group has one in every step. All wait for one that has;
        # each other one that has, too, makes it longer by as much.
        often = min(1.0, chunk_size_full(batch, n_in, steps) / (groups * chunk))
        any_has = 1 - (1 - often) ** groups
        more = (with_chunk - lone) / max(groups - 1, 1)
        mean = bare + any_has * (lone - bare) + (groups * often - any_has) * more
        own, gap = lone + often * (groups - 1) * more, mean
        if quantile > 0:
            gap = gap_beside(with_chunk, one.load, prompts, any_has, quantile) if any_has > 1 - quantile else bare
        return done(constants, row, batch / ((steps - 1) * mean), batch, front + (n_in / chunk + 1) * own, mean, gap)
    rate = pools_rate(constants, one, row)
    decodes = in_flight(step, batch, steps, rate / row.decode_units)
    gap = step(decodes, 0.0)
    first = front + constants.handover + one.prefill(0.0, chunk / n_in)
    each = constants.share * rate / used_units(constants, row)
    return done(constants, row, each, decodes, first, gap, gap + constants.sent / (steps - 1))


def done(
    constants: SearchConstants, row: OperatingPoint, rate: float, decodes: float, first: float, step: float, gap: float
) -> OperatingPoint:
    """Return a row that does so much with the settings of another one."""
    computed, tpot = row.chunk * constants.fresh, gap / constants.sharing
    return replace(row, rate=rate, decodes=decodes, computed=computed, ttft=first, step=step, tpot=tpot)


def pools_each(constants: SearchConstants, one: StepCosts, row: OperatingPoint) -> list[float]:
    """Return the requests/s that a prefill unit feeds, and that a decode unit takes."""
    return [fed_by(constants, one, row.chunk / constants.n_in), taken_by(constants, one, row.batch)]


def fed_by(constants: SearchConstants, costs: StepCosts, prompts: float) -> float:
    """Return the requests/s that a prefill unit feeds with so many prompts together: its steps', or its link's."""
    return min(prompts / costs.prefill(0.0, prompts), carried(constants) * constants.prefill_gpus)


def taken_by(constants: SearchConstants, costs: StepCosts, batch: float) -> float:
    """Return the requests/s that a decode unit takes with so many decodes: its steps', or its link's."""
    return min(batch / ((constants.steps - 1) * costs.step_seconds(batch, 0.0)), carried(constants))


def carried(constants: SearchConstants) -> float:
    """Return the requests/s whose KV caches the link of a decode unit carries."""
    return 1 / constants.sent if constants.sent > 0 else inf


def left_to_decode(units: float, prefill: float, size: float) -> int:
    """Return how many of some units decode on the GPUs that prefill units leave, each `size` times as large."""
    return floor(units - prefill * size + LITTLE)


def most_prefill(units: float, size: float) -> int:
    """Return the most prefill units, each `size` times as large, that leave one of some units to decode."""
    return floor((units - 1) / size + LITTLE)


def used_units(constants: SearchConstants, row: OperatingPoint) -> float:
    """Return the units that both pools take, as large as one that decodes: some units may be left over."""
    return row.prefill_units * constants.prefill_gpus + row.decode_units


def pools_rate(constants: SearchConstants, one: StepCosts, row: OperatingPoint) -> float:
    """Return the requests/s of both pools: those of the slower one."""
    fed, taken = pools_each(constants, one, row)
    slower: float = min(row.prefill_units * fed, row.decode_units * taken)
    return slower


def in_flight(step: Step, most: float, steps: float, rate: float) -> float:
    """Return the decodes of a unit, at most so many, that finish `rate` requests a second."""

    def few(b: float) -> bool:
        return b <= rate * (steps - 1) * step(b, 0.0) * NEARLY

    return edge(few, 0.0, most)


def limit_utilisation(constants: SearchConstants, one: StepCosts, name: str, row: OperatingPoint) -> float:
    """Return which part of its limits an architecture's settings take at some costs; above 1 they miss one."""
    n_in, steps, step = constants.n_in, constants.steps, one.step_seconds
    batch, prompts, quantile = row.batch, row.chunk / n_in, constants.quantile
    if name == "aggregated":
        gap, first = seen(step, floor(batch), steps, 0, quantile), seen(step, floor(batch), steps, 1, quantile)
    elif name == "chunked":
        with_chunk = one.step_with_chunk_each(batch, prompts)
        gap, first = with_chunk, (1 / prompts + 1) * with_chunk
        if quantile > 0:
            gap = gap_beside(with_chunk, one.load, prompts, 1.0, quantile)
    else:
        gap, first = step(batch, 0.0) + constants.sent / (steps - 1), constants.handover + one.prefill(0.0, prompts)
    return max(gap / constants.step, (one.front + first) / constants.ttft)
