"""From traffic to a fleet: how many replicas serve so many requests per second, confirmed by the simulator."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from inference_math import perf, simulate, theory
from inference_math.checks import ANY_POSITIVE, SHARE, as_number, as_one_of, as_whole
from inference_math.planner.deployment import Plan
from inference_math.planner.solve import Case
from inference_math.workload import Source, Trace, Workload

__all__ = ["Fleet", "fleet"]

_LARGER = (1, 2, 4, np.inf)  # chunks, as multiples of the plan's
_MOST = 16  # times what the mean rates ask for


@dataclass(frozen=True)
class Fleet:
    """Replicas for some traffic.

    Attributes
    ----------
    architecture
        What each replica is.
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
    usd_per_million
        US dollars for a million output tokens at this rate; NaN where the plan has no price.
    chunk
        Prompt tokens that a chunked replica computes in a step at most; NaN for the others.
    """

    architecture: str
    replicas: int
    units: int
    gpus: int
    rate: float
    least: int
    goodput: float
    one_less: float
    usd_per_million: float
    chunk: float = np.nan

    def __str__(self) -> str:
        fewer = "" if np.isnan(self.one_less) else f"; with one replica less {self.one_less:.1%}"
        cost = "" if np.isnan(self.usd_per_million) else f", {self.usd_per_million:.3g} USD per million output tokens"
        many = "replica" if self.replicas == 1 else "replicas"
        chunks = "" if np.isnan(self.chunk) else f" with chunks of {self.chunk:.0f} tokens"
        size = f"{self.replicas} {many}, {self.gpus} GPUs"
        return (
            f"{self.architecture}{chunks}: {size}, for {self.rate:.4g} requests/s{cost}\n"
            f"  {self.goodput:.1%} of the simulated requests meet both limits{fewer}"
        )


def fleet(
    found: Plan,
    traffic: float | Trace,
    *,
    architecture: str | None = None,
    quantile: float = 0.9,
    requests: int = 3000,
    seed: int = 0,
) -> Fleet:
    """Return how many replicas of a plan's architecture meet its SLA for the share `quantile` of the requests.

    Requests arrive at random, `traffic` of them per second, with geometric answers; or a trace is played, whose
    requests go to the replicas in turn. One replica is simulated for each number that is tried; of both halves of
    its time the worse one counts, so that a queue that grows is seen. `architecture` None: each that the plan has is
    tried, and the one with the fewest GPUs returned; the highest mean rate need not be it, for means know no queue.
    A chunked replica is tried with the plan's chunk and with larger ones: at part load they shorten the first token,
    and a request's mean TPOT bears some long steps.

    Raises
    ------
    ValueError
        For a plan that meets its SLA nowhere, an unknown architecture, a trace without arrivals, and traffic whose
        tail no number of replicas (up to 16 times what the means ask for) brings within the SLA.
    """
    if not found.feasible:
        raise ValueError("found must be a plan that some architecture meets: " + "; ".join(found.advice))
    share, count, rate = as_number("quantile", quantile, SHARE), as_whole("requests", requests), _rate(traffic)
    rates = found.compared.set_index("architecture")["rate"]
    possible = [str(name) for name, served in rates.items() if served > 0]
    if architecture is not None:
        possible = [as_one_of("architecture", architecture, possible)]
    fleets, failures = [], []
    for name in possible:
        for row in _rows(found, name):
            try:
                fleets.append(_Replica(found, row, traffic, rate, count, seed).smallest(share))
            except ValueError as error:
                failures.append(str(error))
    if not fleets:
        raise ValueError("; ".join(failures))
    return min(fleets, key=lambda one: one.gpus)


def _rows(found: Plan, name: str) -> list[Any]:
    """Return an architecture's row of a plan; of chunked serving also with larger chunks, up to whole prompts."""
    row: Any = found.compared.set_index("architecture").loc[name]
    if name != "chunked":
        return [row]
    n_in = found.case.work.n_in
    chunks = sorted({min(factor * row["chunk"], max(n_in, row["chunk"])) for factor in _LARGER})
    rows = [row.copy() for _ in chunks]
    for one, chunk in zip(rows, chunks, strict=True):
        one["chunk"] = chunk
    return rows


class _Replica:
    """One replica of many, simulated under its part of the traffic."""

    def __init__(self, found: Plan, row: Any, traffic: float | Trace, rate: float, count: int, seed: int) -> None:
        self._found, self._row, self._traffic, self._rate = found, row, traffic, rate
        self._count, self._seed, self._name = count, seed, str(row.name)
        self._tried: dict[int, float] = {}

    def smallest(self, share: float) -> Fleet:
        """Return the fewest replicas of which the share of the requests is met."""
        case = self._found.case
        units = case.units if self._name == "disaggregated" else 1
        least = int(perf.replicas(case.plain, self._name, self._row["rate"], self._rate)[0])
        low, high = least - 1, least
        while self.met(high) < share:
            low, high = high, 2 * high
            if high > _MOST * least:
                raise ValueError(
                    f"traffic must leave {share:.0%} of the requests within the SLA; with {low} replicas "
                    f"({self._name}), {low / least:.3g} times what mean rates ask for, it is {self.met(low):.1%}"
                )
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.met(middle) >= share else (middle, high)
        gpus = high * units * case.unit.tp
        tokens = self._rate * case.work.n_out * 3600
        return Fleet(
            self._name, replicas=high, units=units, gpus=gpus, rate=self._rate, least=least,
            goodput=self.met(high), one_less=self.met(high - 1) if high > 1 else np.nan,
            usd_per_million=np.nan if case.price is None else gpus * case.price / tokens * 1e6,
            chunk=self._row["chunk"] * (1 - case.work.alpha) if self._name == "chunked" else np.nan,
        )  # fmt: skip

    def met(self, replicas: int) -> float:
        """Return the share of one replica's requests that meet both limits, of the worse half of its time."""
        if replicas not in self._tried:
            case = self._found.case
            rows = self._run(replicas).requests
            good = (rows["ttft"] <= case.sla.ttft) & ~(rows["tpot"] > case.sla.tpot)
            half = len(good) // 2
            self._tried[replicas] = float(min(good[:half].mean(), good[half:].mean())) if half else float(good.mean())
        return self._tried[replicas]

    def _run(self, replicas: int) -> simulate.Run:
        case = self._found.case
        options: dict[str, Any] = {"scheduler": _scheduler(case, self._row), "reuse": _reuse(case)}
        cost = case.unit.step_cost
        if isinstance(self._traffic, Trace):
            return simulate.replay(_every(self._traffic, replicas), cost, **options)
        rate, warmup = self._rate / replicas, self._count // 10
        return simulate.open_loop(
            _random(case.work), cost, rate=rate, requests=self._count, warmup=warmup, seed=self._seed, **options
        )


def _rate(traffic: float | Trace) -> float:
    if not isinstance(traffic, Trace):
        return as_number("traffic", traffic, ANY_POSITIVE)
    if traffic.arrival is None or traffic.arrival[-1] <= traffic.arrival[0]:
        raise ValueError("traffic must be a trace with arrival times, or requests per second")
    return float((len(traffic.n_in) - 1) / (traffic.arrival[-1] - traffic.arrival[0]))


def _random(work: Workload) -> Source:
    """Return whole prompts of that length with geometric answers."""
    return Workload(max(round(work.n_in), 1), work.n_out, work.alpha, "geometric")


def _every(trace: Trace, replicas: int) -> Trace:
    """Return the requests of one of so many replicas that take turns."""
    alpha = np.broadcast_to(np.asarray(trace.alpha), trace.n_in.shape)[::replicas]
    assert trace.arrival is not None
    return Trace(trace.n_in[::replicas], trace.n_out[::replicas], arrival=trace.arrival[::replicas], alpha=alpha)


def _scheduler(case: Case, row: Any) -> simulate.Scheduler:
    """Return an architecture of the comparison as the simulator's scheduler."""
    unit, batch = case.unit, ceil(row["batch"])
    if row.name == "aggregated":
        return simulate.Aggregated(batch, unit.kv_capacity)
    if row.name == "chunked":
        budget = perf.computed_tokens(case.plain, row) + batch
        return simulate.Chunked(budget, batch + ceil(row["chunk"] / case.work.n_in), unit.kv_capacity)
    prefill = int(row["prefill_units"])
    transfer = theory.kv_load_time(kv_token=unit.model.kv_token(unit.kv), io_bw=unit.tp * unit.gpu.pcie_bw)
    return simulate.Disaggregated(prefill, case.units - prefill, transfer, batch, unit.kv_capacity)


def _reuse(case: Case) -> simulate.Reuse | None:
    if case.tier is None or not case.work.alpha:
        return None
    bandwidth = case.unit.tp * case.tier.read_bw
    return simulate.Reuse(theory.kv_load_time(kv_token=case.unit.model.kv_token(case.unit.kv), io_bw=bandwidth))
