"""What may go in: one place that turns bad input into an error that names the argument."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inference_math.plain_checks import as_one_of, as_whole

__all__ = [
    "ANY_POSITIVE",
    "AT_LEAST_ONE",
    "AT_LEAST_ZERO",
    "EFFICIENCY",
    "SHARE",
    "Interval",
    "as_counts",
    "as_number",
    "as_numbers",
    "as_one_of",
    "as_whole",
]


@dataclass(frozen=True)
class Interval:
    """The finite numbers that an argument accepts, from `low` (excluded if `open_low`) to `high`."""

    low: float
    high: float = math.inf
    open_low: bool = False

    def __str__(self) -> str:
        if math.isinf(self.high):
            return f"a finite number {'>' if self.open_low else '>='} {self.low:g}"
        if self.open_low:
            return f"a number > {self.low:g} and <= {self.high:g}"
        return f"a number from {self.low:g} to {self.high:g}"

    def holds(self, values: NDArray[np.float64]) -> bool:
        """Tell whether every one of `values` is finite and inside."""
        if values.size == 0:
            return True
        # NaN fails both comparisons, so min and max alone decide; no temporary arrays.
        low, high = np.min(values), np.max(values)
        above = low > self.low if self.open_low else low >= self.low
        return bool(above and high <= self.high and high < math.inf)


ANY_POSITIVE = Interval(0, open_low=True)
AT_LEAST_ZERO = Interval(0)
AT_LEAST_ONE = Interval(1)
SHARE = Interval(0, 1)
EFFICIENCY = Interval(0, 1, open_low=True)


def as_numbers(argument: str, value: Any, accepted: Interval) -> NDArray[np.float64]:
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
        array = np.asarray(float(value))
    elif isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"{argument} is a masked array; fill or drop the masked values first")
    else:
        try:
            array = np.asarray(value)
        except ValueError as error:
            raise TypeError(f"{argument} must be a number or a regular array of numbers: {error}") from error
        if array.dtype.kind not in "iuf":
            raise TypeError(f"{argument} must be a number or an array of numbers, not {value!r:.80}")
        array = array.astype(np.float64, copy=False)
    if not accepted.holds(array):
        raise ValueError(f"{argument} must be {accepted}, not {_first_outside(array, accepted)!r}")
    return array


def as_number(argument: str, value: Any, accepted: Interval) -> float:
    """Return `value` as one float; an array of several is refused, too."""
    number = as_numbers(argument, value, accepted)
    if number.ndim:
        raise TypeError(f"{argument} must be one number, not {value!r:.80}")
    return float(number)


def as_counts(argument: str, value: Any) -> NDArray[np.int64]:
    """Return `value` as a list of whole numbers >= 1, at least one of them."""
    counts = as_numbers(argument, value, AT_LEAST_ONE)
    if counts.ndim != 1 or not counts.size or (counts % 1).any():
        raise ValueError(f"{argument} must be a list of whole numbers, one for each request")
    return counts.astype(np.int64)


def _first_outside(array: NDArray[np.float64], accepted: Interval) -> float:
    return next(float(v) for v in array.ravel() if not accepted.holds(np.asarray(v)))
