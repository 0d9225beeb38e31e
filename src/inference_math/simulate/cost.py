"""What a step costs: the affine cost of the talks and its overlap models, or any callable."""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import inf, isclose
from typing import Protocol

from inference_math.checks import AT_LEAST_ZERO, as_number, as_one_of
from inference_math.perf.overlap import OVERLAPS, overlapped_time
from inference_math.perf.pace import Pace
from inference_math.perf.types import StepTimes

__all__ = ["OVERLAPS", "Cost", "StepCost", "timed"]


class Cost(Protocol):
    """Seconds of a step that decodes one token of `decodes` requests and computes `tokens` of some prompts.

    `context` is the number of tokens whose KV cache the decodes read, summed over requests; `prefills` the
    prompts computed, a chunk counting as its share of what is to compute of its prompt; `pairs` the (token,
    earlier token) pairs of the prompts' causal attention. A step takes a finite time > 0.

    A cost may also have ``line(decodes, context)``, seconds ``(fixed, per_token, low, high)`` of a step without
    prefills as ``fixed + per_token * context`` for contexts from `low` to `high`, the given one among them, or None.
    The simulator then skips the steps in which nothing happens.

    One with `gives` and `brings` is of requests that draft tokens: a step gives each of its decodes so many tokens, and
    computes as many as it brings. Without them, both are 1.
    """

    def __call__(self, decodes: int, context: float, prefills: float, tokens: int, pairs: float) -> float:
        """Return seconds."""
        ...


@dataclass(frozen=True)
class StepCost:
    """The cost of a step from a handful of coefficients, all in seconds.

    Parameters
    ----------
    t_w
        Reading the weights once.
    T
        Matrices of one prompt token.
    T_decode
        Matrices of one decoded token (the talks leave it out: 0).
    prompt
        One prompt, whatever its length: the talks' TTFT(1).
    pair
        One (token, earlier token) pair of a prompt's attention.
    delta_h
        KV-cache read of one decode, whatever its context: the talks' ΔH.
    kv_read
        Reading one token's KV cache.
    overlap
        What runs at the same time. "none": everything adds (the talks' interference). "quadrature": the
        weight read and the matrices' compute add as √(a² + b²). "serial-kv": the weight read hides under the
        matrices' compute or the other way round, everything else adds (claim C24). "full": all reads hide under
        all compute or the other way round (claim C23).

    Raises
    ------
    ValueError
        For a negative or non-finite coefficient, or another name of `overlap`.
    """

    t_w: float
    T: float = 0.0
    T_decode: float = 0.0
    prompt: float = 0.0
    pair: float = 0.0
    delta_h: float = 0.0
    kv_read: float = 0.0
    overlap: str = "none"

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.name != "overlap":
                value = as_number(field.name, getattr(self, field.name), AT_LEAST_ZERO)
                object.__setattr__(self, field.name, value)
        as_one_of("overlap", self.overlap, OVERLAPS)

    def __call__(
        self, decodes: int, context: float, prefills: float = 0.0, tokens: int = 0, pairs: float = 0.0
    ) -> float:
        """Return the seconds of a step; see `Cost` for the arguments."""
        matrices = self.T * tokens + self.T_decode * decodes
        prompts = self.prompt * prefills + self.pair * pairs
        reads = self.delta_h * decodes + self.kv_read * context
        return overlapped_time(self.overlap, self.t_w, matrices, prompts, reads)

    def line(self, decodes: int, context: float) -> tuple[float, float, float, float] | None:
        """Return (fixed, per token of context) of a step that only decodes, for all contexts; None where it is none."""
        fixed = self(decodes, 0)
        if self.overlap == "full" and self.T_decode * decodes > self.t_w + self.delta_h * decodes:
            return None  # compute-bound until the context has grown enough
        return fixed, self.kv_read, 0.0, inf


class Checked:
    """A cost as a simulated engine asks for it: refused where time would not go on, or its line is none."""

    def __init__(self, cost: Cost) -> None:
        self._cost = cost

    def seconds(self, decodes: int, context: float, prefills: float, tokens: int, pairs: float) -> float:
        """Return the seconds of a step.

        Raises
        ------
        ValueError
            Where they are no finite number above 0.
        """
        seconds = self._cost(decodes, context, prefills, tokens, pairs)
        try:
            if 0 < seconds < inf:
                return seconds
        except TypeError:
            pass
        step = f"cost({decodes}, {context}, {prefills:g}, {tokens}, {pairs:g})"
        raise ValueError(f"cost must be a finite number of seconds > 0, but {step} is {seconds!r:.80}")

    def bare(self, decodes: int, context: float) -> float:
        """Return the seconds of a step without prompts, which may be 0 where nobody decodes."""
        return self._cost(decodes, context, 0.0, 0, 0.0)

    def line(self, decodes: int, context: float) -> tuple[float, float, float, float] | None:
        """Return the cost's line, if it has one, after a look whether it is true where it is needed first."""
        line: tuple[float, float, float, float] | None = getattr(self._cost, "line", lambda *_: None)(decodes, context)
        if line is not None:
            fixed, per_token, low, high = line
            seconds = self.seconds(decodes, context, 0.0, 0, 0.0)
            told = f"cost.line({decodes}, {context}) must agree with cost({decodes}, {context}, …), {seconds:g}: {line}"
            if not (per_token >= 0 and low <= context <= high):
                raise ValueError(told)
            if not isclose(fixed + per_token * context, seconds, rel_tol=1e-6):
                raise ValueError(told)
        return line


def timed(cost: Cost) -> StepTimes:
    """Return a cost as a simulated engine asks for it; the package's own, a `Pace`, needs no check."""
    return cost if isinstance(cost, Pace) else Checked(cost)
