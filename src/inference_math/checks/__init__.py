"""Arguments: what is accepted, and errors that name what was given instead."""

from __future__ import annotations

from inference_math.checks.numbers import *  # noqa: F403
from inference_math.checks.numbers import __all__ as __all__
