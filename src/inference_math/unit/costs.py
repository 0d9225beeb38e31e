"""The talks' numbers of one inference unit under one workload: t_w, TTFT(1), TPOT(1), ΔP, ΔH, KV capacity.

`datasheet` takes the rates of the GPU's datasheet, so its times are limits. `measured` adds up the operators of
the H100. Both give the same `Costs`, which the formulas of `theory` and the simulator take.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from inference_math import theory
from inference_math.catalogue import Gpu, Model, as_precision, bytes_per_value, gpu
from inference_math.checks import as_whole
from inference_math.simulate import StepCost
from inference_math.unit.operators import H100, Operators

__all__ = ["GROWTH_BATCH", "LIMITS", "Costs", "datasheet", "measured", "smallest_tp", "step_cost"]

LIMITS = ("TPOT", "TTFT", "memory")
GROWTH_BATCH = 64  # what grows with the batch beside the KV reads is a mean slope from 1 to here


@dataclass(frozen=True)
class Costs:
    """What a request costs beside others; times in seconds, arrays where prompt or output lengths are.

    Attributes
    ----------
    n_in, n_out
        Prompt and output tokens.
    t_w
        The part of a step that does not grow with the batch: reading the weights, and measured, all else fixed.
    ttft_1
        Prefill of one request, without t_w: what it adds to a step of others. Alone it takes ``ttft_1 + t_w``.
    delta_h
        KV-cache read of one request at its mean context.
    T_decode
        What one more decode adds besides: its own matrix products, and the all-reduce (z·T; 0 at datasheet rates).
    kv_capacity
        Tokens whose KV cache fits beside the weights.
    compute
        The prompt's own compute, whatever it hides beside. None: such that it adds `ttft_1` to a step where
        weight read and compute share in quadrature, as measured kernels do.
    mixed
        Seconds of a step with so many decodes and prompts, a chunk counting as its share of one; where whoever made
        these numbers knows it better than they tell. None: they tell all.
    """

    n_in: Any
    n_out: Any
    t_w: Any
    ttft_1: Any
    delta_h: Any
    T_decode: Any
    kv_capacity: float
    compute: Any = None
    mixed: Callable[[Any, Any], Any] | None = None

    def __post_init__(self) -> None:
        if self.compute is None:
            object.__setattr__(self, "compute", np.sqrt((self.ttft_1 + self.t_w) ** 2 - self.t_w**2))

    @classmethod
    def of(cls, found: Mapping[str, Any], n_in: float, n_out: float, kv_capacity: float) -> Costs:
        """Return what `perf.steps.costs` found, as these."""
        times = {name: found[name] for name in ("t_w", "ttft_1", "delta_h", "mixed")}
        return cls(n_in=n_in, n_out=n_out, T_decode=found["own"], kv_capacity=kv_capacity, **times)

    @property
    def tpot_1(self) -> Any:
        """Time per output token of a request alone."""
        return self.t_w + self.read

    @property
    def read(self) -> Any:
        """What one more decode adds to a step: ΔH and its own compute."""
        return self.delta_h + self.T_decode

    @property
    def delta_p(self) -> Any:
        """ΔP."""
        return theory.delta_p(ttft_1=self.ttft_1, n_out=self.n_out)

    @property
    def law(self) -> dict[str, Any]:
        """What the quantiles of `latency` and the batch limits of `theory` take: tpot_1, delta_p, delta_h."""
        return {"tpot_1": self.tpot_1, "delta_p": self.delta_p, "delta_h": self.read}

    def tpot(self, B: Any) -> Any:
        """Return the mean time per output token with `B` concurrent requests [C14, corrected]."""
        return theory.expected_tpot_full(
            B=B, n_out=self.n_out, tpot_1=self.tpot_1, delta_p=self.delta_p, delta_h=self.read, T=1, z=0
        )

    def ttft(self, B: Any) -> Any:
        """Return the mean time to first token with `B` concurrent requests [C13, complete]."""
        return theory.expected_ttft_full(B=B, n_out=self.n_out, ttft_1=self.ttft_1, delta_h=self.read, t_w=self.t_w)

    def rate(self, B: Any) -> Any:
        """Return the requests finished per second with `B` concurrent requests."""
        return theory.request_rate(B=B, n_out=self.n_out, t_w=self.t_w, delta_p=self.delta_p, delta_h=self.read)

    def with_prefill(self, speedup: Any) -> Costs:
        """Return the same with prefills that hold up the engine `speedup` times shorter."""
        return replace(self, ttft_1=self.ttft_1 / speedup, compute=self.compute / speedup, mixed=None)

    def batch_limits(self, sla_tpot: Any, sla_ttft: Any) -> pd.DataFrame:
        """Return the largest batch by each of `LIMITS`, their smallest, `batch`, and which it is, `binding`.

        One row for each prompt and output length, or pair of limits. `binding` is "none fits" where the batch is 0.
        """
        by_limit = {
            "TPOT": theory.max_batch(
                sla_tpot=sla_tpot, tpot_1=self.tpot_1, delta_p=self.delta_p, delta_h=self.read * (1 - 1 / self.n_out)
            ),
            "TTFT": theory.max_batch_ttft_full(
                sla_ttft=sla_ttft, n_out=self.n_out, ttft_1=self.ttft_1, delta_h=self.read, t_w=self.t_w
            ),
            "memory": theory.max_batch_memory(kv_capacity=self.kv_capacity, n_in=self.n_in, n_out=self.n_out),
        }
        columns = np.broadcast_arrays(*(np.atleast_1d(by_limit[name]) for name in LIMITS))
        frame = pd.DataFrame(dict(zip(LIMITS, columns, strict=True))).astype(int)
        frame["batch"] = frame[list(LIMITS)].min(axis=1)
        frame["binding"] = frame[list(LIMITS)].idxmin(axis=1).where(frame.batch > 0, "none fits")
        return frame

    def step_cost(self) -> StepCost:
        """Return the cost of a step for the simulator: the talks' affine cost with these numbers."""
        return StepCost(t_w=self.t_w, prompt=self.ttft_1, delta_h=self.read)


def datasheet(
    model: Model,
    unit: Gpu,
    n_in: Any,
    n_out: Any,
    *,
    tp: int = 1,
    weights: str = "bf16",
    kv: str = "bf16",
    cv: float = 0,
) -> Costs:
    """Return the numbers at datasheet rates on `tp` GPUs: no real unit is faster.

    All experts of a mixture are read in every step, as with large batches. The GPUs' links cost nothing.

    Raises
    ------
    ValueError
        For FP8 on a GPU without it, weights that leave no room for a KV cache, and what the formulas refuse.
    """
    gpus = as_whole("tp", tp)
    precision = as_precision("weights", weights)
    room = _room(model, unit, gpus, precision, kv)
    if not room:
        raise ValueError(f"tp must leave room for a KV cache: {model.name} in {precision} fills {gpus} {unit.name}")
    T = theory.token_time_causal(**model.shape, n_in=n_in, flops=gpus * unit.flops(precision))
    step_bytes = model.n_params_total * bytes_per_value(precision) + model.lm_head_params * bytes_per_value("bf16")
    prompt = theory.ttft_vanilla(n_in=n_in, T=T)
    return Costs(
        n_in=n_in,
        n_out=n_out,
        t_w=step_bytes / (gpus * unit.hbm_bw),
        ttft_1=prompt,
        compute=prompt,
        delta_h=theory.delta_h(
            n_in=theory.mean_context(n_in=n_in, n_out=n_out, cv=cv),
            kv_token=model.kv_token(kv),
            hbm_bw=gpus * unit.hbm_bw,
        ),
        T_decode=0.0,
        kv_capacity=room,
    )


def measured(operators: Operators, n_in: Any, n_out: Any, *, cv: float = 0) -> Costs:
    """Return the numbers from measured operators of the H100, interpolated between measured lengths.

    The KV read of a context below the shortest measured one is that of the shortest, so it is too large there.
    What a decode adds beside its KV read is the mean slope of matrix products and all-reduce up to a batch of 64.

    Raises
    ------
    ValueError
        For prompts or contexts beyond the measured ones.
    """
    prefills, reads = operators.prefills(), operators.kv_reads()
    steps = operators.steps()
    context = theory.mean_context(n_in=n_in, n_out=n_out, cv=cv)
    _within("n_in", n_in, prefills.n_in.min(), prefills.n_in.max())
    _within("n_in + n_out / 2", context, 0, reads.context.max())
    delta_h = np.interp(context, reads.context, reads.delta_h)
    rest = steps.gemm + steps.allreduce
    by_batch = rest.groupby(steps.batch).mean()
    T_decode = max(0.0, (by_batch[GROWTH_BATCH] - by_batch[1]) / (GROWTH_BATCH - 1))
    alone = steps[steps.batch == 1].sort_values("context")
    t_w = np.interp(context, alone.context, alone.total) - delta_h - T_decode
    ttft = np.interp(n_in, prefills.n_in, prefills.total)
    return Costs(
        n_in=n_in,
        n_out=n_out,
        t_w=_plain(t_w),
        ttft_1=_plain(np.maximum(ttft - t_w, 1e-9)),
        delta_h=_plain(delta_h),
        T_decode=T_decode,
        kv_capacity=_room(operators.model, gpu(H100), operators.tp, operators.weights, operators.kv),
    )


def step_cost(operators: Operators) -> StepCost:
    """Return the cost of a step for prompts of any length, read off measured operators.

    t_w is the step of one request without its KV read: the weights, and all else that does not grow. Matrices and
    all-reduce share a step with it in quadrature, at a price per token that gives back a prompt of 2,048. A cached
    token is priced at a context of 2,048, a pair by the attention of a prompt of 4,096. Four numbers read off, no fit.
    """
    prefills = operators.prefills().set_index("n_in")
    per_request = operators.kv_reads().set_index("context").delta_h[2048]
    alone = operators.steps().query("batch == 1 and context == 2048").total.iloc[0]
    t_w = float(alone - per_request)
    linear = float(prefills.gemm[2048] + prefills.allreduce[2048])
    T = float(np.sqrt(linear**2 - t_w**2)) / 2048
    return StepCost(
        t_w=t_w,
        T=T,
        T_decode=T,
        pair=float(prefills.attention[4096] / (4096**2 / 2)),
        kv_read=float(per_request / 2048),
        overlap="quadrature",
    )


def smallest_tp(model: Model, unit: Gpu, precision: str, share: float = 0.9) -> int | None:
    """Return the fewest of 1, 2, 4, 8 GPUs whose HBM the weights fill to `share` at most; None if 8 are too few."""
    for tp in (1, 2, 4, 8):
        if model.weight_bytes(precision) <= share * tp * unit.hbm_bytes:
            return tp
    return None


def _room(model: Model, unit: Gpu, gpus: int, weights: str, kv: str) -> float:
    """Return the tokens whose KV cache fits beside the weights."""
    capacity: float = theory.kv_capacity(
        hbm_bytes=gpus * unit.hbm_bytes,
        weight_bytes=model.weight_bytes(weights),
        kv_token=model.kv_copies(gpus) * model.kv_token(kv),
    )
    return capacity


def _within(argument: str, value: Any, low: float, high: float) -> None:
    if np.min(value) < low or np.max(value) > high:
        raise ValueError(f"{argument} must be from {low} to {high} tokens, which were measured, not {value!r:.80}")


def _plain(value: Any) -> Any:
    return float(value) if np.ndim(value) == 0 else value
