"""What takes long to play: pages read it from data/plays.csv, which tools/long_plays.py writes (`make plays`)."""

from __future__ import annotations

import pandas as pd

from inference_math.evidence import load

__all__ = ["stored"]

TEXT = "'"  # before a text that reads as a number, as in a spreadsheet


def stored(name: str) -> pd.DataFrame:
    """Return what the function `name` of tools/long_plays.py gave: a row for each setting, its columns first.

    Raises
    ------
    ValueError
        For a name that no play has.

    Examples
    --------
    >>> from inference_math_book.plays import stored
    >>> list(stored("fan_out"))
    ['tasks', 'requests', 'step', 'round', 'alive']
    """
    table = load("plays").frame
    cells = table[(table["play"] == name) & (table["row"] > 0)]
    if cells.empty:
        raise ValueError(f"name must be that of a play in data/plays.csv, not {name!r}")
    frame = cells.pivot_table("cell", "row", "column", aggfunc="first")[cells["column"].unique()]
    return frame.apply(_typed).reset_index(drop=True).rename_axis(columns=None)


def _typed(column: pd.Series[str]) -> pd.Series[float] | pd.Series[str]:
    """Return a column's numbers, or its texts."""
    try:
        return pd.to_numeric(column)
    except ValueError:
        return column.str.removeprefix(TEXT)
