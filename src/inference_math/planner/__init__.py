"""Answers under an SLA: which batch and what binds, which chunk, which split, whether offloading pays, and how sure.

Every number is a formula of `theory` fed with a unit's calibrated costs, or the comparison of `architectures`; its
interval comes from the same numbers under draws of the calibration.
"""

from __future__ import annotations

from inference_math.planner.benchmarks import Foreseen, cadences, foresee
from inference_math.planner.case import Case, offloading
from inference_math.planner.deployment import Answer, Plan, plan
from inference_math.planner.frontier import batches, frontier
from inference_math.planner.gpus import across
from inference_math.planner.layouts import layouts, search
from inference_math.planner.sensitivity import sensitivity, sweep
from inference_math.planner.stores import Ladder, size_store
from inference_math.planner.traffic import Fleet, capacity, fleet

__all__ = [
    "Answer",
    "Case",
    "Fleet",
    "Foreseen",
    "Ladder",
    "Plan",
    "across",
    "batches",
    "cadences",
    "capacity",
    "fleet",
    "foresee",
    "frontier",
    "layouts",
    "offloading",
    "plan",
    "search",
    "sensitivity",
    "size_store",
    "sweep",
]
