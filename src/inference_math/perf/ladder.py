"""A ladder of tiers for users who come back: what each finds and brings, how big a store must be, what it is worth."""

from __future__ import annotations

from math import ceil, floor, inf

from inference_math.checks.numerals import digits, percent
from inference_math.perf.batch import largest_whole
from inference_math.perf.draws import interval
from inference_math.perf.sessions import border, found_within, prompt_of, session_of
from inference_math.perf.types import LadderNumbers, StepTimes, TierRow
from inference_math.perf.visits import Served, calm, store_for, turns_held, visits

__all__ = [
    "FOUND_SHARES",
    "as_gb",
    "ceiling_of",
    "ladder",
    "ladder_head",
    "ladder_notes",
    "latency_ends",
    "sizes_for",
    "tier_row",
    "units_alone",
    "users_kept",
]

FOUND_SHARES = [0.5, 0.9, 0.99]  # of what a store finds that drops nothing: the sizes that an answer names
LOST = 0.1  # of what can be found: next to nothing
CLIFF = 1.25  # the size that finds nearly all over the one that finds half
NEAR = 0.02  # by which a rate is as good
MOST_USERS = 2**20  # of a unit, within limits
MOSTLY = 0.6  # of HBM taken by turns in flight: simulated waits for room were longer than their law's
BRIM = 0.95  # from here on the law holds again
GROWS = 1.1  # so small are steps that look for the first miss


def tier_row(asked: LadderNumbers, cost: StepTimes, below: int) -> TierRow:
    """Return what users see with the tiers down to one, and how many of them these hold; all units together."""
    turns, units, groups = asked["turns"], asked["units"], asked["habits"]["groups"]
    tokens, loads = asked["tokens"][: below + 1], asked["loads"][: below + 1]
    at = visits(calm(turns, asked["front"]), asked["users"] / units, cost, tokens, loads, asked["habits"])
    together, held = 0.0, 0.0
    for k in range(below + 1):
        together += at["found"][k]
        held += tokens[k]
    return {
        "together": together,
        "found": at["found"],
        "users": units * border(session_of(turns, 1.0), held / groups) * groups,
        "rate": units * at["rate"],
        "ttft": asked["front"] + at["ttft"],
        "tpot": at["tpot"],
        "in_flight": at["in_flight"],
        "full": at["full"],
        "prompts": at["prompts"],
    }


def users_kept(asked: LadderNumbers, cost: StepTimes, below: int, ttft: float, tpot: float) -> float:
    """Return how many users with the tiers down to one have means within limits, up to the first that miss them.

    Behind a cliff limits may hold again, since HBM caps who is served: so it looks in small steps.
    """
    units, last, ahead = asked["units"], 0, 1

    def keeps(users: int) -> bool:
        other = asked.copy()
        other["users"] = units * users
        row = tier_row(other, cost, below)
        return row["ttft"] <= ttft and row["tpot"] <= tpot

    while last < MOST_USERS and keeps(ahead):
        last = ahead
        ahead = max(ahead + 1, floor(GROWS * ahead))
    return units * (last + largest_whole(ahead - last - 1, lambda more: keeps(last + more)))


def ladder(asked: LadderNumbers, cost: StepTimes) -> list[TierRow]:
    """Return the row of HBM, and of each tier below with all above it."""
    return [tier_row(asked, cost, k) for k in range(len(asked["tokens"]))]


def sizes_for(asked: LadderNumbers, cost: StepTimes) -> list[float]:
    """Return the tokens, of HBM and stores of all units, that find so much of what can be found, by `FOUND_SHARES`."""
    turns, users = calm(asked["turns"], asked["front"]), asked["users"] / asked["units"]
    one, habits = asked["tokens"][0], asked["habits"]
    return [asked["units"] * store_for(turns, users, cost, share, one, habits) for share in FOUND_SHARES]


def units_alone(asked: LadderNumbers, cost: StepTimes, wanted: float) -> int:
    """Return the units, no fewer than there are, that serve so many turns per second with HBM alone."""
    units, goal = asked["units"], wanted * (1 - NEAR)
    most = max(units, ceil(asked["users"]))  # a unit for each user does as well as anything
    turns, habits = calm(asked["turns"], asked["front"]), asked["habits"]

    def few(more: int) -> bool:
        many = units + more - 1
        seen = visits(turns, asked["users"] / many, cost, [asked["tokens"][0]], [0.0], habits)
        return many * seen["rate"] < goal

    return units + largest_whole(most - units, few)


def latency_ends(asked: LadderNumbers, costs: list[StepTimes], fronts: list[float], row: TierRow) -> list[float]:
    """Return the factors between which a turn's latency lies in nine of ten draws, if as much is found."""
    turns, each = asked["turns"], []
    steps = max(turns["answer"] - 1, 1)
    for k in range(len(costs)):
        served = Served(calm(turns, fronts[k]), costs[k], asked["habits"], asked["tokens"][0])
        seen = served.seen(asked["users"] / asked["units"], row["found"], asked["loads"])
        each.append(fronts[k] + seen["ttft"] + steps * seen["tpot"])
    whole = interval(0.0, each)
    own = row["ttft"] + steps * row["tpot"]
    return [min(whole[1] / own, 1.0), max(whole[2] / own, 1.0)]


def ceiling_of(asked: LadderNumbers) -> float:
    """Return the share of all prompt tokens that stores find which drop nothing before its lifetime."""
    users, groups = asked["users"] / asked["units"], asked["habits"]["groups"]
    each = users / max(1.0, min(groups, users))
    return found_within(session_of(asked["turns"], 1.0), each, asked["habits"]["lifetime"])


def as_gb(gb: float) -> str:
    """Return a size in words."""
    return digits(gb / 1e3) + " TB" if gb >= 1e3 else digits(gb) + " GB"


def ladder_head(asked: LadderNumbers, sizes: list[float]) -> list[str]:
    """Say whose sessions these are, and how big a store must be that finds so much of what can be found."""
    law, each = session_of(asked["turns"], 1.0), asked["bytes"]
    prompt, lifetime = prompt_of(law), asked["habits"]["lifetime"]
    ceiling = ceiling_of(asked)
    many = " user who thinks for " if asked["users"] == 1 else " users who think for "
    who = digits(asked["users"]) + many + digits(asked["turns"]["think"]) + " s; prompts of "
    parts = []
    for k in range(len(FOUND_SHARES)):
        parts.append(percent(FOUND_SHARES[k]) + " of that takes " + as_gb(sizes[k] * each / 1e9))
    whose = who + digits(prompt) + " tokens, " + as_gb(prompt * each / 1e9) + "."
    if not ceiling > 0:
        return [whose, "No prompt has anything that was there before: there is nothing to find."]
    there = "there before; "
    if lifetime < inf:
        there = "used within " + digits(lifetime) + " s before, if turns do not wait for room; "
    return [whose, percent(ceiling) + " of all prompt tokens were " + there + ", ".join(parts) + ", HBM included."]


def ladder_notes(
    asked: LadderNumbers, rows: list[TierRow], sizes: list[float], units: int, ends: list[float]
) -> list[str]:
    """Say what the rows mean, and what follows: `units` with HBM alone would do as much; `ends` are the latencies'."""
    first, law = rows[0], session_of(asked["turns"], 1.0)
    ceiling, groups = ceiling_of(asked), asked["habits"]["groups"]
    told = [
        "Each row has the tiers up to its own. In the last a turn lasts "
        + percent(ends[0])
        + " to "
        + percent(ends[1])
        + " of what is said in nine cases of ten, if as much is found. "
        "Prompts: their share of the engine's time, which bounds what a store can bring. "
        "In flight: turns of a unit that hold their tokens; (all): more would, and wait for room. "
        "Prompts are computed beside decodes, in steps of at most "
        + digits(asked["habits"]["budget"])
        + " tokens: not in the chunks that a plan for one unit names, which may serve fewer."
    ]
    if units != asked["units"]:
        said = "With HBM alone, about as many turns per second take " + digits(units) + " units: the tiers stand for "
        told.append(
            said
            + digits((units - asked["units"]) * asked["gpus"])
            + " GPUs in turns per second, whatever limits say, and may cost as much as these."
        )
    common = law["shared"] / prompt_of(law)
    if ceiling > 0 and first["together"] < common + LOST * (ceiling - common):
        told.append("HBM alone finds next to nothing of what was said before: turns in flight fill it.")
    most = groups * turns_held(law, asked["tokens"][0] / groups)
    if len([row for row in rows if MOSTLY * most < row["in_flight"] < BRIM * most]) > 0:
        told.append(
            "Where turns in flight take most of HBM, simulated first tokens were up to two and a"
            " half times as late as these means."
        )
    if rows[len(rows) - 1]["ttft"] > asked["habits"]["lifetime"]:
        told.append(
            "Turns wait for longer than what is stored lives, so next to nothing of it is found; users who come little"
            " by little may find it before waits grow."
        )
    if groups > 1:
        told.append(
            digits(groups) + " groups of attention step together: where a step with a prompt lasts a hundred times "
            "one without, this law makes turns two to three times too slow, which the ends leave out."
        )
    if (
        ceiling > 0
        and sizes[len(sizes) - 1] < CLIFF * sizes[0]
        and rows[len(rows) - 1]["ttft"] <= asked["habits"]["lifetime"]
    ):
        told.append("These sizes lie close together: a store clearly larger finds all, one clearly smaller nothing.")
    return told
