"""Inference Math: the mathematics of LLM serving, derived, tested and measured.

>>> from inference_math import theory
>>> theory.speedup_layerwise(alpha=0.9, e=9)
10.0
"""

from __future__ import annotations

from importlib.metadata import version

from inference_math import theory

__all__ = ["__version__", "theory"]

__version__ = version("inference-math")
