"""The whole plan in a running notebook: ipywidgets above, the plan below."""

from __future__ import annotations

from typing import Any

import ipywidgets

from inference_math import catalogue
from inference_math.unit import Unit
from inference_math.workload import SLA, Workload
from inference_math_book.case import LIMITS, UNIT, WORK
from inference_math_planner.answers.deployment import Plan, plan

__all__ = ["plan_explorer", "planned"]

_STYLE = {"style": {"description_width": "14em"}, "layout": {"width": "36em"}, "continuous_update": False}


def planned(
    model: str,
    gpu: str,
    tp: int,
    weights: str,
    kv: str,
    prompt: int,
    output: int,
    stored: float,
    ttft: float,
    tpot: float,
) -> Plan | str:
    """Return the plan without intervals, or the sentence that says why there is none; limits in ms."""
    try:
        unit = Unit.of(model, gpu, tp, weights, kv)
        return plan(unit, Workload(prompt, output, stored), SLA(ttft / 1e3, tpot / 1e3), intervals=False)
    except ValueError as error:
        return str(error)


def plan_explorer() -> ipywidgets.interactive:
    """Return lists and sliders with their units above the plan of what they say; it begins with the case."""
    return ipywidgets.interactive(planned, **_controls())


def _controls() -> dict[str, Any]:
    def choice(label: str, options: list[Any], value: Any) -> Any:
        layout = {key: _STYLE[key] for key in ("style", "layout")}
        return ipywidgets.Dropdown(description=label, options=options, value=value, **layout)

    def number(label: str, value: float, low: float, high: float, step: float) -> Any:
        kind = ipywidgets.IntSlider if isinstance(step, int) else ipywidgets.FloatSlider
        return kind(description=label, value=value, min=low, max=high, step=step, **_STYLE)

    return {
        "model": choice("model", list(catalogue.MODELS), UNIT.model.name),
        "gpu": choice("GPU", list(catalogue.GPUS), UNIT.gpu.name),
        "tp": choice("GPUs of a unit (TP)", [1, 2, 4, 8], UNIT.tp),
        "weights": choice("weights", ["fp8", "bf16"], UNIT.weights),
        "kv": choice("KV cache", ["fp8", "bf16"], UNIT.kv),
        "prompt": number("prompt (tokens)", WORK.n_in, 100, 16000, 100),
        "output": number("output (tokens)", WORK.n_out, 10, 2000, 10),
        "stored": number("stored share of the prompt", 0.0, 0.0, 0.98, 0.02),
        "ttft": number("limit on TTFT (ms)", 1e3 * LIMITS.ttft, 50, 5000, 50),
        "tpot": number("limit on TPOT (ms)", 1e3 * LIMITS.tpot, 5, 150, 1),
    }
