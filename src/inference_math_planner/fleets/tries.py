"""Which layouts are tried, and which of them first; the planner's page runs this, too."""

from __future__ import annotations

from math import inf

from inference_math.optimiser.choice import told_rate
from inference_math.optimiser.types import Solution
from inference_math.unit.types import Asked, Layout
from inference_math_planner.fleets.queues import GUESS, cost, smallest_gpus
from inference_math_planner.fleets.types import FleetGoal

__all__ = [
    "IN_POOLS", "TOGETHER", "TRIED", "expected_cost", "first_of", "firsts", "pairs_by_bound", "rates_that_fit",
    "tried_in_a_node",
]  # fmt: skip

TOGETHER = ["aggregated", "chunked"]  # one unit does both
IN_POOLS = ["disaggregated"]

TRIED = [1, 2, 4, 8, 16]  # sizes of TP and DP
FIRST_OF_EACH = 3  # layouts of each TP that a fleet is sized for, those that serve most at full load


def tried_in_a_node(most: int, mixture: bool) -> list[Layout]:
    """Return layouts on at most so many GPUs: each TP, and of mixtures DP with whole experts.

    Attention in groups goes with whole experts. Whether a model fits is not asked.
    """
    found: list[Layout] = []
    for tp in TRIED:
        for dp in TRIED:
            if tp * dp > most or (dp > 1 and not mixture):
                continue
            if dp == 1:
                found.append(Layout(tp=tp, ep=1, dp=1, pp=1))
            if mixture and tp * dp > 1:
                found.append(Layout(tp=tp, ep=tp * dp, dp=dp, pp=1))
    return found


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
    found: list[list[float]] = []
    for p in range(len(halves)):
        for d in range(len(halves)):
            fed, taken = halves[p][0] / gpus[p], halves[d][1] / gpus[d]
            if fed > 0 and taken > 0:
                found.append([1 / (1 / fed + 1 / taken), p, d])
    found.sort(key=lambda one: -one[0])
    return found


def rates_that_fit(asked: Asked, solved: Solution, names: list[str], have: float) -> list[list[float]]:
    """Return the GPUs of the smallest replica, and the requests/s of a GPU at full load, of what fits, if GPUs are."""
    found: list[list[float]] = []
    for name in names:
        rate = told_rate(solved, name)[0] / asked.unit.gpus
        if rate > 0:
            size = smallest_gpus(asked, name)
            if have <= 0 or size <= have:
                found.append([size, rate])
    return found


def firsts(tps: list[int], rates: list[float]) -> list[int]:
    """Return the places of the first few layouts of each TP, those that serve most of a GPU first; 0 is none."""
    able = [i for i in range(len(tps)) if rates[i] > 0]
    able.sort(key=lambda i: -rates[i])
    found: list[int] = []
    for i in able:
        if len([k for k in found if tps[k] == tps[i]]) < FIRST_OF_EACH:
            found.append(i)
    return found


def expected_cost(asked: Asked, solved: Solution, names: list[str], goal: FleetGoal) -> float:
    """Return what a layout costs, as `queues.cost`, if queues leave as much as usual of full load within the limits."""
    least = inf
    for size, each in rates_that_fit(asked, solved, names, goal.have):
        least = min(least, cost(GUESS * each * size, size, goal))
    return least
