"""The card of the case: what three accounts say of it, as `case_card` of tools/long_plays.py found it."""

from __future__ import annotations

from typing import Any

import pandas as pd
from IPython.display import Markdown

from inference_math.evidence.numerals import digits
from inference_math_book.plays import stored

__all__ = ["WHY", "table", "value"]

WHY = (
    "*Served* is chapter 4's law, fitted to the TPOT of this engine; brackets are 90 % intervals of each number. "
    "*Kernels* are fitted to nothing: operations timed one by one and added up; brackets say how far they are from "
    "served. The *planner* is fitted to such operations and to other served set-ups, not to these rows; brackets hold "
    "90 % of its draws. Its gains and rates also keep 400 ms to the first token. So the columns differ."
)
FOLD = "<details><summary><strong>The case</strong>, by three accounts</summary>"
END = "[All rows of the card](04-delta-p-and-delta-h.ipynb#the-card-of-the-case).\n\n</details>"


def value(name: str, account: str = "served") -> float:
    """Return a number of the card, in the unit of its row.

    Raises
    ------
    ValueError
        For a row or an account that the card does not have.

    Examples
    --------
    >>> from inference_math_book.card import value
    >>> round(value("bound"), 1), round(value("bound", "planner"), 1)
    (7.4, 6.0)
    """
    rows = stored("case_card").set_index("name")
    if name not in rows.index or account not in ("served", "kernels", "planner"):
        raise ValueError(f"the card has no {name!r} by {account!r}")
    return float(rows[account][name])


def table(*names: str) -> Markdown:
    """Return the card in Markdown: all rows, or some of them in a fold with a link to all.

    >>> print(table("batch").data.splitlines()[4])
    | largest batch within 40 ms, aggregated | 19 (18 to 20) | 24 (+26%) | 18 (14 to 23) |
    """
    rows = stored("case_card").set_index("name")
    lines = ["| the case | served | kernels | planner |", "|:---|:---|:---|:---|"]
    for _, row in (rows.loc[list(names)] if names else rows).iterrows():
        by = [_ranged(row, account) for account in ("served", "kernels", "planner")]
        lines.append(f"| {row.label} | {' | '.join(by)} |")
    lines += ["", WHY]
    return Markdown("\n".join([FOLD, "", *lines, END] if names else lines))  # type: ignore[no-untyped-call]


def _ranged(row: Any, account: str) -> str:
    """Return a number with its interval, of kernels with how far they are from served; a setting has neither."""
    middle, low, high = (row.get(f"{account}{end}", row.served) for end in ("", "_low", "_high"))
    if pd.isna(middle):
        return "–"
    if account == "kernels":
        beside = f" ({middle / low - 1:+.0%})".replace("-", "−")  # `low` is what was served
        return digits(middle) + (beside if abs(middle - low) > 0 else "")
    return digits(middle) + (f" ({digits(low)} to {digits(high)})" if low != high else "")
