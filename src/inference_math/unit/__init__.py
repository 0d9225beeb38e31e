"""One inference unit: a model on `tp` GPUs in some precision under an engine, and the seconds of its steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_math import door

if TYPE_CHECKING:
    from inference_math.unit.rates import rates_of
    from inference_math.unit.shapes import activation_bytes, kind_of, matrix_bytes, shape_of
    from inference_math.unit.unit import Unit
else:  # measured operators, or an affine cost of a step, need no unit
    __getattr__ = door(__name__, rates="rates_of", shapes="activation_bytes kind_of matrix_bytes shape_of", unit="Unit")

__all__ = ["Unit", "activation_bytes", "kind_of", "matrix_bytes", "rates_of", "shape_of"]


def __dir__() -> list[str]:
    return __all__
