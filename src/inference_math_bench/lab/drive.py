"""Users and bare steps: what is asked of an engine, and what is seen of each request and each step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from inference_math.simulate.record import GapHistogram, Run
from inference_math.workload import Source
from inference_math_bench.lab.engines import Engine, Prompt, Step

__all__ = [
    "Ask",
    "Loop",
    "Observed",
    "Request",
    "bare_steps",
    "benchmark",
    "closed_loop",
    "drawn",
    "of_context",
    "open_loop",
    "under_way",
]

Ask = Callable[[int, int], Prompt]
"""Makes the prompt of a request from its prompt tokens and those of them that are cached."""


_CONTEXTS = 1000  # families of prompts whose KV caches are contexts to decode with: the engine keeps them in its cache


def plain_prompt(n_in: int, cached: int) -> Prompt:
    """Return a prompt of random tokens."""
    return Prompt(n_in)


def of_context(user: int, tokens: int) -> Prompt:
    """Return a prompt that is a context to decode with: nearly all of it comes from the engine's cache."""
    return Prompt(tokens, _CONTEXTS + user, tokens)


@dataclass
class Request:
    """What was seen of one request: seconds by the engine's clock; NaN for what has not been."""

    arrival: float
    n_in: int
    n_out: int
    cached: int = 0
    first_token: float = float("nan")
    finished: float = float("nan")
    sent: float = float("nan")  # when the engine got it, at the end of the step in which it came
    gaps: list[float] = field(default_factory=list)
    under_way: bool = False  # began in the middle of an answer: no TTFT
    _last: float = float("nan")

    @property
    def begun(self) -> bool:
        """Whether it has had a token."""
        return self.first_token == self.first_token

    def token(self, now: float, last: bool, measured: bool) -> None:
        """Note a token that came at `now`."""
        if self._last == self._last and measured:
            self.gaps.append(now - self._last)
        if not self.begun:
            self.first_token = now
        self._last = now
        if last:
            self.finished = now


@dataclass
class Observed:
    """The measured part of a trial: its steps and requests, from `start` to `end` by the engine's clock."""

    steps: list[Step]
    requests: list[Request]
    start: float
    end: float

    @property
    def log(self) -> pd.DataFrame:
        """One row per step: the fields of `Step` but what was emitted."""
        return pd.DataFrame([step[:-1] for step in self.steps], columns=list(Step._fields[:-1]))

    def run(self) -> Run:
        """Return the same as a simulator's `Run`: requests that finished, gaps, steps.

        `latency` is that of the requests that began and ended within the trial; short trials see few long ones.
        """
        whole = [r for r in self.requests if not r.under_way and r.finished == r.finished]
        columns = ("arrival", "first_token", "finished", "n_in", "n_out", "cached")
        frame = pd.DataFrame([[getattr(r, name) for name in columns] for r in whole], columns=list(columns))
        frame.insert(1, "admitted", np.nan)
        frame["ttft"] = frame.first_token - frame.arrival
        more = frame.n_out - 1
        frame["tpot"] = (frame.finished - frame.first_token) / more.where(more > 0)
        frame["latency"] = frame.finished - frame.arrival
        histogram, gaps = GapHistogram(), self.gaps
        histogram.add(gaps, np.ones(gaps.size))
        log = self.log.assign(engine=0)
        return Run(frame, histogram, self.end - self.start, len(self.steps), gaps, log)

    @property
    def gaps(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """Every measured time between two tokens of a request, in seconds."""
        return np.array([gap for r in self.requests for gap in r.gaps], dtype=np.float64)

    @property
    def ttfts(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """Time to first token of every request that began within the trial, in seconds."""
        found = [r.first_token - r.arrival for r in self.requests if not r.under_way]
        return np.array([seconds for seconds in found if seconds == seconds], dtype=np.float64)


class Loop:
    """An engine in use: steps it and keeps the books of its requests."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.requests: dict[int, Request] = {}
        self.steps: list[Step] = []
        self.measured = False
        self.start = float("nan")
        self._open = 0

    def send(self, prompt: Prompt, n_out: int, arrival: float, under_way: bool = False, cached: int = 0) -> int:
        number = self.engine.submit(prompt, n_out)
        self._open += 1
        now = self.engine.now()
        self.requests[number] = Request(arrival, prompt.n_in, n_out, cached, sent=now, under_way=under_way)
        return number

    @property
    def waiting(self) -> bool:
        """Whether a request has not ended."""
        return self._open > 0

    def begin(self) -> None:
        """Measure from here on; who is under way has no TTFT in what is measured."""
        self.measured, self.start = True, self.engine.now()
        for request in self.requests.values():
            request.under_way = True

    def step(self) -> list[int]:
        """Run a step; return the requests that it finished."""
        step = self.engine.step()
        if step is None:
            return []
        now = step.start + step.seconds
        if self.measured:
            self.steps.append(step)
        done = []
        for number, last in step.emitted:
            self.requests[number].token(now, last, self.measured)
            if last:
                self._open -= 1
                done.append(number)
                if not self.measured:
                    del self.requests[number]
        return done

    def observed(self) -> Observed:
        found = Observed(self.steps, list(self.requests.values()), self.start, self.engine.now())
        self.engine.clear()
        return found


class Watched(NamedTuple):
    """What of a closed loop is measured: seconds or steps, after a warm-up in seconds once all contexts are there.

    From then on the engine has this budget, None for its own, and this cadence.
    """

    seconds: float = inf
    steps: float = inf
    warmup: float = 0.0
    budget: int | None = None
    cadence: int = 1


def closed_loop(
    engine: Engine,
    source: Source,
    users: int,
    *,
    watched: Watched,
    rng: np.random.Generator,
    ask: Ask = plain_prompt,
    together: bool = False,
) -> Observed:
    """Keep `users` busy as long as they are `watched`: each sends a request as soon as the last one has ended.

    They begin somewhere in the middle of an answer, as if the system had run for ever: a long answer is met more often
    than a short one, and anywhere in it. The steps that compute their contexts are not measured. `together`: all begin
    with a new request at once.
    """
    loop, coming = Loop(engine), drawn(source, rng)
    for user in range(users):
        n_in, n_out, cached, done = (*next(coming), 0) if together else under_way(source, rng)
        prompt = of_context(user, n_in + done) if done else ask(n_in, cached)
        loop.send(prompt, n_out - done, engine.now(), under_way=done > 0, cached=cached)
    first = set(loop.requests)
    while any(number in loop.requests and not loop.requests[number].begun for number in first):
        for _ in loop.step():
            _next(loop, coming, ask)
    before, engine.budget = engine.budget, engine.budget if watched.budget is None else watched.budget
    engine.cadence = watched.cadence
    ready = engine.now() + watched.warmup
    while engine.now() < ready:
        for _ in loop.step():
            _next(loop, coming, ask)
    loop.begin()
    while engine.now() < loop.start + watched.seconds and len(loop.steps) < watched.steps:
        for _ in loop.step():
            _next(loop, coming, ask)
    engine.budget, engine.cadence = before, 1
    return loop.observed()


def benchmark(
    engine: Engine,
    source: Source,
    users: int,
    rounds: int,
    *,
    rng: np.random.Generator,
    ask: Ask = plain_prompt,
    budget: int | None = None,
) -> tuple[Observed, NDArray[np.int64]]:
    """Let `users` begin together, from a cold start, and send `rounds` requests each; everything counts.

    Phases are the engine's own: nothing is drawn from a law but lengths. Returns also, for each request in the order in
    which they were sent, how many its user had before. A prompt's clock starts when its user sends it, so that the time
    in which the others are handed in counts.
    """
    loop, coming, waves = Loop(engine), drawn(source, rng), {}
    before, engine.budget = engine.budget, engine.budget if budget is None else budget
    loop.begin()
    for _ in range(users):
        waves[_next(loop, coming, ask, loop.start)] = 0
    while loop.waiting:
        for number in loop.step():
            if waves[number] + 1 < rounds:
                waves[_next(loop, coming, ask)] = waves[number] + 1
    engine.budget = before
    return loop.observed(), np.array(list(waves.values()))


def open_loop(
    engine: Engine,
    source: Source,
    arrivals: Iterator[float],
    *,
    seconds: float,
    warmup: float,
    rng: np.random.Generator,
    ask: Ask = plain_prompt,
) -> Observed:
    """Let requests come at the times of `arrivals`, from an empty engine on; `warmup` seconds are not measured.

    Requests that come within the measured part are served to their end.
    """
    loop, coming, begin = Loop(engine), drawn(source, rng), engine.now()
    following = begin + next(arrivals)
    while True:
        while following <= engine.now() and following < begin + warmup + seconds:
            if not loop.measured and following >= begin + warmup:
                loop.begin()
            _next(loop, coming, ask, following)
            following = begin + next(arrivals)
        if not loop.waiting and following >= begin + warmup + seconds:
            return loop.observed()
        if not loop.waiting:
            engine.wait(following)
        else:
            loop.step()


def bare_steps(
    engine: Engine, *, decodes: int, context: int, prompts: list[Prompt], repeats: int
) -> list[tuple[Step, Step]]:
    """Return pairs of steps: one of `decodes` requests alone, one with `prompts` beside them.

    Each of the decodes has `context` tokens at the start, from the engine's cache if it has one, and gains one a step.
    Without decodes the first of a pair is the second: the prompts alone. A step with prompts begins when they are sent,
    as it does for those who wait.
    """
    for user in range(decodes):
        engine.submit(of_context(user, context), 2 * repeats + 8)
    if decodes:
        _until(engine, lambda step: step.decodes == decodes)
    pairs = []
    for _ in range(repeats):
        alone = _until(engine, lambda step: step.tokens == 0) if decodes else None
        sent = engine.now()
        for prompt in prompts:
            engine.submit(prompt, 1)
        beside = _until(engine, lambda step: bool(prompts) is (step.tokens > 0))
        beside = beside._replace(start=sent, seconds=beside.seconds + beside.start - sent)
        pairs.append((alone or beside, beside))
    engine.clear()
    return pairs


def _until(engine: Engine, wanted: Callable[[Step], bool]) -> Step:
    """Step until one is as wanted; return it."""
    for _ in range(1000):
        step = engine.step()
        if step is None:
            break
        if wanted(step):
            return step
    raise RuntimeError("the engine did not run the step that was asked for; is its batch too small?")


def _next(loop: Loop, coming: Iterator[tuple[int, int, int]], ask: Ask, arrival: float | None = None) -> int:
    """Send the next request, which came now or at `arrival`; return its number."""
    n_in, n_out, cached = next(coming)
    return loop.send(ask(n_in, cached), n_out, loop.engine.now() if arrival is None else arrival, cached=cached)


def drawn(source: Source, rng: np.random.Generator) -> Iterator[tuple[int, int, int]]:
    while True:
        yield from zip(*(column.tolist() for column in source.draw(256, rng)), strict=True)


def under_way(source: Source, rng: np.random.Generator) -> tuple[int, int, int, int]:
    """Return a request met at a random moment, and the tokens of its answer that are there."""
    requests = source.draw(4096, rng)
    row = int(rng.choice(requests.n_out.size, p=requests.n_out / requests.n_out.sum()))
    n_in, n_out, cached = (int(column[row]) for column in requests)
    return n_in, n_out, cached, int(rng.integers(n_out))
