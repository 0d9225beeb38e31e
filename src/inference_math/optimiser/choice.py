"""One choice under many draws: settings of each architecture, what they serve in each draw, and which serves most.

A draw is one set of coefficients that the calibration allows. Settings are chosen once, so that they keep the limits in
nine of ten draws; in a draw that misses them, settings for that draw alone stand in, for somebody would turn them down.
So all architectures are compared under the same draws, each as it would be run.
"""

from __future__ import annotations

from math import ceil, exp, log

from inference_math.optimiser.doubt import factors_of
from inference_math.optimiser.draws import interval, median
from inference_math.optimiser.load import (
    chunk_size_full,
    decode_units,
    gap_beside,
    loaded,
    most_prefill,
    pools_each,
    settings_row,
    strain,
    used_units,
)
from inference_math.optimiser.search import ARCHITECTURES, NEVER, NONE, edge, highest, peak
from inference_math.optimiser.types import Ranking, Solution
from inference_math.unit.asked import NEARLY
from inference_math.unit.batch import largest_batch, largest_whole
from inference_math.unit.types import Asked, Row, Step, StepCosts, Target

LIKELY = 0.7  # of the chances, that a choice is the best: with less it is open which one is
CAREFUL = 0.9  # of the draws must keep the limits with the settings that are chosen
RESOLVED = 1.04  # times a rate: what simulations do not tell apart
MOST_FED = 0.97  # of what a prefill unit computes at most: fewer prompts together wait less for each other
TENTHS = 9  # of the draws keep the limits beside a chunk, or as many fewer as there must be
LARGEST = 4  # prompts' tokens in a chunk
FEW = 1e-3  # decodes
FINE = 30  # halvings of a number of decodes: coarser ones make peaks that are none
HOPEFUL = 0.75  # of the best layout's tokens at a first look: what serves less is not looked at again
LAST = 1e6  # behind all that most draws allow
LOOKED = 8  # every so many draws make a first look at a layout


def largest_batches(target: Target, drawn: list[StepCosts]) -> list[int]:
    """Return the largest batch within the limits under each draw, aggregated."""
    steps, quantile, room = target["steps"], target["quantile"], target["room"]
    found: list[int] = []
    guess = 1
    for one in drawn:
        wait = target["ttft"] - one["front"]
        guess = largest_batch(one["mixed"], guess, room, steps, target["step"], wait, quantile)
        found.append(guess)
    return found


def held_by_most(values: list[int]) -> int:
    """Return the largest number that nine in ten of the numbers reach; where that is 0, as many tenths as reach more.

    0 where not one in ten does.
    """
    ordered = list(values)
    ordered.sort(key=lambda one: -one)
    for k in range(TENTHS):
        most = ordered[ceil((TENTHS - k) / 10 * len(ordered) - 1e-9) - 1]
        if most > 0:
            return most
    return 0


def chosen_settings(target: Target, name: str, drawn: list[StepCosts]) -> Row:
    """Return the settings of an architecture that keep the limits in nine of ten draws and serve most; rate 0: none."""
    if name == "aggregated":
        batch = held_by_most(largest_batches(target, drawn))
        return settings_row(batch, NEVER, NEVER) if batch > 0 else NONE
    if name == "chunked":
        return chunked_settings(target, drawn) if target["mixes"] else NONE
    return pools_settings(target, drawn)


def chunked_settings(target: Target, drawn: list[StepCosts]) -> Row:
    """Return the chunk, and the decodes that nine in ten draws allow beside it, with which a unit serves most.

    For a chunk more decodes serve more, and strain the limits more. Where nine in ten draws allow none, as many tenths
    as allow some: so at the limits at which nine in ten just begin to, the rate falls.
    """
    if len(drawn) == 1:
        return chunked_alone(target, drawn[0])
    for k in range(TENTHS):
        found = chunked_by(target, drawn, (TENTHS - k) / 10)
        if found["rate"] > 0:
            return found
    return NONE


def chunked_by(target: Target, drawn: list[StepCosts], share: float) -> Row:
    """Return the same for a share of the draws, whatever that leaves of the rate."""
    n_in, room = target["n_in"], target["room"]
    longest = log(max(max(LARGEST * n_in, chunk_size_full(room, n_in, target["steps"])), 2.0))
    # The chunk that strains the limits least; about it those that leave room for a decode, between two ends.
    easiest = peak(lambda at: -strain_of_most(target, drawn, exp(at), share), 0.0, longest)
    ordered = hardest_first(target, drawn, exp(easiest))

    def some(at: float) -> bool:
        return allowed_beside(target, ordered, exp(at), share, 0) > 0

    if not some(easiest):
        return NONE
    low, high = edge(some, easiest, 0.0), edge(some, easiest, longest)
    place = highest(lambda at: served_beside(target, ordered, exp(at), share), low, high)
    batch = allowed_beside(target, ordered, exp(place), share, FINE)
    return settings_row(batch, exp(place), NEVER) if batch > 0 else NONE


def strains(target: Target, drawn: list[StepCosts], chunk: float) -> list[float]:
    """Return which part of the limits a chunk takes beside next to no decodes, in each draw."""
    own = settings_row(FEW, chunk, NEVER)
    return [strain(target, one, "chunked", own) for one in drawn]


def hardest_first(target: Target, drawn: list[StepCosts], chunk: float) -> list[StepCosts]:
    """Return the draws by what a chunk takes of the limits: so it is soon known where too many of them miss one."""
    parts, order = strains(target, drawn, chunk), list(range(len(drawn)))
    order.sort(key=lambda i: -parts[i])
    return [drawn[i] for i in order]


def strain_of_most(target: Target, drawn: list[StepCosts], chunk: float, share: float) -> float:
    """Return which part of the limits a chunk takes in all of a share of the draws."""
    parts = strains(target, drawn, chunk)
    parts.sort(key=lambda part: part)
    return parts[ceil(share * len(parts) - 1e-9) - 1]


def chunked_alone(target: Target, one: StepCosts) -> Row:
    """Return the settings of chunks for one draw: the decodes that serve most beside their smallest chunk.

    That is the smallest which feeds them within the limits.
    """
    n_in, step, longest, room = target["n_in"], one["apiece"], target["step"], target["room"]
    steps, wait = target["steps"], target["ttft"] - one["front"]

    def in_limit(b: float, chunk: float) -> bool:
        prompts = chunk / n_in
        return gap_beside(step(b, prompts), one["load"], prompts, 1.0, target["quantile"]) <= longest

    def prompt(b: float, chunk: float) -> float:
        seconds: float = (n_in / chunk + 1) * step(b, chunk / n_in)
        return seconds  # it begins and ends within chunks

    def smallest_chunk(b: float) -> float:
        balance, free = chunk_size_full(b, n_in, steps), room - b
        # Prompts under way hold places, too: balance / chunk of one, or balance / n_in where a chunk is longer.
        if balance > free * n_in or not free > 0:
            return 0.0
        least: float = max(balance / target["groups"], max(balance / free, 1.0))
        if not in_limit(b, least):
            return 0.0
        if prompt(b, least) <= wait:
            return least
        most = edge(lambda chunk: in_limit(b, chunk), least, max(LARGEST * n_in, least))
        quickest = highest(lambda chunk: -prompt(b, chunk), least, most)
        if prompt(b, quickest) > wait:
            return 0.0
        return edge(lambda chunk: prompt(b, chunk) <= wait, quickest, least)

    def served(b: float) -> float:
        chunk = smallest_chunk(b)
        return loaded(target, one, "chunked", settings_row(b, chunk, NEVER))["rate"] if chunk > 0 else 0.0

    if not served(FEW) > 0:
        return NONE
    most = edge(lambda b: served(b) > 0, FEW, max(room, FEW))
    batch = highest(served, FEW, most)
    return settings_row(batch, smallest_chunk(batch), NEVER)


def served_beside(target: Target, drawn: list[StepCosts], chunk: float, share: float) -> float:
    """Return the requests/s with a chunk and the decodes that a share of the draws allow beside it, the median."""
    batch = allowed_beside(target, drawn, chunk, share, FINE)
    if not batch > 0:
        return 0.0
    own = settings_row(batch, chunk, NEVER)
    return median([loaded(target, one, "chunked", own)["rate"] for one in drawn])


def allowed_beside(target: Target, drawn: list[StepCosts], chunk: float, share: float, halvings: int) -> float:
    """Return the most decodes that a chunk feeds and that a share of the draws allow beside it; 0: none.

    The hardest draws come first: it is looked for among few of them, and the others are asked about what was found.
    """
    n_in, steps, room = target["n_in"], target["steps"], target["room"]
    spare = len(drawn) - ceil(share * len(drawn) - 1e-9)

    def good(b: float, some: list[StepCosts]) -> bool:
        balance, free = chunk_size_full(b, n_in, steps), room - b
        # Prompts under way hold places, too: balance / chunk of one, or balance / n_in where a chunk is longer.
        if balance > target["groups"] * chunk or not free > 0 or balance > free * n_in or balance > free * chunk:
            return False
        own, missed = settings_row(b, chunk, NEVER), 0
        for one in some:
            if strain(target, one, "chunked", own) > NEARLY:
                missed += 1
                if missed > spare:
                    return False
        return True

    def most_by(some: list[StepCosts]) -> float:
        low, high = FEW, room
        for _ in range(halvings):
            middle = (low * high) ** 0.5
            if good(middle, some):
                low = middle
            else:
                high = middle
        return low

    if not good(FEW, drawn):
        return 0.0
    found = most_by(drawn[: 2 * spare + 2])
    return found if good(found, drawn) else most_by(drawn)


def pools_settings(target: Target, drawn: list[StepCosts]) -> Row:
    """Return decodes, prompts and a split of the pools that nine in ten draws allow, and that serve most on average."""
    own = pools_row(target, drawn)
    if not own["rate"] > 0:
        return NONE
    each = [pools_each(target, one, own) for one in drawn]

    def served(prefill: int) -> float:
        total = 0.0
        for fed, taken in each:
            total += min(prefill * fed, decode_units(target, prefill) * taken)
        return total / used_units(target, prefill)

    # Units of two sizes leave GPUs over by turns: more prefill units may serve less, and still more of them more.
    split, top = 0, 0.0
    for k in range(1, most_prefill(target["units"], target["prefill_gpus"]) + 1):
        many = served(k)
        if many > top * NEARLY:
            split, top = k, many
    return settings_row(own["batch"], own["chunk"], split) if split > 0 else NONE


def pools_row(target: Target, drawn: list[StepCosts]) -> Row:
    """Return the decodes of a decode unit, and the prompts of a prefill unit, that nine in ten draws allow."""
    batch, prompts = decodes_held(target, drawn), prompts_held(target, drawn)
    return settings_row(batch, prompts * target["n_in"], NEVER) if batch >= 1 and prompts >= 1 else NONE


def decodes_held(target: Target, drawn: list[StepCosts]) -> int:
    """Return the most decodes of a decode unit that nine in ten draws allow."""
    tpot = target["step"] - target["sent"] / (target["steps"] - 1)
    return held_by_most([most_decodes(one["mixed"], target["room"], tpot) for one in drawn])


def prompts_held(target: Target, drawn: list[StepCosts]) -> int:
    """Return the prompts that a prefill unit computes together, the fewest that give nearly all.

    Together they share the weight read; but they wait for each other.
    """
    limit = target["ttft"] - target["handover"]
    most = held_by_most([most_prompts(one["prefill"], target["together"], limit - one["front"]) for one in drawn])

    def fed(k: int) -> float:
        total = 0.0
        for one in drawn:
            total += k / one["prefill"](0.0, k)
        return total

    enough = MOST_FED * fed(max(most, 1))
    return min(most, largest_whole(most, lambda k: fed(k) < enough) + 1)


def pools_halves(target: Target, drawn: list[StepCosts]) -> list[float]:
    """Return the requests/s that a unit feeds as one of a prefill pool, and takes as one of a decode pool, in the mean.

    0 of what it cannot do within the limits.
    """
    batch, prompts = decodes_held(target, drawn), prompts_held(target, drawn)
    own = settings_row(max(batch, 1), max(prompts, 1) * target["n_in"], NEVER)
    each = [pools_each(target, one, own) for one in drawn]
    fed, taken = mean([one[0] for one in each]), mean([one[1] for one in each])
    return [fed if prompts >= 1 else 0.0, taken if batch >= 1 else 0.0]


def most_decodes(step: Step, room: float, tpot: float) -> int:
    """Return the most decodes of a unit that only decodes."""
    return largest_whole(room, lambda b: step(b, 0.0) <= tpot)


def most_prompts(step: Step, room: float, ttft: float) -> int:
    """Return the most prompts that a unit may compute together."""
    return largest_whole(room, lambda k: step(0.0, k) <= ttft)


def decide(targets: list[Target], costs: list[list[StepCosts]], doubts: dict[str, list[float]]) -> Solution:
    """Return the settings of each architecture, what they do under each draw, and which serves most in the mean.

    Targets and costs are first those of units that do both, then those of pools.
    settings, each (rows by draw), kept (share of the draws that keep the limits with the settings), rates (by draw),
    best_in (chances) and none_in (share of the draws), loss, order (the smallest loss first), best ("" where most draws
    have none), lead of the first over the second, and tie. `doubts`: see `doubt.doubts`.
    """
    settings: dict[str, Row] = {}
    each: dict[str, list[Row]] = {}
    kept: dict[str, float] = {}
    rates: dict[str, list[float]] = {}
    for name in ARCHITECTURES:
        pooled = 1 if name == "disaggregated" else 0
        target, drawn = targets[pooled], costs[pooled]
        own = chosen_settings(target, name, drawn)
        keeping = [own["rate"] > 0 and strain(target, one, name, own) <= NEARLY for one in drawn]
        rows = served_with(target, drawn, name, own, keeping)
        settings[name], each[name] = own, rows
        kept[name] = len([one for one in keeping if one]) / len(drawn)
        rates[name] = [row["rate"] for row in rows]
    solution = chosen(rates, doubts)
    solution["settings"] = settings
    solution["each"] = each
    solution["kept"] = kept
    return solution


def served_with(target: Target, drawn: list[StepCosts], name: str, own: Row, keeping: list[bool]) -> list[Row]:
    """Return what an architecture does under each draw with its settings, or where they miss a limit, with others."""
    rows: list[Row] = []
    for i in range(len(drawn)):
        if keeping[i]:
            rows.append(loaded(target, drawn[i], name, own))
        else:
            rows.append(alone(target, drawn[i], name) if own["rate"] > 0 else NONE)
    return rows


def alone(target: Target, one: StepCosts, name: str) -> Row:
    """Return what an architecture does with settings for one draw alone."""
    own = chosen_settings(target, name, [one])
    return loaded(target, one, name, own) if own["rate"] > 0 else NONE


def chosen(rates: dict[str, list[float]], doubts: dict[str, list[float]]) -> Solution:
    """Return the choice by the requests/s of each architecture under each draw: the most in the mean over the draws.

    Of those that meet the limits in most draws: among them it is the least expected regret, in requests/s. Who else is
    asked changes no choice and no order of those, for what two serve in the mean does not hang on a third; the lead is
    that over the second of all that were asked. It is a tie where the choice is the best less often than `LIKELY`, over
    the draws and the `doubts` that no draw moves.
    """
    served = [rates[name] for name in ARCHITECTURES]
    lost = losses(served)
    placed = ranks(served, lost)
    loss, rank = {}, {}
    for i in range(len(ARCHITECTURES)):
        loss[ARCHITECTURES[i]] = told_loss(placed[i])
        rank[ARCHITECTURES[i]] = placed[i]
    names = list(ARCHITECTURES)
    names.sort(key=lambda name: rank[name])
    first, second = names[0], names[1]
    best = first if median(rates[first]) > 0 else ""
    ahead = leads(rates[first], rates[second])
    lead = mean(ahead) if median(rates[second]) > 0 else NEVER
    best_in = shares_best(rates, doubts)
    return {
        "rates": rates,
        "best_in": best_in,
        "none_in": none_in(rates),
        "loss": loss,
        "order": names,
        "best": best,
        "lead": lead,
        "tie": best != "" and best_in[best] < LIKELY,
    }


def losses(served: list[list[float]]) -> list[float]:
    """Return by how much less each serves in the mean over the draws than the best one, as a share of that.

    The best of those that meet the limits in most draws. One that does not may serve more: a loss below 0.
    """
    means = [mean(one) for one in served]
    most = 0.0
    for one in served:
        most = max(most, mean(one) if median(one) > 0 else 0.0)
    return [1 - one / most if most > 0 else 1.0 for one in means]


def ranks(served: list[list[float]], lost: list[float]) -> list[float]:
    """Return by what options are ordered, the least first: their losses, behind all others those of the forbidden.

    An option is forbidden where most draws do not allow it.
    """
    return [lost[i] if median(served[i]) > 0 else lost[i] + LAST for i in range(len(served))]


def told_loss(rank: float) -> float:
    """Return the loss to tell of an option by its rank: all of it where most draws forbid it."""
    return rank if rank <= 1 else 1.0


def leads(first: list[float], second: list[float]) -> list[float]:
    """Return draw by draw by how much more one serves than another, as a share of what it serves in the mean.

    Draws in which neither meets the limits tell nothing, and are left out.
    """
    able = [i for i in range(len(first)) if max(first[i], second[i]) > 0]
    own = mean([first[i] for i in able])
    return [(first[i] - second[i]) / own if own > 0 else -1.0 for i in able]


def mean(values: list[float]) -> float:
    """Return the mean of numbers, 0 of none."""
    total = 0.0
    for one in values:
        total += one
    return total / max(len(values), 1)


def best_rates(rates: dict[str, list[float]]) -> list[float]:
    """Return under each draw the highest rate of any architecture."""
    return most_in([rates[name] for name in ARCHITECTURES])


def most_in(served: list[list[float]]) -> list[float]:
    """Return under each draw the most that any one serves."""
    found: list[float] = []
    for d in range(len(served[0])):
        most = 0.0
        for one in served:
            most = max(most, one[d])
        found.append(most)
    return found


def regret(rates: dict[str, list[float]], name: str) -> float:
    """Return by how much more the best one of each draw serves in the mean than one that is always chosen, as a share.

    That is what it costs not to know the draw.
    """
    own = mean(rates[name])
    return mean(best_rates(rates)) / own - 1 if own > 0 else 0.0


def shares_best(rates: dict[str, list[float]], doubts: dict[str, list[float]]) -> dict[str, float]:
    """Return how often each architecture is the best, over the draws and the doubts; equal ones share.

    In each draw all evenly likely factors of the architectures' rates meet each other.
    """
    count, told = len(rates[ARCHITECTURES[0]]), {}
    for name in ARCHITECTURES:
        told[name] = 0.0
    off = [factors_of(doubts[name]) for name in ARCHITECTURES]
    part = 1 / (count * len(off[0]) * len(off[1]) * len(off[2]))
    for i in range(count):
        served = [rates[name][i] for name in ARCHITECTURES]
        for first in off[0]:
            for second in off[1]:
                for third in off[2]:
                    shared(told, [first * served[0], second * served[1], third * served[2]], part)
    return told


def shared(told: dict[str, float], served: list[float], part: float) -> None:
    """Give a part of the chances to the architecture that serves most; equal ones share it, and none that serves 0."""
    most = max(served[0], max(served[1], served[2]))
    if most > 0:
        equal = [i for i in range(len(served)) if served[i] * NEARLY >= most]
        for i in equal:
            told[ARCHITECTURES[i]] += part / len(equal)


def none_in(rates: dict[str, list[float]]) -> float:
    """Return the share of the draws in which no architecture meets the limits."""
    best = best_rates(rates)
    return len([one for one in best if not one > 0]) / len(best)


def median_row(rows: list[Row]) -> dict[str, list[float]]:
    """Return the median and both ends, over the draws, of what an architecture does where it does anything."""
    able = [row for row in rows if row["rate"] > 0]
    return {
        "rate": interval(NEVER, [row["rate"] for row in rows]),
        "decodes": interval(NEVER, [row["decodes"] for row in able]),
        "ttft": interval(NEVER, [row["ttft"] for row in able]),
        "tpot": interval(NEVER, [row["tpot"] for row in able]),
        "step": interval(NEVER, [row["step"] for row in able]),
    }


def tokens_of(asked: Asked, solved: Solution) -> list[float]:
    """Return output tokens per second of a GPU under each draw, of the chosen architecture at full load."""
    return tokens_by(asked, solved, solved["order"][0])


def tokens_by(asked: Asked, solved: Solution, name: str) -> list[float]:
    """Return the same of one architecture."""
    rates = solved["rates"][name]
    return [rate * asked["work"]["n_out"] / asked["unit"]["gpus"] for rate in rates]


def layouts_near(tokens: list[list[float]]) -> list[int]:
    """Return which layouts come near the best one by a first look, given by tokens of a GPU under a few draws."""
    most = 0.0
    for one in tokens:
        most = max(most, median(one))
    return [i for i in range(len(tokens)) if median(tokens[i]) >= HOPEFUL * most]


def layouts_ranked(tokens: list[list[float]], gpus: list[int]) -> Ranking:
    """Return the order of layouts by what they serve in the mean; loss and best_in of each.

    By tokens of a GPU under each draw; of equal ones the smaller unit comes first.
    """
    best, best_in = most_in(tokens), [0.0 for _ in tokens]
    rank = ranks(tokens, losses(tokens))
    for d in range(len(best)):
        firsts = [i for i in range(len(tokens)) if best[d] > 0 and tokens[i][d] * NEARLY >= best[d]]
        if len(firsts) > 0:
            best_in[firsts[0]] += 1 / len(best)
    order = list(range(len(tokens)))
    order.sort(key=lambda i: gpus[i])
    order.sort(key=lambda i: rank[i])  # of equal ones the first stays the first
    return {"order": order, "loss": [told_loss(one) for one in rank], "best_in": best_in}
