"""One inference unit: a model on `tp` GPUs in some precision under an engine, and the seconds of its steps."""

from __future__ import annotations

from inference_math.unit.rates import rates_of
from inference_math.unit.shapes import activation_bytes, kind_of, matrix_bytes, shape_of
from inference_math.unit.unit import Steps, Unit

__all__ = ["Steps", "Unit", "activation_bytes", "kind_of", "matrix_bytes", "rates_of", "shape_of"]
