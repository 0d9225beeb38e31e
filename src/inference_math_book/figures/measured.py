"""Measured H100 operators: the attention of decodes drawn, and what the datasheet says of both quantities."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes

from inference_math import theory
from inference_math.catalogue import gpu
from inference_math.unit.operators import H100, H100_L2_BYTES, Operators
from inference_math_book.colours import COLOURS

__all__ = ["attention_floor", "datasheet_deltas"]


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


def attention_floor(ax: Axes, operators: Operators, long: int = 1024) -> pd.DataFrame:
    """Draw the attention time of one layer against the KV bytes that it reads: floor, L2, HBM. Return what was drawn.

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
