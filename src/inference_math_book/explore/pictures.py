"""The planner's pictures: Vega-Lite specifications without data, which the page fills in.

Each takes rows of one named data set: `step` (what, part, ms), `speeds` (architecture, user, gpu), `memory` (part, GB,
order), `swings` (input, low, high, rate).
"""

from __future__ import annotations

from typing import Any

import altair as alt

from inference_math.optimiser.search import ARCHITECTURES
from inference_math.unit.steps import PARTS
from inference_math_book.colours import COLOURS, colours_of
from inference_math_book.explore.theme import PAGE

__all__ = ["PICTURES", "pictures"]

# By name: a heading, and what to see.
PICTURES = {
    "step": ("What a step consists of", "Without a prompt, and with the prompt tokens that the plan puts into it."),
    "speeds": (
        "Speed of a user against output of a GPU",
        "Each line is the best that an architecture does under other limits on TPOT; the dot is the plan.",
    ),
    "memory": ("Memory of one GPU", "What the weights leave is for KV caches; how much of it the plan uses."),
    "swings": (
        "What the answer hangs on",
        "Requests per second at full load with a fifth less and more of each input; the line is the plan.",
    ),
}
_PARTS = ("weights and matrices", *PARTS[2:])
_HELD = ("weights", "KV caches in use", "KV caches, free", "engine's own", "left to others")


def pictures() -> dict[str, dict[str, Any]]:
    """Return the specifications by name."""
    charts = {"step": _step(), "speeds": _speeds(), "memory": _memory(), "swings": _swings()}
    return {
        name: chart.properties(width="container").to_dict() | {"config": dict(PAGE)} for name, chart in charts.items()
    }


def _rows(name: str) -> Any:
    return alt.NamedData(name=name)


def _coloured(field: str, names: tuple[str, ...]) -> Any:
    scale = alt.Scale(domain=list(names), range=colours_of(names))
    legend = alt.Legend(orient="bottom", columns=1, labelLimit=0)
    return alt.Color(field, type="nominal", scale=scale, title=None, legend=legend)


def _stacked(name: str, size: str, part: str, names: tuple[str, ...], title: str, by: Any) -> Any:
    order = alt.Order("order", type="quantitative")
    across = alt.X(size, type="quantitative", stack=True, title=title)
    bars = alt.Chart(_rows(name)).mark_bar()
    return bars.encode(x=across, y=by, color=_coloured(part, names), order=order, tooltip=[f"{part}:N", f"{size}:Q"])


def _step() -> Any:
    by = alt.Y("what", type="nominal", title=None, sort=None, axis=alt.Axis(labelLimit=110))
    return _stacked("step", "ms", "part", _PARTS, "step (ms)", by).properties(height=110)


def _memory() -> Any:
    return _stacked("memory", "GB", "part", _HELD, "memory of a GPU (GB)", alt.Undefined).properties(height=50)


def _speeds() -> Any:
    base = alt.Chart(_rows("speeds")).encode(
        x=alt.X("user", type="quantitative", title="tokens/s of a user"),
        y=alt.Y("gpu", type="quantitative", title="tokens/s of a GPU"),
    )
    lines = base.mark_line().encode(
        color=_coloured("architecture", tuple(ARCHITECTURES)),
        strokeDash=alt.StrokeDash(
            "architecture", type="nominal", title=None, scale=alt.Scale(domain=list(ARCHITECTURES))
        ),
        order=alt.Order("user", type="quantitative"),
        detail="architecture:N",
    )
    chosen = base.transform_filter("datum.chosen").mark_point(size=110, filled=True, color="currentColor")
    return (lines.transform_filter("!datum.chosen") + chosen).properties(height=220)


def _swings() -> Any:
    base = alt.Chart(_rows("swings")).encode(y=alt.Y("input", type="nominal", sort=None, title=None))
    ends = {
        "x": alt.X(
            "low",
            type="quantitative",
            title="requests/s of a unit",
            scale=alt.Scale(zero=False),
            axis=alt.Axis(tickCount=4),
        ),
        "x2": "high",
    }
    bars = base.mark_bar(color=COLOURS[0]).encode(**ends, tooltip=["input:N", "low:Q", "high:Q"])
    here = alt.Chart(_rows("swings")).mark_rule(strokeDash=[4, 3]).encode(x="rate:Q")
    return (bars + here).properties(height=130)
