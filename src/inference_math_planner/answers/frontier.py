"""Curves with intervals: what users and GPUs get by batch, and the largest batch by prompt length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from inference_math.catalogue.tiers import Tier
from inference_math.evidence.checks import as_whole
from inference_math.optimiser import answers
from inference_math.optimiser.case import DRAWS, Case
from inference_math.optimiser.draws import TAIL
from inference_math.unit import Unit
from inference_math.unit.asked import target_of
from inference_math.unit.types import StepCosts, Target
from inference_math.workload import SLA, Workload

__all__ = ["batches", "frontier"]


def frontier(unit: Unit, work: Workload, sizes: Sequence[int], tier: Tier | None = None) -> pd.DataFrame:
    """Return tokens per second of one user and of one GPU for each batch that fits the KV cache, aggregated.

    Columns: batch; per_user and per_gpu, medians of the draws, each with _low and _high (90 %).
    """
    case = Case(unit, work, SLA(1, 1), tier=tier)
    most = unit.places(work)
    B = [as_whole("sizes", size) for size in sizes if size <= most]

    def both(costs: StepCosts) -> np.ndarray:
        return np.array(answers.batch_curve(case.asked, costs["mixed"], B)).T.reshape(2, len(B))

    columns: dict[str, object] = {"batch": B}
    for name, low, value, high in zip(("per_user", "per_gpu"), *_ends(case, both), strict=True):
        columns |= {name: value, f"{name}_low": low, f"{name}_high": high}
    return pd.DataFrame(columns)


def batches(unit: Unit, work: Workload, sla: SLA, prompts: Sequence[int], tier: Tier | None = None) -> pd.DataFrame:
    """Return the largest batch under an SLA for each prompt length, aggregated, and which limit binds.

    Columns: n_in, batch, batch_low, batch_high (90 %), binding. The mean, or a quantile, of steps by the binomial law;
    the median of the draws, as in `plan`.
    """
    rows = []
    for n_in in prompts:
        case = Case(unit, replace(work, n_in=n_in), sla, tier=tier)
        target, told = target_of(case.asked), dict[str, int]()

        def limits(costs: StepCosts, target: Target = target) -> np.ndarray:
            nonlocal told
            told = answers.batch_limits(target, costs, told)
            return np.array([told["TPOT"], told["TTFT"], told["memory"], min(told.values())])

        low, middle, high = _ends(case, limits)
        binding = ("TPOT", "TTFT", "memory")[int(np.argmin(middle[:3]))]
        rows.append({"n_in": n_in, "batch": middle[3], "batch_low": low[3], "batch_high": high[3], "binding": binding})
    return pd.DataFrame(rows)


def _ends(case: Case, ask: Callable[[StepCosts], np.ndarray]) -> np.ndarray:
    """Return the lower end, the median and the upper end of what is asked under draws of a case's calibration."""
    drawn = [ask(answers.under(case.asked, *pair)) for pair in case.pairs(DRAWS)]
    ends: np.ndarray = np.quantile(drawn, (TAIL, 0.5, 1 - TAIL), axis=0, method="inverted_cdf")
    return ends
