"""The systems that serve: one engine that does everything, or pools for prefill and for decode.

Printed as JavaScript for the planner's page, as `engine` is.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from math import inf
from typing import Any, Protocol

from inference_math.simulate.engine import EVER, Batch, Engine, Ledger, Request, Room
from inference_math.simulate.types import StepTimes, System


class Senders(Protocol):
    """Who sends requests, each with the time that it can be served from: `users.Users`, or `goodput.Client`."""

    def first(self) -> list[tuple[float, Request]]:
        """Return the requests of the start."""

    def after_arrival(self) -> list[tuple[float, Request]]:
        """Return who comes after an arrival."""

    def after_finish(self, now: float) -> list[tuple[float, Request]]:
        """Return who comes when a request has finished at `now`."""


def engine_of(system: System, cost: StepTimes, record: Ledger) -> Engine:
    """Return the one engine of a system without pools."""
    return Engine(cost, record, room_of(system), system)


def room_of(system: System) -> Room:
    """Return the places and the KV cache of one of a system's engines, empty."""
    return Room(system.max_batch, system.kv_capacity, system.grows)


def run_engine(engine: Engine, users: Senders, record: Ledger, wanted: float) -> float:
    """Serve until `wanted` requests are measured or nobody comes any more; return when that was."""
    coming: list[tuple[float, int, Request]] = []
    for ready, request in users.first():
        heappush(coming, (ready, request.number, request))
    batch, waiting = engine.batch, engine.waiting
    while record.measured < wanted:
        while len(coming) > 0 and coming[0][0] <= batch.now:
            waiting.append(heappop(coming)[2])
            for ready, request in users.after_arrival():
                heappush(coming, (ready, request.number, request))
        if engine.idle():
            if len(coming) == 0:
                break
            batch.now = coming[0][0]
            continue
        for _ in engine.advance(coming[0][0] if len(coming) > 0 else inf):
            for ready, request in users.after_finish(batch.now):
                if len(coming) > 0 or ready > batch.now:
                    heappush(coming, (ready, request.number, request))
                else:
                    waiting.append(request)
    return batch.now


def run_balanced(system: System, cost: StepTimes, users: Senders, record: Ledger, wanted: float) -> float:
    """Serve with several engines behind a router, which sends a request to the one that has the fewest.

    Who sends waits for nobody. An engine may be ahead of the router by a step, or to where its next place is free.
    """
    engines = [engine_of(system, cost, record) for _ in range(system.engines)]
    # Nobody finishes in an engine that is calm, so its clock may wait.
    calm, loads = [inf for _ in engines], [0 for _ in engines]
    coming: list[tuple[float, int, Request]] = []
    for ready, request in users.first():
        heappush(coming, (ready, request.number, request))
    while record.measured < wanted and len(coming) > 0:
        now, _, request = heappop(coming)
        taken = 0
        for i in range(len(engines)):
            if calm[i] < now:
                run_to(engines[i], now, record, wanted)
                calm[i], loads[i] = engines[i].calm_until(), engines[i].load()
            if loads[i] < loads[taken]:
                taken = i
        engine = engines[taken]
        run_to(engine, now, record, wanted)
        if loads[taken] == 0:
            engine.batch.now = max(engine.batch.now, now)
        engine.waiting.append(request)
        calm[taken] = engine.batch.now
        loads[taken] += 1
        for ready, later in users.after_arrival():
            heappush(coming, (ready, later.number, later))
    end = 0.0
    for engine in engines:
        run_to(engine, inf, record, wanted)
        end = max(end, engine.batch.now)
    return end


def run_to(engine: Engine, now: float, record: Ledger, wanted: float) -> None:
    """Let an engine serve until a time, or until it has nothing to do, or enough was measured."""
    batch = engine.batch
    while batch.now < now and record.measured < wanted and not engine.idle():
        engine.advance(now)


class DecodeUnit:
    """A decode engine of the pool with its own queue for admission, and its own link, over which caches come.

    Where caches grow and the next step's tokens have no room, who came last is preempted, as in `Engine`: it waits
    before all others, and is computed again here, beside the decodes, as a decode instance of vLLM does: its whole
    prompt and what it has of its answer, in one step. No part of it is found in a store or sent once more.

    One that plans `ahead` lets join those who waited, and had room, when the step before began. Who finds no step
    under way joins at once.
    """

    def __init__(self, batch: Batch, ahead: bool) -> None:
        self.batch = batch
        self._ahead = ahead
        self._planned = EVER  # of those who wait, who may join before the next step
        self.coming = 0  # requests whose caches are on the link
        self._link_free = 0.0
        self.queue: deque[tuple[Request, float, float]] = deque()
        self._again: list[Request] = []  # admitted, and computed again by the next step
        self.version = 0

    def idle(self) -> bool:
        """Tell whether no step is to be made."""
        return self.batch.size + len(self._again) == 0

    def load(self) -> int:
        """Return the number of requests here, waiting ones too."""
        return self.batch.size + len(self._again) + len(self.queue) + self.coming

    def take_in(self, now: float, seconds: float) -> float:
        """Return when a cache is here that a sender is done with now; the link needs so many seconds of each."""
        self._link_free = max(self._link_free + seconds, now)
        return self._link_free

    def advance(self, now: float) -> list[Request]:
        """Bring the clock to the end of the step that `now` falls in, or to the next finish before."""
        if self.idle():
            self.batch.now = max(self.batch.now, now)
            return []
        return self._run(now) if self.batch.now < now else []

    def next_event(self) -> list[Request]:
        """Run to where `until_event` said."""
        return self._run(inf)

    def until_event(self) -> float:
        """Return where the next event is: the next finish, the end of the room, or of a step after which some join.

        Or of a step that computes.
        """
        if len(self._again) > 0:
            return self.batch.now + self._step()[0]
        return self.batch.until_event(1 if self._joining() > 0 else EVER)

    def settle(self) -> None:
        """Preempt whose next token has no room; where nobody need go, let join who fits."""
        batch, room = self.batch, self.batch.room
        away = 0
        while batch.short() and batch.size > 1:
            request = batch.preempt(batch.newest())
            self.queue.appendleft((request, request.admitted, request.first))
            batch.record.preempted += 1
            away += 1
        if self.idle() or not self._ahead:
            self._planned = EVER
        while away == 0 and self._planned > 0 and len(self.queue) > 0:
            request, admitted, first_token = self.queue[0]
            if not (batch.fits(request) if request.kept > 0 else batch.fits_at_once(request)):
                break
            self.queue.popleft()
            self._planned -= 1
            room.take(request)
            if request.kept > 0:
                self._again.append(request)
            else:
                batch.join(request, admitted, first_token, 1)

    def _run(self, until: float) -> list[Request]:
        self._planned = self._joining()
        if len(self._again) > 0:
            self._compute()
        else:
            self.batch.decode(until, 1 if self._planned > 0 else EVER)
        return self.batch.finished()

    def _joining(self) -> int:
        """Return how many of those who wait have room now, for the step after the next, where it is planned ahead."""
        if not self._ahead:
            return 0
        first: deque[Request] = deque()
        while len(first) < min(len(self.queue), self.batch.room.places):
            first.append(self.queue[len(first)][0])
        return self.batch.holds(first)

    def _compute(self) -> None:
        """Make a step that computes requests again: they have their next token at its end."""
        batch, again = self.batch, self._again
        seconds, tokens = self._step()
        if batch.record.logs:
            batch.record.step(batch.number, batch.now, seconds, batch.size, batch.context, 1.0 * len(again), tokens)
        batch.after(seconds, batch.size)
        for request in again:
            batch.join_computed(request, request.admitted)
        self._again = []

    def _step(self) -> tuple[float, int]:
        """Return how long a step takes that computes requests again, beside the decodes, and its prompt tokens."""
        batch = self.batch
        tokens, pairs = 0, 0.0
        for request in self._again:
            tokens += request.length()
            pairs += request.length() ** 2 / 2
        return batch.cost.seconds(batch.size, batch.context, 1.0 * len(self._again), tokens, pairs), tokens


class PrefillPool:
    """Groups of prefill engines, each with its own link to the decode pool; who comes first is computed first.

    A group that is free takes a prompt, and of those that wait with it as many as have `budget` tokens to compute.
    """

    def __init__(self, system: System, cost: StepTimes, record: Ledger) -> None:
        self._cost = cost
        self._record = record
        self._budget = system.budget
        self._groups = system.groups
        self._load = system.load
        self._transfer = system.transfer
        self._waiting: deque[Request] = deque()
        self._free: list[tuple[float, int]] = []  # since when, which
        self._link_free: list[float] = []
        for number in range(system.prefill_units * self._groups):
            self._free.append((0.0, number))
            self._link_free.append(0.0)

    def arrive(self, request: Request) -> None:
        """Let `request` wait."""
        self._waiting.append(request)

    def ready(self) -> bool:
        """Tell whether a prompt waits and a group is free."""
        return len(self._waiting) > 0 and len(self._free) > 0

    def begin(self, now: float) -> tuple[float, int, list[Request]]:
        """Begin a step of the group that is free for longest; return when it ends, the group, and its prompts."""
        _, group = heappop(self._free)
        prompts: list[Request] = []
        tokens, pairs, cached = 0, 0.0, 0
        while len(self._waiting) > 0:
            request = self._waiting[0]
            fresh = request.n_in - request.cached
            if len(prompts) > 0 and tokens + fresh > self._budget:
                break
            prompts.append(self._waiting.popleft())
            tokens += fresh
            pairs += (request.n_in**2 - request.cached**2) / 2
            cached += request.cached
        beside = self._groups
        seconds = self._cost.seconds(0, 0, 1.0 * beside * len(prompts), beside * tokens, beside * pairs)
        seconds = max(seconds, self._load * cached)
        if self._record.notes:
            self._record.run(seconds, 0.0, 1, 0)
        if self._record.logs:
            self._record.step(group, now, seconds, 0, 0, 1.0 * len(prompts), tokens)
        return now + seconds, group, prompts

    def end(self, now: float, group: int) -> None:
        """Free a group."""
        heappush(self._free, (now, group))

    def send(self, now: float, group: int, request: Request) -> float:
        """Return when a request's KV cache, complete now, is where it decodes."""
        self._link_free[group] = max(self._link_free[group], now) + self._transfer * request.n_in
        return self._link_free[group]


ARRIVE = 0
PREFILLED = 1
JOIN = 2
DECODE = 3
FINISH = 4
TAKEN = 5


class PoolEngines:
    """A pool of prefill units and a pool of decode units, each with its own steps, and the events that concern them.

    A decode unit takes part with the events that concern it; its clock may be ahead by the rest of a step.
    """

    def __init__(self, system: System, prefill: StepTimes, cost: StepTimes, users: Senders, record: Ledger) -> None:
        self.users = users
        self.record = record
        self.prefill = PrefillPool(system, prefill, record)
        self.units: list[DecodeUnit] = []
        first = system.prefill_units * system.groups  # in a log the groups that prefill come before
        for i in range(system.decode_units):
            batch = Batch(cost, record, room_of(system), first + i, system.accepted_per_step)
            self.units.append(DecodeUnit(batch, system.policy.ahead))
        self._incoming = system.incoming
        self._events: list[Any] = []
        self._order = 0

    def run(self, wanted: float) -> float:
        """Serve until `wanted` requests are measured or nobody comes any more; return when that was."""
        now = 0.0
        self._arrive(self.users.first())
        while len(self._events) > 0 and self.record.measured < wanted:
            now, _, kind, what = heappop(self._events)
            if kind == ARRIVE:
                self._arrive(self.users.after_arrival())
                self.prefill.arrive(what)
                self._begin(now)
            elif kind == PREFILLED:
                self._send(now, what)
                self._begin(now)
            elif kind == FINISH:
                request, start = what
                self.record.request(request, start, now, now)
                self._arrive(self.users.after_finish(now))
            elif kind == JOIN:
                unit = self._emptiest()
                unit.coming += 1
                there = unit.take_in(now, self._incoming * what[0].n_in)
                if there > now:
                    self._at(there, TAKEN, (unit, what))
                else:
                    self._take(unit, what, now)
            elif kind == TAKEN:
                unit, request = what
                self._take(unit, request, now)
            else:
                unit, version = what
                if version == unit.version:
                    self._settle(unit, unit.next_event())
        end = now
        for unit in self.units:  # steps without an event
            unit.advance(now)
            end = max(end, unit.batch.now)
        return end

    def _at(self, time: float, kind: int, what: Any) -> None:
        self._order += 1
        heappush(self._events, (time, self._order, kind, what))

    def _arrive(self, pairs: list[tuple[float, Request]]) -> None:
        for ready, request in pairs:
            self._at(ready, ARRIVE, request)

    def _begin(self, now: float) -> None:
        while self.prefill.ready():
            end, group, prompts = self.prefill.begin(now)
            self._at(end, PREFILLED, (group, now, prompts))

    def _send(self, now: float, done: Any) -> None:
        group, start, prompts = done
        self.prefill.end(now, group)
        for request in prompts:
            there = self.prefill.send(now, group, request)
            if request.n_out == 1:
                self._at(now, FINISH, (request, start))
            else:
                self._at(there, JOIN, (request, start, now))

    def _take(self, unit: DecodeUnit, joins: Any, now: float) -> None:
        unit.coming -= 1
        done = unit.advance(now)
        unit.queue.append(joins)
        self._settle(unit, done)

    def _settle(self, unit: DecodeUnit, done: list[Request]) -> None:
        for _ in done:
            self._arrive(self.users.after_finish(unit.batch.now))
        unit.settle()
        unit.version += 1
        if not unit.idle():
            self._at(unit.until_event(), DECODE, (unit, unit.version))

    def _emptiest(self) -> DecodeUnit:
        emptiest, least = self.units[0], inf
        for unit in self.units:
            load = unit.load()
            if load < least:
                emptiest, least = unit, load
        return emptiest


def run_pools(
    system: System, prefill: StepTimes, cost: StepTimes, users: Senders, record: Ledger, wanted: float
) -> float:
    """Serve with the pools of a system, whose prefill units take steps of their own; return when it ended."""
    return PoolEngines(system, prefill, cost, users, record).run(wanted)
