"""Chunked prefill: the lines of a mixed step (P10) and the gain by chunk (P11), drawn on given axes.

Every function returns the numbers it drew.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from inference_math import theory
from inference_math_book.explore.live import COLOURS
from inference_math_book.figures.style import label_line

__all__ = ["offbalance_tents", "step_lines"]


def step_lines(ax: Axes, t_w: float, delta_p: float, delta_h: float, most: int) -> pd.DataFrame:
    """Draw P10: compute and memory time of a step with b decodes and their prefills, their sum and their maximum."""
    b = np.linspace(0, most, 200)
    frame = pd.DataFrame({"b": b, "compute": b * delta_p, "memory": t_w + b * delta_h})
    frame["serial KV"] = np.maximum(t_w, frame.compute) + b * delta_h
    frame["sum"] = frame.compute + frame.memory
    frame["maximum"] = np.maximum(frame.compute, frame.memory)
    looks = {"sum": (0, "-"), "serial KV": (1, "--"), "maximum": (2, "-"), "compute": (3, ":"), "memory": (4, ":")}
    for name, (colour, dash) in looks.items():
        ax.plot(b, 1e3 * frame[name], dash, color=COLOURS[colour], label=name)
    ax.set(xlabel="decodes in the step, b (requests)", ylabel="time of a step (ms)", xlim=(0, most), ylim=(0, None))
    ax.legend()
    return frame


_WIDEST = 100  # prompt tokens per output token that are shown


def offbalance_tents(
    ax: Axes, chunks: Sequence[int], b: float, T: float, t_w: float, delta_h: float, overlap: str
) -> pd.DataFrame:
    """Draw P11: gain of chunked over aggregated by P:D, one tent for each chunk; `overlap` "full" or "serial-kv"."""
    formula = theory.chunked_gain_offbalance if overlap == "full" else theory.chunked_gain_offbalance_serial
    pd_ratio = np.union1d(np.linspace(0.5, _WIDEST, 150), [chunk / b for chunk in chunks if chunk / b <= _WIDEST])
    tables = []
    for chunk, colour in zip(chunks, COLOURS, strict=False):
        gain = formula(b=b, chunk=chunk, pd_ratio=pd_ratio, T=T, t_w=t_w, delta_h=delta_h)
        ax.plot(pd_ratio, gain, color=colour)
        peak = int(np.argmax(gain))
        label_line(ax, pd_ratio[peak], gain[peak], f"{chunk:,}", colour)
        tables.append(pd.DataFrame({"chunk": chunk, "pd_ratio": pd_ratio, "gain": gain}))
    ax.axhline(1, color="black", linewidth=0.8)
    ax.set(xlabel="prompt tokens per output token, P:D (no unit)", ylabel="gain over aggregated (no unit)")
    return pd.concat(tables, ignore_index=True)
