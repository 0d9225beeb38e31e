"""A GPU's own measurement: mixed steps and three models, loaded prefixes.

Drawn on given axes; every function returns the numbers it drew. Where a step or a load was not measured, its models
stand alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from inference_math import theory
from inference_math_book.colours import COLOURS
from inference_math_planner.calibrate.schedules import OVERLAPS

__all__ = ["mixed_steps", "prefix_loads"]

_SCHEDULES = {
    "measured": ("o", "measured"),
    "attention_beside": ("x", "attention beside attention"),
    "steps_beside": ("+", "step beside step"),
}
_NAMES = {"none": "none: all adds", "serial_kv": "serial KV", "full": "full overlap"}
_STYLES = {"none": "-", "serial_kv": "--", "full": ":"}  # as the live figures have them


def mixed_steps(axes: Sequence[Axes], steps: pd.DataFrame) -> pd.DataFrame:
    """Draw mixed steps against the tokens of their chunk, a panel for each batch: three models, and what was measured.

    `steps` are those of `calibrate.schedules.overlaps`; of chunks that see a prefix none is drawn.
    """
    shown = steps[steps["cached"] == 0]
    for ax, ((decodes, context), rows) in zip(axes, shown.groupby(["decodes", "context"]), strict=True):
        ordered = rows.sort_values("tokens")
        for name, colour in zip(OVERLAPS, COLOURS, strict=False):
            ax.plot(ordered["tokens"], 1e3 * ordered[name], _STYLES[name], color=colour, marker=".", label=_NAMES[name])
        for column, (marker, label) in _SCHEDULES.items():
            if ordered[column].notna().any():
                ax.plot(ordered["tokens"], 1e3 * ordered[column], marker, color="black", label=label)
        ax.set(xlabel="chunk (tokens)", ylim=(0, None))
        ax.set_title(f"{decodes} decodes at {context:,}", fontsize=10)
    axes[0].set_ylabel("mixed step (ms)")
    axes[-1].legend(fontsize=8, loc="lower right")
    return shown


def prefix_loads(ax: Axes, e: float, measured: pd.DataFrame) -> pd.DataFrame:
    """Draw speed-ups by loading a prefix against its share: formulas at `e`, and `calibrate.schedules.loads`."""
    alpha = np.linspace(0.3, 0.995, 140)
    frame = pd.DataFrame(
        {
            "alpha": alpha,
            "first, then compute": theory.speedup_whole(alpha=alpha, e=e),
            "layer by layer": theory.speedup_layerwise(alpha=alpha, e=e),
            "no more than pays": theory.speedup_mixed(alpha=alpha, e=e),
        }
    )
    for name, colour, dash in zip(frame.columns[1:], COLOURS, ("-.", "-", ":"), strict=False):
        ax.plot(alpha, frame[name], dash, color=colour, label=name)
    for column, marker, label in (
        ("parts_first", ":", "first, from its parts"),
        ("parts_layerwise", "--", "layer by layer, from its parts"),
        ("first", "s", "measured, first"),
        ("layerwise", "o", "measured, layer by layer"),
    ):
        if column in measured:
            ax.plot(measured["alpha"], measured[column], marker, color="black", linewidth=1.2, label=label)
    ax.set(xlabel="share of the prompt that is loaded, α (no unit)", ylabel="speed-up of the prefill (times)")
    ax.legend(fontsize=9)
    return frame
