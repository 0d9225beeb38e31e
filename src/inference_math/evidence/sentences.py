"""Sentences from what was chosen: templates with holes, filled in; the page does the same in its own language.

A part is ``{"key": ..., hole: value, ...}``: a template of `sentences.toml`, by its table and name, and what stands in
its holes. Where a record brings a template of its own, it is the part's ``"text"``.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from inference_math.evidence.numerals import as_gb, digits, in_ms, in_seconds, most_of, percent

__all__ = ["HOLE", "JOINS", "is_of", "render", "templates"]

HOLE = re.compile(r"\{(\w+)(?::(\w+)|\|([^|{}]*)\|((?:[^{}]|\{\})*))?\}")  # {name}, {name:format}, {name|one|others}
JOINS = {
    "and": " and ",
    "commas": ", ",
    "lines": "\n",
    "or": " or ",
    "semicolons": "; ",
    "then": ", then ",
    "words": " ",
}
_FORMATS = {"digits": digits, "gb": as_gb, "most": most_of, "ms": in_ms, "percent": percent, "seconds": in_seconds}


@cache
def templates() -> Mapping[str, str]:
    """Return the templates by their keys."""
    tables = tomllib.loads(Path(__file__).with_name("sentences.toml").read_text(encoding="utf-8"))
    return {f"{table}.{name}": text for table, rows in tables.items() for name, text in rows.items()}


def render(said: Any) -> str:
    """Return what a part says, or parts in a row; names and numbers say themselves.

    >>> render([{"key": "gpus.cost", "each": [{"key": "gpus.costs", "name": "b200", "cost": 0.25}]}, "."])
    'an output token costs least on b200 ($0.25 a million).'
    """
    if isinstance(said, list | tuple):
        return "".join(map(render, said))
    if not isinstance(said, Mapping):
        return str(said)
    template = said["text"] if "text" in said else templates()[said["key"]]
    return HOLE.sub(lambda hole: _filled(said[hole[1]], *hole.groups()[1:]), template)


def is_of(key: str, said: str) -> bool:
    """Tell whether a sentence is of a template, whatever stands in its holes.

    >>> is_of("outside.long", render({"key": "outside.long", "tokens": 9e3, "context": 8192, "model": "llama-3-8b"}))
    True
    """
    texts = HOLE.split(templates()[key])[:: HOLE.groups + 1]
    return re.fullmatch(".*".join(map(re.escape, texts)), said) is not None


def _filled(value: Any, form: str | None, one: str | None, others: str | None) -> str:
    """Return what stands in a hole: in its format, or one of two texts."""
    if one is not None and others is not None:
        return one if value == 1 else others.replace("{}", digits(value))
    if form in JOINS:
        return JOINS[form].join(map(render, value))
    return _FORMATS[form](value) if form else render(value)
