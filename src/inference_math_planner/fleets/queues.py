"""What replicas sustain when requests arrive at random, and fleets of them; the planner's page runs this, too.

Some of the calibration's draws stand for all, each with arrivals of its own, the same for all architectures: what is
drawn holds both the calibration's error and that of the sample.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, floor, inf, log, log1p

from msgspec.structs import replace

from inference_math.optimiser.choice import CAREFUL, LIKELY, RESOLVED, chosen, leads
from inference_math.optimiser.draws import fixed, mean_of, median
from inference_math.optimiser.load import LITTLE, left_to_decode, loaded, most_prefill, pools_rate, settings_row
from inference_math.optimiser.search import ARCHITECTURES, NEVER
from inference_math.optimiser.types import Solution
from inference_math.simulate.chance import Dice, gamma_of
from inference_math.simulate.engine import Request
from inference_math.simulate.pace import Pace
from inference_math.simulate.types import Habits, StepTimes, System
from inference_math.theory.plain import thinned_cv
from inference_math.unit.asked import (
    changed,
    computed_tokens,
    moved_by,
    of_architecture,
    of_group,
    places,
    prefill_size,
    prefill_unit,
    ranks_of,
    sent_bytes,
    target_of,
    unit_budget,
    unit_seats,
    verify_tokens,
    whole_prompt,
)
from inference_math.unit.batch import largest_whole, round_trip
from inference_math.unit.steps import (
    answer_steps,
    draft_yield,
    floor_terms,
    kv_moved,
    kv_pooled,
    stored_tokens,
    unit_terms,
)
from inference_math.unit.types import Asked, CoefficientValues, Row, StepCosts
from inference_math_planner.fleets.goodput import Tally, goodput, requests_like, requests_of
from inference_math_planner.fleets.types import Draw, Drawn, Host, Standing

DRAWN = 16  # of the calibration's draws, each with arrivals of its own
MEASURED = 400  # requests of a simulation
BEFORE = 0.25  # of the requests that are measured: so many come before them, at least
AFTER = 0.1  # and after them
FILLS = 4.0  # times what is under way at once come before, so that a replica has its usual load; as many stay after
LONGEST = 3000  # requests before, at most
SETTLES = 20  # rounds, until decodes and their steps agree
FULL = 0.97  # of what a replica serves at full load: beyond, queues grow for longer than is simulated
ACCEPTED_SD = 0.15  # between requests, of the chance that a draft is accepted: taken on trust
LOGISTIC = 0.5513  # the scale of a logistic variable whose standard deviation is 1
STRATA = 50  # chances, evenly spread, that stand for all
BISECTIONS = 30
STEADY = 1e-6  # a squared CV: arrivals are as good as equally spaced
IDLE = 1e-6  # requests/s of a replica that has next to nothing to do
BEYOND = 2  # times what a KV cache has room for: more tokens are never held, even where caches grow
APART = 4  # times as many places: between them another number is tried
SMALLER = 1.5  # times as large: a chunk that is not told from whole prompts
LARGER = [2, 4]  # chunks, as multiples of a row's; and whole prompts
WIDE = 1.08  # rates in a row, where it is looked from which on limits are missed; their middle is `NARROW` to both
NARROW = RESOLVED  # and how near two must be in the end, between which what is sustained is taken to lie
BEATS = 1 + 1e-6  # as much as another, and more
SPLITS = 64  # of a size that are tried, about
ALL_TO = 32  # units of pools that are tried each; beyond, an eighth apart
APART_DRAWS = 5  # every so many draws what is sustained is simulated
FIRST = 4  # draws, the slowest, that say whether more need be asked
GUESS = 0.7  # of full load: where it is looked first for what is sustained, whoever was tried before
STRIDE = 1.3  # from one number of replicas to the next, until one is enough
LEAST = 0.02  # of full load: what is sustained below it is nothing


def candidates(asked: Asked, settings: dict[str, Row]) -> dict[str, Row]:
    """Return the architectures that fleets are made of, with their settings: all that meet the SLA at full load.

    And prompts whole beside decodes, wherever whole prompts before them do. At full load each step has its part of a
    prompt and must keep the limit on TPOT, which no chunk may do; below it the mean TPOT of a request bears long steps.
    What is asked has answers that scatter as those of a fleet do: of them fewer fit at once than of the equal ones that
    a plan may be made of, and no row has more decodes than fit.
    """
    found: dict[str, Row] = {}
    for name in ARCHITECTURES:
        if settings[name].rate > 0:
            most = places(of_architecture(asked, name))
            found[name] = seated(settings[name], min(settings[name].batch, most))
    if "aggregated" in found and "chunked" not in found and target_of(asked).mixes:
        found["chunked"] = settings_row(places(asked), asked.work.n_in, NEVER, NEVER)
    return found


def trials(asked: Asked, name: str, row: Row) -> list[Row]:
    """Return the rows to try: an architecture's own, with more decodes, chunks up to whole prompts, or all splits.

    At part load a larger chunk brings the first token sooner, and a request's mean TPOT bears some long steps: so as
    many decodes as the KV cache holds may do beside prompts, where at full load each step must keep the limit, or a
    quantile of the gaps. Pools have so many in any case: a decode that waits for a place waits in its gaps. Pools that
    are equally fast at full load are not at part load: prompts wait for a unit.
    """
    n_in = asked.work.n_in
    found: list[Row] = []
    seats = [row.batch]
    if places(asked) > row.batch:
        seats.append(places(asked))
    if name == "aggregated":
        if len(seats) > 1 and seats[1] >= APART * seats[0]:
            seats.append(ceil((seats[0] * seats[1]) ** 0.5))
        for batch in seats:
            found.append(seated(row, batch))
        return found
    if name == "disaggregated":
        units, size = asked.units, prefill_size(asked)
        for prefill in range(1, most_prefill(units, size) + 1, max(1, floor(units / SPLITS))):
            split = changed(asked, row, row.chunk, prefill, left_to_decode(units, prefill, size))
            found.append(seated(split, seats[len(seats) - 1]))
        return found
    whole = max(n_in, row.chunk)
    chunks = [whole]
    for factor in LARGER:
        if SMALLER * factor * row.chunk < whole:
            chunks.append(factor * row.chunk)
    if whole > row.chunk:
        chunks.append(row.chunk)
    for chunk in chunks:
        for batch in seats:
            found.append(seated(changed(asked, row, chunk, NEVER, NEVER), batch))
    return found


def seated(row: Row, batch: float) -> Row:
    """Return a row with so many places for decodes."""
    return replace(row, batch=batch)


def full(asked: Asked, name: str, row: Row, one: StepCosts) -> float:
    """Return the requests/s of a replica, all its units, at full load with the settings of a row.

    Of pools all groups of a unit's GPUs have as many prompts. No more decode beside chunks than these replace when they
    finish, whatever places there are.
    """
    chunk = row.chunk
    if name == "disaggregated":
        chunk = of_group(asked, row).chunk * ranks_of(prefill_unit(asked))
    own, target = changed(asked, row, chunk, row.prefill_units, row.decode_units), target_of(asked)
    if name == "disaggregated":
        return pools_rate(target, one, own)
    if name == "aggregated":
        return floor(row.batch) / round_trip(one.mixed, floor(row.batch), target.steps) * asked.units
    if name == "chunked":
        fed = target.groups * chunk * max(target.steps - 1, 1) / target.n_in
        own = replace(own, batch=min(row.batch, fed))
    return loaded(target, one, name, own).rate * asked.units


def system_for(asked: Asked, name: str, row: Row) -> System:
    """Return an architecture's row as what the simulator runs."""
    unit, work, first = asked.unit, asked.work, prefill_unit(asked)
    ranks = ranks_of(first)
    n_in, batch = work.n_in, ceil(row.batch)
    cached = stored_tokens(n_in, work.alpha)
    # What is written waits with what is loaded: of recorded requests as much with each stored token.
    waits = kv_moved(unit, work, asked.read_bw) / cached if cached > 0 else 0.0
    pools = name == "disaggregated"
    incoming = sent_bytes(asked) / n_in / asked.pool_bw
    # Each group of attention has a whole prompt, or a chunk, of its own.
    budget, most, own = inf, batch, unit.layout.dp
    if name == "aggregated" and asked.engine.scheduler.counts_decodes:  # whose steps have a whole prompt's tokens
        budget = unit_budget(asked, whole_prompt(asked), batch)
    if name == "disaggregated":
        budget, own = computed_tokens(asked, of_group(asked, row)), 1
    if name == "chunked":  # prompts under way hold places, too
        budget = unit_budget(asked, computed_tokens(asked, row), batch)
        most = unit_seats(asked, row)
    return System(
        engines=1 if name == "disaggregated" else asked.units,
        prefill_units=floor(row.prefill_units) if pools else 0, groups=ranks,
        decode_units=floor(row.decode_units) if pools else asked.units,
        transfer=ranks * incoming * unit.gpus / first.gpus, incoming=incoming,
        budget=budget, max_batch=most,
        kv_capacity=kv_pooled(unit, n_in + work.n_out, asked.engine.memory.windows),
        grows=asked.engine.memory.kv_grows, load=waits,
        gives=unit.gives, brings=verify_tokens(asked), admission=Habits(ahead=asked.ahead),
        ranks=own,
    )  # fmt: skip


def longest_fits(mix: list[tuple[int, int, int]], system: System) -> bool:
    """Tell whether the KV cache of a unit has room for each request of a mix."""
    longest = 0
    for n_in, n_out, _ in mix:
        longest = max(longest, n_in + n_out)
    return longest <= system.kv_capacity


def pace_of(asked: Asked, found: CoefficientValues, factors: list[float]) -> Pace:
    """Return the steps of a unit under the coefficients `found`, a step and its prompts' part stretched."""
    unit, work = asked.unit, asked.work
    room = BEYOND * kv_pooled(unit, work.n_in + work.n_out, asked.engine.memory.windows)
    return Pace(unit_terms(unit, moved_by(found, asked.moves)), floor_terms(unit), factors[0], factors[1], room)


def prefill_pace(asked: Asked, found: CoefficientValues, factors: list[float]) -> Pace:
    """Return the steps of a unit of the prefill pool."""
    moves = asked.pools[0].prefill_moves if len(asked.pools) > 0 else asked.moves
    return pace_of(replace(asked, unit=prefill_unit(asked), moves=moves), found, factors)


def representative(asked: Asked, each: list[StepCosts]) -> list[int]:
    """Return draws that stand for all, evenly spread: by what one more request costs, from the least to the most.

    Limits and units do not count, so that what is asked with others of these is asked under the same draws. Another
    unit puts the draws in another order, so that others stand for all: between two units whose costs lie close together
    fleets may differ by a unit for that alone.
    """
    steps = answer_steps(asked.unit, asked.work.n_out)
    needs = [one.ttft_1 + steps * (one.cache_read + one.own) for one in each]
    order = list(range(len(each)))
    order.sort(key=lambda i: needs[i])
    many = min(DRAWN, len(order))
    return [order[floor((k + 0.5) * len(order) / many)] for k in range(many)]


def replicas_sharing(cv: float, traffic: float, have: float, gpus: float, rate: float) -> float:
    """Return how many replicas share the arrivals of which one gets `rate`: as many as the traffic, or the GPUs, make.

    `cv` is that of the times between all arrivals; 1 where it does not matter: a part of arrivals at random is at
    random, too.
    """
    if cv == 1:
        return 1.0
    return max(floor(have / gpus), 1.0) if have > 0 else max(traffic / rate, 1.0)


def cv_at_each(cv: float, replicas: float) -> float:
    """Return the CV of the times between arrivals at one of the replicas to which requests come by chance."""
    return thinned_cv(cv, 1 / replicas)


def thinned(cv: float, seed: float, count: int, replicas: float) -> list[float]:
    """Return times between arrivals, of mean 1, at one of the replicas to which requests come by chance.

    Times between all arrivals are gamma distributed, so a time here is a sum of as many as come until one comes here,
    a geometric number; see `cv_at_each`.
    """
    dice, varied = Dice(seed), cv**2
    found: list[float] = []
    total = 0.0
    for _ in range(count):
        passed = max(ceil(log1p(-dice.roll()) / log1p(-1 / replicas)), 1) if replicas > 1 else 1
        one = varied * gamma_of(passed / varied, dice) if varied > STEADY else passed
        found.append(one)
        total += one
    return [one * count / total for one in found]


def played(
    asked: Asked, system: System, under: Draw, drawn: Drawn, rate: float, replicas: float, enough: float
) -> list[float]:
    """Return (score, mean TTFT, mean TPOT) of a replica that gets so many requests a second; see `goodput`.

    `drawn` has gaps, lengths and like, the tokens of recorded requests, and `share`, which of the requests must keep
    both limits (0: means must). Each draw has its own arrivals, which so many `replicas` share. A score of 1 keeps the
    promise; where it is not `enough`, the play ends early.
    """
    place, pace = under.place, under.pace
    work, under_way = asked.work, usually_under_way(asked, system, pace, rate)
    since = min(max(floor(BEFORE * MEASURED + 0.5), ceil(FILLS * under_way)), LONGEST)
    many = since + MEASURED + max(ceil(AFTER * MEASURED), ceil(under_way))
    lengths = shuffled(drawn.lengths, place, many, 0.0)
    # At random, they are those of all replicas; else a part of all is drawn.
    cv, seed = drawn.cv, lengths[0]
    gaps = shuffled(drawn.gaps, place, many, 1.0) if cv == 1 else thinned(cv, seed, many, replicas)
    if len(drawn.like) > 0:
        requests = requests_like(gaps, lengths, rate, drawn.like)
    else:
        stored = stored_tokens(work.n_in, work.alpha)
        requests = requests_of(gaps, lengths, rate, max(floor(work.n_in + 0.5), 1), work.n_out, stored)
    differ(asked, requests, drawn.lengths, place)
    tally = Tally(asked.ttft, asked.tpot, under.front, since, since + MEASURED, drawn.share, enough > 0)
    return goodput(system, under.prefill, pace, requests, tally)


def usually_under_way(asked: Asked, system: System, pace: StepTimes, rate: float) -> float:
    """Return about how many requests of a replica decode at once, by Little's law and steps without prompts."""
    units = system.decode_units if system.prefill_units > 0 else system.engines
    n_out, each = asked.work.n_out, rate / units
    context, steps = asked.work.n_in + n_out / 2, answer_steps(asked.unit, n_out)
    decodes = 1.0
    for _ in range(SETTLES):
        decodes = min(max(each * steps * pace.bare(ceil(decodes), ceil(decodes) * context), 1.0), system.max_batch)
    return units * decodes


def differ(asked: Asked, requests: list[Request], chances: list[float], place: int) -> None:
    """Let requests that draft differ in how many of their drafts are accepted, each by a chance of its own.

    The chance that one is accepted scatters by `ACCEPTED_SD` about its middle, as a logistic variable cut off at 0 and
    1. All together take as many steps for their tokens as if they were alike: what differs is who keeps the promise.
    """
    unit = asked.unit
    if not unit.drafts > 0:
        return
    middle = middle_of_accepted(unit.drafts, unit.gives)
    own = shuffled(chances, place + DRAWN, len(requests), 0.0)
    for i in range(len(requests)):
        requests[i].gives = own_yield(unit.drafts, middle, own[i])


def own_yield(drafts: float, middle: float, chance: float) -> float:
    """Return the tokens that a step gives a request of a chance, where acceptance scatters about a middle."""
    accepted = middle + LOGISTIC * ACCEPTED_SD * log(chance / (1 - chance))
    return draft_yield(drafts, min(max(accepted, 0.0), 1.0))


def middle_of_accepted(drafts: float, gives: float) -> float:
    """Return about which middle acceptance scatters, so that the harmonic mean of the yields is what a step gives."""
    low, high = -1.0, 2.0
    for _ in range(BISECTIONS):
        middle, steps = (low + high) / 2, 0.0
        for i in range(STRATA):
            steps += 1 / own_yield(drafts, middle, (i + 0.5) / STRATA) / STRATA
        if steps > 1 / gives:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def shuffled(values: list[float], place: int, count: int, mean: float) -> list[float]:
    """Return so many of the values, in an order that hangs on the place, scaled to a mean where one is given."""
    size = len(values)
    stride, at = place * 37 % (size - 1) + 1, place * 53 % size
    found: list[float] = []
    total = 0.0
    for _ in range(count):
        found.append(values[at])
        total += values[at]
        at = (at + stride) % size
    if mean > 0:
        return [one * mean * count / total for one in found]
    return found


def highest_rates(top: float, first: float, narrow: float, good: Callable[[float], bool]) -> tuple[float, float]:
    """Return the highest rate that was good, and the lowest above it that was not, or 0 twice where none is.

    Looked for from a `first` rate outwards; both are the same where all that is looked at is good. `top` is what a
    replica serves at full load; queues grow for longer than is simulated beyond `FULL` of it.
    """
    most, wide = FULL * top, WIDE
    low, high = 0.0, inf
    at = min(first, most)
    while high == inf or not low > 0:
        if good(at):
            low = at
            if at >= most:
                return at, at
            at = min(at * wide, most)
        else:
            high = at
            if at < LEAST * top:
                return 0.0, 0.0
            at = at / wide
        wide = min(wide * wide, 3.0)
    while high / low > narrow * (1 + 1e-9):  # a step may be as narrow: rounding must not ask for one more
        at = (low * high) ** 0.5
        if good(at):
            low = at
        else:
            high = at
    return low, high


def cost(each: float, gpus: float, traffic: float, have: float) -> float:
    """Return the GPUs that a traffic takes, or where there are GPUs, minus the requests/s that they serve.

    By the requests/s of `each` replica, and its `gpus`. The less the better; infinity for what is not possible.
    """
    if each <= 0 or (have > 0 and gpus > have):
        return inf
    return -each * floor(have / gpus) if have > 0 else ceil(traffic / each) * gpus


def worth(each: float, gpus: float, traffic: float, have: float) -> float:
    """Return the requests/s of a GPU that is there, or that is bought: what is compared; 0 for what is not possible."""
    its = cost(each, gpus, traffic, have)
    if its == inf:
        return 0.0
    return -its / have if have > 0 else traffic / its


def slow_places(count: int) -> int:
    """Return the place, of values from the best to the worst, that a fleet is sized for: nine in ten are no worse."""
    return ceil(CAREFUL * count) - 1


def rate_at(host: Host, name: str, units: int, row: int, place: int, guess: float) -> float:
    """Return about what a replica with one of its rows sustains in a draw."""
    top: float = host.top(name, units, row, place)
    low, high = highest_rates(
        top, guess * top, WIDE, lambda rate: host.play(name, units, row, place, rate, 1.0)[0] >= 1
    )
    between_both: float = (low * high) ** 0.5
    return between_both


def keeps(host: Host, name: str, units: int, row: int, rate: float, count: int, looked: int) -> bool:
    """Tell whether a replica keeps the promise at a rate in nine of ten draws; the slowest are asked first.

    Only so many are `looked` at: of fewer than `count` it tells that the promise may be kept, or that it is not.
    """
    missed = 0
    for k in range(looked):
        place = count - 1 - k
        far = rate > FULL * host.top(name, units, row, place)
        if far or host.play(name, units, row, place, rate, 1.0)[0] < 1:
            missed += 1
            if count - missed <= slow_places(count):
                return False
    return True


def sizes_of(asked: Asked, name: str) -> list[int]:
    """Return the numbers of units that a replica may have: those of fewer are among those of more.

    The smallest pools are a prefill unit, on as many GPUs as it has, and one that decodes.
    """
    sizes: list[int] = []
    own = of_architecture(asked, name)
    units = 1 + ceil(prefill_size(own) - LITTLE) if name == "disaggregated" else 1
    while units <= own.units:
        sizes.append(units)
        units += 1 if units < ALL_TO else floor(units / 8)
    return sizes


def sure_top(host: Host, name: str, units: int, row: int, count: int) -> float:
    """Return what a replica serves at full load in nine of ten draws."""
    tops = [host.top(name, units, row, place) for place in range(count)]
    tops.sort(key=lambda top: -top)
    return tops[slow_places(count)]


def hopes_of(asked: Asked, host: Host, name: str, traffic: float, have: float, count: int) -> list[list[float]]:
    """Return (cost, units, row) of the replicas to try, if queues cost nothing.

    The cheapest comes first, before it what would be with queues as usual; of equal ones those of most units, whose
    queues are the shortest.
    """
    hopes: list[list[float]] = []
    sizes = sizes_of(asked, name)
    sizes.reverse()
    for units in sizes:
        for row in range(host.rows(name, units)):
            gpus = replica_gpus(asked, name, units, row)
            alone = name != "disaggregated"  # units without pools serve as much as each of them does
            top = units * sure_top(host, name, 1, row, count) if alone else sure_top(host, name, units, row, count)
            least = cost(FULL * top, gpus, traffic, have)
            if least < inf:
                hopes.append([least, units, row, cost(GUESS * top, gpus, traffic, have)])
    usual = inf
    for hope in hopes:
        usual = min(usual, hope[3])
    first = [hope for hope in hopes if hope[3] == usual][:1]
    hopes.sort(key=lambda hope: hope[0])
    first.extend([hope for hope in hopes if hope[1] != first[0][1] or hope[2] != first[0][2]])
    return first


def pools_of(name: str, units: int, row: int, size: float) -> list[int]:
    """Return the prefill units and the decode units of a replica with one of the rows that are tried; see `trials`.

    `size`: the GPUs of a prefill unit over those of a decode unit.
    """
    prefill = 1 + row * max(1, floor(units / SPLITS)) if name == "disaggregated" else 0
    return [prefill, left_to_decode(units, prefill, size)]


def replica_gpus(asked: Asked, name: str, units: int, row: int) -> int:
    """Return the GPUs of a replica with one of the rows that are tried: units of two sizes may leave some over."""
    own = of_architecture(asked, name)
    if name != "disaggregated":
        return units * own.unit.gpus
    prefill, decode = pools_of(name, units, row, prefill_size(own))
    return prefill * prefill_unit(own).gpus + decode * own.unit.gpus


def smallest_gpus(asked: Asked, name: str) -> int:
    """Return the GPUs of the smallest replica of an architecture."""
    return replica_gpus(asked, name, sizes_of(asked, name)[0], 0)


def no_better(name: str, many: int, units: int, row: int, size: float, failed: list[list[int]]) -> bool:
    """Tell whether replicas have no more units, in either pool, than some that fail, and share queues no better."""
    own = pools_of(name, units, row, size)
    for more, of, which in failed:
        theirs = pools_of(name, of, which, size)
        alike = name == "disaggregated" or which == row
        if alike and many >= more and many * own[0] <= more * theirs[0] and many * own[1] <= more * theirs[1]:
            return True
    return False


def best_among(
    asked: Asked, host: Host, name: str, hopes: list[list[float]], traffic: float, have: float, count: int, looked: int,
    bar: float, guess: float,
) -> tuple[int, int, int, float]:  # fmt: skip
    """Return what `cheapest` does, as far as so many draws that are `looked` at tell: what costs less than a `bar`.

    A `guess` at the rate of the first of them shortens the search.
    """
    units, row, many, each, least = 0, 0, 0, 0.0, bar
    failed: list[list[int]] = []
    size = prefill_size(asked)
    for hope in hopes:
        of, which = floor(hope[1]), floor(hope[2])
        gpus = replica_gpus(asked, name, of, which)
        fits = floor(have / gpus) if have > 0 else (ceil(least / gpus) - 1 if least < inf else 0)
        if hope[0] >= least or (fits > 0 and no_better(name, fits, of, which, size, failed)):
            continue
        if have > 0:
            # Other settings of the same units must be better by more than simulations resolve.
            more = RESOLVED if of == units and name != "disaggregated" else BEATS
            wanted = more * max(-least, 0.0) / fits if least < inf else 0.0
            rate = sure_rate(host, name, of, which, wanted, count, looked, guess)
            guess = 0.0
            its = -rate * fits
        else:
            enough = fewest(host, name, of, which, traffic, fits, count, looked)
            rate, its = traffic / max(enough, 1), enough * gpus
            if enough > 0:
                fits = enough
        if rate > 0 and fits > 0 and its < least and (have > 0 or its > 0):
            units, row, many, each, least = of, which, fits, rate, its
        elif fits > 0:
            failed.append([fits, of, which])
    return units, row, many, each


def cheapest(
    asked: Asked, host: Host, name: str, traffic: float, have: float, count: int, bar: float
) -> tuple[int, int, int, float]:
    """Return (units, row, replicas, requests/s of each) with which the fewest GPUs keep the promise for the traffic.

    Or with which the GPUs that there are serve most. What is more than that at full load needs no simulation, and of
    the rest each is asked once whether it would do better than the best so far. The slowest draws are asked first; all
    of them about what is the best by these. No replicas where none keeps it at less than a `bar`; see `cost`.
    """
    hopes = [hope for hope in hopes_of(asked, host, name, traffic, have, count) if hope[0] < bar]
    units, row, many, each = best_among(asked, host, name, hopes, traffic, have, count, min(FIRST, count), bar, 0.0)
    if many > 0:
        first = [hope for hope in hopes if hope[1] == units and hope[2] == row]
        first.extend([hope for hope in hopes if hope[1] != units or hope[2] != row])
        units, row, many, each = best_among(asked, host, name, first, traffic, have, count, count, bar, each)
    return (units, row, many, each) if many > 0 else (sizes_of(asked, name)[0], 0, 0, 0.0)


def least_of(asked: Asked, host: Host, name: str, traffic: float, have: float, count: int, bar: float) -> float:
    """Return what an architecture costs, if that is less than a `bar`; else it.

    Minus requests/s where there are GPUs, or GPUs for the traffic: what another layout is held against.
    """
    own = of_architecture(asked, name)
    units, row, many, each = cheapest(own, host, name, traffic, have, count, bar)
    if many == 0:
        return bar
    return -each * many if have > 0 else 1.0 * many * replica_gpus(own, name, units, row)


def sure_rate(
    host: Host, name: str, units: int, row: int, least: float, count: int, looked: int, guess: float
) -> float:  # fmt: skip
    """Return about the highest rate at which a replica keeps the promise in nine of ten draws: one that was tried.

    0 where it is not `least`, if that is more than 0. Looked for from a `guess`, if that is; only so many draws are
    `looked` at, see `keeps`.
    """
    top = sure_top(host, name, units, row, count)

    def good(rate: float) -> bool:
        return keeps(host, name, units, row, rate, count, looked)

    if least > 0 and (least > FULL * top or not good(least)):
        return 0.0
    return highest_rates(top, guess if guess > 0 else max(least, GUESS * top), NARROW, good)[0]


def fewest(
    host: Host, name: str, units: int, row: int, traffic: float, most: int, count: int, looked: int
) -> int:  # fmt: skip
    """Return the fewest replicas that keep the promise for a traffic, at most so many if `most` is not 0; else 0.

    Only so many draws are `looked` at; see `keeps`.
    """
    top = sure_top(host, name, units, row, count)
    if not top > 0:
        return 0

    def kept(many: int) -> bool:
        return keeps(host, name, units, row, traffic / many, count, looked)

    short = ceil(traffic / (FULL * top)) - 1
    if most > 0 and (short >= most or not kept(most)):
        return 0
    dearest = floor(traffic / (LEAST * top))
    at = short + 1
    while not kept(at):
        if at > dearest:
            return 0
        short = at
        at = ceil(at * STRIDE) if most <= 0 else min(ceil(at * STRIDE), most)
    return short + 1 + largest_whole(at - short - 1, lambda more: not kept(short + more))


def sustained(host: Host, name: str, units: int, row: int, count: int) -> list[float]:
    """Return what a replica sustains in each draw, from the fastest at full load to the slowest.

    Every fifth draw is simulated, the slowest, too; between two of them the share of full load is taken to change
    evenly, where either sustains anything.
    """
    found: list[float] = [-1.0 for _ in range(count)]
    guess = GUESS
    for place in range(count):
        if place % APART_DRAWS == 0 or place == count - 1:
            found[place] = rate_at(host, name, units, row, place, guess)
            share = found[place] / host.top(name, units, row, place)
            guess = max(share, LEAST) if share > 0 else guess
    for place in range(count):
        if found[place] < 0:
            before = place - place % APART_DRAWS
            after = min(before + APART_DRAWS, count - 1)
            low, high = [found[at] / host.top(name, units, row, at) for at in [before, after]]
            top = host.top(name, units, row, place)
            part = (place - before) / (after - before)
            either = min(low, high) > 0
            found[place] = (
                top * (low + part * (high - low)) if either else rate_at(host, name, units, row, place, GUESS)
            )
    return found


def kept_idle(host: Host, name: str, units: int, row: int, count: int) -> int:
    """Return in how many of the first draws a replica with next to nothing to do keeps the promise."""
    kept = 0
    for place in range(count):
        kept += 1 if host.play(name, units, row, place, IDLE, 1.0)[0] >= 1 else 0
    return kept


def standing(asked: Asked, host: Host, name: str, traffic: float, have: float, count: int) -> Standing:
    """Return the best replica of an architecture, and the fleet of it, or no fleet where it keeps the promise nowhere.

    units, row, gpus, each (requests/s by draw), sure (what it sustains in nine of ten draws), and what `settle` tells.
    `host` answers what was asked before from memory: rows(name, units), the number of `trials`; top(name, units, row,
    place), requests/s at full load; play(name, units, row, place, rate, enough), what is `played`.
    """
    own = of_architecture(asked, name)
    units, row, many, sure = cheapest(own, host, name, traffic, have, count, inf)
    one = Standing(
        name=name,
        units=units,
        row=row,
        gpus=replica_gpus(own, name, units, row),
        each=sustained(host, name, units, row, count),
        sure=sure,
        replicas=many,
        idle=0.0,
    )
    if many > 0:
        settle(host, one, traffic, have, count)
    else:
        one.idle = kept_idle(host, name, units, row, count)
    return one


def crowd(
    fleets: dict[str, Standing], traffic: float, have: float, count: int, doubts: dict[str, list[float]]
) -> Solution:
    """Return which architecture's fleet keeps the promise with the fewest GPUs, or serves most on those that there are.

    Equal ones are ordered by what they serve in the mean over the draws. It is a tie if the next is as good, as far as
    simulations tell rates apart, or if the first is the best less often than `LIKELY` over draws and `doubts`. Replicas
    are whole in each draw, too, and of the size that was chosen for nine in ten.
    """
    rates: dict[str, list[float]] = {}
    costs: dict[str, float] = {}
    for name in ARCHITECTURES:
        rates[name], costs[name] = [0.0 for _ in range(count)], inf
        if name in fleets and fleets[name].replicas > 0:
            one = fleets[name]
            rates[name] = [worth(each, one.gpus, traffic, have) for each in one.each]
            costs[name] = -one.sold if have > 0 else one.gpus_all[0]
    goodput: dict[str, float] = {}
    for name in ARCHITECTURES:
        goodput[name] = mean_of(rates[name])
    solution = chosen(rates, goodput, doubts)
    order = solution.order
    order.sort(key=lambda name: costs[name] if costs[name] < inf else 1e300)  # of equal ones the first stays the first
    first, second = order[0], order[1]
    both = costs[first] < inf and costs[second] < inf
    near = costs[second] <= costs[first] / RESOLVED if have > 0 else costs[second] <= costs[first] * (1 + 1e-9)
    tie = both and (near or solution.best_in[first] < LIKELY)
    best = first if costs[first] < inf else ""
    return replace(solution, best=best, lead=mean_of(leads(rates[first], rates[second])), tie=tie)


def settle(host: Host, one: Standing, traffic: float, have: float, count: int) -> None:
    """Say of a fleet how many GPUs it has, what it serves, and what its requests see at that, by the draws."""
    fits = one.replicas
    own = one.sure if have > 0 else traffic / fits
    rate = fits * own if have > 0 else traffic
    name, units, row = one.name, one.units, one.row
    needs = [ceil(traffic / each) * one.gpus if each > 0 else inf for each in one.each]
    full_loads = [fits * host.top(name, units, row, place) for place in range(count)]
    first: list[float] = []
    gaps: list[float] = []
    kept = 0
    for place in range(count):
        told = host.play(name, units, row, place, own, 1.0)
        if told[0] < 1:  # it was broken off
            told = host.play(name, units, row, place, own, 0.0)
        first.append(told[1])
        gaps.append(told[2])
        kept += 1 if told[0] >= 1 else 0
    spans = [ceil(end / one.gpus - 1e-9) * one.gpus if end < inf else inf for end in spread_of(needs)]
    gpus, served = fits * one.gpus, spread_of([fits * each for each in one.each])
    one.gpus_all = [gpus, min(spans[0], gpus), max(spans[1], gpus)] if have <= 0 else fixed(gpus)
    one.rate = [rate, min(served[0], rate), max(served[1], rate)] if have > 0 else fixed(rate)
    one.sold, one.full, one.kept = rate, median(full_loads), kept / count
    one.ttft, one.tpot = middle_of(first), middle_of(gaps)


def middle_of(values: list[float]) -> list[float]:
    """Return the median of values, and the ends between which nine in ten of them lie."""
    ends = spread_of(values)
    return [median(values), ends[0], ends[1]]


def spread_of(values: list[float]) -> list[float]:
    """Return the ends between which nine in ten of the values lie, infinity among them; few values are interpolated."""
    ordered = list(values)
    ordered.sort(key=lambda one: one)
    return [between(ordered, 0.05), between(ordered, 0.95)]


def between(ordered: list[float], share: float) -> float:
    """Return a quantile of values in order, each in the middle of its part of all."""
    at = min(max(share * len(ordered) - 0.5, 0.0), len(ordered) - 1.0)
    low = floor(at)
    high = min(low + 1, len(ordered) - 1)
    if at == low or ordered[low] == ordered[high]:
        return ordered[low]
    return ordered[low] + (at - low) * (ordered[high] - ordered[low])
