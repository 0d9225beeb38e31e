"""Our own measurements of GPUs, each with the unit that was measured."""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd

from inference_math import Unit, evidence
from inference_math_planner.calibrate import from_kernels

__all__ = ["Own", "ours"]


class Own(NamedTuple):
    """A unit and its measured times, a row for each point: see `from_kernels.times`."""

    unit: Unit
    times: pd.DataFrame


def ours() -> list[Own]:
    """Return every measurement of ours: the tables `steps_*` of the data.

    Examples
    --------
    >>> sorted({own.unit.gpu.name for own in ours()})
    ['h100-sxm', 'h200-sxm']
    """
    tables = [evidence.load(name) for name in evidence.tables() if name.startswith("steps_")]
    return [Own(from_kernels.unit(table), from_kernels.times(table)) for table in tables]
