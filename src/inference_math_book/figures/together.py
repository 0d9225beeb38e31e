"""Everything together: the best architecture as a map, drawn on given axes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap

from inference_math.optimiser.architectures import ARCHITECTURES, compare
from inference_math.unit.costs import WorkloadCosts
from inference_math.workload import SLA
from inference_math_book.colours import GREY, ROLES

__all__ = ["best_of", "decided", "decision_map"]


def best_of(frame: pd.DataFrame) -> tuple[str, float]:
    """Return the best architecture in what `architectures.compare` gives, and its margin over the next.

    "none fits" and 0 where no architecture meets the limits; the margin is infinite where only one does.
    """
    ranked = frame.sort_values("rate", ascending=False)
    first, second = (float(rate) for rate in ranked.rate.iloc[:2])
    if not first:
        return "none fits", 0.0
    return str(ranked.architecture.iloc[0]), first / second - 1 if second else float("inf")


def decided(of: WorkloadCosts, sla: SLA, close: float = 0.0) -> dict[str, Any]:
    """Return the best architecture, the leader and its margin over the next.

    The best is "too close to call" unless the same one leads by `close` at least however much steps err: as they are,
    and all of them that much shorter and longer. The leader is the first of the steps as they are all the same.
    """
    # Steps that take so many times as long under a limit are those as they are under a tighter one.
    found = [
        best_of(compare(of, sla.tpot / slow, sla.ttft / slow, quantile=sla.quantile))
        for slow in ((1.0, 1 / (1 + close), 1 + close) if close else (1.0,))
    ]
    leader, margin = found[0]
    clear = all(first == leader and lead >= close for first, lead in found)
    best = leader if clear or leader not in ARCHITECTURES else "too close to call"
    return {"best": best, "leader": leader, "margin": margin}


def decision_map(ax: Axes, frame: pd.DataFrame) -> None:
    """Draw the best architecture over prompt and output length: its colour, and its lead in per cent as a number.

    `frame` has what `decided` gives, by n_in and n_out.
    """
    n_in, n_out = frame["n_in"].unique(), frame["n_out"].unique()
    names = ["none fits", "too close to call", *ARCHITECTURES]
    colours = ["none", f"{GREY}4D", *(ROLES[each] for each in ARCHITECTURES)]  # grey for a third
    grid = frame.best.map(names.index).to_numpy().reshape(len(n_in), len(n_out))
    ax.pcolormesh(range(len(n_in)), range(len(n_out)), grid.T, cmap=ListedColormap(colours), vmin=-0.5, vmax=4.5)
    for i, row in enumerate(frame.to_dict("records")):
        ink = "white" if row["best"] in ARCHITECTURES else "black"
        text = "" if row["best"] == "none fits" else "only" if np.isinf(row["margin"]) else f"{100 * row['margin']:.0f}"
        ax.text(i // len(n_out), i % len(n_out), text, ha="center", va="center", fontsize=8, color=ink)
    for name, colour in zip(names, colours, strict=True):
        if (frame.best == name).any():
            ax.plot([], [], "s", color=colour, markeredgecolor=GREY, markersize=10, label=name)
    ax.set_xticks(range(len(n_in)), [f"{n:,}" for n in n_in], rotation=45)
    ax.set_yticks(range(len(n_out)), [f"{n:,}" for n in n_out])
    ax.set(xlabel="prompt (tokens)", ylabel="answer (tokens)")
    ax.grid(visible=False)
