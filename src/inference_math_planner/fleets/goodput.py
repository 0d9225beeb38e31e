"""The share of requests that keep both limits: a simulation that notes nothing else, also run by the planner's page."""

from __future__ import annotations

from math import ceil, floor, inf, log1p

from inference_math.simulate.engine import Request
from inference_math.simulate.systems import engine_of, run_balanced, run_engine, run_pools
from inference_math.simulate.types import StepTimes, System


class Client:
    """Requests of a list, none of which is sent before its time.

    So many `users` send the next one as soon as they are free; 0: each is sent at its time. No request is served in the
    first `front` seconds.
    """

    def __init__(self, requests: list[Request], users: int, front: float) -> None:
        self._requests = requests
        self._users = users
        self._front = front
        self._next = 0

    def first(self) -> list[tuple[float, Request]]:
        """Return the first request, or that of each user."""
        arrivals: list[tuple[float, Request]] = []
        for _ in range(max(self._users, 1)):
            arrivals.extend(self._sent(0.0))
        return arrivals

    def after_arrival(self) -> list[tuple[float, Request]]:
        """Return the next request, if there is one; nobody where users wait for their answers."""
        return [] if self._users > 0 else self._sent(0.0)

    def after_finish(self, now: float) -> list[tuple[float, Request]]:
        """Return the next request, of the user who is free now; nobody where they are sent at their times."""
        return self._sent(now) if self._users > 0 else []

    def _sent(self, now: float) -> list[tuple[float, Request]]:
        if self._next >= len(self._requests):
            return []
        request = self._requests[self._next]
        self._next += 1
        request.arrival = max(now, request.arrival)
        return [(request.arrival + self._front, request)]


class Tally:
    """Counts which of the requests from number `since` to before `until` keep both limits, and adds up what they see.

    No step takes `front` seconds of a TTFT. Where the `share` of them that must is missed for sure, it asks for no more
    if it is `hasty`. A share of 0: the means must keep the limits.
    """

    def __init__(
        self, ttft: float, tpot: float, front: float, since: int, until: int, share: float, hasty: bool
    ) -> None:
        self.logs = False
        self.notes = False
        self.measured = 0
        self.preempted = 0
        self._ttft = ttft
        self._tpot = tpot
        self._front = front
        self._since = since
        self._until = until
        self.wanted = until - since
        self._share = share
        self._spare = (1 - share) * self.wanted + 1e-9 if hasty and share > 0 else until
        self._good = 0
        self._missed = 0
        self._firsts = 0.0
        self._gaps = 0.0
        self._gapped = 0

    def run(self, first: float, rise: float, steps: int, decodes: int) -> None:
        """Note no steps."""

    def gap(self, seconds: float) -> None:
        """Note no gaps."""

    def step(
        self, engine: int, start: float, seconds: float, decodes: int, context: float, prefills: float, tokens: int
    ) -> None:
        """Note no step."""

    def request(self, request: Request, admitted: float, first_token: float, finished: float) -> None:
        """Count a request whose TTFT and whose mean TPOT are within the limits."""
        if request.number < self._since or request.number >= self._until:
            return
        self.measured += 1
        more = request.n_out - 1
        first = self._front + first_token - request.arrival
        self._firsts += first
        good = first <= self._ttft
        if more > 0:
            gap = (finished - first_token) / more
            self._gaps += gap
            self._gapped += 1
            good = good and gap <= self._tpot
        if good:
            self._good += 1
        else:
            self._missed += 1
            if self._missed > self._spare:
                self.measured = self.wanted

    def told(self) -> list[float]:
        """Return (score, mean TTFT, mean TPOT): a score of 1 just keeps the promise."""
        counted = max(self._good + self._missed, 1)
        first, gap = self._firsts / counted, self._gaps / max(self._gapped, 1)
        if self._share > 0:
            return [self._good / self.wanted / self._share, first, gap]
        return [min(self._ttft / max(first, 1e-12), self._tpot / max(gap, 1e-12)), first, gap]


def geometric_rows(chances: list[float], n_in: int, n_out: float, stored: float) -> list[tuple[int, int, int]]:
    """Return prompt, output and stored tokens of requests with equal prompts and geometric answers.

    The chances are numbers below 1 that tell how long an answer is. The tokens `stored` of a prompt are rounded up as
    often as keeps their mean.
    """
    ends = log1p(-1 / n_out) if n_out > 1 else -inf
    rows: list[tuple[int, int, int]] = []
    for i in range(len(chances)):
        cached = floor((i + 1) * stored + 1e-6) - floor(i * stored + 1e-6)
        rows.append((n_in, max(ceil(log1p(-chances[i]) / ends), 1), cached))
    return rows


def rows_like(chances: list[float], rows: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Return one of the `rows` of prompt, output and stored tokens for each of some numbers below 1."""
    return [rows[floor(chance * len(rows))] for chance in chances]


def requests_at(gaps: list[float], rows: list[tuple[int, int, int]], rate: float) -> list[Request]:
    """Return requests of some rows, `rate` a second, by times between arrivals of mean 1."""
    requests: list[Request] = []
    now = 0.0
    for i in range(len(gaps)):
        now += gaps[i] / rate
        n_in, n_out, cached = rows[i]
        requests.append(Request(i, now, n_in, n_out, cached))
    return requests


def stored_of(n_in: int, alpha: float) -> int:
    """Return the stored tokens of a prompt, of which the last is always computed."""
    return min(floor(alpha * n_in + 0.5), n_in - 1)


def goodput(system: System, prefill: StepTimes, cost: StepTimes, requests: list[Request], tally: Tally) -> list[float]:
    """Return (score, mean TTFT, mean TPOT) of the requests that a tally counts, of those that a system serves.

    `prefill` is what steps of prefill units take, of pools.

    The score is the share of them that keeps both limits over the share that must; for a share of 0, the smaller of
    limit over mean. Those that come later keep the system busy until the last is done. A hasty simulation ends when
    the score cannot be 1 any more; what it returns then is a bound.
    """
    users = Client(requests, 0, 0.0)
    if system.prefill_units > 0:
        run_pools(system, prefill, cost, users, tally, tally.wanted)
    elif system.engines > 1:
        run_balanced(system, cost, users, tally, tally.wanted)
    else:
        run_engine(engine_of(system, cost, tally), users, tally, tally.wanted)
    return tally.told()
