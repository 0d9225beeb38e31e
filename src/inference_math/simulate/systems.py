"""The systems that serve: one engine that does everything, or pools for prefill and for decode."""

from __future__ import annotations

from collections import deque
from heapq import heapify, heappop, heappush
from math import inf

from inference_math.simulate.cost import Cost, seconds_of, waiting_for
from inference_math.simulate.engine import Batch, Engine, Request, Room
from inference_math.simulate.record import Record
from inference_math.simulate.users import Users

__all__ = ["run_engine", "run_pools"]


def run_engine(engine: Engine, users: Users, record: Record, wanted: float) -> float:
    """Serve until `wanted` requests are measured or nobody comes any more; return when that was."""
    coming = [(ready, request.number, request) for ready, request in users.first()]
    heapify(coming)
    batch, waiting = engine.batch, engine.waiting
    while record.measured < wanted:
        while coming and coming[0][0] <= batch.now:
            waiting.append(heappop(coming)[2])
            for ready, request in users.after_arrival():
                heappush(coming, (ready, request.number, request))
        if engine.idle:
            if not coming:
                break
            batch.now = coming[0][0]
            continue
        for _ in engine.advance(coming[0][0] if coming else inf):
            for ready, request in users.after_finish(batch.now):
                if coming or ready > batch.now:
                    heappush(coming, (ready, request.number, request))
                else:
                    waiting.append(request)
    return batch.now


class _DecodeUnit:
    """A decode engine of the pool with its own queue for admission."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.queue: deque[tuple[Request, float, float]] = deque()
        self.version = 0

    @property
    def load(self) -> int:
        """Requests here, waiting ones too."""
        return self.batch.size + len(self.queue)

    def advance(self, now: float) -> list[Request]:
        """Bring the clock to the end of the step that `now` falls in, or to the next finish before."""
        batch = self.batch
        if not batch.size:
            batch.now = max(batch.now, now)
            return []
        return self._decode(now) if batch.now < now else []

    def next_event(self) -> list[Request]:
        """Run to where `until_event` said."""
        return self._decode(inf)

    def admit(self) -> None:
        """Let join who fits."""
        room = self.batch.room
        while self.queue and room.fits(self.queue[0][0]):
            request, admitted, first_token = self.queue.popleft()
            room.take(request)
            self.batch.join(request, admitted, first_token)

    def _decode(self, until: float) -> list[Request]:
        self.batch.decode(until)
        return self.batch.finished()


class _PrefillPool:
    """Prefill engines that take one prompt after the other, each with its own link to the decode pool."""

    def __init__(self, cost: Cost, record: Record, units: int, load: float, transfer: float) -> None:
        self._cost = cost
        self._record = record
        self._free = [(0.0, number) for number in range(units)]
        self._link_free = [0.0] * units
        self._load = load
        self._transfer = transfer

    def serve(self, request: Request, ready: float) -> tuple[float, float, float]:
        """Return when the prompt is started, when it has its first token, when its KV cache has arrived."""
        free, unit = heappop(self._free)
        start = max(ready, free)
        tokens = request.n_in - request.cached
        pairs = (request.n_in**2 - request.cached**2) / 2
        seconds = seconds_of(self._cost, 0, 0, 1.0, tokens, pairs)
        if load := self._load * request.cached:
            seconds = waiting_for(load, seconds, self._cost, 0, 0)
        end = start + seconds
        heappush(self._free, (end, unit))
        self._record.run(seconds, 0.0, 1, 0)
        if self._record.logs:
            self._record.step(unit, start, seconds, 0, 0, 1.0, tokens)
        self._link_free[unit] = max(self._link_free[unit], end) + self._transfer * request.n_in
        return start, end, self._link_free[unit]


_ARRIVE, _JOIN, _DECODE, _FINISH = range(4)


def run_pools(
    cost: Cost,
    users: Users,
    record: Record,
    wanted: float,
    *,
    prefill_units: int,
    decode_units: int,
    transfer: float,
    max_batch: float,
    kv_capacity: float,
    grows: bool,
    blocking_load: float,
) -> float:
    """Serve with a pool of prefill units and a pool of decode units; return when it ended.

    A decode unit takes part with the events that concern it; its clock may be ahead by the rest of a step.
    """
    prefill = _PrefillPool(cost, record, prefill_units, blocking_load, transfer)
    units = [
        _DecodeUnit(Batch(cost, record, Room(max_batch, kv_capacity, grows), prefill_units + i))
        for i in range(decode_units)
    ]
    events: list[tuple[float, int, int, tuple]] = []  # type: ignore[type-arg]
    order = 0

    def at(time: float, kind: int, *what: object) -> None:
        nonlocal order
        order += 1
        heappush(events, (time, order, kind, what))

    def arrive(pairs: list[tuple[float, Request]]) -> None:
        for ready, request in pairs:
            at(ready, _ARRIVE, request)

    def settle(unit: _DecodeUnit, done: list[Request]) -> None:
        for _ in done:
            arrive(users.after_finish(unit.batch.now))
        unit.admit()
        unit.version += 1
        if unit.batch.size:
            at(unit.batch.until_event(), _DECODE, unit, unit.version)

    now = 0.0
    arrive(users.first())
    while events and record.measured < wanted:
        now, _, kind, what = heappop(events)
        if kind == _ARRIVE:
            (request,) = what
            arrive(users.after_arrival())
            start, first_token, there = prefill.serve(request, now)
            if request.n_out == 1:
                at(first_token, _FINISH, request, start)
            else:
                at(there, _JOIN, request, start, first_token)
        elif kind == _FINISH:
            request, start = what
            record.request(request.arrival, start, now, now, request.n_in, 1, request.cached)
            arrive(users.after_finish(now))
        elif kind == _JOIN:
            unit = min(units, key=lambda u: u.load)
            done = unit.advance(now)
            unit.queue.append(what)
            settle(unit, done)
        else:
            unit, version = what
            if version == unit.version:
                settle(unit, unit.next_event())
    for unit in units:  # steps without an event
        unit.advance(now)
    return max([now, *(unit.batch.now for unit in units)])
