"""Answers under an SLA: which batch and what binds, which chunk, which split, whether offloading pays, and how sure.

Every number is a formula of `theory` fed with a unit's calibrated costs, or the comparison of `architectures`; its
interval comes from the same numbers under draws of the calibration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_math import door
from inference_math.planner.case import Case, offloading
from inference_math.planner.deployment import Plan, plan
from inference_math.planner.frontier import batches, frontier
from inference_math.planner.layouts import layouts, search
from inference_math.planner.record import Answer, Record, schema
from inference_math.planner.sensitivity import sensitivity, sweep
from inference_math.planner.text import as_markdown

if TYPE_CHECKING:
    from inference_math.planner.benchmarks import Benchmark, Foreseen, cadences, foresee
    from inference_math.planner.gpus import across
    from inference_math.planner.stores import Ladder, size_store
    from inference_math.planner.traffic import Arrivals, Fleet, as_record, capacity, fleet
else:  # one unit's plan needs neither queues nor sessions
    __getattr__ = door(
        __name__, benchmarks="Benchmark Foreseen cadences foresee", gpus="across",
        stores="Ladder size_store", traffic="Arrivals Fleet as_record capacity fleet",
    )  # fmt: skip

__all__ = [
    "Answer",
    "Arrivals",
    "Benchmark",
    "Case",
    "Fleet",
    "Foreseen",
    "Ladder",
    "Plan",
    "Record",
    "across",
    "as_markdown",
    "as_record",
    "batches",
    "cadences",
    "capacity",
    "fleet",
    "foresee",
    "frontier",
    "layouts",
    "offloading",
    "plan",
    "schema",
    "search",
    "sensitivity",
    "size_store",
    "sweep",
]


def __dir__() -> list[str]:
    return __all__
