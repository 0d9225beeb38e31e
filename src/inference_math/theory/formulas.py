"""All formulas, those of the talks first, by name and in `CATALOGUE`: what the room hands out."""

# Each module has its `__all__` from `formula`. In the order of the book, which is the catalogue's.
# ruff: noqa: F403, I001

from collections.abc import Mapping
from types import MappingProxyType

from inference_math.theory._talks import BOOK as BOOK
from inference_math.theory.formula import Formula

from inference_math.theory.tokens import *
from inference_math.theory.prefill import *
from inference_math.theory.interference import *
from inference_math.theory.sla import *
from inference_math.theory.regimes import *
from inference_math.theory.chunked import *
from inference_math.theory.disaggregation import *
from inference_math.theory.unit_time import *
from inference_math.theory.bound import *
from inference_math.theory.sessions import *
from inference_math.theory.stores import *
from inference_math.theory.step import *
from inference_math.theory.queueing import *
from inference_math.theory.first_token import *
from inference_math.theory.cadence import *
from inference_math.theory.routing import *

CATALOGUE: Mapping[str, Formula] = MappingProxyType(
    {name: formula for name, formula in globals().items() if isinstance(formula, Formula)}
)
