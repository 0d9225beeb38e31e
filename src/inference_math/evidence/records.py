"""Records: what functions pass on, with named fields. The printer makes plain objects of them in JavaScript."""

from __future__ import annotations

from typing import dataclass_transform

import msgspec

__all__ = ["OpenRecord", "Record"]


class OpenRecord(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Named fields that are filled in one after the other; else as a `Record`."""


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Named fields that nobody changes: an unknown one, or one that is missing, raises `TypeError`.

    `msgspec.structs.replace` gives another record with other values, `msgspec.structs.asdict` its fields by name.

    Examples
    --------
    >>> class Layout(Record):
    ...     tp: int
    >>> Layout(tp=2).tp
    2
    """
