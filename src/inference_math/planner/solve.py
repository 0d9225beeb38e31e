"""All numbers of a deployment under one calibration: the formulas of `theory`, and three ways to serve compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from inference_math import architectures, theory
from inference_math.costs import LIMITS, Costs
from inference_math.tiers import Tier, tiers
from inference_math.unit import Unit
from inference_math.workload import SLA, Workload

__all__ = ["Case", "Solved", "batch_limits", "costs_of", "floored", "offloading", "solve"]


@dataclass(frozen=True)
class Case:
    """What is asked: who serves what under which promise; see `plan` for the parameters."""

    unit: Unit
    work: Workload
    sla: SLA
    units: int = 8
    tier: Tier | None = None
    price: float | None = None


@dataclass(frozen=True, eq=False)
class Solved:
    """All numbers by name, the comparison of architectures, what requests cost, which limit binds prefill first."""

    numbers: Mapping[str, float]
    compared: pd.DataFrame
    costs: Costs
    binding: str

    @property
    def order(self) -> tuple[str, str]:
        """The two architectures with the highest rates."""
        names = self.compared.sort_values("rate", ascending=False, kind="stable")["architecture"].tolist()
        return str(names[0]), str(names[1])

    @property
    def best(self) -> str:
        """The first of them; "" where none meets the SLA."""
        return self.order[0] if self.compared["rate"].max() > 0 else ""


def solve(case: Case, *, factor: float = 1.0, order: tuple[str, str] | None = None) -> Solved:
    """Return the numbers of a case; `factor` stretches every time, as far as the datasheet allows.

    `order` names the architectures whose rate and lead are asked for; None: the two with the highest rates.
    """
    unit, work, sla = case.unit, case.work, case.sla
    costs = floored(costs_of(unit, work, case.tier), costs_of(unit.limit, work, case.tier), factor)
    limits = batch_limits(costs, sla)
    compared = architectures.compare(costs, sla.tpot, sla.ttft, units=case.units, quantile=sla.quantile)
    rows = compared.set_index("architecture")
    batch = float(rows["batch"]["aggregated"])
    numbers: dict[str, float] = {f"batch_{name.lower()}": limits[name] for name in LIMITS}
    numbers |= {
        "batch": batch,
        "t_w": float(costs.t_w), "delta_p": float(costs.delta_p), "delta_h": float(costs.read),
        "concurrent_prefills": theory.concurrent_prefills(B=max(batch, 1), n_out=work.n_out),
        "pdd_concurrency": theory.pdd_concurrency(sla_ttft=sla.ttft, n_out=work.n_out, sla_tpot=sla.tpot),
        # Of a prompt an engine counts what it computes.
        "chunk": float(rows["chunk"]["chunked"]) * (1 - work.alpha),
        "prefill_units": float(rows["prefill_units"]["disaggregated"]),
    }  # fmt: skip
    binding = " and ".join(name for name in LIMITS if limits[name] == min(limits.values()))
    found = Solved(numbers, compared, costs, binding)
    return Solved(numbers | _of_architectures(case, compared, order or found.order), compared, costs, binding)


def _of_architectures(case: Case, compared: pd.DataFrame, order: tuple[str, str]) -> dict[str, float]:
    rows = compared.set_index("architecture")
    rates = {str(name): float(rate) for name, rate in rows["rate"].items()}
    rate, second, plain = rates[order[0]], rates[order[1]], rates["aggregated"]
    tokens = rate * case.work.n_out / case.unit.tp
    numbers = {
        "ttft": float(rows["ttft"][order[0]]),
        "tpot": float(rows["tpot"][order[0]]),
        "chunked_gain": rates["chunked"] / plain if plain else np.nan,
        "pdd_gain": rates["disaggregated"] / plain if plain else np.nan,
        "rate": rate,
        "margin": rate / second - 1 if second else np.nan,
        "tokens_per_gpu": tokens,
    }
    if case.price is not None:
        numbers["usd_per_million"] = case.price / 3600 / tokens * 1e6 if tokens else np.nan
    return numbers


def costs_of(unit: Unit, work: Workload, tier: Tier | None) -> Costs:
    """Return the costs of `work` with its stored share in HBM, or loaded from `tier` beside computing the rest.

    The engine loads all that is stored, layer by layer, and waits where that takes longer than computing [C05].
    """
    in_hbm = unit.costs(work)
    if tier is None or not work.alpha:
        return in_hbm
    R = theory.kv_load_time(kv_token=unit.model.kv_token(unit.kv), io_bw=unit.tp * tier.read_bw)
    load = R * work.alpha * work.n_in
    mixed = in_hbm.mixed
    assert mixed is not None

    def waits(decodes: Any, prompts: Any) -> Any:
        bare = mixed(decodes, 0.0)
        return bare + np.maximum(mixed(decodes, prompts) - bare, load * prompts)

    return replace(in_hbm, ttft_1=max(load, in_hbm.ttft_1), compute=None, mixed=waits)


def floored(costs: Costs, least: Costs, factor: float) -> Costs:
    """Return the costs with every time `factor` times longer, none below that of `least`, at datasheet rates."""
    return costs.stretched(max(factor, *(getattr(least, n) / getattr(costs, n) for n in ("t_w", "ttft_1", "read"))))


def offloading(case: Case) -> pd.DataFrame:
    """Return what loading the stored share of the prompts gains, by where it lies.

    Columns: where ("nowhere", where all is computed, and each of `tiers.tiers`), e (how much faster a token is loaded
    than computed), speedup (of what a prefill adds to the steps of others), rate (requests/s per unit, of the best
    architecture) and gain (of the rate, over computing all).
    """
    unit, work, sla = case.unit, case.work, case.sla
    places: list[tuple[str, Workload, Tier | None]] = [("nowhere", replace(work, alpha=0.0), None)]
    if work.alpha:
        places += [(name, work, tier) for name, tier in tiers().items()]
    T, rows = unit.token_time(work.n_in), []
    for where, sent, tier in places:
        costs = costs_of(unit, sent, tier)
        rate = architectures.compare(costs, sla.tpot, sla.ttft, units=case.units, quantile=sla.quantile)["rate"].max()
        e = tier.acceleration(T, unit.model.kv_token(unit.kv), unit.tp) if tier else np.nan
        rows.append({"where": where, "e": e, "ttft_1": float(costs.ttft_1), "rate": rate})
    frame = pd.DataFrame(rows)
    frame["speedup"] = frame["ttft_1"].iloc[0] / frame["ttft_1"]
    frame["gain"] = frame["rate"] / frame["rate"].iloc[0] if frame["rate"].iloc[0] else np.nan
    return frame[["where", "e", "speedup", "rate", "gain"]]


def batch_limits(costs: Costs, sla: SLA) -> dict[str, int]:
    """Return the largest batch by each of `LIMITS`, prefill first: of means, or of a quantile."""
    memory = theory.max_batch_memory(kv_capacity=costs.kv_capacity, n_in=costs.n_in, n_out=costs.n_out)
    return {
        "TPOT": architectures.largest_batch(costs, sla_tpot=sla.tpot, quantile=sla.quantile),
        "TTFT": architectures.largest_batch(costs, sla_ttft=sla.ttft, quantile=sla.quantile),
        "memory": int(memory),
    }
