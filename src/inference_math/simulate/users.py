"""Who sends requests, and when: a fixed number of users, or a stream of arrivals."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush

import numpy as np

from inference_math.simulate.engine import Request
from inference_math.workload import Requests, Source

__all__ = ["Users", "arrivals", "drawn", "lengths"]

_BLOCK = 4096  # requests drawn at once


def drawn(source: Source, count: int, rng: np.random.Generator) -> Requests:
    """Return requests drawn from `source`, which may be anybody's, after a look at them."""
    n_in, n_out, cached = (np.asarray(column) for column in source.draw(count, rng))
    whole = all(column.dtype.kind in "iu" for column in (n_in, n_out, cached))
    if not (whole and n_in.size and (n_out >= 1).all() and (cached >= 0).all() and (cached < n_in).all()):
        raise ValueError("source must draw requests of whole numbers n_in >= 1, n_out >= 1 and 0 <= cached < n_in")
    return Requests(n_in, n_out, cached)


def lengths(source: Source, rng: np.random.Generator) -> Iterator[tuple[int, int, int]]:
    """Yield n_in, n_out and cached tokens of one request after the other, without end."""
    while True:
        yield from zip(*(column.tolist() for column in drawn(source, _BLOCK, rng)), strict=True)


def arrivals(rate: float, rng: np.random.Generator, cv: float = 1.0) -> Iterator[float]:
    """Yield arrival times in seconds, `rate` a second on average, without end.

    The times between arrivals are independent and gamma-distributed with the coefficient of variation `cv`: 1 is a
    Poisson process, more comes in bursts, 0 like a clock.
    """
    now = 0.0
    while True:
        if cv == 1:
            between = rng.exponential(1 / rate, _BLOCK)
        else:
            between = rng.gamma(cv**-2, cv**2 / rate, _BLOCK) if cv else np.full(_BLOCK, 1 / rate)
        times = now + np.cumsum(between)
        now = float(times[-1])
        yield from times.tolist()


class Users:
    """Requests on their way to the system, sent by users or read from a store before they arrive.

    Without `arrivals`, each of `concurrency` users sends the next request as soon as the last has finished.
    `load` is the time that the store's one pipe takes for a stored token: requests wait for it one after the
    other, the system goes on meanwhile. `front` is what each request takes on its way, before the system has it. No
    user sends a request earlier than `since` says: a client that sends at a rate, to at most so many at once.
    """

    def __init__(
        self,
        sizes: Iterator[tuple[int, int, int]],
        arrivals: Iterator[float] | None,
        concurrency: int,
        load: float,
        kv_capacity: float,
        front: float = 0.0,
        since: Iterator[float] | None = None,
    ) -> None:
        self._sizes = sizes
        self._streams = arrivals is not None
        self._arrivals = arrivals or iter(())
        self._coming = next(self._arrivals, None)
        self._loading: list[tuple[float, int, Request]] = []  # sent in a stream, by when they are ready
        self._concurrency = concurrency
        self._load = load
        self._front = front
        self._since = since
        self._kv_capacity = kv_capacity
        self._pipe_free = 0.0
        self._number = 0

    def first(self) -> list[tuple[float, Request]]:
        """Return the requests of the start, each with the time from which it can be served."""
        if self._streams:
            return self.after_arrival()
        return [pair for _ in range(self._concurrency) for pair in self._send(0.0)]

    def after_arrival(self) -> list[tuple[float, Request]]:
        """Return who comes after an arrival: the next of a stream to be ready, nobody of a fixed number of users."""
        loading = self._loading
        # Who has nothing to load overtakes those who wait for the store.
        while self._coming is not None and not (loading and loading[0][0] <= self._coming):
            for ready, request in self._send(self._coming):
                heappush(loading, (ready, request.number, request))
            self._coming = next(self._arrivals, None)
        if not loading:
            return []
        ready, _, request = heappop(loading)
        return [(ready, request)]

    def after_finish(self, now: float) -> list[tuple[float, Request]]:
        """Return who comes when a request has finished at `now`: its user again, nobody of a stream."""
        return [] if self._streams else self._send(now)

    def _send(self, now: float) -> list[tuple[float, Request]]:
        sizes = next(self._sizes, None)
        if sizes is None:
            return []
        n_in, n_out, cached = sizes
        if n_in + n_out > self._kv_capacity:
            raise ValueError(
                f"kv_capacity must hold the longest request, {n_in + n_out} tokens, not {self._kv_capacity:g}"
            )
        self._number += 1
        if self._since is not None:
            now = max(now, next(self._since))
        ready = now + self._front
        if self._load and cached:
            self._pipe_free = ready = max(self._pipe_free, ready) + self._load * cached
        return [(ready, Request(self._number, now, n_in, n_out, cached))]
