"""Arguments: what is accepted, and errors that name what was given instead."""

from __future__ import annotations

from inference_math.checks.numbers import (
    ANY_POSITIVE,
    AT_LEAST_ONE,
    AT_LEAST_ZERO,
    EFFICIENCY,
    SHARE,
    Interval,
    Numbers,
    as_bool,
    as_counts,
    as_number,
    as_numbers,
    as_one_of,
    as_real,
    as_whole,
)

__all__ = [
    "ANY_POSITIVE",
    "AT_LEAST_ONE",
    "AT_LEAST_ZERO",
    "EFFICIENCY",
    "SHARE",
    "Interval",
    "Numbers",
    "as_bool",
    "as_counts",
    "as_number",
    "as_numbers",
    "as_one_of",
    "as_real",
    "as_whole",
]
