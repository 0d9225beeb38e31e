"""Who is computed when: the schedulers, and how stored KV caches are loaded."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import inf

from inference_math.evidence.checks import AT_LEAST_ONE, AT_LEAST_ZERO, as_bool, as_number, as_whole
from inference_math.simulate.cost import Cost
from inference_math.simulate.types import Admission, System

__all__ = ["Aggregated", "Chunked", "Disaggregated", "Habits", "Reuse", "Scheduler", "admission_of", "system_of"]


@dataclass(frozen=True)
class Aggregated:
    """One engine, aggregated: a request that is admitted has its whole prompt computed in the next step.

    `max_batch` requests at most; `kv_capacity` tokens, of which a request reserves n_in + n_out on admission. With
    `grows` it takes its prompt and one token, and the others as they come (vLLM): where they have no room, who came
    last is preempted, and computed again. The run tells how often.
    """

    max_batch: float = inf
    kv_capacity: float = inf
    grows: bool = False

    def __post_init__(self) -> None:
        _check_limits(self)


@dataclass(frozen=True)
class Habits:
    """How an engine lets prompts into its steps.

    Parameters
    ----------
    whole
        A prompt is never cut: of those that wait the first goes into a step however long it is, and others as far as
        they fit beside it (TensorRT-LLM without chunked context).
    alone
        A step computes prompts or decodes, and prompts go first (SGLang without mixed chunks): decodes stand still.
    wait_steps, wait_tokens
        Prompts wait beside decodes for so many steps, or until the step would have so many tokens (TensorRT-LLM's
        ``batch_wait_timeout_iters``, and ``batch_wait_max_tokens_ratio`` of its token budget).
    looks
        The engine looks who waits after each step with prompts, and else after so many steps (SGLang's
        ``scheduler-recv-interval``, which concerns those who have just come).
    every
        Prompts, and the rest of those that were cut, are computed at every so many steps alone while anybody decodes:
        the cadence of vLLM's ``prefill-schedule-interval``. SGLang's ``prefill-decode-interval`` is one less.
    guard
        Whether the next step goes on with prompts where one did not take all that waited.
    since
        Whether steps are counted from the last one with prompts (SGLang), not from the engine's first (vLLM).
    ahead
        Whether a step is planned while the one before it runs (vLLM's async scheduling): it has nobody who came since
        that one began.
    balanced
        Prompts wait beside decodes until each rank has one, at longest to the end of a round of `wait_steps` steps, of
        which one begins with each step that has prompts (TensorRT-LLM's ``enable_balance`` and ``timeout_iters`` of
        attention data parallelism).

    Raises
    ------
    TypeError, ValueError
        For a `whole`, `alone`, `guard`, `since`, `ahead` or `balanced` that is no bool, for counts that are none.

    Examples
    --------
    >>> from inference_math import simulate
    >>> from inference_math.workload import Workload
    >>> cost = simulate.StepCost(t_w=0.01, prompt=0.05)
    >>> work = Workload(1000, 200, lengths="geometric")
    >>> for habits in (simulate.Habits(), simulate.Habits(wait_steps=20, wait_tokens=8000)):
    ...     chunks = simulate.Chunked(8192, habits=habits)
    ...     run = simulate.benchmark(work, cost, concurrency=4, requests=400, scheduler=chunks)
    ...     print(f"{run.requests.ttft.mean():.2f} s")
    0.06 s
    0.26 s
    """

    whole: bool = False
    alone: bool = False
    wait_steps: int = 0
    wait_tokens: float = inf
    looks: int = 1
    every: int = 1
    guard: bool = True
    since: bool = False
    ahead: bool = False
    balanced: bool = False

    def __post_init__(self) -> None:
        for name in ("whole", "alone", "guard", "since", "ahead", "balanced"):
            as_bool(name, getattr(self, name))
        as_whole("wait_steps", self.wait_steps, 0)
        as_whole("looks", self.looks)
        as_whole("every", self.every)
        if self.wait_tokens != inf:
            as_number("wait_tokens", self.wait_tokens, AT_LEAST_ZERO)


@dataclass(frozen=True)
class Chunked:
    """One engine, chunked prefill: a step has all decodes and fills up to `budget` tokens with prompts.

    `habits` are what the engine's scheduler does besides. Of `ranks` of attention data parallelism each has its part of
    the places, of the budget and of the requests; all step together, as long as the one with the most prompt tokens
    takes. A request goes to the rank that has the fewest, or `by_chance` to any. The other parameters as of
    `Aggregated`.
    """

    budget: int
    max_batch: float = inf
    kv_capacity: float = inf
    grows: bool = False
    habits: Habits = Habits()
    ranks: int = 1
    by_chance: bool = False

    def __post_init__(self) -> None:
        as_whole("budget", self.budget)
        as_whole("ranks", self.ranks)
        as_bool("by_chance", self.by_chance)
        _check_limits(self)
        if not isinstance(self.habits, Habits):
            raise TypeError(f"habits must be a Habits, not {self.habits!r:.80}")


@dataclass(frozen=True)
class Disaggregated:
    """A pool for prefills and a pool for decodes.

    Each of `prefill_units` computes a prompt, or of those that wait as many as have `budget` tokens to compute, and
    sends their KV caches over a link of its own, `transfer` seconds a token. A cache goes to that of `decode_units`
    which has the fewest requests, over that unit's own link, which takes one after the other. `max_batch`,
    `kv_capacity` and `grows` hold for each decode unit. A prefill unit whose GPUs are several `groups`, of attention or
    of pipeline stages, computes prompts on each, as slowly as if all of them had as many.

    The cost of a simulation is that of both pools. Where prefill units have another layout or other GPUs, theirs is
    `prefill`, and the cost that of decode units; `incoming` is what a token takes over the link of a decode unit, whose
    GPUs take it in together. None: they are as many as a prefill unit's. Decode units that plan `ahead` plan a step
    while the one before it runs, as in `Habits`.
    """

    prefill_units: int = 1
    decode_units: int = 1
    transfer: float = 0.0
    max_batch: float = inf
    kv_capacity: float = inf
    grows: bool = False
    groups: int = 1
    budget: int = 1
    prefill: Cost | None = None
    incoming: float | None = None
    ahead: bool = False

    def __post_init__(self) -> None:
        as_bool("ahead", self.ahead)
        as_whole("groups", self.groups)
        as_whole("budget", self.budget)
        as_whole("prefill_units", self.prefill_units)
        as_whole("decode_units", self.decode_units)
        as_number("transfer", self.transfer, AT_LEAST_ZERO)
        if self.incoming is not None:
            as_number("incoming", self.incoming, AT_LEAST_ZERO)
        if self.prefill is not None and not callable(self.prefill):
            raise TypeError(f"prefill must be a function with the arguments of Cost or None, not {self.prefill!r:.80}")
        _check_limits(self)


@dataclass(frozen=True)
class Reuse:
    """How the stored share of a prompt is loaded: `R` seconds a token.

    Blocking: the engine loads layer by layer beside its own step and waits for the slower of the two.
    Not blocking: requests wait for the store's one pipe, one after the other, and the engine goes on.
    """

    R: float
    blocking: bool = True

    def __post_init__(self) -> None:
        as_number("R", self.R, AT_LEAST_ZERO)
        as_bool("blocking", self.blocking)


Scheduler = Aggregated | Chunked | Disaggregated


def system_of(scheduler: Scheduler, reuse: Reuse | None, gives: float = 1, brings: int = 1) -> System:
    """Return a scheduler, and what a blocking store makes it wait, as plain numbers."""
    pools = scheduler if isinstance(scheduler, Disaggregated) else Disaggregated()
    habits = scheduler.habits if isinstance(scheduler, Chunked) else Habits(ahead=pools.ahead)
    return System(
        engines=1,
        prefill_units=pools.prefill_units if pools is scheduler else 0,
        groups=pools.groups,
        decode_units=pools.decode_units,
        transfer=pools.transfer,
        incoming=pools.transfer / pools.groups if pools.incoming is None else pools.incoming,
        budget=inf if isinstance(scheduler, Aggregated) else scheduler.budget,
        max_batch=scheduler.max_batch,
        kv_capacity=scheduler.kv_capacity,
        grows=scheduler.grows,
        load=reuse.R if reuse is not None and reuse.blocking else 0.0,
        gives=gives,
        brings=brings,
        admission=admission_of(habits),
        ranks=scheduler.ranks if isinstance(scheduler, Chunked) else 1,
        by_chance=isinstance(scheduler, Chunked) and scheduler.by_chance,
    )


def admission_of(habits: Habits) -> Admission:
    """Return habits as plain numbers."""
    return Admission(**asdict(habits))


def _check_limits(scheduler: Scheduler) -> None:
    if scheduler.max_batch != inf:
        as_whole("max_batch", scheduler.max_batch)
    if scheduler.kv_capacity != inf:
        as_number("kv_capacity", scheduler.kv_capacity, AT_LEAST_ONE)
    as_bool("grows", scheduler.grows)
