"""Measured runs of an engine, read from the result files of load generators, for calibrating the model."""

from __future__ import annotations

from inference_math.runs.files import Runs, read

__all__ = ["Runs", "read"]
