"""Disaggregation: its gain as a map, rates by limit, DistServe's curves (P13), steps and phases (P18).

Drawn on given axes; every function returns the numbers it drew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from inference_math import simulate, theory
from inference_math.optimiser import architectures
from inference_math.unit.costs import WorkloadCosts
from inference_math.unit.operators import Operators
from inference_math.workload import Workload
from inference_math_book.explore.live import COLOURS
from inference_math_book.figures.style import label_line

__all__ = ["gain_map", "goodput", "limit_reached", "mixed_steps", "phase_rates", "rates_by_limit"]

_DASHES = ("-", "--", "-.", ":")


def gain_map(ax: Axes, points: Mapping[str, tuple[float, float]], n_out: float) -> pd.DataFrame:
    """Draw contours of the PDD gain on the same hardware over ρ = ΔP/ΔH and u = 1 − t_w/S, and named points (ρ, u).

    For answers of `n_out` tokens and ΔH = S/400, one prompt at a time.
    """
    rho, u = np.geomspace(0.1, 1000, 81), np.linspace(0.2, 1, 41)
    grid_rho, grid_u = np.meshgrid(rho, u)
    gain = theory.pdd_gain_same(delta_p=grid_rho / 400, delta_h=1 / 400, t_w=1 - grid_u, sla_tpot=1, n_out=n_out)
    lines = ax.contour(rho, u, gain, levels=[0.8, 0.9, 1, 1.25, 1.5, 2, 3], colors=COLOURS[0], linewidths=1.2)
    ax.clabel(lines, fmt="%g", fontsize=9)
    for i, (name, (x, y)) in enumerate(points.items()):
        ax.plot(x, y, "o", color=COLOURS[1], markersize=6)
        label_line(ax, x, y, name, COLOURS[1], up=8.0 * (-1) ** i)  # neighbours' names do not meet
    ax.set(xscale="log", xlabel="ρ = ΔP/ΔH (no unit)", ylabel="u = 1 − t_w/S (no unit)", ylim=(0.2, 1))
    return pd.DataFrame({"rho": grid_rho.ravel(), "u": grid_u.ravel(), "gain": gain.ravel()})


def rates_by_limit(
    ax: Axes, numbers: WorkloadCosts, limits: Sequence[float], sla_ttft: float, quantile: float
) -> pd.DataFrame:
    """Draw requests/s per unit against the limit on the gap: each architecture, aggregated also by the quantile."""
    rows = []
    for limit in limits:
        mean = architectures.compare(numbers, limit, sla_ttft).set_index("architecture").rate
        tail = architectures.compare(numbers, limit, sla_ttft, quantile=quantile).set_index("architecture").rate
        name = f"aggregated, P{100 * quantile:g}"
        rows.append(
            {"limit": limit, "aggregated, mean": mean["aggregated"], name: tail["aggregated"]}
            | {each: mean[each] for each in ("chunked", "disaggregated")}
        )
    frame = pd.DataFrame(rows)
    for name, colour, dash in zip(frame.columns[1:], COLOURS, ("--", ":", "-", "-."), strict=False):
        ax.plot(1e3 * frame.limit, frame[name], dash, color=colour, label=name)
    ax.set(xlabel="limit on the time between tokens (ms)", ylabel="requests/s of one unit", ylim=(0, None))
    ax.legend()
    return frame


def goodput(
    cost: Any, rates: Sequence[float], prompt: int, answer: int, kv_capacity: float, requests: int = 3000
) -> pd.DataFrame:
    """Simulate P13: P90 of TTFT and of TPOT against requests/s per GPU, for each way to use GPUs.

    "colocated" does everything on one GPU; "prefill only" and "decode only" do one phase each, the other costing
    nothing; "2 prefill + 1 decode" is three GPUs.
    """

    def decode_only(decodes: int, context: int, prefills: float, tokens: int, pairs: float) -> float:
        return float(cost(decodes, context)) if decodes else 1e-9

    whole, first = Workload(prompt, answer), Workload(prompt, 1)
    one = simulate.Disaggregated(1, 1, kv_capacity=kv_capacity)
    systems: dict[str, tuple[Any, Workload, Any, int]] = {
        "colocated": (cost, whole, simulate.Aggregated(kv_capacity=kv_capacity), 1),
        "prefill only": (cost, first, one, 1),
        "decode only": (decode_only, whole, one, 1),
        "2 prefill + 1 decode": (cost, whole, simulate.Disaggregated(2, 1, kv_capacity=kv_capacity), 3),
    }
    rows = []
    for name, (price, work, scheduler, gpus) in systems.items():
        for rate in rates:
            run = simulate.open_loop(
                work, price, rate=gpus * rate, requests=requests, warmup=200, scheduler=scheduler, seed=1
            )
            p90 = run.requests[["ttft", "tpot"]].quantile(0.9)
            rows.append({"serves": name, "rate": rate, "ttft_p90": p90.ttft, "tpot_p90": p90.tpot})
    frame = pd.DataFrame(rows)
    frame.loc[frame.serves == "prefill only", "tpot_p90"] = np.nan
    frame.loc[frame.serves == "decode only", "ttft_p90"] = np.nan
    return frame


def limit_reached(frame: pd.DataFrame, serves: str, **limits: float) -> float:
    """Return the rate, between those simulated, up to which `serves` meets all of ``ttft_p90=…, tpot_p90=…``.

    0 where the lowest rate misses a limit, NaN where the highest meets all.
    """
    rows = frame[frame.serves == serves]
    reached = [
        np.interp(limit, np.maximum.accumulate(rows[name]), rows.rate, left=0, right=np.inf)
        for name, limit in limits.items()
    ]
    return float(min(reached)) if np.isfinite(min(reached)) else float("nan")


def mixed_steps(ax: Axes, operators: Operators, context: int, prompts: Sequence[int]) -> pd.DataFrame:
    """Draw P18, left: a decode step against its batch, alone and with one prompt, from measured operators.

    The matrices of prompt and decodes are one product, as long as the prompt's; the attentions add.
    """
    steps = operators.steps().query("context == @context").sort_values("batch")
    prefills = operators.prefills().set_index("n_in").total
    frame = pd.DataFrame({"batch": steps.batch, "alone": steps.total})
    for n in prompts:
        frame[f"with {n:,} tokens"] = prefills[n] + steps.attention.to_numpy()
    for name, colour, dash in zip(frame.columns[1:], COLOURS, _DASHES, strict=False):
        ax.plot(frame.batch, 1e3 * frame[name], dash, marker=".", color=colour)
        ax.annotate(name, (1, 1e3 * frame[name].iloc[0]), xytext=(0, 5), textcoords="offset points", color=colour)
    ax.set(xlabel="decodes in the step (requests)", ylabel="time of a step (ms)", xscale="log", ylim=(0, None))
    return frame


def phase_rates(ax: Axes, operators: Operators, contexts: Sequence[int]) -> pd.DataFrame:
    """Draw P18, right: tokens/s of each phase against what runs at once, prompt tokens or decodes."""
    prefills = operators.prefills()
    tables = [pd.DataFrame({"phase": "prefill", "at once": prefills.n_in, "rate": prefills.n_in / prefills.total})]
    for context in contexts:
        steps = operators.steps().query("context == @context").sort_values("batch")
        name = f"decode at {context:,}"
        tables.append(pd.DataFrame({"phase": name, "at once": steps.batch, "rate": steps.batch / steps.total}))
    frame = pd.concat(tables, ignore_index=True)
    for phase, colour, dash in zip(frame.phase.unique(), COLOURS, _DASHES, strict=False):
        rows = frame[frame.phase == phase]
        ax.loglog(rows["at once"], rows.rate, dash, marker=".", color=colour, label=phase)
    ax.set(xlabel="tokens computed at once", ylabel="tokens/s")
    ax.legend()
    return frame
