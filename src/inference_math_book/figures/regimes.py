"""Where ΔP and ΔH weigh the same, by model, GPU, prompt and output, drawn on given axes.

Every function that draws returns the numbers it drew.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from inference_math import catalogue, theory
from inference_math_book.colours import COLOURS
from inference_math_book.figures.style import label_line

__all__ = ["break_even_map", "break_even_outputs", "regime_lines"]


def break_even_outputs() -> pd.DataFrame:
    """Return N_out* for every model and GPU: model, gpu, precision, tokens; FP8 where the GPU has it."""
    rows = [
        {
            "model": model.name,
            "gpu": unit.name,
            "precision": precision,
            "tokens": theory.break_even_output(
                n_params=model.n_params,
                kv_token=model.kv_token(precision),
                hbm_bw=unit.hbm_bw,
                flops=unit.flops(precision),
            ),
        }
        for model in catalogue.MODELS.values()
        for unit in catalogue.GPUS.values()
        for precision in (["bf16", "fp8"] if unit.fp8_flops else ["bf16"])
    ]
    return pd.DataFrame(rows)


def break_even_map(ax: Axes, precision: str = "bf16") -> pd.DataFrame:
    """Draw N_out* for models (rows) and GPUs (columns), dark where even long answers are prefill's."""
    frame = break_even_outputs().query("precision == @precision")
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


def regime_lines(ax: Axes, models: Sequence[str], gpu: str, precision: str) -> pd.DataFrame:
    """Draw, over prompt and output length, the line on which ΔP = ΔH for each model; below it prefill weighs more.

    Causal attention and the answer's own cache are counted.
    """
    unit = catalogue.gpu(gpu)
    n_in = np.geomspace(64, 131072, 60)
    tables = []
    for name, colour in zip(models, COLOURS, strict=False):
        model = catalogue.model(name)
        kv = model.kv_token(precision)
        # The output at which a prefill of this length weighs as much as the reads, had the answer no cache: N_out*
        # of the short regime times what causal attention adds to the prompt's compute.
        longer = 1 + n_in / theory.attention_threshold_causal(**model.shape)
        output = theory.break_even_output_growing(
            n_in=n_in, n_params=model.n_params * longer, kv_token=kv, hbm_bw=unit.hbm_bw, flops=unit.flops(precision)
        )
        ax.loglog(n_in, output, color=colour)
        label_line(ax, n_in[-1], output[-1], name, colour)
        tables.append(pd.DataFrame({"model": name, "n_in": n_in, "n_out": output}))
    ax.set(xlabel="prompt length (token)", ylabel="output length (token)", xlim=(64, 131072), ylim=(16, 32768))
    return pd.concat(tables, ignore_index=True)
