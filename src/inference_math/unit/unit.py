"""One inference unit: a model on `tp` GPUs in some precision under an engine, and the seconds of its steps.

The terms are those of `theory.step`, at datasheet rates over efficiencies in (0, 1]: no step is shorter than the
hardware allows. The efficiencies are fitted to measured operators of the H100 (`profiles.from_operators`), and used for
every GPU, or to runs of an engine (`profiles.from_runs`).
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
from inference_math.perf.answers import places_of
from inference_math.perf.steps import (
    PARTS,
    costs,
    floor_of,
    floor_terms,
    parts,
    quantities,
    stored_tokens,
    unit_numbers,
    unit_terms,
)
from inference_math.perf.types import Found, Rates, Shape, Terms, UnitNumbers
from inference_math.unit.coefficients import DATASHEET, ENGINES, Anchor, Calibration, Coefficients, Prediction
from inference_math.unit.costs import Costs
from inference_math.unit.floor import Floor
from inference_math.unit.mean import mean_seen, plain
from inference_math.workload import Workload

__all__ = ["Steps", "Unit", "activation_bytes", "kind_of", "matrix_bytes", "rates_of", "shape_of"]

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


def shape_of(model: Model, tp: int) -> Shape:
    """Return what a step on `tp` GPUs needs to know of a model, as plain numbers for `perf.steps`."""
    share = model.n_active_experts / model.n_experts if model.n_experts else 1.0
    routed = (model.n_params_total - model.n_params) / (1 - share) if share < 1 else 0.0
    return {
        "n_params": model.n_params, "n_layers": model.n_layers, "d_att": model.d_att,
        "decode_flops": model.decode_flops, "n_params_total": model.n_params_total, "head_params": model.lm_head_params,
        "vocab_params": model.vocab_params, "routed_params": routed, "idle": 1 - share,
        "kv_values": model.kv_token("bf16") / bytes_per_value("bf16"), "kv_copies": model.kv_copies(tp),
        "layer_bytes": matrix_bytes(model, tp) + activation_bytes(model, tp),
        "sum_bytes": 2 * model.n_layers * model.d_model * _ACTIVATION,
    }  # fmt: skip


def rates_of(gpu: Gpu) -> Rates:
    """Return a GPU's rates and bytes, as plain numbers for `perf.steps`; fp8_flops None where it has none."""
    return {
        "hbm_bytes": gpu.hbm_bytes, "hbm_bw": gpu.hbm_bw, "link_bw": gpu.link_bw,
        "bf16_flops": gpu.bf16_flops, "fp8_flops": gpu.fp8_flops,
    }  # fmt: skip


def kind_of(model: Model) -> str:
    """Return what a model is to a calibration: "dense", "mixture of experts" or "MLA"."""
    if model.attention != "gqa":
        return model.attention.upper()
    return "mixture of experts" if model.n_experts else "dense"


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
    def at_datasheet(self) -> Unit:
        """The same form at datasheet rates, nothing added. No floor: an engine that overlaps more may be faster."""
        return self.calibrated(DATASHEET)

    @property
    def floor(self) -> Floor:
        """What no engine on this hardware can beat: `step_time`, `prefill_time`, `ttft`, `tpot`, `e2e` in seconds."""
        return Floor(self.numbers)

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
        return kind_of(self.model)

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
        seconds = self._step(B, read, new, known, 1.0)
        return plain(self._possible(seconds, self.floor.step_time, B, read, new, known))

    def parts(self, decodes: float, context: float, prefill_tokens: float = 0, cached: float = 0) -> dict[str, float]:
        """Return what a step consists of, in seconds, by `perf.steps.PARTS`.

        Weights and matrices share it in quadrature, all others add: `step_time` of the same arguments.
        """
        each = self._parts(decodes, context, prefill_tokens, cached, 1.0)
        return {name: float(seconds) for name, seconds in zip(PARTS, each, strict=True)}

    def prefill_time(self, n_in: Any, batch: Any = 1, cached: Any = 0) -> Any:
        """Return the time of `batch` prompts of `n_in` tokens computed at once, of each `cached` in HBM already."""
        total, prompts = as_numbers("n_in", n_in, AT_LEAST_ONE), as_numbers("batch", batch, AT_LEAST_ONE)
        known = as_numbers("cached", cached, AT_LEAST_ZERO)
        if (known >= total).any():
            raise ValueError(f"cached must be below n_in, not {cached!r:.80}")
        seconds = self._step(0.0, 0.0, total - known, known, prompts)
        return plain(self._possible(seconds, self.floor.prefill_time, total, prompts, known))

    def _possible(self, seconds: Any, floor: Callable[..., Any], *arguments: Any) -> Any:
        """Return no less than `floor` of the arguments: coefficients are shares, but an anchor may ask for more."""
        return np.maximum(seconds, floor(*arguments)) if self.calibration.anchors else seconds

    def _step(self, decodes: Any, context: Any, new: Any, cached: Any, prompts: Any) -> Any:
        weights, matrices, *rest = self._parts(decodes, context, new, cached, prompts)
        return theory.step_time.unchecked(weights, matrices, sum(rest))

    def _parts(self, decodes: Any, context: Any, new: Any, cached: Any, prompts: Any) -> list[Any]:
        return parts(self.terms, *quantities(decodes, context, new, cached, prompts, np.maximum, np.minimum))

    @cached_property
    def numbers(self) -> UnitNumbers:
        """The unit as the plain numbers that `perf` takes."""
        shape, rates = shape_of(self.model, self.tp), rates_of(self.gpu)
        return unit_numbers(shape, rates, self.tp, self.weights, self.kv)

    @cached_property
    def terms(self) -> Terms:
        """Seconds of one of each cost: what all steps are summed from."""
        return unit_terms(self.numbers, self.found())

    def found(self, work: Workload | None = None) -> Found:
        """Return the coefficients as `perf` takes them, with the anchor of the lengths of `work`, else of all."""
        anchors = self.calibration.anchors
        if work is None or not anchors:
            anchor = sum(one.seconds for one in anchors) / len(anchors) if anchors else 0.0
        else:
            anchor = self.calibration.anchor(work.n_in, work.n_out)
        return asdict(self.coefficients) | {"anchor": anchor}

    def near(self, work: Workload) -> Unit:
        """Return the same with the one anchor whose lengths are nearest to those of `work`; itself without anchors."""
        if len(self.calibration.anchors) < 2:
            return self
        nearest = Anchor(work.n_in, work.n_out, self.calibration.anchor(work.n_in, work.n_out))
        return self.calibrated(replace(self.calibration, anchors=(nearest,)))

    def token_time(self, n_in: Any) -> Any:
        """Return T: the prefill of a prompt of `n_in` tokens, per token [C02]."""
        return self.prefill_time(n_in) / n_in

    def decode_share(self, decodes: Any) -> Any:
        """Return z beside so many decodes: how much of one more decode's compute lengthens the step [C14]."""
        tokens = as_numbers("decodes", decodes, AT_LEAST_ZERO)
        weights, matrices, *_ = self._parts(tokens, 0, 0, 0, 0)
        return plain(theory.decode_share.unchecked(weights, np.where(tokens > 0, matrices, 0)))

    @property
    def step_cost(self) -> Steps:
        """The cost of a step for the simulator: the same terms; of several anchors their mean (see `near`)."""
        return Steps(self)

    def costs(self, work: Workload, read_bw: float = 0.0) -> Costs:
        """Return the talks' numbers of a workload: t_w, TTFT(1), ΔH, a decode's own share, KV capacity.

        What is stored of the prompts lies in HBM, or is loaded with `read_bw` bytes/s where that is above 0: layer by
        layer, waiting where that takes longer than computing the rest [C05].
        """
        bandwidth = as_number("read_bw", read_bw, AT_LEAST_ZERO)
        each = costs(self.numbers, unit_terms(self.numbers, self.found(work)), work.plain, bandwidth, 1.0, 1.0)
        return Costs.of(each, work, self.kv_capacity, self.places(work))

    def places(self, work: Workload) -> int:
        """Return the requests whose KV caches fit at once, as the engine holds them [C15].

        vLLM and SGLang let a cache grow block by block, TensorRT-LLM reserves a request's whole length.
        """
        return places_of(self.kv_capacity, work.plain, self.engine)

    def ttft(self, work: Workload, concurrency: Any) -> Any:
        """Return the mean time to first token with so many users at once, prefill first [C13]."""
        return self._seen(work, concurrency, own=1)

    def tpot(self, work: Workload, concurrency: Any) -> Any:
        """Return the mean time per output token with so many users at once, prefill first [C14]."""
        return self._seen(work, concurrency, own=0)

    def e2e(self, work: Workload, concurrency: Any) -> Any:
        """Return the mean latency of a request: its TTFT, and its TPOT for each token after the first."""
        return self.ttft(work, concurrency) + (work.n_out - 1) * self.tpot(work, concurrency)

    def predict(self, quantity: str, work: Workload, concurrency: Any, level: float = 0.9) -> Prediction:
        """Return `quantity` ("ttft", "tpot" or "e2e") with an interval, and what was never calibrated.

        The interval holds the mean over many requests with probability `level`, as far as the calibration's
        covariance and spread go; its low end is never below the floor.
        """
        asked = as_one_of("quantity", quantity, ("ttft", "tpot", "e2e"))
        value = getattr(self, asked)(work, concurrency)
        users = np.asarray(concurrency, dtype=np.float64)
        spread = self.calibration.spread
        wide = self.calibration.spread_for(**self._inputs(work, users)) / spread if spread else 1.0
        within = as_number("level", level, SHARE)
        low, high = self.spread(lambda unit: getattr(unit, asked)(work, concurrency), within, wide=wide)
        # At small levels the value may lie beside the quantiles of so many draws.
        low, high = plain(np.minimum(low, value)), plain(np.maximum(high, value))
        return Prediction(value, low, high, level, self.calibration.mode, self.outside(work, concurrency))

    def spread(self, ask: Callable[[Any], Any], level: float, draws: int = _DRAWS, wide: Any = 1.0) -> tuple[Any, Any]:
        """Return the quantiles of some seconds, asked of the unit under draws, between which the share `level` lies.

        What the fit leaves is taken `wide` times as wide. None is below the floor's answer.
        """
        drawn = [ask(self.calibrated(one.calibration)) * one.step**wide for one in self.calibration.draws(draws)]
        low, high = np.quantile(drawn, ((1 - level) / 2, (1 + level) / 2), axis=0)
        least = ask(self.floor)
        return np.maximum(low, least), np.maximum(high, least)

    def outside(self, work: Workload, concurrency: Any) -> tuple[str, ...]:
        """Return a sentence for each input that the calibration does not cover, or that the KV cache cannot hold."""
        found = self.calibration.outside(**self._inputs(work, concurrency))
        fits = self.places(work)
        if np.max(concurrency) > fits:
            found += (
                f"concurrency {np.max(concurrency):g} is more than the {fits:g} requests that the KV cache holds",
            )
        return found

    def widened(self, work: Workload) -> Unit:
        """Return the same with the wider calibration that a model, GPU or lengths never calibrated ask for."""
        inputs = self._inputs(work, 1.0)
        return self.calibrated(self.calibration.widened(**inputs))

    def _inputs(self, work: Workload, concurrency: Any) -> dict[str, Any]:
        """Return what a calibration's scope names."""
        return {
            "engine": self.engine, "model": self.model.name, "kind": self.kind, "gpu": self.gpu.name, "tp": self.tp,
            "weights": self.weights, "kv": self.kv, "n_in": work.n_in, "n_out": work.n_out, "concurrency": concurrency,
        }  # fmt: skip

    def _seen(self, work: Workload, concurrency: Any, own: int) -> Any:
        """Return the exact mean of the steps that a request sees which prefills itself (`own` = 1) or decodes (0)."""
        users, unit = as_numbers("concurrency", concurrency, AT_LEAST_ONE), self.near(work)
        context = theory.mean_context(n_in=work.n_in, n_out=max(work.n_out, 1.001), cv=work.cv)
        cached = stored_tokens(work.n_in, work.alpha)
        least = floor_terms(self.numbers)

        def step(decodes: Any, prompts: Any) -> Any:
            seconds = unit._step(decodes, context, work.n_in - cached, cached, prompts)
            new = work.n_in - cached
            tokens, read, known = decodes + prompts * new, decodes * context, prompts * cached
            pairs, sampling = prompts * new * (work.n_in + cached) / 2, np.minimum(decodes + np.floor(prompts), 1.0)
            return unit._possible(
                seconds, floor_of, least, 1.0, sampling, decodes, tokens, read, known, pairs, np.maximum
            )

        return plain(mean_seen(step, users, work.n_out, own))


class Steps:
    """`Unit.step_time` as a `simulate.Cost`: whole batches of any mix, fast in a loop.

    A step is `factor` times as long, what prompts add to it `prompt_factor` times: the error of a draw.
    """

    def __init__(self, unit: Unit, factor: float = 1.0, prompt_factor: float = 1.0) -> None:
        self._terms, self._floor = unit.terms, floor_terms(unit.numbers)
        self._factor, self._prompt_factor = factor, prompt_factor

    def __call__(self, decodes: int, context: int, prefills: float = 0.0, tokens: int = 0, pairs: float = 0.0) -> float:
        """Return the seconds of a step; see `simulate.Cost` for the arguments."""
        bare = self._sum(decodes, context, 0.0, 0, 0.0)
        seconds = self._factor * bare
        if tokens:
            seconds += self._prompt_factor * (self._sum(decodes, context, prefills, tokens, pairs) - bare)
        together = decodes + tokens
        sampling = float(decodes > 0)
        least = floor_of(self._floor, float(together > 0), sampling, decodes, together, context, 0.0, pairs, max)
        longest: float = max(seconds, least)
        return longest

    def line(self, decodes: int) -> tuple[float, float] | None:
        """Return (fixed, per token of context) of a step that only decodes; None where the floor may cut it."""
        if self._factor < 1 or self._terms["fixed"] < 0:  # a draw, or an anchor, that is faster than coefficients allow
            return None
        return self._factor * self._sum(decodes, 0, 0.0, 0, 0.0), self._factor * self._terms["read"]

    def _sum(self, decodes: int, context: int, prefills: float, tokens: int, pairs: float) -> float:
        # Pairs are tokens times what each sees: what is cached, and half of its own prompt, or of its chunk.
        cached = max(max(prefills, 1.0) * pairs / tokens - tokens / 2, 0.0) if tokens else 0.0
        sampled = max(decodes + prefills, 1.0)
        weights, matrices, *rest = parts(self._terms, decodes, decodes + tokens, sampled, context, cached, pairs, max)
        seconds: float = hypot(weights, matrices) + sum(rest)
        return seconds
