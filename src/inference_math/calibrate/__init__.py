"""A unit fitted to what was measured: runs of your own engine, kernels of your own GPU, points that others served."""

from __future__ import annotations

from inference_math.calibrate.files import Runs, read
from inference_math.calibrate.from_runs import PROFILED, Profile, anchored, fit

__all__ = ["PROFILED", "Profile", "Runs", "anchored", "fit", "read"]
