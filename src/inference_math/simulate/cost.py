"""What a step costs a simulated engine: any callable that says so, or a unit's own steps."""

from __future__ import annotations

from math import inf, isclose
from typing import TYPE_CHECKING, Protocol

from inference_math.simulate.pace import Pace
from inference_math.simulate.types import StepTimes
from inference_math.unit.steps import floor_terms

if TYPE_CHECKING:
    from inference_math.unit.unit import Unit

__all__ = ["Cost", "Steps", "drafts_of", "timed"]

_FARTHEST = 1e9  # tokens that the decodes of a step see together, at most


class Cost(Protocol):
    """Seconds of a step that decodes one token of `decodes` requests and computes `tokens` of some prompts.

    `context` is the number of tokens whose KV cache the decodes read, summed over requests; `prefills` the
    prompts computed, a chunk counting as its share of what is to compute of its prompt; `pairs` the (token,
    earlier token) pairs of the prompts' causal attention. A step takes a finite time > 0.

    A cost may also have ``line(decodes, context)``, seconds ``(fixed, per_token, low, high)`` of a step without
    prefills as ``fixed + per_token * context`` for contexts from `low` to `high`, the given one among them, or None.
    The simulator then skips the steps in which nothing happens.

    One with `accepted_per_step` and `verified_per_step` is of requests that draft tokens: a step gives each of its
    decodes so many tokens, and computes so many for it. Without them, both are 1.
    """

    def __call__(self, decodes: int, context: float, prefills: float, tokens: int, pairs: float) -> float:
        """Return seconds."""
        ...


class Steps(Pace):
    """`Unit.step_time` as a `Cost`: whole batches of any mix, fast in a loop; of several anchors their mean.

    See `simulate.pace.Pace`, and `Unit.near` for the anchor of some lengths.
    """

    def __init__(self, unit: Unit, factor: float = 1.0, prompt_factor: float = 1.0) -> None:
        super().__init__(unit.terms, floor_terms(unit.numbers), factor, prompt_factor, _FARTHEST)
        self.accepted_per_step, self.verified_per_step = unit.tokens_a_step, 1 + unit.drafts

    def __call__(
        self, decodes: int, context: float, prefills: float = 0.0, tokens: int = 0, pairs: float = 0.0
    ) -> float:
        """Return the seconds of a step; see `Cost` for the arguments."""
        return self.seconds(decodes, context, prefills, tokens, pairs)


def drafts_of(cost: Cost) -> tuple[float, int]:
    """Return the tokens that a step gives each of its decodes, and those that it computes for each."""
    return getattr(cost, "accepted_per_step", 1), getattr(cost, "verified_per_step", 1)


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

    def uneven(self, decodes: int, context: float, prefills: float, tokens: int, pairs: float, share: float) -> float:
        """Return the same of ranks that do not have equally much: all wait for the one with the most."""
        return self.seconds(decodes, context, prefills, tokens, pairs)

    def bare(self, decodes: int, context: float) -> float:
        """Return the seconds of a step without prompts, which may be 0 where nobody decodes."""
        return self._cost(decodes, context, 0.0, 0, 0.0)

    def line(self, decodes: int, context: float) -> tuple[float, float, float, float] | None:
        """Return the cost's line, if it has one, after a look whether it is true where it is needed first."""
        line: tuple[float, float, float, float] | None = getattr(self._cost, "line", lambda *_: None)(decodes, context)
        if line is not None:
            fixed, per_token, low, high = line
            seconds = self.seconds(decodes, context, 0.0, 0, 0.0)
            text = f"cost.line({decodes}, {context}) must agree with cost({decodes}, {context}, …), {seconds:g}: {line}"
            if not (per_token >= 0 and low <= context <= high):
                raise ValueError(text)
            if not isclose(fixed + per_token * context, seconds, rel_tol=1e-6):
                raise ValueError(text)
        return line


def timed(cost: Cost) -> StepTimes:
    """Return a cost as a simulated engine asks for it; the package's own, a `Pace`, needs no check."""
    return cost if isinstance(cost, Pace) else Checked(cost)
