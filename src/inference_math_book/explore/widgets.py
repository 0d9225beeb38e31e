"""Live figures in a running notebook that Python computes: ipywidgets above what is drawn again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ipywidgets

from inference_math_book.explore.live import IN_VIEW

__all__ = ["drawn_again"]


def drawn_again(chart: Any, names: Sequence[str], draw: Callable[..., None]) -> ipywidgets.VBox:
    """Return controls for some of the bound parameters of `chart`, and below them what `draw` shows.

    It is called with their values by name, at first and whenever one of them was moved.
    """
    bound = {p["name"]: p for p in chart.to_dict()["params"] if p["name"] in names}
    controls = {name: _control(bound[name]) for name in names}
    for control in controls.values():
        control.continuous_update = False
    shown = ipywidgets.interactive_output(draw, controls)
    first, others = list(controls.values())[:IN_VIEW], list(controls.values())[IN_VIEW:]
    more = [ipywidgets.Accordion([ipywidgets.VBox(others)], titles=("more",))] if others else []
    return ipywidgets.VBox([*first, *more, shown])


def _control(param: dict[str, Any]) -> ipywidgets.Widget:
    bind = param["bind"]
    shared = {
        "value": param["value"],
        "description": bind["name"].strip(),
        "style": {"description_width": "50%"},
        "layout": {"width": "100%"},
    }
    if bind["input"] == "select":
        return ipywidgets.Dropdown(options=bind["options"], **shared)
    readout = ".0f" if bind["step"] % 1 == 0 else ".3g"
    ends = {"min": bind["min"], "max": bind["max"], "step": bind["step"]}
    return ipywidgets.FloatSlider(readout_format=readout, **ends, **shared)
