"""The look of the book's pictures, the numbers at their ticks, and the download beneath them."""

from __future__ import annotations

import base64
import re
from decimal import Decimal
from html import escape
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.scale import LinearScale, LogScale, register_scale
from matplotlib.ticker import AutoLocator, FuncFormatter, LogLocator, NullFormatter

from inference_math_book.colours import COLOURS, GREY

__all__ = ["Download", "Shown", "label_line", "plain", "use_book_style"]


def plain(number: float) -> str:
    """Return a number as axes have it, in Vega's words ``,.10~r``: no exponent, no zero at the end.

    >>> plain(1000), plain(0.1), plain(-2e7), plain(0.00005)
    ('1,000', '0.1', '−20,000,000', '0.00005')
    """
    return f"{Decimal(f'{number + 0.0:.10g}').normalize():,f}".replace("-", "−")


class _Decades(LogLocator):
    """Powers of the base; 1, 2 and 5 where there are few of these; on less than that, what is round."""

    def __init__(self, base: float) -> None:
        super().__init__(base)
        self.base_of_powers = base

    def tick_values(self, vmin: float, vmax: float) -> Any:
        for subs in ((1.0,), (1.0, 2.0, 5.0)):
            if self.base_of_powers > max(subs):
                self.set_params(subs=subs)
                ticks = np.asarray(super().tick_values(vmin, vmax))
                if np.sum((min(vmin, vmax) <= ticks) & (ticks <= max(vmin, vmax))) >= _TICKS:
                    return ticks
        return AutoLocator().tick_values(vmin, vmax)


_TICKS = 3  # that tell a scale


class _Linear(LinearScale):
    def __init__(self, *args: Any) -> None:
        super().__init__(*(args or (None,)))

    def set_default_locators_and_formatters(self, axis: Axis) -> None:
        super().set_default_locators_and_formatters(axis)
        axis.set_major_formatter(FuncFormatter(lambda number, _: plain(number)))


class _Log(LogScale):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*(args or (None,)), **kwargs)

    def set_default_locators_and_formatters(self, axis: Axis) -> None:
        super().set_default_locators_and_formatters(axis)
        axis.set_major_locator(_Decades(self.base))
        axis.set_major_formatter(FuncFormatter(lambda number, _: plain(number)))
        axis.set_minor_formatter(NullFormatter())


def use_book_style() -> None:
    """Set Matplotlib's defaults for the book: legible, colour-blind safe, `plain` numbers at all ticks."""
    for scale in (_Linear, _Log):
        register_scale(scale)
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


def label_line(ax: Axes, x: float, y: float, text: str, colour: str, up: float = 0.0) -> None:
    """Write `text` beside the point (x, y) of a curve, in the curve's colour, some points further up."""
    ax.annotate(text, (x, y), xytext=(5, up), textcoords="offset points", color=colour, va="center", clip_on=False)


class Download:
    """A link under a figure to the numbers that it shows, carried by the page itself."""

    def __init__(self, frame: pd.DataFrame, name: str) -> None:
        self.frame = frame
        self.name = name

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        # Six digits, so that every processor writes the same file.
        text = self.frame.to_csv(index=False, float_format="%.6g", lineterminator="\n")
        data = base64.b64encode(text.encode()).decode()
        link = (
            f'<p class="figure-data"><a download="{self.name}.csv" href="data:text/csv;base64,{data}">'
            f"Download the numbers of this figure ({self.name}.csv)</a></p>"
        )
        return {"text/html": link, "text/plain": f"{self.name}.csv: {len(self.frame)} rows"}


_LARGE = 10_000  # in a table


class Shown:
    """A table of a page: rounded for reading, the same bytes in every run, whatever the last digits of a fit are.

    Readers can filter one with a `search` by words; that is what it is called to whoever cannot see it.
    """

    def __init__(
        self, frame: pd.DataFrame, name: str, numbers: str = "{:,.1f}", index: bool = False, search: str = ""
    ) -> None:
        self.frame = frame
        self.name = name
        self.numbers = re.sub(r"\{:([+ -]?)", r"{:\1z", numbers)  # nothing is printed as -0
        self.index = index
        self.search = search

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        decimals = self.frame.select_dtypes("float").columns
        words = [i for i, kind in enumerate(self.frame.dtypes) if not pd.api.types.is_numeric_dtype(kind)]
        left: Any = [{"selector": f".col{i}", "props": "text-align: left"} for i in words]
        # The name replaces the random ids of the cells.
        table = self.frame.style.set_uuid(self.name).set_table_styles(left)
        table = table.format(self._printed, subset=decimals, na_rep="–")
        html = (table if self.index else table.hide()).to_html()
        return {
            "text/html": f'<div class="table-search" data-label="{escape(self.search)}">{html}</div>'
            if self.search
            else html,
            "text/plain": self.frame.to_string(index=self.index, float_format=self._printed, na_rep="–"),
        }

    def _printed(self, value: object) -> str:
        """Return a number for reading: a large one has neither decimals nor an exponent."""
        assert isinstance(value, float)
        text = self.numbers.format(value)
        return (
            f"{float(text.replace(',', '')):,.0f}" if "e+" in text or (abs(value) >= _LARGE and "." in text) else text
        )
