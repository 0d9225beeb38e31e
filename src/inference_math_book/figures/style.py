"""The look of the book's pictures and tables."""

from __future__ import annotations

import re
from html import escape
from typing import Any

import matplotlib as mpl
import pandas as pd
from cycler import cycler

from inference_math_book.colours import COLOURS, GREY
from inference_math_book.figures.ticks import use_plain_ticks

__all__ = ["Shown", "use_book_style"]


def use_book_style() -> None:
    """Set Matplotlib's defaults for the book: legible, colour-blind safe, `plain` numbers at all ticks."""
    use_plain_ticks()
    mpl.rcParams.update(
        {
            "axes.prop_cycle": cycler(color=COLOURS),
            "axes.axisbelow": True,
            "axes.facecolor": "none",
            "axes.grid": True,
            "axes.spines.right": False,
            "axes.spines.top": False,
            "figure.constrained_layout.use": True,
            "figure.dpi": 120,
            "figure.figsize": (7.2, 4.0),
            "font.size": 11,
            "grid.alpha": 0.3,
            "grid.color": GREY,
            "legend.facecolor": "none",
            "legend.frameon": False,
            "lines.linewidth": 2.0,
        }
    )


_LARGE = 10_000  # in a table


class Shown:
    """A table of a page: rounded for reading, the same bytes in every run, whatever the last digits of a fit are.

    Readers can filter one with a `search` by words; that is what it is called to whoever cannot see it. A table that is
    `folded` opens at a click on these words.
    """

    def __init__(
        self,
        frame: pd.DataFrame,
        name: str,
        numbers: str = "{:,.1f}",
        index: bool = False,
        search: str = "",
        folded: str = "",
    ) -> None:
        self.frame = frame
        self.name = name
        self.numbers = re.sub(r"\{:([+ -]?)", r"{:\1z", numbers)  # nothing is printed as -0
        self.index = index
        self.search = search
        self.folded = folded

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        decimals = self.frame.select_dtypes("float").columns
        words = [i for i, kind in enumerate(self.frame.dtypes) if not pd.api.types.is_numeric_dtype(kind)]
        left: Any = [{"selector": f".col{i}", "props": "text-align: left"} for i in words]
        # The name replaces the random ids of the cells.
        table = self.frame.style.set_uuid(self.name).set_table_styles(left)
        table = table.format(self._printed, subset=decimals, na_rep="–")
        html = (table if self.index else table.hide()).to_html()
        if self.search:
            html = f'<div class="table-search" data-label="{escape(self.search)}">{html}</div>'
        if self.folded:
            html = f'<details class="folded-table"><summary>{escape(self.folded)}</summary>{html}</details>'
        return {
            "text/html": html,
            "text/plain": self.frame.to_string(index=self.index, float_format=self._printed, na_rep="–"),
        }

    def _printed(self, value: object) -> str:
        """Return a number for reading: a large one has neither decimals nor an exponent."""
        assert isinstance(value, float)
        text = self.numbers.format(value)
        return (
            f"{float(text.replace(',', '')):,.0f}" if "e+" in text or (abs(value) >= _LARGE and "." in text) else text
        )
