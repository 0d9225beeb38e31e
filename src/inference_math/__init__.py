"""Inference Math: the mathematics of LLM serving, derived, tested and measured.

The names stand in `__init__.pyi`. Each is loaded when it is asked for: the formulas need neither pandas nor SciPy.

>>> import inference_math
>>> inference_math.theory.speedup_layerwise(alpha=0.9, e=9)
10.0
"""

from __future__ import annotations

from importlib.metadata import version

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

__version__ = version("inference-math")
