"""What a benchmark will show before it is run: the command line of ``vllm bench serve``, played.

Users begin together and every request counts, so a mean TTFT holds an opening burst, and hangs on how many prompts are
sent. The play says both, and how many prompts it takes until the burst no longer matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite
from typing import Any

import pandas as pd
from msgspec import structs
from msgspec.structs import replace as changed

from inference_math.catalogue.engines import engine, usual_limits
from inference_math.catalogue.links import Link, as_link
from inference_math.evidence.checks import ANY_POSITIVE, AT_LEAST_ZERO, SHARE, Interval, as_bool, as_number, as_whole
from inference_math.evidence.numerals import in_seconds
from inference_math.evidence.sentences import render
from inference_math.optimiser.case import DRAWS, alike, refuse_nodes
from inference_math.simulate.cost import Steps
from inference_math.simulate.types import SchedulerPolicy
from inference_math.unit import Unit
from inference_math.unit.coefficients import SHIPPED
from inference_math.unit.front import handover
from inference_math.unit.nearest import known_comparisons, known_errors, plans_ahead
from inference_math.unit.problem import max_kv_seqs
from inference_math.workload import RandomLengths, Trace, Workload
from inference_math_planner.answers.notes import widened
from inference_math_planner.fleets.bench import (
    CADENCES,
    CLOSE,
    EACH,
    MOST_PROMPTS,
    Bench,
    bench,
    bench_cadence,
    bench_latency_ends,
    bench_lengths,
    bench_limits,
    bench_pools,
    bench_refused,
    bench_said,
    bench_system,
    bench_unit,
    cadence_errors,
    cadence_notes,
    cadence_said,
    cadence_verdict,
    ttft_ends,
)
from inference_math_planner.fleets.traffic import chances

__all__ = [
    "CLOSE",
    "COLUMNS",
    "MOST_PROMPTS",
    "Benchmark",
    "Foreseen",
    "cadence_errors_of",
    "cadence_words",
    "cadences",
    "foresee",
]

COLUMNS = ["every", "gap", "gap_p50", "gap_p90", "gap_p99", "ttft", "rate"]  # of cadences

_MOST_UNITS = 512
_MOST_STEPS = 2_000_000  # that compute prompts: some ten seconds
_RATIO = Interval(0, 0.999)
_BURSTINESS = Interval(1e-4, 1e4)
_COLUMNS = ["mean", "P50", "P90", "P99"]
_ROWS = {"TTFT": "ttft", "TPOT": "tpot", "ITL": "itl", "latency": "latency"}


@dataclass(frozen=True, eq=False)
class Foreseen:
    """What a benchmark of a unit will show.

    Attributes
    ----------
    table
        Rows TTFT, TPOT, ITL and latency in seconds: mean, P50, P90, P99.
    rate, seconds
        Requests finished per second, and how long it takes.
    limits
        Tokens of a step and requests at once that each group of attention may have.
    front
        Seconds of each TTFT that no step takes.
    burst, steady
        Mean TTFT of the prompts of the first moment, and of a closed loop whose users have spread; NaN for arrivals.
    enough
        Prompts to send until the mean TTFT is within `CLOSE` of the steady one; infinite for equal answers, for users
        who get these stay together, and NaN where they wait for a place, or come at a rate.
    spread
        Ends of the factor by which mean TTFTs, and latencies, may be off with a probability of 90 %. The front is that
        of one source's hosts and clients: others may take less, and the low end of the TTFT has the low end of it.
    notes
        What was never calibrated.
    ranks
        Groups of attention with requests of their own that step together; of pools 1, whose groups are told apart.
    """

    table: pd.DataFrame
    rate: float
    seconds: float
    limits: tuple[int, int]
    front: float
    burst: float
    steady: float
    enough: float
    spread: dict[str, tuple[float, float]]
    notes: tuple[str, ...]
    ranks: int = 1

    def to_dict(self) -> dict[str, object]:
        """Return all of it as plain values, seconds; what does not apply is None."""
        numbers = {name: getattr(self, name) for name in ("rate", "seconds", "front", "burst", "steady", "enough")}
        plain = {name: value if isfinite(value) else None for name, value in numbers.items()}
        table = self.table.astype(object).where(self.table.notna(), None).to_dict("index")
        tokens, seqs = self.limits
        plain |= {"max_num_batched_tokens": tokens, "max_num_seqs": seqs}
        return plain | {"table": table, "spread": self.spread, "notes": list(self.notes)}

    def __str__(self) -> str:
        lines = ["              mean      P50      P90      P99"]
        rows = {str(name): values for name, *values in self.table.itertuples()}
        for name, values in rows.items():
            lines.append(f"{name:8}" + "".join(f"{in_seconds(value):>9}" for value in values))
        numbers = {"rate": self.rate, "seconds": self.seconds, "ttft": rows["TTFT"], "latency": rows["latency"]}
        numbers |= {"burst": self.burst, "steady": self.steady, "enough": self.enough}
        ttft, late = list(self.spread["ttft"]), list(self.spread["e2e"])
        said = bench_said(numbers, list(self.limits), self.front, ttft, late, self.ranks)
        return "\n".join([*lines, *map(render, said), *(f"note: {note}" for note in self.notes)])


@dataclass(frozen=True)
class Benchmark:
    """What is run, the arguments named as ``vllm bench serve`` has them.

    Parameters
    ----------
    n_in, n_out
        ``--random-input-len``, ``--random-output-len`` in tokens.
    prompts
        ``--num-prompts``: requests in all, up to `MOST_PROMPTS`.
    concurrency
        ``--max-concurrency``: users that send the next request when the last is answered; without a rate they begin
        together. None: as many as there are prompts, and no more than these ever send.
    rate, burstiness
        ``--request-rate`` in 1/s, and ``--burstiness``: 1 for arrivals at random, less comes in bursts. A request that
        must wait for a user to be free is sent, and its clock starts, when one is: as that client has it.
    range_ratio
        ``--random-range-ratio`` r: lengths are uniform from 1 - r to 1 + r of their means.
    budget, seqs
        ``--max-num-batched-tokens`` and ``--max-num-seqs`` of the engine, for each group of attention. None: what it
        takes on the unit's GPU unless it is told otherwise (`catalogue.engines.usual_limits`).
    chunked
        Whether it cuts prompts (``--enable-chunked-prefill``). None: as it does unless it is told otherwise. Without
        chunks a step has room for the longest request, as engines ask for.
    alpha
        Share of each prompt whose KV cache is in HBM already.
    lengths
        Recorded requests, of which each prompt is one at random; in place of n_in, n_out, range_ratio and alpha: see
        `like`.
    pools
        Units for prefill and units for decode, (1, 2) for example, each of them the unit that is asked about. None: one
        unit that does both.
    link
        What KV caches travel over from the first to the second, by its name (`catalogue.links`); None: the usual one.
    seed
        Of lengths and arrivals.

    Raises
    ------
    TypeError, ValueError
        For a number that is none of these.

    Examples
    --------
    >>> Benchmark.like(Trace([100, 300], [20, 40]), prompts=50).n_in
    200.0
    """

    n_in: float
    n_out: float
    prompts: int
    concurrency: int | None = None
    rate: float = inf
    burstiness: float = 1.0
    range_ratio: float = 0.0
    budget: int | None = None
    seed: int = 0
    seqs: int | None = None
    chunked: bool | None = None
    alpha: float = 0.0
    lengths: Trace | None = None
    pools: tuple[int, int] | None = None
    link: Link | str | None = None

    def __post_init__(self) -> None:
        as_whole("prompts", self.prompts, 1, MOST_PROMPTS)
        if self.rate != inf:
            as_number("rate", self.rate, ANY_POSITIVE)
        as_number("burstiness", self.burstiness, _BURSTINESS)
        as_number("range_ratio", self.range_ratio, _RATIO)
        for name in ("concurrency", "budget", "seqs"):
            if getattr(self, name) is not None:
                as_whole(name, getattr(self, name))
        if self.chunked is not None:
            as_bool("chunked", self.chunked)
        as_number("alpha", self.alpha, SHARE)
        for name, units in zip(("prefill_units", "decode_units"), self.pools or (1, 1), strict=True):
            as_whole(name, units, 1, _MOST_UNITS)
        as_link("link", self.link)
        as_whole("seed", self.seed, 0)

    @classmethod
    def like(cls, trace: Trace, prompts: int, **asked: Any) -> Benchmark:
        """Return a benchmark of recorded requests; the arguments are those of the class."""
        rows = trace.rows()
        return cls(float(rows.n_in.mean()), float(rows.n_out.mean()), prompts, lengths=trace, **asked)

    @property
    def work(self) -> Workload:
        """Its requests, as means."""
        return (
            Workload(self.n_in, self.n_out, self.alpha) if self.lengths is None else Workload.from_trace(self.lengths)
        )

    @property
    def longest(self) -> tuple[int, int]:
        """Tokens of its longest prompt, and of its longest request."""
        if self.lengths is not None:
            rows = self.lengths.rows()
            return int(rows.n_in.max()), int((rows.n_in + rows.n_out).max())
        n_in, n_out = (max(bench_lengths(mean, self.range_ratio, [0.0, 1 - 1e-9])) for mean in (self.n_in, self.n_out))
        return n_in, n_in + n_out

    def limits(self, unit: Unit) -> list[float]:
        """Return the tokens of a step and the requests at once that a group of the unit's attention may have.

        Raises
        ------
        ValueError
            For a unit on several nodes or whose KV cache has no room for the longest request, and a play that would
            take minutes.
        """
        refuse_nodes(unit)
        usual, (prompt, longest) = usual_limits(unit.engine, unit.gpu), self.longest
        budget, seqs = (inf if one is None else float(one) for one in (self.budget, self.seqs))
        whole = prompt if self.chunked is False else 0
        both: list[float] = [usual.tokens, usual.seqs]
        limits = bench_limits(engine(unit.engine), both, unit.dp, budget, seqs, whole)
        if refused := bench_refused(bench_unit(unit.numbers, engine(unit.engine), limits[1]), longest):
            raise ValueError(render(refused))
        requests = self.prompts if self.rate < inf else EACH * self.prompts
        steps = requests * self.n_in * (1 - self.alpha) / (limits[0] * unit.dp)
        if steps > _MOST_STEPS:
            raise ValueError(
                f"budget must make at most {_MOST_STEPS:,} steps of the prompts, not {steps:,.0f}: more tokens a step, "
                "or fewer prompts"
            )
        return limits

    def played(self, front: float) -> Bench:
        """Return it as `fleets.bench` plays it, with what it draws lengths and arrivals from."""
        source = RandomLengths(self.n_in, self.n_out, self.range_ratio)
        gaps, lengths = chances(self.seed, self.burstiness**-0.5)
        rows = () if self.lengths is None else zip(*(one.tolist() for one in self.lengths.rows()), strict=True)
        return Bench(
            n_in=source.n_in,
            n_out=source.n_out,
            span=source.span,
            alpha=self.alpha,
            rows=list(rows),
            users=min(self.prompts, self.concurrency or self.prompts),
            count=self.prompts,
            rate=self.rate,
            front=front,
            prefill=[],
            gaps=gaps,
            chances=lengths,
        )


def foresee(unit: Unit, run: Benchmark, *, front: float | None = None, prefill: Unit | None = None) -> Foreseen:
    """Return what a benchmark of a unit will show.

    Of a unit with attention data parallelism the ranks have prompts of their own and step together.

    Parameters
    ----------
    prefill
        A unit of the prefill pool, where its layout is another than that of `unit`, which then decodes.
    front
        Seconds of a TTFT that no step takes, measured with one short request; None: as fitted to served points.

    Raises
    ------
    ValueError
        For a `front` below 0, a unit whose KV cache has no room for the longest request, and a `prefill` that is more
        than another layout of the unit, or without pools.

    Examples
    --------
    >>> from inference_math import Unit
    >>> from inference_math_planner import Benchmark, foresee
    >>> unit = Unit.of("llama-3-8b", "h100-sxm")
    >>> runs = [Benchmark(1000, 200, each * 16, concurrency=16, range_ratio=0.1) for each in (2, 40)]
    >>> few, many = (foresee(unit, run) for run in runs)
    >>> bool(few.table.loc["TTFT", "mean"] > 1.5 * many.table.loc["TTFT", "mean"])
    True
    """
    known = unit.front if front is None else replace(unit.front, seconds=as_number("front", front, AT_LEAST_ZERO), sd=0)
    if front is None and run.pools is not None:  # who measured a front measured it of these pools
        known = replace(known, seconds=known.seconds + handover().seconds)
    bench_run, work, limits = run.played(known.seconds), run.work, run.limits(unit)
    policy = policy_of(unit.engine, run.chunked, unit.version, unit.async_scheduling)
    held = bench_unit(unit.numbers, engine(unit.engine), limits[1])
    system = bench_system(held, work, engine(unit.engine), limits, policy)
    if prefill is not None and run.pools is None:
        raise ValueError("prefill must be left out without pools")
    if run.pools is not None:
        first, pool_bw = prefill or unit, unit.gpus * as_link("link", run.link).of(unit.gpu)
        system = bench_pools(system, unit.numbers, first.numbers, work.n_in, list(run.pools), pool_bw)
    if prefill is not None:
        refuse_nodes(alike("prefill", unit, prefill))
        bench_run = changed(bench_run, prefill=[Steps(prefill.near(work))])
        system = changed(system, budget=run.limits(prefill)[0])
    numbers = bench(system, Steps(unit.near(work)), bench_run)
    table = pd.DataFrame.from_dict(
        {row: numbers[name] for row, name in _ROWS.items()}, orient="index", columns=_COLUMNS
    )
    at_once, users = numbers["in_flight"], 1.0 * bench_run.users
    if run.pools is not None:  # who waits for a prompt holds no place of a decode unit
        at_once = users = numbers["rate"] * (numbers["latency"][0] - numbers["ttft"][0]) / run.pools[1]
    at_once = max(1.0, at_once)
    wide = widened(unit.score_key, known_errors()) if unit.calibration.mode in SHIPPED else []
    draws = [unit.found(work), *(found for found, _ in unit.draws(work, DRAWS))]
    late = bench_latency_ends(unit.numbers, work, draws, unit.left(work, at_once), at_once)
    low, high = ttft_ends(numbers["ttft"][0], known.seconds, known.sd, known.drafting if unit.drafts else known.spread)
    spread = {"ttft": (low, high), "e2e": (late[0], late[1])}
    return Foreseen(
        table,
        numbers["rate"],
        numbers["seconds"],
        (int(limits[0]), int(limits[1])),
        known.seconds,
        numbers["burst"],
        numbers["steady"],
        numbers["enough"],
        spread,
        (*unit.outside(work, max(1.0, users), max_kv_seqs(held, work, engine(unit.engine))), *map(render, wide)),
        unit.dp if run.pools is None else 1,
    )


def cadences(
    unit: Unit, run: Benchmark, *, front: float | None = None, every: Sequence[int] = tuple(CADENCES)
) -> pd.DataFrame:
    """Return what a benchmark shows where prompts are computed at every N-th step alone, for some N [E01, E03].

    Of a unit with attention data parallelism the ranks have prompts of their own and step together, for N = 1, too.

    Parameters
    ----------
    front
        As of `foresee`.
    every
        The N: 1 is an engine without a cadence.

    Returns
    -------
    pandas.DataFrame
        A row for each N: gap (mean), gap_p50, gap_p90, gap_p99 and ttft (mean) in seconds, rate in requests/s. For gap,
        gap_p50, gap_p90 and rate the chance that it is better than in the first row, as gap_chance, and the word for
        that, as gap_sure: "sure", "likely" or "open"; NaN and "" of the first row.

    Raises
    ------
    TypeError, ValueError
        As `foresee`; for no N, or one that is no whole number.

    Examples
    --------
    >>> from inference_math import Unit
    >>> from inference_math_planner import Benchmark, cadences
    >>> unit = Unit.of("deepseek-v3", "h200-sxm", dp=8, ep=8)
    >>> found = cadences(unit, Benchmark(1000, 200, 600, rate=8.0, range_ratio=0.5), every=(1, 4))
    >>> bool(found.gap[1] < 0.9 * found.gap[0])
    True
    """
    if run.pools is not None:
        raise ValueError("pools must be left out: prompts that are computed apart need no cadence")
    steps = [as_whole("every", one) for one in every]
    if not steps:
        raise ValueError("every must name a number of steps at least")
    late = unit.front.seconds if front is None else as_number("front", front, AT_LEAST_ZERO)
    bench_run, work = run.played(late), run.work
    policy = policy_of(unit.engine, run.chunked, unit.version, unit.async_scheduling)
    limits = run.limits(unit)
    held = bench_unit(unit.numbers, engine(unit.engine), limits[1])
    system = bench_system(held, work, engine(unit.engine), limits, policy)
    rows = [bench_cadence(system, Steps(unit.near(work)), bench_run, one) for one in steps]
    table, gain_errors = pd.DataFrame(rows, columns=COLUMNS), cadence_errors_of(unit, run)
    for column, name in enumerate(COLUMNS):
        if gain_errors[column]:
            sure = [cadence_verdict(rows, row, column, gain_errors) for row in rows]
            table[[f"{name}_chance", f"{name}_sure"]] = pd.DataFrame(map(structs.asdict, sure))[["chance", "sure"]]
    return table


def cadence_words(unit: Unit, run: Benchmark, rows: pd.DataFrame) -> tuple[list[str], list[str]]:
    """Return which rows of `cadences` are the best at what, and how sure that is; and what stands behind it."""
    cadence = engine(unit.engine).cli.cadence
    said = cadence_said(rows[COLUMNS].to_numpy().tolist(), cadence_errors_of(unit, run), cadence)
    notes = cadence_notes(unit.dp, known_comparisons()["cadence"])
    return list(map(render, said)), list(map(render, notes))


def cadence_errors_of(unit: Unit, run: Benchmark) -> list[list[float]]:
    """Return how far off what cadences gain may be, by `COLUMNS`; see `bench.cadence_errors`."""
    return cadence_errors(known_comparisons(), unit.kind, unit.gpu.generation, run.work.n_in, run.work.n_out)


def policy_of(
    name: str, chunked: bool | None = None, version: str = "", async_scheduling: bool | None = None
) -> SchedulerPolicy:
    """Return how an engine of some age lets prompts into its steps.

    It may be told whether it shall cut them, and whether it shall plan a step while the one before it runs.

    Examples
    --------
    >>> [policy_of("vllm", version=version).ahead for version in ("0.11", "0.13", "")]
    [False, True, True]
    >>> policy_of("vllm", async_scheduling=False).ahead
    False
    """
    scheduler = engine(name).scheduler
    whole = scheduler.whole if chunked is None else not chunked
    ahead = plans_ahead(name, version, async_scheduling)
    return SchedulerPolicy(whole=whole, alone=scheduler.alone, since=scheduler.since, ahead=ahead)
