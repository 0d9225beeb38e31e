"""The rate of products in BF16, from whole steps of our own: kernels that are timed one by one are faster.

A kernel by itself runs for some milliseconds, at the clock of a cool GPU. In whole steps products follow one another at
the limit of the GPU's power, between norms and activations, and reach a smaller share of the datasheet: empirical. On
an H100 and an H200 the shares of four tables are within 3 % of 0.65, where products one by one reach 0.80. In FP8 steps
say what products say, so that rate stays the operators'.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from inference_math.evidence import load
from inference_math.unit.coefficients import DATASHEET, Coefficients
from inference_math_planner.calibrate import from_kernels

__all__ = ["TABLES", "new_unit", "rates"]

# Models, GPUs, and one of them on another machine: each in BF16.
TABLES = [
    "steps_h100_sxm_llama_3_8b_bf16", "steps_h100_sxm_qwen3_14b_bf16", "steps_h200_sxm_llama_3_8b_bf16",
    "again_h100_sxm_llama_3_8b_bf16",
]  # fmt: skip
_LEAST, _MOST = 0.2, 1.0


def rates(coefficients: Coefficients) -> pd.Series[float]:
    """Return by table the share of the BF16 rate that its steps with prompts reach, the other coefficients given.

    Least squares of log(predicted / measured) over prompts that find nothing cached, alone and beside decodes; their
    attention reaches the same share. What a prompt finds cached it attends to by another kernel, which engines lack.
    """
    return pd.Series({name: _rate(name, coefficients) for name in TABLES})


def _rate(name: str, coefficients: Coefficients) -> float:
    table = load(name)
    unit, times = from_kernels.unit(table), from_kernels.times(table)
    rows = times[times["what"].isin(["prefill", "mixed"]) & (times["cached"] == 0)]
    measured = rows["seconds"].to_numpy(dtype=float)

    def misses(share: float) -> float:
        given = replace(coefficients, bf16=share, attention=share)
        told = from_kernels.predicted(rows, unit.calibrated(replace(DATASHEET, coefficients=given)))
        return float(np.sum(np.log(told / measured) ** 2))

    return float(minimize_scalar(misses, bounds=(_LEAST, _MOST), method="bounded", options={"xatol": 1e-5}).x)


def new_unit(found: pd.Series[float]) -> tuple[float, float]:
    """Return the geometric mean of shares, and the standard deviation of the logarithm for a unit that is none of them.

    n of them tell it: Student's t with n - 1 degrees of freedom, of one more (n + 1 over n).
    """
    logs: NDArray[np.float64] = np.log(found.to_numpy(dtype=float))
    n = len(logs)
    return float(np.exp(logs.mean())), float(logs.std(ddof=1) * np.sqrt((n + 1) / n * (n - 1) / (n - 3)))
