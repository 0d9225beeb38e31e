"""What a decode adds to a step beyond its KV read, measured and predicted; drawn on given axes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from inference_math.unit import Unit
from inference_math_book.colours import COLOURS

__all__ = ["implied_share"]


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
    axes[0].set(xscale="log", xlabel="batch", ylabel="added per decode, over T")
    axes[1].set(xscale="log", xlabel="batch", ylabel="left per decode (µs)")
    axes[0].legend(fontsize=8)
    return pd.concat(tables, ignore_index=True)
