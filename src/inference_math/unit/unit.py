"""One inference unit: a model on `tp` GPUs in some precision under an engine, and the seconds of its steps.

The terms are those of `theory.step`, at datasheet rates over efficiencies in (0, 1]: no step is shorter than the
hardware allows. The efficiencies are fitted to measured operators of the H100 (`from_operators`), and used for
every GPU, or to runs of an engine (`calibrate.from_runs`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from math import hypot
from typing import Any

import numpy as np
from msgspec.structs import replace as replaced
from numpy.typing import ArrayLike

from inference_math import catalogue
from inference_math.catalogue import Gpu, Model, as_precision
from inference_math.catalogue.engines import engine as engine_record, engines, usual_limits
from inference_math.catalogue.links import joined
from inference_math.catalogue.precisions import as_kv_precision
from inference_math.evidence.checks import (
    AT_LEAST_ONE,
    AT_LEAST_ZERO,
    SHARE,
    Interval,
    Numbers,
    as_number,
    as_numbers,
    as_one_of,
    as_whole,
)
from inference_math.evidence.numerals import digits
from inference_math.evidence.sentences import render
from inference_math.theory.arrays import decode_share, step_time
from inference_math.unit import nearest, steps
from inference_math.unit.coefficients import DATASHEET, SHIPPED, Anchor, Calibration, Coefficients, Prediction
from inference_math.unit.costs import WorkloadCosts, sent_seconds
from inference_math.unit.deployed import (
    Deployment,
    ServedModel,
    ServingGpu,
    deployment_numbers,
    divisors,
    score_key_of,
    unfit,
    untold_kv,
    untold_share,
)
from inference_math.unit.floor import RooflineBound
from inference_math.unit.front import Front, front_of
from inference_math.unit.kernels import kernels, like
from inference_math.unit.mean import as_scalar, expected_max_loads, mean_seen
from inference_math.unit.mixing import why_kv
from inference_math.unit.problem import max_kv_seqs
from inference_math.unit.rates import rates_of
from inference_math.unit.scope import crowding, extra_log_sd, too_long
from inference_math.unit.shapes import kind_of, operators_of, shape_of
from inference_math.unit.types import (
    CoefficientValues,
    DrawnCoefficients,
    ErrorRow,
    Layout,
    ScoreKey,
    Terms,
    UnitNumbers,
)
from inference_math.workload import Workload

__all__ = ["Unit"]

_OWN = ("model", "calibration", "synchronized_arrivals", "drawn")  # fields that `Unit.resized` does not hand on
_USUAL = 8192  # tokens of a request
_MOST_GPUS = 4096  # that share anything
MOST_DRAFTS = 16  # that a request has verified in a step
ACCEPTED = 0.8  # of the drafts whose predecessors were, unless somebody says how many
TOO_SMALL = "too small"  # the key of an error of too few GPUs for the weights
_MEMORY = Interval(0.01, 1)
SEVERAL = "more than one"  # nodes: of several no calibration knows the links
_DRAWS = 128  # of coefficients, for an interval


@dataclass(frozen=True)
class Unit:
    """A model on tp·dp·pp GPUs; see `Unit.of`. Times in seconds: floats, or arrays where an argument is one."""

    model: Model
    gpu: Gpu
    tp: int
    weights: str
    kv: str
    engine: str
    calibration: Calibration
    ep: int = 1
    dp: int = 1
    pp: int = 1
    memory: float | None = None
    drafts: int = 0
    accepted: float = ACCEPTED
    version: str = ""
    expert_imbalance: float | None = None
    async_scheduling: bool | None = None
    synchronized_arrivals: bool = False
    drawn: CoefficientValues | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(
        cls,
        model: str | Model,
        gpu: str | Gpu,
        tp: int = 1,
        weights: str | None = None,
        kv: str | None = None,
        engine: str = "vllm",
        calibration: Calibration | None = None,
        *,
        version: str = "",
        ep: int = 1,
        dp: int = 1,
        pp: int = 1,
        memory: float | None = None,
        drafts: int = 0,
        accepted: float = ACCEPTED,
        expert_imbalance: float | None = None,
        async_scheduling: bool | None = None,
    ) -> Unit:
        """Return the unit of a model and a GPU, by name or your own, under `calibration` or the nearest that ships.

        Parameters
        ----------
        tp, ep, dp, pp
            How the GPUs divide the work: `tp` share each matrix; `dp` groups of them share the requests' attention,
            each with a copy of its matrices; the routed experts lie on all tp·dp of them, whole ones on each of `ep`
            groups (1: a part of each on every GPU); `pp` stages have a part of the layers each.
        weights
            One of `catalogue.PRECISIONS`; the checkpoint's, `Model.stored`, where it is left out.
        kv
            "bf16" or "fp8"; where it is left out what the engine takes untold: the checkpoint's (`Model.stored_kv`),
            FP8 for sparse attention under SGLang on Blackwell, else BF16.
        version
            The engine's version, "0.11.2"; today's where it is left out. One that tells no age ("nightly") is taken
            for today's, said to be unknown, and widens what is predicted.
        memory
            Share of the GPUs' memory that the engine takes for weights and KV caches (gpu-memory-utilization); what it
            takes by itself where it is left out, `Unit.share`.
        drafts, accepted
            Tokens that a request drafts in each step (multi-token prediction, EAGLE), and the probability with which
            one is accepted whose predecessors were. Each passes a layer of its own and the LM head, and all are
            verified in the step; a prompt passes that layer once. The drafter's memory is not counted.
        expert_imbalance
            The coefficient of variation of how often a layer's experts are chosen, if you counted
            (`unit.coefficients.imbalance`), up to that of the same few for every token; else what served points say.
        async_scheduling
            Whether the engine plans a step while the one before it runs; what its version does where it is left out.
            If not, benchmarks and fleets play it so, and its host is on top of steps from operators
            (`nearest.with_host`). Steps from served points stay as they were served.

        Raises
        ------
        ValueError
            For unknown names, an `async_scheduling` of an engine that has no option for it, an engine that does not
            run on the GPU, FP8 weights on one without it, a `tp` that does
            not divide the heads, a layout that is none, GPUs too few for the weights.

        Examples
        --------
        >>> from inference_math import Unit
        >>> Unit.of("gpt-oss-120b", "h100-sxm").name
        'gpt-oss-120b (mxfp4, KV bf16) on 1 x h100-sxm, vllm'
        >>> Unit.of("deepseek-v3", "h200-sxm", dp=8, ep=8, engine="sglang").gpus
        8
        """
        of = catalogue.model(model) if isinstance(model, str) else model
        on = catalogue.gpu(gpu) if isinstance(gpu, str) else gpu
        for name, value, kind in (("model", of, Model), ("gpu", on, Gpu)):
            if not isinstance(value, kind):
                raise TypeError(f"{name} must be a {kind.__name__} or the name of one, not {value!r:.80}")
        precision = of.stored if weights is None else as_precision("weights", weights)
        share = None if memory is None else as_number("memory", memory, _MEMORY)
        layout: dict[str, Any] = {
            name: as_whole(name, value, 1, _MOST_GPUS)
            for name, value in (("tp", tp), ("ep", ep), ("dp", dp), ("pp", pp))
        }
        under = as_one_of("engine", engine, engines())
        if of.n_heads % layout["tp"]:
            sizes = ", ".join(map(str, divisors(of.n_heads, 16)))
            raise ValueError(f"tp must divide n_heads = {of.n_heads}, not {layout['tp']}: {sizes} do")
        deployed = _deployed(of, on, under, Layout(**layout), precision, "")
        _refuse_unfit(deployed)
        if on.maker not in engine_record(under).makers:
            able = ", ".join(name for name, record in engines().items() if on.maker in record.makers)
            raise ValueError(f"engine must be one of {able} on {on.name}, a GPU of {on.maker}, not {under!r}")
        cache = untold_kv(deployed) if kv is None else as_kv_precision("kv", kv)
        if not isinstance(version, str):
            raise TypeError(f"version must be text, not {version!r:.80}")
        nearest.planning_option(under, async_scheduling)
        nearest_calibration = calibration
        if nearest_calibration is None:
            nearest_calibration = nearest.select_calibration(
                of, on, precision, under, version, kv=cache, together=layout["tp"] * layout["dp"]
            )
            nearest_calibration = nearest.with_host(
                nearest_calibration, of.n_layers, nearest.plans_ahead(under, version, async_scheduling)
            )
        if expert_imbalance is not None:
            counted = as_number("expert_imbalance", expert_imbalance, AT_LEAST_ZERO)
            _refuse_unfit(replaced(deployed, imbalance=counted))
            nearest_calibration = nearest_calibration.counted(counted)
        unit = cls(
            model=of,
            gpu=on,
            weights=precision,
            kv=cache,
            engine=under,
            calibration=nearest_calibration,
            **layout,
            memory=share,
            version=version,
            drafts=as_whole("drafts", drafts, 0, MOST_DRAFTS),
            accepted=as_number("accepted", accepted, SHARE),
            expert_imbalance=expert_imbalance,
            async_scheduling=async_scheduling,
        )
        _refuse_small(unit)
        return unit

    @property
    def at_datasheet(self) -> Unit:
        """The same form at datasheet rates, nothing added. No floor: an engine that overlaps more may be faster."""
        return self.calibrated(DATASHEET)

    @property
    def floor(self) -> RooflineBound:
        """What no engine on this hardware can beat: `step_time`, `prefill_time`, `ttft`, `tpot`, `e2e` in seconds."""
        return RooflineBound(self.numbers)

    @property
    def front(self) -> Front:
        """What a first token takes beside the engine's steps, to be added to `ttft`: HTTP, tokenizer, launch."""
        return front_of(self.model, self.gpu, self.engine, self.version)

    @property
    def name(self) -> str:
        """The unit in words."""
        ahead = f", {self.drafts} drafts, {self.tokens_a_step:.3g} tokens a step" if self.drafts else ""
        parts = [f"{name} {getattr(self, name)}" for name in ("tp", "ep", "dp", "pp") if getattr(self, name) > 1]
        how = f" ({', '.join(parts)})" if len(parts) > 1 or (parts and self.tp == 1) else ""
        option = nearest.planning_option(self.engine, self.async_scheduling)
        on = f"{self.gpus} x {self.gpu.name}{how}, {self.engine}{option and ' '}{option}{ahead}"
        why = why_kv(self.kv, self.usual_kv, self.model.stored_kv, self.engine)
        return f"{self.model.name} ({self.weights}, KV {self.kv}{why and ', '}{why}) on {on}"

    @property
    def usual_kv(self) -> str:
        """The precision of the KV cache that the engine takes where nobody tells it."""
        return untold_kv(self.deployment)

    @property
    def gpus(self) -> int:
        """GPUs of the unit."""
        return self.tp * self.dp * self.pp

    @property
    def coefficients(self) -> Coefficients:
        """What the unit reaches of the datasheet."""
        return self.calibration.coefficients

    @property
    def kind(self) -> str:
        """What the model is to a calibration: "dense", "mixture of experts", "MLA" or "hybrid"."""
        return kind_of(self.model)

    def calibrated(self, calibration: Calibration) -> Unit:
        """Return the same under another calibration."""
        return replace(self, calibration=calibration, drawn=None)

    def under(self, values: CoefficientValues) -> Unit:
        """Return the same with coefficients that were drawn from its calibration; see `Calibration.draws`."""
        return replace(self, drawn=values)

    @property
    def kv_capacity(self) -> float:
        """Tokens whose KV cache fits beside the weights; where layers forget, or hold a state, in requests of 8,192."""
        return self.kv_tokens(_USUAL)

    def kv_tokens(self, length: float) -> float:
        """Return the tokens whose KV caches fit beside the weights, in requests of `length` tokens."""
        return steps.kv_tokens(self.numbers, as_number("length", length, AT_LEAST_ONE))

    def kv_bytes(self, tokens: float) -> float:
        """Return the bytes that a request of so many tokens takes on all GPUs that hold a copy of it."""
        return steps.kv_held(self.numbers, as_number("tokens", tokens, AT_LEAST_ZERO))

    def resized(self, **changes: object) -> Unit:
        """Return the same with other GPUs or precisions, named as in `of`.

        A calibration of your own is kept; one that ships is chosen anew.
        """
        asked = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in _OWN}
        own = None if self.calibration.mode in SHIPPED else self.calibration
        return Unit.of(self.model, **(asked | {"calibration": own} | changes))

    def step_time(
        self, decodes: ArrayLike, context: ArrayLike, prefill_tokens: ArrayLike = 0, cached: ArrayLike = 0
    ) -> Numbers:
        """Return the time of a step of `decodes` at a mean `context`, beside `prefill_tokens` of one prompt.

        The prompt's tokens also see `cached` tokens before them. All arguments broadcast.
        """
        B, read = as_numbers("decodes", decodes, AT_LEAST_ZERO), as_numbers("context", context, AT_LEAST_ZERO)
        new, known = (
            as_numbers("prefill_tokens", prefill_tokens, AT_LEAST_ZERO),
            as_numbers("cached", cached, AT_LEAST_ZERO),
        )
        seconds = self._step(B, read, new, known, 1.0)
        return as_scalar(self._possible(seconds, self.floor.step_time, B, read, new, known))

    def parts(self, decodes: float, context: float, prefill_tokens: float = 0, cached: float = 0) -> dict[str, float]:
        """Return what a step consists of, in seconds, by `unit.steps.PARTS`.

        Weights and matrices share it in quadrature, all others add: `step_time` of the same arguments.
        """
        each = self._parts(decodes, context, prefill_tokens, cached, 1.0)
        return {name: float(seconds) for name, seconds in zip(steps.PARTS, each, strict=True)}

    def prefill_time(self, n_in: ArrayLike, batch: ArrayLike = 1, cached: ArrayLike = 0) -> Numbers:
        """Return the time of `batch` prompts of `n_in` tokens computed at once, of each `cached` in HBM already."""
        total, prompts = as_numbers("n_in", n_in, AT_LEAST_ONE), as_numbers("batch", batch, AT_LEAST_ONE)
        known = as_numbers("cached", cached, AT_LEAST_ZERO)
        if (known >= total).any():
            raise ValueError(f"cached must be below n_in, not {cached!r:.80}")
        seconds = self._step(0.0, 0.0, total - known, known, prompts)
        return as_scalar(self._possible(seconds, self.floor.prefill_time, total, prompts, known))

    def _possible(self, seconds: Numbers, floor: Callable[..., Any], *arguments: object) -> Numbers:
        """Return no less than `floor` of the arguments: coefficients are shares, but an anchor may ask for more."""
        return np.maximum(seconds, floor(*arguments)) if self.calibration.anchors else seconds

    def _step(self, decodes: Numbers, context: Numbers, new: Numbers, cached: Numbers, prompts: Numbers) -> Numbers:
        weights, matrices, *rest = self._parts(decodes, context, new, cached, prompts)
        return step_time(weights, matrices, sum(rest))

    def _parts(self, decodes: Numbers, context: Numbers, new: Numbers, cached: Numbers, prompts: Numbers) -> list[Any]:
        spans = steps.spans_of(self.terms, context, new, cached, np.minimum)
        return steps.parts(self.terms, spans, decodes, prompts, np.maximum, np.minimum, expected_max_loads)

    @cached_property
    def deployment(self) -> Deployment:
        """The unit as plain records."""
        layout = Layout(tp=self.tp, ep=self.ep, dp=self.dp, pp=self.pp)
        return replaced(
            _deployed(self.model, self.gpu, self.engine, layout, self.weights, self.kv),
            age=nearest.engine_generation(self.engine, self.version),
            memory=self.memory or 0.0, drafts=self.drafts, accepted=self.accepted,
        )  # fmt: skip

    @cached_property
    def numbers(self) -> UnitNumbers:
        """The unit as plain numbers."""
        numbers = deployment_numbers(self.deployment, kernels())
        return replaced(numbers, synchronized_arrivals=self.synchronized_arrivals)

    @property
    def share(self) -> float:
        """Share of the GPUs' memory for weights and KV caches: the one that was named, else what the engine takes."""
        return self.numbers.memory

    def usual_share(self, tokens: float | None = None, graph: float = 0.0) -> float:
        """Return the share of the GPUs' memory that the engine takes for weights and KV caches by itself.

        It depends on the `tokens` of a step and the requests of the largest CUDA `graph` that it was told. Where these
        are left out, it takes both by itself, too. The rule is that of the versions that `data/engines.toml` names; any
        other is taken to have it, though that is not known.

        Examples
        --------
        >>> unit = Unit.of("llama-3-70b", "h100-sxm", 2, "fp8", engine="sglang")
        >>> [unit.usual_share(tokens) for tokens in (None, 2048)]
        [0.834, 0.874]
        """
        taken = self.deployment.tokens if tokens is None else tokens
        return untold_share(self.deployment, kernels(), taken, graph)

    @cached_property
    def terms(self) -> Terms:
        """Seconds of one of each cost: what all steps are summed from."""
        return steps.unit_terms(self.numbers, self.found())

    def found(self, work: Workload | None = None) -> CoefficientValues:
        """Return the coefficients as `steps` takes them, with the anchor of the lengths of `work`, else of all."""
        anchors = self.calibration.anchors
        if work is None or not anchors:
            anchor = sum(one.seconds for one in anchors) / len(anchors) if anchors else 0.0
        else:
            anchor = self.calibration.anchor(work.n_in, work.n_out)
        return (asdict(self.coefficients) if self.drawn is None else self.drawn) | {"anchor": anchor}

    def near(self, work: Workload) -> Unit:
        """Return the same with the one anchor whose lengths are nearest to those of `work`; itself without anchors."""
        if len(self.calibration.anchors) < 2:
            return self
        anchor = Anchor(work.n_in, work.n_out, self.calibration.anchor(work.n_in, work.n_out))
        return replace(self, calibration=replace(self.calibration, anchors=(anchor,)))

    def token_time(self, n_in: ArrayLike) -> Numbers:
        """Return T: the prefill of a prompt of `n_in` tokens, per token [C02]."""
        return as_scalar(self.prefill_time(n_in) / as_numbers("n_in", n_in, AT_LEAST_ONE))

    def decode_share(self, decodes: ArrayLike) -> Numbers:
        """Return z beside so many decodes: how much of one more decode's compute lengthens the step [C14]."""
        tokens = as_numbers("decodes", decodes, AT_LEAST_ZERO)
        weights, matrices, *_ = self._parts(tokens, 0, 0, 0, 0)
        return as_scalar(decode_share(weights, np.where(tokens > 0, matrices, 0)))

    def costs(self, work: Workload, read_bw: float = 0.0) -> WorkloadCosts:
        """Return the talks' numbers of a workload: t_w, TTFT(1), KV read, what else a decode adds, KV capacity.

        What is stored of the prompts lies in HBM, or is loaded with `read_bw` bytes/s where that is above 0: layer by
        layer, waiting where that takes longer than computing the rest [C05]. Storing what is new costs nothing here.
        """
        bandwidth = as_number("read_bw", read_bw, AT_LEAST_ZERO)
        if self.drafts:
            raise ValueError(
                f"drafts must be 0 for the talks' numbers, in which a step gives a token, not {self.drafts}: see plan"
            )
        load = steps.kv_loaded(self.numbers, steps.stored_tokens(work.n_in, work.alpha), bandwidth)
        each = steps.costs(self.numbers, steps.unit_terms(self.numbers, self.found(work)), work, load, 1.0, 1.0)
        sent = sent_seconds(self.numbers, self.gpu, work.n_in)
        room, places = self.kv_tokens(work.n_in + work.n_out), self.places(work)
        talks = work.n_in, work.n_out, each.t_w, each.ttft_1, each.cache_read, each.own
        return WorkloadCosts(*talks, room, places, each.step_seconds, load=each.load, groups=self.dp, sent=sent)

    @property
    def tokens_a_step(self) -> float:
        """Tokens that a step gives a request: one, and its accepted drafts."""
        return self.numbers.accepted_per_step

    def places(self, work: Workload) -> int:
        """Return the requests whose KV caches fit at once, as the engine holds them [C15].

        vLLM and SGLang let a cache grow block by block, TensorRT-LLM reserves a request's whole length.
        """
        return max_kv_seqs(self.numbers, work, engine_record(self.engine))

    def ttft(self, work: Workload, concurrency: ArrayLike) -> Numbers:
        """Return the mean time to first token with so many users at once, aggregated [C13]; without its `front`."""
        return self._seen(work, concurrency, own=1)

    def tpot(self, work: Workload, concurrency: ArrayLike) -> Numbers:
        """Return the mean time per output token with so many users at once, aggregated [C14]."""
        return self._seen(work, concurrency, own=0)

    def e2e(self, work: Workload, concurrency: ArrayLike) -> Numbers:
        """Return the mean latency of a request: its TTFT, and its TPOT for each token after the first."""
        return self.ttft(work, concurrency) + (work.n_out - 1) * self.tpot(work, concurrency)

    @property
    def score_key(self) -> ScoreKey:
        """What says which scored points are its own; see `unit.scope.extra_log_sd`."""
        return score_key_of(self.deployment)

    @property
    def extra_log_sd(self) -> float:
        """What the intervals of a calibration that ships lacked on scored points of this unit; 0 for one's own."""
        return extra_log_sd(self.score_key, nearest.known_errors()) if self.calibration.mode in SHIPPED else 0.0

    def predict(
        self,
        quantity: str,
        work: Workload,
        concurrency: ArrayLike,
        level: float = 0.9,
        *,
        known: Sequence[ErrorRow] | None = None,
    ) -> Prediction:
        """Return `quantity` ("ttft", "tpot" or "e2e") with an interval, and what was never calibrated.

        The interval holds the mean over many requests with probability `level`, as far as the calibration's
        covariance and spread go; its low end is never below the floor. It is as wide as the `known` points ask for that
        were scored with the unit's model on its GPU, see `scope.extra_log_sd`; None: those of table `served_error`.
        """
        asked = as_one_of("quantity", quantity, ("ttft", "tpot", "e2e"))
        value = getattr(self, asked)(work, concurrency)
        users = np.asarray(concurrency, dtype=np.float64)
        spread = self.calibration.spread
        own = self.calibration.spread_for(**self._inputs(work, users))
        lacked = self.extra_log_sd if known is None else extra_log_sd(self.score_key, list(known))
        wide = np.hypot(own, lacked) / spread if spread else 1.0
        within = as_number("level", level, SHARE)
        low, high = self.near(work).spread(lambda unit: getattr(unit, asked)(work, concurrency), within, wide=wide)
        # At small levels the value may lie beside the quantiles of so many draws.
        low, high = as_scalar(np.minimum(low, value)), as_scalar(np.maximum(high, value))
        mode, foreign = self.calibration.mode, self.calibration.foreign(**self._inputs(work, users))
        return Prediction(value, low, high, level, mode, self.outside(work, concurrency), foreign)

    def spread(
        self, ask: Callable[[Any], Any], level: float, draws: int = _DRAWS, wide: Numbers = 1.0
    ) -> tuple[Numbers, Numbers]:
        """Return the quantiles of some seconds, asked of the unit under draws, between which the share `level` lies.

        What the fit leaves is taken `wide` times as wide. None is below the floor's answer.
        """
        each = [ask(self.under(values)) * factors[0] ** wide for values, factors in self.calibration.draws(draws)]
        low, high = np.quantile(each, ((1 - level) / 2, (1 + level) / 2), axis=0)
        least = ask(self.floor)
        return np.maximum(low, least), np.maximum(high, least)

    def outside(self, work: Workload, concurrency: ArrayLike, places: int | None = None) -> tuple[str, ...]:
        """Return a sentence for each input that the calibration does not cover, or that the KV cache cannot hold.

        It holds `places` requests; None: those of `Unit.places`.
        """
        sentences = self.calibration.outside(**self._inputs(work, concurrency))
        sentences += tuple(map(render, too_long(self.model.name, self.model.context, steps.longest_request(work))))
        fits = self.places(work) if places is None else places
        return sentences + tuple(map(render, crowding(float(np.max(concurrency)), fits)))

    def unseen(self, work: Workload) -> list[str]:
        """Return the names of the inputs that the calibration does not cover."""
        return self.calibration.unseen(**self._inputs(work, 1))

    def draws(self, work: Workload, count: int) -> list[DrawnCoefficients]:
        """Return draws of the unit's calibration, with its anchor for a workload; see `Calibration.draws`.

        They are wider for a model, GPU or lengths that were never calibrated.
        """
        return self.calibration.draws(count, self.found(work)["anchor"], self.left(work))

    def left(self, work: Workload, users: float = 1.0) -> float:
        """Return the standard deviation of the logarithm of a step that the fit leaves.

        It is larger for a model, GPU, lengths or so many users at once that were never calibrated.
        """
        return hypot(self.calibration.widest(**self._inputs(work, users)), self.extra_log_sd)

    def _inputs(self, work: Workload, concurrency: ArrayLike) -> dict[str, ArrayLike]:
        """Return what a calibration's scope names; an engine that is told to plan unlike its points were served."""
        as_usual = self.async_scheduling == nearest.plans_ahead(self.engine, self.version)
        same = self.calibration.mode != "served" or as_usual
        unlike = "" if same else nearest.planning_option(self.engine, self.async_scheduling)
        return {
            "engine": f"{nearest.as_dated(self.engine, self.version)}{unlike and ' '}{unlike}",
            "model": self.model.name,
            "kind": self.kind,
            "gpu": self.gpu.name,
            "tp": self.tp,
            "dp": self.dp,
            "nodes": "one" if self.tp * self.dp <= joined(self.gpu) else SEVERAL,
            "weights": self.weights,
            "kv": self.kv,
            "n_in": work.n_in,
            "n_out": work.n_out,
            "concurrency": concurrency,
        }

    def _seen(self, work: Workload, concurrency: ArrayLike, own: int) -> Numbers:
        """Return the exact mean of the steps that a request sees which prefills itself (`own` = 1) or decodes (0)."""
        users, unit = as_numbers("concurrency", concurrency, AT_LEAST_ONE), self.near(work)
        context, cached = steps.context_of(work), steps.stored_tokens(work.n_in, work.alpha)
        new, floor = work.n_in - cached, steps.floor_terms(self.numbers)
        spans = steps.floor_spans(floor, context, work.n_in, new, cached, np.minimum)

        def least(decodes: Numbers, prompts: Numbers) -> Any:
            sampling, given = np.minimum(decodes + np.floor(prompts), 1.0), decodes * self.tokens_a_step
            read = steps.floor_read(floor, spans, 1.0, sampling, decodes, prompts, 0.0)
            tokens = given + prompts * new
            return np.maximum(read, steps.floor_computed(floor, spans, tokens, given, decodes, prompts, 0.0))

        def step(decodes: Numbers, prompts: Numbers) -> Numbers:
            return unit._possible(unit._step(decodes, context, new, cached, prompts), least, decodes, prompts)

        # Of accepted drafts a request needs fewer steps, and others prefill beside more of them.
        seconds = mean_seen(step, users, steps.answer_steps(self.numbers, work.n_out), own)
        return as_scalar(seconds if own else seconds / self.tokens_a_step)


def _deployed(model: Model, gpu: Gpu, engine: str, layout: Layout, weights: str, kv: str) -> Deployment:
    """Return a unit as plain records, of the engine's newest generation, without drafts."""
    return Deployment(
        model=served_model(model, layout.tp), gpu=serving_gpu(gpu), engine=engine_record(engine), layout=layout,
        called=engine, kernels=nearest.alike(engine), age=nearest.alike(engine), weights=weights, kv=kv, memory=0.0,
        tokens=usual_limits(engine, gpu).tokens, drafts=0, accepted=0.0, imbalance=-1.0,
    )  # fmt: skip


def served_model(model: Model, tp: int) -> ServedModel:
    """Return a model on so many GPUs as a plain record."""
    return ServedModel(
        name=model.name, kind=kind_of(model), stored_kv=model.stored_kv, context=model.context or 0,
        operators=operators_of(model), shape=shape_of(model, tp),
    )  # fmt: skip


def serving_gpu(gpu: Gpu) -> ServingGpu:
    """Return a GPU as a plain record."""
    return ServingGpu(
        name=gpu.name, like=like(gpu), maker=gpu.maker, generation=gpu.generation, joined=joined(gpu),
        watts=gpu.tdp or 0.0, rates=rates_of(gpu),
    )  # fmt: skip


class UnfitError(ValueError):
    """A deployment that cannot be; `key` is that of its sentence, which says why."""

    def __init__(self, key: str, said: str) -> None:
        super().__init__(said)
        self.key = key


def _refuse_unfit(deployed: Deployment) -> None:
    """Raise an error for a precision or a layout with which the model cannot be served."""
    for part in unfit(deployed):
        raise UnfitError(part["key"], f"{part['field']} {render(part)}")


def _refuse_small(unit: Unit) -> None:
    """Raise ValueError for GPUs too few for the weights."""
    model, gpu, weights, tp, dp, pp = unit.model, unit.gpu, unit.weights, unit.tp, unit.dp, unit.pp
    memory = unit.share
    each = memory * (gpu.driver_bytes or gpu.hbm_bytes) - unit.numbers.workspace
    copied = (dp - 1) * (model.weight_bytes(weights) - model.routed_bytes(weights))
    needed, room = model.loaded_bytes(weights) + copied, unit.gpus * each
    if each <= 0 and unit.memory is None:
        raise ValueError(
            f"memory must be named for {unit.engine} with dp {dp} on {gpu.name}: by itself it leaves nothing for "
            "weights, but keeps all for the largest CUDA graph of its groups"
        )
    if each <= 0:
        own = unit.numbers.workspace
        raise ValueError(
            f"memory must be more than {digits(own / (gpu.driver_bytes or gpu.hbm_bytes))} on {gpu.name}, not "
            f"{memory:g}: {unit.engine} itself takes {digits(own / 1e9)} GB"
        )
    if needed >= room:
        least = -(-model.loaded_bytes(weights) // each)
        # Of the sizes that exist: those that divide the heads.
        least = min((n for n in range(1, model.n_heads + 1) if model.n_heads % n == 0 and n >= least), default=least)
        raise UnfitError(
            TOO_SMALL,
            f"tp must be at least {least:g} for {model.name} in {weights} on {gpu.name} at {memory:.0%} of its memory, "
            f"not {tp * pp}"
            + (f" (with dp {dp}, whose groups hold copies of attention)" if dp > 1 else "")
            + f": weights of {digits(needed / 1e9)} GB, room for {digits(room / 1e9)} GB",
        )
