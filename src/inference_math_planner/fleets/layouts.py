"""Which layout serves most per GPU, or a question best: TP, DP and EP tried under the same draws."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf, nan
from typing import Any

import pandas as pd

from inference_math.catalogue.links import joined
from inference_math.catalogue.models import Gpu
from inference_math.evidence.checks import as_whole
from inference_math.optimiser import answers
from inference_math.optimiser.case import DRAWS, Case, under
from inference_math.optimiser.choice import LOOKED, layouts_near, layouts_ranked, tokens_of
from inference_math.optimiser.draws import interval, median
from inference_math.unit import Unit
from inference_math.unit.types import DrawnCoefficients
from inference_math_planner.answers.deployment import Plan, may_meet
from inference_math_planner.answers.notes import excess
from inference_math_planner.fleets import queues, traffic
from inference_math_planner.fleets.traffic import AT_RANDOM, SHARED, Arrivals, Fleet, NoFleetError, Shown
from inference_math_planner.fleets.tries import TRIED, expected_cost, firsts, rates_that_fit, tried_in_a_node

__all__ = ["Sized", "groups", "layouts", "meets", "search", "size"]

COLUMNS = [
    *("architecture", "layout", "tp", "ep", "dp", "pp", "gpus", "rate", "tokens_per_gpu", "low", "high", "best_in"),
    *("loss", "decodes", "ttft", "tpot"),
]
STAGES = (2, 4, 8)  # nodes among which layers are divided, where one does not hold them
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


def layouts(unit: Unit, gpus: int) -> Iterator[Unit]:
    """Yield the layouts of a unit's model on at most so many GPUs: TP of 1 to 16, and of mixtures DP with EP.

    Those that do not exist are left out: a TP that does not divide the heads, GPUs too few for the weights; and those
    whose groups lie on more GPUs than one node has, between which no link is known. Where no node holds the model, its
    layers lie on as few nodes as hold it.
    """
    most, found = as_whole("gpus", gpus, 1, _MOST), False
    for layout in tried_in_a_node(min(most, joined(unit.gpu)), unit.model.is_mixture):
        with suppress(ValueError):
            yield unit.resized(**layout)
            found = True
    if found:
        return
    for tp, pp in groups(unit.gpu):
        if pp > 1 and tp * pp <= most:
            with suppress(ValueError):
                yield unit.resized(tp=tp, dp=1, ep=1, pp=pp)
                return


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
    cases = _cases(case.checked(), gpus)
    looked = [tokens_of(one.asked, answers.solve(one.asked, one.pairs(DRAWS)[::LOOKED])) for one in cases]
    able = any(median(one) > 0 for one in looked)
    plans = [Plan.of(one, DRAWS) for one in ([cases[i] for i in layouts_near(looked)] if able else [_closest(cases)])]
    each = [tokens_of(one.case.asked, one.solved) for one in plans]
    ranked = layouts_ranked(each, [one.case.unit.gpus for one in plans])
    order = ranked["order"]
    rows = [_row(plans[i], each[i], ranked["best_in"][i], ranked["loss"][i]) for i in order if plans[i].feasible]
    return plans[order[0]], pd.DataFrame(rows, columns=COLUMNS)


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
        if not may_meet(case, few) or not answers.solve(case.asked, few)["best"]:
            return False
    return True


def _closest(cases: list[Case]) -> Case:
    """Return the case of which a request alone misses the limits, or the memory, least."""
    return min(cases, key=lambda one: excess(one.asked, under(one)))


def _cases(own: Case, gpus: int) -> list[Case]:
    found = [replace(own, unit=one) for one in layouts(own.unit, gpus)]
    if not found:
        unit = own.unit
        raise ValueError(f"gpus must be enough for {unit.model.name} in {unit.weights} on {unit.gpu.name}, not {gpus}")
    return found


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

    Of each TP those layouts are sized that serve most at full load on as many GPUs as there are: pools of two units
    that do not fit are none. What a layout serves at most without queues needs no simulation where another one does
    more with them; else it is simulated whether it does better. The best is sized as `fleet` and `capacity` do.

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
        cases = [replace(one, units=min(one.units, max(have // one.unit.gpus, 2))) for one in cases]
    looks = _first([_look(one) for one in shown(cases)], have or 0)
    if not looks:
        return Sized(Plan.of(_closest(cases), DRAWS), None)
    asked = traffic.asked_of(rate or 0.0, quantile, arrivals, have or 0)
    looks.sort(key=lambda one: expected_cost(one.solved, one.case.unit.gpus, rate or 0.0, float(have or 0)))
    costs: list[float] = []
    for one in shown(looks):
        least = min(costs, default=inf)
        costs.append(traffic.least_of(one, asked, rate or 0.0, have or 0, least))
    order = sorted(range(len(looks)), key=lambda i: costs[i])  # of equal ones that which is the best by usual queues
    short: NoFleetError | None = None
    for i in [order[0], *(i for i in order[1:] if costs[i] < inf)]:
        found = Plan.of(looks[i].case, DRAWS)
        if not found.feasible:
            continue
        tried = _tried(looks, costs, [i, *(k for k in order if k != i)])
        more: dict[str, Any] = {"quantile": quantile, "arrivals": arrivals, "workers": workers, "shown": shown}
        try:
            sized = looks[i]  # what was simulated of it is known
            many = traffic.capacity(sized, have, **more) if have else traffic.fleet(sized, rate or 0.0, **more)
            return Sized(found, many, tried)
        except NoFleetError as none:
            short = short or none
    return Sized(found, None, _tried(looks, costs, order), short)


def _tried(looks: list[Plan], costs: list[float], order: list[int]) -> pd.DataFrame:
    each = [tokens_of(one.case.asked, one.solved) for one in looks]
    ranked = layouts_ranked(each, [one.case.unit.gpus for one in looks])
    rows = [_row(looks[i], each[i], ranked["best_in"][i], ranked["loss"][i]) for i in order]
    answer = [abs(costs[i]) if costs[i] < inf else nan for i in order]
    return pd.DataFrame(rows, columns=COLUMNS).assign(answer=answer)


def _look(case: Case) -> Plan:
    """Return a plan of those draws alone that fleets are sized by."""
    pairs = case.pairs(DRAWS)
    costs = answers.drawn_costs(case.asked, pairs)
    places = queues.representative(case.asked, costs)
    few = [pairs[i] for i in places]
    return Plan(case, tuple(few), answers.solve(case.asked, few))


def _first(looks: list[Plan], have: int) -> list[Plan]:
    """Return the first few layouts of each TP, those that serve most of a GPU first, as far as there are GPUs."""
    units = [one.case.unit for one in looks]
    fitting = [rates_that_fit(one.solved, unit.gpus, have) for one, unit in zip(looks, units, strict=True)]
    rates = [max((each for _, each in one), default=0.0) for one in fitting]
    served = [rate / unit.gpus for rate, unit in zip(rates, units, strict=True)]
    return [looks[i] for i in firsts([unit.tp for unit in units], served)]


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
    sizes = {name: getattr(unit, name) for name in ("pp", "dp", "ep")}
    return ", ".join([f"TP {unit.tp}"] + [f"{name.upper()} {size}" for name, size in sizes.items() if size > 1])
