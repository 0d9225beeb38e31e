"""Curves with intervals: what users and GPUs get by batch, and the largest batch by prompt length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from inference_math import solver, theory
from inference_math.planner.solve import Case, costs_under
from inference_math.tiers import Tier
from inference_math.unit import Unit
from inference_math.workload import SLA, Workload

__all__ = ["batches", "frontier"]

_DRAWS = 32
_TAIL = 0.05
Factors = tuple[float, float]  # of a step, and of its prompts' part


def frontier(unit: Unit, work: Workload, sizes: Sequence[int], tier: Tier | None = None) -> pd.DataFrame:
    """Return tokens per second of one user and of one GPU for each batch that fits the KV cache, prefill first.

    Columns: batch; per_user and per_gpu, each with _low and _high (90 %).
    """
    most = theory.max_batch_memory(kv_capacity=unit.kv_capacity, n_in=work.n_in, n_out=work.n_out)
    B = np.array([size for size in sizes if size <= most], dtype=float)
    case = Case(unit, work, SLA(1, 1), tier=tier)
    user = _spread(case, lambda one, factors: 1 / costs_under(one, factors).tpot(B))
    gpu = _spread(case, lambda one, factors: costs_under(one, factors).rate(B) * work.n_out / unit.tp)
    columns = {"batch": B.astype(int)}
    for name, (value, low, high) in (("per_user", user), ("per_gpu", gpu)):
        columns |= {name: value, f"{name}_low": low, f"{name}_high": high}
    return pd.DataFrame(columns)


def batches(unit: Unit, work: Workload, sla: SLA, prompts: Sequence[int], tier: Tier | None = None) -> pd.DataFrame:
    """Return the largest batch under an SLA for each prompt length, prefill first, and which limit binds.

    Columns: n_in, batch, batch_low, batch_high (90 %), binding. The mean, or a quantile, of steps by the binomial law.
    """
    rows = []
    for n_in in prompts:
        case = Case(unit, replace(work, n_in=n_in), sla, tier=tier)
        limits = _limits(case)
        binding = min(limits, key=lambda name: limits[name])
        _, low, high = _spread(case, lambda one, factors: np.array(min(_limits(one, factors).values())))
        rows.append({"n_in": n_in, "batch": limits[binding], "batch_low": low, "batch_high": high, "binding": binding})
    return pd.DataFrame(rows)


def _limits(case: Case, factors: Factors = (1.0, 1.0)) -> dict[str, int]:
    return solver.batch_limits(case.plain, costs_under(case, factors).mixed)


def _spread(case: Case, ask: Callable[[Case, Factors], np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return what is asked of a case, and its interval under draws of the calibration."""
    unit = case.unit
    drawn = [
        ask(replace(case, unit=unit.calibrated(one.calibration)), (one.step, one.prompt))
        for one in unit.calibration.draws(_DRAWS)
    ]
    low, high = np.quantile(drawn, (_TAIL, 1 - _TAIL), axis=0, method="inverted_cdf")
    return ask(case, (1.0, 1.0)), low, high
