"""One unit: how weight read and compute share a step, its parts, and how far it is from measurements.

Drawn on given axes; every function returns the numbers it drew.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from inference_math import theory
from inference_math.unit import Unit
from inference_math.unit.operators import Operators
from inference_math_book.colours import COLOURS

__all__ = ["combined", "parity", "step_parts"]


def combined(operators: Operators) -> pd.DataFrame:
    """Return the measured matrix products of all layers by tokens, and three ways to combine the two limits."""
    frame = operators.products().query("tokens <= 4096")
    alone = frame.gemm.iloc[0]
    most = frame.iloc[-1]
    compute = float(np.sqrt(most.gemm**2 - alone**2) / most.tokens) * frame.tokens
    return frame.assign(
        quadrature=theory.step_time(t_w=alone, t_c=compute, t_rest=0),
        maximum=theory.step_serial(t_w=alone, t_c=compute, t_rest=0),
        added=theory.step_additive(t_w=alone, t_c=compute, t_rest=0),
    )


def step_parts(ax: Axes, unit: Unit, steps: Mapping[str, tuple[float, float, float]]) -> pd.DataFrame:
    """Draw the parts of each of `steps` (decodes, context, prefill tokens) as a stacked bar."""
    frame = pd.DataFrame({name: unit.parts(*step) for name, step in steps.items()}).T
    # Weights and matrices share the step: only together do they have a length.
    shared = theory.step_time(t_w=frame.pop("weights"), t_c=frame.pop("matrices"), t_rest=0)
    frame.insert(0, "weights and matrices", shared)
    left = np.zeros(len(frame))
    for part, colour in zip(frame.columns, COLOURS, strict=True):
        ax.barh(frame.index, 1e3 * frame[part], left=1e3 * left, color=colour, label=part)
        left += frame[part].to_numpy()
    ax.set(xlabel="time of the step (ms)")
    ax.invert_yaxis()
    ax.legend(fontsize=9)
    return frame.rename_axis("step").reset_index()


def parity(ax: Axes, frame: pd.DataFrame) -> pd.DataFrame:
    """Draw predicted against measured end-to-end latency, a colour for each precision, and the datasheet's limit."""
    for precision, colour, mark in zip(sorted(frame.precision.unique()), COLOURS, "os", strict=False):
        rows = frame[frame.precision == precision]
        ax.loglog(rows.measured, rows.predicted, mark, color=colour, markersize=5, label=f"{precision}, predicted")
        ax.loglog(
            rows.measured,
            rows.limit,
            mark,
            color=colour,
            markersize=5,
            fillstyle="none",
            label=f"{precision}, datasheet",
        )
    ends = np.array([frame.measured.min(), frame.measured.max()])
    ax.loglog(ends, ends, color="black", linewidth=0.9)
    ax.set(xlabel="measured latency of a request (s)", ylabel="predicted (s)")
    ax.legend(fontsize=9)
    return frame
