"""All formulas beyond the talks, by name, and those of all rooms in `CATALOGUE`: what the room hands out."""

# Each module has its `__all__` from `formula`. In the order of the book, which is the catalogue's.
# ruff: noqa: F403, I001

from collections.abc import Mapping
from types import MappingProxyType

from inference_math import theory
from inference_math.theory.formula import Formula

from inference_math_planner.laws.queueing import *
from inference_math_planner.laws.first_token import *
from inference_math_planner.laws.cadence import *
from inference_math_planner.laws.routing import *

CATALOGUE: Mapping[str, Formula] = MappingProxyType(
    {**theory.CATALOGUE, **{name: own for name, own in globals().items() if isinstance(own, Formula)}}
)
