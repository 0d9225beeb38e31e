"""What may go in: one place that turns bad input into an error that names the argument."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

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

# One, or an array of them: what comes out has the shape of what went in.
Numbers: TypeAlias = float | NDArray[np.float64]


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

    def holds(self, lowest: float, highest: float) -> bool:
        """Tell whether all numbers from one to another are finite and inside; NaN is not."""
        above = lowest > self.low if self.open_low else lowest >= self.low
        return above and highest <= self.high and highest < math.inf


ANY_POSITIVE = Interval(0, open_low=True)
AT_LEAST_ZERO = Interval(0)
AT_LEAST_ONE = Interval(1)
SHARE = Interval(0, 1)
EFFICIENCY = Interval(0, 1, open_low=True)


def as_bool(argument: str, value: object) -> bool:
    """Return True or False; anything else is refused."""
    if not isinstance(value, bool):
        raise TypeError(f"{argument} must be True or False, not {value!r:.80}")
    return value


def as_real(argument: str, value: object, accepted: Interval) -> float:
    """Return one real number as a float; outside of `accepted`, or no number at all, it is refused."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{argument} must be a number, not {value!r:.80}")
    try:
        number = float(value)
    except OverflowError as error:
        raise ValueError(f"{argument} must be {accepted}, not one of hundreds of digits") from error
    if not accepted.holds(number, number):
        raise ValueError(f"{argument} must be {accepted}, not {number!r}")
    return number


def as_whole(argument: str, value: object, low: int = 1, high: float = float("inf")) -> int:
    """Return `value` as an int; with a fraction, outside of `low` to `high`, or no number at all, it is refused."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{argument} must be a whole number, not {value!r:.80}")
    try:
        number = float(value)
    except OverflowError as error:
        raise ValueError(f"{argument} must be a whole number >= {low}, not one of hundreds of digits") from error
    if not number.is_integer() or not low <= number <= high:
        accepted = f">= {low}" if high == float("inf") else f"from {low} to {high:g}"
        raise ValueError(f"{argument} must be a whole number {accepted}, not {value!r:.80}")
    return int(number)


def as_one_of(argument: str, value: object, accepted: Iterable[str]) -> str:
    """Return `value` if it is one of `accepted`; otherwise name the closest and all that would do."""
    names = list(accepted)
    if not isinstance(value, str):
        raise TypeError(f"{argument} must be a name, not {value!r:.80}")
    if value not in names:
        close = get_close_matches(value, names, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"{argument} must be one of {', '.join(names)}, not {value!r}{hint}")
    return value


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
