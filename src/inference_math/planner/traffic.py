"""From traffic to a fleet, and from GPUs to the traffic that they serve: queues, sized by simulation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import islice
from math import ceil
from typing import Any

import numpy as np

from inference_math import perf
from inference_math.checks import SHARE, Interval, as_number, as_one_of, as_whole
from inference_math.perf.batch import largest_whole
from inference_math.perf.pace import Pace
from inference_math.perf.words import idle, short, sized, sized_how
from inference_math.planner import queues
from inference_math.planner.case import Case, coefficients, solve
from inference_math.planner.deployment import DRAWS, Plan, lines_for, told
from inference_math.simulate.engine import Request
from inference_math.simulate.goodput import goodput
from inference_math.workload import Trace

__all__ = ["RATES", "REQUESTS", "Fleet", "capacity", "chances", "fleet"]

REQUESTS = 1500  # that are measured
_AFTER = 0.1  # of these, come after them
_SLICE = 50  # requests of a trace that a replica must get, to tell their share
_MOST = 16  # times what the mean rates ask for
_KEPT = 12  # architectures whose replicas are kept, should the next question differ in the traffic alone
_BURSTS = Interval(0, 10)
RATES = Interval(1e-3, 1e6)  # requests/s


@dataclass(frozen=True)
class Fleet:
    """Replicas for some traffic.

    Attributes
    ----------
    architecture
        What each replica is.
    replicas, units, gpus
        Replicas; units of each (one, or both pools of a disaggregated one); GPUs of all. They are enough in nine of ten
        draws of the calibration.
    low, high
        Replicas that are enough in the fastest twentieth of the draws, and in all but the slowest twentieth; infinity
        where no number is.
    rate
        Requests per second of all replicas together.
    each, each_low, each_high
        Requests per second at which a replica just keeps both limits for the share that was asked for, in nine of ten
        draws; in all but the slowest twentieth, and in the fastest. NaN for a trace.
    least
        The replicas that mean rates ask for, without queues.
    goodput
        Share of the simulated requests whose TTFT and whose mean TPOT both meet their limits, in the draw that decides.
    one_less
        The same with one replica less; NaN where there is none less.
    usd_per_million
        US dollars for a million output tokens at this rate; NaN where the plan has no price.
    settings, commands
        What to start the engines of a replica with, and the whole command lines; see `Start`.
    share, cv_arrivals
        The share of the requests that was asked for, and how arrivals scatter.
    played
        Whose lengths requests have: "mix", "trace", or "" for equal prompts and geometric answers.
    chunk
        Prompt tokens that a chunked replica computes in a step at most; NaN for the others.
    following, following_value
        The architecture that comes next, and the GPUs that it needs, or where GPUs are given the requests/s that it
        serves; "" and NaN where none does.
    owned
        Whether GPUs were given, not traffic.
    most_units
        The units that both pools of a disaggregated replica may have together: those of the plan.
    full
        The architecture that is the best at full load, without queues; "" where one was asked for by name.
    """

    architecture: str
    replicas: int
    units: int
    gpus: int
    rate: float
    each: float
    each_low: float
    each_high: float
    least: int
    goodput: float
    one_less: float
    usd_per_million: float
    low: float
    high: float
    settings: Mapping[str, Any]
    commands: tuple[tuple[str, str], ...]
    share: float
    cv_arrivals: float
    played: str
    chunk: float = np.nan
    following: str = ""
    following_value: float = np.nan
    owned: bool = False
    most_units: int = 2
    full: str = ""

    @property
    def how(self) -> str:
        """Under what that holds, in a sentence."""
        return sized_how(self.share, self.cv_arrivals, self.played, self.most_units)

    @property
    def said(self) -> str:
        """The answer in a sentence, as on the planner's page."""
        return sized(
            self.architecture, self.replicas, self.units, self.gpus, self.rate, self.following, self.following_value,
            self.owned, self.full,
        )  # fmt: skip

    def __str__(self) -> str:
        fewer = f"{self.one_less:.0%}"
        if fewer == f"{self.goodput:.0%}":  # a thousand requests do not tell them apart
            fewer = "about as many"
        fewer = "" if np.isnan(self.one_less) else f"; with one replica less {fewer}"
        cost = "" if np.isnan(self.usd_per_million) else f", {self.usd_per_million:.3g} USD per million output tokens"
        many = "replica" if self.replicas == 1 else "replicas"
        span = "" if self.low == self.high or self.owned else f" ({self.low:g} to {self.high:g})"
        size = f"{self.replicas} {many}{span}, {self.gpus} GPUs"
        rate = f"{self.rate:.4g}"
        if self.owned:
            rate += f" ({self.replicas * self.each_low:.3g} to {self.replicas * self.each_high:.3g})"
        told = ", ".join(f"{name} {value}".strip() for name, value in self.settings.items())
        return (
            f"{self.architecture}: {size}, for {rate} requests/s{cost}\n"
            f"  each with {told}\n"
            f"  {self.goodput:.0%} of the simulated requests meet both limits{fewer}"
        )


def fleet(
    found: Plan,
    traffic: float | Trace,
    *,
    architecture: str | None = None,
    quantile: float = 0.9,
    cv_arrivals: float = 1.0,
    mix: Trace | None = None,
    requests: int = REQUESTS,
    seed: int = 0,
) -> Fleet:
    """Return how many replicas of a plan's architecture meet its SLA for the share `quantile` of the requests.

    Requests arrive at random, `traffic` of them per second, with equal prompts and geometric answers or with the
    lengths of a `mix`; or a trace is played, whose requests go to the replicas in turn, the first of which is
    simulated. Prompts that differ take more GPUs than equal ones of the same mean, for short ones wait for long ones;
    of pools the less, the longer the limit on TTFT is beside the longest prompts. One replica is simulated at rates
    that are tried, up to nearly what it serves at full load; of both halves of its requests the worse one counts, so
    that a queue that grows is seen. `architecture` None: each that the plan has is tried, and the one with the fewest
    GPUs returned; the highest mean rate need not be it, for means know no queue.

    A chunked replica is tried with the plan's chunk and with larger ones: at part load they shorten the first token,
    and a request's mean TPOT bears some long steps. Pools are tried with all splits of the plan's units, and with fewer
    units where that takes fewer GPUs. Requests go to the replicas in turn or by chance: a router that knows who is busy
    does better. Sized for a draw that is slower than nine in ten.

    Parameters
    ----------
    found
        What `plan` found; its settings are those that replicas are started with.
    traffic
        Requests per second of all replicas together, or a trace with arrival times.
    architecture
        "aggregated", "chunked" or "disaggregated"; None for the one that needs the fewest GPUs.
    quantile
        The share of the requests whose TTFT and whose mean TPOT must both be within the limits.
    cv_arrivals
        Standard deviation of the times between arrivals over their mean, up to 10: 1 for arrivals at random (Poisson),
        more in bursts. ``vllm bench serve --burstiness`` is 1/cv_arrivals².
    mix
        Requests whose lengths, and stored tokens, the simulated ones have, each drawn at random: a `workload.Trace`, or
        one of `workload.mixes`. The plan is best made of its `Workload.from_trace`. Not beside a trace to play.
    requests, seed
        How many requests are measured, and where their draws begin.

    Raises
    ------
    ValueError
        For a plan that meets its SLA nowhere, an unknown architecture, a trace without arrivals, requests that the KV
        cache of a unit has no room for, and traffic whose tail no number of replicas brings within the SLA.
    """
    rate = _rate(traffic)
    asked = _asked(traffic, quantile, cv_arrivals, mix, requests, seed)
    sized = _replicas(found, architecture, asked, rate, 0)
    enough = [(one.replicas(0, rate), one) for one in sized]
    possible = [one.fleet(int(many), rate) for many, one in enough if many < np.inf]
    if not possible:
        raise ValueError(_failure(sized))
    first, *others = sorted(possible, key=lambda one: one.gpus)
    return _before(first, others[0].gpus if others else np.nan, others, found, architecture)


def capacity(
    found: Plan,
    gpus: int,
    *,
    architecture: str | None = None,
    quantile: float = 0.9,
    cv_arrivals: float = 1.0,
    mix: Trace | None = None,
    requests: int = REQUESTS,
    seed: int = 0,
) -> Fleet:
    """Return the traffic that so many GPUs serve within a plan's SLA: `fleet`, asked the other way round.

    As many replicas as fit into `gpus`, each at the highest rate that it sustains; of pools those sizes with which all
    of them together serve most. The other parameters are those of `fleet`; `architecture` None: that which serves most.

    Raises
    ------
    ValueError
        As `fleet`, and for fewer GPUs than a replica of any architecture takes.
    """
    most = as_whole("gpus", gpus, 1, 1_000_000)
    sized = _replicas(found, architecture, _asked(1.0, quantile, cv_arrivals, mix, requests, seed), 0.0, most)
    fitting = [one for one in sized if one.gpus <= most]
    if not fitting:
        raise ValueError(f"gpus must be at least {min(one.gpus for one in sized)}, those of a replica, not {most}")
    possible = [one.fleet(most // one.gpus, most // one.gpus * one.each[0]) for one in fitting if one.each[0] > 0]
    if not possible:
        raise ValueError(_failure(fitting))
    first, *others = sorted((replace(one, owned=True) for one in possible), key=lambda one: -one.rate)
    return _before(first, others[0].rate if others else np.nan, others, found, architecture)


def _failure(sized: list[_Replica]) -> str:
    """Return why no number of replicas is enough."""
    return "traffic must be what replicas can serve; " + short(sized[0].share, [one.idle() for one in sized])


def _before(first: Fleet, value: float, others: list[Fleet], found: Plan, named: str | None) -> Fleet:
    """Return an answer that knows what follows it, and of which plan it is."""
    following, full = others[0].architecture if others else "", found.best if named is None else ""
    return replace(first, following=following, following_value=value, most_units=found.case.units, full=full)


def _asked(
    traffic: float | Trace, quantile: float, cv_arrivals: float, mix: Trace | None, requests: int, seed: int
) -> _Asked:
    if mix is not None and (not isinstance(mix, Trace) or isinstance(traffic, Trace)):
        raise TypeError(f"mix must be a Trace, beside requests per second as traffic, not {mix!r:.80}")
    share, count = as_number("quantile", quantile, SHARE), as_whole("requests", requests, 20, 100_000)
    scatter, begin = as_number("cv_arrivals", cv_arrivals, _BURSTS), as_whole("seed", seed, 0)
    return _asked_once(traffic if isinstance(traffic, Trace) else None, mix, share, count, begin, scatter)


@lru_cache(maxsize=_KEPT)
def _asked_once(trace: Trace | None, mix: Trace | None, share: float, count: int, seed: int, scatter: float) -> _Asked:
    rows = mix if trace is None else trace
    like = [] if rows is None else list(zip(*(column.tolist() for column in rows.rows()), strict=True))
    return _Asked(trace, share, *chances(count, seed, scatter), like, count, scatter)


def _replicas(found: Plan, architecture: str | None, asked: _Asked, rate: float, have: int) -> list[_Replica]:
    """Return the best replica for a rate, or for GPUs, of each architecture that meets the SLA or of the one asked for.

    Of a trace, which is played as it was recorded, `rate` is the mean.
    """
    if not found.feasible:
        raise ValueError("found must be a plan that some architecture meets: " + "; ".join(found.advice))
    names = list(found.starts)
    if architecture is not None:
        names = [as_one_of("architecture", architecture, names)]
    return [_tried(found, name, asked).best(rate, have) for name in names]


@lru_cache(maxsize=_KEPT)
def _tried(found: Plan, name: str, asked: _Asked) -> _Tried:
    """Return the replicas of an architecture, kept: what one sustains does not hang on the traffic of all."""
    return _Tried(found, name, asked)


@lru_cache(maxsize=_KEPT)
def _solved(found: Plan) -> list[perf.types.Solved]:
    """Return what the draws of a plan found, which has them or not."""
    drawn = found.drawn or [solve(found.case, one) for one in found.case.draws(DRAWS)]
    return [one.found for one in drawn]


class _Tried:
    """Replicas of an architecture, by their number of units; each is simulated when it is needed, and once."""

    def __init__(self, found: Plan, name: str, asked: _Asked) -> None:
        case = self._case = found.case
        self._name, self._asked = name, asked
        self._solved = _solved(found)
        self._careful = perf.careful(case.plain, name, self._solved)
        if not queues.longest_fits(asked.like, queues.system_for(case.plain, name, self._careful)):
            raise ValueError("traffic must have requests that a unit's KV cache has room for; its longest is longer")
        self._slow = queues.corners(case.plain, name, self._careful, self._solved)
        self._every = [queues.pace_of(case.plain, *coefficients(case, one)) for one in case.draws(len(self._solved))]
        self._mean = float(found.compared.set_index("architecture")["rate"][name])
        self._of = cache(self._with)

    def best(self, rate: float, have: int) -> _Replica:
        """Return that with which the fewest GPUs serve the rate, or the GPUs that there are most."""
        plain = self._case.plain
        step = self._solved[self._slow[0]]["mixed"]
        sizes = queues.sizes(plain, self._name, self._careful, step, rate, have)
        waiting = [self._of(units) for _, units in sizes] or [self._of(self._case.units)]
        waiting.sort(key=lambda one: queues.cost(one.hope, one.gpus, rate, have))
        best, least = waiting[0].settled(), np.inf
        for one in waiting:
            if queues.cost(one.hope, one.gpus, rate, have) >= least:
                break
            if (its := one.settled().cost(rate, have)) < least:
                best, least = one, its
        return best

    def _with(self, units: int) -> _Replica:
        case = replace(self._case, units=units)
        return _Replica(case, self._name, self._careful, self._solved, self._every, self._slow, self._mean, self._asked)


def chances(requests: int, seed: int, cv_arrivals: float) -> tuple[list[float], list[float]]:
    """Return times between arrivals of mean 1, and numbers below 1 for the lengths of answers, in seven digits.

    The numbers are spread evenly, in random order, so that what is drawn has the mean that was asked for.
    """
    rng = np.random.default_rng(seed)
    count = ceil(requests * (1 + queues.BEFORE + _AFTER))
    lengths = (rng.permutation(count) + 0.5) / count
    varied = cv_arrivals**2
    gaps = rng.gamma(1 / varied, varied, count) if varied > 1e-6 else np.ones(count)
    return np.round(gaps / gaps.mean(), 7).tolist(), np.round(np.minimum(lengths, 0.9999999), 7).tolist()


@dataclass(frozen=True, eq=False)
class _Asked:
    """What is asked of every replica: a trace that is played, the share within the limits, what requests come from.

    That is chances, and `like`, the prompt, output and stored tokens of a trace or a mix.
    """

    trace: Trace | None
    share: float
    gaps: list[float]
    lengths: list[float]
    like: list[tuple[int, int, int]]
    count: int
    cv_arrivals: float

    @property
    def played(self) -> str:
        """Return what requests are: of a trace, of a mix, or neither."""
        return "trace" if self.trace else "mix" if self.like else ""


class _Replica:
    """One replica of an architecture under its part of the traffic.

    `hope` is what it may sustain; `each` has, once it is settled, the requests/s that it sustains at the draws that
    `queues.decisive` takes, NaN for a trace.
    """

    def __init__(
        self, case: Case, name: str, careful: perf.types.Row, solved: list[perf.types.Solved], every: list[Pace],
        slow: list[int], mean: float, asked: _Asked,
    ) -> None:  # fmt: skip
        self._case, self._name, self._asked, self._rate = case, name, asked, mean
        self.units = queues.units_of(case.plain, name)
        self.gpus = self.units * case.unit.gpus
        self.share = asked.share
        self.met = cache(self._met)
        self._rows = queues.trials(case.plain, name, careful)
        self._systems = [queues.system_for(case.plain, name, row) for row in self._rows]
        self._every = every
        self._tops = [[queues.full(case.plain, name, row, one["mixed"]) for one in solved] for row in self._rows]
        self._order = queues.by_speed(case.plain, name, careful, solved)
        self._reach = cache(self._reached)
        self._row, self.hope = queues.robust(len(self._rows), slow, self._reach)
        self._paces: list[Pace] = []
        self.each = [np.nan] * 3

    def settled(self) -> _Replica:
        """Return it with the draws that decide, and what it sustains under them."""
        if self._paces:
            return self
        at = queues.decisive(self._order, lambda draw: self._reach(self._row, draw))
        self._paces = [self._every[i] for i in at]
        if self._asked.trace:
            self._needs = cache(self._fewest)
        else:
            self.each = queues.sustained([self._tops[self._row][i] for i in at], self._good)
        return self

    def _reached(self, row: int, draw: int) -> float:
        asked = self._asked
        drawn = (asked.gaps, asked.lengths, asked.like)
        return queues.reached(
            self._case.plain, self._systems[row], self._every[draw], *drawn, self._tops[row], draw, asked.share
        )

    def replicas(self, pace: int, rate: float) -> float:
        """Return how many are enough for a rate, or for the trace, at a draw; infinity where no number is."""
        if self._asked.trace:
            return self._needs(pace)
        each = self.each[pace]
        return ceil(rate / each) if each > 0 else np.inf

    def cost(self, rate: float, have: int) -> float:
        """Return the GPUs that a rate or the trace takes, or minus what the GPUs that there are serve."""
        if self._asked.trace:
            return self.gpus * self.replicas(0, rate)
        return queues.cost(self.each[0], self.gpus, rate, have)

    def fleet(self, many: int, rate: float) -> Fleet:
        """Return so many replicas for a rate as an answer."""
        case, row, gpus = self._case, self._rows[self._row], many * self.gpus
        part = many if self._asked.trace else rate / many
        fewer = many - 1 if self._asked.trace else rate / max(many - 1, 1)
        low, high = (self.replicas(pace, rate) for pace in (1, 2))
        return Fleet(
            self._name, replicas=many, units=self.units, gpus=gpus, rate=rate, each=self.each[0],
            each_low=self.each[2], each_high=self.each[1],
            least=int(perf.replicas(case.plain, self._name, self._rate, rate)[0]),
            goodput=self.met(0, part), one_less=self.met(0, fewer) if many > 1 else np.nan,
            usd_per_million=perf.usd_per_million(gpus, case.price or 0.0, rate * case.work.n_out),
            low=min(low, many), high=max(high, many), settings=told(case, self._name, row), share=self._asked.share,
            commands=lines_for(case, self._name, row), cv_arrivals=self._asked.cv_arrivals, played=self._asked.played,
            chunk=row["computed"] if self._name == "chunked" else np.nan,
        )  # fmt: skip

    def idle(self) -> str:
        """Return what a replica keeps that has next to nothing to do."""
        asked = self._asked
        if asked.trace:
            return idle(self._name, self.met(0, self._slices))
        drawn = (asked.gaps, asked.lengths, asked.like, asked.count)
        return idle(self._name, queues.idle_share(self._case.plain, self._systems[self._row], self._paces[0], *drawn))

    def _good(self, pace: int, rate: float) -> bool:
        """Tell whether a replica keeps both limits for the share that is asked for, at so many requests/s."""
        return self.met(pace, rate, self._asked.share) >= self._asked.share

    def _fewest(self, pace: int) -> float:
        """Return the fewest replicas that a trace needs, looking up to `_MOST` times what mean rates ask for."""
        assert self._asked.trace
        least, *_ = perf.replicas(self._case.plain, self._name, self._rate, _rate(self._asked.trace))
        most, share = min(_MOST * int(least), self._slices), self._asked.share
        missed = largest_whole(most, lambda many: self.met(pace, many, share) < share)
        return missed + 1 if missed < most else np.inf

    @property
    def _slices(self) -> int:
        """The most replicas that a trace has enough requests for."""
        assert self._asked.trace
        return max(len(self._asked.trace.n_in) // _SLICE, 1)

    def _met(self, pace: int, part: float, enough: float = 0.0) -> float:
        """Return the share of requests within both limits: of the trace's part, or of so many requests/s."""
        asked, plain, pace_ = self._asked, self._case.plain, self._paces[pace]
        system = self._systems[self._row]
        if not asked.trace:
            return queues.share_of(
                plain, system, pace_, asked.gaps, asked.lengths, asked.like, asked.count, part, enough
            )
        requests = _part(asked.trace, int(part))
        return goodput(system, pace_, requests, plain["ttft"], plain["tpot"], 0, len(requests), enough)


def _rate(traffic: float | Trace) -> float:
    if not isinstance(traffic, Trace):
        return as_number("traffic", traffic, RATES)
    if traffic.arrival is None or traffic.arrival[-1] <= traffic.arrival[0]:
        raise ValueError("traffic must be a trace with arrival times, or requests per second")
    return float((len(traffic.n_in) - 1) / (traffic.arrival[-1] - traffic.arrival[0]))


def _part(trace: Trace, replicas: int) -> list[Request]:
    """Return the requests of one of so many replicas that take turns."""
    assert trace.arrival is not None
    rows = zip(trace.arrival.tolist(), *(column.tolist() for column in trace.rows()), strict=True)
    return [Request(i, *row) for i, row in enumerate(islice(rows, 0, None, replicas))]
