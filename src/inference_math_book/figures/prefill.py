"""The talk's plots of prefill acceleration (P04, P05, P20), each drawn on given axes.

Every function returns the numbers it drew.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from inference_math import theory
from inference_math.evidence.checks import ANY_POSITIVE, SHARE, as_numbers, as_whole
from inference_math_book.colours import COLOURS, GREY
from inference_math_book.figures.style import label_line

__all__ = ["draw_timeline", "layer_schedule", "speedup_by_acceleration", "ttft_lines", "whole_against_layerwise"]

_ALPHA = np.linspace(0, 1, 401)


def speedup_by_acceleration(ax: Axes, accelerations: Sequence[float] = (1, 3, 9, 30)) -> pd.DataFrame:
    """Draw P04: speedup against the stored share for several e, a dot at each crossover."""
    rows = []
    for e, colour in zip(accelerations, COLOURS, strict=False):
        x = theory.speedup_layerwise(alpha=_ALPHA, e=e)
        ax.semilogy(_ALPHA, x, color=colour)
        ax.plot(theory.crossover(e=e), 1 + e, "o", color=colour)
        label_line(ax, 1.0, x[-1], f"e = {e:g}", colour)
        rows.append(pd.DataFrame({"alpha": _ALPHA, "e": e, "x": x}))
    ax.set(xlabel="stored share of the prompt, α (no unit)", ylabel="prefill speedup, x (no unit)", xlim=(0, 1))
    return pd.concat(rows, ignore_index=True)


def ttft_lines(ax: Axes, e: float = 9) -> pd.DataFrame:
    """Draw P04's second half: load and compute time, in units of the full prefill, cross at the crossover."""
    frame = pd.DataFrame({"alpha": _ALPHA, "load": _ALPHA / e, "compute": 1 - _ALPHA})
    frame["ttft"] = 1 / theory.speedup_layerwise(alpha=_ALPHA, e=e)
    ax.plot(frame.alpha, frame.ttft, color=GREY, alpha=0.4, linewidth=7, label="TTFT (the larger)")
    ax.plot(frame.alpha, frame.compute, color=COLOURS[0], label="compute, 1 − α")
    ax.plot(frame.alpha, frame.load, color=COLOURS[1], linestyle="--", label="load, α/e")
    ax.axvline(theory.crossover(e=e), color="black", linewidth=1, linestyle=":")
    ax.set(xlabel="stored share of the prompt, α (no unit)", ylabel="time / time of the full prefill", xlim=(0, 1))
    ax.legend()
    return frame


def whole_against_layerwise(ax: Axes, accelerations: Sequence[float] = (1, 3, 9)) -> pd.DataFrame:
    """Draw P05: load everything first (dashed) against layer by layer (solid), for several e."""
    rows = []
    for e, colour in zip(accelerations, COLOURS, strict=False):
        layerwise = theory.speedup_layerwise(alpha=_ALPHA, e=e)
        whole = theory.speedup_whole(alpha=_ALPHA, e=e)
        ax.plot(_ALPHA, layerwise, color=colour)
        ax.plot(_ALPHA, whole, color=colour, linestyle="--")
        peak = theory.crossover(e=e)
        ax.vlines(peak, theory.speedup_whole(alpha=peak, e=e), 1 + e, color=colour, linestyle=":", linewidth=1.2)
        label_line(ax, 1.0, layerwise[-1], f"e = {e:g}", colour)
        rows.append(pd.DataFrame({"alpha": _ALPHA, "e": e, "layer_by_layer": layerwise, "whole": whole}))
    ax.plot([], [], color="black", label="layer by layer")
    ax.plot([], [], color="black", linestyle="--", label="everything first")
    ax.set(xlabel="stored share of the prompt, α (no unit)", ylabel="prefill speedup, x (no unit)", xlim=(0, 1))
    ax.legend()
    return pd.concat(rows, ignore_index=True)


def layer_schedule(alpha: float, e: float, n_layers: int) -> pd.DataFrame:
    """Run the layer pipeline (P20): one row per layer with the start and end of its load and compute.

    Loads follow each other without a gap; a layer's compute waits for its own load and for the layer
    before. Times are in units of the full prompt's prefill. Simulated step by step, without the
    closed form of `theory.speedup_pipelined`, so that one checks the other.
    """
    stored = float(as_numbers("alpha", alpha, SHARE))
    load = stored / float(as_numbers("e", e, ANY_POSITIVE)) / as_whole("n_layers", n_layers)
    compute = (1 - stored) / n_layers
    rows = []
    loaded = computed = 0.0
    for layer in range(1, n_layers + 1):
        load_start, loaded = loaded, loaded + load
        compute_start = max(loaded, computed)
        computed = compute_start + compute
        rows.append((layer, load_start, loaded, compute_start, computed))
    return pd.DataFrame(rows, columns=["layer", "load_start", "load_end", "compute_start", "compute_end"])


def draw_timeline(ax: Axes, schedule: pd.DataFrame) -> None:
    """Draw a schedule of `layer_schedule` as two lanes of bars, one number per layer."""
    lanes = (("load", 1, COLOURS[1]), ("compute", 0, COLOURS[0]))
    for kind, lane, colour in lanes:
        for row in schedule.itertuples():
            start, end = getattr(row, f"{kind}_start"), getattr(row, f"{kind}_end")
            ax.barh(lane, end - start, left=start, height=0.6, color=colour, edgecolor="white")
            ax.text((start + end) / 2, lane, str(row.layer), ha="center", va="center", color="white", fontsize=8)
    ax.set_yticks([0, 1], ["compute", "load"])
    ax.set(xlabel="time / time of the full prefill")
    ax.grid(axis="y", visible=False)
