"""What no engine on this hardware can beat: the larger of bytes over bandwidth and FLOPs over the peak rate.

Only this rejects a measurement, and only this cuts an interval off. It assumes nothing of an engine but that the tokens
of a request come one after the other, each with a pass over the weights (with its drafts, where it drafts any), that
weights and caches lie in HBM, and that the requests of a step share no cache; `e2e` allows the stored share of the
prompts to be one for all.
Every prompt has the same stored share, and the concurrency is the mean number of requests in flight.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from inference_math.evidence.checks import AT_LEAST_ONE, AT_LEAST_ZERO, Numbers, as_numbers
from inference_math.unit.mean import as_scalar
from inference_math.unit.steps import context_of, floor_computed, floor_read, floor_spans, floor_terms, stored_tokens
from inference_math.unit.types import FloorSpans, FloorTerms, UnitNumbers
from inference_math.workload import Workload

__all__ = ["RooflineBound"]


@dataclass(frozen=True)
class RooflineBound:
    """The least seconds of a unit's steps, prefills and requests at datasheet rates; see `Unit.floor`.

    Weights are read once in a pass: of a mixture the experts of one token. KV caches are read once, without the copies
    that tensor parallelism keeps, for a layout without them exists. Attention runs at the best rate of the GPU.
    """

    numbers: UnitNumbers

    def step_time(
        self, decodes: ArrayLike, context: ArrayLike, prefill_tokens: ArrayLike = 0, cached: ArrayLike = 0
    ) -> Numbers:
        """Return seconds below which no step lies, all contexts alike; arguments as of `Unit.step_time`."""
        B, read = as_numbers("decodes", decodes, AT_LEAST_ZERO), as_numbers("context", context, AT_LEAST_ZERO)
        new = as_numbers("prefill_tokens", prefill_tokens, AT_LEAST_ZERO)
        known = as_numbers("cached", cached, AT_LEAST_ZERO)
        prompts = np.where(new > 0, 1.0, 0.0)
        lengths = self._spans(read, read, new, known)
        # A chunk that is not the last of its prompt has no token to give.
        moved = floor_read(self._terms, lengths, np.minimum(B + new, 1), np.minimum(B, 1), B, prompts, 0.0)
        return as_scalar(np.maximum(moved, floor_computed(self._terms, lengths, B + new, B, B, prompts, 0.0)))

    def prefill_time(self, n_in: ArrayLike, batch: ArrayLike = 1, cached: ArrayLike = 0) -> Numbers:
        """Return seconds below which no prefill lies; arguments as of `Unit.prefill_time`."""
        total, prompts = as_numbers("n_in", n_in, AT_LEAST_ONE), as_numbers("batch", batch, AT_LEAST_ONE)
        known = as_numbers("cached", cached, AT_LEAST_ZERO)
        lengths, tokens = self._spans(0.0, 0.0, total - known, known), prompts * (total - known)
        moved = floor_read(self._terms, lengths, 1.0, 1.0, 0.0, prompts, 0.0)
        return as_scalar(np.maximum(moved, floor_computed(self._terms, lengths, tokens, prompts, 0.0, prompts, 0.0)))

    def ttft(self, work: Workload, concurrency: ArrayLike) -> Numbers:
        """Return seconds below which no mean TTFT lies: an engine may put a request first, however many there are."""
        users = as_numbers("concurrency", concurrency, AT_LEAST_ONE)
        alone = self.prefill_time(work.n_in, 1, stored_tokens(work.n_in, work.alpha))
        return as_scalar(np.full(users.shape, alone))

    def tpot(self, work: Workload, concurrency: ArrayLike) -> Numbers:
        """Return seconds below which no mean TPOT lies: the others may wait meanwhile."""
        users = as_numbers("concurrency", concurrency, AT_LEAST_ONE)
        # At best every draft is accepted, and costs nothing.
        lengths = self._spans(context_of(work), work.n_in, 0.0, 0.0)
        moved = floor_read(self._terms, lengths, 1.0, 1.0, 1.0, 0.0, 0.0)
        step = max(moved, floor_computed(self._terms, lengths, 1.0, 1.0, 1.0, 0.0, 0.0))
        return as_scalar(np.full(users.shape, step / self._most))

    def e2e(self, work: Workload, concurrency: ArrayLike) -> Numbers:
        """Return seconds below which no mean latency of so many users lies.

        While a request stays, as much is done as `concurrency` requests need (Little), and its own tokens come one
        after the other. Stored tokens may be common to all requests, whose caches are then read once for all.
        """
        users = as_numbers("concurrency", concurrency, AT_LEAST_ONE)
        gaps, known = work.n_out - 1, stored_tokens(work.n_in, work.alpha)
        new, passes = work.n_in - known, 1 + gaps / self._most
        decodes = users * gaps / self._most
        common, lengths = decodes - gaps / self._most, self._spans(context_of(work), work.n_in, new, known)
        moved = floor_read(self._terms, lengths, passes, passes, decodes, 1.0, common)
        tokens, sampled = users * (new + gaps), users * work.n_out
        computed = floor_computed(self._terms, lengths, tokens, sampled, decodes, users, common)
        together = np.maximum(moved, computed)
        alone = self.ttft(work, 1) + gaps * self.tpot(work, 1)
        return as_scalar(np.maximum(together, alone))

    @property
    def _most(self) -> float:
        """Tokens that a step gives a request at most."""
        return 1 + self.numbers.drafts

    @cached_property
    def _terms(self) -> FloorTerms:
        return floor_terms(self.numbers)

    def _spans(self, context: Numbers, shortest: Numbers, new: Numbers, known: Numbers) -> FloorSpans:
        return floor_spans(self._terms, context, shortest, new, known, np.minimum)
