"""When prompts are let in: gaps by cadence, ranks that step together, groups of a burst, on given axes.

Every function draws laws as lines and plays of the simulator as dots, and returns what it drew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from inference_math import simulate, theory
from inference_math.simulate import Chunked, Disaggregated, Run, Scheduler, SchedulerPolicy, StepCost
from inference_math.workload import Workload
from inference_math_book.colours import COLOURS, colours_of
from inference_math_planner.laws.rounds import ClosedRounds, OpenRounds

__all__ = ["FAMILY", "by_cadence", "closed", "family", "gaps", "grid", "groups", "opened", "scheduled"]

_PLENTY = 10**7  # tokens of a step: room for all prompts
# What is set of each: steps from prompts to prompts, tokens of a step, units for prefill.
FAMILY = {"every N-th step": (1, 2, 4, 8, 16, 32), "chunks": (384, 512, 768, 1024, 1536, 2200), "pools": (5, 6, 7)}


def _cost(parts: Mapping[str, float], ranks: int) -> StepCost:
    """Return the cost of a step, asked of all ranks together, of which each has these parts."""
    return StepCost(t_w=parts["t_w"], prompt=parts["ttft_1"] / ranks, delta_h=parts["delta_h"] / ranks)


def _engine(every: int, ranks: int, by_chance: bool, ahead: bool = False) -> Chunked:
    return Chunked(_PLENTY, policy=SchedulerPolicy(every=every, ahead=ahead), ranks=ranks, by_chance=by_chance)


def closed(parts: Mapping[str, float], B: int, n_out: int, every: int, ranks: int, requests: int = 4000) -> Run:
    """Return a play of places that always have a prompt waiting, B on each rank."""
    return simulate.closed_loop(
        Workload(50, n_out, lengths="geometric"),
        _cost(parts, ranks),
        concurrency=B * ranks,
        requests=requests,
        warmup=500,
        scheduler=_engine(every, ranks, False),
        seed=1,
    )


def opened(parts: Mapping[str, float], rate: float, n_out: int, every: int, ranks: int, requests: int = 6000) -> Run:
    """Return a play of requests that arrive at random, each at any rank, where a step is planned one ahead."""
    return simulate.open_loop(
        Workload(50, n_out, lengths="geometric"),
        _cost(parts, ranks),
        rate=rate,
        requests=requests,
        warmup=1000,
        scheduler=_engine(every, ranks, True, True),
        seed=1,
    )


def gaps(ax: Axes, parts: Mapping[str, float], B: int, n_out: int, ranks: int, cadences: Sequence[int]) -> pd.DataFrame:
    """Draw the share of the gaps that are no longer than a time, for some cadences."""
    levels, tables = np.linspace(0.01, 0.999, 120), []
    for every, colour in zip(cadences, COLOURS, strict=False):
        law = ClosedRounds(B, n_out, **parts, every=every, ranks=ranks)
        seconds = law.quantile(levels)
        played = closed(parts, B, n_out, every, ranks).gaps
        dots = np.array([0.1, 0.3, 0.5, 0.7, 0.9, 0.95, 0.99])
        ax.plot(1e3 * seconds, levels, color=colour, label=f"N = {every}")
        ax.plot([1e3 * played.quantile(q) for q in dots], dots, "o", color=colour, markersize=4)
        tables.append(pd.DataFrame({"every": every, "level": levels, "seconds": seconds}))
    ax.set(xlabel="time between two tokens (ms)", ylabel="share of the gaps that are no longer", xscale="log")
    ax.legend(loc="lower right")
    return pd.concat(tables, ignore_index=True)


def by_cadence(
    axes: Sequence[Axes], parts: Mapping[str, float], rate: float, n_out: int, played: pd.DataFrame
) -> pd.DataFrame:
    """Draw the mean gap, and the mean TTFT, against the cadence, at `rate` requests a second of each rank.

    `played` has what plays as `opened` gave, "gap simulated" and "ttft simulated", by ranks and every.
    """
    tables: list[pd.DataFrame] = []
    for many, colour in zip(played["ranks"].unique().tolist(), COLOURS, strict=False):
        some = played[played["ranks"] == many]
        said = [OpenRounds(rate * many, n_out, **parts, every=every, ranks=many) for every in some["every"]]
        table = some.assign(gap=[law.mean_gap for law in said], ttft=[law.ttft_ahead for law in said])
        tables.append(table[["ranks", "every", "gap", "ttft", "gap simulated", "ttft simulated"]])
        for ax, name in zip(axes, ("gap", "ttft"), strict=True):
            ax.plot(table["every"], 1e3 * table[name], color=colour, label=f"{many} rank{'s' * (many > 1)}")
            ax.plot(table["every"], 1e3 * table[f"{name} simulated"], "o", color=colour, markersize=4)
    for ax, title in zip(axes, ("mean time between tokens (ms)", "mean time to first token (ms)"), strict=True):
        ax.set(xlabel="steps from prompts to prompts, N", ylabel=title, xscale="log")
        ax.set_xticks(played["every"].unique())
    axes[0].legend()
    return pd.concat(tables, ignore_index=True)


def family(axes: Any, played: pd.DataFrame, limits: tuple[float, float]) -> None:
    """Draw what cadences, chunks and pools do to first tokens and gaps at the same load: a column for some ranks.

    `axes` has a row for mean gaps and one for their P99. `played` has what `scheduled` gives, by ranks, schedule and
    what is set; `limits` are those on TTFT and on the gap, in seconds.
    """
    for column, (many, table) in zip(axes.T, played.groupby("ranks"), strict=True):
        schedules = table.groupby("schedule", sort=False)
        hues = colours_of(table["schedule"].unique())
        for ax, name in zip(column, ("mean gap", "P99 of gaps"), strict=True):
            for (kind, rows), colour, mark in zip(schedules, hues, "os^", strict=True):
                ax.plot(1e3 * rows["ttft"], 1e3 * rows[name], f"{mark}-", color=colour, markersize=5, label=kind)
                for end in (0, -1):
                    place = (1e3 * rows["ttft"].iloc[end], 1e3 * rows[name].iloc[end])
                    ax.annotate(f"{rows['set'].iloc[end]}", place, (5, 5), textcoords="offset points", fontsize=8)
            ax.axvline(1e3 * limits[0], color="grey", linestyle=":")
            ax.axhline(1e3 * limits[1], color="grey", linestyle=":")
            ax.set(xscale="log", yscale="log", xlabel="mean time to first token (ms)", ylabel=f"{name} (ms)")
        column[0].set_title("one engine" if many == 1 else f"{many} ranks that step together")
    axes[0, 0].legend()


def scheduled(
    parts: Mapping[str, float], n_in: int, n_out: int, ranks: int, load: float, schedule: str, setting: int
) -> dict[str, float]:
    """Return what a play of one of the `FAMILY` gives at a load: requests per second and rank are the same for all."""
    each = load / (parts["ttft_1"] + (n_out - 1) * parts["delta_h"])
    ahead, units = SchedulerPolicy(ahead=True), 8 if schedule == "pools" else 1
    schedulers: dict[str, Scheduler] = {
        "every N-th step": _engine(setting, ranks, True, True),
        "chunks": Chunked(ranks * setting, policy=ahead, ranks=ranks, by_chance=True),
        "pools": Disaggregated(setting, max(1, units - setting), groups=ranks),
    }
    run = simulate.open_loop(
        Workload(n_in, n_out, lengths="geometric"),
        StepCost(parts["t_w"], T=parts["ttft_1"] / n_in / ranks, delta_h=parts["delta_h"] / ranks),
        rate=each * ranks * units,
        requests=2500 * min(units, 2),
        warmup=250,
        scheduler=schedulers[schedule],
        seed=1,
    )
    gaps, ttft = run.gaps, float(run.requests.ttft.mean())
    return {"ttft": ttft, "mean gap": gaps.mean, "P99 of gaps": gaps.quantile(0.99)}


def grid(
    parts: Mapping[str, float], n_out: int, ranks: Sequence[int], loads: Sequence[float], cadences: Sequence[int]
) -> pd.DataFrame:
    """Return gaps and first tokens by ranks, load (of what a rank serves at most) and cadence, in milliseconds."""
    rows = []
    most = 1 / (parts["ttft_1"] + (n_out - 1) * parts["delta_h"])
    for many, load, every in product(ranks, loads, cadences):
        try:
            law = OpenRounds(load * most * many, n_out, **parts, every=every, ranks=many)
        except ValueError:  # the slowest of so many ranks does not keep up
            continue
        told = {
            "mean gap": law.mean_gap,
            "P50 of gaps": law.quantile(0.5),
            "P90 of gaps": law.quantile(0.9),
            "P99 of gaps": law.quantile(0.99),
            "mean TTFT": law.ttft_ahead,
        }
        rows += [
            {"ranks": f"{many}", "load": f"{load:.0%}", "every": every, "what": name, "ms": round(1e3 * value, 2)}
            for name, value in told.items()
        ]
    return pd.DataFrame(rows)


def groups(ax: Axes, B: int, t_w: float, ttft_1: float, clean: float, cadences: Sequence[int]) -> pd.DataFrame:
    """Draw the mean TTFT of a burst against the prompts that are let in together, and the best of them."""
    sizes = np.arange(1, B + 1)
    tables = []
    for every, colour in zip(cadences, COLOURS, strict=False):
        asked = {"B": B, "every": every, "t_w": t_w, "ttft_1": ttft_1, "clean": clean}
        mean = theory.ttft_burst_cadence(together=sizes, **asked)
        best = theory.burst_groups(**asked)
        ax.plot(sizes, mean, color=colour, label=f"N = {every}")
        ax.plot([best], [theory.ttft_burst_cadence(together=best, **asked)], "o", color=colour)
        tables.append(pd.DataFrame({"every": every, "together": sizes, "ttft": mean}))
    ax.set(xlabel="prompts that a step lets in", ylabel="mean time to first token (s)", ylim=(0, None))
    ax.legend()
    return pd.concat(tables, ignore_index=True)
