"""All numbers of a deployment under one calibration: the formulas of `theory`, and three ways to serve compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from inference_math import architectures, latency, theory
from inference_math.costs import LIMITS, Costs
from inference_math.tiers import Tier, tiers
from inference_math.unit import Unit
from inference_math.workload import SLA, Workload

__all__ = ["Case", "Solved", "batch_limits", "costs_of", "offloading", "solve", "stretched"]


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
    """All numbers by name, the comparison of architectures, and which limit binds the batch of prefill first."""

    numbers: Mapping[str, float]
    compared: pd.DataFrame
    binding: str

    @property
    def best(self) -> str:
        """The architecture with the highest rate; "" where none meets the SLA."""
        row = self.compared["rate"].to_numpy().argmax()
        return str(self.compared["architecture"].iloc[row]) if self.compared["rate"].iloc[row] > 0 else ""


def solve(case: Case, *, factor: float = 1.0, users: float | None = None) -> Solved:
    """Return the numbers of a case; `factor` stretches every time.

    `users` is the batch at which TTFT and TPOT are taken; None: the largest that meets the SLA, or one.
    """
    unit, work, sla = case.unit, case.work, case.sla
    costs = stretched(costs_of(unit, work, case.tier), factor)
    limits = batch_limits(costs, sla)
    binding = min(LIMITS, key=lambda name: limits[name])
    compared = architectures.compare(costs, sla.tpot, sla.ttft, units=case.units, quantile=sla.quantile)
    batch = float(compared.set_index("architecture")["batch"]["aggregated"])
    at = max(batch, 1) if users is None else users
    numbers = {
        "batch": batch, "batch_tpot": limits["TPOT"], "batch_ttft": limits["TTFT"], "batch_memory": limits["memory"],
        "ttft": float(costs.ttft(at)), "tpot": float(costs.tpot(at)),
        "t_w": float(costs.t_w), "delta_p": float(costs.delta_p), "delta_h": float(costs.read),
        "concurrent_prefills": theory.concurrent_prefills(B=at, n_out=work.n_out),
        "pdd_concurrency": theory.pdd_concurrency(sla_ttft=sla.ttft, n_out=work.n_out, sla_tpot=sla.tpot),
    }  # fmt: skip
    return Solved(numbers | _of_architectures(case, compared), compared, binding if batch else "nothing")


def _of_architectures(case: Case, compared: pd.DataFrame) -> dict[str, float]:
    rows = compared.set_index("architecture")
    rates = {str(name): float(rate) for name, rate in rows["rate"].items()}
    rate, plain = max(rates.values()), rates["aggregated"]
    second = sorted(rates.values())[-2]
    tokens = rate * case.work.n_out / case.unit.tp
    numbers = {
        "chunk": float(rows["chunk"]["chunked"]),
        "chunked_gain": rates["chunked"] / plain if plain else np.nan,
        "prefill_units": float(rows["prefill_units"]["disaggregated"]),
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
    return in_hbm if load <= in_hbm.ttft_1 else replace(in_hbm, ttft_1=load, compute=None)


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
    """Return the largest batch by each of `LIMITS`, with prefill first: of means, or of a quantile."""
    if sla.quantile is None:
        row = costs.batch_limits(sla.tpot, sla.ttft).iloc[0]
        return {name: int(row[name]) for name in LIMITS}
    q, law = sla.quantile, {"delta_h": float(costs.read), "n_out": float(costs.n_out)}
    gaps = {"tpot_1": float(costs.tpot_1), "delta_p": float(costs.delta_p)}
    first = {"ttft_1": float(costs.ttft_1), "t_w": float(costs.t_w)}
    memory = theory.max_batch_memory(kv_capacity=costs.kv_capacity, n_in=costs.n_in, n_out=costs.n_out)
    return {
        "TPOT": latency.max_batch_quantile(q, sla.tpot, **law, **gaps),
        "TTFT": latency.max_batch_ttft_quantile(q, sla.ttft, **law, **first),
        "memory": int(memory),
    }


def stretched(costs: Costs, factor: float) -> Costs:
    """Return the costs with every time so many times longer."""
    times = ("t_w", "ttft_1", "delta_h", "T_decode", "compute")
    return replace(costs, **{name: getattr(costs, name) * factor for name in times})
