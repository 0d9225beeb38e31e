"""What a benchmark will show before it is run: the command line of ``vllm bench serve``, played.

Users begin together and every request counts, so a mean TTFT holds an opening burst, and hangs on how many prompts are
sent. The play says both, and how many prompts it takes until the burst no longer matters.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, exp, inf, isfinite
from statistics import NormalDist
from typing import Any

import pandas as pd

from inference_math import theory
from inference_math.checks import ANY_POSITIVE, Interval, as_number, as_whole
from inference_math.simulate import Chunked, Habits, Run, benchmark, open_loop
from inference_math.unit import Unit
from inference_math.unit.front import front_of
from inference_math.workload import RandomLengths, Workload

__all__ = ["BUDGET", "CLOSE", "Foreseen", "foresee"]

BUDGET = 8192  # tokens of a step that engines take unless they are told otherwise
CLOSE = 0.05  # how near to the steady mean TTFT is near enough
# What engines do unless they are told otherwise: TensorRT-LLM cuts no prompts, SGLang computes them by themselves.
HABITS = {"vllm": Habits(), "trtllm": Habits(whole=True), "sglang": Habits(alone=True)}
_RATIO = Interval(0, 0.999)
_COLUMNS = ["mean", "P50", "P90", "P99"]


@dataclass(frozen=True, eq=False)
class Foreseen:
    """What a benchmark of a unit will show.

    Attributes
    ----------
    table
        Rows TTFT, TPOT, ITL and latency in seconds: mean, P50, P90, P99.
    rate, seconds
        Requests finished per second, and how long it takes.
    front
        Seconds of each TTFT that no step takes.
    burst, steady
        Mean TTFT of the prompts of the first moment, and of a closed loop whose users have spread; NaN for arrivals.
    enough
        Prompts to send until the mean TTFT is within `CLOSE` of the steady one; infinite for equal answers, for users
        who get these stay together.
    spread
        Ends of the factor by which mean TTFTs, and latencies, may be off with a probability of 90 %. The front is that
        of one source's hosts and clients: others may take next to none, so the low end of the TTFT has none.
    notes
        What was never calibrated.
    """

    table: pd.DataFrame
    rate: float
    seconds: float
    front: float
    burst: float
    steady: float
    enough: float
    spread: dict[str, tuple[float, float]]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain values, seconds; what does not apply is None."""
        told = {name: getattr(self, name) for name in ("rate", "seconds", "front", "burst", "steady", "enough")}
        plain = {name: value if isfinite(value) else None for name, value in told.items()}
        return plain | {"table": self.table.to_dict("index"), "spread": self.spread, "notes": list(self.notes)}

    def __str__(self) -> str:
        lines = ["              mean      P50      P90      P99"]
        for name, row in self.table.iterrows():
            lines.append(f"{name!s:8}" + "".join(f"{_shown(value):>9}" for value in row))
        ends = {name: f"{low:.2f} to {high:.2f}" for name, (low, high) in self.spread.items()}
        lines.append(f"{self.rate:.3g} requests/s, {self.seconds:.0f} s in all")
        lines.append(f"90 % of means are within {ends['ttft']} times this (TTFT), {ends['e2e']} (latency)")
        lines.append(f"of a TTFT {_shown(self.front)} pass beside the engine's steps")
        if self.burst == self.burst:
            lines.append(
                f"the opening burst has a mean TTFT of {_shown(self.burst)}, a loop whose users have spread "
                f"{_shown(self.steady)}"
            )
            lines.append(
                "equal answers never spread users who began together: give a range of lengths"
                if self.enough == inf
                else f"send {self.enough:,.0f} prompts to come within {CLOSE:.0%} of it"
            )
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])


def foresee(
    unit: Unit,
    n_in: float,
    n_out: float,
    *,
    prompts: int,
    concurrency: int | None = None,
    rate: float = inf,
    burstiness: float = 1.0,
    range_ratio: float = 0.0,
    budget: int = BUDGET,
    seed: int = 0,
) -> Foreseen:
    """Return what a benchmark of a unit will show, the arguments named as ``vllm bench serve`` has them.

    Parameters
    ----------
    n_in, n_out
        ``--random-input-len``, ``--random-output-len`` in tokens.
    prompts
        ``--num-prompts``: requests in all.
    concurrency
        ``--max-concurrency``: users that begin together and send the next request when the last is answered; None:
        all prompts are sent at once, or at the rate.
    rate, burstiness
        ``--request-rate`` in 1/s, and ``--burstiness``: 1 for arrivals at random, less comes in bursts.
    range_ratio
        ``--random-range-ratio`` r: lengths are uniform from 1 - r to 1 + r of their means.
    budget
        ``--max-num-batched-tokens``, for each group of attention.

    Raises
    ------
    TypeError, ValueError
        For an argument that is none of these; for a concurrency beside a rate.

    Examples
    --------
    >>> from inference_math import Unit
    >>> unit = Unit.of("llama-3-8b", "h100-sxm")
    >>> few, many = (
    ...     foresee(unit, 1000, 200, prompts=each * 16, concurrency=16, range_ratio=0.1) for each in (2, 40)
    ... )
    >>> bool(few.table.loc["TTFT", "mean"] > 1.5 * many.table.loc["TTFT", "mean"])
    True
    """
    count = as_whole("prompts", prompts, 1, 1_000_000)
    source = RandomLengths(n_in, n_out, as_number("range_ratio", range_ratio, _RATIO))
    work, front = Workload(n_in, n_out), front_of(unit.model, unit.gpu, unit.engine, unit.version)
    scheduler = Chunked(
        as_whole("budget", budget) * unit.dp, max_batch=max(1, unit.places(work)), habits=HABITS[unit.engine]
    )
    cost = unit.near(work).step_cost
    if rate < inf:
        if concurrency is not None:
            raise ValueError(f"concurrency must be left out beside a request rate of {rate:g}, not {concurrency}")
        scatter = as_number("burstiness", burstiness, ANY_POSITIVE) ** -0.5
        run = open_loop(source, cost, rate=rate, cv_arrivals=scatter, requests=count, scheduler=scheduler, seed=seed)
        run.requests["ttft"] += front.seconds
        run.requests["latency"] += front.seconds
        burst = steady = float("nan")
        enough, users = float("nan"), max(1.0, float(run.requests["latency"].mean()) * rate)
    else:
        users = as_whole("concurrency", count if concurrency is None else concurrency, 1, count)
        run = benchmark(
            source, cost, concurrency=users, requests=count, scheduler=scheduler, front=front.seconds, seed=seed
        )
        first = run.requests["arrival"] <= 0
        burst = float(run.requests["ttft"][first].mean())
        steady = _steady(unit, work, users, front.seconds)
        enough = users * _rounds(burst, steady, source.span / 3**0.5)
    within = unit.predict("e2e", work, users)
    wide = exp(NormalDist().inv_cdf(0.95) * front.spread)
    bare = 1 - front.seconds / float(run.requests["ttft"].mean())
    spread = {"ttft": (bare / wide, wide), "e2e": (within.low / within.value, within.high / within.value)}
    return Foreseen(
        _table(run), run.request_rate, run.seconds, front.seconds, burst, steady, enough, spread, within.outside
    )


def _rounds(burst: float, steady: float, cv: float) -> float:
    """Return the requests of each user until the burst is forgotten, and the users have spread."""
    if not cv:
        return inf
    needed = theory.rounds_needed(burst=max(burst, steady), steady=steady, share_off=CLOSE)
    return float(ceil(max(needed, theory.mixing_waves(cv=cv))))


def _steady(unit: Unit, work: Workload, users: float, front: float) -> float:
    """Return the mean TTFT of a closed loop with full slots: the front, half a step that is under way, one's own."""
    engine = unit.e2e(work, users)
    inside = max(1.0, min(theory.users_inside(B=users, latency=engine, front=front), unit.places(work)))
    wait = unit.tpot(work, inside) * unit.tokens_a_step / 2 if users > 1 else 0.0
    return float(front + wait + unit.ttft(work, inside))


def _table(run: Run) -> pd.DataFrame:
    summary = run.summary()
    names = {"TTFT": "ttft", "TPOT": "tpot", "ITL": "gap", "latency": "latency"}
    rows = {title: [summary[f"{name}_{column.lower()}"] for column in _COLUMNS] for title, name in names.items()}
    return pd.DataFrame.from_dict(rows, orient="index", columns=_COLUMNS)


def _shown(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1e3 * seconds:.3g} ms"
