"""From traffic to a fleet: how many replicas serve so many requests per second, confirmed by the simulator."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from inference_math import simulate, theory
from inference_math.checks import ANY_POSITIVE, SHARE, as_number, as_whole
from inference_math.planner.deployment import Plan
from inference_math.planner.solve import Case
from inference_math.workload import Source, Trace, Workload

__all__ = ["Fleet", "fleet"]

_MOST = 16  # times what the mean rates ask for


@dataclass(frozen=True)
class Fleet:
    """Replicas for some traffic.

    Attributes
    ----------
    replicas, units, gpus
        Replicas; units of each (one, or both pools of a disaggregated one); GPUs of all.
    rate
        Requests per second of all replicas together.
    least
        The replicas that mean rates ask for, without queues.
    goodput
        Share of the simulated requests whose TTFT and whose mean TPOT both meet their limits.
    one_less
        The same with one replica less; NaN where there is none less.
    """

    replicas: int
    units: int
    gpus: int
    rate: float
    least: int
    goodput: float
    one_less: float

    def __str__(self) -> str:
        fewer = "" if np.isnan(self.one_less) else f" (with one replica less {self.one_less:.1%})"
        return (
            f"{self.replicas} replicas, {self.gpus} GPUs, serve {self.rate:.4g} requests/s: "
            f"{self.goodput:.1%} of the simulated requests meet both limits{fewer}"
        )


def fleet(found: Plan, traffic: float | Trace, *, quantile: float = 0.9, requests: int = 1000, seed: int = 0) -> Fleet:
    """Return how many replicas of a plan's best architecture meet its SLA for the share `quantile` of the requests.

    Requests arrive at random, `traffic` of them per second, with geometric answers; or a trace is played, whose
    requests go to the replicas in turn. One replica is simulated for each number that is tried.

    Raises
    ------
    ValueError
        For a plan that meets its SLA nowhere, a trace without arrivals, and traffic whose tail no number of
        replicas (up to 16 times what the means ask for) brings within the SLA.
    """
    if not found.feasible:
        raise ValueError("found must be a plan that some architecture meets: " + "; ".join(found.advice))
    share = as_number("quantile", quantile, SHARE)
    count = as_whole("requests", requests)
    rate = _rate(traffic)
    units = found.case.units if found.best == "disaggregated" else 1
    least = ceil(rate / (found["rate"] * units))
    tried: dict[int, float] = {}

    def met(replicas: int) -> float:
        if replicas not in tried:
            tried[replicas] = _goodput(found, traffic, rate, replicas, count, seed)
        return tried[replicas]

    low, high = least - 1, least
    while met(high) < share:
        low, high = high, 2 * high
        if high > _MOST * least:
            raise ValueError(
                f"traffic must leave {share:.0%} of the requests within the SLA; with {low} replicas, "
                f"{low / least:.3g} times what mean rates ask for, it is {met(low):.1%}"
            )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if met(middle) >= share else (middle, high)
    return Fleet(
        replicas=high, units=units, gpus=high * units * found.case.unit.tp, rate=rate, least=least,
        goodput=met(high), one_less=met(high - 1) if high > 1 else np.nan,
    )  # fmt: skip


def _rate(traffic: float | Trace) -> float:
    if not isinstance(traffic, Trace):
        return as_number("traffic", traffic, ANY_POSITIVE)
    if traffic.arrival is None or traffic.arrival[-1] <= traffic.arrival[0]:
        raise ValueError("traffic must be a trace with arrival times, or requests per second")
    return float((len(traffic.n_in) - 1) / (traffic.arrival[-1] - traffic.arrival[0]))


def _goodput(found: Plan, traffic: float | Trace, rate: float, replicas: int, count: int, seed: int) -> float:
    """Return the share of one replica's requests that meet both limits."""
    case = found.case
    options: dict[str, Any] = {"scheduler": _scheduler(found), "reuse": _reuse(case)}
    cost = case.unit.step_cost
    if isinstance(traffic, Trace):
        run = simulate.replay(_every(traffic, replicas), cost, **options)
    else:
        run = simulate.open_loop(
            _random(case.work), cost, rate=rate / replicas, requests=count, warmup=count // 10, seed=seed, **options
        )
    rows = run.requests
    slow = (rows["ttft"] > case.sla.ttft) | (rows["tpot"] > case.sla.tpot)
    return float(1 - slow.mean())


def _random(work: Workload) -> Source:
    """Return whole prompts of that length with geometric answers."""
    return Workload(max(round(work.n_in), 1), work.n_out, work.alpha, "geometric")


def _every(trace: Trace, replicas: int) -> Trace:
    """Return the requests of one of so many replicas that take turns."""
    alpha = np.broadcast_to(np.asarray(trace.alpha), trace.n_in.shape)[::replicas]
    assert trace.arrival is not None
    return Trace(trace.n_in[::replicas], trace.n_out[::replicas], arrival=trace.arrival[::replicas], alpha=alpha)


def _scheduler(found: Plan) -> simulate.Scheduler:
    """Return the best architecture as the simulator's scheduler."""
    row: Any = found.compared.set_index("architecture").loc[found.best]
    unit, batch = found.case.unit, ceil(row["batch"])
    if found.best == "aggregated":
        return simulate.Aggregated(batch, unit.kv_capacity)
    if found.best == "chunked":
        return simulate.Chunked(ceil(row["chunk"]) + batch, batch + 1, unit.kv_capacity)
    prefill = int(row["prefill_units"])
    transfer = theory.kv_load_time(kv_token=unit.model.kv_token(unit.kv), io_bw=unit.tp * unit.gpu.pcie_bw)
    return simulate.Disaggregated(prefill, found.case.units - prefill, transfer, batch, unit.kv_capacity)


def _reuse(case: Case) -> simulate.Reuse | None:
    if case.tier is None or not case.work.alpha:
        return None
    bandwidth = case.unit.tp * case.tier.read_bw
    return simulate.Reuse(theory.kv_load_time(kv_token=case.unit.model.kv_token(case.unit.kv), io_bw=bandwidth))
