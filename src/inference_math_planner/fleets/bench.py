"""A benchmark as it is run, played: what a client measures, and what the opening burst adds. Printed for the page, too.

Lengths and arrivals come from chances that are spread evenly, so that the same seed gives the same benchmark in Python
and in the browser.
"""

from __future__ import annotations

from math import ceil, exp, floor, inf, log, nan, sqrt
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from inference_math.evidence.records import Record
from inference_math.optimiser.gain_error import gain_error
from inference_math.optimiser.types import Verdict
from inference_math.optimiser.verdict import UNSAID, stands_on, verdict, worded
from inference_math.simulate.engine import Request
from inference_math.simulate.systems import engine_of, run_engine, run_pools
from inference_math.simulate.types import SchedulerPolicy, StepTimes, System
from inference_math.theory.plain import prompts_met, rounds_needed
from inference_math.unit.batch import mean_seen
from inference_math.unit.problem import max_kv_seqs
from inference_math.unit.steps import answer_steps, costs, kv_sent, kv_tokens, unit_terms
from inference_math.unit.types import CoefficientValues, ComparisonError, Message, UnitNumbers
from inference_math.workload.requests import Workload
from inference_math_planner.fleets.goodput import Client, geometric_rows, requests_at, rows_like, stored_of
from inference_math_planner.fleets.queues import shuffled

if TYPE_CHECKING:
    from inference_math.catalogue.engines import EngineRecord

__all__ = [
    "CADENCES", "CLOSE", "bench", "bench_cadence", "bench_latency_ends", "bench_lengths", "bench_limits",
    "bench_played", "bench_pools", "bench_refused", "bench_said", "bench_system", "cadence_errors", "cadence_notes",
    "cadence_said", "cadence_verdict", "ttft_ends",
]  # fmt: skip

CADENCES = [1, 2, 4, 8, 16]  # steps from prompts to prompts that are compared
CLOSE = 0.05  # how near to the steady mean TTFT is near enough
ENDLESS = 1e9  # requests of each user
EACH = 9  # requests of each user, and of all, from which a steady mean is taken, at least
ENOUGH = 2000
MOST_PROMPTS = 100_000  # requests that are played: more take minutes, and their means are the same
# What of a cadence was run both ways, table `comparison_error`, by the columns of `bench_cadence`; "" for what was not.
COMPARED = ["", "cadence, gap", "cadence, p50", "cadence, p90", "", "", "cadence"]
RATE = 6  # the column of which more is better
WORTH = 1.02  # by how much a larger cadence must be better to be called so
SHARES = [0.5, 0.9, 0.99]  # of the quantiles that are told
NINE_IN_TEN = 1.6448536269514722  # standard deviations to either side of a normal mean


class Bench(Record):
    """What is run: mean lengths and how far they go from them, users, requests, requests/s, seconds before a step.

    Of each prompt the share `alpha` is stored. Where there are `rows` of prompt, output and stored tokens, each request
    has one of these. `gaps` are times between arrivals of mean 1, and `chances` numbers below 1, from which lengths are
    drawn.
    """

    n_in: float
    n_out: float
    span: float
    alpha: float
    rows: list[tuple[int, int, int]]
    users: int
    count: int
    rate: float
    front: float
    prefill: list[StepTimes]  # that of prefill units whose layout is their own; else none
    gaps: list[float]
    chances: list[float]


class Noted:
    """What a client notes of its requests: when they were sent, TTFT, TPOT, latency; and gaps with how often."""

    def __init__(self) -> None:
        self.logs = False
        self.notes = True
        self.measured = 0
        self.preempted = 0
        self.sent: list[float] = []
        self.ttft: list[float] = []
        self.tpot: list[float] = []
        self.latency: list[float] = []
        self.gaps: list[tuple[float, float]] = []

    def run(self, first: float, rise: float, steps: int, decodes: int) -> None:
        """Note the gaps of steps in a row, by their mean."""
        if decodes > 0:
            self.gaps.append((first + rise * (steps - 1) / 2, 1.0 * steps * decodes))

    def gap(self, seconds: float) -> None:
        """Note one gap."""
        self.gaps.append((seconds, 1.0))

    def step(
        self, engine: int, start: float, seconds: float, decodes: int, context: float, prefills: float, tokens: int
    ) -> None:
        """Note no step."""

    def request(self, request: Request, admitted: float, first_token: float, finished: float) -> None:
        """Note what its user saw of a request."""
        self.measured += 1
        self.sent.append(request.arrival)
        self.ttft.append(first_token - request.arrival)
        self.latency.append(finished - request.arrival)
        if request.n_out > 1:
            self.tpot.append((finished - first_token) / (request.n_out - 1))


def bench_limits(
    engine: EngineRecord, usual: list[float], groups: int, budget: float, seqs: float, longest: float
) -> list[float]:
    """Return the tokens of a step, and the requests at once, that each of so many groups of attention may have.

    Those that somebody set; where that is infinite, what the engine takes on the GPU, `usual`: of some for all groups
    together. A prompt that is never cut needs a step as long as the `longest` request there is.
    """
    share = groups if engine.scheduler.counts_together else 1
    tokens = budget if budget < inf else floor(usual[0] / share)
    return [max(tokens, longest), seqs if seqs < inf else floor(usual[1] / share)]


def bench_unit(unit: UnitNumbers, engine: EngineRecord, seqs: float) -> UnitNumbers:
    """Return a unit without the memory that the engine keeps to sample so many requests at once, of each group."""
    needed = engine.memory.workspace + engine.memory.sampled * seqs * unit.vocab
    return replace(unit, kv_room=max(0.0, unit.kv_room - unit.gpus * max(0.0, needed - unit.workspace)))


def bench_refused(unit: UnitNumbers, longest: float) -> list[Message]:
    """Say why no benchmark of this unit can be, nothing where one can: its `longest` request does not fit."""
    room = kv_tokens(unit, longest)
    return [{"key": "bench.memory", "needed": longest, "room": room}] if room < longest else []


def bench_system(
    unit: UnitNumbers, work: Workload, engine: EngineRecord, limits: list[float], policy: SchedulerPolicy
) -> System:
    """Return a unit's engine with the limits of `bench_limits`, as the simulator runs it.

    Each group of attention is a rank with prompts of its own, and all wait for the one with the most.
    """
    groups = unit.layout.dp
    return System(
        budget=limits[0] * groups,
        max_batch=max(1, min(max_kv_seqs(unit, work, engine), limits[1] * groups)),
        accepted_per_step=unit.accepted_per_step, verified_per_step=ceil(1 + unit.drafts), policy=policy, ranks=groups,
    )  # fmt: skip


def bench_pools(
    system: System, unit: UnitNumbers, prefill: UnitNumbers, n_in: float, units: list[int], pool_bw: float
) -> System:
    """Return the same in pools: so many units `prefill` and so many decode, a decode unit taking `pool_bw` bytes/s.

    A group of a prefill unit's GPUs computes prompts of its own, as many as have a step's tokens.
    """
    groups, incoming = prefill.layout.dp * prefill.layout.pp, kv_sent(unit, n_in) / n_in / pool_bw
    transfer, budget = groups * incoming * unit.gpus / prefill.gpus, system.budget / unit.layout.dp
    return replace(
        system, prefill_units=units[0], decode_units=units[1], groups=groups, budget=budget, incoming=incoming,
        transfer=transfer,
    )  # fmt: skip


def bench_lengths(mean: float, span: float, chances: list[float]) -> list[int]:
    """Return whole lengths, uniform within the share `span` of their mean, one for each chance."""
    low, high = max(1, floor(mean * (1 - span) + 0.5)), floor(mean * (1 + span) + 0.5)
    return [low + floor(chance * (high - low + 1)) for chance in chances]


def bench_requests(run: Bench) -> list[Request]:
    """Return the requests of a benchmark, none to be sent before its time."""
    count, together = run.count, run.rate == inf
    drawn, others = [shuffled(run.chances, place, count, 0.0) for place in [1, 2]]
    gaps = [0.0 for _ in drawn] if together else shuffled(run.gaps, 3, count, 1.0)
    if len(run.rows) > 0:
        return requests_at(gaps, rows_like(drawn, run.rows), run.rate)
    n_in, n_out = bench_lengths(run.n_in, run.span, drawn), bench_lengths(run.n_out, run.span, others)
    rows = [(n_in[i], n_out[i], stored_of(n_in[i], run.alpha)) for i in range(count)]
    return requests_at(gaps, rows, run.rate)


def bench_played(system: System, cost: StepTimes, run: Bench, requests: list[Request]) -> Any:
    """Return what the client noted (`Noted`), and the seconds that it took."""
    noted, client, count = Noted(), Client(requests, run.users, run.front), len(requests)
    if system.prefill_units > 0:
        prefill = run.prefill[0] if len(run.prefill) > 0 else cost
        return [noted, run_pools(system, prefill, cost, client, noted, count)]
    return [noted, run_engine(engine_of(system, cost, noted), client, noted, count)]


def bench(system: System, cost: StepTimes, run: Bench) -> dict[str, Any]:
    """Return what a benchmark shows: TTFT, TPOT, ITL and latency in seconds as [mean, P50, P90, P99], and more.

    rate (requests finished per second), seconds; burst, the mean TTFT of the first moment, and steady, that of users
    who have spread; enough, the prompts until the mean TTFT is within `CLOSE` of the latter: infinite for equal
    answers, NaN where users wait for a place, and of pools. Of arrivals at a rate these three are NaN. in_flight,
    requests at once.
    """
    users, count, together = run.users, run.count, run.rate < inf
    noted, seconds = bench_played(system, cost, run, bench_requests(run))
    numbers: dict[str, Any] = {
        "ttft": bench_summary(noted.ttft),
        "tpot": bench_summary(noted.tpot),
        "itl": bench_gaps(noted.gaps),
        "latency": bench_summary(noted.latency),
        "rate": count / seconds,
        "seconds": seconds,
        "burst": nan,
        "steady": nan,
        "enough": nan,
    }
    numbers["in_flight"] = min(1.0 * users, numbers["latency"][0] * numbers["rate"])
    if not together:
        first = [noted.ttft[i] for i in range(count) if noted.sent[i] <= 0]
        numbers["burst"] = bench_summary(first)[0]
        if users * EACH <= MOST_PROMPTS:
            numbers["steady"] = bench_steady(system, cost, run)
        free = users <= system.max_batch and not system.prefill_units > 0
        if free and numbers["steady"] > 0:  # else the queue for a place outweighs the burst
            numbers["enough"] = users * bench_rounds(system, cost, run, numbers["burst"], numbers["steady"])
    return numbers


def bench_cadence(system: System, cost: StepTimes, run: Bench, every: int) -> list[float]:
    """Return what a benchmark shows where prompts are computed at every so many steps alone.

    Steps, mean, P50, P90 and P99 of the gaps between tokens, mean TTFT, requests/s.
    """
    other = replace(system, policy=replace(system.policy, every=every))
    noted, seconds = bench_played(other, cost, run, bench_requests(run))
    gaps = bench_gaps(noted.gaps)
    return [every, gaps[0], gaps[1], gaps[2], gaps[3], bench_summary(noted.ttft)[0], run.count / seconds]


def cadence_errors(
    errors: dict[str, ComparisonError], kind: str, generation: str, n_in: float, n_out: float
) -> list[list[float]]:
    """Return the `gain_error` of what a cadence gains by the columns of `bench_cadence`, none where unseen."""
    by_column: list[list[float]] = []
    for name in COMPARED:
        by_column.append(gain_error(errors[name], kind, generation, n_in, n_out) if name != "" else [])
    return by_column


def cadence_verdict(rows: list[list[float]], row: list[float], column: int, gain_errors: list[list[float]]) -> Verdict:
    """Return how sure it is that a row is better in a column than the first of the rows; `UNSAID` of that itself."""
    own, first = gain_errors[column], rows[0][column]
    if len(own) < 1 or row[0] == rows[0][0]:
        return UNSAID
    return verdict([row[column]], [first], own) if column == RATE else verdict([first], [row[column]], own)


def cadence_said(rows: list[list[float]], gain_errors: list[list[float]], option: str) -> list[Message]:
    """Say which cadences are the best at what, and how sure it is that they are better than the first of them.

    Rows are those of `bench_cadence`, `gain_errors` those of `cadence_errors`.
    """
    keys = ["", "cadence.gap", "cadence.gap_p50", "cadence.gap_p90", "cadence.gap_p99", "cadence.ttft"]
    said: list[Message] = []
    every, unsure = rows[0][0], False
    for column in [1, 2, 3, 4, 5]:
        best = rows[0]
        for row in rows:
            if row[column] < best[column] / WORTH:
                best = row
        each: list[Message] = []
        for row in rows:
            if row[column] <= best[column]:
                each.append({"key": "cadence.at", "every": row[0], "seconds": row[column]})
        sure: list[Message] = []
        if best[column] < rows[0][column] / WORTH:
            known = cadence_verdict(rows, best, column, gain_errors)
            one: Message = worded("sure.cadence", known) if known.sure != "" else {"key": "sure.unseen"}
            one["first"] = every
            sure.append(one)
            unsure = unsure or known.sure in ["", "open"]
        said.append({"key": keys[column], "each": each, "count": len(each), "sure": sure})
    if unsure:
        said.append({"key": "sure.measure", "first": every})
    said.append({"key": "cadence.option" if option != "" else "cadence.no_option", "option": option})
    return said


def cadence_notes(ranks: int, known: ComparisonError) -> list[Message]:
    """Say how cadences were played, and what stands behind how sure they are, the row of `comparison_error`."""
    said: list[Message] = [stands_on(known)]
    said.extend(bench_ranks(ranks))
    return said


def bench_ranks(ranks: int) -> list[Message]:
    """Say how groups of attention were played, nothing where there is one."""
    return [{"key": "bench.ranks", "ranks": ranks}] if ranks > 1 else []


def bench_steady(system: System, cost: StepTimes, run: Bench) -> float:
    """Return the mean TTFT of users who have spread: played with answers that forget the start, its later part."""
    users = run.users
    count = users * max(EACH, floor(ENOUGH / users))
    n_in, chances = max(1, floor(run.n_in + 0.5)), shuffled(run.chances, 2, count, 0.0)
    rows = geometric_rows(chances, n_in, run.n_out, stored_of(n_in, run.alpha))
    if len(run.rows) > 0:
        rows = rows_like(chances, run.rows)
    requests = requests_at([0.0 for _ in rows], rows, inf)
    noted, _ = bench_played(system, cost, run, requests)
    order = list(range(count))
    order.sort(key=lambda i: noted.sent[i])
    late = order[floor(users * floor(count / users / 3)) :]
    return bench_summary([noted.ttft[i] for i in late])[0]


def bench_rounds(system: System, cost: StepTimes, run: Bench, burst: float, steady: float) -> float:
    """Return the requests of each user until neither the burst nor what phases keep matters to the mean TTFT."""
    n_in, n_out, cv = ceil(run.n_in), run.n_out, bench_cv(run)
    if not cv > 0:
        return inf
    stored = stored_of(n_in, run.alpha)
    fresh = n_in - stored
    together = max(1, floor(system.budget / fresh))
    met = prompts_met(run.users, ENDLESS, together, n_out, cv)
    prompt = cost.seconds(0, 0.0, 1.0, fresh, (n_in * n_in - stored * stored) / 2)
    more = prompt - cost.seconds(1, run.n_in, 0.0, 0, 0.0)
    needed: float = rounds_needed(burst, steady, max(met, 0.0), max(more, 1e-9), 0.0, CLOSE)
    return ceil(needed)


def bench_cv(run: Bench) -> float:
    """Return the coefficient of variation of the answers, whose lengths are whole."""
    count, total, squares = len(run.rows), 0.0, 0.0
    for row in run.rows:
        total += row[1]
        squares += row[1] ** 2
    if count > 0:
        cv: float = max(count * squares / total**2 - 1, 0.0) ** 0.5
        return cv
    ends = bench_lengths(run.n_out, run.span, [0.0, 0.9999999])
    even: float = (((ends[1] - ends[0] + 1) ** 2 - 1) / 12) ** 0.5 / run.n_out
    return even


def bench_summary(values: list[float]) -> list[float]:
    """Return mean, P50, P90 and P99; NaN where there is nothing."""
    if len(values) < 1:
        return [nan, nan, nan, nan]
    ordered = list(values)
    ordered.sort(key=lambda one: one)
    total = 0.0
    for one in ordered:
        total += one
    summary = [total / len(ordered)]
    for share in SHARES:
        summary.append(bench_quantile(ordered, share))
    return summary


def bench_quantile(ordered: list[float], share: float) -> float:
    """Return a quantile of values in order, interpolated between two of them."""
    at = share * (len(ordered) - 1)
    low = floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (at - low) * (ordered[high] - ordered[low])


def bench_gaps(gaps: list[tuple[float, float]]) -> list[float]:
    """Return mean, P50, P90 and P99 of gaps, each as often as it came."""
    ordered = list(gaps)
    ordered.sort(key=lambda pair: pair[0])
    count, total = 0.0, 0.0
    for seconds, often in ordered:
        count += often
        total += seconds * often
    if not count > 0:
        return [nan, nan, nan, nan]
    summary = [total / count]
    for share in SHARES:
        passed, at = 0.0, 0
        while at < len(ordered) - 1 and passed + ordered[at][1] < share * count:
            passed += ordered[at][1]
            at += 1
        summary.append(ordered[at][0])
    return summary


def ttft_ends(mean: float, front: float, sd: float, spread: float) -> list[float]:
    """Return the factors between which nine in ten measured mean TTFTs lie of what was played.

    `spread` is what they err by with the front of the machines that it was fitted to; others' may be less, as `sd`
    says.
    """
    wide = exp(NINE_IN_TEN * spread)
    part = front * (1 - exp(-NINE_IN_TEN * sd)) / mean
    return [(1 - part) / wide, wide]


def bench_latency_ends(
    unit: UnitNumbers, work: Workload, draws: list[CoefficientValues], left: float, users: float
) -> list[float]:
    """Return the factors between which nine in ten measured mean latencies lie of what was played, so many at once.

    Of the law of means, under coefficients the first of which are the calibration's centre: playing each would take
    minutes. Their logarithms are taken for normal; `left`, what the fit leaves, stretches prompts and decodes alike,
    for it was found on whole latencies.
    """
    together, steps = max(1, floor(users + 0.5)), answer_steps(unit, work.n_out)
    each: list[float] = []
    for coefficients in draws:
        step = costs(unit, unit_terms(unit, coefficients), work, 0.0, 1.0, 1.0).step_seconds
        token = mean_seen(step, together, steps, 0) / unit.accepted_per_step
        each.append(log(mean_seen(step, together, steps, 1) + (work.n_out - 1) * token))
    mean, squares = 0.0, 0.0
    for k in range(1, len(each)):
        mean += (each[k] - each[0]) / (len(each) - 1)
        squares += (each[k] - each[0]) ** 2 / (len(each) - 1)
    wide = NINE_IN_TEN * sqrt(max(squares - mean**2, 0.0) + left**2)
    return [exp(min(mean - wide, 0.0)), exp(max(mean + wide, 0.0))]


def bench_said(
    numbers: dict[str, Any], limits: list[float], front: float, ends: list[float], late: list[float], ranks: int
) -> list[Message]:
    """Say what a benchmark shows beside its table: pace, how sure its TTFT is, the front, the burst, the engine's part.

    `limits` are those of `bench_limits`, `ends` those of `ttft_ends`, `late` those of `bench_latency_ends`; `ranks` the
    groups of attention that were played.
    """
    mean, latency = numbers["ttft"][0], numbers["latency"][0]
    said: list[Message] = [
        {"key": "bench.pace", "rate": numbers["rate"], "seconds": numbers["seconds"]},
        {"key": "bench.ttft", "low": mean * ends[0], "high": mean * ends[1]},
        {"key": "bench.latency", "low": latency * late[0], "high": latency * late[1]},
        {"key": "bench.front", "front": front},
        {"key": "bench.limits", "tokens": limits[0], "seqs": limits[1]},
    ]
    said.extend(bench_ranks(ranks))
    if numbers["enough"] > 0:
        said.append({"key": "bench.burst", "burst": numbers["burst"], "steady": numbers["steady"]})
        never: Message = {"key": "bench.never"}
        enough: Message = {"key": "bench.enough", "enough": numbers["enough"], "close": CLOSE}
        said.append(enough if numbers["enough"] < inf else never)
    return said
