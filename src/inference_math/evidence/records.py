"""Records: what functions pass on, with named fields. The printer makes plain objects of them in JavaScript."""

from __future__ import annotations

import msgspec

__all__ = ["Record"]


class Record(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Named fields, given by name: an unknown one, or one that is missing, raises `TypeError`.

    `copy.copy` gives another record with the same values, `msgspec.structs.asdict` its fields by name.

    Examples
    --------
    >>> class Layout(Record):
    ...     tp: int
    >>> Layout(tp=2).tp
    2
    """
