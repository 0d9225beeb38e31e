"""A simulated engine with stores for KV caches: sessions or a trace in, what each tier found out."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
import pandas as pd

from inference_math.evidence.checks import AT_LEAST_ZERO, as_bool, as_number, as_whole
from inference_math.simulate.cost import Cost, drafts_of, timed
from inference_math.simulate.engine import EVER, Batch, Engine, Request, Room
from inference_math.simulate.record import Record, Run
from inference_math.simulate.schedulers import Aggregated, Chunked, system_of
from inference_math.simulate.systems import run_engine
from inference_math.simulate.types import StepTimes, System
from inference_math_planner.fleets.caches import Stores, as_lifetime
from inference_math_planner.fleets.goodput import Client
from inference_math_planner.fleets.traces import BLOCK_TOKENS, Read
from inference_math_planner.fleets.turns import Turns

__all__ = ["StoreTier", "StoredRun", "with_stores"]


@dataclass(frozen=True)
class StoreTier:
    """A store below HBM: what it holds, and what the engine waits for.

    Attributes
    ----------
    tokens
        That it holds.
    load, write
        Seconds that a token takes to come from it, and to go into it.

    Raises
    ------
    ValueError
        For numbers below 0.
    """

    tokens: float
    load: float = 0.0
    write: float = 0.0

    def __post_init__(self) -> None:
        for name in ("tokens", "load", "write"):
            object.__setattr__(self, name, as_number(name, getattr(self, name), AT_LEAST_ZERO))


@dataclass(frozen=True, eq=False)
class StoredRun:
    """What a simulation with stores found.

    Attributes
    ----------
    run
        Requests, gaps and steps, as without stores; `cached` of a request is what all tiers found.
    tiers
        A row for each, "hbm" first: tier, found (share of all prompt tokens), written (tokens/s that came into it from
        above).
    """

    run: Run
    tiers: pd.DataFrame

    def summary(self) -> pd.Series[float]:
        """Return the summary of the run, and ``found_…`` of each tier."""
        summary = self.run.summary()
        for tier, share in zip(self.tiers["tier"], self.tiers["found"], strict=True):
            summary[f"found_{tier}"] = share
        return summary


def with_stores(
    source: Turns | Read,
    cost: Cost,
    *,
    requests: int,
    users: int = 1,
    tiers: Sequence[StoreTier] = (),
    scheduler: Aggregated | Chunked,
    block_tokens: int = BLOCK_TOKENS,
    blocking: bool = True,
    lifetime: float | None = None,
    warmup: int = 0,
    seed: int = 0,
    every_gap: bool = False,
    log: bool = False,
) -> StoredRun:
    """Simulate an engine whose HBM keeps what requests leave, as far as those in flight have no need of it.

    What HBM drops goes to the first of `tiers`, what that drops to the next. A request finds the beginning of its
    prompt up to the first block that no tier has, and holds all its tokens, its answer's included, until it is done.

    Parameters
    ----------
    source
        Sessions of `users`, each of whom sends a turn, waits for the answer, and thinks; or a trace with block ids,
        whose requests come at their own times and whose answers nobody stores.
    requests, warmup
        How many finished requests are measured, after how many that are not. Stores are empty at the beginning.
    scheduler
        Its `kv_capacity` is HBM's, in tokens. Answers reserve their room, so `grows` is refused.
    block_tokens
        Tokens of a block of sessions; a trace has its own.
    blocking
        Whether the engine loads layer by layer beside its own step: one in which prompts begin takes what these load
        and have written, or all that it computes and reads, whichever is longer. If not, a prompt holds its room and
        waits for the one link, which serves one after the other, and the engine goes on.
    lifetime
        Seconds after which HBM and all tiers lose what nobody used; None: never.

    The others are those of `closed_loop`.

    Raises
    ------
    TypeError, ValueError
        For arguments that are none of these; for a request that HBM has no room for.

    Examples
    --------
    >>> from inference_math import simulate
    >>> from inference_math_planner.fleets.stored import StoreTier, with_stores
    >>> from inference_math_planner.fleets.turns import Turns
    >>> agents = Turns(turns=20, first=8000, message=1500, answer=500, think=20.0)
    >>> cost = simulate.StepCost(t_w=0.01, T=50e-6, kv_read=2e-8)
    >>> asked = {"users": 40, "requests": 600, "warmup": 300}
    >>> engine = simulate.Chunked(8192, kv_capacity=400_000)
    >>> for host in (0, 2e6):
    ...     tiers = [StoreTier(host, load=2e-6)]
    ...     found = with_stores(agents, cost, scheduler=engine, tiers=tiers, **asked)
    ...     print(found.tiers.found.round(2).tolist(), f"{found.run.request_rate:.2f} requests/s")
    [0.0, 0.0] 0.50 requests/s
    [0.03, 0.89] 1.29 requests/s
    """
    if not isinstance(source, Turns | Read):
        raise TypeError(f"source must be Turns or a Read trace, not {source!r:.80}")
    if not isinstance(scheduler, Aggregated | Chunked) or scheduler.grows or scheduler.kv_capacity == inf:
        raise ValueError("scheduler must be an Aggregated or a Chunked with a finite kv_capacity, and not grow")
    below = list(tiers)
    if not all(isinstance(tier, StoreTier) for tier in below):
        raise TypeError(f"tiers must be StoreTiers, not {tiers!r:.80}")
    tokens = source.block_tokens if isinstance(source, Read) else as_whole("block_tokens", block_tokens)
    if not as_bool("blocking", blocking) and isinstance(scheduler, Chunked) and scheduler.ranks > 1:
        raise ValueError(f"scheduler must have one rank where blocking is False, not {scheduler.ranks}")
    record = Record(as_whole("warmup", warmup, 0), every_gap, log)
    room = _KeptRoom(scheduler, tokens, below, record, as_lifetime(lifetime))
    rng = np.random.default_rng(as_whole("seed", seed, 0))
    senders = (
        _Sessions(source, as_whole("users", users), room, rng) if isinstance(source, Turns) else _sent(source, room)
    )
    system = system_of(scheduler, None, *drafts_of(cost))
    engine = (Engine if blocking else _Fetching)(timed(cost), record, room, system)
    room.clock = engine.batch
    end = run_engine(engine, senders, record, as_whole("requests", requests))
    return StoredRun(record.result(end), room.told(end - record.start))


class _Fetching(Engine):
    """An engine that goes on while a link brings what prompts found, one after the other."""

    def __init__(self, cost: StepTimes, record: Record, room: Room, system: System) -> None:
        super().__init__(cost, record, room, system)
        self._coming: deque[tuple[float, Request]] = deque()  # when each is there
        self._link_free = 0.0

    def idle(self) -> bool:
        """Tell whether there is nothing to do."""
        return not self._coming and super().idle()

    def advance(self, until: float) -> list[Request]:
        """Run to the next event, at latest to the end of the step that `until` falls in; return who finished."""
        while self._coming and self._coming[0][0] <= self.batch.now:
            self._line_up(self._coming.popleft()[1])
        return super().advance(until)

    def _admit(self, request: Request) -> None:
        self.batch.room.take(request)
        if request.load > 0:
            self._link_free = max(self._link_free, self.batch.now) + request.load
            self._coming.append((self._link_free, request))
            request.load = 0.0
        else:
            self._line_up(request)

    def _decode(self, until: float) -> None:
        soonest = min(until, self._coming[0][0]) if self._coming else until
        if not self._coming or self._prompts:  # who is held is held as ever
            super()._decode(soonest)
        elif self.batch.size:
            self.batch.decode(soonest, EVER)
        else:
            self.batch.now = soonest


class _KeptRoom(Room):
    """Room of an engine whose free tokens keep what finished requests leave, above tiers that take what it drops."""

    def __init__(
        self,
        scheduler: Aggregated | Chunked,
        block_tokens: int,
        below: list[StoreTier],
        record: Record,
        lifetime: float,
    ) -> None:
        super().__init__(scheduler.max_batch, scheduler.kv_capacity, False)
        self.block_tokens = block_tokens
        self.finished: deque[int] = deque()  # numbers of requests
        self.clock: Batch  # of the engine that has this room
        self._below = below
        self._record = record
        self._whole = int(scheduler.kv_capacity) // block_tokens
        self._stores = Stores([self._whole, *(int(tier.tokens) // block_tokens for tier in below)], lifetime)
        self._held: Counter[Hashable] = Counter()  # blocks of requests in flight
        self._nameless = 0  # blocks that they hold besides: no other request can use them
        self._blocks: dict[int, tuple[Sequence[Hashable], int]] = {}  # and how many of them are the prompt's
        self._places: dict[int, list[int]] = {}
        self._found = [0] * (1 + len(below))
        self._prompts = 0
        self._counted = 0
        self._written = list(self._stores.written)

    def expect(self, request: Request, blocks: Sequence[Hashable], prompt: int) -> None:
        """Note the blocks of a request, of which so many are its prompt's and can be found."""
        if self._all(request) > self._whole:
            length = f"{request.n_in + request.n_out} tokens, in blocks of {self.block_tokens}"
            raise ValueError(f"kv_capacity must hold the longest request, {length}")
        self._blocks[request.number] = blocks, prompt

    def fits(self, request: Request, beside: float) -> bool:
        """Tell whether there is room for `request` now; whole answers are reserved, so none grows beside it."""
        blocks, _ = self._blocks[request.number]
        needed = self._all(request) - len(blocks) + sum(block not in self._held for block in blocks)
        return self.places >= 1 and needed <= self._whole - len(self._held) - self._nameless

    def take(self, request: Request) -> None:
        """Find what the tiers have of the prompt of `request`, and hold its room."""
        blocks, prompt = self._blocks[request.number]
        places = self._stores.found(blocks[:prompt], self.clock.now, self._held)
        self._places[request.number] = places
        request.cached = min(len(places) * self.block_tokens, request.n_in - 1)
        request.load = sum(self._below[place - 1].load for place in places if place) * self.block_tokens
        self._nameless += self._all(request) - len(blocks)
        for block in blocks:
            self._held[block] += 1
            self._stores.take(block)
        self.places -= 1
        request.load += self._settled()

    def give_back(self, request: Request, beyond: float) -> None:
        """Keep what `request` leaves, its end as what is dropped first."""
        blocks, _ = self._blocks.pop(request.number)
        for block in reversed(blocks):
            self._held[block] -= 1
            if not self._held[block]:
                del self._held[block]
                self._stores.put(block, self.clock.now)
        self._nameless -= self._all(request) - len(blocks)
        self.places += 1
        self.finished.append(request.number)
        self._count(request, self._places.pop(request.number))

    def told(self, seconds: float) -> pd.DataFrame:
        """Return the tiers, and what each found and took in during so many seconds since the warm-up."""
        came = np.subtract(self._stores.written, self._written) * self.block_tokens
        names = ["hbm", *(f"tier {k}" for k in range(1, len(self._found)))]
        shares = np.array(self._found) / max(self._prompts, 1)
        return pd.DataFrame({"tier": names, "found": shares, "written": came / max(seconds, 1e-12)})

    def _all(self, request: Request) -> int:
        return -(-(request.n_in + request.n_out) // self.block_tokens)

    def _settled(self) -> float:
        """Drop what HBM has no room for; return the seconds that this takes to write."""
        before = list(self._stores.written)
        self._stores.sizes[0] = self._whole - len(self._held) - self._nameless
        self._stores.settle(self.clock.now)
        came = zip(self._below, self._stores.written[1:], before[1:], strict=True)
        return sum(tier.write * (now - then) for tier, now, then in came) * self.block_tokens

    def _count(self, request: Request, places: list[int]) -> None:
        """Add up what a measured request found."""
        if self._record.measured == self._counted:  # of the warm-up
            self._written = list(self._stores.written)
            return
        self._counted = self._record.measured
        self._prompts += request.n_in
        left = request.cached
        for place in places:
            self._found[place] += min(self.block_tokens, left)
            left -= min(self.block_tokens, left)


class _Sessions:
    """Users who send turns of sessions, each after the answer to the last and a time to think."""

    def __init__(self, turns: Turns, users: int, room: _KeptRoom, rng: np.random.Generator) -> None:
        self._turns = turns
        self._room = room
        self._rng = rng
        self._sent = 0
        self._begun = users
        self._at = {user: (user, int(rng.integers(turns.turns))) for user in range(users)}  # session and turn of each
        self._user: dict[int, int] = {}

    def first(self) -> list[tuple[float, Request]]:
        """Return a turn of each: anywhere in a session, at any moment of thinking."""
        return [self._send(user, float(self._rng.uniform(0, self._turns.think))) for user in self._at]

    def after_arrival(self) -> list[tuple[float, Request]]:
        """Return nobody: each gets an answer first."""
        return []

    def after_finish(self, now: float) -> list[tuple[float, Request]]:
        """Return the next turn of a user whose answer is complete."""
        user = self._user.pop(self._room.finished.popleft())
        session, turn = self._at[user]
        if turn + 1 == self._turns.turns:
            session, self._begun = self._begun, self._begun + 1
        self._at[user] = session, (turn + 1) % self._turns.turns
        return [self._send(user, now + self._turns.thought(self._rng))]

    def _send(self, user: int, now: float) -> tuple[float, Request]:
        (session, turn), turns, size = self._at[user], self._turns, self._room.block_tokens
        request = Request(self._sent, now, turns.prompt(turn), turns.answer, 0)
        self._user[self._sent] = user
        self._sent += 1
        common = turns.shared // size
        whole = (request.n_in + request.n_out) // size  # a part of a block cannot be found
        self._room.expect(request, [(-1 if k < common else session, k) for k in range(whole)], request.n_in // size)
        return now, request


def _sent(trace: Read, room: _KeptRoom) -> Client:
    """Return the requests of a trace, at their own times, with the blocks of their prompts."""
    rows = trace.requests
    if rows["blocks"].isna().any() or rows["arrival"].isna().any():
        raise ValueError("source must have block ids and arrival times in every line")
    requests = []
    for number, (at, n_in, n_out, blocks) in enumerate(
        zip(*(rows[name].tolist() for name in ("arrival", "n_in", "n_out", "blocks")), strict=True)
    ):
        requests.append(Request(number, at, n_in, n_out, 0))
        room.expect(requests[-1], blocks, len(blocks))
    return Client(requests, 0, 0.0)
