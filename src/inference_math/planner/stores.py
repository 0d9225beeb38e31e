"""How big a store, which tier, what does it bring: sessions in, a ladder of tiers out [E05, E06, E09]."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
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
from inference_math.planner.loops import loop, needed
from inference_math.unit import Unit
from inference_math.workload import Workload
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
        s), in_flight (turns that hold their tokens, per unit) and full (whether turns wait for room in HBM).
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
    alone
        Units that would serve as many turns per second without any tier below HBM: what the ladder stands for.
    spread
        Ends of the factor by which latencies, and so rates, may be off with a probability of 90 %, where hits are what
        the law says.
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
    alone: int
    spread: tuple[float, float]

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
        told |= {"session_gb": self.gb, "units": self.units, "units_alone": self.alone}
        return told | {
            "latency_spread": list(self.spread),
            "needed_gb": sizes,
            "tiers": rows.where(rows.notna(), None).to_dict("records"),
        }

    def __str__(self) -> str:
        sizes = ", ".join(f"{share:.0%} of that takes {_gb(gb)}" for share, gb in self.needed.items())
        shown = pd.DataFrame(
            {
                "up to": self.tiers["tier"],
                "size": self.tiers["gb"].map(_gb),
                "found": self.tiers["together"].map("{:.0%}".format),
                "holds users": self.tiers["users"].map(digits),
                "turns/s": self.tiers["rate"].map(digits),
                "TTFT (s)": self.tiers["ttft"].map(digits),
                "TPOT (ms)": (1e3 * self.tiers["tpot"]).map(digits),
                "in flight": self.tiers["in_flight"].map(digits) + self.tiers["full"].map({True: " (all)", False: ""}),
            }
        )
        low, high = self.spread
        common, found = self.common, self.tiers["together"].iloc[0]
        told = [
            f"{digits(self.users)} users who think for {digits(self.think)} s; "
            f"prompts of {digits(self.prompt)} tokens, {_gb(self.gb)}.",
            f"{self.ceiling:.0%} of all prompt tokens were there before; {sizes}, HBM included.",
            shown.to_string(index=False),
            "Each row has the tiers up to its own. "
            f"Times: {low:.2f} to {high:.2f} of that in nine cases of ten, if as much is found. "
            "In flight: turns of a unit that hold their tokens; (all): more would, and wait for room. "
            f"All together: --alpha {self.tiers['together'].iloc[-1]:.2f} for inference-math plan.",
        ]
        if self.alone != self.units:
            told.append(f"With HBM alone, as many turns per second take {self.alone} units.")
        if found < common + _LOST * (self.ceiling - common):
            told.append("HBM alone finds next to nothing of what was said before: turns in flight fill it.")
        if self.needed[SHARES[-1]] < _CLIFF * self.needed[SHARES[0]]:
            told.append(
                "These sizes lie close together: a store clearly larger finds all, one clearly smaller nothing."
            )
        return "\n\n".join(part if "\n" in part else fill(part, _WIDTH) for part in told)


_WIDTH = 84
_LOST = 0.1  # of what can be found: next to nothing
_CLIFF = 1.25  # the size that finds nearly all over the one that finds half
_NEAR = 0.02  # by which a rate is as good


def size_store(
    unit: Unit, turns: Turns, users: float, tiers: Mapping[str, float], units: int = 1, budget: int = BUDGET
) -> Ladder:
    """Return what HBM and the tiers below it find for sessions of so many users at once, and what that brings.

    Parameters
    ----------
    unit, units
        What serves them, and how many of these, each with an equal part of the users and of the tiers: a session goes
        to the unit that has its past. HBM holds what its weights leave.
    turns
        Their sessions.
    tiers
        Names of `catalogue.tiers`, from the fastest to the slowest, and the bytes of each, all machines together. One
        copy of a token is stored.
    budget
        Tokens of a step.

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
    if unit.dp > 1:
        raise ValueError(
            f"unit must have one group of attention, dp = 1, not {unit.dp}: each would keep its own caches"
        )
    means = turns.sessions(1.0)
    each = kv_sent(unit.numbers, means.prompt) / means.prompt  # bytes of a token, once
    places = [(name, tier(name), as_number(f"size of {name}", size, AT_LEAST_ZERO)) for name, size in tiers.items()]
    if any(size > _MOST for _, _, size in places):
        raise ValueError(f"tiers must have at most {_MOST:g} bytes each")
    if unit.kv_tokens(turns.longest) < turns.longest:
        raise ValueError(f"unit must hold the longest request, {turns.longest:,} tokens, beside its weights")
    tokens = [unit.kv_tokens(means.prompt), *(size / each / count for _, _, size in places)]
    loads = [each / (unit.gpus * one.read_bw) for _, one, _ in places]
    work = Workload(means.prompt, turns.answer)
    cost, front = unit.near(work).step_cost, unit.front.seconds
    waiting = replace(turns, think=turns.think + front)  # what no step takes, nothing is held for
    rows: list[dict[str, Any]] = []
    sums = np.cumsum(tokens).tolist()
    for k, held in enumerate(tokens):
        seen = loop(waiting, asked / count, cost, tokens=tokens[: k + 1], loads=loads[:k], budget=budget)
        rows.append(
            {
                "tier": places[k - 1][0] if k else "hbm",
                "gb": count * held * each / 1e9,
                "tokens": count * held,
                "together": seen.together,
                "users": count * means.border(sums[k]),
                "rate": count * seen.rate,
                "ttft": front + seen.ttft,
                "tpot": seen.tpot,
                "in_flight": seen.in_flight,
                "full": seen.full,
            }
        )
    goal = float(rows[-1]["rate"]) * (1 - _NEAR)

    def serve(many: int) -> bool:
        """Tell whether so many units serve as much with HBM alone."""
        return many * loop(waiting, asked / many, cost, tokens=tokens[:1], budget=budget).rate >= goal

    most = max(count, int(np.ceil(asked)))  # a unit for each user does as well as anything
    alone = count + bisect_left(range(count, most), True, key=serve)
    within = unit.predict("e2e", work, max(1.0, seen.in_flight))
    sizes = {
        share: count * needed(waiting, asked / count, cost, share, tokens[0], budget) * each / 1e9 for share in SHARES
    }
    return Ladder(
        pd.DataFrame(rows),
        sizes,
        means.of(1).ceiling,
        means.prompt,
        means.shared / means.prompt,
        means.prompt * each / 1e9,
        asked,
        turns.think,
        count,
        alone,
        (within.low / within.value, within.high / within.value),
    )


def _gb(gb: float) -> str:
    return f"{digits(gb / 1e3)} TB" if gb >= 1e3 else f"{digits(gb)} GB"
