"""Users who come back: conversations and agents, whose prompts begin with all that was said before."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from math import inf
from typing import NamedTuple

import numpy as np
from msgspec import structs

from inference_math.evidence.checks import ANY_POSITIVE, AT_LEAST_ZERO, Interval, as_number, as_whole
from inference_math_planner.fleets import sessions as law
from inference_math_planner.fleets.caches import as_lifetime
from inference_math_planner.fleets.types import SessionNumbers, TurnNumbers

__all__ = ["Sessions", "SessionsOf", "Turn", "Turns"]


class Turn(NamedTuple):
    """A request of a session: when it comes (s), its prompt's tokens, and its blocks, those of its answer included."""

    arrival: float
    n_in: int
    blocks: list[tuple[int, int]]


class Turns(TurnNumbers):
    """Sessions of so many equal turns: what a simulation draws, and of which `Sessions` are the means.

    Attributes
    ----------
    turns
        Of a session.
    first, message, answer
        Tokens of the first prompt beside the `shared` ones, of what each further one adds to all that was said before,
        and of each answer.
    think
        Mean seconds from an answer to the next turn of its user; of a session's last turn, to the first of a new one.
    cv
        Coefficient of variation of these times, which are gamma distributed: 0 for equal ones, 1 for exponential ones.
    shared
        Tokens with which all prompts begin.

    Raises
    ------
    TypeError, ValueError
        For numbers that are not whole, or out of range.

    Examples
    --------
    >>> from inference_math_planner.fleets.turns import Turns
    >>> agents = Turns(turns=40, first=12_000, message=1_500, answer=500, think=20)
    >>> f"{agents.sessions(served=10).prompt:,.0f} tokens"
    '51,000 tokens'
    """

    def __post_init__(self) -> None:
        for name, least in (("turns", 1), ("first", 1), ("message", 0), ("answer", 1), ("shared", 0)):
            as_whole(name, getattr(self, name), least)
        as_number("think", self.think, AT_LEAST_ZERO)
        as_number("cv", self.cv, Interval(0, 100))

    def prompt(self, turn: int) -> int:
        """Return the tokens of the prompt of a turn, the first of which is number 0."""
        return self.shared + self.first + turn * (self.message + self.answer)

    @property
    def longest(self) -> int:
        """Tokens of the last prompt of a session, with its answer."""
        return self.prompt(self.turns - 1) + self.answer

    def thought(self, rng: np.random.Generator) -> float:
        """Return how long somebody thinks, drawn."""
        if self.cv == 0 or self.think == 0:
            return self.think
        return float(rng.gamma(self.cv**-2, self.think * self.cv**2))

    def sessions(self, served: float) -> Sessions:
        """Return what the laws ask of them, where each turn waits and is served for so many seconds."""
        return Sessions(**structs.asdict(law.session_of(self, as_number("served", served, AT_LEAST_ZERO))))

    def drawn(self, users: int, seconds: float, *, seed: int = 0) -> list[Turn]:
        """Return the requests that so many users send, in blocks of one token, if answers take no time.

        Users begin at chance places of a session and of a gap, so that the stream is stationary from its beginning.

        Raises
        ------
        TypeError, ValueError
            For numbers out of range; where nobody thinks.

        Examples
        --------
        >>> from inference_math_planner.fleets.turns import Turns
        >>> from inference_math_planner.fleets.caches import play
        >>> stream = Turns(turns=8, first=30, message=3, answer=2, think=10).drawn(users=20, seconds=500)
        >>> [f"{share:.2f}" for share in play(stream, [500, 1000], skip=200)]
        ['0.40', '0.45']
        """
        rng = np.random.default_rng(as_whole("seed", seed, 0))
        mean, until = as_number("think", self.think, ANY_POSITIVE), as_number("seconds", seconds, ANY_POSITIVE)
        common = [(-1, block) for block in range(self.shared)]
        due = [(float(rng.uniform(0, mean)), user, user, int(rng.integers(self.turns))) for user in range(users)]
        heapify(due)
        requests, number = [], as_whole("users", users)
        while due[0][0] < until:
            now, user, session, turn = heappop(due)
            prompt = self.prompt(turn)
            own = [(session, block) for block in range(prompt - self.shared + self.answer)]
            requests.append(Turn(now, prompt, common + own))
            if turn + 1 == self.turns:
                session, number = number, number + 1
            heappush(due, (now + self.thought(rng), user, session, (turn + 1) % self.turns))
        return requests


class Sessions(SessionNumbers):
    """What a turn of a user brings, reads again, and how long the next one takes to come.

    Attributes
    ----------
    again
        Tokens that a turn reads again, in the mean over all turns: those of the turns before it, answers included.
    brought
        Tokens that it brings, in the mean: what is new of its prompt, and its answer.
    gap
        Mean seconds from a turn of a user to the next: being served, and thinking.
    cv
        Coefficient of variation of the thinking, which is gamma distributed: 0 for equal times, 1 for exponential ones.
    answer
        Tokens of `brought` that are the answer's.
    shared
        Tokens with which all prompts begin.
    served
        Seconds of `gap` in which a turn waits and is served, and holds all its tokens.

    Raises
    ------
    ValueError
        For numbers out of range.

    Examples
    --------
    >>> from inference_math_planner.fleets.turns import Turns
    >>> agents = Turns(turns=40, first=12_000, message=1_500, answer=500, think=30).sessions(served=0)
    >>> f"{agents.prompt:,.0f} tokens, of which {agents.of(1).ceiling:.0%} were there before"
    '51,000 tokens, of which 97% were there before'
    >>> f"{agents.of(969).size_for(0.9) / 1e6:.0f} million tokens find 0.9 of that for 969 users"
    '48 million tokens find 0.9 of that for 969 users'
    >>> f"{agents.border(50e6):.0f} users fit into 50 million tokens"
    '971 users fit into 50 million tokens'
    """

    def __post_init__(self) -> None:
        positive = {"brought", "gap"}
        for name in ("again", "brought", "gap", "cv", "answer", "shared", "served"):
            accepted = ANY_POSITIVE if name in positive else AT_LEAST_ZERO
            structs.force_setattr(self, name, as_number(name, getattr(self, name), accepted))
        if self.served > self.gap:
            raise ValueError(f"served must be at most gap = {self.gap:g}, of which it is a part")
        if self.answer > self.brought:
            raise ValueError(f"answer must be at most brought = {self.brought:g}, of which it is a part")

    @property
    def prompt(self) -> float:
        """Mean tokens of a prompt."""
        return law.prompt_of(self)

    @property
    def think(self) -> float:
        """Mean seconds from an answer to the next turn of its user."""
        return self.gap - self.served

    def come_back(self, seconds: float) -> float:
        """Return the share of the turns that come within so many seconds after the answer before."""
        return law.come_back(self, seconds)

    def mean_think(self, most: float) -> float:
        """Return the mean of the times that users think, of which none counts more than so many seconds."""
        return law.mean_think(self, most)

    def of(self, users: float) -> SessionsOf:
        """Return the sessions of so many users at once."""
        return SessionsOf(self, as_number("users", users, ANY_POSITIVE))

    def border(self, capacity: float) -> float:
        """Return for how many users a store of so many tokens holds all that their next turns read [E06].

        With equal gaps it finds all for clearly fewer, and nothing for clearly more; the more gaps spread, the slower
        hits fall, from before there on.
        """
        return law.border(self, as_number("capacity", capacity, AT_LEAST_ZERO))


@dataclass(frozen=True)
class SessionsOf:
    """Sessions of so many users: what a store of a size finds [E05]."""

    sessions: Sessions
    users: float

    @property
    def ceiling(self) -> float:
        """Share of all prompt tokens that a store finds which drops nothing."""
        return self.within(inf)

    def working_set(self, seconds: float) -> float:
        """Return the different tokens that are held by turns in flight, or were within so many seconds."""
        return law.working_set(self.sessions, self.users, seconds)

    def kept(self, capacity: float) -> float:
        """Return the seconds for which a store of so many tokens keeps what no turn in flight holds."""
        return law.kept_for(self.sessions, self.users, capacity)

    def within(self, seconds: float) -> float:
        """Return the share of all prompt tokens that were used within so many seconds before.

        What all prompts share is used all the time.
        """
        return law.used_within(self.sessions, seconds)

    def found(self, capacity: float, lifetime: float | None = None) -> float:
        """Return the share of all prompt tokens that a store of so many tokens finds.

        With a lifetime it drops what nobody used for so many seconds, too.
        """
        return law.found_by(self.sessions, self.users, capacity, as_lifetime(lifetime))

    def found_from_empty(self, capacity: float, seconds: float) -> float:
        """Return the same of the first so many seconds, from an empty store, for turns of no length."""
        span, one = as_number("seconds", seconds, ANY_POSITIVE), self.sessions
        if one.served:
            raise ValueError(f"served must be 0 where a store begins empty, not {one.served:g}")
        kept = min(self.kept(capacity), span)
        back = (kept - one.mean_think(kept) + (span - kept) * one.come_back(kept)) / span
        return (one.shared + one.again * back) / one.prompt

    def size_for(self, share: float) -> float:
        """Return the tokens of a store that finds a share of what one finds which drops nothing."""
        most = as_number("share", share, Interval(0, 0.9999))
        return law.needed_tokens(self.sessions, self.users, most, inf)
