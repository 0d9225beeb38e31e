"""Records of a test: those fields alone that it needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Made(dict[str, Any]):
    """Fields by name, read as a record's are; `made | {...}` is another one."""

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        raise AttributeError(name)

    __setattr__ = dict.__setitem__

    def __or__(self, other: Any) -> Made:
        return Made({**self, **other})


def made(kind: Callable[..., Any], **fields: Any) -> Any:
    """Return a record of its own kind, for what makes other ones of it; the fields that are left out are None."""
    return kind(**dict.fromkeys(kind.__struct_fields__) | fields)  # type: ignore[attr-defined]
