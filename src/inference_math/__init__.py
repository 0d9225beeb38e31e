"""Inference Math: the mathematics of LLM serving, derived, tested and measured.

A room is loaded when it is entered: the formulas need neither pandas nor SciPy.

>>> import inference_math
>>> inference_math.theory.speedup_layerwise(alpha=0.9, e=9)
10.0
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from typing import Any

_ROOMS = ("catalogue", "evidence", "optimiser", "simulate", "theory", "unit", "workload")

__version__ = version("inference-math")
__all__ = [*_ROOMS, "SLA", "Unit", "Workload"]


def door(package: str, others: str = "", **names: str) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package that loads a module when one of the `names` that it owns is asked for.

    The module `others`, if there is one, is asked for each other name.
    """
    owners = {name: module for module, owned in names.items() for name in owned.split()}

    def entered(name: str) -> Any:
        module = owners.get(name, "" if name.startswith("_") else others)
        if not module:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{module}"), name)

    return entered


_named = door(__name__, unit="Unit", workload="SLA Workload")


def __getattr__(name: str) -> Any:
    return import_module(f"{__name__}.{name}") if name in _ROOMS else _named(name)


def __dir__() -> list[str]:
    return sorted(__all__)
