"""Records: what functions pass on, with named fields. The printer makes plain objects of them in JavaScript."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

__all__ = ["Record", "plain"]


class Record(msgspec.Struct, kw_only=True):
    """Named fields, given by name: an unknown one, or one that is missing, raises `TypeError`.

    `copy.copy` gives another record with the same values.
    """


def plain(value: Any) -> Any:
    """Return a value with dictionaries in place of records, for JSON and tables.

    >>> class Layout(Record):
    ...     tp: int
    >>> plain([Layout(tp=2)])
    [{'tp': 2}]
    """
    if isinstance(value, Record):
        return {name: plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, Mapping):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value
