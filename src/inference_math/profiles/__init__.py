"""A unit fitted to runs of your own engine: five coefficients from a handful of runs, and anchors."""

from __future__ import annotations

from inference_math.profiles.from_runs import PROFILED, Profile, anchored, fit

__all__ = ["PROFILED", "Profile", "anchored", "fit"]
