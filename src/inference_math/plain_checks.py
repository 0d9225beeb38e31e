"""The checks that need no NumPy: of one whole number and of a name."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

__all__ = ["as_one_of", "as_whole"]


def as_whole(argument: str, value: Any, low: int = 1) -> int:
    """Return `value` as an int; a number with a fraction, below `low`, or no number at all is refused."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{argument} must be a whole number, not {value!r:.80}")
    number = float(value)
    if not number.is_integer() or number < low:
        raise ValueError(f"{argument} must be a whole number >= {low}, not {value!r}")
    return int(number)


def as_one_of(argument: str, value: Any, accepted: Iterable[str]) -> str:
    """Return `value` if it is one of `accepted`; otherwise name the closest and all that would do."""
    names = list(accepted)
    if not isinstance(value, str):
        raise TypeError(f"{argument} must be a name, not {value!r:.80}")
    if value not in names:
        close = get_close_matches(value, names, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"{argument} must be one of {', '.join(names)}, not {value!r}{hint}")
    return value
