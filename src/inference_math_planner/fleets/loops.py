"""Users in a closed loop with stores: `fleets.visits`, asked with a cost of steps [E05, E07, E09]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from inference_math.evidence.checks import ANY_POSITIVE, AT_LEAST_ZERO, as_bool, as_number, as_numbers, as_whole
from inference_math.simulate.cost import Cost, drafts_of, timed
from inference_math_planner.fleets.caches import as_lifetime
from inference_math_planner.fleets.turns import Turns
from inference_math_planner.fleets.types import SessionHabits, Visit
from inference_math_planner.fleets.visits import visits

__all__ = ["Habit", "loop", "session_habits"]


@dataclass(frozen=True)
class Habit:
    """How an engine computes and loads.

    Attributes
    ----------
    budget
        Tokens of a step, of each group.
    groups
        Of attention data parallelism. Each keeps its own users and its own part of every store, and all step together.
    blocking
        Whether the engine loads layer by layer beside its step, and waits for the slower of the two. If not, a
        prompt holds its room and waits for its group's one link, and the engine goes on.
    lifetime
        Seconds after which HBM and all tiers drop what nobody used (a time to live); None: never.
    """

    budget: int = 8192
    groups: int = 1
    blocking: bool = True
    lifetime: float | None = None

    def __post_init__(self) -> None:
        as_whole("budget", self.budget)
        as_whole("groups", self.groups)
        as_bool("blocking", self.blocking)
        as_lifetime(self.lifetime)


PLAIN = Habit()


def loop(
    turns: Turns,
    users: float,
    cost: Cost,
    *,
    tokens: Sequence[float],
    loads: Sequence[float] = (),
    habit: Habit = PLAIN,
) -> Visit:
    """Return what users in a closed loop see of one engine with chunked prefill and a ladder of stores.

    Parameters
    ----------
    turns
        Their sessions.
    users
        Of the engine.
    cost
        Seconds of a step, as the simulator takes it.
    tokens
        That HBM holds, and each tier below it.
    loads
        Seconds that a token takes to come from each tier below HBM.
    habit
        How the engine computes and loads.

    Raises
    ------
    TypeError, ValueError
        For numbers out of range, another number of loads than of tiers, an HBM without room for a request.

    Examples
    --------
    >>> from inference_math import simulate
    >>> from inference_math_planner.fleets.loops import loop
    >>> from inference_math_planner.fleets.turns import Turns
    >>> agents = Turns(turns=20, first=20_000, message=1500, answer=500, think=20.0)
    >>> cost = simulate.StepCost(t_w=0.01, T=40e-6, kv_read=2e-8)
    >>> for users in (30, 40):
    ...     seen = loop(agents, users, cost, tokens=[1.2e6])
    ...     print(f"{seen.together:.2f} found, {seen.rate:.2f} turns/s, TTFT {seen.ttft:.1f} s")
    0.85 found, 0.93 turns/s, TTFT 0.4 s
    0.08 found, 0.50 turns/s, TTFT 6.3 s
    """
    count = as_number("users", users, ANY_POSITIVE)
    sizes = np.asarray(as_numbers("tokens", tokens, AT_LEAST_ZERO), dtype=np.float64)
    slow = [0.0, *(as_number("loads", load, AT_LEAST_ZERO) for load in loads)]
    if len(slow) != sizes.size:
        raise ValueError(f"loads must have a number for each tier below HBM, {sizes.size - 1}, not {len(slow) - 1}")
    if not sizes[0] >= habit.groups * turns.longest:
        length = f"{turns.longest}" + (f" in each of {habit.groups} groups" if habit.groups > 1 else "")
        raise ValueError(f"tokens of HBM must hold the longest request, {length}, not {sizes[0]:g}")
    return visits(turns, count, timed(cost), sizes.tolist(), slow, session_habits(habit, cost))


def session_habits(habit: Habit, cost: Cost) -> SessionHabits:
    """Return what `fleets.visits` takes of both."""
    accepted_per_step, verified_per_step = drafts_of(cost)
    return SessionHabits(
        budget=habit.budget,
        groups=habit.groups,
        blocking=habit.blocking,
        lifetime=as_lifetime(habit.lifetime),
        accepted_per_step=float(accepted_per_step),
        verified_per_step=float(verified_per_step),
    )
