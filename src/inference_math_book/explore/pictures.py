"""The planner's pictures: Vega-Lite specifications without data, which the page fills in.

Each takes rows of one named data set: `step` (what, part, ms, order) and `speeds` (architecture, user, gpu, low, high,
and where its name stands: at).
"""

from __future__ import annotations

from typing import Any

import altair as alt

from inference_math.optimiser.search import ARCHITECTURES
from inference_math.unit.steps import PARTS
from inference_math_book.colours import colours_of
from inference_math_book.explore.theme import PAGE

__all__ = ["PICTURES", "pictures"]

# By name: a heading, and what to see.
PICTURES = {
    "step": (
        "What a step is made of",
        "Above without a prompt, below with the prompt tokens that the plan puts into it.",
    ),
    "speeds": (
        "What a GPU gives when answers must be faster",
        "Each line is an architecture under tighter limits on TPOT, at full load. Its band holds nine in ten draws, "
        "the dot is your limit.",
    ),
}
_PARTS = ("weights and matrices", *PARTS[2:])


def pictures() -> dict[str, dict[str, Any]]:
    """Return the specifications by name."""
    charts = {"step": _step(), "speeds": _speeds()}
    return {
        name: chart.properties(width="container").to_dict() | {"config": dict(PAGE)} for name, chart in charts.items()
    }


def _rows(name: str) -> Any:
    return alt.NamedData(name=name)


def _coloured(field: str, names: tuple[str, ...], legend: alt.Legend | None) -> Any:
    scale = alt.Scale(domain=list(names), range=colours_of(names))
    return alt.Color(field, type="nominal", scale=scale, title=None, legend=legend)


def _step() -> Any:
    legend = alt.Legend(orient="bottom", columns=1, labelLimit=0)
    return (
        alt.Chart(_rows("step"))
        .mark_bar()
        .encode(
            x=alt.X("ms", type="quantitative", stack=True, title="time of a step (ms)"),
            y=alt.Y("what", type="nominal", title=None, sort=None, axis=alt.Axis(labelLimit=160)),
            color=_coloured("part", _PARTS, legend),
            order=alt.Order("order", type="quantitative"),
            tooltip=["part:N", "ms:Q"],
        )
        .properties(height=130)
    )


def _speeds() -> Any:
    """Draw the frontier: bands, lines that are named where they end, and a dot at the limit that was asked for."""
    names = tuple(ARCHITECTURES)
    base = alt.Chart(_rows("speeds")).encode(
        x=alt.X("user", type="quantitative", title="least tokens/s of a user"),
        y=alt.Y("gpu", type="quantitative", title="tokens/s of a GPU"),
        color=_coloured("architecture", names, None),
    )
    band = base.mark_area(opacity=0.18).encode(y=alt.Y("low", type="quantitative"), y2="high")
    called = base.transform_filter("isValid(datum.at)").mark_text(align="left", dy=-9, fontSize=13, fontWeight=600)
    chosen = base.transform_filter("datum.chosen").mark_point(size=130, filled=True)
    return (band + base.mark_line(strokeWidth=3) + chosen + called.encode(text="architecture:N", y="at:Q")).properties(
        height=300
    )
