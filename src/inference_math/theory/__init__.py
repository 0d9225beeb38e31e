"""The formulas: each one a `Formula`, by name in this module and by ID in `CATALOGUE`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from inference_math.theory import (
    cadence,
    chunked,
    disaggregation,
    first_token,
    interference,
    prefill,
    queueing,
    regimes,
    routing,
    sessions,
    sla,
    step,
    stores,
    tokens,
    unit_time,
)
from inference_math.theory._talks import BOOK as BOOK
from inference_math.theory.cadence import *  # noqa: F403
from inference_math.theory.chunked import *  # noqa: F403
from inference_math.theory.disaggregation import *  # noqa: F403
from inference_math.theory.first_token import *  # noqa: F403
from inference_math.theory.formula import Formula
from inference_math.theory.interference import *  # noqa: F403
from inference_math.theory.prefill import *  # noqa: F403
from inference_math.theory.queueing import *  # noqa: F403
from inference_math.theory.regimes import *  # noqa: F403
from inference_math.theory.routing import *  # noqa: F403
from inference_math.theory.sessions import *  # noqa: F403
from inference_math.theory.sla import *  # noqa: F403
from inference_math.theory.step import *  # noqa: F403
from inference_math.theory.stores import *  # noqa: F403
from inference_math.theory.tokens import *  # noqa: F403
from inference_math.theory.unit_time import *  # noqa: F403

__all__ = [
    "CATALOGUE",
    *tokens.__all__,
    *prefill.__all__,
    *interference.__all__,
    *sla.__all__,
    *regimes.__all__,
    *chunked.__all__,
    *disaggregation.__all__,
    *unit_time.__all__,
    *queueing.__all__,
    *first_token.__all__,
    *cadence.__all__,
    *sessions.__all__,
    *stores.__all__,
    *routing.__all__,
    *step.__all__,
]

CATALOGUE: Mapping[str, Formula] = MappingProxyType(
    {
        name: getattr(module, name)
        for module in (
            tokens,
            prefill,
            interference,
            sla,
            regimes,
            chunked,
            disaggregation,
            unit_time,
            queueing,
            first_token,
            cadence,
            sessions,
            stores,
            routing,
            step,
        )
        for name in module.__all__
        if isinstance(getattr(module, name), Formula)
    }
)
