"""The talk's plots, one function each, drawn on given axes."""

from __future__ import annotations

from inference_math_book.figures.style import *  # noqa: F403
from inference_math_book.figures.style import __all__ as __all__
