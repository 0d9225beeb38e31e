"""Which layouts are tried, and which of them first; the planner's page runs this, too."""

from __future__ import annotations

from math import inf

from inference_math.optimiser.draws import median
from inference_math.optimiser.types import Solution
from inference_math_planner.fleets.queues import GUESS, cost

__all__ = ["TRIED", "expected_cost", "firsts", "rates_that_fit", "tried_in_a_node"]

TRIED = [1, 2, 4, 8, 16]  # sizes of TP and DP
FIRST_OF_EACH = 3  # layouts of each TP that a fleet is sized for, those that serve most at full load


def tried_in_a_node(most: int, mixture: bool) -> list[dict[str, int]]:
    """Return layouts on at most so many GPUs: each TP, and of mixtures DP with whole experts.

    Attention in groups goes with whole experts. Whether a model fits is not asked.
    """
    found: list[dict[str, int]] = []
    for tp in TRIED:
        for dp in TRIED:
            if tp * dp > most or (dp > 1 and not mixture):
                continue
            if dp == 1:
                found.append({"tp": tp, "ep": 1, "dp": 1, "pp": 1})
            if mixture and tp * dp > 1:
                found.append({"tp": tp, "ep": tp * dp, "dp": dp, "pp": 1})
    return found


def rates_that_fit(solved: Solution, gpus: int, have: float) -> list[list[float]]:
    """Return the GPUs of the smallest replica, and the requests/s of a unit at full load, of what fits, if GPUs are.

    `gpus` are a unit's; pools take two units.
    """
    found: list[list[float]] = []
    for name in solved["order"]:
        size = 2 * gpus if name == "disaggregated" else gpus
        if have <= 0 or size <= have:
            found.append([size, median(solved["rates"][name])])
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


def expected_cost(solved: Solution, gpus: int, traffic: float, have: float) -> float:
    """Return what a layout costs, as `queues.cost`, if queues leave as much as usual of full load within the limits."""
    least = inf
    for size, each in rates_that_fit(solved, gpus, have):
        least = min(least, cost(GUESS * each * size / gpus, size, traffic, have))
    return least
