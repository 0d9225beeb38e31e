"""What may go in: one place that turns bad input into an error that names the argument."""

from __future__ import annotations

import numbers
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from inference_math.checks.plain import (
    ANY_POSITIVE,
    AT_LEAST_ONE,
    AT_LEAST_ZERO,
    EFFICIENCY,
    SHARE,
    Interval,
    as_bool,
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
    "as_whole",
]

Numbers: TypeAlias = (
    float | NDArray[np.float64]
)  # one, or an array of them: what comes out has the shape of what went in


def as_numbers(argument: str, value: object, accepted: Interval) -> NDArray[np.float64]:
    """Return `value` as an array of floats (zero-dimensional for one number).

    Raises
    ------
    TypeError
        For anything but real numbers and arrays of them: strings, booleans, None, complex numbers,
        masked arrays (whose mask would be lost).
    ValueError
        For NaN, infinity, or a number outside `accepted`.
    """
    if isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_):
        return np.asarray(as_real(argument, value, accepted))
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"{argument} is a masked array; fill or drop the masked values first")
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise TypeError(f"{argument} must be a number or a regular array of numbers: {error}") from error
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{argument} must be a number or an array of numbers, not {value!r:.80}")
    array = array.astype(np.float64, copy=False)
    # NaN fails both comparisons, so the ends alone decide; no temporary arrays.
    if array.size and not accepted.holds(array.min(), array.max()):
        raise ValueError(f"{argument} must be {accepted}, not {_first_outside(array, accepted)!r}")
    return array


def as_number(argument: str, value: object, accepted: Interval) -> float:
    """Return `value` as one float; an array of several is refused, too."""
    number = as_numbers(argument, value, accepted)
    if number.ndim:
        raise TypeError(f"{argument} must be one number, not {value!r:.80}")
    return float(number)


def as_counts(argument: str, value: object) -> NDArray[np.int64]:
    """Return `value` as a list of whole numbers >= 1, at least one of them."""
    counts = as_numbers(argument, value, AT_LEAST_ONE)
    if counts.ndim != 1 or not counts.size or (counts % 1).any():
        raise ValueError(f"{argument} must be a list of whole numbers, one for each request")
    return counts.astype(np.int64)


def _first_outside(array: NDArray[np.float64], accepted: Interval) -> float:
    return next(v for v in array.ravel().tolist() if not accepted.holds(v, v))
