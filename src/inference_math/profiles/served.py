"""The old name of `inference_math.calibrate.served`, until the next release."""

from __future__ import annotations

from inference_math.calibrate.served import scored

__all__ = ["scored"]
