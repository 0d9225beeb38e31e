"""What no engine on this hardware can beat: the larger of bytes over bandwidth and FLOPs over the peak rate.

Only this rejects a measurement, and only this cuts an interval off. It assumes nothing of an engine but that the tokens
of a request come one after the other, each with a pass over the weights (with its drafts, where it drafts any), that
weights and caches lie in HBM, and that the requests of a step share no cache; `e2e` allows the stored share of the
prompts to be one for all.
Every prompt has the same stored share, and the concurrency is the mean number of requests in flight.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from inference_math import theory
from inference_math.checks import AT_LEAST_ONE, AT_LEAST_ZERO, Numbers, as_numbers
from inference_math.perf.steps import floor_of, floor_spans, floor_terms, stored_tokens
from inference_math.perf.types import UnitNumbers
from inference_math.unit.mean import as_scalar
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
    ) -> Any:
        """Return seconds below which no step lies, all contexts alike; arguments as of `Unit.step_time`."""
        B, read = as_numbers("decodes", decodes, AT_LEAST_ZERO), as_numbers("context", context, AT_LEAST_ZERO)
        new = as_numbers("prefill_tokens", prefill_tokens, AT_LEAST_ZERO)
        known = as_numbers("cached", cached, AT_LEAST_ZERO)
        tokens, prompts = B + new, np.where(new > 0, 1.0, 0.0)
        sampling = np.minimum(B, 1)  # a chunk that is not the last of its prompt has no token to give
        return self._least(np.minimum(tokens, 1), sampling, B, tokens, B, read, prompts, new, known, prompts, 0.0, read)

    def prefill_time(self, n_in: ArrayLike, batch: ArrayLike = 1, cached: ArrayLike = 0) -> Any:
        """Return seconds below which no prefill lies; arguments as of `Unit.prefill_time`."""
        total, prompts = as_numbers("n_in", n_in, AT_LEAST_ONE), as_numbers("batch", batch, AT_LEAST_ONE)
        known = as_numbers("cached", cached, AT_LEAST_ZERO)
        new = total - known
        return self._least(1.0, 1.0, prompts, prompts * new, 0.0, 0.0, prompts, new, known, prompts, 0.0, 0.0)

    def ttft(self, work: Workload, concurrency: ArrayLike) -> Any:
        """Return seconds below which no mean TTFT lies: an engine may put a request first, however many there are."""
        users = as_numbers("concurrency", concurrency, AT_LEAST_ONE)
        alone = self.prefill_time(work.n_in, 1, stored_tokens(work.n_in, work.alpha))
        return as_scalar(np.full(users.shape, alone))

    def tpot(self, work: Workload, concurrency: ArrayLike) -> Any:
        """Return seconds below which no mean TPOT lies: the others may wait meanwhile."""
        users = as_numbers("concurrency", concurrency, AT_LEAST_ONE)
        # At best every draft is accepted, and costs nothing.
        step = self._least(1.0, 1.0, 1.0, 1.0, 1.0, _context(work), 0.0, 0.0, 0.0, 0.0, 0.0, work.n_in)
        return as_scalar(np.full(users.shape, step / self._most))

    def e2e(self, work: Workload, concurrency: ArrayLike) -> Any:
        """Return seconds below which no mean latency of so many users lies.

        While a request stays, as much is done as `concurrency` requests need (Little), and its own tokens come one
        after the other. Stored tokens may be common to all requests, whose caches are then read once for all.
        """
        users = as_numbers("concurrency", concurrency, AT_LEAST_ONE)
        gaps, context, known = work.n_out - 1, _context(work), stored_tokens(work.n_in, work.alpha)
        new, decodes = work.n_in - known, users * (work.n_out - 1) / self._most
        passes = 1 + (work.n_out - 1) / self._most
        together = self._least(
            passes,
            passes,
            users * work.n_out,
            users * (new + gaps),
            decodes,
            context,
            users,
            new,
            known,
            1.0,
            decodes - gaps / self._most,
            work.n_in,
        )
        alone = self.ttft(work, 1) + gaps * self.tpot(work, 1)
        return as_scalar(np.maximum(together, alone))

    @property
    def _most(self) -> float:
        """Tokens that a step gives a request at most."""
        return 1 + self.numbers["drafts"]

    def _least(
        self, passes: Numbers, sampling: Numbers, sampled: Numbers, tokens: Numbers, decodes: Numbers, *prompts: Numbers
    ) -> Any:
        floor, context = floor_terms(self.numbers), prompts[0]
        together, new, known, loads, common, shortest = prompts[1:]
        spans = floor_spans(floor, context, shortest, new, known, np.minimum)
        least = floor_of(floor, spans, passes, sampling, sampled, tokens, decodes, together, loads, common, np.maximum)
        return as_scalar(least)


def _context(work: Workload) -> float:
    context: float = theory.mean_context(n_in=work.n_in * work.pairing, n_out=max(work.n_out, 1.001), cv=work.cv)
    return context
