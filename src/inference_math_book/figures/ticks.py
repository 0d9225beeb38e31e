"""Numbers at the ticks of Matplotlib's axes: plain ones, as many as there is room for."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Literal

import numpy as np
from matplotlib.axis import Axis
from matplotlib.scale import LinearScale, LogScale, register_scale
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter
from numpy.typing import NDArray

__all__ = ["plain", "use_plain_ticks"]

_ENOUGH = 3  # ticks tell a scale
_ROUND = (1, 2, 5, 10)


def plain(number: float) -> str:
    """Return a number as axes have it, in Vega's words ``,.10~r``: no exponent, no zero at the end.

    >>> plain(1000), plain(0.1), plain(-2e7), plain(0.00005)
    ('1,000', '0.1', '−20,000,000', '0.00005')
    """
    return f"{Decimal(f'{number + 0.0:.10g}').normalize():,f}".replace("-", "−")


def use_plain_ticks() -> None:
    """Make linear and logarithmic axes that are drawn from now on have such numbers."""
    for scale in (_Linear, _Log):
        register_scale(scale)


class _Even(MaxNLocator):
    """Round numbers at even distances."""

    def __init__(self, most: int | Literal["auto"] = "auto") -> None:
        super().__init__(most, steps=_ROUND)

    def tick_values(self, vmin: float, vmax: float) -> Any:
        ticks = _seen(super().tick_values(vmin, vmax), vmin, vmax)
        for fewer in range(len(ticks) - 1, 0, -1):
            if _apart(self.axis, ticks, vmin, vmax):
                break
            ticks = _seen(MaxNLocator(fewer, steps=_ROUND).tick_values(vmin, vmax), vmin, vmax)
        return ticks


class _Decades(LogLocator):
    """Powers of the base; of ten with 1, 2 and 5 or 1 and 3 where these are few; on less than that, round numbers."""

    def __init__(self, base: float) -> None:
        super().__init__(base)
        self.powers_of = base

    def tick_values(self, vmin: float, vmax: float) -> Any:
        powers = self._times((1.0,), vmin, vmax)
        if len(powers) >= _ENOUGH:
            strides = (powers[::stride] for stride in range(1, len(powers)))
            return next((few for few in strides if _apart(self.axis, few, vmin, vmax)), powers[:1])
        for subs in ((1.0, 2.0, 5.0), (1.0, 3.0)) if self.powers_of == 10 else ():
            ticks = self._times(subs, vmin, vmax)
            if len(ticks) >= _ENOUGH and _apart(self.axis, ticks, vmin, vmax):
                return ticks
        if len(powers) == _ENOUGH - 1:
            return powers
        even = _Even(5)
        even.set_axis(self.axis)
        return even.tick_values(vmin, vmax)

    def _times(self, subs: tuple[float, ...], vmin: float, vmax: float) -> NDArray[np.float64]:
        self.set_params(subs=subs)
        return _seen(super().tick_values(vmin, vmax), vmin, vmax)


def _seen(ticks: Any, vmin: float, vmax: float) -> NDArray[np.float64]:
    found = np.asarray(ticks, dtype=np.float64)
    return found[(min(vmin, vmax) <= found) & (found <= max(vmin, vmax))]


def _apart(axis: Any, ticks: NDArray[np.float64], vmin: float, vmax: float) -> bool:
    """Tell whether the numbers of these ticks stand beside each other; above each other they do."""
    if axis is None or axis.axis_name != "x" or len(ticks) < 2:
        return True
    # Lengths are in heights of a digit.
    width = np.array([sum(0.64 if one.isdigit() else 0.36 for one in plain(tick)) for tick in ticks])
    low, high, *at = axis.get_transform().transform([vmin, vmax, *ticks])
    between = np.abs(np.diff(at) / (high - low)) * 3 * axis.get_tick_space()
    return bool(np.all(between > (width[:-1] + width[1:]) / 2 + 0.5))


def _numbers() -> FuncFormatter:
    return FuncFormatter(lambda number, _: plain(number))


class _Linear(LinearScale):
    def __init__(self, *args: Any) -> None:
        super().__init__(*(args or (None,)))

    def set_default_locators_and_formatters(self, axis: Axis) -> None:
        super().set_default_locators_and_formatters(axis)
        axis.set_major_locator(_Even())
        axis.set_major_formatter(_numbers())


class _Log(LogScale):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*(args or (None,)), **kwargs)

    def set_default_locators_and_formatters(self, axis: Axis) -> None:
        super().set_default_locators_and_formatters(axis)
        axis.set_major_locator(_Decades(self.base))
        axis.set_major_formatter(_numbers())
        axis.set_minor_formatter(NullFormatter())
