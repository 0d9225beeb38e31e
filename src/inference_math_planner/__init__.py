"""Answers under an SLA: which batch and what binds, which chunk, which split, whether offloading pays, and how sure.

Every number is a formula of `theory` or `laws` fed with a unit's calibrated costs, or the choice of the optimiser; its
interval comes from the same numbers under draws of the calibration. A room is loaded when it is entered.
"""

from __future__ import annotations

from inference_math import door

_NAMES = {
    "answers.deployment": "Case Plan plan",
    "answers.record": "Answer Record schema",
    "answers.sensitivity": "sensitivity sweep",
    "answers.text": "as_markdown",
    "fleets.benchmarks": "Benchmark Foreseen cadences foresee",
    "fleets.gpus": "across",
    "fleets.layouts": "Sized layouts search size",
    "fleets.stores": "Ladder size_store",
    "fleets.traffic": "Arrivals Fleet NoFleetError as_record capacity fleet",
}

__getattr__ = door(__name__, **_NAMES)
__all__ = sorted(" ".join(_NAMES.values()).split())


def __dir__() -> list[str]:
    return __all__
