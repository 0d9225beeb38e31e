"""The affine cost of a step: the talks' coefficients, and what of a step runs at the same time."""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import inf

from inference_math.evidence.checks import AT_LEAST_ZERO, as_number, as_one_of
from inference_math.unit.overlap import OVERLAPS, overlapped_time

__all__ = ["StepCost"]


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
        What one decode adds, whatever its context: ΔH.
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
        """Return the seconds of a step; see `simulate.Cost` for the arguments."""
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
