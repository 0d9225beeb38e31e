"""From traffic to a fleet: how many replicas serve so many requests per second, confirmed by the simulator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from inference_math import perf, simulate, theory
from inference_math.checks import ANY_POSITIVE, SHARE, as_number, as_one_of, as_whole
from inference_math.perf.steps import stored_tokens
from inference_math.planner.case import Case, solve
from inference_math.planner.deployment import Plan, told
from inference_math.unit.coefficients import Draw
from inference_math.unit.unit import Steps
from inference_math.workload import Source, Trace, Workload

__all__ = ["Fleet", "fleet"]

_LARGER = (1, 2, 4, np.inf)  # chunks, as multiples of the plan's
_MOST = 16  # times what the mean rates ask for
_DRAWS, _PACES, _HOLDS = 64, 10, 0.9  # of the calibration; simulated of them; share of these in which a fleet holds


@dataclass(frozen=True)
class Fleet:
    """Replicas for some traffic.

    Attributes
    ----------
    architecture
        What each replica is.
    replicas, units, gpus
        Replicas; units of each (one, or both pools of a disaggregated one); GPUs of all. They are enough in nine of ten
        draws of the calibration that were simulated.
    low, high
        Replicas that the draw needs which needs fewest, and the one that needs most.
    rate
        Requests per second of all replicas together.
    least
        The replicas that mean rates ask for, without queues.
    goodput
        Share of the simulated requests whose TTFT and whose mean TPOT both meet their limits, in the draw that decides.
    one_less
        The same with one replica less; NaN where there is none less.
    usd_per_million
        US dollars for a million output tokens at this rate; NaN where the plan has no price.
    settings
        What to start the engines of a replica with.
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
    low: int
    high: int
    settings: Mapping[str, Any]
    chunk: float = np.nan

    def __str__(self) -> str:
        fewer = "" if np.isnan(self.one_less) else f"; with one replica less {self.one_less:.1%}"
        cost = "" if np.isnan(self.usd_per_million) else f", {self.usd_per_million:.3g} USD per million output tokens"
        many = "replica" if self.replicas == 1 else "replicas"
        span = "" if self.low == self.high else f" ({self.low} to {self.high})"
        size = f"{self.replicas} {many}{span}, {self.gpus} GPUs"
        told = ", ".join(f"{name} {value}".strip() for name, value in self.settings.items())
        return (
            f"{self.architecture}: {size}, for {self.rate:.4g} requests/s{cost}\n"
            f"  each with {told}\n"
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
    # Which architecture: at the calibration's own pace, the error of a step taken once. How many: at ten paces.
    middle = Steps(found.case.unit.near(found.case.work))
    needed: list[tuple[int, int, _Replica, int]] = []
    failures: list[str] = []
    for name in possible:
        for row in _rows(found, name):
            replica = _Replica(found, row, traffic, rate, count, seed)
            try:
                many = replica.fewest(middle, share, replica.least)
            except ValueError as error:
                failures.append(str(error))
            else:
                needed.append((many * replica.units * found.case.unit.gpus, len(needed), replica, many))
    if not needed:
        raise ValueError("; ".join(failures))
    *_, replica, many = min(needed)
    return _sized(replica, [(replica.fewest(pace, share, many), pace) for pace in _paces(found)])


def _sized(replica: _Replica, needs: list[tuple[int, simulate.Cost]]) -> Fleet:
    """Return the fleet that is enough at nine of ten paces, with what the quickest and the slowest of them need."""
    needs.sort(key=lambda one: one[0])
    many, pace = needs[ceil(_HOLDS * len(needs)) - 1]
    return replica.fleet(many, pace, (needs[0][0], needs[-1][0]))


def _paces(found: Plan) -> list[simulate.Cost]:
    """Return the steps of ten draws, which lie evenly between the fastest and the slowest by the best rate."""
    case = found.case
    drawn = sorted(case.draws(_DRAWS), key=lambda one: -max(solve(case, one).compared["rate"]))
    return [_pace(case, drawn[(2 * i + 1) * _DRAWS // (2 * _PACES)]) for i in range(_PACES)]


def _pace(case: Case, draw: Draw) -> simulate.Cost:
    unit = case.unit.calibrated(draw.calibration).near(case.work)
    return Steps(unit, draw.step, draw.prompt)


def _rows(found: Plan, name: str) -> list[Any]:
    """Return an architecture's row of a plan; of chunked serving also with larger chunks, up to whole prompts."""
    row: Any = found.compared.set_index("architecture").loc[name]
    if name != "chunked":
        return [row]
    n_in = found.case.work.n_in
    chunks = sorted({min(factor * row["chunk"], max(n_in, row["chunk"])) for factor in _LARGER})
    rows = [row.copy() for _ in chunks]
    for one, chunk in zip(rows, chunks, strict=True):
        one["computed"] *= chunk / one["chunk"]
        one["chunk"] = chunk
    return rows


class _Replica:
    """One replica of many, simulated under its part of the traffic."""

    def __init__(self, found: Plan, row: Any, traffic: float | Trace, rate: float, count: int, seed: int) -> None:
        self._found, self._row, self._traffic, self._rate = found, row, traffic, rate
        self._count, self._seed, self._name = count, seed, str(row.name)
        self._tried: dict[tuple[int, int], float] = {}
        self.units = found.case.units if self._name == "disaggregated" else 1
        self.least = int(perf.replicas(found.case.plain, self._name, row["rate"], rate)[0])

    def fleet(self, many: int, pace: simulate.Cost, ends: tuple[int, int]) -> Fleet:
        """Return so many replicas, at the pace that they were sized for, as an answer."""
        case, row = self._found.case, self._row
        gpus = many * self.units * case.unit.gpus
        return Fleet(
            self._name, replicas=many, units=self.units, gpus=gpus, rate=self._rate, least=self.least,
            goodput=self.met(pace, many), one_less=self.met(pace, many - 1) if many > 1 else np.nan,
            usd_per_million=perf.usd_per_million(gpus, case.price or 0.0, self._rate * case.work.n_out),
            low=ends[0], high=ends[1], settings=told(case, self._name, row.to_dict()),
            chunk=row["computed"] if self._name == "chunked" else np.nan,
        )  # fmt: skip

    def fewest(self, pace: simulate.Cost, share: float, near: int) -> int:
        """Return the fewest replicas at a pace, looking first near a number."""
        low, high = 0, near
        while self.met(pace, high) < share:
            low, high = high, 2 * high
            if high > _MOST * near:
                raise ValueError(
                    f"traffic must leave {share:.0%} of the requests within the SLA; with {low} replicas "
                    f"({self._name}), {low / near:.3g} times what mean rates ask for, it is {self.met(pace, low):.1%}"
                )
        step = 1
        while low == 0 and high - step > 0 and self.met(pace, high - step) >= share:
            high, step = high - step, 2 * step
        low = max(low, high - step) if low == 0 else low
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.met(pace, middle) >= share else (middle, high)
        return high

    def met(self, pace: simulate.Cost, replicas: int) -> float:
        """Return the share of one replica's requests that meet both limits, of the worse half of its time."""
        key = id(pace), replicas
        if key not in self._tried:
            case = self._found.case
            rows = self._run(pace, replicas).requests
            good = (rows["ttft"] <= case.sla.ttft) & ~(rows["tpot"] > case.sla.tpot)
            half = len(good) // 2
            self._tried[key] = float(min(good[:half].mean(), good[half:].mean())) if half else float(good.mean())
        return self._tried[key]

    def _run(self, pace: simulate.Cost, replicas: int) -> simulate.Run:
        case = self._found.case
        options: dict[str, Any] = {"scheduler": _scheduler(case, self._row), "reuse": _reuse(case)}
        if isinstance(self._traffic, Trace):
            return simulate.replay(_every(self._traffic, replicas), pace, **options)
        rate, warmup = self._rate / replicas, self._count // 10
        return simulate.open_loop(
            _random(case.work), pace, rate=rate, requests=self._count, warmup=warmup, seed=self._seed, **options
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
    unit, batch, grows = case.unit, ceil(row["batch"]), perf.GROWS[case.unit.engine]
    room = unit.kv_tokens(case.work.n_in + case.work.n_out)
    if row.name == "aggregated":
        return simulate.Aggregated(batch, room, grows)
    if row.name == "chunked":
        budget = perf.computed_tokens(case.plain, row) + batch
        return simulate.Chunked(budget, batch + ceil(row["chunk"] / case.work.n_in), room, grows)
    prefill = int(row["prefill_units"])
    sent = unit.model.kv_bytes(case.work.n_in, unit.kv) / case.work.n_in
    transfer = theory.kv_load_time(kv_token=sent, io_bw=unit.gpus * unit.gpu.pcie_bw)
    return simulate.Disaggregated(prefill, case.units - prefill, transfer, batch, room, grows)


def _reuse(case: Case) -> simulate.Reuse | None:
    if case.tier is None or not case.work.alpha:
        return None
    stored = max(stored_tokens(case.work.n_in, case.work.alpha), 1.0)
    loaded = case.unit.kv_bytes(stored) / stored  # every GPU loads its own copy
    return simulate.Reuse(theory.kv_load_time(kv_token=loaded, io_bw=case.read_bw))
