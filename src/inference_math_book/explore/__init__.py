"""Live figures for the published page and widgets for a running notebook."""

from __future__ import annotations

from inference_math_book.explore.live import *  # noqa: F403
from inference_math_book.explore.live import __all__ as __all__
