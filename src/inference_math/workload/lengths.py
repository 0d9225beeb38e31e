"""How answers scatter. Printed as JavaScript for the planner's page, which asks with the same."""

from __future__ import annotations

from math import sqrt

__all__ = ["geometric_cv"]


def geometric_cv(n_out: float) -> float:
    """Return the coefficient of variation of geometric lengths with a mean of `n_out` tokens.

    >>> geometric_cv(4 / 3)
    0.5
    """
    return sqrt(1 - 1 / n_out)
