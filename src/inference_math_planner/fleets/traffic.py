"""From traffic to a fleet, and from GPUs to the traffic that they serve: queues, sized by simulation."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil, floor
from typing import Any

import numpy as np
import pandas as pd
from msgspec.structs import replace as changed

from inference_math.evidence.checks import SHARE, Interval, as_number, as_one_of, as_whole
from inference_math.evidence.sentences import render
from inference_math.optimiser import answers
from inference_math.optimiser.starts import plain_settings
from inference_math.optimiser.types import Solution
from inference_math.unit.problem import sent_bytes
from inference_math.unit.types import OperatingPoint
from inference_math.workload import Trace
from inference_math_planner.answers import record
from inference_math_planner.answers.card import card_of
from inference_math_planner.answers.cautions import about_fleet
from inference_math_planner.answers.deployment import (
    Plan,
    as_commands,
    as_options,
    basis,
    engine_args,
    lines_for,
    record_of,
)
from inference_math_planner.answers.notes import idle, short, sized_how
from inference_math_planner.answers.record import Card, Choice, Record, Three, carded, rows_of
from inference_math_planner.answers.text import sentence, started
from inference_math_planner.fleets import queues
from inference_math_planner.fleets.queues import Replica, ReplicaSimulator
from inference_math_planner.fleets.types import FleetCandidate, FleetGoal, RequestSource

__all__ = [
    "RATES", "SHARED", "Arrivals", "Fleet", "NoFleetError", "as_record", "capacity", "chances", "fleet",
    "fleet_problem", "least_of",
]  # fmt: skip

SHARED = 0.9
"""Of the requests that keep both limits in a fleet, where nobody says how many."""
_NONE = "no fleet keeps the promise"
_ROOMY = 1.1  # times what an idle replica's requests see: limits that it keeps
Shown = Callable[[Iterable[Any]], Iterable[Any]]
_BURSTS = Interval(0, 10)
_GAPS = 2039  # times between arrivals that are drawn: a prime, so that each draw has them in another order
RATES = Interval(1e-3, 1e6)  # requests/s


class NoFleetError(ValueError):
    """No fleet keeps the promise: `why`, and the `nearest` promises, or GPUs, with which one would."""

    def __init__(self, why: str, nearest: Iterable[str] = (), about: str = "") -> None:
        super().__init__(f"{about}{why}")
        self.why, self.nearest = why, tuple(nearest)

    @property
    def advice(self) -> tuple[str, ...]:
        """Both, as sentences of a record's advice."""
        return (self.why, *(f"the nearest that would do: {one}" for one in self.nearest))


@dataclass(frozen=True)
class Fleet:
    """Replicas for some traffic. What is an interval is (median or size, 5 %, 95 %) over draws.

    Attributes
    ----------
    architecture
        What each replica is.
    replicas, units
        Replicas; units of each, behind one router (both pools of a disaggregated one).
    gpus
        GPUs of all: enough in nine of ten draws; from those that are enough in the fastest twentieth of the draws to
        those in all but the slowest twentieth, infinity where no number is.
    rate
        Requests per second of all replicas together: those asked for, or what the GPUs serve in nine of ten draws.
    span
        What the replicas serve: median and both ends, where GPUs were given; else the rate itself.
    full
        Requests per second that they would serve at full load, nobody's queue looked at: median.
    ttft, tpot
        Mean TTFT and mean TPOT of the requests at that rate, seconds.
    kept
        Share of the draws in which the promise is kept.
    best_in, loss, none_in, tie
        The share of the draws in which this architecture needs the fewest GPUs, how much less it serves with a GPU in
        the mean than the one that serves most, as a share, the share of the draws in which none keeps the promise,
        whether it is a tie; see `optimiser.choice.decide`.
    usd_per_million
        US dollars for a million output tokens at this rate; NaN where the plan has no price.
    settings, plain, commands
        What to start the engines of a replica with, as numbers by our own names, and the whole command lines.
    row
        The row of `optimiser.search` behind them.
    share, cv_arrivals
        The share of the requests that was asked for, None for means; how arrivals scatter.
    played
        Whose lengths requests have: "mix", "trace", or "" for equal prompts and geometric answers.
    link_gb_s
        GB/s into each decode unit; NaN without pools.
    others
        The other architectures' fleets, the fewest GPUs or the most requests/s first; not those that keep no promise.
    have
        The GPUs that there are; 0 where traffic was given.
    most_units
        The units that a replica may have, both pools of a disaggregated one together: those of the plan.
    card
        The answer, as all views show it; None of the others.
    """

    architecture: str
    replicas: int
    units: int
    gpus: tuple[float, float, float]
    rate: float
    span: tuple[float, float, float]
    full: float
    ttft: tuple[float, float, float]
    tpot: tuple[float, float, float]
    kept: float
    best_in: float
    loss: float
    none_in: float
    usd_per_million: float
    settings: Mapping[str, object]
    plain: Mapping[str, int | None]
    commands: tuple[tuple[str, str], ...]
    row: OperatingPoint
    share: float | None
    cv_arrivals: float
    played: str
    link_gb_s: float
    tie: bool = False
    others: tuple[Fleet, ...] = ()
    have: int = 0
    most_units: int = 2
    card: Card | None = None

    @property
    def owned(self) -> bool:
        """Whether GPUs were given, not traffic."""
        return self.have > 0

    @property
    def how(self) -> str:
        """Under what that holds, in a sentence."""
        cvs = [self.cv_arrivals, queues.cv_at_each(self.cv_arrivals, self.replicas)]
        numbers = (self.share or 0.0, cvs, self.played, self.most_units)
        return render(sized_how(*numbers, self.rate, self.full, self.replicas > 1))

    def __str__(self) -> str:
        said = map(
            sentence, (self.card.headline, f"{self.architecture}: {self.card.what}", self.how) if self.card else ()
        )
        return "\n".join([*said, sentence(f"start {started(as_options(self.settings), 'each replica')}")])


@dataclass(frozen=True)
class Arrivals:
    """How requests come, and which.

    Parameters
    ----------
    cv_arrivals
        Standard deviation of the times between all arrivals over their mean, up to 10: 1 for arrivals at random
        (Poisson), more in bursts. Each replica gets its part of them by chance, of which the squared CV is 1 +
        (cv_arrivals² − 1) / replicas. ``vllm bench serve --burstiness`` is 1/cv_arrivals².
    mix
        Requests whose lengths, and stored tokens, the simulated ones have, each drawn at random: a `workload.Trace`, or
        one of `fleets.mixes`. The plan is best made of its `Workload.from_trace`. Not beside a trace to play.
    seed
        Of the arrivals and lengths.

    Raises
    ------
    ValueError
        For a number out of range.
    """

    cv_arrivals: float = 1.0
    mix: Trace | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "cv_arrivals", as_number("cv_arrivals", self.cv_arrivals, _BURSTS))
        object.__setattr__(self, "seed", as_whole("seed", self.seed, 0))


AT_RANDOM = Arrivals()


def fleet(
    found: Plan,
    traffic: float | Trace,
    *,
    architecture: str | None = None,
    quantile: float | None = SHARED,
    arrivals: Arrivals = AT_RANDOM,
    workers: int = 1,
    shown: Shown = iter,
) -> Fleet:
    """Return how many replicas of a plan's architecture keep its limits for the share `quantile` of the requests.

    Requests arrive at random, `traffic` of them per second, with equal prompts and geometric answers or with the
    lengths of a `mix`, and come to replicas by chance; or a trace is played, whose requests go to the replicas in
    turn, the first of which is simulated. Prompts that differ take more GPUs than equal ones of the same mean, for
    short ones wait for long ones; of pools the less, the longer the limit on TTFT is beside the longest prompts.

    Sixteen draws of the calibration stand for all, each with arrivals of its own, the same for all architectures. In
    every fifth of them one replica of each architecture is simulated at rates that are tried, up to nearly what it
    serves at full load; what is between two of these is interpolated, as a share of full load. A fleet is the fewest
    GPUs with which nine in ten of the sixteen keep the promise. `architecture` None: the one that takes the fewest; of
    equal ones that which serves more in the mean over the draws.

    A chunked replica is tried with the plan's chunk and with larger ones: at part load they shorten the first token,
    and a request's mean TPOT bears some long steps. Pools are tried with every split. A replica may have as many units
    as the plan's, or fewer, from 32 on an eighth apart: requests come to it by chance, and a router in front
    of its units sends each to the one that has the fewest (so do pools).

    Parameters
    ----------
    found
        What `plan` found; its settings are those that replicas are started with.
    traffic
        Requests per second of all replicas together, or a trace with arrival times.
    architecture
        "aggregated", "chunked" or "disaggregated"; None for the one that takes the fewest GPUs.
    quantile
        The share of the requests whose TTFT and whose mean TPOT must both be within the limits; None: their means must.
    arrivals
        How requests come, and which; see `Arrivals`.
    workers
        Processes that simulate architectures at once, where the system can fork.
    shown
        Passes architectures on as they are sized, for a progress bar.

    Raises
    ------
    ValueError
        For a plan that meets its SLA nowhere, an unknown architecture, a trace without arrivals, requests that the KV
        cache of a unit has no room for.
    NoFleetError
        A ValueError, for traffic whose tail no number of replicas brings within the SLA.
    """
    problem = fleet_problem(traffic, quantile, arrivals, 0)
    return _chosen(found, architecture, problem, workers, shown)


def capacity(
    found: Plan,
    gpus: int,
    *,
    architecture: str | None = None,
    quantile: float | None = SHARED,
    arrivals: Arrivals = AT_RANDOM,
    workers: int = 1,
    shown: Shown = iter,
) -> Fleet:
    """Return the traffic that so many GPUs serve within a plan's SLA: `fleet`, asked the other way round.

    As many replicas as fit into `gpus`, each at the rate that it sustains in nine of ten draws; of pools those sizes
    with which all of them together serve most. The other parameters are those of `fleet`.

    Raises
    ------
    ValueError
        As `fleet`, and for fewer GPUs than a replica of any architecture takes.
    """
    problem = fleet_problem(0.0, quantile, arrivals, as_whole("gpus", gpus, 1, 1_000_000))
    return _chosen(found, architecture, problem, workers, shown)


@dataclass(frozen=True)
class FleetProblem:
    """What is asked of a plan's fleets: `share` 0 for means, a `trace` to play, the GPUs that there are or 0."""

    rate: float
    have: int
    share: float
    arrivals: Arrivals
    trace: Trace | None

    @property
    def goal(self) -> FleetGoal:
        """The same, as `queues` takes it."""
        return FleetGoal(traffic=self.rate, have=self.have)

    @property
    def played(self) -> str:
        """What requests are: of a trace, of a mix, or neither."""
        return "trace" if self.trace else "mix" if self.arrivals.mix else ""


def fleet_problem(traffic: float | Trace, quantile: float | None, arrivals: Arrivals, have: int) -> FleetProblem:
    """Return what is asked; see `fleet` and `capacity` for the parameters and the errors."""
    trace = traffic if isinstance(traffic, Trace) else None
    rate = _rate(traffic) if have == 0 else 0.0
    if arrivals.mix is not None and (not isinstance(arrivals.mix, Trace) or trace is not None):
        raise TypeError(f"mix must be a Trace, beside requests per second as traffic, not {arrivals.mix!r:.80}")
    share = 0.0 if quantile is None else as_number("quantile", quantile, SHARE)
    return FleetProblem(rate, have, share, arrivals, trace)


def _chosen(
    planned: Plan, architecture: str | None, problem: FleetProblem, workers: int, shown: Shown
) -> Fleet:  # fmt: skip
    if not planned.feasible:
        raise ValueError("found must be a plan that some architecture meets: " + "; ".join(planned.advice))
    simulator = _simulator(planned, problem)
    if not simulator.holds():
        raise NoFleetError("traffic must have requests that a unit's KV cache holds; its longest is longer")
    names, have = list(simulator.settings), problem.have
    if architecture is not None:
        names = [as_one_of("architecture", architecture, names)]
    least = min(queues.smallest_gpus(planned.case.problem, name) for name in names)
    if have and have < least:
        raise NoFleetError(f"a replica takes {least} GPUs or more, of which there are {have}", [f"--have {least}"])
    if not simulator.able(names):
        raise _none(simulator, problem, {name: simulator.smallest(name).kept_idle() for name in names})
    fleets = _standings(planned, tuple(names), problem, workers, shown)
    choice = queues.choose_fleet(fleets, problem.goal, simulator.count, planned.case.problem.gain_errors)
    order = [name for name in choice.order if name in names and fleets[name].replicas]
    if not order:
        raise _none(simulator, problem, {name: fleets[name].idle for name in names})
    ordered = [(simulator.replicas(name, fleets[name].units)[fleets[name].row], fleets[name]) for name in order]
    first, *others = [_fleet(planned, choice, *each, problem) for each in ordered]
    about = about_fleet(planned.about, problem.rate, have)
    card = carded(card_of(planned.case.problem, [queues.fleet_sized(*each) for each in ordered], choice, about))
    return replace(first, others=tuple(others), tie=bool(choice.tie) and bool(others), card=card)


def _none(simulator: ReplicaSimulator, problem: FleetProblem, kept: Mapping[str, float]) -> NoFleetError:
    """Return the error of a promise that no replica keeps, with the draws in which each architecture's does idly."""
    keeps, count = [idle(name, many) for name, many in kept.items()], simulator.count
    message = render(short(problem.share, count, queues.slow_places(count) + 1, keeps))
    return NoFleetError(message, _nearest(simulator, problem), "traffic must be what replicas can serve; ")


def _nearest(simulator: ReplicaSimulator, problem: FleetProblem) -> Iterator[str]:
    """Yield promises that replicas keep in nine of ten draws with next to nothing to do: a share, and limits.

    A share below one in ten is none; limits are those of equal prompts, of which all see as much.
    """
    limits = simulator.problem.ttft, simulator.problem.tpot
    seen = [simulator.smallest(name).idle() for name in simulator.settings]
    share = problem.share * max((score for score, *_ in seen), default=0.0)
    if 0.1 <= share < problem.share:
        yield f"--quantile {floor(100 * share) / 100:g} with these limits"
    if problem.played or not seen:
        return
    _, *least = min(seen, key=lambda one: max(one[1] / limits[0], one[2] / limits[1]))
    ttft, tpot = (max(limit, _ROOMY * mean) for limit, mean in zip(limits, least, strict=True))
    yield f"--ttft {ttft:.2g} --tpot {tpot:.2g}, which a replica keeps that has little to do"


def least_of(found: Plan, names: Sequence[str], problem: FleetProblem, cost_to_beat: float) -> float:
    """Return what the best of some architectures of a plan costs, if that is less than `cost_to_beat`; else infinity.

    GPUs for the rate, or minus the requests/s that the GPUs serve, as `queues.cost`.
    """
    return queues.least_of(_simulator(found, problem), list(names), problem.goal, cost_to_beat)


@lru_cache(maxsize=12)
def _standings(
    planned: Plan, names: tuple[str, ...], problem: FleetProblem, workers: int, shown: Shown
) -> dict[str, FleetCandidate]:  # fmt: skip
    """Return what `queues.best_fleet` found for each architecture, by so many processes at once, and keep it."""
    simulator = _simulator(planned, problem)
    if workers > 1 and "fork" in multiprocessing.get_all_start_methods():
        # A simulator holds functions, which only a process that is forked knows; the slowest comes first.
        slowest = sorted(names, key=lambda name: name != "chunked")
        others = set(multiprocessing.active_children())
        begun_with = (simulator, problem.goal)
        with ProcessPoolExecutor(workers, multiprocessing.get_context("fork"), _Worker.begin, begun_with) as pool:
            try:
                return dict(shown(zip(slowest, pool.map(_Worker.answer, slowest), strict=True)))
            except KeyboardInterrupt:
                for worker in set(multiprocessing.active_children()) - others:
                    worker.terminate()  # else the pool waits for what nobody wants any more
                raise
    return {name: queues.best_fleet(simulator, name, problem.goal) for name in shown(names)}


class _Worker:
    """A process that answers: what it is asked."""

    simulator: ReplicaSimulator
    goal: FleetGoal

    @classmethod
    def begin(cls, simulator: ReplicaSimulator, goal: FleetGoal) -> None:
        """Begin such a process."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes: the one that asked ends these
        cls.simulator, cls.goal = simulator, goal

    @classmethod
    def answer(cls, name: str) -> FleetCandidate:
        """Return the fleet of an architecture."""
        return queues.best_fleet(cls.simulator, name, cls.goal)


def _simulator(planned: Plan, problem: FleetProblem) -> ReplicaSimulator:
    """Return what simulates replicas of a plan, kept: of arrivals at random one's do not hang on what all get."""
    apart = problem.arrivals.cv_arrivals == 1 and problem.trace is None
    return _kept_simulator(planned, replace(problem, rate=0.0, have=0) if apart else problem)


@lru_cache(maxsize=32)
def _kept_simulator(planned: Plan, problem: FleetProblem) -> ReplicaSimulator:
    return ReplicaSimulator(planned.case.problem, planned.solved, list(planned.pairs), source_of(problem))


@lru_cache(maxsize=12)
def source_of(problem: FleetProblem) -> RequestSource:
    """Return what requests are made of."""
    gaps, lengths = chances(problem.arrivals.seed, 1.0)
    whose, trace = problem.trace or problem.arrivals.mix, problem.trace
    like = [] if whose is None else list(zip(*(column.tolist() for column in whose.rows()), strict=True))
    arrival = [] if trace is None or trace.arrival is None else trace.arrival.tolist()
    return RequestSource(
        gaps=gaps, cv=problem.arrivals.cv_arrivals, lengths=lengths, like=like, share=problem.share, goal=problem.goal,
        trace=[(when, *like[i]) for i, when in enumerate(arrival)],
    )  # fmt: skip


def _fleet(planned: Plan, choice: Solution, replica: Replica, one: FleetCandidate, problem: FleetProblem) -> Fleet:
    """Return an architecture's part of the answer."""
    case = replace(planned.case, work=changed(planned.case.work, lengths="geometric"))
    name, row, plain = replica.name, replica.row, replica.problem
    behind, decoding = one.units, np.nan
    if name == "disaggregated":
        behind, decoding = 1, replica.decode_units * one.replicas
    return Fleet(
        name, one.replicas, one.units, _three(one.gpus_all), one.sold, _three(one.rate), one.full,
        _three(one.ttft), _three(one.tpot), one.feasible_share,
        choice.best_in[name], choice.loss[name], choice.none_in,
        answers.usd_per_million(one.gpus_all[0], case.price or 0.0, one.sold * case.work.n_out),
        engine_args(case, plain, name, row), plain_settings(plain, name, row),
        lines_for(case, plain, name, row, behind), row,
        problem.share or None, problem.arrivals.cv_arrivals, problem.played,
        one.sold * sent_bytes(plain) / decoding / 1e9,
        have=problem.have, most_units=case.units,
    )  # fmt: skip


def _three(ends: list[float]) -> tuple[float, float, float]:
    value, low, high = (float(one) for one in ends)
    return value, low, high


def chances(seed: int, cv_arrivals: float) -> tuple[list[float], list[float]]:
    """Return times between arrivals of mean 1, and numbers below 1 for the lengths of answers.

    The numbers are spread evenly, in random order, so that what is drawn has the mean that was asked for. Both have
    the few digits that the page carries.
    """
    rng = np.random.default_rng(seed)
    count = ceil(queues.MEASURED * (1 + queues.BEFORE + queues.AFTER)) + 1
    lengths = (rng.permutation(count) + 0.5) / count
    varied = cv_arrivals**2
    gaps = rng.gamma(1 / varied, varied, _GAPS) if varied > 1e-6 else np.ones(_GAPS)
    return np.round(gaps / gaps.mean(), 4).tolist(), np.round(np.minimum(lengths, 0.99999), 5).tolist()


def _rate(traffic: float | Trace) -> float:
    if not isinstance(traffic, Trace):
        return as_number("traffic", traffic, RATES)
    if traffic.arrival is None or traffic.arrival[-1] <= traffic.arrival[0]:
        raise ValueError("traffic must be a trace with arrival times, or requests per second")
    return float((len(traffic.n_in) - 1) / (traffic.arrival[-1] - traffic.arrival[0]))


def as_record(
    found: Plan,
    fleet: Fleet | None = None,
    layouts: pd.DataFrame | None = None,
    gpus: pd.DataFrame | None = None,
    *,
    short: NoFleetError | None = None,
    stores: bool = True,
    runner_up: bool = False,
    warnings: Iterable[str] = (),
    ways: Sequence[str] | None = None,
) -> Record:
    """Return the record of a plan, and of a fleet for it, of what `search` tried, of what `across` compared.

    Or why there is no fleet (`short`): such a record is not feasible, whatever a unit does at full load. `warnings` are
    kept as they are, as are `ways` to meet limits that are missed: None names larger units and precisions.

    The record is what views print and ``inference-math plan --json`` writes: ``as_record(found).as_json()``. What each
    store brings (`stores`) is several plans, and what would make another architecture the first (`runner_up`) dozens.

    >>> from inference_math import SLA, Unit, Workload
    >>> from inference_math_planner import plan
    >>> found = plan(Unit.of("llama-3-8b", "h100-sxm"), Workload(2000, 200), SLA(2, 0.1), intervals=False)
    >>> as_record(found).answer.architecture == found.best
    True
    """
    tried = [] if layouts is None else [record.TriedLayout(**row) for row in rows_of(layouts)]
    others = [] if gpus is None else [record.OtherGpu(**row) for row in rows_of(gpus)]
    whole = record_of(found, stores=stores and short is None, runner_up=runner_up and short is None, ways=ways)
    whole = changed(whole, layouts=tried, gpus=others, warnings=list(warnings))
    if short is not None:
        none, advice = basis(found, ""), [*short.advice, *whole.advice]
        card = Card(headline=_NONE)
        return changed(whole, feasible=False, card=card, answer=none, architectures=[], advice=advice)
    if fleet is None:
        return whole
    here = {row.where: row.rate for row in whole.offloading}
    own = here.get(str(whole.answer.store), 0.0)
    scaled = [record.Store(name, fleet.rate / own * rate) for name, rate in here.items()] if own else whole.stores
    return changed(
        whole,
        answer=_choice(found, fleet, fleet.tie),
        architectures=[_choice(found, one, fleet.tie) for one in (fleet, *fleet.others)],
        stores=scaled,  # in proportion to what units do at full load
        card=fleet.card or whole.card,
        fleets=record.Fleets(fleet.how, fleet.usd_per_million),
    )


def _choice(planned: Plan, one: Fleet, tie: bool) -> Choice:
    """Return a fleet as a record has it."""
    pools, prefill = one.architecture == "disaggregated", one.row.prefill_units
    decoding = int(one.row.decode_units) if pools else 0
    same = ("best_in", "loss", "replicas", "units", "kept", "none_in")
    return changed(
        basis(planned, one.architecture),
        **{name: getattr(one, name) for name in same},
        tie=tie,
        gpus=Three(*one.gpus),
        rate=Three(one.rate, min(one.rate, one.span[1]), max(one.rate, one.span[2])),
        ttft=Three(*one.ttft),
        tpot=Three(*one.tpot),
        tokens_per_gpu=one.rate * planned.case.work.n_out / one.gpus[0],
        promise=one.share or "means",
        settings=dict(one.plain),
        split={"prefill": prefill, "decode": decoding} if pools else None,
        link_gb_s=one.link_gb_s if pools else None,
        commands=as_commands(one.commands),
        served=Three(*one.span) if one.owned else None,
        options=as_options(one.settings),
    )
