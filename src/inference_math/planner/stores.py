"""How big a store, which tier, what does it bring: sessions in, a ladder of tiers out [E05, E06]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from inference_math.catalogue.tiers import tier
from inference_math.checks import ANY_POSITIVE, AT_LEAST_ZERO, as_number, as_whole
from inference_math.checks.numerals import digits
from inference_math.perf.steps import kv_sent
from inference_math.unit import Unit
from inference_math.workload.returns import ladder
from inference_math.workload.sessions import Sessions

__all__ = ["SHARES", "Ladder", "size_store"]

SHARES = (0.5, 0.9, 0.99)
"""Of what a store finds that drops nothing: the sizes that an answer names."""
_MOST = 1e18  # bytes of a tier


@dataclass(frozen=True, eq=False)
class Ladder:
    """What a ladder of tiers finds for sessions of so many users.

    Attributes
    ----------
    tiers
        A row for each, "hbm" first: tier, gb, tokens (that it holds), found (share of all prompt tokens), together
        (with all above it), users (for whom it and all above it hold all that is read again), ttft (s: of a mean prompt
        alone on a unit, with what they find) and speedup (of that prompt, over computing all).
    needed
        GB that find so much of `ceiling`, by `SHARES`.
    ceiling
        Share of all prompt tokens that a store finds which drops nothing.
    prompt
        Mean tokens of a prompt.
    gb
        Of one session's KV cache, once.
    """

    tiers: pd.DataFrame
    needed: Mapping[float, float]
    ceiling: float
    prompt: float
    gb: float
    users: float

    def to_dict(self) -> dict[str, Any]:
        """Return all as plain numbers; a size without end is None."""
        rows = self.tiers.replace(np.inf, np.nan).astype(object)
        needed = {f"{share:g}": gb for share, gb in self.needed.items()}
        told = {"users": self.users, "prompt": self.prompt, "ceiling": self.ceiling, "session_gb": self.gb}
        return told | {"needed_gb": needed, "tiers": rows.where(rows.notna(), None).to_dict("records")}

    def __str__(self) -> str:
        sizes = ", ".join(f"{share:.0%} of that takes {_gb(gb)}" for share, gb in self.needed.items())
        shown = pd.DataFrame(
            {
                "tier": self.tiers["tier"],
                "size": self.tiers["gb"].map(_gb),
                "finds": self.tiers["found"].map("{:.0%}".format),
                "together": self.tiers["together"].map("{:.0%}".format),
                "users it holds": self.tiers["users"].map(digits),
                "TTFT alone (s)": self.tiers["ttft"].map(digits),
                "speedup": self.tiers["speedup"].map("{:.1f}".format),
            }
        )
        last = self.tiers.iloc[-1]
        return "\n".join(
            [
                f"{digits(self.users)} users, prompts of {digits(self.prompt)} tokens: {_gb(self.gb)} a session.",
                f"{self.ceiling:.0%} of all prompt tokens were there before; {sizes}.",
                "",
                shown.to_string(index=False),
                "",
                "Users: for so many a tier and all above it hold the sessions. With equal gaps and clearly more users",
                "they find nothing; with gaps that spread they lose slowly, from before that on.",
                f"All together: --alpha {last['together']:.2f} for inference-math plan.",
            ]
        )


def size_store(unit: Unit, sessions: Sessions, users: float, tiers: Mapping[str, float], units: int = 1) -> Ladder:
    """Return what HBM and the tiers below it find for sessions of so many users at once.

    Parameters
    ----------
    unit, units
        What serves them, and how many of these; all share the store. HBM holds what its weights leave.
    sessions
        What a turn brings, reads again, and how its next one comes.
    tiers
        Names of `catalogue.tiers`, from the fastest to the slowest, and the bytes of each, all machines together. One
        copy of a token is stored.

    Raises
    ------
    ValueError
        For an unknown tier, a size or numbers out of range.

    Examples
    --------
    >>> from inference_math import Unit
    >>> from inference_math.planner import size_store
    >>> from inference_math.workload.sessions import Sessions
    >>> agents = Sessions.of_turns(turns=60, first=15_000, message=1_500, answer=500, gap=30)
    >>> unit = Unit.of("llama-3-70b", "h100-sxm", 4, weights="fp8", kv="fp8")
    >>> found = size_store(unit, agents, 500, {"dram": 8e12}, units=8)
    >>> found.tiers[["tier", "together"]].round(2).to_dict("records")
    [{'tier': 'hbm', 'together': 0.28}, {'tier': 'dram', 'together': 0.98}]
    """
    asked, count = as_number("users", users, ANY_POSITIVE), as_whole("units", units, 1)
    law, prompt = sessions.of(asked), sessions.prompt
    each = kv_sent(unit.numbers, prompt) / prompt  # bytes of a token, once
    places = [(name, tier(name), as_number(f"size of {name}", size, AT_LEAST_ZERO)) for name, size in tiers.items()]
    if any(size > _MOST for _, _, size in places):
        raise ValueError(f"tiers must have at most {_MOST:g} bytes each")
    tokens = [count * unit.kv_tokens(prompt), *(size / each for _, _, size in places)]
    found = ladder(law, tokens)
    whole, rows, loads = unit.prefill_time(prompt), [], 0.0
    sums = zip(np.cumsum(found).tolist(), np.cumsum(tokens).tolist(), strict=True)
    for k, (held, share, (together, above)) in enumerate(zip(tokens, found, sums, strict=True)):
        if k:
            loads += share * prompt * each / (unit.gpus * places[k - 1][1].read_bw)
        ttft = max(float(unit.prefill_time(prompt, cached=min(together * prompt, prompt - 1))), loads)
        rows.append(
            {
                "tier": places[k - 1][0] if k else "hbm",
                "gb": held * each / 1e9,
                "tokens": held,
                "found": share,
                "together": together,
                "users": sessions.border(above),
                "ttft": ttft,
                "speedup": float(whole) / ttft,
            }
        )
    needed = {share: law.size_for(share) * each / 1e9 for share in SHARES}
    return Ladder(pd.DataFrame(rows), needed, law.ceiling, prompt, prompt * each / 1e9, asked)


def _gb(gb: float) -> str:
    return f"{digits(gb / 1e3)} TB" if gb >= 1e3 else f"{digits(gb)} GB"
