"""What a benchmark will show before it is run: the command line of ``vllm bench serve``, played.

Users begin together and every request counts, so a mean TTFT holds an opening burst, and hangs on how many prompts are
sent. The play says both, and how many prompts it takes until the burst no longer matters.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, isfinite
from typing import Any

import pandas as pd

from inference_math.checks import ANY_POSITIVE, AT_LEAST_ZERO, Interval, as_number, as_whole
from inference_math.planner.bench import BUDGET, CLOSE, Bench, bench, bench_said, bench_system, in_seconds, ttft_ends
from inference_math.planner.traffic import chances
from inference_math.simulate.schedulers import Habits, admission_of
from inference_math.unit import Unit
from inference_math.workload import RandomLengths, Workload

__all__ = ["BUDGET", "CLOSE", "HABITS", "Foreseen", "foresee"]

# What engines do unless they are told otherwise: TensorRT-LLM cuts no prompts, SGLang computes them by themselves.
HABITS = {"vllm": Habits(), "trtllm": Habits(whole=True), "sglang": Habits(alone=True)}
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
        rows = {str(name): values for name, *values in self.table.itertuples()}
        for name, values in rows.items():
            lines.append(f"{name:8}" + "".join(f"{in_seconds(value):>9}" for value in values))
        low, high = (rows["latency"][0] * end for end in self.spread["e2e"])
        told = {"rate": self.rate, "seconds": self.seconds, "ttft": rows["TTFT"]}
        told |= {"burst": self.burst, "steady": self.steady, "enough": self.enough}
        said = bench_said(told, self.front, list(self.spread["ttft"]))
        said.insert(2, f"and latencies: {in_seconds(low)} to {in_seconds(high)}")
        return "\n".join([*lines, *said, *(f"note: {note}" for note in self.notes)])


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
    front: float | None = None,
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
        ``--max-concurrency``: users that send the next request when the last is answered; without a rate they begin
        together. None: as many as there are prompts.
    rate, burstiness
        ``--request-rate`` in 1/s, and ``--burstiness``: 1 for arrivals at random, less comes in bursts. A request that
        must wait for a user to be free is sent, and its clock starts, when one is: as that client has it.
    range_ratio
        ``--random-range-ratio`` r: lengths are uniform from 1 - r to 1 + r of their means.
    budget
        ``--max-num-batched-tokens``, for each group of attention.
    front
        Seconds of a TTFT that no step takes, measured with one short request; None: as fitted to served points.
    seed
        Of lengths and arrivals.

    Raises
    ------
    TypeError, ValueError
        For an argument that is none of these.

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
    users = as_whole("concurrency", count if concurrency is None else concurrency, 1, count)
    gaps, lengths = chances(as_whole("seed", seed, 0), scatter)
    known = unit.front if front is None else replace(unit.front, seconds=as_number("front", front, AT_LEAST_ZERO), sd=0)
    late = known.seconds
    asked: Bench = {
        "n_in": source.n_in, "n_out": source.n_out, "span": source.span, "users": users, "count": count,
        "rate": rate if rate == inf else as_number("rate", rate, ANY_POSITIVE), "front": late, "gaps": gaps,
        "chances": lengths,
    }  # fmt: skip
    work = Workload(n_in, n_out)
    tokens, admission = as_whole("budget", budget), admission_of(HABITS[unit.engine])
    told = bench(
        bench_system(unit.numbers, work.plain, unit.engine, tokens, admission), unit.near(work).step_cost, asked
    )
    table = pd.DataFrame.from_dict({row: told[name] for row, name in _ROWS.items()}, orient="index", columns=_COLUMNS)
    within = unit.predict("e2e", work, max(1.0, told["in_flight"]))
    low, high = ttft_ends(told["ttft"][0], late, known.sd, known.drafting if unit.drafts else known.spread)
    spread = {"ttft": (low, high), "e2e": (within.low / within.value, within.high / within.value)}
    return Foreseen(
        table, told["rate"], told["seconds"], late, told["burst"], told["steady"], told["enough"], spread,
        unit.outside(work, users),
    )  # fmt: skip
