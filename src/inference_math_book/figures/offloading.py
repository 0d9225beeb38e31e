"""KV-cache offloading: reuse by capacity, tiers as a plane (P16), what faster loading saves, measured loads.

Drawn on given axes; every function returns the numbers it drew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.axes import Axes

from inference_math import evidence
from inference_math_book.explore.live import COLOURS
from inference_math_book.figures.style import label_line

__all__ = ["load_or_compute", "reuse_by_capacity", "saved_by_acceleration", "shares_of_requests", "tier_plane"]

_DASHES = ("-", "--", "-.", ":")


def reuse_by_capacity(ax: Axes, traces: Sequence[str], tiers: Mapping[str, float]) -> pd.DataFrame:
    """Draw the share of prompt tokens found against the cache's capacity in tokens, a rule for each of `tiers`."""
    frame = evidence.load("traces_reuse").frame
    frame = frame[frame.trace.isin(traces)]
    for trace, colour, dash in zip(traces, COLOURS, _DASHES, strict=False):
        rows = frame[frame.trace == trace]
        ax.semilogx(rows.capacity_tokens, rows.token_share, dash, color=colour, label=trace)
    for name, capacity in tiers.items():
        ax.axvline(capacity, color="black", linewidth=0.9, linestyle=":")
        ax.annotate(
            name, (capacity, 0.02), xycoords=("data", "axes fraction"), rotation=90, ha="right", va="bottom", fontsize=9
        )
    ax.set(xlabel="capacity (tokens)", ylabel="share of prompt tokens found", ylim=(0, None))
    ax.legend(loc="center left")
    return frame[["trace", "capacity_tokens", "token_share"]]


def shares_of_requests(ax: Axes, traces: Sequence[str]) -> pd.DataFrame:
    """Draw the distribution of α over requests with an unlimited cache: share of requests with at most that α.

    Straight lines join the table's quantiles and its shares of requests above 0.5, 0.9 and 0.99.
    """
    frame = evidence.load("traces_alpha").frame.set_index("trace").loc[list(traces)]
    quantiles = [name for name in frame.columns if name.startswith("p") and name[1:].isdigit()]
    above = [name for name in frame.columns if name.startswith("share_")]
    tables = []
    for trace, colour, dash in zip(traces, COLOURS, _DASHES, strict=False):
        points = [(float(frame[name][trace]), float(name[1:])) for name in quantiles]
        points += [(float(name.removeprefix("share_")), 100 * (1 - float(frame[name][trace]))) for name in above]
        rows = pd.DataFrame(sorted(points), columns=["alpha", "percent"])
        ax.plot(rows.alpha, rows.percent, dash, marker=".", color=colour, label=trace)
        tables.append(rows.assign(trace=trace))
    ax.set(xlabel="reusable share α of a prompt (no unit)", ylabel="requests with at most that (%)", xlim=(0, 1.01))
    ax.legend()
    return pd.concat(tables, ignore_index=True)


def tier_plane(ax: Axes, tiers: pd.DataFrame) -> pd.DataFrame:
    """Draw P16: `capacity` (byte) against `read_bw` (byte/s) of each row, labelled with its `label`."""
    for row, colour in zip(tiers.to_dict("records"), COLOURS, strict=False):
        capacity, bandwidth = row["capacity"] / 1e12, row["read_bw"] / 1e9
        ax.loglog(capacity, bandwidth, "o", color=colour, markersize=9)
        label_line(ax, 1.06 * capacity, bandwidth, row["label"], "black")
    ax.set(xlabel="capacity of a node (TB)", ylabel="read bandwidth of a GPU (GB/s)", xlim=(0.1, 8000), ylim=(6, 9000))
    return tiers


def saved_by_acceleration(ax: Axes, trace: str, tiers: Mapping[str, float]) -> pd.DataFrame:
    """Draw the share of prefill time saved against e, all found tokens loaded or the best mix; a rule for each tier."""
    frame = evidence.load("traces_saving").frame.query("trace == @trace")
    limit = float(frame.saved_mixed.max())
    shown = frame[frame.e < 1000]
    for name, label, colour, dash in (
        ("saved_mixed", "load what pays", COLOURS[0], "-"),
        ("saved_load_all", "load all", COLOURS[1], "--"),
    ):
        ax.semilogx(shown.e, shown[name], dash, marker=".", color=colour, label=label)
    ax.axhline(limit, color="black", linewidth=0.9)
    for name, e in tiers.items():
        ax.axvline(e, color="black", linewidth=0.9, linestyle=":")
        ax.annotate(
            name, (e, 0.04), xycoords=("data", "axes fraction"), rotation=90, ha="right", va="bottom", fontsize=9
        )
    ax.set(xlabel="token acceleration e (no unit)", ylabel="share of prefill time saved", ylim=(-0.1, 1.15 * limit))
    ax.legend(loc="center right")
    return frame


def load_or_compute(ax: Axes) -> pd.DataFrame:
    """Draw vLLM's measured times to load and to compute a prompt's KV cache, and their ratio e as numbers."""
    frame = evidence.load("vllm_kv_offload").frame
    ax.plot(frame.prompt_tokens, frame.compute_ms, "o-", color=COLOURS[0], label="compute")
    ax.plot(frame.prompt_tokens, frame.load_ms, "s--", color=COLOURS[1], label="load from host memory")
    ax.set(xlabel="prompt (tokens)", ylabel="time (ms)", yscale="log")
    ax.legend()
    return frame.assign(e=frame.compute_ms / frame.load_ms)
