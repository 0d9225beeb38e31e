"""A ladder of tiers for users who come back: what each finds and brings, how big a store must be, what it is worth."""

from __future__ import annotations

from math import ceil, exp, floor, inf

from msgspec.structs import replace

from inference_math.evidence.records import Record
from inference_math.optimiser.draws import interval
from inference_math.optimiser.types import Verdict
from inference_math.optimiser.verdict import UNSAID, stands_on, verdict
from inference_math.simulate.types import StepTimes
from inference_math.unit.batch import largest_whole
from inference_math.unit.steps import kv_loaded, kv_sent, kv_tokens
from inference_math.unit.types import Asked, ComparisonError, DrawnCoefficients, Part
from inference_math_planner.fleets.queues import pace_of
from inference_math_planner.fleets.sessions import border, found_within, prompt_of, session_of
from inference_math_planner.fleets.types import LadderNumbers, SessionHabits, TierRow, TurnNumbers
from inference_math_planner.fleets.visits import Served, calm, store_for, turns_held, visits

__all__ = [
    "FOUND_SHARES", "LadderFound", "ceiling_of", "ladder", "ladder_found", "ladder_head", "ladder_notes",
    "ladder_numbers", "latency_ends", "sizes_for", "tier_row", "tier_verdicts", "units_alone", "users_kept",
]  # fmt: skip

FOUND_SHARES = [0.5, 0.9, 0.99]  # of what a store finds that drops nothing: the sizes that an answer names
LOST = 0.1  # of what can be found: next to nothing
CLIFF = 1.25  # the size that finds nearly all over the one that finds half
NEAR = 0.02  # by which a rate is as good
MOST_USERS = 2**20  # of a unit, within limits
MOSTLY = 0.6  # of HBM taken by turns in flight: simulated waits for room were longer than their law's
BRIM = 0.95  # from here on the law holds again
GROWS = 1.1  # so small are steps that look for the first miss


class LadderFound(Record):
    """What a ladder finds and brings: a row for each tier, how sure its gain is, how many users keep limits, if any.

    `sizes` are those of `FOUND_SHARES`, `units` those that would do as much with HBM alone, `ends` those of
    `latency_ends`.
    """

    rows: list[TierRow]
    sure: list[Verdict]
    kept: list[float]
    sizes: list[float]
    units: int
    ends: list[float]
    head: list[Part]
    notes: list[Part]


def ladder_numbers(
    turns: TurnNumbers, users: float, question: Asked, units: int, tiers: list[list[float]], habits: SessionHabits
) -> LadderNumbers:
    """Return what is asked of the HBM of so many units and of `tiers` below it, each [bytes in all, bytes/s of a GPU].

    `question` is that of a unit whose prompts are those of the turns.
    """
    unit, prompt = question.unit, prompt_of(session_of(turns, 1.0))
    each = kv_sent(unit, prompt) / prompt
    tokens, loads = [kv_tokens(unit, prompt)], [0.0]
    for size, read_bw in tiers:
        tokens.append(size / each / units)
        loads.append(kv_loaded(unit, prompt, unit.gpus * read_bw) / prompt)
    return LadderNumbers(
        turns=turns, users=users, units=units, gpus=unit.gpus, front=question.front, tokens=tokens, loads=loads,
        bytes=each, habits=habits, doubt=question.doubts["store"],
    )  # fmt: skip


def ladder_found(
    asked: LadderNumbers, cost: StepTimes, question: Asked, draws: list[DrawnCoefficients], limits: list[float],
    store: ComparisonError,
) -> LadderFound:  # fmt: skip
    """Return what tiers find and bring, within `limits` on TTFT and TPOT if there are any, and under draws.

    `store` tells how far off the gains of stores were.
    """
    rows, sizes, below = ladder(asked, cost), sizes_for(asked, cost), len(asked.tokens) > 1
    last = rows[len(rows) - 1]
    kept = users_kept(asked, cost, limits[0], limits[1]) if len(limits) > 0 else []
    units = units_alone(asked, cost, last.rate) if below else asked.units
    fronts = [asked.front * exp(question.front_sd * factors[2]) for _, factors in draws]
    ends = latency_ends(asked, [pace_of(question, found, factors) for found, factors in draws], fronts, last)
    within = [limits[0], limits[1], kept[len(kept) - 1]] if len(limits) > 0 else []
    notes = ladder_notes(asked, rows, sizes, units, ends)
    if below:
        notes.append(stands_on(store))
    return LadderFound(
        rows=rows, sure=tier_verdicts(asked, rows), kept=kept, sizes=sizes, units=units, ends=ends,
        head=ladder_head(asked, last, within, sizes), notes=notes,
    )  # fmt: skip


def tier_row(asked: LadderNumbers, cost: StepTimes, below: int) -> TierRow:
    """Return what users see with the tiers down to one, and how many of them these hold; all units together."""
    turns, units, groups = asked.turns, asked.units, asked.habits.groups
    tokens, loads = asked.tokens[: below + 1], asked.loads[: below + 1]
    at = visits(calm(turns, asked.front), asked.users / units, cost, tokens, loads, asked.habits)
    together, held = 0.0, 0.0
    for k in range(below + 1):
        together += at.found[k]
        held += tokens[k]
    return TierRow(
        together=together,
        found=at.found,
        users=units * border(session_of(turns, 1.0), held / groups) * groups,
        rate=units * at.rate,
        ttft=asked.front + at.ttft,
        tpot=at.tpot,
        in_flight=at.in_flight,
        full=at.full,
        prompts=at.prompts,
    )


def users_kept(asked: LadderNumbers, cost: StepTimes, ttft: float, tpot: float) -> list[float]:
    """Return how many users have means within limits, with HBM alone and with each tier below and all above it."""
    units, last = asked.units, 0
    found: list[float] = []
    for below in range(len(asked.tokens)):
        last = kept_with(asked, cost, below, ttft, tpot, last)
        found.append(units * last)
    return found


def kept_with(asked: LadderNumbers, cost: StepTimes, below: int, ttft: float, tpot: float, above: int) -> int:
    """Return how many users of a unit with the tiers down to one keep limits, up to the first that miss them.

    Behind a cliff limits may hold again, since HBM caps who is served: so it looks in small steps, but not below what
    is kept without the last tier, if that is kept with it.
    """
    units = asked.units

    def keeps(users: int) -> bool:
        row = tier_row(replace(asked, users=units * users), cost, below)
        return row.ttft <= ttft and row.tpot <= tpot

    last = above if above > 0 and keeps(above) else 0
    ahead = max(last + 1, floor(GROWS * last))
    while last < MOST_USERS and keeps(ahead):
        last = ahead
        ahead = max(ahead + 1, floor(GROWS * ahead))
    return last + largest_whole(ahead - last - 1, lambda more: keeps(last + more))


def ladder(asked: LadderNumbers, cost: StepTimes) -> list[TierRow]:
    """Return the row of HBM, and of each tier below with all above it."""
    return [tier_row(asked, cost, k) for k in range(len(asked.tokens))]


def tier_verdicts(asked: LadderNumbers, rows: list[TierRow]) -> list[Verdict]:
    """Return how sure it is that each row of `ladder` serves more turns than that of HBM, of which nothing is said."""
    found: list[Verdict] = []
    for k in range(len(rows)):
        own = verdict([rows[k].rate], [rows[0].rate], asked.doubt)
        found.append(own if k > 0 else UNSAID)
    return found


def sizes_for(asked: LadderNumbers, cost: StepTimes) -> list[float]:
    """Return the tokens, of HBM and stores of all units, that find so much of what can be found, by `FOUND_SHARES`."""
    turns, users = calm(asked.turns, asked.front), asked.users / asked.units
    one, habits = asked.tokens[0], asked.habits
    return [asked.units * store_for(turns, users, cost, share, one, habits) for share in FOUND_SHARES]


def units_alone(asked: LadderNumbers, cost: StepTimes, wanted: float) -> int:
    """Return the units, no fewer than there are, that serve so many turns per second with HBM alone."""
    units, goal = asked.units, wanted * (1 - NEAR)
    most = max(units, ceil(asked.users))  # a unit for each user does as well as anything
    turns, habits = calm(asked.turns, asked.front), asked.habits

    def few(more: int) -> bool:
        many = units + more - 1
        seen = visits(turns, asked.users / many, cost, [asked.tokens[0]], [0.0], habits)
        return many * seen.rate < goal

    return units + largest_whole(most - units, few)


def latency_ends(asked: LadderNumbers, costs: list[StepTimes], fronts: list[float], row: TierRow) -> list[float]:
    """Return the factors between which a turn's latency lies in nine of ten draws, if as much is found."""
    turns, each = asked.turns, []
    steps = max(turns.answer - 1, 1)
    for k in range(len(costs)):
        served = Served(calm(turns, fronts[k]), costs[k], asked.habits, asked.tokens[0])
        seen = served.seen(asked.users / asked.units, row.found, asked.loads)
        each.append(fronts[k] + seen.ttft + steps * seen.tpot)
    whole = interval(0.0, each)
    own = row.ttft + steps * row.tpot
    return [min(whole[1] / own, 1.0), max(whole[2] / own, 1.0)]


def ceiling_of(asked: LadderNumbers) -> float:
    """Return the share of all prompt tokens that stores find which drop nothing before its lifetime."""
    users, groups = asked.users / asked.units, asked.habits.groups
    each = users / max(1.0, min(groups, users))
    return found_within(session_of(asked.turns, 1.0), each, asked.habits.lifetime)


def ladder_head(asked: LadderNumbers, last: TierRow, limits: list[float], sizes: list[float]) -> list[Part]:
    """Say whether all users are served, whose sessions these are, and how big a store must be.

    First what `last`, the row of all tiers, says: overload comes before any other number. `limits` are TTFT and TPOT in
    seconds, and the users whose means keep them with all tiers; nothing where nobody asks. `sizes` find so much of what
    can be found, by `FOUND_SHARES`.
    """
    key = "ladder.overload" if last.full else "ladder.room"
    kept: list[Part] = []
    if len(limits) > 0:
        many = "ladder.kept" if limits[2] > 0 else "ladder.none_kept"
        kept.append({"key": many, "ttft": limits[0], "tpot": limits[1], "kept": limits[2]})
    law = session_of(asked.turns, 1.0)
    prompt, think = prompt_of(law), asked.turns.think
    who: Part = {"key": "ladder.who", "users": asked.users, "think": think, "prompt": prompt}
    who["size"] = prompt * asked.bytes / 1e9
    return [
        {"key": key, "users": asked.users, "units": asked.units},
        {"key": "ladder.times", "ttft": last.ttft, "tpot": last.tpot, "kept": kept},
        who,
        sizes_said(asked, sizes),
    ]


def sizes_said(asked: LadderNumbers, sizes: list[float]) -> Part:
    """Say how big a store must be that finds so much of what can be found."""
    ceiling, lifetime = ceiling_of(asked), asked.habits.lifetime
    if not ceiling > 0:
        return {"key": "ladder.nothing"}
    each: list[Part] = []
    for k in range(len(FOUND_SHARES)):
        each.append({"key": "ladder.size", "share": FOUND_SHARES[k], "size": sizes[k] * asked.bytes / 1e9})
    when: Part = {"key": "ladder.lately" if lifetime < inf else "ladder.before", "lifetime": lifetime}
    return {"key": "ladder.found", "ceiling": ceiling, "when": when, "sizes": each}


def ladder_notes(
    asked: LadderNumbers, rows: list[TierRow], sizes: list[float], units: int, ends: list[float]
) -> list[Part]:
    """Say what the rows mean, and what follows: `units` with HBM alone would do as much; `ends` are the latencies'."""
    first, last, law = rows[0], rows[len(rows) - 1], session_of(asked.turns, 1.0)
    ceiling, groups = ceiling_of(asked), asked.habits.groups
    found: list[Part] = []
    if units != asked.units:
        found.append({"key": "ladder.alone", "units": units, "gpus": (units - asked.units) * asked.gpus})
    found.append({"key": "ladder.rows", "low": ends[0], "high": ends[1]})
    common = law.shared / prompt_of(law)
    # Where there are tiers below, the row of HBM beside theirs shows it.
    if len(rows) == 1 and ceiling > 0 and first.together < common + LOST * (ceiling - common):
        found.append({"key": "ladder.small"})
    most = groups * turns_held(law, asked.tokens[0] / groups)
    if len([row for row in rows if MOSTLY * most < row.in_flight < BRIM * most]) > 0:
        found.append({"key": "ladder.brim"})
    if len(rows) > 1:
        fresh = prompt_of(law) * (1 - last.together) + asked.turns.answer
        found.append({"key": "ladder.writes", "written": last.rate * fresh * asked.bytes / 1e9})
    dropped = last.ttft > asked.habits.lifetime
    if dropped:
        found.append({"key": "ladder.dropped"})
    if groups > 1:
        found.append({"key": "ladder.groups", "groups": groups})
    if ceiling > 0 and sizes[len(sizes) - 1] < CLIFF * sizes[0] and not dropped:
        found.append({"key": "ladder.cliff"})
    return found
