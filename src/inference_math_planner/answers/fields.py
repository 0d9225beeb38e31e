"""What is asked: one table for the options of the command line and for the forms of the planner's pages."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

__all__ = ["Option", "fields", "on_page"]


class Option(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An option of a command, a row of a form, or both; `fields.toml` says what each key means."""

    help: str = ""
    option: str | None = None
    argument: str = ""
    kind: Literal["text", "int", "float", "promise", "flag", "off", "toggle"] = "text"
    required: bool | tuple[str, ...] = False
    default: str | int | float | list[str] | None = None
    nargs: int | str | None = None
    metavar: str | tuple[str, ...] | None = None
    form: str = ""
    label: str = ""
    low: float = 0.0
    high: float = 0.0
    step: float = 1.0
    value: float | None = None
    empty: str = ""
    log: bool | None = None
    note: str = ""
    notes: dict[str, str] = msgspec.field(default_factory=dict)


@cache
def fields() -> Mapping[str, Mapping[str, Option]]:
    """Return the table by section and name.

    >>> fields()["plan"]["ttft"].label
    'Limit on TTFT (ms)'
    """
    text = Path(__file__).with_name("fields.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), dict[str, dict[str, Option]])


@cache
def on_page() -> Mapping[str, Option]:
    """Return what the forms have, by its name there.

    >>> on_page()["stored"].help
    'share of the prompt that is stored (default 0)'
    """
    rows = ((name, row) for section in fields().values() for name, row in section.items())
    return {row.form or name: row for name, row in rows if row.label}
