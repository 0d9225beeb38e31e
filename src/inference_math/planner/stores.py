"""How big a store, which tier, what does it bring: sessions in, a ladder of tiers out [E05, E06, E09]."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd

from inference_math.catalogue.tiers import tier
from inference_math.checks import ANY_POSITIVE, AT_LEAST_ZERO, as_number, as_whole
from inference_math.checks.numerals import digits
from inference_math.perf.bench import BUDGET
from inference_math.perf.steps import kv_sent
from inference_math.planner.loops import Habit, Loop, loop, needed
from inference_math.unit import Unit
from inference_math.workload import SLA, Workload
from inference_math.workload.sessions import Turns

__all__ = ["SHARES", "Ladder", "size_store"]

SHARES = (0.5, 0.9, 0.99)
"""Of what a store finds that drops nothing: the sizes that an answer names."""
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
        (their share of the engine's time, ψ of claim E07) and kept (users whose means keep the limits; NaN without).
    needed
        GB that find so much of `ceiling`, by `SHARES`.
    ceiling
        Share of all prompt tokens that a store finds which drops nothing.
    prompt
        Mean tokens of a prompt.
    common
        Share of them with which all prompts begin.
    gb
        Of one session's KV cache, once.
    gpus
        Of all units.
    alone
        Units that would serve as many turns per second without any tier below HBM: what the ladder stands for.
    spread
        Ends of the factor by which latencies, and so rates, may be off with a probability of 90 %, where hits are what
        the law says.
    groups
        Of a unit's GPUs, each with an attention of its own, which step together.
    """

    tiers: pd.DataFrame
    needed: Mapping[float, float]
    ceiling: float
    prompt: float
    common: float
    gb: float
    users: float
    think: float
    units: int
    gpus: int
    alone: int
    spread: tuple[float, float]
    groups: int = 1

    @property
    def stands_for(self) -> int:
        """GPUs that HBM alone would take besides, for as many turns per second: what the tiers may cost."""
        return (self.alone - self.units) * self.gpus // self.units

    def to_dict(self) -> dict[str, Any]:
        """Return all as plain numbers; a size without end is None."""
        rows = self.tiers.replace(np.inf, np.nan).astype(object)
        sizes = {f"{share:g}": gb for share, gb in self.needed.items()}
        told: dict[str, Any] = {
            "users": self.users,
            "think": self.think,
            "prompt": self.prompt,
            "ceiling": self.ceiling,
        }
        told |= {
            "session_gb": self.gb,
            "units": self.units,
            "units_alone": self.alone,
            "stands_for_gpus": self.stands_for,
        }
        return told | {
            "latency_spread": list(self.spread),
            "needed_gb": sizes,
            "tiers": rows.where(rows.notna(), None).to_dict("records"),
        }

    def __str__(self) -> str:
        rows = self.tiers
        shown = pd.DataFrame(
            {
                "up to": rows["tier"],
                "size": rows["gb"].map(_gb),
                "found": rows["together"].map("{:.0%}".format),
                "holds users": rows["users"].map(digits),
                "turns/s": rows["rate"].map(digits),
                "TTFT (s)": rows["ttft"].map(digits),
                "TPOT (ms)": (1e3 * rows["tpot"]).map(digits),
                "prompts": rows["prompts"].map("{:.0%}".format),
                "in flight": rows["in_flight"].map(digits) + rows["full"].map({True: " (all)", False: ""}),
            }
        )
        if rows["kept"].notna().all():
            shown["within limits"] = rows["kept"].map(digits)
        parts = [*self._sizes(), shown.to_string(index=False), *self._notes()]
        return "\n\n".join(part if "\n" in part else fill(part, _WIDTH) for part in parts)

    def _sizes(self) -> list[str]:
        sizes = ", ".join(f"{share:.0%} of that takes {_gb(gb)}" for share, gb in self.needed.items())
        return [
            f"{digits(self.users)} users who think for {digits(self.think)} s; "
            f"prompts of {digits(self.prompt)} tokens, {_gb(self.gb)}.",
            f"{self.ceiling:.0%} of all prompt tokens were there before; {sizes}, HBM included.",
        ]

    def _notes(self) -> list[str]:
        low, high = self.spread
        told = [
            "Each row has the tiers up to its own. "
            f"Times: {low:.2f} to {high:.2f} of that in nine cases of ten, if as much is found. "
            "Prompts: their share of the engine's time, which bounds what a store can bring. "
            "In flight: turns of a unit that hold their tokens; (all): more would, and wait for room. "
            f"All together: --alpha {self.tiers['together'].iloc[-1]:.2f} for inference-math plan."
        ]
        if self.tiers["kept"].notna().all():
            told.append("Within limits: users whose mean TTFT and TPOT keep them.")
        if self.alone != self.units:
            told.append(
                f"With HBM alone, as many turns per second take {self.alone} units: the tiers stand for "
                f"{self.stands_for} GPUs, and may cost as much as these."
            )
        if self.tiers["together"].iloc[0] < self.common + _LOST * (self.ceiling - self.common):
            told.append("HBM alone finds next to nothing of what was said before: turns in flight fill it.")
        if self.groups > 1:
            told.append(
                f"{self.groups} groups of attention step together: where a step with a prompt lasts a hundred times "
                "one without, turns are said to be two to three times too slow."
            )
        if self.needed[SHARES[-1]] < _CLIFF * self.needed[SHARES[0]]:
            told.append(
                "These sizes lie close together: a store clearly larger finds all, one clearly smaller nothing."
            )
        return told


_WIDTH = 84
_LOST = 0.1  # of what can be found: next to nothing
_CLIFF = 1.25  # the size that finds nearly all over the one that finds half
_NEAR = 0.02  # by which a rate is as good
_USERS = 2**20  # of a unit, within limits
_GROWS = 1.1


def size_store(
    unit: Unit,
    turns: Turns,
    users: float,
    tiers: Mapping[str, float],
    units: int = 1,
    *,
    sla: SLA | None = None,
    budget: int = BUDGET,
    blocking: bool = True,
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
    budget, blocking
        Tokens of a step, and how tiers are loaded; see `loops.Habit`.

    Raises
    ------
    TypeError, ValueError
        For an unknown tier, a size or numbers out of range.

    Examples
    --------
    >>> from inference_math import Unit
    >>> from inference_math.planner import size_store
    >>> from inference_math.workload.sessions import Turns
    >>> agents = Turns(turns=60, first=15_000, message=1_500, answer=500, think=20)
    >>> unit = Unit.of("llama-3-70b", "h100-sxm", 4, weights="fp8", kv="fp8")
    >>> found = size_store(unit, agents, 500, {"dram": 8e12}, units=8)
    >>> found.tiers[["tier", "together"]].round(1).to_dict("records")
    [{'tier': 'hbm', 'together': 0.0}, {'tier': 'dram', 'together': 1.0}]
    """
    asked, count = as_number("users", users, ANY_POSITIVE), as_whole("units", units, 1)
    if not isinstance(turns, Turns):
        raise TypeError(f"turns must be Turns, not {turns!r:.80}")
    means, habit = turns.sessions(1.0), Habit(budget, unit.dp, blocking)
    each = kv_sent(unit.numbers, means.prompt) / means.prompt  # bytes of a token, once
    places = [(name, tier(name), as_number(f"size of {name}", size, AT_LEAST_ZERO)) for name, size in tiers.items()]
    if any(size > _MOST for _, _, size in places):
        raise ValueError(f"tiers must have at most {_MOST:g} bytes each")
    if unit.kv_tokens(turns.longest) < unit.dp * turns.longest:
        told = f"{turns.longest:,} tokens" + (f" in each of {unit.dp} groups of attention" if unit.dp > 1 else "")
        raise ValueError(f"unit must hold the longest request, {told}, beside its weights")
    tokens = [unit.kv_tokens(means.prompt), *(size / each / count for _, _, size in places)]
    loads = [each * unit.dp / (unit.gpus * one.read_bw) for _, one, _ in places]  # a group has its own GPUs' links
    work, front = Workload(means.prompt, turns.answer), unit.front.seconds
    cost = unit.near(work).step_cost
    waiting = replace(turns, think=turns.think + front)  # what no step takes, nothing is held for

    def seen(many: float, below: int) -> Loop:
        """Return what so many users of a unit see with the tiers down to one."""
        return loop(waiting, many, cost, tokens=tokens[: below + 1], loads=loads[:below], habit=habit)

    def kept(below: int) -> float:
        """Return how many users with the tiers down to one are within the limits."""
        if sla is None:
            return np.nan
        return count * _most(lambda at: front + at.ttft <= sla.ttft and at.tpot <= sla.tpot, lambda n: seen(n, below))

    rows: list[dict[str, Any]] = []
    sums = np.cumsum(tokens).tolist()
    for k, held in enumerate(tokens):
        at = seen(asked / count, k)
        rows.append(
            {
                "tier": places[k - 1][0] if k else "hbm",
                "gb": count * held * each / 1e9,
                "tokens": count * held,
                "together": at.together,
                "users": count * means.border(sums[k] / unit.dp) * unit.dp,
                "rate": count * at.rate,
                "ttft": front + at.ttft,
                "tpot": at.tpot,
                "in_flight": at.in_flight,
                "full": at.full,
                "prompts": at.prompts,
                "kept": kept(k),
            }
        )
    within = unit.predict("e2e", work, max(1.0, at.in_flight))
    size_of = {share: needed(waiting, asked / count, cost, share, tokens[0], habit) for share in SHARES}
    return Ladder(
        pd.DataFrame(rows),
        {share: count * size * each / 1e9 for share, size in size_of.items()},
        means.of(1).ceiling,
        means.prompt,
        means.shared / means.prompt,
        means.prompt * each / 1e9,
        asked,
        turns.think,
        count,
        count * unit.gpus,
        _alone(lambda many: seen(asked / many, 0).rate * many, asked, count, rows[-1]["rate"]) if places else count,
        (within.low / within.value, within.high / within.value),
        unit.dp,
    )


def _alone(rate: Callable[[int], float], users: float, units: int, wanted: float) -> int:
    """Return the units, no fewer than there are, that serve so many turns per second with HBM alone."""
    most = max(units, int(np.ceil(users)))  # a unit for each user does as well as anything
    goal = wanted * (1 - _NEAR)
    return units + bisect_left(range(units, most), True, key=lambda many: rate(many) >= goal)


def _most(keeps: Callable[[Loop], bool], seen: Callable[[float], Loop]) -> int:
    """Return the most users up to whom all see what is to be kept; 0 where not one does.

    Behind a cliff limits may hold again, since HBM caps who is served: so it looks in small steps, for the first miss.
    """
    last, next_ = 0, 1
    while last < _USERS and keeps(seen(next_)):
        last, next_ = next_, max(next_ + 1, int(_GROWS * next_))
    return last + bisect_left(range(last + 1, next_), True, key=lambda many: not keeps(seen(many)))


def _gb(gb: float) -> str:
    return f"{digits(gb / 1e3)} TB" if gb >= 1e3 else f"{digits(gb)} GB"
