"""Numbers as people read them; the page has the same functions in its own language."""

from __future__ import annotations

from math import isfinite

__all__ = ["as_gb", "digits", "in_ms", "in_seconds", "most_of", "percent"]


def digits(number: float) -> str:
    """Return a number with three digits, from a hundred on whole.

    >>> digits(0.12345), digits(1234.5)
    ('0.123', '1,234')
    """
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"


def percent(share: float) -> str:
    """Return a share in whole per cent.

    >>> percent(0.057)
    '6%'
    """
    return f"{share:.0%}"


def most_of(number: float) -> str:
    """Return the upper end of an interval, which may be infinite."""
    return digits(number) if isfinite(number) else "no number"


def in_ms(seconds: float) -> str:
    """Return a time in ms."""
    return f"{digits(1e3 * seconds)} ms"


def in_seconds(seconds: float) -> str:
    """Return a time in s, or in ms below one; a dash for NaN.

    >>> in_seconds(1.5), in_seconds(0.02), in_seconds(float("nan"))
    ('1.5 s', '20 ms', '-')
    """
    if not seconds >= 0:
        return "-"
    return f"{digits(seconds)} s" if seconds >= 1 else in_ms(seconds)


def as_gb(gb: float) -> str:
    """Return a size in GB, or from a thousand on in TB."""
    return f"{digits(gb / 1e3)} TB" if gb >= 1e3 else f"{digits(gb)} GB"
