"""Records of a test: those fields alone that it needs."""

from __future__ import annotations

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

    def __copy__(self) -> Made:
        return Made(self)
