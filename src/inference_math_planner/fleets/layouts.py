"""Which layout serves most per GPU, or a question best: TP, DP and EP tried under the same draws."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, nan
from typing import Any

import pandas as pd
from msgspec.structs import asdict

from inference_math.catalogue.links import joined
from inference_math.catalogue.models import Gpu
from inference_math.evidence.checks import as_whole
from inference_math.evidence.sentences import render
from inference_math.optimiser import answers
from inference_math.optimiser.case import DRAWS, Case, under
from inference_math.optimiser.choice import LOOKED, layouts_ranked
from inference_math.optimiser.draws import interval
from inference_math.optimiser.types import Solution
from inference_math.unit import Unit
from inference_math.unit.deployed import units_within
from inference_math.unit.types import DrawnCoefficients, Layout, Problem
from inference_math_planner.answers.card import laid_out
from inference_math_planner.answers.deployment import Plan, may_meet
from inference_math_planner.answers.notes import excess
from inference_math_planner.fleets import queues, traffic
from inference_math_planner.fleets.traffic import AT_RANDOM, SHARED, Arrivals, Fleet, NoFleetError, Shown
from inference_math_planner.fleets.tries import (
    IN_POOLS,
    STAGES,
    TOGETHER,
    TRIED,
    Look,
    best_pairs,
    expected_cost,
    first_of,
    firsts,
    layouts_fitting,
    look_order,
    looked_at,
    near_best,
    rates_that_fit,
)

__all__ = ["Sized", "groups", "layouts", "meets", "search", "size"]

COLUMNS = [
    *(
        "architecture",
        "layout",
        "tp",
        "ep",
        "dp",
        "pp",
        "prefill",
        "gpus",
        "rate",
        "tokens_per_gpu",
        "low",
        "high",
        "best_in",
    ),
    *("loss", "decodes", "ttft", "tpot"),
]
_MOST = 512  # GPUs among which layouts are tried


def groups(gpu: Gpu) -> Iterator[tuple[int, int]]:
    """Yield TP and stages of one group of GPUs, from the fewest: those of a node, then as many whole nodes as stages.

    >>> from inference_math import catalogue
    >>> list(groups(catalogue.gpu("h100-sxm")))
    [(1, 1), (2, 1), (4, 1), (8, 1), (8, 2), (8, 4), (8, 8)]
    """
    within = [tp for tp in TRIED if tp <= joined(gpu)]
    yield from ((tp, 1) for tp in within)
    yield from ((within[-1], stages) for stages in STAGES)


def layouts(unit: Unit, gpus: int) -> list[Unit]:
    """Return the layouts of a unit's model on at most so many GPUs: TP of 1 to 16, and of mixtures DP with EP.

    Those that do not exist are left out: a TP that does not divide the heads, GPUs too few for the weights; and those
    whose groups lie on more GPUs than one node has, between which no link is known. Where no node holds the model, its
    layers lie on as few nodes as hold it.
    """
    resized: list[Unit] = []

    def fits(layout: Layout) -> bool:
        with suppress(ValueError):
            resized.append(unit.resized(**asdict(layout)))
            return True
        return False

    layouts_fitting(as_whole("gpus", gpus, 1, _MOST), joined(unit.gpu), unit.model.is_mixture, fits)
    return resized


def search(case: Case, gpus: int = 8) -> tuple[Plan, pd.DataFrame]:
    """Return the plan of the layouts that serve most of a GPU in the mean over the draws, and a table of all tried.

    Units of at most `gpus` GPUs. Units that do both are laid out as serves most aggregated or in chunks, and pools,
    each with a layout of its own, as serves most disaggregated: so each architecture of the plan is at its best. All
    layouts are asked under a few draws first, and those that come near the best one there under all of them; of the
    pairs for pools those that no bound excludes.

    Columns: architecture; layout, in words; tp, ep, dp, pp, of pools those of a decode unit; prefill, the layout of a
    prefill unit; gpus of a unit; rate (requests/s of a unit); tokens_per_gpu (output tokens/s) with low and high, the 5
    % and 95 % quantiles; best_in, the share of the draws in which it is the first; loss, how much fewer tokens in the
    mean, as a share of the most; decodes of a unit; ttft and tpot (s). Rates are those at full load, as in `plan`.

    Raises
    ------
    ValueError
        Where no layout has room for the model, and as `plan`.

    Examples
    --------
    >>> from inference_math import SLA, Unit, Workload
    >>> from inference_math_planner import Case, search
    >>> found, tried = search(Case(Unit.of("qwen3-30b-a3b", "h100-sxm", 2), Workload(1000, 300), SLA(1.0, 0.04)), 4)
    >>> bool(found["tokens_per_gpu"] >= tried.tokens_per_gpu.max())
    True
    """
    return _searched(_cases(case.checked(), gpus))


def _searched(cases: list[Case]) -> tuple[Plan, pd.DataFrame]:
    few = [answers.solve(one.problem, one.pairs(DRAWS)[::LOOKED]) for one in cases]
    seen = [looked_at(one.problem, solved, TOGETHER).goodput for one, solved in zip(cases, few, strict=True)]
    looks = [_Look(Plan.of(cases[i], DRAWS), TOGETHER) for i in near_best(seen)]
    looks += [_Look(Plan.of(one, DRAWS), IN_POOLS) for one in _paired(cases)]
    order = look_order([one.look for one in looks])
    if not order:
        return Plan.of(_closest(cases), DRAWS), pd.DataFrame(columns=COLUMNS)
    return _joined([looks[i] for i in order]), _rows(looks).loc[order].reset_index(drop=True)


@dataclass(frozen=True)
class _Look:
    """A layout as it was tried: its plan, and the architectures that were asked of it."""

    plan: Plan
    names: list[str]

    @property
    def case(self) -> Case:
        return self.plan.case

    @property
    def told(self) -> tuple[Problem, Solution, list[str]]:
        """What `tries` takes of it."""
        return self.case.problem, self.plan.solved, self.names

    @property
    def name(self) -> str:
        """Return the best of these architectures."""
        return first_of(self.plan.solved, self.names)

    @cached_property
    def look(self) -> Look:
        """What it serves of a GPU."""
        return looked_at(*self.told)

    @property
    def able(self) -> bool:
        """Whether most draws allow it."""
        return self.look.goodput > 0


def _first_of(looks: Sequence[_Look], names: list[str]) -> Case | None:
    """Return the first case of which these architectures were asked; None of none."""
    return next((one.case for one in looks if one.names == names), None)


def _joined(order: Sequence[_Look]) -> Plan:
    """Return the plan of the first units that do both, beside the first pools, of other layouts; one is there."""
    together, apart = _first_of(order, TOGETHER), _first_of(order, IN_POOLS)
    case = together or apart
    assert case is not None
    if together and apart:
        prefill = apart.prefill or apart.unit
        if not prefill == apart.unit == together.unit:
            case = replace(together, prefill=prefill, decode=apart.unit, pool_units=apart.units)
    return Plan.of(case, DRAWS)


def _paired(cases: Sequence[Case]) -> list[Case]:
    """Return cases of decode units, each with the prefill unit with which it serves most; see `tries.best_pairs`."""
    few = [one.pairs(DRAWS)[::LOOKED] for one in cases]
    halves = [answers.halves(one.problem, drawn) for one, drawn in zip(cases, few, strict=True)]

    def pair(p: int, d: int) -> Case:
        return cases[d] if p == d else replace(cases[d], prefill=cases[p].unit)

    def served(p: int, d: int) -> float:
        return answers.pools_served(pair(p, d).problem, few[d])

    units = [one.unit for one in cases]
    best = best_pairs(halves, [unit.gpus for unit in units], [unit.tp for unit in units], served)
    return [pair(p, d) for p, d in best]


def meets(case: Case, gpus: int = 0) -> bool:
    """Tell whether a unit, or some layout of one on at most so many GPUs, meets the limits at full load.

    Raises
    ------
    ValueError
        As `search`.
    """
    cases = _cases(case.checked(), gpus) if gpus else [case.checked()]
    return any(_meets_by(one, one.pairs(DRAWS)) for one in cases)


def _meets_by(case: Case, drawn: list[DrawnCoefficients]) -> bool:
    """Tell the same of one unit under draws; what takes no search to see comes first, then a few of the draws."""
    for few in (drawn[::LOOKED], drawn):
        if not may_meet(case, few) or not answers.solve(case.problem, few).best:
            return False
    return True


def _closest(cases: list[Case]) -> Case:
    """Return the case of which a request alone misses the limits, or the memory, least."""
    return min(cases, key=lambda one: excess(one.problem, under(one)))


def _cases(own: Case, gpus: int) -> list[Case]:
    cases = [replace(own, unit=one) for one in layouts(own.unit, gpus)]
    if not cases:
        unit = own.unit
        raise ValueError(f"gpus must be enough for {unit.model.name} in {unit.weights} on {unit.gpu.name}, not {gpus}")
    return cases


@dataclass(frozen=True)
class Sized:
    """What `size` found: the plan of the layout that answers best, its fleet, and all layouts that were tried.

    Attributes
    ----------
    plan
        Of the layout that was chosen; where no fleet keeps the promise, of that which serves most at full load.
    fleet
        None where no fleet keeps the promise, or no layout meets the limits at full load.
    tried
        As of `search`, under few draws, with `answer`: GPUs for the traffic, or requests/s of the GPUs, by the slowest
        draws; NaN for a layout that does no better than those before it.
    short
        Why there is no fleet; None where there is one.
    """

    plan: Plan
    fleet: Fleet | None
    tried: pd.DataFrame | None = None
    short: NoFleetError | None = None


def size(
    case: Case,
    gpus: int = 8,
    *,
    rate: float | None = None,
    have: int | None = None,
    quantile: float | None = SHARED,
    arrivals: Arrivals = AT_RANDOM,
    workers: int = 1,
    shown: Shown = iter,
) -> Sized:
    """Return the layout, and the fleet of it, that serves `rate` requests/s on the fewest GPUs, or most on those there.

    Of units that do both those layouts of each TP are sized that serve most at full load on as many GPUs as there are,
    and of pools for each TP of a decode unit the pair that does: pools that do not fit are none. What a layout serves
    at most without queues needs no simulation where another one does more with them; else it is simulated whether it
    does better. The best is sized as `fleet` and `capacity` do, beside the best of the other kind.

    Parameters
    ----------
    case, gpus
        As of `search`.
    rate, have
        Requests per second to serve, or the GPUs that there are: one of them.
    quantile, arrivals, workers
        As of `fleet`.
    shown
        Passes layouts on as they are looked at and tried, then architectures, for a progress bar.

    Raises
    ------
    ValueError
        As `search`, and for what `fleet` refuses.

    Examples
    --------
    >>> from inference_math import SLA, Unit, Workload
    >>> from inference_math_planner import Case, size
    >>> found = size(Case(Unit.of("llama-3-8b", "h100-sxm"), Workload(500, 50), SLA(1.0, 0.05), units=2), 2, have=2)
    >>> found.fleet.gpus[0] <= 2
    True
    """
    if (rate is None) == (have is None):
        raise ValueError("rate must be given, or have: one of them")
    cases = _cases(case.checked(), gpus)
    if have is not None:
        cases = [replace(one, units=units_within(one.units, have, one.unit.gpus)) for one in cases]
    looks = [_Look(_look(one), TOGETHER) for one in shown(cases)]
    looks += [_Look(_look(one), IN_POOLS) for one in _paired(cases)]
    looks = _first(looks, have or 0)
    problem = traffic.fleet_problem(rate or 0.0, quantile, arrivals, have or 0)
    looks.sort(key=lambda one: expected_cost(*one.told, problem.goal))
    costs: list[float] = []
    for one in shown(looks):
        least = min(costs, default=inf)
        costs.append(traffic.least_of(one.plan, one.names, problem, least))
    order = sorted(range(len(looks)), key=lambda i: costs[i])  # of equal ones that which is the best by usual queues
    answer = [abs(one) if one < inf else nan for one in costs]
    best = [looks[i] for i in order if looks[i].able]
    planned, tried = _joined(best) if best else None, None
    if planned is not None and planned.feasible:
        tried = _rows(looks).assign(answer=pd.Series(answer)).loc[order].reset_index(drop=True)
    else:  # limits that about half of the draws keep: all draws may say other than the few
        planned = _searched(cases)[0]
    if not planned.feasible:
        return Sized(planned, None)
    more: dict[str, Any] = {"quantile": quantile, "arrivals": arrivals, "workers": workers, "shown": shown}
    try:
        many = traffic.capacity(planned, have, **more) if have else traffic.fleet(planned, rate or 0.0, **more)
        return Sized(planned, many, tried)
    except NoFleetError as none:
        return Sized(planned, None, tried, none)


def _look(case: Case) -> Plan:
    """Return a plan of those draws alone that fleets are sized by."""
    pairs = case.pairs(DRAWS)
    costs = answers.drawn_costs(case.problem, pairs)
    places = queues.representative(case.problem, costs)
    few = [pairs[i] for i in places]
    return Plan(case, tuple(few), answers.solve(case.problem, few))


def _first(looks: list[_Look], have: int) -> list[_Look]:
    """Return the first few layouts of each TP, those that serve most of a GPU first, as far as there are GPUs."""
    firsts_of_both = []
    for names in (TOGETHER, IN_POOLS):
        own = [one for one in looks if one.names == names]
        served = [max((each for _, each in rates_that_fit(*one.told, have)), default=0.0) for one in own]
        firsts_of_both += [own[i] for i in firsts([one.case.unit.tp for one in own], served)]
    return firsts_of_both


def _rows(looks: Sequence[_Look]) -> pd.DataFrame:
    """Return a row for each layout that was tried, by its place, that which serves most of a GPU first."""
    each = [one.look for one in looks]
    ranked = layouts_ranked([one.goodput for one in each], [one.tokens for one in each], [one.gpus for one in each])
    table = pd.DataFrame(map(_row, looks), columns=COLUMNS).assign(best_in=ranked.best_in, loss=ranked.loss)
    return table.loc[ranked.order]


def _row(look: _Look) -> dict[str, object]:
    case, name = look.case, look.name
    unit, row = case.unit, look.plan.compared.set_index("architecture").loc[name]
    middle, (_, low, high) = look.look.goodput, interval(0.0, look.look.tokens)
    return {
        "architecture": name, "layout": render(laid_out(case.problem, name)), **asdict(unit.numbers.layout),
        "prefill": None if case.prefill is None else asdict(case.prefill.numbers.layout), "gpus": unit.gpus,
        "rate": row["rate"], "tokens_per_gpu": middle, "low": min(low, middle), "high": max(high, middle),
        "decodes": row["decodes"], "ttft": row["ttft"], "tpot": row["tpot"],
    }  # fmt: skip
