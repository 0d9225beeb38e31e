"""What a simulated engine is told: records; in JavaScript plain objects."""

from __future__ import annotations

from math import inf
from typing import Protocol

from msgspec import field

from inference_math.evidence.checks import AT_LEAST_ZERO, as_bool, as_number, as_whole
from inference_math.evidence.records import Record


class SchedulerPolicy(Record):
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
    >>> for policy in (simulate.SchedulerPolicy(), simulate.SchedulerPolicy(wait_steps=20, wait_tokens=8000)):
    ...     chunks = simulate.Chunked(8192, policy=policy)
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


class System(Record):
    """A scheduler as plain numbers: without prefill units, one engine does everything.

    `budget` is the tokens of a step, with prefill units those of theirs; `load` is what a stored token makes an
    engine wait, `transfer` what a prompt's token takes over a prefill group's link, `incoming` over a decode
    unit's. A step gives each request that decodes `accepted_per_step` tokens, for which it computes
    `verified_per_step`: more than one where requests draft tokens. Of the `ranks` of an engine each has its own
    prompts, and its part of the budget; a request goes to the one with the fewest, or to any `by_chance`. Of several
    `engines` without pools each is a unit, behind a router.
    """

    budget: float
    max_batch: float
    kv_capacity: float = inf
    grows: bool = False
    engines: int = 1
    prefill_units: int = 0
    groups: int = 1
    decode_units: int = 1
    transfer: float = 0.0
    incoming: float = 0.0
    load: float = 0.0
    accepted_per_step: float = 1.0
    verified_per_step: int = 1
    policy: SchedulerPolicy = field(default_factory=SchedulerPolicy)
    ranks: int = 1
    by_chance: bool = False


class StepTimes(Protocol):
    """Who says how long the steps of a simulated engine take; `simulate.timed` makes one of any cost."""

    def seconds(self, decodes: int, context: float, prefills: float, tokens: int, pairs: float) -> float:
        """Return the seconds of a step; see `simulate.Cost` for the arguments."""

    def uneven(self, decodes: int, context: float, prefills: float, tokens: int, pairs: float, share: float) -> float:
        """Return the seconds of a step of ranks, the arguments as if each had the prompts of the one with the most.

        Of so many tokens the `share` is there: what ranks compute together takes that much.
        """

    def bare(self, decodes: int, context: float) -> float:
        """Return the seconds of a step without prompts, which may be 0 where nobody decodes."""

    def line(self, decodes: int, context: float) -> tuple[float, float, float, float] | None:
        """Return (fixed, per token of context) of such a step, and from where to where that holds, or None."""
