"""Writing a derived table the same way everywhere."""

from __future__ import annotations

from pathlib import Path

import pandas as pd


def rounded(table: pd.DataFrame, *measured: str) -> pd.DataFrame:
    """Return the table with four significant digits in the columns `measured`, as text; nothing stays nothing."""
    return table.assign(**{column: table[column].map(_digits, na_action="ignore") for column in measured})


def write(table: pd.DataFrame, path: Path, *measured: str) -> None:
    """Write the columns `measured` with four significant digits, lines ending in LF; say what was written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rounded(table, *measured).to_csv(path, index=False, lineterminator="\n")
    print(f"{path}: {len(table)} rows, {path.stat().st_size / 1e3:.0f} kB")


def _digits(number: float) -> str:
    return f"{float(f'{number:.4g}'):.10g}"
