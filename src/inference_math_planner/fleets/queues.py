"""What replicas sustain when requests arrive at random, and fleets of them; the planner's page runs this, too.

Some of the calibration's draws stand for all, each with arrivals of its own, the same for all architectures: what is
drawn holds both the calibration's error and that of the sample.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, floor, inf, log, log1p

from msgspec.structs import replace

from inference_math.evidence.records import Record
from inference_math.optimiser.answers import solve
from inference_math.optimiser.choice import CAREFUL, LIKELY, RESOLVED, chosen, leads, told_rate
from inference_math.optimiser.draws import fixed, mean_of, median
from inference_math.optimiser.load import LITTLE, at_full_load, left_to_decode, most_prefill, pools_rate, settings_row
from inference_math.optimiser.search import ARCHITECTURES, NEVER
from inference_math.optimiser.types import Solution
from inference_math.simulate.chance import Dice, gamma_of
from inference_math.simulate.engine import Request
from inference_math.simulate.pace import Pace
from inference_math.simulate.types import SchedulerPolicy, StepTimes, System
from inference_math.theory.plain import thinned_cv
from inference_math.unit.batch import largest_whole, round_trip
from inference_math.unit.problem import (
    changed,
    computed_tokens,
    kv_seqs,
    max_num_batched_tokens,
    max_num_seqs,
    moved_by,
    of_architecture,
    of_group,
    of_units,
    prefill_size,
    prefill_unit,
    ranks_of,
    search_constants,
    sent_bytes,
    verify_tokens,
    whole_prompt,
)
from inference_math.unit.steps import (
    answer_steps,
    draft_yield,
    floor_terms,
    kv_moved,
    kv_pooled,
    stored_tokens,
    unit_terms,
)
from inference_math.unit.types import CoefficientValues, DrawnCoefficients, OperatingPoint, Problem, StepCosts
from inference_math.workload.lengths import geometric_cv
from inference_math.workload.requests import Workload
from inference_math_planner.answers.card import sized_as
from inference_math_planner.answers.types import Sized
from inference_math_planner.fleets.goodput import Tally, geometric_rows, goodput, requests_at, rows_like
from inference_math_planner.fleets.types import Arriving, Draw, DrawnUnit, FleetCandidate, FleetGoal, RequestSource

DRAWN = 16  # of the calibration's draws, each with arrivals of its own
MEASURED = 400  # requests of a simulation
BEFORE = 0.25  # of the requests that are measured: so many come before them, at least
AFTER = 0.1  # and after them
FILLS = 4.0  # times what is under way at once come before, so that a replica has its usual load; as many stay after
LONGEST = 3000  # requests before, at most
SLICE = 50  # requests of a trace that a replica must get, to tell their share
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


def fleet_settings(problem: Problem, settings: dict[str, OperatingPoint]) -> dict[str, OperatingPoint]:
    """Return the architectures that fleets are made of, with their settings: all that meet the SLA at full load.

    And prompts whole beside decodes, wherever whole prompts before them do. At full load each step has its part of a
    prompt and must keep the limit on TPOT, which no chunk may do; below it the mean TPOT of a request bears long steps.
    What is asked has answers that scatter as those of a fleet do: of them fewer fit at once than of the equal ones that
    a plan may be made of, and no row has more decodes than fit.
    """
    feasible: dict[str, OperatingPoint] = {}
    for name in ARCHITECTURES:
        if settings[name].rate > 0:
            most = kv_seqs(of_architecture(problem, name))
            feasible[name] = seated(settings[name], min(settings[name].batch, most))
    if "aggregated" in feasible and "chunked" not in feasible and search_constants(problem).mixes:
        feasible["chunked"] = settings_row(kv_seqs(problem), problem.work.n_in, NEVER, NEVER)
    return feasible


def trials(problem: Problem, name: str, row: OperatingPoint) -> list[OperatingPoint]:
    """Return the rows to try: an architecture's own, with more decodes, chunks up to whole prompts, or all splits.

    At part load a larger chunk brings the first token sooner, and a request's mean TPOT bears some long steps: so as
    many decodes as the KV cache holds may do beside prompts, where at full load each step must keep the limit, or a
    quantile of the gaps. Pools have so many in any case: a decode that waits for a place waits in its gaps. Pools that
    are equally fast at full load are not at part load: prompts wait for a unit.
    """
    n_in = problem.work.n_in
    rows: list[OperatingPoint] = []
    seats = [row.batch]
    if kv_seqs(problem) > row.batch:
        seats.append(kv_seqs(problem))
    if name == "aggregated":
        if len(seats) > 1 and seats[1] >= APART * seats[0]:
            seats.append(ceil((seats[0] * seats[1]) ** 0.5))
        for batch in seats:
            rows.append(seated(row, batch))
        return rows
    if name == "disaggregated":
        units, size = problem.units, prefill_size(problem)
        for prefill in range(1, most_prefill(units, size) + 1, max(1, floor(units / SPLITS))):
            split = changed(problem, row, row.chunk, prefill, left_to_decode(units, prefill, size))
            rows.append(seated(split, seats[len(seats) - 1]))
        return rows
    whole = max(n_in, row.chunk)
    chunks = [whole]
    for factor in LARGER:
        if SMALLER * factor * row.chunk < whole:
            chunks.append(factor * row.chunk)
    if whole > row.chunk:
        chunks.append(row.chunk)
    for chunk in chunks:
        for batch in seats:
            rows.append(seated(changed(problem, row, chunk, NEVER, NEVER), batch))
    return rows


def seated(row: OperatingPoint, batch: float) -> OperatingPoint:
    """Return a row with so many places for decodes."""
    return replace(row, batch=batch)


def full(problem: Problem, name: str, row: OperatingPoint, one: StepCosts) -> float:
    """Return the requests/s of a replica, all its units, at full load with the settings of a row.

    Of pools all groups of a unit's GPUs have as many prompts. No more decode beside chunks than these replace when they
    finish, whatever places there are.
    """
    chunk = row.chunk
    if name == "disaggregated":
        chunk = of_group(problem, row).chunk * ranks_of(prefill_unit(problem))
    own, constants = changed(problem, row, chunk, row.prefill_units, row.decode_units), search_constants(problem)
    if name == "disaggregated":
        return pools_rate(constants, one, own)
    if name == "aggregated":
        return floor(row.batch) / round_trip(one.step_seconds, floor(row.batch), constants.steps) * problem.units
    if name == "chunked":
        fed = constants.groups * chunk * max(constants.steps - 1, 1) / constants.n_in
        own = replace(own, batch=min(row.batch, fed))
    return at_full_load(constants, one, name, own).rate * problem.units


def system_for(problem: Problem, name: str, row: OperatingPoint) -> System:
    """Return an architecture's row as what the simulator runs."""
    unit, work, first = problem.unit, problem.work, prefill_unit(problem)
    ranks = ranks_of(first)
    n_in, batch = work.n_in, ceil(row.batch)
    cached = stored_tokens(n_in, work.alpha)
    # What is written waits with what is loaded: of recorded requests as much with each stored token.
    waits = kv_moved(unit, work, problem.read_bw) / cached if cached > 0 else 0.0
    pools = name == "disaggregated"
    incoming = sent_bytes(problem) / n_in / problem.pool_bw
    # Each group of attention has a whole prompt, or a chunk, of its own.
    budget, most, own = inf, batch, unit.layout.dp
    if name == "aggregated" and problem.engine.scheduler.counts_decodes:  # whose steps have a whole prompt's tokens
        budget = max_num_batched_tokens(problem, whole_prompt(problem), batch)
    if name == "disaggregated":
        budget, own = computed_tokens(problem, of_group(problem, row)), 1
    if name == "chunked":  # prompts under way hold places, too
        budget = max_num_batched_tokens(problem, computed_tokens(problem, row), batch)
        most = max_num_seqs(problem, row)
    return System(
        engines=1 if name == "disaggregated" else problem.units,
        prefill_units=floor(row.prefill_units) if pools else 0, groups=ranks,
        decode_units=floor(row.decode_units) if pools else problem.units,
        transfer=ranks * incoming * unit.gpus / first.gpus, incoming=incoming,
        budget=budget, max_batch=most,
        kv_capacity=kv_pooled(unit, n_in + work.n_out, problem.engine.memory.windows),
        grows=problem.engine.memory.kv_grows, load=waits,
        accepted_per_step=unit.accepted_per_step, verified_per_step=verify_tokens(problem),
        policy=SchedulerPolicy(ahead=problem.ahead), ranks=own,
    )  # fmt: skip


def pace_of(problem: Problem, coefficients: CoefficientValues, factors: list[float]) -> Pace:
    """Return the steps of a unit under some `coefficients`, a step and its prompts' part stretched."""
    unit, work = problem.unit, problem.work
    room = BEYOND * kv_pooled(unit, work.n_in + work.n_out, problem.engine.memory.windows)
    return Pace(
        unit_terms(unit, moved_by(coefficients, problem.moves)), floor_terms(unit), factors[0], factors[1], room
    )


def prefill_pace(problem: Problem, coefficients: CoefficientValues, factors: list[float]) -> Pace:
    """Return the steps of a unit of the prefill pool."""
    moves = problem.pools[0].prefill_moves if len(problem.pools) > 0 else problem.moves
    return pace_of(replace(problem, unit=prefill_unit(problem), moves=moves), coefficients, factors)


def representative(problem: Problem, each: list[StepCosts]) -> list[int]:
    """Return draws that stand for all, evenly spread: by what one more request costs, from the least to the most.

    Limits and units do not count, so that what is asked with others of these is asked under the same draws. Another
    unit puts the draws in another order, so that others stand for all: between two units whose costs lie close together
    fleets may differ by a unit for that alone.
    """
    steps = answer_steps(problem.unit, problem.work.n_out)
    needs = [one.ttft_1 + steps * (one.cache_read + one.own) for one in each]
    order = list(range(len(each)))
    order.sort(key=lambda i: needs[i])
    many = min(DRAWN, len(order))
    return [order[floor((k + 0.5) * len(order) / many)] for k in range(many)]


def replicas_sharing(cv: float, goal: FleetGoal, gpus: float, rate: float) -> float:
    """Return how many replicas share the arrivals of which one gets `rate`: as many as the traffic, or the GPUs, make.

    `cv` is that of the times between all arrivals; 1 where it does not matter: a part of arrivals at random is at
    random, too.
    """
    if cv == 1:
        return 1.0
    return max(floor(goal.have / gpus), 1.0) if goal.have > 0 else max(goal.traffic / rate, 1.0)


def cv_at_each(cv: float, replicas: float) -> float:
    """Return the CV of the times between arrivals at one of the replicas to which requests come by chance."""
    return thinned_cv(cv, 1 / replicas)


def thinned(cv: float, seed: float, count: int, replicas: float) -> list[float]:
    """Return times between arrivals, of mean 1, at one of the replicas to which requests come by chance.

    Times between all arrivals are gamma distributed, so a time here is a sum of as many as come until one comes here,
    a geometric number; see `cv_at_each`.
    """
    dice, varied = Dice(seed), cv**2
    gaps: list[float] = []
    total = 0.0
    for _ in range(count):
        passed = max(ceil(log1p(-dice.roll()) / log1p(-1 / replicas)), 1) if replicas > 1 else 1
        one = varied * gamma_of(passed / varied, dice) if varied > STEADY else passed
        gaps.append(one)
        total += one
    return [one * count / total for one in gaps]


def dealt(trace: list[tuple[float, int, int, int]], replicas: int) -> list[Request]:
    """Return the requests of a trace that the first of some replicas gets which take turns."""
    requests: list[Request] = []
    for i in range(0, len(trace), replicas):
        arrival, n_in, n_out, cached = trace[i]
        requests.append(Request(len(requests), arrival, n_in, n_out, cached))
    return requests


def usually_under_way(problem: Problem, system: System, pace: StepTimes, rate: float) -> float:
    """Return about how many requests of a replica decode at once, by Little's law and steps without prompts."""
    units = system.decode_units if system.prefill_units > 0 else system.engines
    n_out, each = problem.work.n_out, rate / units
    context, steps = problem.work.n_in + n_out / 2, answer_steps(problem.unit, n_out)
    decodes = 1.0
    for _ in range(SETTLES):
        decodes = min(max(each * steps * pace.bare(ceil(decodes), ceil(decodes) * context), 1.0), system.max_batch)
    return units * decodes


def differ(problem: Problem, requests: list[Request], chances: list[float], place: int) -> None:
    """Let requests that draft differ in how many of their drafts are accepted, each by a chance of its own.

    The chance that one is accepted scatters by `ACCEPTED_SD` about its middle, as a logistic variable cut off at 0 and
    1. All together take as many steps for their tokens as if they were alike: what differs is who keeps the promise.
    """
    unit = problem.unit
    if not unit.drafts > 0:
        return
    middle = middle_of_accepted(unit.drafts, unit.accepted_per_step)
    own = shuffled(chances, place + DRAWN, len(requests), 0.0)
    for i in range(len(requests)):
        requests[i].accepted_per_step = own_yield(unit.drafts, middle, own[i])


def own_yield(drafts: float, middle: float, chance: float) -> float:
    """Return the tokens that a step gives a request of a chance, where acceptance scatters about a middle."""
    accepted = middle + LOGISTIC * ACCEPTED_SD * log(chance / (1 - chance))
    return draft_yield(drafts, min(max(accepted, 0.0), 1.0))


def middle_of_accepted(drafts: float, accepted_per_step: float) -> float:
    """Return about which middle acceptance scatters, so that the harmonic mean of the yields is what a step gives."""
    low, high = -1.0, 2.0
    for _ in range(BISECTIONS):
        middle, steps = (low + high) / 2, 0.0
        for i in range(STRATA):
            steps += 1 / own_yield(drafts, middle, (i + 0.5) / STRATA) / STRATA
        if steps > 1 / accepted_per_step:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def shuffled(values: list[float], place: int, count: int, mean: float) -> list[float]:
    """Return so many of the values, in an order that hangs on the place, scaled to a mean where one is given."""
    size = len(values)
    stride, at = place * 37 % (size - 1) + 1, place * 53 % size
    chosen_values: list[float] = []
    total = 0.0
    for _ in range(count):
        chosen_values.append(values[at])
        total += values[at]
        at = (at + stride) % size
    if mean > 0:
        return [one * mean * count / total for one in chosen_values]
    return chosen_values


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


def cost(rate: float, gpus: float, goal: FleetGoal) -> float:
    """Return the GPUs that a traffic takes, or where there are GPUs, minus the requests/s that they serve.

    By the requests/s of each replica, and its `gpus`. The less the better; infinity for what is not possible.
    """
    if rate <= 0 or (goal.have > 0 and gpus > goal.have):
        return inf
    return -rate * floor(goal.have / gpus) if goal.have > 0 else ceil(goal.traffic / rate) * gpus


def worth(rate: float, gpus: float, goal: FleetGoal) -> float:
    """Return the requests/s of a GPU that is there, or that is bought: what is compared; 0 for what is not possible."""
    its = cost(rate, gpus, goal)
    if its == inf:
        return 0.0
    return -its / goal.have if goal.have > 0 else goal.traffic / its


def slow_places(count: int) -> int:
    """Return the place, of values from the best to the worst, that a fleet is sized for: nine in ten are no worse."""
    return ceil(CAREFUL * count) - 1


def sizes_of(problem: Problem, name: str) -> list[int]:
    """Return the numbers of units that a replica may have: those of fewer are among those of more.

    The smallest pools are a prefill unit, on as many GPUs as it has, and one that decodes.
    """
    sizes: list[int] = []
    own = of_architecture(problem, name)
    units = 1 + ceil(prefill_size(own) - LITTLE) if name == "disaggregated" else 1
    while units <= own.units:
        sizes.append(units)
        units += 1 if units < ALL_TO else floor(units / 8)
    return sizes


def smallest_gpus(problem: Problem, name: str) -> int:
    """Return the GPUs of the smallest replica of an architecture."""
    own = of_architecture(problem, name)
    if name != "disaggregated":
        return own.unit.gpus
    return prefill_unit(own).gpus + left_to_decode(sizes_of(problem, name)[0], 1, prefill_size(own)) * own.unit.gpus


class Replica:
    """Units of an architecture behind one router, with the settings of a row: simulated draw by draw.

    What was simulated is kept. `number` is that of its row, of `trials`; the draws go from the fastest to the slowest.
    """

    def __init__(
        self, simulator: ReplicaSimulator, name: str, problem: Problem, row: OperatingPoint, number: int
    ) -> None:
        pools = name == "disaggregated"
        self.name = name
        self.problem = problem
        self.units = problem.units
        self.row = row
        self.number = number
        self.prefill_units = floor(row.prefill_units) if pools else 0
        self.decode_units = floor(row.decode_units) if pools else problem.units
        self.gpus = self.prefill_units * prefill_unit(problem).gpus + self.decode_units * problem.unit.gpus
        self._simulator = simulator
        self._tops: list[float] = []
        self._known: dict[tuple[int, float, bool], list[float]] = {}

    def tops(self) -> list[float]:
        """Return the requests/s at full load, by draw."""
        if len(self._tops) == 0 and self.prefill_units == 0 and self.units > 1:
            alone = self._simulator.replicas(self.name, 1)[self.number]  # each unit serves as much without the others
            self._tops = [self.units * top for top in alone.tops()]
        elif len(self._tops) == 0:
            draws = self._simulator.drawn[self.name].draws
            self._tops = [full(self.problem, self.name, self.row, draw.costs) for draw in draws]
        return self._tops

    def rate_at_p90(self) -> float:
        """Return what it serves at full load in nine of ten draws."""
        tops = list(self.tops())
        tops.sort(key=lambda top: -top)
        return tops[slow_places(len(tops))]

    def simulate(self, place: int, rate: float, hasty: bool) -> list[float]:
        """Return (score, mean TTFT, mean TPOT) in a draw of the requests of a replica that gets `rate` a second.

        A score of 1 keeps the promise. Where it does not, a hasty simulation ends early; see `goodput`.
        """
        key = (place, rate, hasty)
        seen = self._known.get(key, [])
        if len(seen) == 0:
            self._simulator.pause()
            seen = self._simulated(place, rate, hasty)
            self._known[key] = seen
        return seen

    def _simulated(self, place: int, rate: float, hasty: bool) -> list[float]:
        problem, source = self.problem, self._simulator.source
        draw, system = self._simulator.drawn[self.name].draws[place], system_for(self.problem, self.name, self.row)
        if len(source.trace) > 0:
            replicas = ceil(source.goal.traffic / rate - 1e-9)
            requests = dealt(source.trace, min(max(replicas, 1), max(floor(len(source.trace) / SLICE), 1)))
            since, until = 0, len(requests)
        else:
            under_way = usually_under_way(problem, system, draw.pace, rate)
            since = min(max(floor(BEFORE * MEASURED + 0.5), ceil(FILLS * under_way)), LONGEST)
            until = since + MEASURED
            requests = self._arriving(place, rate, until + max(ceil(AFTER * MEASURED), ceil(under_way)))
        differ(problem, requests, source.lengths, place)
        tally = Tally(problem.ttft, problem.tpot, draw.front, since, until, source.share, hasty)
        return goodput(system, draw.prefill, draw.pace, requests, tally)

    def _arriving(self, place: int, rate: float, count: int) -> list[Request]:
        """Return so many requests of a draw, which has its own arrivals."""
        source, known = self._simulator.source, self._simulator.arrivals(place, count)
        gaps = known.gaps
        if source.cv != 1:  # those at random are those of all replicas; else a part of all is drawn
            gaps = thinned(source.cv, known.seed, count, replicas_sharing(source.cv, source.goal, self.gpus, rate))
        return requests_at(gaps, known.rows, rate)

    def keeps(self, rate: float, draws_used: int) -> bool:
        """Tell whether the promise is kept at a rate in nine of ten draws; the slowest are asked first.

        Only `draws_used` are simulated: fewer than all tell that the promise may be kept, or that it is not.
        """
        tops = self.tops()
        count = len(tops)
        spare = count - 1 - slow_places(count)  # draws that may miss it
        for k in range(draws_used):
            if draws_used - k <= spare:
                return True
            place = count - 1 - k
            if rate > FULL * tops[place] or self.simulate(place, rate, True)[0] < 1:
                spare -= 1
                if spare < 0:
                    return False
        return True

    def kept_idle(self) -> int:
        """Return in how many of the draws it keeps the promise with next to nothing to do."""
        return len([place for place in range(len(self.tops())) if self.simulate(place, IDLE, True)[0] >= 1])

    def idle(self) -> list[float]:
        """Return (score, mean TTFT, mean TPOT), each as nine of ten draws keep it, with next to nothing to do."""
        count = len(self.tops())
        draws = [self.simulate(place, IDLE, False) for place in range(count)]
        scores, firsts, gaps = [[draw[i] for draw in draws] for i in range(3)]
        scores.sort(key=lambda score: -score)
        firsts.sort(key=lambda first: first)
        gaps.sort(key=lambda gap: gap)
        slow = slow_places(count)
        return [scores[slow], firsts[slow], gaps[slow]]


class ReplicaSimulator:
    """Has the replicas of a plan, of all sizes and with all settings to try, under the draws that stand for all.

    It is told the plan's question, what was solved of it under which draws, and what requests are made of.
    """

    def __init__(
        self, problem: Problem, solved: Solution, draws: list[DrawnCoefficients], source: RequestSource
    ) -> None:  # fmt: skip
        # Answers scatter as geometric ones do, be it that those of a plan are equal: fewer fit at once.
        self.problem = replace(
            problem, work=replace(problem.work, lengths="geometric", cv=geometric_cv(problem.work.n_out))
        )
        self.solved = solved
        self.source = source
        together = drawn_unit(self.problem, solved.costs, draws, 0.0)
        apart = drawn_unit(
            of_architecture(self.problem, "disaggregated"), solved.pool_costs, draws, problem.handover
        )  # fmt: skip
        # Settings are chosen under the draws that stand for all.
        chosen = solved_under(problem, solved, draws, together.places)
        other = [k for k in range(len(apart.places)) if apart.places[k] != together.places[k]]
        pooled = solved_under(problem, solved, draws, apart.places) if len(other) > 0 else chosen
        self.drawn: dict[str, DrawnUnit] = {}
        settings: dict[str, OperatingPoint] = {}
        for name in ARCHITECTURES:
            pools = name == "disaggregated"
            self.drawn[name] = apart if pools else together
            settings[name] = pooled[name] if pools else chosen[name]
        self.settings = fleet_settings(self.problem, settings)
        self.count = len(together.places)
        self._replicas: dict[tuple[str, int], list[Replica]] = {}
        self._arrivals = [Arriving(gaps=[], rows=[], seed=0.0) for _ in together.places]

    def arrivals(self, place: int, count: int) -> Arriving:
        """Return so many arrivals of a draw, kept until another number is asked for."""
        if len(self._arrivals[place].rows) != count:
            self._arrivals[place] = arriving(self.source, self.problem.work, place, count)
        return self._arrivals[place]

    def pause(self) -> None:
        """Do what must be done before a simulation: the page has others run."""

    def holds(self) -> bool:
        """Tell whether the KV cache of a unit has room for each request of a mix."""
        longest = 0
        for n_in, n_out, _ in self.source.like:
            longest = max(longest, n_in + n_out)
        rooms = [system_for(self.drawn[name].problem, name, self.settings[name]).kv_capacity for name in self.settings]
        return len([room for room in rooms if longest > room]) == 0

    def replicas(self, name: str, units: int) -> list[Replica]:
        """Return the replicas of so many units, by their rows."""
        key = (name, units)
        replicas = self._replicas.get(key, [])
        if len(replicas) == 0:
            own = of_units(self.drawn[name].problem, units)
            rows = trials(own, name, self.settings[name])
            replicas = [Replica(self, name, own, rows[i], i) for i in range(len(rows))]
            self._replicas[key] = replicas
        return replicas

    def smallest(self, name: str) -> Replica:
        """Return the smallest replica of an architecture, with the settings that are tried first."""
        return self.replicas(name, sizes_of(self.problem, name)[0])[0]

    def able(self, names: list[str]) -> bool:
        """Tell whether some replica may keep the promise with next to nothing to do; if none may, none does under load.

        Only the slowest draws are looked at.
        """
        for name in names:
            for replica in self.replicas(name, self.smallest(name).units):
                if replica.keeps(IDLE, min(FIRST, self.count)):
                    return True
        return False


def arriving(source: RequestSource, work: Workload, place: int, count: int) -> Arriving:
    """Return so many requests of a draw, which has its own arrivals, at random."""
    lengths, stored = shuffled(source.lengths, place, count, 0.0), stored_tokens(work.n_in, work.alpha)
    rows = geometric_rows(lengths, max(floor(work.n_in + 0.5), 1), work.n_out, stored)
    if len(source.like) > 0:
        rows = rows_like(lengths, source.like)
    return Arriving(gaps=shuffled(source.gaps, place, count, 1.0), rows=rows, seed=lengths[0])


def drawn_unit(problem: Problem, costs: list[StepCosts], draws: list[DrawnCoefficients], handover: float) -> DrawnUnit:
    """Return a unit that does both, or one of pools, under the draws that stand for all."""
    places = representative(problem, costs)
    few: list[Draw] = []
    for i in places:
        coefficients, factors = draws[i]
        pace, prefill = pace_of(problem, coefficients, factors), prefill_pace(problem, coefficients, factors)
        few.append(Draw(pace=pace, prefill=prefill, front=costs[i].front + handover, costs=costs[i]))
    return DrawnUnit(problem=problem, places=places, draws=few)


def solved_under(
    problem: Problem, solved: Solution, draws: list[DrawnCoefficients], places: list[int]
) -> dict[str, OperatingPoint]:  # fmt: skip
    """Return the settings that are chosen under a few of the draws."""
    return solved.settings if len(places) == len(draws) else solve(problem, [draws[i] for i in places]).settings


class Candidate(Record):
    """A replica to try, and what a fleet of it costs without queues, and with queues as usual; see `cost`."""

    replica: Replica
    bound: float
    usual: float


class Incumbent(Record):
    """The best fleet so far, replicas with so many requests/s each, or none; see `cost`."""

    replica: Replica
    replicas: int = 0
    rate: float = 0.0
    cost: float = inf


def candidates(simulator: ReplicaSimulator, name: str, goal: FleetGoal) -> list[Candidate]:
    """Return the replicas to try: that which costs least without queues comes first.

    Before it what would be with queues as usual; of equal ones those of most units, whose queues are the shortest.
    """
    options: list[Candidate] = []
    sizes = sizes_of(simulator.problem, name)
    sizes.reverse()
    for units in sizes:
        for replica in simulator.replicas(name, units):
            top = replica.rate_at_p90()
            bound, usual = cost(FULL * top, replica.gpus, goal), cost(GUESS * top, replica.gpus, goal)
            if bound < inf:
                options.append(Candidate(replica=replica, bound=bound, usual=usual))
    usually = list(options)
    usually.sort(key=lambda candidate: candidate.usual)
    options.sort(key=lambda candidate: candidate.bound)
    return led_by(usually[0].replica, options) if len(options) > 0 else options


def led_by(replica: Replica, others: list[Candidate]) -> list[Candidate]:
    """Return candidates in their order, but first that of a replica."""
    first = [candidate for candidate in others if candidate.replica is replica]
    first.extend([candidate for candidate in others if candidate.replica is not replica])
    return first


def no_better(replica: Replica, many: int, failed: list[Incumbent]) -> bool:
    """Tell whether replicas have no more units, in either pool, than some that fail, and share queues no better."""
    prefill, decode = many * replica.prefill_units, many * replica.decode_units
    for other in failed:
        than = other.replica
        alike = replica.name == "disaggregated" or than.number == replica.number
        fewer = prefill <= other.replicas * than.prefill_units and decode <= other.replicas * than.decode_units
        if alike and fewer and many >= other.replicas:
            return True
    return False


def best_among(
    tried: list[Candidate], none: Incumbent, goal: FleetGoal, draws_used: int, before: Incumbent
) -> Incumbent:
    """Return the best fleet of some candidates, as far as `draws_used` tell, the slowest; else `none`.

    Of equal ones the first. What costs more without queues than the best so far needs no simulation; of the rest each
    is asked once whether it does better. A fleet that was the best `before`, of the first of them, shortens the search.
    """
    best, best_place = none, -1
    failed: list[Incumbent] = []
    order = list(range(len(tried)))
    # Large replicas share their queues: where they fail, small ones do. Pools are split into whole units: not so there.
    if goal.have <= 0 and len(tried) > 0 and tried[0].replica.name != "disaggregated":
        order.sort(key=lambda i: -tried[i].replica.units if i > 0 or before.replicas == 0 else -inf)
    for i in order:
        replica = tried[i].replica
        cost_to_beat = best.cost + 1 if i < best_place else best.cost
        most = most_replicas(replica.gpus, goal, cost_to_beat)
        if tried[i].bound >= cost_to_beat or (most > 0 and no_better(replica, most, failed)):
            continue
        near = best if best.replicas > 0 else before
        if goal.have > 0:
            fleet = most_served(replica, most, best, draws_used, near.rate if replica is near.replica else 0.0)
        else:
            fleet = fewest(replica, most, near, goal, draws_used)
        if fleet.replicas > 0 and fleet.cost < cost_to_beat:
            best, best_place = fleet, i
        elif most > 0:
            failed.append(Incumbent(replica=replica, replicas=most))
    return best


def most_replicas(gpus: int, goal: FleetGoal, cost_to_beat: float) -> int:
    """Return how many replicas fit into the GPUs that there are, or cost less than another fleet; 0 for any number."""
    if goal.have > 0:
        return floor(goal.have / gpus)
    return ceil(cost_to_beat / gpus) - 1 if cost_to_beat < inf else 0


def cheapest(simulator: ReplicaSimulator, name: str, goal: FleetGoal, cost_to_beat: float) -> Incumbent:
    """Return the fleet of an architecture of the fewest GPUs that keep the promise for the traffic.

    Or with which the GPUs that there are serve most. The slowest draws are asked first; all of them about what is the
    best by these. No replicas where none keeps the promise at less than `cost_to_beat`; see `cost`.
    """
    tried = [candidate for candidate in candidates(simulator, name, goal) if candidate.bound < cost_to_beat]
    none = Incumbent(replica=simulator.smallest(name), cost=cost_to_beat)
    first = best_among(tried, none, goal, min(FIRST, simulator.count), none)
    return best_among(led_by(first.replica, tried), none, goal, simulator.count, first) if first.replicas > 0 else none


def least_of(simulator: ReplicaSimulator, names: list[str], goal: FleetGoal, cost_to_beat: float) -> float:
    """Return what the best of some architectures costs, if that is less than `cost_to_beat`; else infinity.

    Minus requests/s where there are GPUs, or GPUs for the traffic: what another layout is held against.
    """
    own = [name for name in names if name in simulator.settings]
    if not simulator.holds() or not simulator.able(own):
        return inf
    own.sort(key=lambda name: -told_rate(simulator.solved, name)[0])
    least = cost_to_beat
    for name in own:
        least = cheapest(simulator, name, goal, least).cost
    return least if least < cost_to_beat else inf


def most_served(replica: Replica, many: int, best: Incumbent, draws_used: int, start: float) -> Incumbent:
    """Return as many replicas as there are, at the rate at which each keeps the promise, if that is more than the best.

    Else none. Other settings of the same units must be better by more than simulations resolve. The rate is one that
    was tried: looked for from a `start`, if that is; only `draws_used` are simulated, see `keeps`.
    """
    top, least = replica.rate_at_p90(), 0.0

    def good(rate: float) -> bool:
        return replica.keeps(rate, draws_used)

    if best.cost < inf:
        alike = best.replicas > 0 and replica.units == best.replica.units and replica.name != "disaggregated"
        least = (RESOLVED if alike else BEATS) * max(-best.cost, 0.0) / many
    if least > 0 and (least > FULL * top or not good(least)):
        return Incumbent(replica=replica)
    rate = highest_rates(top, start if start > 0 else max(least, GUESS * top), NARROW, good)[0]
    return Incumbent(replica=replica, replicas=many if rate > 0 else 0, rate=rate, cost=-rate * many)


def fewest(replica: Replica, most: int, near: Incumbent, goal: FleetGoal, draws_used: int) -> Incumbent:
    """Return the fewest replicas that keep the promise for a traffic, at most so many if `most` is not 0; else none.

    Only `draws_used` are simulated; see `keeps`. It looks first where another fleet is, as a share of full load.
    """
    top, traffic = replica.rate_at_p90(), goal.traffic

    def fleet_of(many: int) -> Incumbent:
        return Incumbent(replica=replica, replicas=many, rate=traffic / max(many, 1), cost=1.0 * many * replica.gpus)

    def missed(many: int) -> bool:
        return not replica.keeps(traffic / many, draws_used)

    short = ceil(traffic / (FULL * top)) - 1 if top > 0 else 0
    if near.replica is replica and near.replicas > 0 and not missed(near.replicas):
        return fleet_of(near.replicas)  # with fewer draws it was found that fewer do not
    if not top > 0 or (most > 0 and (short >= most or missed(most))):
        return Incumbent(replica=replica)
    # Numbers of replicas to try, the last of which is enough if only so many may be.
    steps = [short + 1]
    end = most if most > 0 else floor(traffic / (LEAST * top)) + 1
    while steps[len(steps) - 1] < end:
        step = ceil(steps[len(steps) - 1] * STRIDE)
        steps.append(step if most <= 0 else min(step, most))
    share = near.rate / near.replica.rate_at_p90() if near.replicas > 0 else GUESS
    last = len(steps) - 1 if most > 0 else len(steps)
    at = min(len([step for step in steps if step < traffic / (share * top)]), last)
    while at < last and missed(steps[at]):
        at += 1
    while at > 0 and not missed(steps[at - 1]):
        at -= 1
    if at == len(steps):
        return Incumbent(replica=replica)
    short = steps[at - 1] if at > 0 else short
    return fleet_of(short + 1 + largest_whole(steps[at] - short - 1, lambda more: missed(short + more)))


def rate_at(replica: Replica, place: int, start: float) -> float:
    """Return about what a replica sustains in a draw."""
    top = replica.tops()[place]
    low, high = highest_rates(top, start * top, WIDE, lambda rate: replica.simulate(place, rate, True)[0] >= 1)
    between_both: float = (low * high) ** 0.5
    return between_both


def sustained(replica: Replica) -> list[float]:
    """Return what a replica sustains in each draw.

    Every fifth draw is simulated, the slowest, too; between two of them the share of full load is taken to change
    evenly, where either sustains anything.
    """
    tops = replica.tops()
    count = len(tops)
    rates: list[float] = [-1.0 for _ in tops]
    start = GUESS
    for place in range(count):
        if place % APART_DRAWS == 0 or place == count - 1:
            rates[place] = rate_at(replica, place, start)
            share = rates[place] / tops[place]
            start = max(share, LEAST) if share > 0 else start
    for place in range(count):
        if rates[place] < 0:
            before = place - place % APART_DRAWS
            after = min(before + APART_DRAWS, count - 1)
            low, high = rates[before] / tops[before], rates[after] / tops[after]
            part = (place - before) / (after - before)
            either = min(low, high) > 0
            rates[place] = tops[place] * (low + part * (high - low)) if either else rate_at(replica, place, GUESS)
    return rates


def best_fleet(simulator: ReplicaSimulator, name: str, goal: FleetGoal) -> FleetCandidate:
    """Return the best replica of an architecture, and the fleet of it: none where it keeps the promise nowhere."""
    best = cheapest(simulator, name, goal, inf)
    replica = best.replica
    fleet = FleetCandidate(
        name=name, units=replica.units, row=replica.number, gpus=replica.gpus, each=sustained(replica),
        replicas=best.replicas, idle=0 if best.replicas > 0 else replica.kept_idle(),
    )  # fmt: skip
    if best.replicas > 0:
        settle(fleet, best, goal)
    return fleet


def settle(fleet: FleetCandidate, best: Incumbent, goal: FleetGoal) -> None:
    """Say of a fleet how many GPUs it has, what it serves, and what its requests see at that, by the draws."""
    replica, many, owned = best.replica, best.replicas, goal.have > 0
    rate = many * best.rate if owned else goal.traffic
    tops = replica.tops()
    needs = [ceil(goal.traffic / each) * replica.gpus if each > 0 else inf for each in fleet.each]
    first: list[float] = []
    gaps: list[float] = []
    kept = 0
    for place in range(len(tops)):
        seen = replica.simulate(place, best.rate, True)
        if seen[0] < 1:  # it was broken off
            seen = replica.simulate(place, best.rate, False)
        first.append(seen[1])
        gaps.append(seen[2])
        kept += 1 if seen[0] >= 1 else 0
    spans = [ceil(end / replica.gpus - 1e-9) * replica.gpus if end < inf else inf for end in spread_of(needs)]
    gpus, served = many * replica.gpus, spread_of([many * each for each in fleet.each])
    fleet.gpus_all = fixed(gpus) if owned else [gpus, min(spans[0], gpus), max(spans[1], gpus)]
    fleet.rate = [rate, min(served[0], rate), max(served[1], rate)] if owned else fixed(rate)
    fleet.sold, fleet.full, fleet.feasible_share = rate, median([many * top for top in tops]), kept / len(tops)
    fleet.ttft, fleet.tpot = middle_of(first), middle_of(gaps)


def fleet_sized(replica: Replica, fleet: FleetCandidate) -> Sized:
    """Return what a card compares of a fleet."""
    size = sized_as(replica.problem, replica.name, replica.units, replica.row)
    size.replicas, size.gpus, size.rate = fleet.replicas, fleet.gpus_all, fleet.rate
    size.ttft, size.tpot, size.feasible_share = fleet.ttft, fleet.tpot, fleet.feasible_share
    return size


def choose_fleet(
    fleets: dict[str, FleetCandidate], goal: FleetGoal, count: int, gain_errors: dict[str, list[float]]
) -> Solution:  # fmt: skip
    """Return which architecture's fleet keeps the promise with the fewest GPUs, or serves most on those that there are.

    Equal ones are ordered by what they serve in the mean over the draws. It is a tie if the next is as good, as far as
    simulations tell rates apart, or if the first is the best less often than `LIKELY` over draws and gain errors.
    Replicas are whole in each draw, too, and of the size that was chosen for nine in ten.
    """
    rates: dict[str, list[float]] = {}
    costs: dict[str, float] = {}
    goodput: dict[str, float] = {}
    for name in ARCHITECTURES:
        rates[name], costs[name] = [0.0 for _ in range(count)], inf
        if name in fleets and fleets[name].replicas > 0:
            fleet = fleets[name]
            rates[name] = [worth(rate, fleet.gpus, goal) for rate in fleet.each]
            costs[name] = -fleet.sold if goal.have > 0 else fleet.gpus_all[0]
        goodput[name] = mean_of(rates[name])
    solution = chosen(rates, goodput, gain_errors)
    order = solution.order
    order.sort(key=lambda name: costs[name] if costs[name] < inf else 1e300)  # of equal ones the first stays the first
    first, second = order[0], order[1]
    both = costs[first] < inf and costs[second] < inf
    near = costs[second] <= costs[first] / RESOLVED if goal.have > 0 else costs[second] <= costs[first] * (1 + 1e-9)
    tie = both and (near or solution.best_in[first] < LIKELY)
    best = first if costs[first] < inf else ""
    return replace(solution, best=best, lead=mean_of(leads(rates[first], rates[second])), tie=tie)


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
