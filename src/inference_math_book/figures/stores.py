"""Figures of stores: what they find by their size, by users, and by the law. Each returns the numbers that it drew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from inference_math.evidence import load
from inference_math_book import explore
from inference_math_planner.fleets.caches import play
from inference_math_planner.fleets.turns import Sessions, Turns

__all__ = ["SESSION", "cliff", "cliff_played", "compared", "halves", "pools"]

SESSION: dict[str, Any] = {"turns": 12, "first": 30, "message": 3, "answer": 2}  # small ones, in blocks, to be played
_SKIPPED = 3  # of a played stream, the first so-manieth part, in which a store fills


def halves(axes: Sequence[Axes]) -> pd.DataFrame:
    """Draw what a store finds in either half of Mooncake's traces beside what the first half's returns say."""
    frame = load("traces_halves").frame
    for ax, (trace, rows) in zip(axes, frame.groupby("trace"), strict=True):
        size = rows["capacity_tokens"] / 1e6
        ax.semilogx(size, 100 * rows["law"], color=explore.COLOURS[0], label="law, by the first half")
        ax.semilogx(size, 100 * rows["same"], "o", color=explore.COLOURS[0], mfc="none", label="played, first half")
        ax.semilogx(size, 100 * rows["other"], "s", color=explore.COLOURS[1], label="played, second half")
        ax.semilogx(
            size, 100 * rows["independent"], "--", color=explore.COLOURS[2], label="blocks taken for independent"
        )
        ax.semilogx(size, 100 * rows["best"], ":", color=explore.COLOURS[3], label="knows what will come, second half")
        ax.set(title=trace, xlabel="size of the store (million tokens)", ylabel="prompt tokens found (%)", ylim=(0, 75))
    axes[0].legend(fontsize=8)
    return frame


def cliff(ax: Axes, store: int, below: int, played: pd.DataFrame, gap: float = 10.0) -> pd.DataFrame:
    """Draw what HBM, and HBM with a tier below it, find for more and more users, by the law and played.

    Sizes in blocks; gaps are equal, half as wide as exponential ones, and exponential. `played` has what `cliff_played`
    gives, by cv and users.
    """
    rows = []
    for cv, colour, mark, name in ((0.0, 3, "^", "equal"), (0.5, 1, "s", "some spread"), (1.0, 0, "o", "exponential")):
        one, some = Turns(**SESSION, think=gap, cv=cv).sessions(0.0), played[played["cv"] == cv]
        for size, dash, tier in ((store, "-", "HBM"), (store + below, "--", "HBM and host")):
            users = np.geomspace(4, 160, 60)
            said = [one.of(float(each)).found(size) for each in users]
            ax.semilogx(users, 100 * np.array(said), dash, color=explore.COLOURS[colour], label=f"{name}, {tier}")
            ax.semilogx(some["users"], 100 * some[tier], mark, color=explore.COLOURS[colour], mfc="none")
            law = [one.of(each).found(size) for each in some["users"]]
            rows.append(
                pd.DataFrame({"gaps": name, "tier": tier, "users": some["users"], "played": some[tier], "law": law})
            )
    ax.set(xlabel="users", ylabel="prompt tokens found (%)", ylim=(0, 100))
    ax.legend(fontsize=8, loc="lower left")
    return pd.concat(rows, ignore_index=True)


def cliff_played(users: int, cv: float, store: int, below: int, gap: float = 10.0) -> dict[str, float]:
    """Return what is found of a stream of turns in HBM, and there or in the tier below it."""
    stream = Turns(**SESSION, think=gap, cv=cv).drawn(users, 24 * gap)
    one, other = play(stream, [store, below], skip=len(stream) // _SKIPPED)
    return {"HBM": one, "HBM and host": one + other}


def pools(prefixes: Mapping[int, int] = MappingProxyType({}), hbm: Mapping[str, int] = MappingProxyType({})) -> Any:
    """Return table `agent_pools` with what the law says HBM finds, `said`, from an empty store where it was.

    A pool of N prefixes is N users whose turns come in no order: a prefix comes back after N requests, exponential.
    `prefixes` counts a pool otherwise, `hbm` (by model) the tokens that can be found again.
    """
    frame = load("agent_pools").frame
    said = []
    for known in frame.to_dict("records"):
        row = known | {"prefixes": prefixes.get(known["prefixes"], known["prefixes"])}
        row["hbm_tokens"] = hbm.get(known["model"], known["hbm_tokens"])
        brought = row["tail"] + row["answer"]
        law = Sessions(row["prefix"], brought, row["prefixes"], answer=row["answer"]).of(row["prefixes"])
        from_empty = pd.notna(row["requests"])
        said.append(
            law.found_from_empty(row["hbm_tokens"], row["requests"]) if from_empty else law.found(row["hbm_tokens"])
        )
    return frame.assign(said=said)


def compared(chart: Any, labels: list[Any], kind: str, x: Any, y: Any) -> Any:
    """Return the lines of a chart's columns `labels`, each a `kind` with its colour, over the axes `x` and `y`."""
    across, up = (str(axis.shorthand).split(":")[0] for axis in (x, y))
    legend = alt.Legend(title=None, orient="top", columns=1, labelLimit=0, symbolSize=400)
    colours = alt.Scale(domain=labels, range=explore.colours_of(labels))
    return (
        chart.transform_fold(labels, as_=[kind, up])
        .mark_line(strokeWidth=2.5)
        .encode(
            x=x,
            y=y,
            color=alt.Color(f"{kind}:N", legend=legend, scale=colours),
            tooltip=[f"{kind}:N", *(alt.Tooltip(f"{name}:Q", format=".3~g") for name in (across, up))],
        )
        .properties(width="container", height=320)
    )
