"""Who is computed when: the schedulers, and how stored KV caches are loaded."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

from inference_math.evidence.checks import AT_LEAST_ONE, AT_LEAST_ZERO, as_bool, as_number, as_whole
from inference_math.simulate.cost import Cost
from inference_math.simulate.types import SchedulerPolicy, System

__all__ = ["Aggregated", "Chunked", "Disaggregated", "Reuse", "Scheduler", "SchedulerPolicy", "system_of"]


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
class Chunked:
    """One engine, chunked prefill: a step has all decodes and fills up to `budget` tokens with prompts.

    `policy` are what the engine's scheduler does besides. Of `ranks` of attention data parallelism each has its part of
    the places, of the budget and of the requests; all step together, as long as the one with the most prompt tokens
    takes. A request goes to the rank that has the fewest, or `by_chance` to any. The other parameters as of
    `Aggregated`.
    """

    budget: int
    max_batch: float = inf
    kv_capacity: float = inf
    grows: bool = False
    policy: SchedulerPolicy = field(default_factory=SchedulerPolicy)
    ranks: int = 1
    by_chance: bool = False

    def __post_init__(self) -> None:
        as_whole("budget", self.budget)
        as_whole("ranks", self.ranks)
        as_bool("by_chance", self.by_chance)
        _check_limits(self)
        if not isinstance(self.policy, SchedulerPolicy):
            raise TypeError(f"policy must be a SchedulerPolicy, not {self.policy!r:.80}")


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
    while the one before it runs, as in `SchedulerPolicy`.
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


def system_of(
    scheduler: Scheduler, reuse: Reuse | None, accepted_per_step: float = 1, verified_per_step: int = 1
) -> System:
    """Return a scheduler, and what a blocking store makes it wait, as plain numbers."""
    pools = scheduler if isinstance(scheduler, Disaggregated) else Disaggregated()
    policy = scheduler.policy if isinstance(scheduler, Chunked) else SchedulerPolicy(ahead=pools.ahead)
    return System(
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
        accepted_per_step=accepted_per_step,
        verified_per_step=verified_per_step,
        policy=policy,
        ranks=scheduler.ranks if isinstance(scheduler, Chunked) else 1,
        by_chance=isinstance(scheduler, Chunked) and scheduler.by_chance,
    )


def _check_limits(scheduler: Scheduler) -> None:
    if scheduler.max_batch != inf:
        as_whole("max_batch", scheduler.max_batch)
    if scheduler.kv_capacity != inf:
        as_number("kv_capacity", scheduler.kv_capacity, AT_LEAST_ONE)
    as_bool("grows", scheduler.grows)
