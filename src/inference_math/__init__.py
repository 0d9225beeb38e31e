"""Inference Math: the mathematics of LLM serving, derived, tested and measured.

>>> from inference_math import theory
>>> theory.speedup_layerwise(alpha=0.9, e=9)
10.0
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from inference_math import theory

if TYPE_CHECKING:
    from inference_math.planner import plan
    from inference_math.unit import Unit
    from inference_math.workload import SLA, Workload

__all__ = ["SLA", "Unit", "Workload", "__version__", "plan", "theory"]

__version__ = version("inference-math")

# Loaded when asked for: the formulas need neither pandas nor SciPy.
_HOMES = {"SLA": "workload", "Unit": "unit", "Workload": "workload", "plan": "planner"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
