"""Simulations to call: users in a closed loop, a benchmark, random arrivals, a trace."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from math import inf, nan
from typing import Any

import numpy as np

from inference_math.evidence.checks import ANY_POSITIVE, AT_LEAST_ZERO, Interval, as_number, as_one_of, as_whole
from inference_math.simulate.cost import Cost, drafts_of, timed
from inference_math.simulate.engine import Request
from inference_math.simulate.record import Record, Run
from inference_math.simulate.schedulers import Aggregated, Chunked, Disaggregated, Reuse, Scheduler, system_of
from inference_math.simulate.systems import engine_of, run_engine, run_pools
from inference_math.simulate.users import Users, arrivals, drawn, lengths
from inference_math.workload import Requests, Source, Trace

__all__ = ["benchmark", "closed_loop", "open_loop", "replay"]

PREFILL_FIRST = Aggregated()

_CV_ARRIVALS = Interval(0, 100)  # far beyond it a gamma distribution is nothing but zeros

_KINDS: dict[str, tuple[Any, str]] = {
    "source": (Source, "a Workload, a Trace, or anything with their draw"),
    "trace": (Trace, "a Trace"),
    "cost": (Callable, "a StepCost or a function with its arguments"),
    "scheduler": (Scheduler, "an Aggregated, a Chunked or a Disaggregated"),
    "reuse": (Reuse | None, "a Reuse or None"),
}


def closed_loop(
    source: Source,
    cost: Cost,
    *,
    concurrency: int,
    requests: int,
    scheduler: Scheduler = PREFILL_FIRST,
    reuse: Reuse | None = None,
    start: str = "together",
    warmup: int = 0,
    seed: int = 0,
    every_gap: bool = False,
    log: bool = False,
) -> Run:
    """Simulate `concurrency` users, each of whom sends a request as soon as the last one has finished.

    Parameters
    ----------
    source
        A `Workload`, a `Trace`, or anything with their `draw`.
    cost
        Seconds of a step; see `Cost`.
    concurrency
        Users, B of claims C12 to C14.
    requests, warmup
        How many finished requests are measured, after how many that are not. Who finishes in the same step as
        the last of them, or in another engine's at the same time, counts, too.
    start
        "together": all users begin at once, as benchmarks do. "steady": each begins somewhere in the middle
        of a request, as if the system had run for ever, as far as places and room allow; not for pools.
    seed
        The same seed gives the same run.
    every_gap, log
        Keep every gap between tokens, every step; both need memory that grows with the tokens.

    Raises
    ------
    TypeError
        For a source, cost, scheduler or reuse that is none.
    ValueError
        For a count below 1, an unknown start, a request that does not fit the KV cache, a step that takes no time.
    """
    _check(source=source, cost=cost, scheduler=scheduler, reuse=reuse)
    users_at_once = as_whole("concurrency", concurrency)
    as_one_of("start", start, ("together", "steady"))
    rng = _generator(seed)
    resumed: list[tuple[Request, int]] = []
    fresh = users_at_once
    if start == "steady":
        if isinstance(scheduler, Disaggregated):
            raise ValueError("start must be 'together' for a Disaggregated scheduler, not 'steady'")
        resumed = _under_way(drawn(source, 64 * max(users_at_once, 64), rng), users_at_once, scheduler, rng)
        fresh -= len(resumed)
    users = Users(lengths(source, rng), None, fresh, _pipe(reuse), scheduler.kv_capacity)
    # Requests under way at the start have no TTFT: they are counted as warm-up.
    record = Record(as_whole("warmup", warmup, 0) + len(resumed), every_gap, log)
    if not resumed:
        return _simulate(users, scheduler, reuse, cost, record, requests)
    engine = engine_of(system_of(scheduler, reuse, *drafts_of(cost)), timed(cost), record)
    for request, done in resumed:
        engine.resume(request, done)
    return record.result(run_engine(engine, users, record, as_whole("requests", requests)))


def benchmark(
    source: Source,
    cost: Cost,
    *,
    concurrency: int,
    requests: int,
    scheduler: Scheduler = PREFILL_FIRST,
    reuse: Reuse | None = None,
    rate: float = inf,
    cv_arrivals: float = 1.0,
    front: float = 0.0,
    seed: int = 0,
    every_gap: bool = False,
    log: bool = False,
) -> Run:
    """Play a benchmark as it is run: users begin together, send so many requests in all, and all of them count.

    That is ``vllm bench serve --max-concurrency`` and ``--num-prompts``. It is no
    `closed_loop`, whose measured part may begin late and ends while all places are full: here the prompts of the first
    moment wait for each other, and the last requests have the engine for themselves. What the opening burst adds to
    the mean TTFT falls with the requests of each user.

    Parameters
    ----------
    concurrency, requests
        Users at once, and requests of all of them together.
    rate, cv_arrivals
        Requests that the client sends per second at most, their times between as in `open_loop`; the clock of one that
        must wait for a user to be free starts when it is sent. Infinite, the default: users begin together.
    front
        Seconds that a request takes before the engine has it (HTTP, tokenizer, scheduling); they count in its TTFT.

    The other parameters are those of `closed_loop`.

    Raises
    ------
    TypeError, ValueError
        As `closed_loop` and `open_loop`; for a `front` below 0.

    Examples
    --------
    >>> from inference_math import simulate
    >>> from inference_math.workload import Workload
    >>> cost = simulate.StepCost(t_w=1e-4, prompt=0.1)
    >>> chunks = simulate.Chunked(1010)  # a prompt of 1,000 tokens at a time
    >>> for each in (1, 10, 100):
    ...     run = simulate.benchmark(
    ...         Workload(1000, 5000), cost, concurrency=8, requests=8 * each, scheduler=chunks
    ...     )
    ...     print(f"{each:3} requests of each user: {run.requests.ttft.mean():.2f} s")
      1 requests of each user: 0.45 s
     10 requests of each user: 0.14 s
    100 requests of each user: 0.10 s
    """
    _check(source=source, cost=cost, scheduler=scheduler, reuse=reuse)
    users_at_once, count = as_whole("concurrency", concurrency), as_whole("requests", requests)
    late = as_number("front", front, AT_LEAST_ZERO)
    bursts = as_number("cv_arrivals", cv_arrivals, _CV_ARRIVALS)
    rng, since = _generator(seed), None
    if rate != inf:
        since = arrivals(as_number("rate", rate, ANY_POSITIVE), np.random.default_rng(rng.integers(2**63)), bursts)
    sizes = islice(lengths(source, rng), count)
    users = Users(sizes, None, users_at_once, _pipe(reuse), scheduler.kv_capacity, late, since)
    return _simulate(users, scheduler, reuse, cost, Record(0, every_gap, log), count)


def open_loop(
    source: Source,
    cost: Cost,
    *,
    rate: float,
    requests: int,
    cv_arrivals: float = 1.0,
    scheduler: Scheduler = PREFILL_FIRST,
    reuse: Reuse | None = None,
    warmup: int = 0,
    seed: int = 0,
    every_gap: bool = False,
    log: bool = False,
) -> Run:
    """Simulate requests that arrive at random, `rate` per second on average.

    TTFT then contains the time in the queue. The parameters that are not here are those of `closed_loop`.

    Parameters
    ----------
    rate
        Requests per second, > 0.
    cv_arrivals
        Standard deviation of the times between arrivals over their mean, from 0 to 100; they are gamma-distributed.
        1, the default, is a Poisson process, more comes in bursts, 0 like a clock. The ``--burstiness`` of
        ``vllm bench serve`` is 1/cv_arrivals².

    Raises
    ------
    TypeError, ValueError
        As `closed_loop`, and for a rate or a coefficient outside its range.

    Examples
    --------
    >>> from inference_math import simulate
    >>> from inference_math.workload import Workload
    >>> setting = {"rate": 5.0, "requests": 2000, "scheduler": simulate.Disaggregated(1, 1)}
    >>> cost = simulate.StepCost(t_w=0.001, prompt=0.15)
    >>> runs = [simulate.open_loop(Workload(500, 1), cost, cv_arrivals=cv, **setting) for cv in (0, 1, 2)]
    >>> [f"{run.requests.ttft.mean():.1f}" for run in runs]
    ['0.2', '0.4', '1.1']
    """
    _check(source=source, cost=cost, scheduler=scheduler, reuse=reuse)
    per_second = as_number("rate", rate, ANY_POSITIVE)
    rng = _generator(seed)
    bursts = as_number("cv_arrivals", cv_arrivals, _CV_ARRIVALS)
    times = arrivals(per_second, np.random.default_rng(rng.integers(2**63)), bursts)
    users = Users(lengths(source, rng), times, 0, _pipe(reuse), scheduler.kv_capacity)
    record = Record(as_whole("warmup", warmup, 0), every_gap, log)
    return _simulate(users, scheduler, reuse, cost, record, requests)


def replay(
    trace: Trace,
    cost: Cost,
    *,
    scheduler: Scheduler = PREFILL_FIRST,
    reuse: Reuse | None = None,
    warmup: int = 0,
    every_gap: bool = False,
    log: bool = False,
) -> Run:
    """Play a trace at its own arrival times until its last request has finished."""
    _check(trace=trace, cost=cost, scheduler=scheduler, reuse=reuse)
    if trace.arrival is None:
        raise ValueError("trace must have arrival times")
    measured = len(trace.n_in) - as_whole("warmup", warmup, 0)
    if measured < 1:
        raise ValueError(f"warmup must be less than the {len(trace.n_in)} requests of the trace, not {warmup}")
    sizes = zip(*(column.tolist() for column in trace.rows()), strict=True)
    users = Users(sizes, iter(trace.arrival.tolist()), 0, _pipe(reuse), scheduler.kv_capacity)
    return _simulate(users, scheduler, reuse, cost, Record(warmup, every_gap, log), measured)


def _simulate(
    users: Users, scheduler: Scheduler, reuse: Reuse | None, cost: Cost, record: Record, requests: int
) -> Run:
    wanted, steps = as_whole("requests", requests), timed(cost)
    system = system_of(scheduler, reuse, *drafts_of(cost))
    if isinstance(scheduler, Disaggregated):
        prefill = steps if scheduler.prefill is None else timed(scheduler.prefill)
        return record.result(run_pools(system, prefill, steps, users, record, wanted))
    return record.result(run_engine(engine_of(system, steps, record), users, record, wanted))


def _under_way(
    requests: Requests, slots: int, scheduler: Aggregated | Chunked, rng: np.random.Generator
) -> list[tuple[Request, int]]:
    """Return the requests of slots that are decoding at a random moment, with the tokens they have.

    A long answer is met more often than a short one, and anywhere in it: the renewal argument. A slot that would
    be met in its prefill is left out, and begins with a new request; so is one that does not fit.
    """
    weights = requests.n_out / requests.n_out.sum()
    room = scheduler.kv_capacity
    chosen = rng.choice(len(weights), size=slots, p=weights)
    under_way: list[tuple[Request, int]] = []
    for i, row in enumerate(chosen.tolist()):
        n_in, n_out = int(requests.n_in[row]), int(requests.n_out[row])
        done = int(rng.integers(n_out))
        held = n_in + (done if scheduler.grows else n_out)
        if done and len(under_way) < scheduler.max_batch and held <= room:
            room -= held
            under_way.append((Request(-i, nan, n_in, n_out, int(requests.cached[row])), done))
    return under_way


def _pipe(reuse: Reuse | None) -> float:
    return 0.0 if reuse is None or reuse.blocking else reuse.R


def _generator(seed: int) -> np.random.Generator:
    as_whole("seed", seed, 0)
    return np.random.default_rng(int(seed))


def _check(**arguments: object) -> None:
    for name, value in arguments.items():
        kind, words = _KINDS[name]
        if not isinstance(value, kind):
            raise TypeError(f"{name} must be {words}, not {value!r:.80}")
