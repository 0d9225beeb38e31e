"""The output length at which ΔP and ΔH weigh the same, by model and GPU, drawn on given axes.

Every function that draws returns the numbers it drew.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from inference_math import catalogue, theory

__all__ = ["break_even_map"]


def break_even_map(ax: Axes, precision: str = "bf16") -> pd.DataFrame:
    """Draw N_out* for models (rows) and GPUs (columns), dark where even long answers are prefill's."""
    rows = [
        (
            model.name,
            gpu.name,
            theory.break_even_output(n_params=model.n_params, kv_token=model.kv_token(precision), **rates),
        )
        for gpu in catalogue.GPUS.values()
        if precision == "bf16" or gpu.fp8_flops
        for rates in [{"hbm_bw": gpu.hbm_bw, "flops": gpu.flops(precision)}]
        for model in catalogue.MODELS.values()
    ]
    frame = pd.DataFrame(rows, columns=["model", "gpu", "tokens"])
    grid = frame.pivot_table(index="model", columns="gpu", values="tokens", sort=False)
    grid = grid.loc[grid.mean(axis=1).sort_values().index, grid.mean().sort_values().index]
    image = np.log10(grid.to_numpy())
    ax.imshow(image, aspect="auto", cmap="cividis", vmin=1.5, vmax=4)
    for (row, column), value in np.ndenumerate(grid.to_numpy()):
        colour = "white" if np.log10(value) < 2.9 else "black"
        ax.text(column, row, f"{value:,.0f}", ha="center", va="center", color=colour, fontsize=9)
    ax.set_xticks(range(len(grid.columns)), list(grid.columns))
    ax.set_yticks(range(len(grid.index)), list(grid.index))
    ax.xaxis.tick_top()
    ax.grid(visible=False)
    ax.spines[:].set_visible(False)
    return grid.reset_index()
