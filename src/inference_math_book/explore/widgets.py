"""Live figures in a running notebook: ipywidgets that drive the same specification."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import altair as alt
import ipywidgets

__all__ = ["as_widget", "drawn_again"]

_FIRST = 3  # controls in view; the others open


def as_widget(chart: Any) -> ipywidgets.VBox:
    """Return sliders and lists for the bound parameters of `chart`, above the chart itself.

    The parameters are shared: moving a control changes the figure, and `chart.params` in Python.
    """
    controls = {p["name"]: p for p in chart.to_dict().get("params", []) if "bind" in p}
    if find_spec("vl_convert"):  # carries Vega's JavaScript, so that no network is needed
        alt.JupyterChart.enable_offline()
    figure = alt.JupyterChart(_without_controls(chart))
    rows = []
    for name, param in controls.items():
        control = _control(param)
        ipywidgets.link((control, "value"), (figure.params, name))
        rows.append(control)
    return ipywidgets.VBox([*rows, figure])


def drawn_again(chart: Any, names: Sequence[str], draw: Callable[..., None]) -> ipywidgets.VBox:
    """Return controls for some of the bound parameters of `chart`, and below them what `draw` shows.

    It is called with their values by name, at first and whenever one of them was moved.
    """
    bound = {p["name"]: p for p in chart.to_dict()["params"] if p["name"] in names}
    controls = {name: _control(bound[name]) for name in names}
    for control in controls.values():
        control.continuous_update = False
    shown = ipywidgets.interactive_output(draw, controls)
    first, others = list(controls.values())[:_FIRST], list(controls.values())[_FIRST:]
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


def _without_controls(chart: Any) -> Any:
    spec = chart.to_dict()
    for param in spec.get("params", []):
        param.pop("bind", None)
    if spec.get("width") == "container":
        spec["width"] = 640
    return alt.Chart.from_dict(spec)
