"""The case, composed of two slides and worked once: every page that speaks of it takes its numbers from here.

Llama-3-70B with weights in FP8 and a KV cache in BF16 on two H100, 2,200 tokens in, 170 out, 400 ms to the first token
and 40 ms a token, eight units; nothing stored, or 95 % of the prompts on local SSDs. What it costs as served, by
measurements, is in `served`.
"""

from __future__ import annotations

from functools import lru_cache

import pandas as pd

from inference_math.catalogue.engines import engines as records
from inference_math.catalogue.tiers import tier
from inference_math.evidence.numerals import digits
from inference_math.optimiser.architectures import compare
from inference_math.unit import Unit
from inference_math.unit.coefficients import DATASHEET
from inference_math.unit.costs import WorkloadCosts, measured
from inference_math.unit.operators import Operators
from inference_math.unit.rates import acceleration
from inference_math.workload import SLA, Workload
from inference_math_book.served import CASE
from inference_math_planner.answers.deployment import Plan, plan
from inference_math_planner.answers.notes import as_good

__all__ = ["KERNELS", "LENGTHS", "LIMITS", "STORED", "UNIT", "WAIT", "WORK", "engines", "numbers", "planned", "table"]

UNIT = Unit.of("llama-3-70b", "h100-sxm", 2, "fp8", "bf16")
KERNELS = Operators(UNIT.model, tp=UNIT.tp, weights=UNIT.weights, kv=UNIT.kv)
WORK, LIMITS, STORED = Workload(CASE.n_in, CASE.n_out), SLA(ttft=0.4, tpot=0.040), 0.95
WAIT = LIMITS.ttft - UNIT.front.seconds  # what the limit of a client leaves to the engine
LENGTHS = (WORK.n_in, WORK.n_out)  # tokens in and out, of which every chapter's worked numbers are
_STORE = "local_ssd"
_AHEAD = "rate ahead of the next (%)"
_EVEN = {True: "either will do", False: "no tie"}
_SIDES = ("datasheet", "kernels", "fitted")
_READ, _ROWS, _INCREMENT = "KV read (ms)", "read of a decode with its rows (ms)", "ΔH, an engine's increment (ms)"
_TOLD = {
    "alone": "prompt alone (ms)",
    "bound": "1 + ΔP/ΔH",
    "best": "best",
    "lead": _AHEAD,
    "e": "e, local SSDs",
    "chunked": "chunked (requests/s of a unit)",
    "split": "disaggregated (requests/s of a unit)",
}
_ADDED = {"datasheet": _ROWS, "kernels": _ROWS, "fitted": _INCREMENT}  # what one more decode adds, by whose account


@lru_cache
def _costs(side: str, stored: bool) -> WorkloadCosts:
    """Return what requests cost by the datasheet, by measured operators, or by the fitted form."""
    if side == "kernels":
        found = measured(KERNELS, WORK.n_in, WORK.n_out)
        load = STORED * float(found.ttft_1 + found.t_w) / _e(found)
        return found.with_store(STORED, load) if stored else found
    unit = UNIT.calibrated(DATASHEET) if side == "datasheet" else UNIT
    work = Workload(WORK.n_in, WORK.n_out, STORED if stored else 0.0)
    return unit.costs(work, UNIT.gpus * tier(_STORE).read_bw if stored else 0.0)


def _e(alone: WorkloadCosts) -> float:
    """Return e of the SSDs of both GPUs, by what a prompt costs that nothing is stored of."""
    return float(
        acceleration(tier(_STORE), (alone.ttft_1 + alone.t_w) / WORK.n_in, UNIT.model.kv_token(UNIT.kv), UNIT.gpus)
    )


@lru_cache
def table(stored: bool = False) -> pd.DataFrame:
    """Return the case's numbers as text: a row for each quantity, a column for each side, and the planner's medians.

    `stored`: 95 % of the prompts lie on local SSDs.
    """
    columns = {}
    for side in _SIDES:
        costs = _costs(side, stored)
        rows = compare(costs, LIMITS.tpot, WAIT).set_index("architecture")
        ranked = rows.rate.sort_values(ascending=False)
        columns[side] = {
            "weight read and all else fixed, t_w (ms)": digits(float(1e3 * costs.t_w)),
            "prompt alone (ms)": digits(float(1e3 * (costs.ttft_1 + costs.t_w))),
            "ΔP, net of t_w (ms)": digits(float(1e3 * costs.delta_p)),
            "ΔP, gross (ms)": digits(float(1e3 * costs.delta_p_gross)),
            _READ: digits(float(1e3 * costs.cache_read)),
            **{
                name: digits(float(1e3 * costs.delta_h)) if name == _ADDED[side] else "" for name in (_ROWS, _INCREMENT)
            },
            "1 + ΔP/ΔH": digits(float(1 + costs.delta_p / costs.delta_h)),
            "batch by formula": digits(costs.additive.batch_limits(LIMITS.tpot, WAIT).batch[0]),
            "batch, step by step": digits(rows.batch["aggregated"]),
            "aggregated (requests/s of a unit)": digits(rows.rate["aggregated"]),
            "chunked (requests/s of a unit)": digits(rows.rate["chunked"]),
            "disaggregated (requests/s of a unit)": digits(rows.rate["disaggregated"]),
            "e, local SSDs": digits(_e(_costs(side, False))),
            "best": str(ranked.index[0]),
            _AHEAD: f"{100 * (ranked.iloc[0] / ranked.iloc[1] - 1):.0f}",
        }
    columns["plan"] = _medians(planned(stored))
    return pd.DataFrame(columns).fillna("").rename_axis("quantity").reset_index()


def _medians(found: Plan) -> dict[str, str]:
    """Return what the planner prints of these quantities: medians of the fitted form's draws."""
    rates = found.compared.set_index("architecture")["rate"]
    batch = found.answers["batch"]
    return {
        "weight read and all else fixed, t_w (ms)": digits(1e3 * found["t_w"]),
        "ΔP, net of t_w (ms)": digits(1e3 * found["delta_p"]),
        "ΔP, gross (ms)": digits(1e3 * found["delta_p_gross"]),
        _INCREMENT: digits(1e3 * found["delta_h"]),
        "1 + ΔP/ΔH": digits(found["gain_bound"]),
        "batch by formula": digits(batch.by_formula),
        "batch, step by step": digits(batch.value),
        "e, local SSDs": digits(_e_of_the_plan()),
        "best": found.best,
        _AHEAD: f"{100 * found['margin']:.0f}",
    } | {f"{name} (requests/s of a unit)": digits(rates[name]) for name in rates.index}


@lru_cache
def planned(stored: bool = False) -> Plan:
    """Return the planner's answer to the case."""
    work = Workload(WORK.n_in, WORK.n_out, STORED if stored else 0.0)
    return plan(UNIT, work, LIMITS, tier=tier(_STORE) if stored else None)


@lru_cache
def engines() -> pd.DataFrame:
    """Return the planner's answer to the case on each engine, a row each."""
    rows = []
    for name, record in records().items():
        found = plan(UNIT.resized(engine=name), WORK, LIMITS)
        lead, varies = (f"{100 * found.solved[key]:.1f}" for key in ("lead", "scatter"))
        rows.append(
            {
                "engine": record["title"],
                "serves most": found.best,
                "requests/s of a unit": digits(found["rate"]),
                "best in (% of the draws)": f"{100 * found.best_in:.0f}",
                "next": found.order[1],
                "which serves less by (%)": lead,
                "and that varies by (%)": varies,
                "a tie": "yes" if found.tie else "no",
            }
        )
    return pd.DataFrame(rows)


def _e_of_the_plan() -> float:
    """Return the planner's e of the local SSDs."""
    return float(planned(True).offloading.set_index("where").e[_STORE])


def numbers() -> dict[str, str]:
    """Return the case's numbers for the prose, by the keys under which every page glues them."""
    told: dict[str, str] = {}
    for stored, mark in ((False, ""), (True, "_stored")):
        rows = table(stored).set_index("quantity")
        for side in _SIDES:
            told |= {f"case{mark}_{side}_{key}": str(rows.loc[name, side]) for key, name in _TOLD.items()}
        found = planned(stored)
        told |= {
            f"case{mark}_plan_bound": digits(found["gain_bound"]),
            f"case{mark}_plan_best": found.best,
            f"case{mark}_plan_margin": f"{100 * found['margin']:.0f}",
            f"case{mark}_plan_scatter": f"{100 * found.solved['scatter']:.1f}",
            f"case{mark}_plan_lead": f"{100 * found.solved['lead']:.1f}",
            f"case{mark}_plan_tie": "a tie" if found.tie else _EVEN[as_good(found.solved["lead"])],
            f"case{mark}_plan_sure": f"{100 * found.best_in:.0f}",
        }
    return told | {
        "case_front": digits(1e3 * UNIT.front.seconds),
        "case_plan_front": digits(1e3 * planned()["front"]),
        "case_wait": digits(1e3 * WAIT),
        "case_plan_e": digits(_e_of_the_plan()),
    }
