"""Settings of each architecture with the highest goodput over many draws of a calibration.

A draw is one set of coefficients that the calibration allows. The goodput of settings is what they serve in the mean
over all draws, where a draw in which they miss a limit counts as nothing. The planner's page prints this module.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, exp, floor, log

from inference_math.optimiser.draws import mean_of, median
from inference_math.optimiser.load import (
    at_full_load,
    fed_by,
    gap_beside,
    left_to_decode,
    limit_utilisation,
    most_prefill,
    settings_row,
    taken_by,
)
from inference_math.optimiser.search import INFEASIBLE, NEVER, edge, highest, peak
from inference_math.optimiser.types import Side
from inference_math.theory.plain import chunk_size_full
from inference_math.unit.batch import largest_batch, largest_whole, round_trip
from inference_math.unit.problem import NEARLY
from inference_math.unit.types import OperatingPoint, SearchConstants, Step, StepCosts

MOST_FED = 0.97  # of what a prefill unit computes at most: fewer prompts together wait less for each other
LARGEST = 4  # prompts' tokens in a chunk
FEW = 1e-3  # decodes
WIDE_STEPS = 40  # steps from one token to the largest chunk
NARROW_STEPS = 8  # steps of each of these
TEETH = 2  # chunks that seem best, about each of which the best is looked for
ROUGH = 10  # cuts of a range
CHORDS = 40  # towards a limit
USED_UP = 1e-5  # of a limit may be left
ASKED_AGAIN = 3  # numbers that seem best
PREFILLS = 64  # numbers of prefill units that are tried, about
FEW_UNITS = 12  # units of which each split is tried
STARTS = 6  # splits from which the numbers of both pools are looked for
TURNS = 2


def largest_batches(constants: SearchConstants, drawn: list[StepCosts]) -> list[float]:
    """Return the largest batch within the limits under each draw, aggregated."""
    steps, quantile, room = constants.steps, constants.quantile, constants.room
    batches: list[float] = []
    guess = 1
    for costs in drawn:
        wait = constants.ttft - costs.front
        guess = largest_batch(costs.step_seconds, guess, room, steps, constants.step, wait, quantile)
        batches.append(guess)
    return batches


def chosen_settings(constants: SearchConstants, name: str, drawn: list[StepCosts]) -> OperatingPoint:
    """Return the settings of an architecture with the highest goodput over the draws; rate 0: none.

    That is what they serve in the mean over all draws, where a draw that misses a limit counts as nothing. What no
    draw loses by a looser limit, the best settings do not lose: so no answer falls.
    """
    if not constants.room > FEW:
        return INFEASIBLE
    if name == "aggregated":
        return aggregated_settings(constants, drawn)
    if name == "chunked":
        return chunked_settings(constants, drawn) if constants.mixes else INFEASIBLE
    return pools_settings(constants, drawn)


def aggregated_settings(constants: SearchConstants, drawn: list[StepCosts]) -> OperatingPoint:
    """Return the batch with the highest goodput."""

    def served(batch: float, i: int) -> float:
        return batch / round_trip(drawn[i].step_seconds, floor(batch), constants.steps)

    most = largest_batches(constants, drawn)
    batch = best_feasible([0.0 for _ in most], most, served)[0]
    return settings_row(batch, NEVER, NEVER, NEVER) if batch > 0 else INFEASIBLE


def best_feasible(least: list[float], most: list[float], served: Callable[[float, int], float]) -> list[float]:
    """Return the number with the highest goodput, of those that are some draw's largest, and that goodput.

    0 where no draw has one. `served` is what a draw serves with a number between its least and its most: the more, the
    larger it is. The time for which a request holds its place grows nearly evenly with the number: it is looked up at
    both ends, and what seems best is asked again.
    """
    able = [i for i in range(len(most)) if most[i] > 0]
    ends: list[list[float]] = []
    smallest = ascending([most[i] for i in able])[0] if len(able) > 0 else 0.0
    for i in able:
        low = max(least[i], smallest)
        ends.append([low, low / served(low, i), most[i], most[i] / served(most[i], i)])
    seems: list[list[float]] = []
    for number in ascending([most[i] for i in able]):
        total = 0.0
        for low, first, high, last in ends:
            if low <= number <= high:
                part = (number - low) / (high - low) if high > low else 0.0
                total += number / (first + part * (last - first))
        seems.append([number, total])
    seems.sort(key=lambda pair: -pair[1])
    best = [0.0, 0.0]
    for number, _ in seems[:ASKED_AGAIN]:
        total = 0.0
        for i in able:
            if least[i] <= number <= most[i]:
                total += served(number, i)
        if total > best[1] * NEARLY:
            best = [number, total]
    return [best[0], best[1] / len(most)]


def ascending(values: list[float]) -> list[float]:
    """Return values in order, each once."""
    ordered = list(values)
    ordered.sort(key=lambda value: value)
    return [ordered[i] for i in range(len(ordered)) if i < 1 or ordered[i] > ordered[i - 1]]


def chunked_settings(constants: SearchConstants, drawn: list[StepCosts]) -> OperatingPoint:
    """Return the chunk, and the decodes beside it, with the highest goodput."""
    if len(drawn) == 1:
        return chunked_alone(constants, drawn[0])
    batch, goodput, chunk = fed_settings(constants, drawn)
    other, its, larger = roomy_settings(constants, drawn)
    if its > goodput * NEARLY:
        batch, goodput, chunk = other, its, larger
    return settings_row(batch, chunk, NEVER, NEVER) if goodput > 0 else INFEASIBLE


def fed_settings(constants: SearchConstants, drawn: list[StepCosts]) -> list[float]:
    """Return the decodes with the highest goodput beside the smallest chunk that feeds them, that goodput, the chunk.

    With more of them gaps are longer and prompts need fewer steps: a draw keeps the limits between two numbers.
    """
    n_in, room = constants.n_in, constants.room
    each = chunk_size_full(1.0, n_in, constants.steps)  # prompt tokens for a decode

    def chunk_for(batch: float) -> float:
        return max(batch * each / constants.groups, 1.0)

    def row_of(batch: float) -> OperatingPoint:
        return settings_row(batch, chunk_for(batch), NEVER, NEVER)

    # Prompts under way hold places, too: balance / chunk of one, or balance / n_in where a chunk is longer.
    top = edge(lambda batch: batch * each <= (room - batch) * min(n_in, chunk_for(batch)), FEW, room)
    ends = [fed_between(constants, costs, row_of, log(top)) for costs in drawn]
    least, most = [pair[0] for pair in ends], [pair[1] for pair in ends]
    best = best_feasible(least, most, lambda batch, i: at_full_load(constants, drawn[i], "chunked", row_of(batch)).rate)
    return [best[0], best[1], chunk_for(best[0])]


def fed_between(
    constants: SearchConstants, costs: StepCosts, row_of: Callable[[float], OperatingPoint], top: float
) -> list[float]:
    """Return the fewest and the most decodes, of a row of them, with which a draw keeps the limits; zeros where none.

    `top`: the logarithm of the most that there are.
    """

    def strained(at: float) -> float:
        return limit_utilisation(constants, costs, "chunked", row_of(exp(at)))

    easiest = peak(lambda at: -strained(at), log(FEW), top, ROUGH)
    if strained(easiest) > NEARLY:
        return [0.0, 0.0]
    return [exp(edge(lambda at: strained(at) <= NEARLY, easiest, end)) for end in [log(FEW), top]]


def roomy_settings(constants: SearchConstants, drawn: list[StepCosts]) -> list[float]:
    """Return the decodes with the highest goodput beside a chunk that may be larger than it must be; as `fed_settings`.

    For a chunk more decodes serve more, and strain the limits more. Chunks are looked at in steps that do not hang on
    the limits, wide ones first, then narrow ones about the best. Each time a draw begins or ceases to keep a limit the
    goodput jumps: so in the end the chunk is that which leaves most decodes to the draws that keep the limits.
    """
    n_in = constants.n_in
    step = log(max(max(LARGEST * n_in, chunk_size_full(constants.room, n_in, constants.steps)), 2.0)) / (
        WIDE_STEPS * NARROW_STEPS
    )

    easiest = peak(
        lambda at: -middle_strain(constants, drawn, exp(at * step)), 0.0, 1.0 * WIDE_STEPS * NARROW_STEPS, ROUGH
    )
    places = [1.0 * NARROW_STEPS * i for i in range(WIDE_STEPS + 1)]
    places.append(easiest)
    wide = looks_at(constants, drawn, places, step)[0][2]
    narrow = [floor(wide) + 1.0 * i for i in range(-NARROW_STEPS, NARROW_STEPS + 1) if floor(wide) + i >= 0]
    narrow.append(wide)
    best = [0.0, 0.0, NEVER]
    for look in looks_at(constants, drawn, narrow, step)[:TEETH]:
        for batch, goodput, place in [
            look,
            looks_at(constants, drawn, [widest(constants, drawn, look, step)], step)[0],
        ]:
            if goodput > best[1] * NEARLY:
                best = [batch, goodput, exp(place * step)]
    return best


def looks_at(constants: SearchConstants, drawn: list[StepCosts], places: list[float], step: float) -> list[list[float]]:
    """Return what `served_beside` has for the chunks at some places, and the places, the highest goodput first."""
    looks: list[list[float]] = []
    for place in places:
        batch, goodput = served_beside(constants, drawn, exp(place * step))
        looks.append([batch, goodput, place])
    looks.sort(key=lambda look: -look[1])
    return looks


def widest(constants: SearchConstants, drawn: list[StepCosts], look: list[float], step: float) -> float:
    """Return the place of the chunk near one that leaves most decodes to all draws that keep the limits beside it.

    `look`: a row of `looks_at`.
    """
    place = look[2]
    able = keeping(constants, drawn, "chunked", settings_row(look[0], exp(place * step), NEVER, NEVER))

    def left(at: float) -> float:
        least = constants.room
        for i in range(len(drawn)):
            if able[i]:
                least = min(least, most_beside(constants, drawn[i], exp(at * step)))
        return least

    return peak(left, max(0.0, place - 1), place + 1, ROUGH)


def keeping(constants: SearchConstants, drawn: list[StepCosts], name: str, row: OperatingPoint) -> list[bool]:
    """Tell for each draw whether an architecture's settings keep the limits; no settings keep none."""
    return [row.rate > 0 and limit_utilisation(constants, costs, name, row) <= NEARLY for costs in drawn]


def chunked_alone(constants: SearchConstants, one: StepCosts) -> OperatingPoint:
    """Return the settings of chunks for one draw: the decodes that serve most beside their smallest chunk.

    That is the smallest which feeds them within the limits.
    """
    n_in, step, longest, room = constants.n_in, one.step_with_chunk_each, constants.step, constants.room
    steps, wait = constants.steps, constants.ttft - one.front

    def in_limit(b: float, chunk: float) -> bool:
        prompts = chunk / n_in
        return gap_beside(step(b, prompts), one.load, prompts, 1.0, constants.quantile) <= longest

    def prompt(b: float, chunk: float) -> float:
        seconds: float = (n_in / chunk + 1) * step(b, chunk / n_in)
        return seconds  # it begins and ends within chunks

    def smallest_chunk(b: float) -> float:
        balance, free = chunk_size_full(b, n_in, steps), room - b
        # Prompts under way hold places, too: balance / chunk of one, or balance / n_in where a chunk is longer.
        if balance > free * n_in or not free > 0:
            return 0.0
        least: float = max(balance / constants.groups, max(balance / free, 1.0))
        if not in_limit(b, least):
            return 0.0
        if prompt(b, least) <= wait:
            return least
        most = edge(lambda chunk: in_limit(b, chunk), least, max(LARGEST * n_in, least))
        quickest = highest(lambda chunk: -prompt(b, chunk), least, most)
        if prompt(b, quickest) > wait:
            return 0.0
        return edge(lambda chunk: prompt(b, chunk) <= wait, quickest, least)

    def served(b: float) -> float:
        chunk = smallest_chunk(b)
        return at_full_load(constants, one, "chunked", settings_row(b, chunk, NEVER, NEVER)).rate if chunk > 0 else 0.0

    if not served(FEW) > 0:
        return INFEASIBLE
    most = edge(lambda b: served(b) > 0, FEW, max(room, FEW))
    batch = highest(served, FEW, most)
    return settings_row(batch, smallest_chunk(batch), NEVER, NEVER)


def middle_strain(constants: SearchConstants, drawn: list[StepCosts], chunk: float) -> float:
    """Return which part of the limits a chunk takes beside next to no decodes, in the middle draw."""
    own = settings_row(FEW, chunk, NEVER, NEVER)
    return median([limit_utilisation(constants, costs, "chunked", own) for costs in drawn])


def served_beside(constants: SearchConstants, drawn: list[StepCosts], chunk: float) -> list[float]:
    """Return the decodes beside a chunk with the highest goodput, and that goodput; 0 where no draw allows any."""
    most = [most_beside(constants, costs, chunk) for costs in drawn]

    def served(batch: float, i: int) -> float:
        return at_full_load(constants, drawn[i], "chunked", settings_row(batch, chunk, NEVER, NEVER)).rate

    return best_feasible([0.0 for _ in most], most, served)


def most_beside(constants: SearchConstants, costs: StepCosts, chunk: float) -> float:
    """Return the most decodes that a chunk feeds, and that the limits and the KV cache allow beside it; 0: none.

    Steps grow nearly evenly with decodes, so a chord soon meets the limit.
    """
    n_in, room = constants.n_in, constants.room
    each = chunk_size_full(1.0, n_in, constants.steps)  # prompt tokens for a decode
    # Prompts under way hold places, too: balance / chunk of one, or balance / n_in where a chunk is longer.
    free = min(n_in, chunk)
    low, high = FEW, min(constants.groups * chunk / each, room * free / (each + free))

    def over(batch: float) -> float:
        return limit_utilisation(constants, costs, "chunked", settings_row(batch, chunk, NEVER, NEVER)) - NEARLY

    below, above = over(low) if high > low else 1.0, 0.0
    if below > 0:
        return 0.0
    above = over(high)
    if above <= 0:
        return high
    for _ in range(CHORDS):
        at = low + (high - low) * below / (below - above)
        here = over(at)
        if here > 0:
            high, above = at, here
            below /= 2  # an end that stays must not hold the chord back
        else:
            low, below = at, here
            above /= 2
        if -USED_UP <= here <= 0:
            return low
    return low


def pools_settings(constants: SearchConstants, drawn: list[StepCosts]) -> OperatingPoint:
    """Return decodes of a decode unit, prompts of a prefill unit, and a split of the pools, with the highest goodput.

    The best numbers hang on the split, and it on them: each is chosen in turn, from the splits that are best at first.
    """
    feeding, taking = prefill_rates(constants, drawn), decode_rates(constants, drawn)
    if len(feeding) < 1 or len(taking) < 1:
        return INFEASIBLE
    best_sides = [place_of_most(feeding), place_of_most(taking)]
    size = constants.prefill_gpus
    splits = splits_of(constants, mean_of(taking[best_sides[1]].rates) / mean_of(feeding[best_sides[0]].rates))

    def goodput(fed: int, taken: int, split: list[int]) -> float:
        return split_rate(feeding[fed].rates, taking[taken].rates, split, size)

    starts = list(splits)
    starts.sort(key=lambda split: -goodput(best_sides[0], best_sides[1], split))
    best, top = INFEASIBLE, 0.0
    for start in starts[:STARTS]:
        fed, taken, split = best_sides[0], best_sides[1], start
        for _ in range(TURNS):
            taken = index_of_most([goodput(fed, j, split) for j in range(len(taking))])
            fed = index_of_most([goodput(j, taken, split) for j in range(len(feeding))])
            split = splits[index_of_most([goodput(fed, taken, other) for other in splits])]
        here = goodput(fed, taken, split)
        if here > top * NEARLY:
            top = here
            best = settings_row(taking[taken].number, feeding[fed].number * constants.n_in, split[0], split[1])
    return best


def split_rate(fed: list[float], taken: list[float], split: list[int], size: float) -> float:
    """Return the goodput of a unit of pools split so, whose prefill and decode units do so much in each draw."""
    total = 0.0
    for i in range(len(fed)):
        total += min(split[0] * fed[i], split[1] * taken[i])
    return total / len(fed) / (split[0] * size + split[1])


def index_of_most(values: list[float]) -> int:
    """Return the place of the largest value, the first of equal ones."""
    best = 0
    for i in range(len(values)):
        if values[i] > values[best] * NEARLY:
            best = i
    return best


def place_of_most(sides: list[Side]) -> int:
    """Return the place of the number with which units of a pool do most in the mean."""
    return index_of_most([mean_of(side.rates) for side in sides])


def splits_of(constants: SearchConstants, balance: float) -> list[list[int]]:
    """Return splits into prefill and decode units to try: of few units all, of many those about a balance.

    The balance is that of prefill units for a decode unit at which both pools are busy. Units may be left over.
    """
    splits: list[list[int]] = []
    units, size = constants.units, constants.prefill_gpus
    for prefill in range(1, most_prefill(units, size) + 1, max(1, floor(units / PREFILLS))):
        left, even = left_to_decode(units, prefill, size), prefill / balance
        decodes = ascending([min(max(floor(even), 1.0), left), min(ceil(even), left), 1.0 * left])
        if units <= FEW_UNITS:
            decodes = [1.0 * decode for decode in range(1, left + 1)]
        for decode in decodes:
            splits.append([prefill, floor(decode)])
    return splits


def decode_rates(constants: SearchConstants, drawn: list[StepCosts]) -> list[Side]:
    """Return the numbers of decodes that are some draw's most, and what a decode unit takes with each in each draw."""
    tpot = constants.step - constants.sent / (constants.steps - 1)
    most: list[float] = [most_decodes(costs.step_seconds, constants.room, tpot) for costs in drawn]
    return sides_of(most, lambda batch, i: taken_by(constants, drawn[i], batch))


def prefill_rates(constants: SearchConstants, drawn: list[StepCosts]) -> list[Side]:
    """Return the numbers of prompts that are some draw's most, and what a prefill unit feeds with each in each draw.

    No more than the fewest that feed nearly as much as all that fit: together they share the weight read, but they
    wait for each other.
    """
    limit, together = constants.ttft - constants.handover, floor(constants.together)

    def fed(prompts: int) -> float:
        return mean_of([fed_by(constants, costs, prompts) for costs in drawn])

    enough = MOST_FED * fed(max(together, 1))
    fewest = min(together, largest_whole(together, lambda prompts: fed(prompts) < enough) + 1)
    most: list[float] = [most_prompts(costs.prefill, fewest, limit - costs.front) for costs in drawn]
    return sides_of(most, lambda prompts, i: fed_by(constants, drawn[i], prompts))


def sides_of(most: list[float], served: Callable[[float, int], float]) -> list[Side]:
    """Return what draws serve with each number that is some draw's most; 0 where it is more than their own."""
    sides: list[Side] = []
    for number in ascending([value for value in most if value > 0]):
        rates = [served(number, i) if most[i] >= number else 0.0 for i in range(len(most))]
        sides.append(Side(number=number, rates=rates))
    return sides


def pools_halves(constants: SearchConstants, drawn: list[StepCosts]) -> list[float]:
    """Return the requests/s that a unit feeds as one of a prefill pool, and takes as one of a decode pool, at most.

    Each is the highest goodput by its own limit alone; 0 of what no draw allows.
    """
    sides = [prefill_rates(constants, drawn), decode_rates(constants, drawn)]
    return [mean_of(side[place_of_most(side)].rates) if len(side) > 0 else 0.0 for side in sides]


def most_decodes(step: Step, room: float, tpot: float) -> int:
    """Return the most decodes of a unit that only decodes."""
    return largest_whole(room, lambda b: step(b, 0.0) <= tpot)


def most_prompts(step: Step, room: float, ttft: float) -> int:
    """Return the most prompts that a unit may compute together."""
    return largest_whole(room, lambda k: step(0.0, k) <= ttft)
