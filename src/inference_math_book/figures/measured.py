"""Plots of measured H100 operators (P06, P07), each drawn on given axes.

Every function returns the numbers it drew.
"""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes

from inference_math import theory
from inference_math.catalogue import gpu
from inference_math.unit.operators import H100, H100_L2_BYTES, Operators
from inference_math_book.explore.live import COLOURS

__all__ = ["attention_floor", "datasheet_deltas", "deltas", "tpot_overhead"]


def datasheet_deltas(operators: Operators, n_in: pd.Series[int], n_out: float) -> pd.DataFrame:
    """Return ΔP and the KV read in seconds at datasheet rates, for the prompt lengths `n_in`: the theory's lines.

    The KV read is the talks' ΔH; an engine's is more.
    """
    model, unit = operators.model, gpu(H100)
    per_token = theory.token_time_causal(**model.shape, n_in=n_in, flops=operators.tp * unit.flops(operators.weights))
    ttft = theory.ttft_vanilla(n_in=n_in, T=per_token)
    return pd.DataFrame(
        {
            "n_in": n_in,
            "delta_p": theory.delta_p(ttft_1=ttft, n_out=n_out),
            "cache_read": theory.delta_h(
                n_in=n_in, kv_token=model.kv_token(operators.kv), hbm_bw=operators.tp * unit.hbm_bw
            ),
        }
    )


def deltas(ax: Axes, operators: Operators, n_out: float) -> pd.DataFrame:
    """Draw P07: measured ΔP and KV read against prompt length (dots), and the same at datasheet rates (lines)."""
    prefills, reads = operators.prefills(), operators.kv_reads()
    measured_p = pd.DataFrame({"n_in": prefills.n_in, "delta_p": prefills.total / n_out})
    measured = measured_p.merge(
        reads.rename(columns={"context": "n_in"})[["n_in", "cache_read"]], on="n_in", how="outer"
    )
    measured = measured[measured.n_in.between(512, 16384)].reset_index(drop=True)
    limits = datasheet_deltas(operators, measured.n_in, n_out)
    for column, colour, marker, name in (
        ("delta_p", COLOURS[0], "o", "ΔP"),
        ("cache_read", COLOURS[1], "s", "KV read"),
    ):
        ax.loglog(measured.n_in, 1e3 * measured[column], marker, color=colour, label=f"{name}, measured operators")
        ax.loglog(limits.n_in, 1e3 * limits[column], "--", color=colour, label=f"{name}, datasheet rates")
    ax.set(xlabel="prompt length (token)", ylabel="added to every step (ms)")
    ax.legend()
    return measured.merge(limits, on="n_in", suffixes=("_measured", "_datasheet"))


def tpot_overhead(ax: Axes, operators: Operators, context: int) -> pd.DataFrame:
    """Draw P06: what a decode step gains over that of a request alone, against the batch, and the theory's line.

    Dots: decode steps added up from measured operators; hollow where the KV cache of a layer fits L2. Line:
    (B−1)·ΔH with the measured KV read as ΔH.
    """
    steps = operators.steps().query("context == @context").sort_values("batch").reset_index(drop=True)
    cache_read = operators.kv_reads().set_index("context").cache_read[context]
    frame = steps[["batch", "in_l2"]].copy()
    for kind in ("gemm", "attention", "allreduce"):
        frame[kind] = steps[kind] - steps[kind].iloc[0]
    frame["decode_only"] = steps.total - steps.total.iloc[0]
    frame["line"] = (steps.batch - 1) * cache_read
    for in_l2 in (False, True):
        part, fill = frame[frame.in_l2 == in_l2], "white" if in_l2 else COLOURS[1]
        label = None if in_l2 else "decodes, operators"
        ax.plot(part.batch, 1e3 * part.decode_only, "s", color=COLOURS[1], mfc=fill, label=label)
    ax.plot(frame.batch, 1e3 * frame.line, "--", color=COLOURS[1], label="(B − 1)·KV read")
    ax.set(xlabel="batch, B (requests)", ylabel="TPOT(B) − TPOT(1) (ms)")
    ax.legend()
    return frame


def attention_floor(ax: Axes, operators: Operators, long: int = 1024) -> pd.DataFrame:
    """Draw the attention time of one layer against the KV bytes that it reads: floor, L2, HBM.

    Dots for contexts of `long` tokens and more, crosses for shorter ones.
    """
    steps = operators.steps()
    frame = steps[["batch", "context", "kv_bytes"]].assign(seconds=steps.attention / operators.model.n_layers)
    for points, marker, colour, label in (
        (frame[frame.context >= long], "o", COLOURS[0], f"context ≥ {long:,}"),
        (frame[frame.context < long], "x", COLOURS[3], "shorter"),
    ):
        ax.loglog(points.kv_bytes / 1e6, points.seconds * 1e6, marker, color=colour, markersize=4, label=label)
    line = frame.kv_bytes.sort_values()
    ax.loglog(line / 1e6, line / gpu(H100).hbm_bw * 1e6, "--", color="black", label="bytes / datasheet bandwidth")
    ax.axvline(H100_L2_BYTES / 1e6, color=COLOURS[1], linestyle=":", label="L2 cache")
    ax.set(xlabel="KV cache read by one layer (MB)", ylabel="attention of one layer (µs)")
    ax.legend(loc="lower right", fontsize=9, frameon=True, framealpha=1, edgecolor="white")
    return frame
