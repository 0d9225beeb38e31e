"""The answers of `store` and `benchmark` in at most nine lines, each a sentence; `--full` has their tables."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping
from math import ceil, floor, inf, isfinite
from typing import TYPE_CHECKING, Any

from inference_math.evidence.numerals import digits, in_seconds
from inference_math.evidence.sentences import render
from inference_math.unit import Unit
from inference_math.unit.types import Message
from inference_math_planner.answers.record import rows_of
from inference_math_planner.answers.text import sentence
from inference_math_planner.answers.ways import round_up
from inference_math_planner.cli.ways import LONGEST_LIMITS, as_flags
from inference_math_planner.fleets.bench import CLOSE
from inference_math_planner.fleets.benchmarks import COLUMNS, cadence_words

if TYPE_CHECKING:
    import pandas as pd

    from inference_math_planner import Benchmark, Foreseen, Ladder

__all__ = ["LINES", "bench_lines", "cadence_lines", "plan_after", "store_lines", "tier_of"]

LINES = 9
# What a plan is asked for as the store was, option by argument: what is left out is as it would be.
_UNIT = {
    "model": "model", "gpu": "gpu", "ep": "ep", "dp": "dp", "pp": "pp", "weights": "weights", "memory": "memory",
    "kv": "kv", "engine": "engine", "imbalance": "expert-imbalance", "calibration": "calibration",
}  # fmt: skip


def store_lines(ladder: Ladder, options: Namespace) -> list[str]:
    """Return whose sessions these are, how big a store must be, what each tier brings, what to mind, and a plan."""
    rows = rows_of(ladder.tiers)
    shown = [0] if len(rows) < 2 else [0, -1]
    said = [*ladder.head, *(render(_tier_said(rows[k], ladder.gains[k])) for k in shown)]
    if rows[-1]["full"]:
        said.append(render({"key": "store.overload", "users": ladder.users, "ttft": rows[-1]["ttft"]}))
    last = [render({"key": "store.plan", "command": plan_after(ladder, options)}), render({"key": "store.full"})]
    # What makes the numbers worse than they look comes first.
    urgent = (render({"key": "ladder.brim"}), render({"key": "ladder.dropped"}), _groups(options))
    notes = sorted(ladder.notes, key=lambda one: one not in urgent)
    return [*said, *notes[: LINES - len(said) - len(last)], *last]


def _groups(options: Namespace) -> str:
    return render({"key": "ladder.groups", "groups": options.dp or 1})


def _tier_said(row: Mapping[str, Any], gained: str) -> Message:
    """Say what a row of the ladder finds, serves and shows its users; of tiers below HBM what they gain."""
    names = {"tier": "tier", "gb": "size", "together": "found", "rate": "rate", "ttft": "ttft", "tpot": "tpot"}
    kept = row["kept"]
    more: list[Message] = [{"key": "store.kept", "users": kept}] if kept >= 0 else []
    key = "store.below" if gained else "store.hbm"
    return {"key": key, "kept": more, "sure": gained, **{hole: row[name] for name, hole in names.items()}}


def tier_of(ladder: Ladder) -> str | None:
    """Return the tier below HBM that finds most, None where HBM does or nothing is found."""
    most = max(range(len(ladder.shares)), key=lambda k: ladder.shares[k])
    return str(ladder.tiers["tier"].iloc[most]) if most and ladder.shares[most] > 0 else None


def plan_after(ladder: Ladder, options: Namespace) -> str:
    """Return the command that plans for these sessions, as they were asked about: with what the store finds.

    Where nobody named limits, they are what the users of the ladder see.
    """
    last = ladder.tiers.iloc[-1]
    given = {name: getattr(options, name) for name in _UNIT}
    usual = {"engine": "vllm"}
    flags: dict[str, str | float] = {
        _UNIT[name]: value for name, value in given.items() if value not in (None, usual.get(name))
    }
    flags |= {"tp": options.tp or 1, "prompt": floor(ladder.prompt + 0.5), "output": options.answer}
    if last["together"] >= 0.005:
        tier = tier_of(ladder)
        flags |= {"alpha": f"{last['together']:.2f}"}
        flags |= {"tier": tier, "sessions": ceil(ladder.users / ladder.units)} if tier else {}
    flags["rate"] = f"{last['rate']:.3g}"
    if options.ttft is None:
        seen = {name: min(round_up(last[name]), most) for name, most in LONGEST_LIMITS.items()}
        flags |= {**seen, "quantile": "means"}
    else:
        flags |= {"ttft": options.ttft, "tpot": options.tpot}
    return f"inference-math plan {as_flags(flags)}"


def bench_lines(foreseen: Foreseen) -> list[str]:
    """Return pace, each time with its quantiles, what the opening burst adds, and what was never calibrated."""
    tokens, seqs = foreseen.limits
    said: list[Message | str] = [
        {"key": "brief.pace", "seconds": foreseen.seconds, "rate": foreseen.rate, "tokens": tokens, "seqs": seqs}
    ]
    for name, key, spread in (
        ("TTFT", "brief.ttft", "ttft"), ("TPOT", "brief.tpot", ""), ("ITL", "brief.gap", ""),
        ("latency", "brief.latency", "e2e"),
    ):  # fmt: skip
        mean, half, most, rare = map(float, foreseen.table.loc[name].to_numpy())
        if not isfinite(mean):  # answers of one token have no gaps
            continue
        ends = [mean * one for one in foreseen.spread.get(spread, ())]
        said.append({"key": key, "mean": mean, "p50": half, "p90": most, "p99": rare, "ends": _between(ends)})
    said += _burst(foreseen)
    said += [sentence(one) for one in foreseen.notes]
    return [*map(render, said[: LINES - 1]), render({"key": "brief.full"})]


def cadence_lines(rows: pd.DataFrame, unit: Unit, run: Benchmark) -> tuple[list[str], list[str]]:
    """Return which cadences are the best at what, how sure that is; and the table with notes, for `--full`."""
    said, notes = cadence_words(unit, run, rows)
    times = {name: rows[name].map(in_seconds) for name in ("gap", "gap_p50", "gap_p90", "gap_p99", "ttft")}
    shown = rows[COLUMNS].assign(**times, rate=rows["rate"].map(digits)).rename(columns={"every": "N"})
    return [*said, render({"key": "brief.full"})], [shown.to_string(index=False), *notes]


def _between(ends: list[float]) -> list[Message]:
    return [{"key": "brief.ends", "low": ends[0], "high": ends[1]}] if ends else []


def _burst(foreseen: Foreseen) -> Iterator[Message]:
    """Yield what the opening burst adds to a mean TTFT, and how many prompts outweigh it."""
    if foreseen.enough > 0:
        enough: Message = {"key": "brief.enough", "enough": foreseen.enough, "close": CLOSE}
        how = enough if foreseen.enough < inf else {"key": "brief.never"}
        yield {"key": "brief.burst", "burst": foreseen.burst, "steady": foreseen.steady, "how": how}
