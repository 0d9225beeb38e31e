"""A unit fitted to what was measured: runs of your own engine, kernels of your own GPU, points that others served."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_math import door

if TYPE_CHECKING:
    from inference_math_planner.calibrate.files import Runs, read
    from inference_math_planner.calibrate.from_runs import PROFILED, Profile, anchored, fit
else:  # each kind of measurement is read without what the others need
    __getattr__ = door(__name__, files="Runs read", from_runs="PROFILED Profile anchored fit")

__all__ = ["PROFILED", "Profile", "Runs", "anchored", "fit", "read"]


def __dir__() -> list[str]:
    return __all__
