"""What the field runs: experts that a step reads, queues, served splits.

Drawn on given axes; every function returns the numbers it drew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from inference_math.unit import Unit
from inference_math.unit.steps import unread
from inference_math_book.colours import COLOURS

__all__ = ["chosen_weights", "queues", "split_gains"]

_MARKS = "os^Dvx*+"


def chosen_weights(ax: Axes, units: Mapping[str, Unit]) -> pd.DataFrame:
    """Draw the share of a unit's weights that a step reads, against the tokens in it."""
    tokens = np.unique(np.geomspace(1, 1024, 50).round())
    tables = []
    for (name, unit), colour in zip(units.items(), COLOURS, strict=False):
        numbers = unit.numbers
        all_bytes = numbers["step_bytes"] + numbers["routed_bytes"]
        read = (all_bytes - unread(unit.terms, tokens) * numbers["routed_bytes"]) / all_bytes
        ax.semilogx(tokens, 100 * read, color=colour, label=name)
        tables.append(pd.DataFrame({"model": name, "tokens": tokens, "share": read}))
    ax.set(xlabel="tokens in a step", ylabel="weights that the step reads (%)", ylim=(0, 104))
    ax.legend(fontsize=9)
    return pd.concat(tables, ignore_index=True)


def queues(axes: Sequence[Axes], found: pd.DataFrame) -> pd.DataFrame:
    """Draw a panel for each model: time to the first token against the arrival, measured points and a predicted line.

    `found` are the rows of `queue_runs`, with the played TTFT as `ttft`.
    """
    for ax, (model, rows) in zip(axes, found.groupby("model", sort=False), strict=True):
        ax.plot(rows["arrival_s"], rows["ttft_s"], ".", color=COLOURS[0], markersize=4, label="measured")
        ax.plot(rows["arrival_s"], rows["ttft"], color=COLOURS[1], linewidth=1.4, label="predicted")
        ax.set(title=model, xlabel="arrival (s)")
        ax.set_ylim(bottom=0)
    axes[0].set_ylabel("time to first token (s)")
    axes[0].legend(fontsize=9, loc="upper left")
    return found[["model", "arrival_s", "n_in", "n_out", "ttft_s", "ttft"]]


def split_gains(ax: Axes, found: pd.DataFrame, law: pd.DataFrame) -> pd.DataFrame:
    """Draw the gain of splits over aggregated serving against the tokens per second of a user, and what the law says.

    `found` as table `predicted_split_gains`; `law` has the columns weights, n_in, per_user, gain.
    """
    for number, (key, rows) in enumerate(found.dropna(subset=["gain"]).groupby(["weights", "n_in"])):
        colour = COLOURS[number]
        name = f"{str(key[0]).upper()}, {float(str(key[1])):,.0f} tokens in"
        near, far = rows[rows["near"]], rows[~rows["near"]]
        ax.plot(near["per_user"], near["gain"], _MARKS[number], color=colour, label=name)
        ax.plot(far["per_user"], far["gain"], _MARKS[number], color=colour, fillstyle="none")
        line: Any = law[(law["weights"] == key[0]) & (law["n_in"] == key[1])]
        ax.plot(line["per_user"], line["gain"], "--", color=colour, linewidth=1.4)
    ax.axhline(1, color="black", linewidth=0.9)
    ax.set(xscale="log", yscale="log", xlabel="tokens/s of a user", ylabel="gain of the split, per GPU")
    ax.legend(fontsize=9, title="points: served; dashed: the law")
    return found
