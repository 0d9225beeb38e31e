"""Numbers as people read them; the page has the same two functions in its own language."""

from __future__ import annotations

__all__ = ["digits", "percent"]


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
