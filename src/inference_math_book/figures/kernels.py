"""Measured kernels against what the datasheet allows, and what each engine reaches.

Drawn on given axes; every function returns the numbers it drew.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import NDArray

from inference_math.evidence import load
from inference_math.unit.kernels import PROJECTIONS, kernels
from inference_math_book.colours import COLOURS

__all__ = ["BLOCKS", "KINDS", "blocks", "curve", "reached", "times"]

KINDS = ("matrix product", "attention, decode", "attention, prefill", "MLA, decode", "experts", "all-reduce")
# Attention with its projections, attention whose state does not grow, and what goes between GPUs.
BLOCKS = (
    *("latent block, decode", "sparse block, decode", "linear attention, decode"),
    *("linear attention, prefill", "dispatch", "all-gather"),
)
# Kinds whose reads and compute share the time in quadrature; of all others they add.
_SHARED = (*KINDS[:2], *KINDS[3:5], *BLOCKS[:2])
_ENGINES = {
    "vllm": (COLOURS[0], "o"),
    "sglang": (COLOURS[1], "s"),
    "trtllm": (COLOURS[2], "^"),
    "nccl": (COLOURS[3], "D"),
}


def curve(row: Mapping[Any, Any], kind: str, memory: object, compute: object) -> NDArray[np.float64]:
    """Return the seconds of a curve of table `operators` for seconds of bytes and of FLOPs at the datasheet's rates."""
    read = np.asarray(memory) / row["memory"]
    done = np.asarray(compute) / (row["compute"] if np.isfinite(row["compute"]) else 1.0)
    together = np.hypot(read, done) if kind in _SHARED else read + done
    return np.asarray(1e-6 * row["a0_us"] + together)


def times(axes: Mapping[str, Axes], gpu: str) -> pd.DataFrame:
    """Draw measured times of a GPU's kernels, by kind, against what the datasheet allows; and their curves.

    `axes` has one for each kind. Returns the points with `least`, `time` and `fitted` in seconds, and whether the curve
    counts.
    """
    points, known = load("operator_points").frame.query("gpu == @gpu"), load("operators").frame
    tables = []
    for kind, ax in axes.items():
        for (engine, precision, variant), own in points[points["kind"] == kind].groupby(
            ["engine", "precision", "variant"]
        ):
            key = {"kind": kind, "gpu": gpu, "engine": engine, "precision": precision, "variant": variant}
            row = known[(known[list(key)] == list(key.values())).all(axis=1)].iloc[0]
            least = np.maximum(own["memory"], own["compute"])
            fitted = curve(row.to_dict(), kind, own["memory"], own["compute"])
            colour, mark = _ENGINES[str(engine)]
            ax.loglog(1e6 * least, 1e6 * own["time"], mark, color=colour, markersize=5, label=str(engine))
            ax.loglog(1e6 * least, 1e6 * fitted, "-", color=colour, linewidth=1, alpha=0.8)
            tables.append(own.assign(least=least, fitted=fitted, counts=row["counts"]))
        ends, low = np.array(ax.get_xlim()), ax.get_ylim()[0]
        ax.plot(ends, ends, "k:", linewidth=1)
        ax.set(title=kind, xlabel="datasheet (µs)", ylabel="measured (µs)", xlim=ends, ylim=(low, None))
    handles = {text: line for ax in axes.values() for line, text in zip(*ax.get_legend_handles_labels(), strict=True)}
    next(iter(axes.values())).legend(handles.values(), handles.keys(), fontsize=8)
    return pd.concat(tables, ignore_index=True)


def blocks() -> pd.DataFrame:
    """Return by GPU and engine what blocks and exchanges reach, shares in per cent, times in µs; empty: nothing counts.

    `parts` is what a latent block's launches come to as those of its kernels, one by one.
    """
    columns = {
        "latent block (µs)": ("latent block, decode", "bf16", "all", "a0_us"),
        "sparse block (µs)": ("sparse block, decode", "bf16", "all", "a0_us"),
        "linear, decode: bandwidth": ("linear attention, decode", "bf16", "all", "memory"),
        "linear, prefill: compute": ("linear attention, prefill", "bf16", "all", "compute"),
        "quantisation: bandwidth": ("quantisation", "fp8", "all", "memory"),
        "dispatch (µs)": ("dispatch", "bf16", "deepep_ll", "a0_us"),
        "combine (µs)": ("combine", "bf16", "deepep_ll", "a0_us"),
    }
    table = _told(columns)
    known = kernels()
    parts = [
        1e6 * (PROJECTIONS * known.products[engine][gpu]["bf16"].launch + told["MLA, bf16"].launch)
        for gpu, engine in zip(table["gpu"], table["engine"], strict=True)
        for told in [known.attention[engine][gpu]]
    ]
    table.insert(3, "its parts (µs)", parts)
    return table


def reached() -> pd.DataFrame:
    """Return by GPU and engine what kernels reach: shares in per cent, launches in µs; empty where nothing counts."""
    columns = {
        "bandwidth, BF16": ("matrix product", "bf16", "all", "memory"),
        "compute, BF16": ("matrix product", "bf16", "all", "compute"),
        "compute, FP8": ("matrix product", "fp8", "all", "compute"),
        "compute, NVFP4": ("matrix product", "nvfp4", "all", "compute"),
        "decode attention": ("attention, decode", "bf16", "head 128", "memory"),
        "prefill attention": ("attention, prefill", "bf16", "head 128", "compute"),
        "experts, bandwidth": ("experts", "fp8_block", "balanced", "memory"),
        "experts, compute": ("experts", "fp8_block", "balanced", "compute"),
        "link": ("all-reduce", "bf16", "8 GPUs", "memory"),
        "a launch (µs)": ("matrix product", "bf16", "all", "a0_us"),
    }
    return _told(columns)


def _told(columns: Mapping[str, tuple[str, str, str, str]]) -> pd.DataFrame:
    """Return of curves that count, by GPU and engine, a column each of (kind, precision, variant, what it tells)."""
    frame = load("operators").frame.query("counts == 'yes'")
    found = {}
    for name, (*key, column) in columns.items():
        own = frame[(frame[["kind", "precision", "variant"]] == key).all(axis=1)]
        found[name] = own.set_index(["gpu", "engine"])[column] * (1 if column == "a0_us" else 100)
    return pd.DataFrame(found).rename_axis(["gpu", "engine"]).sort_index().reset_index()
