"""Which layouts are tried, and which of them first; the planner's page runs this, too."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from inference_math.evidence.records import Record
from inference_math.optimiser.choice import goodput_by, layouts_near, layouts_ranked, tokens_by, told_rate
from inference_math.optimiser.types import Solution
from inference_math.unit.problem import NEARLY
from inference_math.unit.types import Layout, Problem
from inference_math_planner.fleets.queues import GUESS, cost, smallest_gpus
from inference_math_planner.fleets.types import FleetGoal

__all__ = [
    "IN_POOLS", "STAGES", "TOGETHER", "TRIED", "Look", "best_pairs", "expected_cost", "first_of", "firsts",
    "layouts_fitting", "look_order", "looked_at", "near_best", "pairs_by_bound", "rates_that_fit",
    "tried_in_a_node",
]  # fmt: skip

TOGETHER = ["aggregated", "chunked"]  # one unit does both
IN_POOLS = ["disaggregated"]

TRIED = [1, 2, 4, 8, 16]  # sizes of TP and DP
STAGES = [2, 4, 8]  # nodes among which layers are divided, where one does not hold them
FIRST_OF_EACH = 3  # layouts of each TP that a fleet is sized for, those that serve most at full load


def tried_in_a_node(most: int, mixture: bool) -> list[Layout]:
    """Return layouts on at most so many GPUs: each TP, and of mixtures DP with whole experts.

    Attention in groups goes with whole experts. Whether a model fits is not asked.
    """
    layouts: list[Layout] = []
    for tp in TRIED:
        for dp in TRIED:
            if tp * dp > most or (dp > 1 and not mixture):
                continue
            if dp == 1:
                layouts.append(Layout(tp=tp, ep=1, dp=1, pp=1))
            if mixture and tp * dp > 1:
                layouts.append(Layout(tp=tp, ep=tp * dp, dp=dp, pp=1))
    return layouts


def layouts_fitting(most: int, node: int, mixture: bool, fits: Callable[[Layout], bool]) -> list[Layout]:
    """Return the layouts on at most so many GPUs that fit: of those in a `node`, or on as few nodes as do.

    There its GPUs share each matrix, and stages have a part of the layers each.
    """
    layouts = [layout for layout in tried_in_a_node(min(most, node), mixture) if fits(layout)]
    if len(layouts) > 0:
        return layouts
    within = [tp for tp in TRIED if tp <= node]
    for stages in STAGES:
        layout = Layout(tp=within[-1], ep=1, dp=1, pp=stages)
        if layout.tp * stages <= most and fits(layout):
            return [layout]
    return []


def first_of(solved: Solution, names: list[str]) -> str:
    """Return that of some architectures with the highest goodput."""
    at = 0
    while solved.order[at] not in names:
        at += 1
    return solved.order[at]


def pairs_by_bound(halves: list[list[float]], gpus: list[int]) -> list[list[float]]:
    """Return [bound, prefill, decode] of all pairs of layouts, by their places, that which may serve most first.

    `halves` are requests/s that a unit of each feeds, and takes. No split of GPUs into both pools serves more than the
    bound, requests/s of a GPU: that of pools so large that whole units do not matter.
    """
    pairs: list[list[float]] = []
    for p in range(len(halves)):
        for d in range(len(halves)):
            fed, taken = halves[p][0] / gpus[p], halves[d][1] / gpus[d]
            if fed > 0 and taken > 0:
                pairs.append([1 / (1 / fed + 1 / taken), p, d])
    pairs.sort(key=lambda one: -one[0])
    return pairs


def best_pairs(
    halves: list[list[float]], gpus: list[int], tps: list[int], served: Callable[[int, int], float]
) -> list[list[int]]:
    """Return [prefill, decode] for each TP of a decode unit, that whose pools serve most of a GPU.

    Pairs are asked in the order of what no split of them exceeds, until one serves as much as the next may.
    """
    sizes: list[int] = []
    most: list[float] = []
    pairs: list[list[int]] = []
    for bound, p, d in pairs_by_bound(halves, gpus):
        prefill, decode = int(p), int(d)
        at = sizes.index(tps[decode]) if tps[decode] in sizes else len(sizes)
        least = most[at] if at < len(sizes) else 0.0
        if bound <= least:
            continue
        rate = served(prefill, decode)
        if rate > least * NEARLY:
            if at == len(sizes):
                sizes.append(tps[decode])
                most.append(0.0)
                pairs.append([])
            most[at], pairs[at] = rate, [prefill, decode]
    return pairs


class Look(Record):
    """What a layout serves of a GPU in the best of the architectures that are asked of it.

    Output tokens/s within the limits, in the mean over all draws: 0 where most forbid it; and under each draw.
    """

    goodput: float
    tokens: list[float]
    gpus: int


def looked_at(problem: Problem, solved: Solution, names: list[str]) -> Look:
    """Return a look at a layout of which these architectures are asked."""
    name = first_of(solved, names)
    goodput, tokens = goodput_by(problem, solved, name), tokens_by(problem, solved, name)
    return Look(goodput=goodput, tokens=tokens, gpus=problem.unit.gpus)


def near_best(goodputs: list[float]) -> list[int]:
    """Return the places of the layouts that come near the best one, none of which may serve nothing."""
    return layouts_near(goodputs) if len([own for own in goodputs if own > 0]) > 0 else []


def look_order(looks: list[Look]) -> list[int]:
    """Return the places of layouts, that which serves most of a GPU first; of those alone that serve something."""
    if len(looks) == 0:
        return []
    goodputs, tokens, gpus = [one.goodput for one in looks], [one.tokens for one in looks], [one.gpus for one in looks]
    return [i for i in layouts_ranked(goodputs, tokens, gpus).order if goodputs[i] > 0]


def rates_that_fit(problem: Problem, solved: Solution, names: list[str], have: float) -> list[list[float]]:
    """Return the GPUs of the smallest replica, and the requests/s of a GPU at full load, of what fits, if GPUs are."""
    rates: list[list[float]] = []
    for name in names:
        rate = told_rate(solved, name)[0] / problem.unit.gpus
        if rate > 0:
            size = smallest_gpus(problem, name)
            if have <= 0 or size <= have:
                rates.append([size, rate])
    return rates


def firsts(tps: list[int], rates: list[float]) -> list[int]:
    """Return the places of the first few layouts of each TP, those that serve most of a GPU first; 0 is none."""
    able = [i for i in range(len(tps)) if rates[i] > 0]
    able.sort(key=lambda i: -rates[i])
    places: list[int] = []
    for i in able:
        if len([k for k in places if tps[k] == tps[i]]) < FIRST_OF_EACH:
            places.append(i)
    return places


def expected_cost(problem: Problem, solved: Solution, names: list[str], goal: FleetGoal) -> float:
    """Return what a layout costs, as `queues.cost`, if queues leave as much as usual of full load within the limits."""
    least = inf
    for size, each in rates_that_fit(problem, solved, names, goal.have):
        least = min(least, cost(GUESS * each * size, size, goal))
    return least
