"""What the field runs: experts that a step reads, queues, served splits.

Drawn on given axes; every function returns the numbers it drew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from scipy.stats import binomtest

from inference_math.unit import Unit
from inference_math.unit.steps import unread
from inference_math_book.colours import COLOURS

__all__ = ["chosen_weights", "queues", "reliability", "split_gains"]

_SAID = [0.5, 0.6, 0.7, 0.8, 0.9, 1.0]  # ends of what is counted together

_MARKS = "os^Dvx*+"


def chosen_weights(ax: Axes, units: Mapping[str, Unit]) -> pd.DataFrame:
    """Draw the share of a unit's weights that a step reads, against the tokens in it."""
    tokens = np.unique(np.geomspace(1, 1024, 50).round())
    tables = []
    for (name, unit), colour in zip(units.items(), COLOURS, strict=False):
        numbers = unit.numbers
        all_bytes = numbers.step_bytes + numbers.routed_bytes
        read = (all_bytes - unread(unit.terms, tokens) * numbers.routed_bytes) / all_bytes
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


def split_gains(ax: Axes, found: pd.DataFrame) -> pd.DataFrame:
    """Draw the measured gain of splits over aggregated serving against the played one, as `predicted_split_gains`."""
    for number, (gpu, rows) in enumerate(found.groupby("gpu")):
        colour, name = COLOURS[number], str(gpu).upper()
        for part, style in (("score", "full"), ("choose", "none")):
            own = rows[rows["part"] == part]
            label = f"{name}, {'set aside' if part == 'score' else 'chosen by'}"
            ax.plot(own["played"], own["gain"], _MARKS[number], color=colour, fillstyle=style, label=label)
    ax.set(xscale="log", yscale="log", xlabel="gain of the split, played", ylabel="gain of the split, measured")
    ends = [0.2, 16]
    ax.plot(ends, ends, color="black", linewidth=0.9)
    ax.axhline(1, color="gray", linewidth=0.7)
    ax.axvline(1, color="gray", linewidth=0.7)
    for set_ticks in (ax.set_xticks, ax.set_yticks):
        set_ticks([0.25, 0.5, 1, 2, 4, 8], ["¼", "½", "1", "2", "4", "8"])
    ax.legend(fontsize=9)
    return found[["gpu", "engine", "weights", "n_in", "n_out", "drafts", "users", "speed", "gain", "played", "part"]]


def reliability(ax: Axes, pairs: pd.DataFrame) -> pd.DataFrame:
    """Draw how often the better way was named against how sure that was said to be, played and planned.

    `pairs` as `predicted_split_gains`; returns a row for each group: how, said (mean chance), right (share), low and
    high (its 90 % interval by Wilson), pairs.
    """
    tables = []
    for number, how in enumerate(("played", "planned")):
        own = pairs.dropna(subset=[f"{how}_chance"])
        chance = own[f"{how}_chance"]
        named = chance.where(chance > 0.5, 1 - chance)
        right = (chance > 0.5) == (own["gain"] > 1)
        groups = pd.cut(named, _SAID, include_lowest=True)
        told = pd.DataFrame({"said": named, "right": right}).groupby(groups, observed=True)
        table = told.mean().assign(how=how, pairs=told.size())
        hits = told["right"].sum()
        ends = [
            binomtest(int(k), int(n)).proportion_ci(0.9, "wilson") for k, n in zip(hits, table["pairs"], strict=True)
        ]
        table["low"], table["high"] = zip(*ends, strict=True)
        at = table["said"] + 0.004 * (2 * number - 1)
        ax.vlines(at, table["low"], table["high"], color=COLOURS[number], linewidth=1.2)
        ax.plot(at, table["right"], _MARKS[number], color=COLOURS[number], label=how)
        for place, share, count in zip(at, table["right"], table["pairs"], strict=True):
            ax.annotate(
                f"{count}", (place, share), xytext=(-18 if number else 6, -10), textcoords="offset points", fontsize=8
            )
        tables.append(table.reset_index(drop=True))
    ax.plot([0.5, 1], [0.5, 1], color="gray", linewidth=0.9)
    ax.set(xlabel="said: chance that it is the better one", ylabel="right", ylim=(0, 1.05))
    ax.legend(fontsize=9, loc="lower right")
    return pd.concat(tables, ignore_index=True)[["how", "said", "right", "low", "high", "pairs"]]
