"""Writing a derived table the same way everywhere."""

from __future__ import annotations

from pathlib import Path

import pandas as pd


def write(table: pd.DataFrame, path: Path, *measured: str) -> None:
    """Write the columns `measured` with four significant digits, empty where there is nothing, lines ending in LF.

    Say what was written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    rounded = {column: table[column].map(_digits, na_action="ignore") for column in measured}
    table.assign(**rounded).to_csv(path, index=False, lineterminator="\n")
    print(f"{path}: {len(table)} rows, {path.stat().st_size / 1e3:.0f} kB")


def _digits(number: float) -> str:
    return f"{float(f'{number:.4g}'):.10g}"
