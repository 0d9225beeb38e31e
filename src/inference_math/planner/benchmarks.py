"""What a benchmark will show before it is run: the command line of ``vllm bench serve``, played.

Users begin together and every request counts, so a mean TTFT holds an opening burst, and hangs on how many prompts are
sent. The play says both, and how many prompts it takes until the burst no longer matters.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, exp, inf, isfinite, nan
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd

from inference_math import theory
from inference_math.checks import Interval, as_number, as_whole
from inference_math.simulate import Chunked, Habits, Run, benchmark, open_loop
from inference_math.unit import Unit
from inference_math.unit.front import front_of
from inference_math.workload import RandomLengths, Requests, Workload

__all__ = ["BUDGET", "CLOSE", "Foreseen", "foresee"]

BUDGET = 8192  # tokens of a step that engines take unless they are told otherwise
CLOSE = 0.05  # how near to the steady mean TTFT is near enough
# What engines do unless they are told otherwise: TensorRT-LLM cuts no prompts, SGLang computes them by themselves.
HABITS = {"vllm": Habits(), "trtllm": Habits(whole=True), "sglang": Habits(alone=True)}
_RATIO = Interval(0, 0.999)
_BURSTINESS = Interval(1e-4, 1e4)
_COLUMNS = ["mean", "P50", "P90", "P99"]
_FOREVER = 1e9  # requests of each user
_ROUNDS, _ENOUGH = 9, 2000  # requests of each user, and of all, from which a steady mean is taken, at least


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
        who get these stay together, and NaN where they wait for a place, or come at a rate.
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
        table = self.table.astype(object).where(self.table.notna(), None).to_dict("index")
        return plain | {"table": table, "spread": self.spread, "notes": list(self.notes)}

    def __str__(self) -> str:
        lines = ["              mean      P50      P90      P99"]
        for name, row in self.table.iterrows():
            lines.append(f"{name!s:8}" + "".join(f"{_shown(value):>9}" for value in row))
        mean = self.table["mean"].to_dict()
        means = {"ttft": float(mean["TTFT"]), "e2e": float(mean["latency"])}
        ends = {
            name: " to ".join(_shown(means[name] * end) for end in between) for name, between in self.spread.items()
        }
        lines.append(f"{self.rate:.3g} requests/s, {self.seconds:.0f} s in all")
        lines.append(f"nine in ten measured means: {ends['ttft']} (TTFT), {ends['e2e']} (latency)")
        lines.append(
            f"{_shown(self.front)} of each TTFT is front: HTTP, tokenizer, launch; the low end takes it for nothing"
        )
        if self.enough == self.enough:
            lines.append(
                f"the opening burst has a mean TTFT of {_shown(self.burst)}, "
                f"users who have spread {_shown(self.steady)}"
            )
            lines.append(
                "equal answers never spread users who began together: give a range of lengths"
                if self.enough == inf
                else f"{self.enough:,.0f} prompts bring the mean within {CLOSE:.0%} of the latter"
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
    scatter = as_number("burstiness", burstiness, _BURSTINESS) ** -0.5
    work, front = Workload(n_in, n_out), front_of(unit.model, unit.gpu, unit.engine, unit.version)
    scheduler = Chunked(
        as_whole("budget", budget) * unit.dp, max_batch=max(1, unit.places(work)), habits=HABITS[unit.engine]
    )
    asked: dict[str, Any] = {"cost": unit.near(work).step_cost, "scheduler": scheduler, "seed": seed}
    burst = steady = enough = nan
    if rate != inf:
        if concurrency is not None:
            raise ValueError(f"concurrency must be left out beside a request rate of {rate!r:.80}, not {concurrency}")
        run = open_loop(source, rate=rate, cv_arrivals=scatter, requests=count, **asked)
        run.requests["ttft"] += front.seconds
        run.requests["latency"] += front.seconds
        users = max(1.0, float(run.requests["latency"].mean()) * rate)
    else:
        users = as_whole("concurrency", count if concurrency is None else concurrency, 1, count)
        run = benchmark(source, concurrency=int(users), requests=count, front=front.seconds, **asked)
        burst = float(run.requests["ttft"][run.requests["arrival"] <= 0].mean())
        steady = _steady(work, int(users), front.seconds, asked)
        if users <= scheduler.max_batch:  # else the queue for a place outweighs the burst
            enough = users * _rounds(unit, source, int(users), scheduler.budget, burst, steady)
    within = unit.predict("e2e", work, users)
    wide = exp(NormalDist().inv_cdf(0.95) * (front.drafting if unit.drafts else front.spread))
    bare = 1 - front.seconds / float(run.requests["ttft"].mean())
    spread = {"ttft": (bare / wide, wide), "e2e": (within.low / within.value, within.high / within.value)}
    return Foreseen(
        _table(run), run.request_rate, run.seconds, front.seconds, burst, steady, enough, spread, within.outside
    )


def _rounds(unit: Unit, source: RandomLengths, users: int, budget: int, burst: float, steady: float) -> float:
    """Return the requests of each user until neither the burst nor what phases keep matters to the mean TTFT."""
    far = round(source.n_out * (1 + source.span)) - round(source.n_out * (1 - source.span))  # lengths are whole
    if not far:
        return inf
    cv = (((far + 1) ** 2 - 1) / 12) ** 0.5 / source.n_out
    together = max(1, budget // ceil(source.n_in))
    met = theory.prompts_met(B=users, rounds=_FOREVER, together=together, n_out=source.n_out, cv=cv)
    more = max(0.0, unit.prefill_time(source.n_in) - unit.step_time(1, source.n_in))
    needed = theory.rounds_needed(
        burst=burst, steady=steady, met=max(met, 0.0), ttft_1=max(more, 1e-9), delta_h=0.0, share_off=CLOSE
    )
    return float(ceil(needed))


@dataclass(frozen=True)
class _Forgetful:
    """The same means, but answers that forget the start at once: geometric ones, of which only the mean counts."""

    work: Workload

    def draw(self, count: int, rng: np.random.Generator) -> Requests:
        n_out = rng.geometric(1 / self.work.n_out, count)
        return Requests(np.full(count, round(self.work.n_in)), n_out, np.zeros_like(n_out))


def _steady(work: Workload, users: int, front: float, asked: dict[str, Any]) -> float:
    """Return the mean TTFT of a loop whose users have spread: played with answers that forget, its later part."""
    each = max(_ROUNDS, _ENOUGH // users)
    run = benchmark(_Forgetful(work), concurrency=users, requests=users * each, front=front, **asked)
    late = run.requests.sort_values("arrival", kind="stable").iloc[users * each // 3 :]
    return float(late["ttft"].mean())


def _table(run: Run) -> pd.DataFrame:
    summary = run.summary()
    names = {"TTFT": "ttft", "TPOT": "tpot", "ITL": "gap", "latency": "latency"}
    rows = {title: [summary[f"{name}_{column.lower()}"] for column in _COLUMNS] for title, name in names.items()}
    return pd.DataFrame.from_dict(rows, orient="index", columns=_COLUMNS)


def _shown(seconds: float) -> str:
    if seconds != seconds:
        return "-"
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1e3 * seconds:.3g} ms"
