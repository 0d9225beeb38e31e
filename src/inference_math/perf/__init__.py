"""The arithmetic of a plan in plain Python: numbers, lists, dicts and functions, no arrays, no classes, no checks.

The book prints these functions as JavaScript, and the formulas that they call from SymPy: the planner's page computes
what `planner.plan` computes, because it is the same code. Keep to what both languages have: `max` and `min` of two
numbers, sorting with a key, no default arguments, no truth of lists.
"""

from inference_math.perf.plan import (
    batch_limits,
    careful,
    compared,
    computed_tokens,
    gains,
    interval,
    keeps,
    kept,
    replicas,
    settings,
    solve,
    under,
)

__all__ = [
    "batch_limits", "careful", "compared", "computed_tokens", "gains", "interval", "keeps", "kept", "replicas",
    "settings", "solve", "under",
]  # fmt: skip
