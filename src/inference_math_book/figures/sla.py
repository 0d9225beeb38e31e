"""Batches under limits, drawn on given axes.

Every function that draws returns the numbers it drew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap

from inference_math import theory
from inference_math.unit.costs import WorkloadCosts
from inference_math_book.colours import COLOURS, GREY
from inference_math_planner.laws import latency

__all__ = ["batch_by_limit", "binding_map"]


def batch_by_limit(ax: Axes, numbers: WorkloadCosts, limits: Sequence[float]) -> pd.DataFrame:
    """Draw the largest batch against the limit on the gap, kept by the mean, by P90 and by P99 of all gaps."""
    law, batches = numbers.law, np.arange(1, 2)
    while latency.gap_quantile(0.5, batches[-1], numbers.n_out, **law) <= max(limits):
        batches = np.arange(1, 2 * len(batches) + 1)
    means = [int(theory.max_batch(sla_tpot=limit, **law)) for limit in limits]
    frame = pd.DataFrame({"sla_tpot": limits, "mean": means})
    for q in (0.5, 0.9, 0.99):
        gaps = latency.gap_quantile(q, batches, numbers.n_out, **law)  # never shorter for more requests
        frame[f"P{100 * q:g}"] = np.searchsorted(gaps, limits, side="right")
    for (name, dash), colour in zip({"P50": ":", "mean": "-", "P90": "--", "P99": "-."}.items(), COLOURS, strict=False):
        shown = frame[frame[name] > 0]
        ax.plot(1e3 * shown.sla_tpot, shown[name], dash, drawstyle="steps-post", color=colour, label=name)
    ax.set(xlabel="limit on the time per token (ms)", ylabel="largest batch (requests)", yscale="log")
    ax.legend()
    return frame


def binding_map(ax: Axes, numbers: WorkloadCosts, sla_tpot: Sequence[float], sla_ttft: Sequence[float]) -> pd.DataFrame:
    """Draw which limit binds over the plane of both limits: regions by colour, borders by their closed forms."""
    names = ["none fits", "TPOT", "TTFT", "memory"]
    tpots, ttfts = (axis.ravel() for axis in np.meshgrid(sla_tpot, sla_ttft))
    frame = numbers.batch_limits(tpots, ttfts).assign(sla_tpot=tpots, sla_ttft=ttfts)
    grid = frame.binding.map(names.index).to_numpy().reshape(len(sla_ttft), len(sla_tpot))
    x, y = 1e3 * np.asarray(sla_tpot), 1e3 * np.asarray(sla_ttft)
    colours = ["none", COLOURS[5], COLOURS[4], COLOURS[3]]
    edges: Any = [end for axis in (x, y) for end in axis[[0, -1]] + (axis[1] - axis[0]) * np.array([-0.5, 0.5])]
    look: dict[str, Any] = {"cmap": ListedColormap(colours), "vmin": -0.5, "vmax": 3.5, "interpolation": "none"}
    # One picture: as a mesh each cell would be a path.
    ax.imshow(grid, origin="lower", aspect="auto", extent=edges, **look)
    matching = theory.sla_ttft_matching(sla_tpot=np.asarray(sla_tpot), ttft_1=numbers.ttft_1, delta_h=numbers.delta_h)
    ax.plot(x, 1e3 * matching, color="black", linewidth=1.2)
    full = float(numbers.places)
    corner = 1e3 * numbers.tpot(full), 1e3 * numbers.ttft(full)
    ax.plot([corner[0], corner[0], x[-1]], [y[-1], corner[1], corner[1]], color="black", linewidth=1.2, linestyle="--")
    for name, colour in zip(names, colours, strict=True):
        ax.plot([], [], "s", color=colour, markeredgecolor=GREY, markersize=10, label=name)
    ax.set(xlabel="limit on TPOT (ms)", ylabel="limit on TTFT (ms)", xlim=(x[0], x[-1]), ylim=(y[0], y[-1]))
    ax.locator_params(axis="x", nbins=4)
    ax.grid(visible=False)
    return frame[["sla_tpot", "sla_ttft", "batch", "binding"]]
