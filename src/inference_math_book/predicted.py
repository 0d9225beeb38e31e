"""Measured tables with what a release predicts for them beside, as chapters show them."""

from __future__ import annotations

import pandas as pd

from inference_math.evidence import load

__all__ = ["beside"]

_FIRST = 2  # the line of a file's first point, as a spreadsheet counts


def beside(measured: str, *tables: str) -> pd.DataFrame:
    """Return the rows of a measured table that are predicted, with the columns of `predicted_NAME` beside them.

    Other `tables` that name its rows come beside these, their name after that of each column; missing where they lack a
    row.

    Examples
    --------
    >>> from inference_math_book.predicted import beside
    >>> points = beside("mlenergy")
    >>> bool((points["step"] / (points["itl_p50_ms"] / 1e3)).between(0.4, 1.6).all())
    True
    """
    said = load(f"predicted_{measured}").frame.set_index("row")
    rows = load(measured).frame.set_axis(range(_FIRST, _FIRST + len(load(measured).frame)))
    found = said.join(rows)[[*rows.columns, *said.columns]]
    for name in tables:
        found = found.join(load(name).frame.set_index("row").add_suffix(f"_{name}"))
    return found.reset_index(drop=True)
