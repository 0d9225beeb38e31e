"""Files that users write, read or refused in words that name the file; and files for them, written whole."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["parsed_file", "strict", "unique", "writable", "write"]

LARGEST = 10_000_000  # bytes: a hundred times any configuration


def parsed_file(path: Path, parse: Callable[[str], object]) -> dict[str, Any]:
    """Return the named fields of a file; whatever is wrong with it is a ValueError that names it."""
    if path.exists() and not (path.is_file() and path.stat().st_size <= LARGEST):
        raise ValueError(f"{path} cannot be read: it is no file of at most {LARGEST:,} bytes")
    try:
        content = parse(path.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path} must hold an object of named fields, not {type(content).__name__}")
    return content


def strict(text: str) -> object:
    """Return what a JSON text holds; a field that stands twice in an object is refused, not lost."""
    return json.loads(text, object_pairs_hook=unique)


def writable(path: str | Path) -> Path:
    """Return the file that is written under a path; a ValueError says where none can be."""
    target = Path(path).resolve()
    if target.exists() and not target.is_file():
        raise ValueError(f"{path} cannot be written: it is no plain file")
    if not target.parent.is_dir():
        raise ValueError(f"{path} cannot be written: there is no folder {target.parent}")
    if not os.access(target.parent, os.W_OK):
        raise ValueError(f"{path} cannot be written: this user may not write into {target.parent}")
    return target


def write(path: str | Path, text: str) -> None:
    """Write a file whole or not at all; through a link, its target; never over what is no plain file."""
    target = writable(path)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(name, target.stat().st_mode & 0o777 if target.exists() else 0o644)
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise


def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return the fields of a JSON object, none of which may stand there twice (`object_pairs_hook`)."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"field {next(name for name in names if names.count(name) > 1)!r} stands there twice")
    return fields
