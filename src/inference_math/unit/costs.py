"""The talks' numbers of one inference unit under one workload: t_w, TTFT(1), TPOT(1), ΔP, ΔH, KV capacity.

Behind the numbers stands a step: `WorkloadCosts.step_seconds` of so many decodes and prompts, and means,
batches and the simulator's price all come from it. `measured` adds that step up from operators of the H100,
`Unit.costs` takes it from a unit's terms; `WorkloadCosts.additive` is the talks' own, in which nothing hides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from inference_math import theory
from inference_math.catalogue import Gpu, Model, gpu
from inference_math.catalogue.engines import engine
from inference_math.catalogue.links import as_link
from inference_math.evidence.checks import AT_LEAST_ONE, Numbers, as_numbers
from inference_math.unit.affine import StepCost
from inference_math.unit.batch import MOST_TOGETHER, largest_batch
from inference_math.unit.mean import as_scalar, mean_seen
from inference_math.unit.operators import H100, Kernels, Operators
from inference_math.unit.overlap import overlapped_time
from inference_math.unit.problem import max_kv_seqs
from inference_math.unit.rates import rates_of
from inference_math.unit.shapes import MEMORY, shape_of
from inference_math.unit.steps import NO_INDEX, kv_sent, kv_tokens, loading, unit_numbers
from inference_math.unit.types import Layout, Step, UnitNumbers
from inference_math.workload import Workload

__all__ = ["GROWTH_BATCH", "LIMITS", "WorkloadCosts", "measured", "smallest_tp", "step_cost"]

LIMITS = ("TPOT", "TTFT", "memory")
GROWTH_BATCH = 64  # what grows with the batch beside the KV reads is a mean slope from 1 to here


@dataclass(frozen=True, eq=False)
class WorkloadCosts:
    """What a request costs beside others; times in seconds, arrays where prompt lengths are.

    Attributes
    ----------
    n_in, n_out
        Prompt and output tokens.
    t_w
        The part of a step that does not grow with the batch: reading the weights, and measured, all else fixed.
    ttft_1
        Prefill of one request net of t_w: what it adds to a step that reads the weights anyway. A prefill unit pays
        the gross time, ``ttft_1 + t_w``.
    cache_read
        KV read: the read of one request's KV cache at its mean context, a part of ΔH.
    T_decode
        What one more decode adds besides, on average up to 64: its own matrix products, and the all-reduce (z·T).
    kv_capacity, places
        Tokens whose KV cache fits beside the weights, and requests that the engine holds at once.
    mixed
        Seconds of a step with so many decodes and prompts, a chunk counting as its share of one. None: nothing hides,
        the sum of the numbers above.
    compute
        The prompt's own compute, whatever it hides beside, for the overlap models of `architectures.compare`. None:
        such that it adds `ttft_1` to a step where weight read and compute share in quadrature.
    T
        Compute of one token, a decode's there, too. None: the prompt's, spread over its tokens.
    load
        What a prompt loads from a store, as long as it takes; the step waits for it.
    groups
        Groups of GPUs that share the requests' attention, of which each computes prompts of its own.
    sent
        How long a prompt's KV cache keeps the link of a unit to another pool busy; 0: no time.
    each
        The same for each prompt length, where there are several.
    """

    n_in: Numbers
    n_out: float
    t_w: Numbers
    ttft_1: Numbers
    cache_read: Numbers
    T_decode: Numbers
    kv_capacity: float
    places: Numbers
    step_seconds: Step | None = None
    compute: Any = None
    T: Any = None
    load: float = 0.0
    groups: int = 1
    sent: float = 0.0
    each: tuple[WorkloadCosts, ...] = ()

    def __post_init__(self) -> None:
        if self.compute is None:
            object.__setattr__(self, "compute", np.sqrt((self.ttft_1 + self.t_w) ** 2 - self.t_w**2))
        if self.T is None:
            object.__setattr__(self, "T", self.compute / self.n_in)

    @property
    def additive(self) -> WorkloadCosts:
        """The same numbers in the talks' step, of which nothing hides: t_w, and what each prompt and decode adds."""
        return replace(self, step_seconds=None, each=tuple(one.additive for one in self.each))

    @property
    def step(self) -> Step:
        """Seconds of a step with so many decodes and prompts."""
        return self.step_seconds or self._sum

    @property
    def tpot_1(self) -> Numbers:
        """Time per output token of a request alone."""
        return self.t_w + self.delta_h

    @property
    def delta_h(self) -> Numbers:
        """ΔH: what one more decode adds to a step, its KV read and all else.

        It is an engine's increment where the numbers are a unit's, fitted to an engine. Of kernels alone, `measured`,
        it is the read of a decode with its rows, which is less: nothing of an engine is in it.
        """
        return self.cache_read + self.T_decode

    @property
    def delta_p(self) -> Numbers:
        """ΔP, net of t_w: what a prompt adds to the steps of others."""
        return theory.delta_p(ttft_1=self.ttft_1, n_out=self.n_out)

    @property
    def delta_p_gross(self) -> Numbers:
        """ΔP of a prompt alone, t_w with it: what it costs a prefill unit."""
        return theory.delta_p(ttft_1=self.ttft_1 + self.t_w, n_out=self.n_out)

    @property
    def law(self) -> dict[str, Any]:
        """What the quantiles of `latency` and the batch limits of `theory` take: tpot_1, delta_p, delta_h."""
        return {"tpot_1": self.tpot_1, "delta_p": self.delta_p, "delta_h": self.delta_h}

    def tpot(self, B: ArrayLike) -> Numbers:
        """Return the mean time per output token with `B` concurrent requests: the exact mean of the step [C14]."""
        return self._seen(B, 0)

    def ttft(self, B: ArrayLike) -> Numbers:
        """Return the mean time to first token with `B` concurrent requests: the exact mean of the step [C13]."""
        return self._seen(B, 1)

    def rate(self, B: ArrayLike) -> Numbers:
        """Return the requests finished per second with `B` concurrent requests, slots always full."""
        return np.asarray(B) / (self.ttft(B) + (self.n_out - 1) * self.tpot(B)) + 0.0

    def with_prefill(self, speedup: float) -> WorkloadCosts:
        """Return the same with prefills `speedup` times shorter: of a prompt so much less is computed."""
        step_seconds = None if self.step_seconds is None else partial(_shorter, self.step_seconds, speedup)
        each = tuple(one.with_prefill(speedup) for one in self.each)
        ttft_1 = self.ttft_1 / speedup if step_seconds is None else step_seconds(0.0, 1.0) - self.t_w
        if each:
            ttft_1 = np.array([one.ttft_1 for one in each])
        return replace(self, step_seconds=step_seconds, ttft_1=ttft_1, compute=self.compute / speedup, each=each)

    def with_store(self, alpha: float, load: float) -> WorkloadCosts:
        """Return the same for one prompt length with a share of the prompts loaded in `load` seconds a prompt [C05].

        Layer by layer: a step waits where that takes longer than all else in it.
        """
        step_seconds = partial(_stored, self.step, alpha, load)
        ttft_1, compute = max(step_seconds(0.0, 1.0) - self.t_w, 1e-9), self.compute * (1 - alpha)
        return replace(self, step_seconds=step_seconds, ttft_1=ttft_1, compute=compute, load=load)

    def overlapping(self, overlap: str) -> Step:
        """Return the step of these numbers under an overlap model of `unit.overlap`; decodes have matrices, too."""
        if self.load > 0:
            raise ValueError("overlap must be None for numbers with a store, whose loads hide under the whole step")
        t_w, prompt, read = float(self.t_w), float(self.compute), float(self.cache_read)
        decode = float(self.T)

        def step(decodes: float, prompts: float) -> float:
            return overlapped_time(overlap, t_w, decodes * decode + prompts * prompt, 0.0, decodes * read)

        return step

    def batch_limits(self, sla_tpot: ArrayLike, sla_ttft: ArrayLike) -> pd.DataFrame:
        """Return the largest batch by each of `LIMITS`, their smallest, `batch`, and which it is, `binding`.

        One row for each prompt length, or pair of limits. `binding` is "none fits" where the batch is 0.
        """
        several = self.each or (self,)
        tpots, ttfts = np.broadcast_arrays(np.atleast_1d(sla_tpot), np.atleast_1d(sla_ttft))
        rows = [
            [one._largest(float(tpot), inf), one._largest(inf, float(ttft)), one.places]
            for one in several
            for tpot, ttft in zip(tpots.tolist(), ttfts.tolist(), strict=True)
        ]
        frame = pd.DataFrame(rows, columns=list(LIMITS)).astype(int)
        frame["batch"] = frame[list(LIMITS)].min(axis=1)
        frame["binding"] = frame[list(LIMITS)].idxmin(axis=1).where(frame.batch > 0, "none fits")
        return frame

    def step_cost(self) -> StepCost | AtMeanContext:
        """Return the cost of a step for the simulator: these numbers, every context the mean one."""
        if self.step_seconds is None:
            return StepCost(t_w=float(self.t_w), prompt=float(self.ttft_1), delta_h=float(self.delta_h))
        return AtMeanContext(self.step_seconds)

    def _sum(self, decodes: Any, prompts: Any) -> Any:
        return self.t_w + decodes * self.delta_h + prompts * self.ttft_1

    def _seen(self, B: ArrayLike, own: int) -> Numbers:
        users = as_numbers("B", B, AT_LEAST_ONE)
        if not self.each:
            step = self._sum if self.step_seconds is None else _on_arrays(self.step_seconds)
            return as_scalar(mean_seen(step, users, self.n_out, own))
        batches = np.broadcast_to(users, np.broadcast_shapes(users.shape, np.shape(self.n_in))).ravel()
        return np.array([one._seen(b, own) for one, b in zip(self.each, batches.tolist(), strict=True)])

    def _largest(self, tpot: float, ttft: float) -> int:
        return largest_batch(self.step, 1, MOST_TOGETHER, self.n_out, tpot, ttft, 0.0)


@dataclass(frozen=True)
class AtMeanContext:
    """A step of decodes and prompts as a `simulate.Cost`."""

    step_seconds: Step

    def __call__(
        self, decodes: int, context: float, prefills: float = 0.0, tokens: int = 0, pairs: float = 0.0
    ) -> float:
        return self.step_seconds(decodes, prefills)

    def line(self, decodes: int, context: float) -> tuple[float, float, float, float]:
        return self.step_seconds(decodes, 0.0), 0.0, 0.0, np.inf


def measured(operators: Operators, n_in: Any, n_out: float, *, cv: float = 0, memory: float = MEMORY) -> WorkloadCosts:
    """Return the numbers from measured operators of the H100, added up in every step.

    A step's tokens, decodes and prompts together, go through the measured products and all-reduces; decodes read at
    the measured slope of the attention at their mean context, a prompt attends as long as measured. What is not
    measured between operators is left out. The KV read of a context below the shortest measured one is that of the
    shortest, so it is too large there. The batch that memory allows is that of the operators' engine, which takes the
    share `memory` of it (gpu-memory-utilization).

    Raises
    ------
    ValueError
        For prompts or contexts beyond the measured ones.
    """
    if np.ndim(n_in):
        each = tuple(measured(operators, float(n), n_out, cv=cv, memory=memory) for n in np.ravel(n_in))
        names = ("t_w", "ttft_1", "cache_read", "T_decode", "places")
        columns: dict[str, Any] = {name: np.array([getattr(one, name) for one in each]) for name in names}
        return WorkloadCosts(n_in=np.asarray(n_in), n_out=n_out, kv_capacity=each[0].kv_capacity, each=each, **columns)
    prefills, reads = operators.prefills(), operators.kv_reads()
    context = theory.mean_context(n_in=n_in, n_out=n_out, cv=cv)
    _within("n_in", n_in, prefills.n_in.min(), prefills.n_in.max())
    _within("n_in + n_out / 2", context, 0, reads.context.max())
    kernels = replace(
        operators.kernels,
        kv_read=float(np.interp(context, reads.context, reads.cache_read)) / context,
        pair=float(np.interp(n_in, prefills.n_in, prefills.attention)) / (n_in**2 / 2),
    )
    step_seconds = partial(_of_kernels, kernels, float(context), float(n_in))
    cache_read = kernels.kv_read * context
    own = max(0.0, (step_seconds(GROWTH_BATCH, 0.0) - step_seconds(1.0, 0.0)) / (GROWTH_BATCH - 1) - cache_read)
    t_w = step_seconds(1.0, 0.0) - cache_read - own
    on = _unit_of(operators, memory)
    work = Workload(float(n_in), float(n_out), lengths="", cv=float(cv))
    return WorkloadCosts(
        n_in=n_in,
        n_out=n_out,
        t_w=t_w,
        ttft_1=max(step_seconds(0.0, 1.0) - t_w, 1e-9),
        cache_read=cache_read,
        T_decode=own,
        kv_capacity=kv_tokens(on, n_in + n_out),
        places=max_kv_seqs(on, work, engine(operators.engine)),
        step_seconds=step_seconds,
        sent=sent_seconds(on, gpu(H100), n_in),
    )


def sent_seconds(unit: UnitNumbers, on: Gpu, n_in: float) -> float:
    """Return for how long a prompt's KV cache keeps the usual link of a unit busy, with a link for each GPU."""
    return kv_sent(unit, n_in) / (unit.gpus * as_link("link", None).of(on))


def step_cost(operators: Operators) -> StepCost:
    """Return the cost of a step for prompts of any length in four numbers, read off measured operators: no fit.

    t_w is the step of one request without its KV read: the weights, and all else that does not grow. Matrices and
    all-reduce of all tokens, decodes and prompts together, share a step with it in quadrature, at a price per token
    that gives back a prompt of 2,048. A cached token is priced at a context of 2,048, a pair by the attention of a
    prompt of 4,096. For the operators themselves, step by step, see `Operators.kernels`.
    """
    kernels, prefills = operators.kernels, operators.prefills().set_index("n_in")
    t_w = kernels(1, 0)
    linear = float(prefills.gemm[2048] + prefills.allreduce[2048])
    T = float(np.sqrt(linear**2 - t_w**2)) / 2048
    return StepCost(t_w=t_w, T=T, T_decode=T, pair=kernels.pair, kv_read=kernels.kv_read, overlap="quadrature")


def smallest_tp(model: Model, on: Gpu, precision: str, share: float = 0.9) -> int | None:
    """Return the fewest of 1, 2, 4, 8 GPUs whose HBM the weights fill to `share` at most; None if 8 are too few.

    Beside what an engine needs itself there must be room, too.
    """
    for tp in (1, 2, 4, 8):
        if model.weight_bytes(precision) <= tp * min(share * on.hbm_bytes, on.room(MEMORY)):
            return tp
    return None


def _of_kernels(kernels: Kernels, context: float, n_in: float, decodes: float, prompts: float) -> float:
    return kernels(decodes, decodes * context, prompts, prompts * n_in, prompts * n_in**2 / 2)


def _shorter(step_seconds: Step, speedup: float, decodes: float, prompts: float) -> float:
    return step_seconds(decodes, prompts / speedup)


def _stored(step_seconds: Step, alpha: float, load: float, decodes: float, prompts: float) -> float:
    return loading(step_seconds(decodes, (1 - alpha) * prompts), load, prompts, prompts)


def _on_arrays(step: Step) -> Callable[[Any, Any], Any]:
    each = np.frompyfunc(step, 2, 1)
    return lambda decodes, prompts: each(decodes, prompts).astype(np.float64)


def _unit_of(operators: Operators, memory: float) -> UnitNumbers:
    """Return the operators' unit, for what its memory holds."""
    layout = Layout(tp=operators.tp, ep=1, dp=1, pp=1)
    shape = shape_of(operators.model, operators.tp)
    return unit_numbers(shape, rates_of(gpu(H100)), layout, operators.weights, operators.kv, memory, NO_INDEX)


def _within(argument: str, value: ArrayLike, low: float, high: float) -> None:
    if np.min(value) < low or np.max(value) > high:
        raise ValueError(f"{argument} must be from {low} to {high} tokens, which were measured, not {value!r:.80}")
