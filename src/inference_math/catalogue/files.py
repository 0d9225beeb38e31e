"""Files that users write: read, or refused in words that name the file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["parsed", "parsed_file"]


def parsed_file(path: Path, parse: Callable[[str], Any]) -> dict[str, Any]:
    """Return the named fields of a file; whatever is wrong with it is a ValueError that names it."""
    try:
        text = path.read_text(encoding="utf-8")
    except ValueError as error:
        raise ValueError(f"{path} cannot be read: {error}") from error
    return parsed(text, parse, str(path))


def parsed(text: str, parse: Callable[[str], Any], name: str) -> dict[str, Any]:
    """Return the named fields of a text; `name` is what complaints call it."""
    try:
        content = parse(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{name} must hold an object of named fields, not {type(content).__name__}")
    return content
