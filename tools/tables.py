"""Writing a derived table the same way everywhere."""

from __future__ import annotations

from pathlib import Path

import pandas as pd


def write(table: pd.DataFrame, path: Path, *measured: str) -> None:
    """Write the columns `measured` with four significant digits, lines ending in LF; say what was written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rounded = {column: table[column].map(lambda t: f"{float(f'{t:.4g}'):.10g}") for column in measured}
    table.assign(**rounded).to_csv(path, index=False, lineterminator="\n")
    print(f"{path}: {len(table)} rows, {path.stat().st_size / 1e3:.0f} kB")
