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
from inference_math.unit.types import ComparisonError, DrawnCoefficients, Message, Problem
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
    head: list[Message]
    notes: list[Message]


def ladder_numbers(
    turns: TurnNumbers, users: float, problem: Problem, units: int, tiers: list[list[float]], habits: SessionHabits
) -> LadderNumbers:
    """Return what is asked of the HBM of so many units and of `tiers` below it, each [bytes in all, bytes/s of a GPU].

    `problem` is that of a unit whose prompts are those of the turns.
    """
    unit, prompt = problem.unit, prompt_of(session_of(turns, 1.0))
    each = kv_sent(unit, prompt) / prompt
    tokens, loads = [kv_tokens(unit, prompt)], [0.0]
    for size, read_bw in tiers:
        tokens.append(size / each / units)
        loads.append(kv_loaded(unit, prompt, unit.gpus * read_bw) / prompt)
    return LadderNumbers(
        turns=turns, users=users, units=units, gpus=unit.gpus, front=problem.front, tokens=tokens, loads=loads,
        bytes=each, habits=habits, gain_error=problem.gain_errors["store"],
    )  # fmt: skip


def ladder_found(
    setup: LadderNumbers, cost: StepTimes, problem: Problem, draws: list[DrawnCoefficients], limits: list[float],
    store: ComparisonError,
) -> LadderFound:  # fmt: skip
    """Return what tiers find and bring, within `limits` on TTFT and TPOT if there are any, and under draws.

    `store` tells how far off the gains of stores were.
    """
    rows, sizes, below = ladder(setup, cost), sizes_for(setup, cost), len(setup.tokens) > 1
    last = rows[len(rows) - 1]
    kept = users_kept(setup, cost, limits[0], limits[1]) if len(limits) > 0 else []
    units = units_alone(setup, cost, last.rate) if below else setup.units
    fronts = [setup.front * exp(problem.front_sd * factors[2]) for _, factors in draws]
    ends = latency_ends(
        setup, [pace_of(problem, coefficients, factors) for coefficients, factors in draws], fronts, last
    )
    within = [limits[0], limits[1], kept[len(kept) - 1]] if len(limits) > 0 else []
    notes = ladder_notes(setup, rows, sizes, units, ends)
    if below:
        notes.append(stands_on(store))
    return LadderFound(
        rows=rows, sure=tier_verdicts(setup, rows), kept=kept, sizes=sizes, units=units, ends=ends,
        head=ladder_head(setup, last, within, sizes), notes=notes,
    )  # fmt: skip


def tier_row(setup: LadderNumbers, cost: StepTimes, below: int) -> TierRow:
    """Return what users see with the tiers down to one, and how many of them these hold; all units together."""
    turns, units, groups = setup.turns, setup.units, setup.habits.groups
    tokens, loads = setup.tokens[: below + 1], setup.loads[: below + 1]
    at = visits(calm(turns, setup.front), setup.users / units, cost, tokens, loads, setup.habits)
    together, held = 0.0, 0.0
    for k in range(below + 1):
        together += at.found[k]
        held += tokens[k]
    return TierRow(
        together=together,
        found=at.found,
        users=units * border(session_of(turns, 1.0), held / groups) * groups,
        rate=units * at.rate,
        ttft=setup.front + at.ttft,
        tpot=at.tpot,
        in_flight=at.in_flight,
        full=at.full,
        prompts=at.prompts,
    )


def users_kept(setup: LadderNumbers, cost: StepTimes, ttft: float, tpot: float) -> list[float]:
    """Return how many users have means within limits, with HBM alone and with each tier below and all above it."""
    units, last = setup.units, 0
    users: list[float] = []
    for below in range(len(setup.tokens)):
        last = kept_with(setup, cost, below, ttft, tpot, last)
        users.append(units * last)
    return users


def kept_with(setup: LadderNumbers, cost: StepTimes, below: int, ttft: float, tpot: float, above: int) -> int:
    """Return how many users of a unit with the tiers down to one keep limits, up to the first that miss them.

    Behind a cliff limits may hold again, since HBM caps who is served: so it looks in small steps, but not below what
    is kept without the last tier, if that is kept with it.
    """
    units = setup.units

    def keeps(users: int) -> bool:
        row = tier_row(replace(setup, users=units * users), cost, below)
        return row.ttft <= ttft and row.tpot <= tpot

    last = above if above > 0 and keeps(above) else 0
    ahead = max(last + 1, floor(GROWS * last))
    while last < MOST_USERS and keeps(ahead):
        last = ahead
        ahead = max(ahead + 1, floor(GROWS * ahead))
    return last + largest_whole(ahead - last - 1, lambda more: keeps(last + more))


def ladder(setup: LadderNumbers, cost: StepTimes) -> list[TierRow]:
    """Return the row of HBM, and of each tier below with all above it."""
    return [tier_row(setup, cost, k) for k in range(len(setup.tokens))]


def tier_verdicts(setup: LadderNumbers, rows: list[TierRow]) -> list[Verdict]:
    """Return how sure it is that each row of `ladder` serves more turns than that of HBM, of which nothing is said."""
    verdicts: list[Verdict] = []
    for k in range(len(rows)):
        gain = verdict([rows[k].rate], [rows[0].rate], setup.gain_error)
        verdicts.append(gain if k > 0 else UNSAID)
    return verdicts


def sizes_for(setup: LadderNumbers, cost: StepTimes) -> list[float]:
    """Return the tokens, of HBM and stores of all units, that find so much of what can be found, by `FOUND_SHARES`."""
    turns, users = calm(setup.turns, setup.front), setup.users / setup.units
    one, habits = setup.tokens[0], setup.habits
    return [setup.units * store_for(turns, users, cost, share, one, habits) for share in FOUND_SHARES]


def units_alone(setup: LadderNumbers, cost: StepTimes, wanted: float) -> int:
    """Return the units, no fewer than there are, that serve so many turns per second with HBM alone."""
    units, goal = setup.units, wanted * (1 - NEAR)
    most = max(units, ceil(setup.users))  # a unit for each user does as well as anything
    turns, habits = calm(setup.turns, setup.front), setup.habits

    def few(more: int) -> bool:
        many = units + more - 1
        seen = visits(turns, setup.users / many, cost, [setup.tokens[0]], [0.0], habits)
        return many * seen.rate < goal

    return units + largest_whole(most - units, few)


def latency_ends(setup: LadderNumbers, costs: list[StepTimes], fronts: list[float], row: TierRow) -> list[float]:
    """Return the factors between which a turn's latency lies in nine of ten draws, if as much is found."""
    turns, each = setup.turns, []
    steps = max(turns.answer - 1, 1)
    for k in range(len(costs)):
        served = Served(calm(turns, fronts[k]), costs[k], setup.habits, setup.tokens[0])
        seen = served.seen(setup.users / setup.units, row.found, setup.loads)
        each.append(fronts[k] + seen.ttft + steps * seen.tpot)
    whole = interval(0.0, each)
    own = row.ttft + steps * row.tpot
    return [min(whole[1] / own, 1.0), max(whole[2] / own, 1.0)]


def ceiling_of(setup: LadderNumbers) -> float:
    """Return the share of all prompt tokens that stores find which drop nothing before its lifetime."""
    users, groups = setup.users / setup.units, setup.habits.groups
    each = users / max(1.0, min(groups, users))
    return found_within(session_of(setup.turns, 1.0), each, setup.habits.lifetime)


def ladder_head(setup: LadderNumbers, last: TierRow, limits: list[float], sizes: list[float]) -> list[Message]:
    """Say whether all users are served, whose sessions these are, and how big a store must be.

    First what `last`, the row of all tiers, says: overload comes before any other number. `limits` are TTFT and TPOT in
    seconds, and the users whose means keep them with all tiers; nothing where nobody asks. `sizes` find so much of what
    can be found, by `FOUND_SHARES`.
    """
    key = "ladder.overload" if last.full else "ladder.room"
    kept: list[Message] = []
    if len(limits) > 0:
        many = "ladder.kept" if limits[2] > 0 else "ladder.none_kept"
        kept.append({"key": many, "ttft": limits[0], "tpot": limits[1], "kept": limits[2]})
    law = session_of(setup.turns, 1.0)
    prompt, think = prompt_of(law), setup.turns.think
    who: Message = {"key": "ladder.who", "users": setup.users, "think": think, "prompt": prompt}
    who["size"] = prompt * setup.bytes / 1e9
    return [
        {"key": key, "users": setup.users, "units": setup.units},
        {"key": "ladder.times", "ttft": last.ttft, "tpot": last.tpot, "kept": kept},
        who,
        sizes_said(setup, sizes),
    ]


def sizes_said(setup: LadderNumbers, sizes: list[float]) -> Message:
    """Say how big a store must be that finds so much of what can be found."""
    ceiling, lifetime = ceiling_of(setup), setup.habits.lifetime
    if not ceiling > 0:
        return {"key": "ladder.nothing"}
    each: list[Message] = []
    for k in range(len(FOUND_SHARES)):
        each.append({"key": "ladder.size", "share": FOUND_SHARES[k], "size": sizes[k] * setup.bytes / 1e9})
    when: Message = {"key": "ladder.lately" if lifetime < inf else "ladder.before", "lifetime": lifetime}
    return {"key": "ladder.found", "ceiling": ceiling, "when": when, "sizes": each}


def ladder_notes(
    setup: LadderNumbers, rows: list[TierRow], sizes: list[float], units: int, ends: list[float]
) -> list[Message]:
    """Say what the rows mean, and what follows: `units` with HBM alone would do as much; `ends` are the latencies'."""
    first, last, law = rows[0], rows[len(rows) - 1], session_of(setup.turns, 1.0)
    ceiling, groups = ceiling_of(setup), setup.habits.groups
    notes: list[Message] = []
    if units != setup.units:
        notes.append({"key": "ladder.alone", "units": units, "gpus": (units - setup.units) * setup.gpus})
    notes.append({"key": "ladder.rows", "low": ends[0], "high": ends[1]})
    common = law.shared / prompt_of(law)
    # Where there are tiers below, the row of HBM beside theirs shows it.
    if len(rows) == 1 and ceiling > 0 and first.together < common + LOST * (ceiling - common):
        notes.append({"key": "ladder.small"})
    most = groups * turns_held(law, setup.tokens[0] / groups)
    if len([row for row in rows if MOSTLY * most < row.in_flight < BRIM * most]) > 0:
        notes.append({"key": "ladder.brim"})
    if len(rows) > 1:
        fresh = prompt_of(law) * (1 - last.together) + setup.turns.answer
        notes.append({"key": "ladder.writes", "written": last.rate * fresh * setup.bytes / 1e9})
    dropped = last.ttft > setup.habits.lifetime
    if dropped:
        notes.append({"key": "ladder.dropped"})
    if groups > 1:
        notes.append({"key": "ladder.groups", "groups": groups})
    if ceiling > 0 and sizes[len(sizes) - 1] < CLIFF * sizes[0] and not dropped:
        notes.append({"key": "ladder.cliff"})
    return notes
