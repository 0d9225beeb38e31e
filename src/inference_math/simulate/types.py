"""What a simulated engine is told: records; in JavaScript plain objects."""

from __future__ import annotations

from typing import Protocol

from inference_math.evidence.records import Record


class Admission(Record):
    """How an engine lets prompts into its steps; see `simulate.Habits`."""

    whole: bool
    alone: bool
    wait_steps: int
    wait_tokens: float
    looks: int
    every: int
    guard: bool
    since: bool
    ahead: bool
    balanced: bool


class System(Record):
    """A scheduler as plain numbers: without prefill units, one engine does everything.

    `budget` is the tokens of a step, with prefill units those of theirs; `load` is what a stored token makes an
    engine wait, `transfer` what a prompt's token takes over a prefill group's link, `incoming` over a decode
    unit's. A step gives each request that decodes as many tokens as `gives`, for which it computes as many as it
    `brings`: more than one where requests draft tokens. Of the `ranks` of an engine each has its own prompts, and
    its part of the budget; a request goes to the one with the fewest, or to any `by_chance`. Of several `engines`
    without pools each is a unit, behind a router.
    """

    engines: int
    prefill_units: int
    groups: int
    decode_units: int
    transfer: float
    incoming: float
    budget: float
    max_batch: float
    kv_capacity: float
    grows: bool
    load: float
    gives: float
    brings: int
    admission: Admission
    ranks: int
    by_chance: bool


class StepTimes(Protocol):
    """Who says how long the steps of a simulated engine take; `simulate.timed` makes one of any cost."""

    def seconds(self, decodes: int, context: float, prefills: float, tokens: int, pairs: float) -> float:
        """Return the seconds of a step; see `simulate.Cost` for the arguments."""

    def uneven(self, decodes: int, context: float, prefills: float, tokens: int, pairs: float, share: float) -> float:
        """Return the seconds of a step of ranks, the arguments as if each had the prompts of the one with the most.

        Of so many tokens the `share` is there: what ranks compute together takes that much.
        """

    def bare(self, decodes: int, context: float) -> float:
        """Return the seconds of a step without prompts, which may be 0 where nobody decodes."""

    def line(self, decodes: int, context: float) -> tuple[float, float, float, float] | None:
        """Return (fixed, per token of context) of such a step, and from where to where that holds, or None."""
