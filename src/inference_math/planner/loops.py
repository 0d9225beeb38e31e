"""Users in a closed loop with stores: what they find, how fast it goes, and how one makes the other [E05, E07, E09].

Turns in flight hold their blocks. What they leave of a store keeps those who think, so the longer turns take, the less
is found; and the less is found, the longer they take. The loop is closed here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from inference_math.checks import ANY_POSITIVE, AT_LEAST_ZERO, Interval, as_bool, as_number, as_numbers, as_whole
from inference_math.simulate.cost import Cost, timed
from inference_math.workload.sessions import Sessions, Turns

__all__ = ["Habit", "Loop", "loop", "needed"]

_ROUNDS = 400
_STEP = 0.5  # of the way to what a round says
_ENOUGH = 1e-7
_ENDLESS = 1e12  # seconds, or users: what a root finder takes for infinite


@dataclass(frozen=True)
class Loop:
    """What users in a closed loop see.

    Attributes
    ----------
    found
        Share of all prompt tokens that each tier finds, HBM first.
    rate
        Turns per second.
    ttft, tpot
        Means, in seconds; a TTFT with its wait.
    in_flight
        Turns that hold their tokens.
    full
        Whether turns wait because HBM has no room for more of them.
    prompts
        Share of the time that prompts take of the engine, beside what its steps take without: ψ of claim E07.
    """

    found: tuple[float, ...]
    rate: float
    ttft: float
    tpot: float
    in_flight: float
    full: bool
    prompts: float

    @property
    def together(self) -> float:
        """Share of all prompt tokens that is found."""
        return sum(self.found)


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
        Whether the engine loads layer by layer beside its computing, and waits for the slower of the two. If not, a
        prompt holds its room and waits for its group's one link, and the engine goes on.
    """

    budget: int = 8192
    groups: int = 1
    blocking: bool = True

    def __post_init__(self) -> None:
        as_whole("budget", self.budget)
        as_whole("groups", self.groups)
        as_bool("blocking", self.blocking)


PLAIN = Habit()


class _Prompt(NamedTuple):
    """A kind of prompt: its share of all, its tokens, those of them that are computed, and what it waits for tiers."""

    share: float
    n_in: float
    fresh: float
    load: float


def loop(
    turns: Turns,
    users: float,
    cost: Cost,
    *,
    tokens: Sequence[float],
    loads: Sequence[float] = (),
    habit: Habit = PLAIN,
) -> Loop:
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
    >>> from inference_math.planner.loops import loop
    >>> from inference_math.workload.sessions import Turns
    >>> agents = Turns(turns=20, first=20_000, message=1500, answer=500, think=20.0)
    >>> cost = simulate.StepCost(t_w=0.01, T=40e-6, kv_read=2e-8)
    >>> for users in (30, 40):
    ...     seen = loop(agents, users, cost, tokens=[1.2e6])
    ...     print(f"{seen.together:.2f} found, {seen.rate:.2f} turns/s, TTFT {seen.ttft:.1f} s")
    0.85 found, 0.93 turns/s, TTFT 0.4 s
    0.00 found, 0.47 turns/s, TTFT 5.3 s
    """
    count = as_number("users", users, ANY_POSITIVE)
    sizes = np.asarray(as_numbers("tokens", tokens, AT_LEAST_ZERO), dtype=np.float64)
    slow = [0.0, *(as_number("loads", load, AT_LEAST_ZERO) for load in loads)]
    if len(slow) != sizes.size:
        raise ValueError(f"loads must have a number for each tier below HBM, {sizes.size - 1}, not {len(slow) - 1}")
    if not sizes[0] >= habit.groups * turns.longest:
        told = f"{turns.longest}" + (f" in each of {habit.groups} groups" if habit.groups > 1 else "")
        raise ValueError(f"tokens of HBM must hold the longest request, {told}, not {sizes[0]:g}")
    engine = _Engine(turns, cost, habit)
    most = habit.groups * _places(turns, float(sizes[0]) / habit.groups)
    parts = max(1.0, min(habit.groups, count))  # a user has all of a group's part, and others stay empty
    times = engine.seen(count, (0.0,) * len(slow), slow, most)[1]
    for _ in range(_ROUNDS):
        found = _found(turns, count / parts, times, sizes / habit.groups)
        seen, takes = engine.seen(count, found, slow, most)
        if np.abs(takes - times).sum() <= _ENOUGH * takes.sum():
            break
        times = times + _STEP * (takes - times)
    return seen


def needed(turns: Turns, users: float, cost: Cost, share: float, hbm: float, habit: Habit = PLAIN) -> float:
    """Return the tokens of HBM and stores that find a share of what can be found, with loads that nobody waits for.

    Of them HBM has `hbm`, which turns in flight take.

    Raises
    ------
    TypeError, ValueError
        As `loop`; for a share of 1 or more.
    """
    count, engine = as_number("users", users, ANY_POSITIVE), _Engine(turns, cost, habit)
    found = as_number("share", share, Interval(0, 0.9999)) * turns.sessions(1.0).of(1).ceiling
    most = habit.groups * _places(turns, as_number("hbm", hbm, AT_LEAST_ZERO) / habit.groups)
    times = engine.seen(count, (found,), [0.0], most)[1]
    return habit.groups * _law(turns, times).of(count / max(1.0, min(habit.groups, count))).size_for(share)


def _places(turns: Turns, hbm: float) -> float:
    """Return the turns that HBM has room for; what all prompts share, they hold together."""
    whole = turns.sessions(1.0)
    return max(1.0, (hbm - whole.shared) / (whole.again + whole.brought))


def _law(turns: Turns, times: NDArray[np.float64]) -> Sessions:
    """Return sessions whose turns wait for room and hold it for so many seconds: while they wait, they hold nothing."""
    wait, served = times.tolist()
    calm = replace(turns, think=turns.think + wait, cv=turns.cv * turns.think / max(turns.think + wait, 1e-12))
    return calm.sessions(served)


def _found(turns: Turns, users: float, times: NDArray[np.float64], sizes: NDArray[np.float64]) -> tuple[float, ...]:
    law = _law(turns, times).of(users)
    together = [law.found(float(size)) for size in np.cumsum(sizes)]
    return tuple(np.diff(together, prepend=0.0).tolist())


class _Engine:
    """One engine, its sessions' prompts, and what a loop of users around it sees at given hits."""

    def __init__(self, turns: Turns, cost: Cost, habit: Habit) -> None:
        self._turns = turns
        self._time = timed(cost)
        self._gives = float(getattr(cost, "gives", 1))
        self._brings = float(getattr(cost, "brings", 1))
        self._habit = habit
        self._whole = turns.sessions(1.0)
        self._context = self._whole.prompt + turns.answer / 2

    def seen(
        self, users: float, found: tuple[float, ...], loads: Sequence[float], most: float
    ) -> tuple[Loop, NDArray[np.float64]]:
        """Return what users see, of whose turns HBM holds so many at most; and how long one waits, and holds."""
        think, wait = self._turns.think, 0.0
        rate, first, gap, busy = self._loop(users, think, found, loads)
        in_flight = users - rate * think
        full = in_flight > most
        if full:
            rate, first, gap, busy = self._loop(most, 0.0, found, loads)
            in_flight, wait = most, (users - most) / rate - think
        seen = Loop(found, rate, first + wait, gap, in_flight, full, busy)
        return seen, np.array([wait, in_flight / rate])

    def _loop(
        self, users: float, think: float, found: tuple[float, ...], loads: Sequence[float]
    ) -> tuple[float, float, float, float]:
        """Return turns/s, TTFT, TPOT, and the prompts' share of the time, of a loop without a limit of room."""
        steps = max(self._turns.answer - 1, 1) / self._gives
        kinds = self._kinds(found, loads)
        own = users / self._habit.groups
        others = max(own - 1, 0.0) / own  # of a group's turns, those of others

        def around(rate: float) -> tuple[float, float, float, float]:
            """Return how many users keep up a rate, its TTFT and gap, and the prompts' share of the time."""
            decodes = self._decodes(rate, steps, kinds, users)
            if decodes == inf:
                return inf, inf, inf, inf
            first, gap = self._first(rate, others, decodes, kinds), self._gap(rate, decodes, kinds)
            if not self._habit.blocking:
                line, fetched = _queue(rate / self._habit.groups, [(kind.share, kind.load) for kind in kinds])
                first += fetched + others * line * sum(kind.share for kind in kinds if kind.load)
            if first == inf:
                return inf, inf, inf, inf
            return rate * (think + first + steps * gap), first, gap, 1 - self._step(decodes) / gap if gap else 0.0

        top = 1.0
        while around(top)[0] < users:
            top *= 2
        rate = float(brentq(lambda each: min(around(each)[0], _ENDLESS) - users, 0.0, top, xtol=1e-12, rtol=1e-10))
        _, first, gap, share = around(rate)
        return rate, first, gap / self._gives, share

    def _kinds(self, found: tuple[float, ...], loads: Sequence[float]) -> list[_Prompt]:
        """Return a session's first prompts, later ones whose past was found, and those whose past was not."""
        turns, whole = self._turns, self._whole
        first, begins = turns.prompt(0), 1 / turns.turns
        if turns.turns == 1:
            return [_Prompt(1.0, first, first - min(turns.shared, sum(found) * first), 0.0)]
        later = (whole.prompt - begins * first) / (1 - begins)
        common = min(turns.shared, sum(found) * whole.prompt)
        back = min(max(0.0, (sum(found) * whole.prompt - common) / whole.again), 1.0)
        loaded = whole.prompt * sum(share * load for share, load in zip(found, loads, strict=True))
        kinds = [_Prompt(begins, first, first - common, 0.0)]
        if back > 0:
            share = (1 - begins) * back
            kinds.append(_Prompt(share, later, max(turns.message, 1), loaded / share))
        if back < 1:
            kinds.append(_Prompt((1 - begins) * (1 - back), later, later - common, 0.0))
        return kinds

    def _taken(self, kind: _Prompt, decodes: float, bare: float) -> tuple[float, float, float]:
        """Return what a prompt takes beside what its steps take without it; in all, but for its last step; and steps.

        A step is as long as the group with the most prompt tokens takes, and costs as if all had so many.
        """
        groups = self._habit.groups
        needs = max(1.0, kind.fresh / self._room(decodes))
        pairs = (kind.n_in**2 - (kind.n_in - kind.fresh) ** 2) / 2
        prompts = 1 / needs if groups == 1 else groups  # as the engine counts them: a group's chunk is a prompt
        step = self._step(decodes, prompts, groups * kind.fresh / needs, groups * pairs / needs)
        beside = max(needs * (step - bare), kind.load if self._habit.blocking else 0.0)
        return beside, beside + (needs - 1) * bare, needs

    def _sums(self, decodes: float, kinds: list[_Prompt]) -> tuple[float, float, float]:
        """Return the seconds of a step without prompts; what a mean prompt takes beside its steps; and how many."""
        bare = self._step(decodes)
        each = [(kind.share, self._taken(kind, decodes, bare)) for kind in kinds]
        return bare, sum(share * taken[0] for share, taken in each), sum(share * taken[2] for share, taken in each)

    def _gap(self, rate: float, decodes: float, kinds: list[_Prompt]) -> float:
        """Return the mean seconds of a step at so many turns per second; infinite where it does not keep up.

        Of several groups a step is longer by a chunk if any computes one, each by chance, and by as many as they have
        where that is more: a little too long where chunks of several bunch, which they do after long steps.
        """
        bare, beside, needs = self._sums(decodes, kinds)
        groups = self._habit.groups
        if groups == 1:
            return bare / (1 - rate * beside) if rate * beside < 1 else inf
        if rate * beside >= groups:
            return inf
        longer, each = beside / needs, rate * needs / groups  # chunks of a group in a second

        def more(seconds: float) -> float:
            chunks = each * seconds
            return bare + longer * (max(1.0, chunks) - max(0.0, 1 - chunks) ** groups) - seconds

        most = max(bare + longer, bare / (1 - rate * beside / groups)) * (1 + _ENOUGH)
        gap = float(brentq(more, 0.0, most, xtol=1e-15, rtol=1e-12)) if bare else 0.0
        filled = rate / groups * sum(kind.share * kind.fresh for kind in kinds) * gap
        return gap if filled < self._room(decodes) else inf

    def _first(self, rate: float, others: float, decodes: float, kinds: list[_Prompt]) -> float:
        """Return the mean seconds to a first token, of a rate that is kept up; infinite where prompts wait for ever."""
        bare, groups = self._step(decodes), self._habit.groups
        wholes = [(kind.share, self._taken(kind, decodes, bare)[1]) for kind in kinds]
        wait, busy = _queue(rate / groups, wholes)
        step = bare if groups == 1 else self._gap(rate, decodes, kinds)  # of which others' chunks make a part longer
        return others * wait + busy + bare + (others if groups == 1 else 1.0) * step / 2

    def _room(self, decodes: float) -> float:
        """Return the prompt tokens that a group's step has room for beside so many decodes of all."""
        return max(self._habit.budget - self._brings * decodes / self._habit.groups, 1.0)

    def _step(self, decodes: float, prefills: float = 0.0, tokens: float = 0.0, pairs: float = 0.0) -> float:
        """Return the mean seconds of a step, of a mean number of decodes."""
        low = int(decodes)
        ends = [self._whole_step(whole, prefills, tokens, pairs) for whole in (low, low + 1)]
        return ends[0] + (decodes - low) * (ends[1] - ends[0])

    def _whole_step(self, decodes: int, prefills: float, tokens: float, pairs: float) -> float:
        context = decodes * self._context
        if not tokens:
            return self._time.bare(decodes, context)
        return self._time.seconds(decodes, context, prefills, max(round(tokens), 1), pairs)

    def _decodes(self, rate: float, steps: float, kinds: list[_Prompt], most: float) -> float:
        """Return the requests that decode at once, by Little's law; infinite where no number of them keeps up."""

        def short(decodes: float) -> float:
            return decodes - rate * steps * min(self._gap(rate, decodes, kinds), _ENDLESS)

        if short(most) <= 0:
            return inf
        return float(brentq(short, 0.0, most, xtol=1e-9))


def _queue(rate: float, jobs: list[tuple[float, float]]) -> tuple[float, float]:
    """Return the mean wait, and the mean length, of jobs that come at random, served in turn: (share, seconds)."""
    length = sum(share * seconds for share, seconds in jobs)
    square = sum(share * seconds**2 for share, seconds in jobs)
    return (rate * square / 2 / (1 - rate * length) if rate * length < 1 else inf), length
