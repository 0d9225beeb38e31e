"""Inference Math: the mathematics of LLM serving, derived, tested and measured.

A room is loaded when it is entered: the formulas need neither pandas nor SciPy.

>>> import inference_math
>>> inference_math.theory.speedup_layerwise(alpha=0.9, e=9)
10.0
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import Any

_ROOMS = (
    "calibrate",
    "catalogue",
    "checks",
    "cli",
    "evidence",
    "perf",
    "planner",
    "simulate",
    "theory",
    "unit",
    "workload",
)
_FROM = {"SLA": "workload", "Unit": "unit", "Workload": "workload", "plan": "planner"}

__version__ = version("inference-math")
__all__ = [*_ROOMS, *_FROM]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"{__name__}.{name}")
    if name in _FROM:
        return getattr(import_module(f"{__name__}.{_FROM[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
