"""What the laboratory asks of an engine, and one that only plays: a cost of a step on a clock of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from inference_math.simulate import Cost

__all__ = ["ALL_AT_ONCE", "Emitted", "Engine", "Played", "Prompt", "Step", "Stored"]

_TOGETHER = 5  # blocks that come from host memory in a step of one that only plays
ALL_AT_ONCE = 8192  # prompt tokens of a step: so many that no prompt here is cut


class Stored(NamedTuple):
    """How the first `tokens` of a prompt come from the store: at which bytes/s, layer by layer or everything first."""

    tokens: int
    bandwidth: float
    layerwise: bool = True


@dataclass(frozen=True)
class Prompt:
    """A prompt of `n_in` tokens whose first `shared` are those of every prompt of the same `family`.

    The others are random. `stored` tells what of it is loaded from the store, `save` whether its KV cache goes there.
    """

    n_in: int
    family: int | None = None
    shared: int = 0
    stored: Stored | None = None
    save: bool = False


class Emitted(NamedTuple):
    """A token that request `number` got, and whether it was its last."""

    number: int
    last: bool


class Step(NamedTuple):
    """One step of an engine: times in seconds by its clock, counts of what was in it.

    `model` is the part of `seconds` that the model took, its sampling included. `context` is the number of tokens
    whose KV cache the decodes read, `prefills` the prompts computed, a chunk as its share, `tokens` their tokens,
    `cached` those that were not computed, `pairs` the (token, earlier token) pairs, `queue` the requests that wait.
    """

    start: float
    seconds: float
    model: float
    decodes: int
    context: int
    prefills: float
    tokens: int
    cached: int
    pairs: float
    queue: int
    emitted: tuple[Emitted, ...]


class Engine(Protocol):
    """An engine that is driven step by step; a step computes what is waiting, whole prompts up to `budget` tokens.

    While anybody decodes, only every `cadence`-th step begins prompts.
    """

    budget: int
    cadence: int

    @property
    def description(self) -> Mapping[str, Any]:
        """Name, version and flags."""

    def now(self) -> float:
        """Return the clock, in seconds."""

    def wait(self, until: float) -> None:
        """Let the clock get to `until`."""

    def submit(self, prompt: Prompt, n_out: int) -> int:
        """Queue a request; return its number."""

    def step(self) -> Step | None:
        """Run one step, if there is anything to do."""

    def clear(self) -> None:
        """Drop all requests."""

    @property
    def link(self) -> float:
        """Bytes/s from host memory."""

    def forget(self) -> None:
        """Drop the engine's own cache; what host memory keeps stays there."""


@dataclass
class _Request:
    prompt: Prompt
    n_out: int
    computed: int  # prompt tokens done
    cached: int
    out: int = 0


@dataclass
class Played:
    """An engine that plays `cost`: the same scheduler as vLLM's, decodes first, then prompts up to the budget.

    `noise` is the standard deviation of the logarithm of a step's time, `seed` that of its random numbers. What is
    `shared` is found in the cache from a family's second prompt on, in whole blocks. A cached token has `kv_bytes`.
    """

    cost: Cost
    noise: float = 0.0
    seed: int = 0
    kv_bytes: float = 6144.0
    layers: int = 6
    block: int = 32
    budget: int = ALL_AT_ONCE
    cadence: int = 1
    link: float = 1e9
    description: Mapping[str, Any] = field(default_factory=lambda: {"engine": "played"})

    def __post_init__(self) -> None:
        import numpy as np

        self._rng = np.random.default_rng(self.seed)
        self._clock, self._number, self._steps = 0.0, 0, 0
        self._waiting: dict[int, _Request] = {}
        self._running: dict[int, _Request] = {}
        self._families: set[int] = set()
        self._kept: set[int] = set()  # in host memory alone
        self._loaded_of: dict[int, int] = {}  # by request, blocks that came from there

    def now(self) -> float:
        """Return the clock, in seconds."""
        return self._clock

    def wait(self, until: float) -> None:
        """Let the clock get to `until`."""
        self._clock = max(self._clock, until)

    def submit(self, prompt: Prompt, n_out: int) -> int:
        """Queue a request; return its number."""
        self._number += 1
        self._waiting[self._number] = _Request(prompt, n_out, 0, 0)
        return self._number

    def clear(self) -> None:
        """Drop all requests."""
        self._waiting.clear()
        self._running.clear()

    def forget(self) -> None:
        """Drop the engine's own cache; what host memory keeps stays there."""
        self._kept |= self._families
        self._families.clear()

    def step(self) -> Step | None:
        """Run one step, if there is anything to do."""
        if not self._waiting and not self._running:
            return None
        if (loading := self._from_host()) is not None:
            return loading
        left, load, parts = self.budget, 0.0, []
        for number, request in self._running.items():
            new = min(left, max(1, request.prompt.n_in - request.computed))
            parts.append((number, request, new))
            left -= new
        held = self._running and self._steps % self.cadence
        for number in [] if held else list(self._waiting):
            if left < 1:
                break
            request = self._waiting.pop(number)
            load = max(load, self._admit(request))
            new = min(left, request.prompt.n_in - request.computed)
            self._running[number] = request
            parts.append((number, request, new))
            left -= new
        return self._run([part for part in parts if part[2] > 0], load)

    def _from_host(self) -> Step | None:
        """Return a step that computes nothing while a part of a waiting request's blocks comes; None where all came."""
        for number, request in self._waiting.items():
            prompt = request.prompt
            if prompt.family not in self._kept or prompt.family in self._families:
                continue
            blocks = self._shared(prompt) // self.block
            if (there := self._loaded_of.get(number, 0)) < blocks:
                part = min(_TOGETHER, blocks - there)
                self._loaded_of[number] = there + part
                start, seconds = self._clock, part * self.block * self.kv_bytes / self.link
                self._clock += seconds
                return Step(start, seconds, 0.0, 0, 0, 0.0, 0, 0, 0.0, len(self._waiting), ())
        return None

    def _shared(self, prompt: Prompt) -> int:
        """Return the tokens of whole blocks that a prompt has in common with its family."""
        return min(prompt.shared, prompt.n_in - 1) // self.block * self.block

    def _admit(self, request: _Request) -> float:
        """Find what is cached; return the seconds that the store needs for it."""
        prompt, seconds = request.prompt, 0.0
        if prompt.family in self._families | self._kept:
            request.cached = self._shared(prompt)
        if prompt.family is not None:
            self._families.add(prompt.family)
        if prompt.stored is not None:
            request.cached = min(prompt.stored.tokens, prompt.n_in - 1)
            seconds = request.cached * self.kv_bytes / prompt.stored.bandwidth
        request.computed = request.cached
        return seconds

    def _run(self, parts: list[tuple[int, _Request, int]], load: float) -> Step:
        decodes = [request for _, request, _ in parts if request.out]
        fresh = [(request, new) for _, request, new in parts if not request.out]
        context = sum(request.prompt.n_in + request.out for request in decodes)
        prefills = sum(new / (request.prompt.n_in - request.cached) for request, new in fresh)
        tokens = sum(new for _, new in fresh)
        pairs = sum(((r.computed + new) ** 2 - r.computed**2) / 2 for r, new in fresh)
        cached = sum(r.cached for r, _ in fresh if r.computed == r.cached)
        seconds = self._loaded(self.cost(len(decodes), context, prefills, tokens, pairs), load, fresh)
        seconds *= float(self._rng.lognormal(-(self.noise**2) / 2, self.noise)) if self.noise else 1.0
        start, self._clock, self._steps = self._clock, self._clock + seconds, self._steps + 1
        emitted = []
        for number, request, new in parts:
            request.computed += 0 if request.out else new
            if request.computed >= request.prompt.n_in:
                request.out += 1
                emitted.append(Emitted(number, request.out == request.n_out))
                if request.out == request.n_out:
                    del self._running[number]
        queue = len(self._waiting)
        return Step(
            start, seconds, seconds, len(decodes), context, prefills, tokens, cached, pairs, queue, tuple(emitted)
        )

    def _loaded(self, seconds: float, load: float, fresh: list[tuple[_Request, int]]) -> float:
        """Return the seconds of a step that waits for a `load`: a pipeline of layers, or everything first."""
        layerwise = all(request.prompt.stored is None or request.prompt.stored.layerwise for request, _ in fresh)
        if not layerwise:
            return load + seconds
        return max(load, seconds) + min(load, seconds) / self.layers
