"""One inference unit: a model on `tp` GPUs in some precision under an engine, and the seconds of its steps.

The terms are those of `theory.step`, at datasheet rates over efficiencies in (0, 1]: no step is shorter than the
hardware allows. The efficiencies are fitted to measured operators of the H100 (`calibrate`), and used for every GPU, or
to runs of an engine (`profiles`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from math import hypot
from typing import Any

import numpy as np

from inference_math import catalogue, theory
from inference_math.catalogue import Gpu, Model, as_precision, bytes_per_value
from inference_math.checks import AT_LEAST_ONE, AT_LEAST_ZERO, SHARE, as_number, as_numbers, as_one_of, as_whole
from inference_math.perf.steps import Numbers, costs, loads, unit_numbers, unit_terms
from inference_math.unit.coefficients import DATASHEET, ENGINES, Calibration, Coefficients, Prediction
from inference_math.unit.costs import Costs
from inference_math.workload import Workload

__all__ = ["Steps", "Unit", "activation_bytes", "matrix_bytes", "rates_of", "shape_of"]

_ACTIVATION = 2  # bytes of an activation, whatever the precision of the weights
_DRAWS = 128  # of coefficients, for an interval


def matrix_bytes(model: Model, tp: int) -> float:
    """Return the bytes that the matrix products of one layer take in and put out for one token, on one GPU."""
    query, cache, hidden, ffn = _widths(model, tp)
    wide = 2 * ffn if model.gated else ffn
    return _ACTIVATION * ((hidden + query + cache) + (query + hidden) + (hidden + wide) + (ffn + hidden))


def activation_bytes(model: Model, tp: int) -> float:
    """Return the bytes that norms, rotation and activation of one layer read and write for one token, on one GPU.

    Two norms read the residual and a branch and write both again; the rotation reads and writes queries and keys;
    the activation reads what the first FFN matrices put out and writes what the last one takes in.
    """
    query, cache, hidden, ffn = _widths(model, tp)
    wide = 2 * ffn if model.gated else ffn
    return _ACTIVATION * (8 * hidden + 2 * (query + cache / 2) + wide + ffn)


def _widths(model: Model, tp: int) -> tuple[float, float, float, float]:
    """Return the widths of queries, of keys and values together, of the residual, and of the FFN, on one GPU."""
    cache = model.kv_token("bf16") / model.n_layers / bytes_per_value("bf16")
    ffn = model.d_ff if not model.n_experts else model.d_expert * (model.n_active_experts + model.n_shared_experts)
    return model.d_att / tp, max(cache / tp, cache / max(model.n_kv_heads, 1)), model.d_model, ffn / tp


def shape_of(model: Model, tp: int) -> dict[str, float]:
    """Return what a step on `tp` GPUs needs to know of a model, as plain numbers for `perf.steps`."""
    share = model.n_active_experts / model.n_experts if model.n_experts else 1.0
    routed = (model.n_params_total - model.n_params) / (1 - share) if share < 1 else 0.0
    return {
        **model.shape, "n_params_total": model.n_params_total, "head_params": model.lm_head_params,
        "vocab_params": model.vocab_params, "routed_params": routed, "idle": 1 - share,
        "kv_values": model.kv_token("bf16") / bytes_per_value("bf16"), "kv_copies": model.kv_copies(tp),
        "layer_bytes": matrix_bytes(model, tp) + activation_bytes(model, tp),
        "sum_bytes": 2 * model.n_layers * model.d_model * _ACTIVATION,
    }  # fmt: skip


def rates_of(gpu: Gpu) -> dict[str, Any]:
    """Return a GPU's rates and bytes, as plain numbers for `perf.steps`; fp8_flops None where it has none."""
    return {
        "hbm_bytes": gpu.hbm_bytes, "hbm_bw": gpu.hbm_bw, "link_bw": gpu.link_bw,
        "bf16_flops": gpu.bf16_flops, "fp8_flops": gpu.fp8_flops,
    }  # fmt: skip


@dataclass(frozen=True)
class Unit:
    """A model on `tp` GPUs; see `Unit.of`. Times in seconds: floats, or arrays where an argument is one."""

    model: Model
    gpu: Gpu
    tp: int
    weights: str
    kv: str
    engine: str
    calibration: Calibration

    @classmethod
    def of(
        cls,
        model: str | Model,
        gpu: str | Gpu,
        tp: int = 1,
        weights: str = "bf16",
        kv: str = "bf16",
        engine: str = "vllm",
        calibration: Calibration | None = None,
    ) -> Unit:
        """Return the unit of a model and a GPU, by name or your own; zero-shot where no `calibration` is given.

        Raises
        ------
        ValueError
            For unknown names, FP8 weights on a GPU without it, a `tp` that does not divide the heads or is too
            small for the weights.
        """
        of = catalogue.model(model) if isinstance(model, str) else model
        on = catalogue.gpu(gpu) if isinstance(gpu, str) else gpu
        gpus, precision = as_whole("tp", tp), as_precision("weights", weights)
        if precision == "fp8" and on.fp8_flops is None:
            raise ValueError(f"weights must be bf16 on {on.name}, not {weights!r} (not modelled: no FP8 unit)")
        if of.n_heads % gpus:
            raise ValueError(f"tp must divide n_heads = {of.n_heads}, not {gpus}")
        if of.weight_bytes(precision) >= gpus * on.hbm_bytes:
            least = -(-of.weight_bytes(precision) // on.hbm_bytes)
            raise ValueError(f"tp must be at least {least:g} for {of.name} in {precision} on {on.name}, not {gpus}")
        under = as_one_of("engine", engine, ENGINES)
        found = Calibration.zero_shot(under) if calibration is None else calibration
        return cls(of, on, gpus, precision, as_precision("kv", kv), under, found)

    @property
    def limit(self) -> Unit:
        """The same form at datasheet rates, nothing added."""
        return self.calibrated(DATASHEET)

    @property
    def name(self) -> str:
        """The unit in words."""
        return f"{self.model.name} ({self.weights}, KV {self.kv}) on {self.tp} x {self.gpu.name}, {self.engine}"

    @property
    def coefficients(self) -> Coefficients:
        """What the unit reaches of the datasheet."""
        return self.calibration.coefficients

    @property
    def kind(self) -> str:
        """What the model is to a calibration: "dense", "mixture of experts" or "MLA"."""
        if self.model.attention != "gqa":
            return self.model.attention.upper()
        return "mixture of experts" if self.model.n_experts else "dense"

    def calibrated(self, calibration: Calibration) -> Unit:
        """Return the same under another calibration."""
        return replace(self, calibration=calibration)

    @property
    def kv_capacity(self) -> float:
        """Tokens whose KV cache fits beside the weights."""
        room: float = self.numbers["kv_capacity"]
        return room

    def step_time(self, decodes: Any, context: Any, prefill_tokens: Any = 0, cached: Any = 0) -> Any:
        """Return the time of a step of `decodes` at a mean `context`, beside `prefill_tokens` of one prompt.

        The prompt's tokens also see `cached` tokens before them. All arguments broadcast.
        """
        B, read = as_numbers("decodes", decodes, AT_LEAST_ZERO), as_numbers("context", context, AT_LEAST_ZERO)
        new, known = (
            as_numbers("prefill_tokens", prefill_tokens, AT_LEAST_ZERO), as_numbers("cached", cached, AT_LEAST_ZERO)
        )  # fmt: skip
        return _plain(self._step(B, read, new, known, 1.0))

    def parts(self, decodes: float, context: float, prefill_tokens: float = 0) -> dict[str, float]:
        """Return what a step consists of, in seconds; the sum is `step_time` of the same arguments."""
        terms, tokens = self._terms, decodes + prefill_tokens
        parts = {
            "KV cache": terms["read"] * decodes * context,
            "attention of the prompt": terms["pair"] * prefill_tokens**2 / 2,
            "activations": terms["move"] * tokens,
            "all-reduce": terms["links"] * tokens,
            "layers": terms["fixed"] + self.coefficients.request * decodes,
        }
        whole = self.step_time(decodes, context, prefill_tokens)
        return {"weights and matrices": whole - sum(parts.values())} | parts

    def prefill_time(self, n_in: Any, batch: Any = 1, cached: Any = 0) -> Any:
        """Return the time of `batch` prompts of `n_in` tokens computed at once, of each `cached` in HBM already."""
        total, prompts = as_numbers("n_in", n_in, AT_LEAST_ONE), as_numbers("batch", batch, AT_LEAST_ONE)
        known = as_numbers("cached", cached, AT_LEAST_ZERO)
        if (known >= total).any():
            raise ValueError(f"cached must be below n_in, not {cached!r:.80}")
        return _plain(self._step(0.0, 0.0, total - known, known, prompts))

    def _step(self, decodes: Any, context: Any, new: Any, cached: Any, prompts: Any) -> Any:
        parts = loads(self._terms, decodes, context, new, cached, prompts, np.maximum, np.minimum)
        return theory.step_time.unchecked(*parts)

    @cached_property
    def numbers(self) -> Numbers:
        """The unit as the plain numbers that `solver` takes."""
        shape, rates = shape_of(self.model, self.tp), rates_of(self.gpu)
        return unit_numbers(shape, rates, self.tp, self.weights, self.kv)

    @cached_property
    def _terms(self) -> Numbers:
        return unit_terms(self.numbers, asdict(self.coefficients))

    def token_time(self, n_in: Any) -> Any:
        """Return T: the prefill of a prompt of `n_in` tokens, per token [C02]."""
        return self.prefill_time(n_in) / n_in

    def decode_share(self, decodes: Any) -> Any:
        """Return z beside so many decodes: how much of one more decode's compute lengthens the step [C14]."""
        tokens = as_numbers("decodes", decodes, AT_LEAST_ZERO)
        weights, matrices, _ = loads(self._terms, tokens, 0, 0, 0, 0, np.maximum, np.minimum)
        return _plain(theory.decode_share.unchecked(weights, np.where(tokens > 0, matrices, 0)))

    @property
    def step_cost(self) -> Steps:
        """The cost of a step for the simulator: the same terms."""
        return Steps(self)

    def costs(self, work: Workload, read_bw: float = 0.0) -> Costs:
        """Return the talks' numbers of a workload: t_w, TTFT(1), ΔH, a decode's own share, KV capacity.

        What is stored of the prompts lies in HBM, or is loaded with `read_bw` bytes/s where that is above 0: layer by
        layer, waiting where that takes longer than computing the rest [C05].
        """
        found = costs(self.numbers, self._terms, work.plain, as_number("read_bw", read_bw, AT_LEAST_ZERO))
        return Costs.of(found, work.n_in, work.n_out, self.kv_capacity)

    def ttft(self, work: Workload, concurrency: Any) -> Any:
        """Return the mean time to first token with so many users at once, prefill first [C13]."""
        return self._seen(work, concurrency, own=1.0)

    def tpot(self, work: Workload, concurrency: Any) -> Any:
        """Return the mean time per output token with so many users at once, prefill first [C14]."""
        return self._seen(work, concurrency, own=0.0)

    def e2e(self, work: Workload, concurrency: Any) -> Any:
        """Return the mean latency of a request: its TTFT, and its TPOT for each token after the first."""
        return self.ttft(work, concurrency) + (work.n_out - 1) * self.tpot(work, concurrency)

    def predict(self, quantity: str, work: Workload, concurrency: Any, level: float = 0.9) -> Prediction:
        """Return `quantity` ("ttft", "tpot" or "e2e") with an interval, and what was never calibrated.

        The interval holds the mean over many requests with probability `level`, as far as the calibration's
        covariance and spread go; its low end is never below the datasheet's limit.
        """
        asked = as_one_of("quantity", quantity, ("ttft", "tpot", "e2e"))
        value = getattr(self, asked)(work, concurrency)
        low, high = self.spread(lambda unit: getattr(unit, asked)(work, concurrency), as_number("level", level, SHARE))
        # Draws of what cannot be negative lean to one side: at small levels the value may lie beside their quantiles.
        low, high = _plain(np.minimum(low, value)), _plain(np.maximum(high, value))
        return Prediction(value, low, high, level, self.calibration.mode, self.outside(work, concurrency))

    def spread(self, ask: Callable[[Unit], Any], level: float, draws: int = _DRAWS) -> tuple[Any, Any]:
        """Return the quantiles of some seconds, asked of the unit under draws, between which the share `level` lies.

        None is below what the unit at datasheet rates says.
        """
        drawn = [ask(self.calibrated(one.calibration)) * one.step for one in self.calibration.draws(draws)]
        low, high = np.quantile(drawn, ((1 - level) / 2, (1 + level) / 2), axis=0)
        return np.maximum(low, ask(self.limit)), high

    def outside(self, work: Workload, concurrency: Any) -> tuple[str, ...]:
        """Return a sentence for each input that the calibration does not cover, or that the KV cache cannot hold."""
        found = self.calibration.outside(
            engine=self.engine, model=self.model.name, kind=self.kind, gpu=self.gpu.name, tp=self.tp,
            weights=self.weights, kv=self.kv, n_in=work.n_in, n_out=work.n_out, concurrency=concurrency,
        )  # fmt: skip
        fits = theory.max_batch_memory(kv_capacity=self.kv_capacity, n_in=work.n_in, n_out=work.n_out)
        if np.max(concurrency) > fits:
            found += (
                f"concurrency {np.max(concurrency):g} is more than the {fits:g} requests that the KV cache holds",
            )
        return found

    def _seen(self, work: Workload, concurrency: Any, own: float) -> Any:
        """Return the mean step of `_mean_step`, moved by the calibration's anchor, not below the datasheet's."""
        users = as_numbers("concurrency", concurrency, AT_LEAST_ONE)
        mean = self._mean_step(work, users, own)
        if self.calibration.anchors:
            moved = mean + self.calibration.anchor(work.n_in, work.n_out)
            mean = np.maximum(moved, self.limit._mean_step(work, users, own))
        return _plain(mean)

    def _mean_step(self, work: Workload, users: Any, own: float) -> Any:
        """Return the mean of the steps that a request sees which prefills itself (`own` = 1) or decodes (0).

        Each of the others prefills in one of n_out steps, independently [C12]. A step of a dense model is convex in
        its prompts, so two numbers lie below the binomial mean: what the first prompt adds in the place of a decode,
        times the mean number of prompts, and the step at that mean number. The larger is taken: the first is nearly
        exact for few prompts, the second for many.
        """
        context = theory.mean_context(n_in=work.n_in, n_out=max(work.n_out, 1.001), cv=work.cv)
        cached = work.alpha * (work.n_in - 1)
        new = work.n_in - cached
        others = users - 1
        decodes, beside = others + 1 - own, others / work.n_out
        base = self._step(decodes, context, new, cached, own)
        fewer = np.maximum(decodes - 1, 0)
        first = self._step(fewer, context, new, cached, own + 1) - base
        return np.maximum(base + beside * first, self._step(decodes - beside, context, new, cached, own + beside))


class Steps:
    """`Unit.step_time` as a `simulate.Cost`: whole batches of any mix, fast in a loop."""

    def __init__(self, unit: Unit) -> None:
        self._unit, self._terms, self._request = unit, unit._terms, unit.coefficients.request

    def __call__(self, decodes: int, context: int, prefills: float = 0.0, tokens: int = 0, pairs: float = 0.0) -> float:
        """Return the seconds of a step; see `simulate.Cost` for the arguments."""
        terms, together = self._terms, decodes + tokens
        matrices = terms["matrices"] * together + terms["head"] * max(decodes + prefills, 1.0)
        t_w = terms["t_w"] - terms["idle"] ** max(together, 1) * terms["routed"] if terms["routed"] else terms["t_w"]
        # Pairs are tokens times what each sees: what is cached, and half of its own chunk.
        cached = max(pairs / tokens - tokens / 2, 0.0) if tokens else 0.0
        rest = terms["read"] * (context + cached) + terms["pair"] * pairs + (terms["move"] + terms["links"]) * together
        seconds: float = hypot(t_w, matrices) + rest + self._request * decodes + terms["fixed"]
        return seconds

    def line(self, decodes: int) -> tuple[float, float]:
        """Return (fixed, per token of context) of a step that only decodes."""
        return self(decodes, 0), self._terms["read"]


def _plain(value: Any) -> Any:
    return float(value) if np.ndim(value) == 0 else value
