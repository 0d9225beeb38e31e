"""How big a store, which tier, what does it bring: sessions in, a ladder of tiers out [E05, E06, E09]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import nan

import numpy as np
import pandas as pd
from msgspec import structs

from inference_math.catalogue.tiers import tier
from inference_math.evidence.checks import ANY_POSITIVE, AT_LEAST_ZERO, as_number, as_whole
from inference_math.evidence.numerals import as_gb, digits, percent
from inference_math.evidence.sentences import render
from inference_math.optimiser.case import DRAWS, Case, refuse_nodes
from inference_math.optimiser.types import Verdict
from inference_math.optimiser.verdict import cell, worded
from inference_math.simulate.cost import Steps
from inference_math.unit import Unit
from inference_math.unit.nearest import known_comparisons
from inference_math.workload import SLA, Workload
from inference_math_planner.fleets.ladder import FOUND_SHARES, NEAR, ceiling_of, ladder_found, ladder_numbers
from inference_math_planner.fleets.loops import PLAIN, Habit, session_habits
from inference_math_planner.fleets.turns import Turns

__all__ = ["Ladder", "size_store"]

_MOST = 1e18  # bytes of a tier


@dataclass(frozen=True, eq=False)
class Ladder:
    """What a ladder of tiers finds and brings for sessions of so many users.

    Attributes
    ----------
    tiers
        A row for each, "hbm" first, with all above it and none below: tier, gb, tokens (that it holds), together (share
        of all prompt tokens that is found), users (for whom the sessions fit), rate (turns/s), ttft and tpot (means,
        s), in_flight (turns that hold their tokens, per unit), full (whether turns wait for room in HBM), prompts
        (their share of the engine's time, ψ of claim E07), gain (of the rate over that of HBM alone), chance (that it
        is above 1; NaN of HBM), sure (the word for it; "" of HBM) and kept (users whose means keep the limits; NaN
        without).
    needed
        GB that find so much of `ceiling`, by `fleets.ladder.FOUND_SHARES`.
    ceiling
        Share of all prompt tokens that a store finds which drops nothing before its lifetime.
    prompt
        Mean tokens of a prompt.
    gb
        Of one session's KV cache, once.
    gpus
        Of all units.
    alone
        Units that would serve as many turns per second without any tier below HBM: what the ladder stands for.
    spread
        Ends of the factor by which a turn's latency in the last row may be off with a probability of 90 %, where hits
        are what the law says.
    gains
        What each row gains over HBM alone and how sure that is, as a part of a sentence; "" of HBM.
    shares
        Of all prompt tokens that each tier finds, all tiers together, HBM first.
    head, notes
        What that says in sentences: of overload, the sessions and the size; first of the rows, then of what follows.
    """

    tiers: pd.DataFrame
    needed: Mapping[float, float]
    ceiling: float
    prompt: float
    gb: float
    users: float
    think: float
    units: int
    gpus: int
    alone: int
    spread: tuple[float, float]
    gains: tuple[str, ...]
    shares: tuple[float, ...]
    head: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def stands_for(self) -> int:
        """GPUs that HBM alone would take besides, for as many turns per second: what the tiers may cost."""
        return (self.alone - self.units) * self.gpus // self.units

    def to_dict(self) -> dict[str, object]:
        """Return all as plain numbers; a size without end is None."""
        rows = self.tiers.replace(np.inf, np.nan).astype(object)
        return {
            "users": self.users,
            "think": self.think,
            "prompt": self.prompt,
            "ceiling": self.ceiling,
            "session_gb": self.gb,
            "units": self.units,
            "units_alone": self.alone,
            "stands_for_gpus": self.stands_for,
            "latency_spread": list(self.spread),
            "needed_gb": {f"{share:g}": gb for share, gb in self.needed.items()},
            "tiers": rows.where(rows.notna(), None).to_dict("records"),
        }

    def __str__(self) -> str:
        rows = self.tiers
        limited = bool(rows["kept"].notna().all())
        shown = pd.DataFrame(
            {
                "up to": rows["tier"],
                "size": rows["gb"].map(as_gb),
                "found": rows["together"].map(percent),
                "caches fit": rows["users"].map(digits),
                **({"within limits": rows["kept"].map(digits)} if limited else {}),
                "turns/s": rows["rate"].map(digits),
                **(_gained(rows) if len(rows) > 1 else {}),
                "TTFT (s)": rows["ttft"].map(digits),
                "TPOT (ms)": (1e3 * rows["tpot"]).map(digits),
                "prompts": rows["prompts"].map(percent),
                "in flight": rows["in_flight"].map(digits) + rows["full"].map({True: " (all)", False: ""}),
            }
        )
        legend = [{"key": "ladder.limits" if limited else "ladder.fit"}, " ", {"key": "ladder.columns"}]
        return "\n".join([*self.head, *self.notes, "", shown.to_string(index=False), render(legend)])


def size_store(
    unit: Unit,
    turns: Turns,
    users: float,
    tiers: Mapping[str, float],
    units: int = 1,
    *,
    sla: SLA | None = None,
    habit: Habit = PLAIN,
) -> Ladder:
    """Return what HBM and the tiers below it find for sessions of so many users at once, and what that brings.

    Parameters
    ----------
    unit, units
        What serves them, and how many of these, each with an equal part of the users and of the tiers: a session goes
        to the unit, and of its groups of attention to the one, that has its past. HBM holds what its weights leave.
    turns
        Their sessions.
    tiers
        Names of `catalogue.tiers`, from the fastest to the slowest, and the bytes of each, all machines together. One
        copy of a token is stored.
    sla
        Limits on the mean TTFT and TPOT, for `Ladder.kept`; its quantile is not asked for.
    habit
        How engines compute and load; their groups are the unit's.

    Raises
    ------
    TypeError, ValueError
        For an unknown tier, a size or numbers out of range.

    Examples
    --------
    >>> from inference_math import Unit
    >>> from inference_math_planner import size_store
    >>> from inference_math_planner.fleets.turns import Turns
    >>> agents = Turns(turns=60, first=15_000, message=1_500, answer=500, think=20)
    >>> unit = Unit.of("llama-3-70b", "h100-sxm", 4, weights="fp8", kv="fp8")
    >>> found = size_store(unit, agents, 500, {"dram": 8e12}, units=8)
    >>> found.tiers[["tier", "together"]].round(1).to_dict("records")
    [{'tier': 'hbm', 'together': 0.0}, {'tier': 'dram', 'together': 1.0}]
    """
    count = as_whole("units", units, 1)
    if not isinstance(turns, Turns):
        raise TypeError(f"turns must be Turns, not {turns!r:.80}")
    whole = turns.sessions(1.0)
    places = [(name, tier(name), as_number(f"size of {name}", size, AT_LEAST_ZERO)) for name, size in tiers.items()]
    if any(size > _MOST for _, _, size in places):
        raise ValueError(f"tiers must have at most {_MOST:g} bytes each")
    refuse_nodes(unit)
    if unit.kv_tokens(turns.longest) < unit.dp * turns.longest:
        length = f"{turns.longest:,} tokens" + (f" in each of {unit.dp} groups of attention" if unit.dp > 1 else "")
        raise ValueError(f"unit must hold the longest request, {length}, beside its weights")
    case = Case(unit, Workload(whole.prompt, turns.answer), sla or SLA(1.0, 1.0))
    cost = Steps(unit.near(case.work))
    sizes = [[size, one.read_bw] for _, one, size in places]
    habits = session_habits(replace(habit, groups=unit.dp), cost)
    setup = ladder_numbers(turns, as_number("users", users, ANY_POSITIVE), case.problem, count, sizes, habits)
    each, limits = setup.bytes, [sla.ttft, sla.tpot] if sla else []
    ladder = ladder_found(setup, cost, case.problem, case.pairs(DRAWS), limits, known_comparisons()["store"])
    rows = pd.DataFrame(map(structs.asdict, ladder.rows)).drop(columns="found")
    rows.insert(0, "tier", ["hbm", *tiers])
    rows.insert(1, "gb", [count * held * each / 1e9 for held in setup.tokens])
    rows.insert(2, "tokens", [count * held for held in setup.tokens])
    rows["gain"] = rows["rate"] / rows["rate"].iloc[0]
    rows[["chance", "sure"]] = pd.DataFrame(map(structs.asdict, ladder.sure))
    rows["kept"] = ladder.kept if sla else nan
    needed = {share: size * each / 1e9 for share, size in zip(FOUND_SHARES, ladder.sizes, strict=True)}
    return Ladder(
        rows, needed, ceiling_of(setup), whole.prompt, whole.prompt * each / 1e9, setup.users, turns.think,
        count, count * unit.gpus, ladder.units, (ladder.ends[0], ladder.ends[1]),
        tuple(map(_gain_said, rows["gain"], ladder.sure)),
        tuple(ladder.rows[-1].found), tuple(map(render, ladder.head)), tuple(map(render, ladder.notes)),
    )  # fmt: skip


def _gained(rows: pd.DataFrame) -> dict[str, list[str]]:
    """Return in words what rows of a ladder gain over the first, and how sure that is."""
    sure = [render(cell(Verdict(chance=one["chance"], sure=one["sure"]))) for one in rows.to_dict("records")]
    return {"gain": rows["gain"].map(digits).tolist(), "how sure": sure}


def _gain_said(gain: float, sure: Verdict) -> str:
    """Return in words what a row of a ladder gains over the first; "" of that itself."""
    if not sure.sure:
        return ""
    return render({"key": "sure.same"} if abs(gain - 1) < NEAR else worded("sure.store", sure))
