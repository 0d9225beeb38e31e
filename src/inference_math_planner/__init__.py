"""Answers under an SLA: which batch and what binds, which chunk, which split, whether offloading pays, and how sure.

Every number is a formula of `theory` or `laws` fed with a unit's calibrated costs, or the choice of the optimiser; its
interval comes from the same numbers under draws of the calibration. A room is loaded when it is entered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_math import door

if TYPE_CHECKING:
    from inference_math.optimiser.case import Case
    from inference_math_planner.answers.deployment import Plan, plan
    from inference_math_planner.answers.frontier import batches, frontier
    from inference_math_planner.answers.record import Answer, Record, schema
    from inference_math_planner.answers.sensitivity import sensitivity, sweep
    from inference_math_planner.answers.text import as_markdown
    from inference_math_planner.fleets.benchmarks import Benchmark, Foreseen, cadences, foresee
    from inference_math_planner.fleets.gpus import across
    from inference_math_planner.fleets.layouts import layouts, search
    from inference_math_planner.fleets.stores import Ladder, size_store
    from inference_math_planner.fleets.traffic import Arrivals, Fleet, as_record, capacity, fleet
else:
    __getattr__ = door(
        __name__,
        **{
            "inference_math.optimiser.case": "Case",
            "answers.deployment": "Plan plan",
            "answers.frontier": "batches frontier",
            "answers.record": "Answer Record schema",
            "answers.sensitivity": "sensitivity sweep",
            "answers.text": "as_markdown",
            "fleets.benchmarks": "Benchmark Foreseen cadences foresee",
            "fleets.gpus": "across",
            "fleets.layouts": "layouts search",
            "fleets.stores": "Ladder size_store",
            "fleets.traffic": "Arrivals Fleet as_record capacity fleet",
        },
    )

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
    "plan",
    "schema",
    "search",
    "sensitivity",
    "size_store",
    "sweep",
]


def __dir__() -> list[str]:
    return __all__
