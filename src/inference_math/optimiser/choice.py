"""One choice under many draws: what each architecture serves with its settings, and which serves most.

A draw is one set of coefficients that the calibration allows. `settings` are chosen once, for all draws; in a draw that
misses a limit with them, settings for that draw alone stand in, for somebody would turn them down. So all architectures
are compared under the same draws, each as it would be run.
"""

from __future__ import annotations

from msgspec.structs import replace

from inference_math.optimiser.draws import interval, mean_of, median
from inference_math.optimiser.gain_error import chances_best
from inference_math.optimiser.load import at_full_load
from inference_math.optimiser.search import ARCHITECTURES, INFEASIBLE, NEVER
from inference_math.optimiser.settings import chosen_settings, keeping
from inference_math.optimiser.types import Ranking, Solution
from inference_math.unit.problem import NEARLY
from inference_math.unit.types import OperatingPoint, Problem, SearchConstants, StepCosts

LIKELY = 0.7  # of the chances, that a choice is the best: with less it is open which one is
CAREFUL = 0.9  # of the chances, or of the draws: what is as good as sure
RESOLVED = 1.04  # times a rate: what simulations do not tell apart
HOPEFUL = 0.75  # of the best layout's tokens at a first look: what serves less is not looked at again
LAST = 1e6  # behind all that most draws allow
LOOKED = 8  # every so many draws make a first look at a layout


def decide(
    constants_each: list[SearchConstants], costs: list[list[StepCosts]], gain_errors: dict[str, list[float]]
) -> Solution:
    """Return the settings of each architecture, what they do under each draw, and which serves most in the mean.

    Targets and costs are first those of units that do both, then those of pools.
    settings, each (rows by draw), kept (share of the draws that keep the limits with the settings), rates (by draw),
    and what `chosen` has. `gain_errors`: see `gain_error.gain_errors`.
    """
    settings: dict[str, OperatingPoint] = {}
    each: dict[str, list[OperatingPoint]] = {}
    feasible_share: dict[str, float] = {}
    rates: dict[str, list[float]] = {}
    goodput: dict[str, float] = {}
    for name in ARCHITECTURES:
        pooled = 1 if name == "disaggregated" else 0
        constants, drawn = constants_each[pooled], costs[pooled]
        own = chosen_settings(constants, name, drawn)
        keeps = keeping(constants, drawn, name, own)
        rows = served_with(constants, drawn, name, own, keeps)
        settings[name], each[name] = own, rows
        feasible_share[name] = len([one for one in keeps if one]) / len(drawn)
        rates[name] = [row.rate for row in rows]
        goodput[name] = feasible_rate(rates[name], keeps)
    return replace(chosen(rates, goodput, gain_errors), settings=settings, each=each, feasible_share=feasible_share)


def feasible_rate(rates: list[float], keeps: list[bool]) -> float:
    """Return the goodput: the mean of rates over all draws, where those that do not keep the limits count nothing."""
    return mean_of([rates[i] if keeps[i] else 0.0 for i in range(len(rates))])


def served_with(
    constants: SearchConstants, drawn: list[StepCosts], name: str, own: OperatingPoint, keeps: list[bool]
) -> list[OperatingPoint]:
    """Return what an architecture does under each draw with its settings, or where they miss a limit, with others."""
    rows: list[OperatingPoint] = []
    for i in range(len(drawn)):
        if keeps[i]:
            rows.append(at_full_load(constants, drawn[i], name, own))
        else:
            rows.append(alone(constants, drawn[i], name) if own.rate > 0 else INFEASIBLE)
    return rows


def alone(constants: SearchConstants, one: StepCosts, name: str) -> OperatingPoint:
    """Return what an architecture does with settings for one draw alone."""
    own = chosen_settings(constants, name, [one])
    return at_full_load(constants, one, name, own) if own.rate > 0 else INFEASIBLE


def chosen(rates: dict[str, list[float]], goodput: dict[str, float], gain_errors: dict[str, list[float]]) -> Solution:
    """Return the choice by the goodput of each architecture, in requests/s: the highest.

    Of those that meet the limits in most draws, by their rates under each draw. It is the least expected regret. Errors
    that no draw moves, the `gain_errors`, have a median of nearly 1, and are not in it. Who else is asked changes no
    choice and no order, for the goodput of two does not hang on a third; the lead is that over the second of all that
    were asked. It is a tie where the choice is the best less often than `LIKELY`, over the draws and the `gain_errors`.
    """
    means = [goodput[name] for name in ARCHITECTURES]
    able = [median(rates[name]) > 0 for name in ARCHITECTURES]
    placed = ranks(losses(means, able), able)
    loss, rank = {}, {}
    for i in range(len(ARCHITECTURES)):
        loss[ARCHITECTURES[i]] = told_loss(placed[i])
        rank[ARCHITECTURES[i]] = placed[i]
    names = list(ARCHITECTURES)
    names.sort(key=lambda name: rank[name])
    first, second = names[0], names[1]
    best = first if median(rates[first]) > 0 else ""
    lead = 1 - goodput[second] / goodput[first] if median(rates[second]) > 0 else NEVER
    best_in = shares_best(rates, gain_errors)
    return Solution(
        rates=rates,
        goodput=goodput,
        best_in=best_in,
        none_in=none_in(rates),
        loss=loss,
        order=names,
        best=best,
        lead=lead,
        tie=best != "" and best_in[best] < LIKELY,
    )


def losses(means: list[float], able: list[bool]) -> list[float]:
    """Return by how much less each serves in the mean than the best one of the able ones, as a share of that.

    One that is not able may serve more: a loss below 0.
    """
    most = 0.0
    for i in range(len(means)):
        most = max(most, means[i] if able[i] else 0.0)
    return [1 - own / most if most > 0 else 1.0 for own in means]


def ranks(lost: list[float], able: list[bool]) -> list[float]:
    """Return by what options are ordered, the least first: their losses, behind all others those of the forbidden.

    An option is able where most draws allow it, else forbidden.
    """
    return [lost[i] if able[i] else lost[i] + LAST for i in range(len(lost))]


def told_loss(rank: float) -> float:
    """Return the loss to tell of an option by its rank: all of it where most draws forbid it."""
    return rank if rank <= 1 else 1.0


def told_rate(solved: Solution, name: str) -> list[float]:
    """Return the goodput of an architecture in requests/s, with the ends of what it serves over the draws.

    0 of what most draws do not allow.
    """
    ends = interval(NEVER, solved.rates[name])
    goodput = solved.goodput[name] if ends[0] > 0 else 0.0
    return [goodput, min(ends[1], goodput), max(ends[2], goodput)]


def leads(first: list[float], second: list[float]) -> list[float]:
    """Return draw by draw by how much more one serves than another, as a share of what it serves in the mean.

    Draws in which neither meets the limits tell nothing, and are left out.
    """
    able = [i for i in range(len(first)) if max(first[i], second[i]) > 0]
    own = mean_of([first[i] for i in able])
    return [(first[i] - second[i]) / own if own > 0 else -1.0 for i in able]


def best_rates(rates: dict[str, list[float]]) -> list[float]:
    """Return under each draw the highest rate of any architecture."""
    return most_in([rates[name] for name in ARCHITECTURES])


def most_in(served: list[list[float]]) -> list[float]:
    """Return under each draw the most that any one serves."""
    highest: list[float] = []
    for d in range(len(served[0])):
        most = 0.0
        for one in served:
            most = max(most, one[d])
        highest.append(most)
    return highest


def regret(rates: dict[str, list[float]], name: str) -> float:
    """Return by how much more the best one of each draw serves in the mean than one that is always chosen, as a share.

    That is what it costs not to know the draw.
    """
    own = mean_of(rates[name])
    return mean_of(best_rates(rates)) / own - 1 if own > 0 else 0.0


def shares_best(rates: dict[str, list[float]], gain_errors: dict[str, list[float]]) -> dict[str, float]:
    """Return how often each architecture is the best, over the draws and the errors; equal ones share."""
    count, often = len(rates[ARCHITECTURES[0]]), {}
    for name in ARCHITECTURES:
        often[name] = 0.0
    off = [gain_errors[name] for name in ARCHITECTURES]
    for i in range(count):
        chances = chances_best([rates[name][i] for name in ARCHITECTURES], off)
        for k in range(len(chances)):
            often[ARCHITECTURES[k]] += chances[k] / count
    return often


def none_in(rates: dict[str, list[float]]) -> float:
    """Return the share of the draws in which no architecture meets the limits."""
    best = best_rates(rates)
    return len([one for one in best if not one > 0]) / len(best)


def middle_row(solved: Solution, name: str) -> dict[str, list[float]]:
    """Return the goodput of an architecture, and medians over the draws where it does anything, with both ends."""
    able = [row for row in solved.each[name] if row.rate > 0]
    return {
        "rate": told_rate(solved, name),
        "decodes": interval(NEVER, [row.decodes for row in able]),
        "ttft": interval(NEVER, [row.ttft for row in able]),
        "tpot": interval(NEVER, [row.tpot for row in able]),
        "step": interval(NEVER, [row.step for row in able]),
    }


def tokens_by(problem: Problem, solved: Solution, name: str) -> list[float]:
    """Return output tokens per second of a GPU under each draw, of one architecture at full load."""
    return [rate * problem.work.n_out / problem.unit.gpus for rate in solved.rates[name]]


def goodput_by(problem: Problem, solved: Solution, name: str) -> float:
    """Return output tokens per second of a GPU within the limits, in the mean over all draws; 0: most forbid it."""
    return told_rate(solved, name)[0] * problem.work.n_out / problem.unit.gpus


def layouts_near(goodputs: list[float]) -> list[int]:
    """Return which layouts come near the best one by a first look, given the goodput of a GPU under a few draws."""
    most = 0.0
    for own in goodputs:
        most = max(most, own)
    return [i for i in range(len(goodputs)) if goodputs[i] >= HOPEFUL * most]


def layouts_ranked(goodputs: list[float], tokens: list[list[float]], gpus: list[int]) -> Ranking:
    """Return the order of layouts by the goodput of a GPU; loss and best_in of each, by its tokens under each draw.

    Of equal ones the smaller unit comes first.
    """
    best, best_in = most_in(tokens), [0.0 for _ in tokens]
    able = [own > 0 for own in goodputs]
    rank = ranks(losses(goodputs, able), able)
    for d in range(len(best)):
        firsts = [i for i in range(len(tokens)) if best[d] > 0 and tokens[i][d] * NEARLY >= best[d]]
        if len(firsts) > 0:
            best_in[firsts[0]] += 1 / len(best)
    order = list(range(len(tokens)))
    order.sort(key=lambda i: gpus[i])
    order.sort(key=lambda i: rank[i])  # of equal ones the first stays the first
    return Ranking(order=order, loss=[told_loss(own) for own in rank], best_in=best_in)
