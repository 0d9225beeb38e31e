"""Models and GPUs by name, and the user's own: what a cost formula needs to know about each."""

from __future__ import annotations

from inference_math.catalogue.models import *  # noqa: F403
from inference_math.catalogue.models import __all__ as __all__
