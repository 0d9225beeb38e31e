"""Solvers as another processor has them: what they find is off by a billionth, one number up and the next down."""

import sys
from collections import Counter
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
from scipy import optimize

__all__ = ["nudge"]

_OFF = 1e-9
_SOLVERS = (
    np.linalg.lstsq, np.linalg.solve, np.polyfit,
    optimize.brentq, optimize.curve_fit, optimize.least_squares, optimize.minimize_scalar, optimize.nnls,
)  # fmt: skip


def nudge(sign: int, put: Callable[[Any, str, Any], None] = setattr) -> Counter[str]:
    """Put such solvers in the place of NumPy's and SciPy's, and of those that our modules have imported already.

    Returns how often each was called, which grows.
    """
    calls: Counter[str] = Counter()
    moved = {id(solver): _moved(solver, sign, calls) for solver in _SOLVERS}
    ours = [module for name, module in sys.modules.items() if name.startswith("inference_math")]
    for module in (np, np.linalg, optimize, *ours):
        for name, value in list(vars(module).items()):
            if id(value) in moved:
                put(module, name, moved[id(value)])
    return calls


def _moved(solver: Any, sign: int, calls: Counter[str]) -> Any:
    @wraps(solver)
    def other(*given: Any, **named: Any) -> Any:
        calls[solver.__name__] += 1
        found = solver(*given, **named)
        if isinstance(found, optimize.OptimizeResult):
            found.x = _beside(found.x, sign)
            return found
        return (_beside(found[0], sign), *found[1:]) if isinstance(found, tuple) else _beside(found, sign)

    return other


def _beside(values: Any, sign: int) -> Any:
    signs = sign * (-1.0) ** np.arange(np.size(values)).reshape(np.shape(values))
    return values * (1 + _OFF * signs)
