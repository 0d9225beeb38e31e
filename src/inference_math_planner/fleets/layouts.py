"""Which layout serves most per GPU: TP, DP and EP tried under the same draws."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pandas as pd

from inference_math.evidence.checks import as_whole
from inference_math.optimiser import answers
from inference_math.optimiser.case import DRAWS, Case
from inference_math.optimiser.choice import LOOKED, layouts_near, layouts_ranked, tokens_of
from inference_math.optimiser.draws import interval
from inference_math.unit import Unit
from inference_math_planner.answers.deployment import Plan

__all__ = ["layouts", "search"]

COLUMNS = [
    *("architecture", "layout", "tp", "ep", "dp", "pp", "gpus", "rate", "tokens_per_gpu", "low", "high", "best_in"),
    *("loss", "decodes", "ttft", "tpot"),
]
_SIZES = (1, 2, 4, 8, 16)
_MOST = 512  # GPUs among which layouts are tried


def layouts(unit: Unit, gpus: int) -> Iterator[Unit]:
    """Yield the layouts of a unit's model on at most so many GPUs: TP of 1 to 16, and of mixtures DP with EP.

    Those that do not exist are left out: a TP that does not divide the heads, GPUs too few for the weights.
    """
    most = as_whole("gpus", gpus, 1, _MOST)
    for tp in (size for size in _SIZES if size <= most):
        for dp in (size for size in _SIZES if tp * size <= most and (size == 1 or unit.model.is_mixture)):
            for ep in {1, tp * dp} if unit.model.is_mixture else {1}:
                if dp > 1 and ep == 1:
                    continue  # attention in groups goes with whole experts
                try:
                    yield unit.resized(tp=tp, dp=dp, ep=ep, pp=1)
                except ValueError:
                    continue


def search(case: Case, gpus: int = 8) -> tuple[Plan, pd.DataFrame]:
    """Return the plan of the layout that serves most of a GPU in the mean over the draws, and a table of all tried.

    Units of at most `gpus` GPUs. All layouts are asked under a few draws first, and those that come near the best one
    there under all of them; what a layout serves is what its own chosen architecture does. Columns: architecture;
    layout, in words; tp, ep, dp, pp; gpus of a unit; rate (requests/s of a unit); tokens_per_gpu (output tokens/s) with
    low and high, the 5 % and 95 % quantiles; best_in, the share of the draws in which it is the first; loss, how much
    fewer tokens in the mean, as a share of the most; decodes of a unit; ttft and tpot (s). Rates are those at full
    load, as in `plan`.

    Raises
    ------
    ValueError
        Where no layout has room for the model, and as `plan`.

    Examples
    --------
    >>> from inference_math import SLA, Unit, Workload
    >>> from inference_math_planner import Case, search
    >>> found, tried = search(Case(Unit.of("qwen3-30b-a3b", "h100-sxm", 2), Workload(1000, 300), SLA(1.0, 0.04)), 4)
    >>> bool(found.case.unit.tp == tried.tp[0])
    True
    """
    own = case.checked()
    cases = [replace(own, unit=one) for one in layouts(own.unit, gpus)]
    if not cases:
        unit = own.unit
        raise ValueError(f"gpus must be enough for {unit.model.name} in {unit.weights} on {unit.gpu.name}, not {gpus}")
    looked = [tokens_of(one.asked, answers.solve(one.asked, one.pairs(DRAWS)[::LOOKED])) for one in cases]
    plans = [Plan.of(cases[i], DRAWS) for i in layouts_near(looked)]
    each = [tokens_of(one.case.asked, one.solved) for one in plans]
    ranked = layouts_ranked(each, [one.case.unit.gpus for one in plans])
    order = ranked["order"]
    rows = [_row(plans[i], each[i], ranked["best_in"][i], ranked["loss"][i]) for i in order if plans[i].feasible]
    return plans[order[0]], pd.DataFrame(rows, columns=COLUMNS)


def _row(found: Plan, tokens: list[float], best_in: float, loss: float) -> dict[str, object]:
    unit, row = found.case.unit, found.compared.iloc[0]
    middle, low, high = interval(0.0, tokens)
    return {
        "architecture": found.best, "layout": _words(unit), **unit.numbers["layout"], "gpus": unit.gpus,
        "rate": row["rate"],
        "tokens_per_gpu": middle, "low": low, "high": high, "best_in": float(best_in), "loss": float(loss),
        "decodes": row["decodes"], "ttft": row["ttft"], "tpot": row["tpot"],
    }  # fmt: skip


def _words(unit: Unit) -> str:
    sizes = {name: getattr(unit, name) for name in ("dp", "ep")}
    return ", ".join([f"TP {unit.tp}"] + [f"{name.upper()} {size}" for name, size in sizes.items() if size > 1])
