"""Predictions against measurements: parity with intervals, errors by load, what a decode adds; plans with intervals.

Drawn on given axes; every function returns the numbers it drew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from inference_math.unit import Unit
from inference_math_book.colours import COLOURS

__all__ = ["compared", "errors_by_load", "implied_share", "intervals"]


def compared(ax: Axes, frame: pd.DataFrame, by: str, unit: str = "s") -> pd.DataFrame:
    """Draw predicted against measured seconds with their intervals, a colour for each value of the column `by`."""
    scale = 1e3 if unit == "ms" else 1.0
    for value, colour, mark in zip(frame[by].unique(), COLOURS, "os^Dvxs+", strict=False):
        rows = frame[frame[by] == value]
        numbers = scale * rows[["measured", "predicted", "low", "high"]]
        spans = np.clip([numbers.predicted - numbers.low, numbers.high - numbers.predicted], 0, None)
        ax.errorbar(
            numbers.measured,
            numbers.predicted,
            spans,
            fmt=mark,
            color=colour,
            markersize=4,
            elinewidth=0.8,
            label=str(value),
        )
    ends = scale * np.array([frame.measured.min(), frame.measured.max()])
    ax.loglog(ends, ends, color="black", linewidth=0.9)
    ax.set(xlabel=f"measured ({unit})", ylabel=f"predicted ({unit})")
    ax.legend(fontsize=9)
    return frame


def errors_by_load(axes: Sequence[Axes], frame: pd.DataFrame) -> pd.DataFrame:
    """Draw the relative error against the users, one panel for each precision, a line for each pair of lengths."""
    frame = frame.assign(error=frame.predicted / frame.measured - 1)
    for ax, precision in zip(axes, sorted(frame.precision.unique()), strict=True):
        rows = frame[frame.precision == precision]
        for (lengths, part), colour in zip(rows.groupby(["n_in", "n_out"]), COLOURS, strict=False):
            label = "{:,} / {:,}".format(*lengths)
            ax.plot(part.users, 100 * part.error, "o-", color=colour, markersize=4, linewidth=1.4, label=label)
        ax.axhline(0, color="black", linewidth=0.8)
        ax.set(xscale="log", xlabel="users", title=precision.upper())
    axes[0].set(ylabel="predicted over measured − 1 (%)")
    axes[0].legend(fontsize=9, title="prompt / output")
    return frame


def implied_share(axes: tuple[Axes, Axes], frame: pd.DataFrame, units: Mapping[tuple[str, int], Unit]) -> pd.DataFrame:
    """Draw what one more decode adds beyond its KV read: over its own compute T beside the root's z, and what is left.

    `frame` has model, tp, batch, context, measured and predicted steps (s); `units` are its units by model and TP, of
    kernels alone.
    """
    tables = []
    for ((model, tp), rows), colour in zip(frame.sort_values("batch").groupby(["model", "tp"]), COLOURS, strict=False):
        unit = units[str(model), int(str(tp))]
        batch, context = rows.batch.to_numpy(), rows.context.to_numpy()
        alone, read = unit.step_time(1, context), (unit.step_time(2, context) - unit.step_time(2, 0)) / 2
        T = (unit.step_time(4096, 0) - unit.step_time(2048, 0)) / 2048  # of steps that compute binds
        implied = (rows.measured - alone - (batch - 1) * read) / ((batch - 1) * T)
        root = np.array([np.mean(unit.decode_share(np.arange(1, max(b, 2)))) for b in batch])
        left = 1e6 * (rows.measured - rows.predicted) / batch
        axes[0].plot(batch, implied, "o", color=colour, markersize=4, label=f"{model}, TP {tp}")
        axes[0].plot(batch, root, "-", color=colour, linewidth=1.2)
        axes[1].plot(batch, left, "o", color=colour, markersize=4)
        tables.append(rows[["model", "tp", "batch"]].assign(implied=implied, root=root, left_us=left))
    axes[0].axhline(1, color="black", linewidth=0.8, linestyle=":")
    axes[0].set(xscale="log", xlabel="batch", ylabel="added per decode, over T", ylim=(0, None))
    axes[1].set(xscale="log", xlabel="batch", ylabel="left per decode (µs)", ylim=(0, None))
    axes[0].legend(fontsize=8)
    return pd.concat(tables, ignore_index=True)


def intervals(ax: Axes, frame: pd.DataFrame, x: str, y: str, by: str) -> pd.DataFrame:
    """Draw curves of the columns `x` and `y`; columns of these names with _low and _high, if there, become bars."""
    for value, colour, mark in zip(frame[by].unique(), COLOURS, "os^Dv", strict=False):
        rows = frame[frame[by] == value]
        spread = {}
        for name in (x, y):
            if f"{name}_low" in rows:
                below, above = rows[name] - rows[f"{name}_low"], rows[f"{name}_high"] - rows[name]
                spread[f"{'x' if name == x else 'y'}err"] = np.clip([below, above], 0, None)
        ax.errorbar(rows[x], rows[y], fmt=f"{mark}-", color=colour, markersize=4, elinewidth=0.7, label=value, **spread)
    ax.legend(fontsize=9)
    return frame
