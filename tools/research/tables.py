"""Writing a derived table the same way everywhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd

WIDTH = 300  # of a line of the descriptor: a field stands in one


def rounded(table: pd.DataFrame, *measured: str, digits: int = 4) -> pd.DataFrame:
    """Return the table with so many significant digits in the columns `measured`, as text; nothing stays nothing."""
    texts = {name: table[name].map(lambda number: _text(number, digits), na_action="ignore") for name in measured}
    return table.assign(**texts)


def write(table: pd.DataFrame, path: Path, *measured: str, digits: int = 4) -> None:
    """Write the columns `measured` with so many significant digits, lines ending in LF; say what was written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rounded(table, *measured, digits=digits).to_csv(path, index=False, lineterminator="\n")
    print(f"{path}: {len(table)} rows, {path.stat().st_size / 1e3:.0f} kB")


def described(value: Any, indent: str = "") -> str:
    """Return a descriptor as JSON, what fits into a line in one."""
    line = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or len(indent + line) <= WIDTH:
        return line
    named = value.items() if isinstance(value, dict) else [(None, one) for one in value]
    inner = indent + " "
    parts = [inner + (f"{json.dumps(name)}: " if name else "") + described(one, inner) for name, one in named]
    first, last = "{}" if isinstance(value, dict) else "[]"
    return "\n".join([first, ",\n".join(parts), indent + last])


def _text(number: float, digits: int) -> str:
    return f"{float(f'{number:.{digits}g}'):.10g}"
