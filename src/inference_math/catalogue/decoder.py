"""A decoder-only language model: its sizes, what its layers are made of, what each of its parts costs in memory.

Sizes are counts, bytes are SI (1 GB = 1e9). Biases, norms and learned positions are left out of every parameter count:
0.1 % of a model here at most.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from inference_math.catalogue.files import parsed_file, strict
from inference_math.catalogue.huggingface import model_fields
from inference_math.catalogue.layers import Cache, Ffn, Heads, Latent, Layer, grouped, latent, mixture, plain_ffn
from inference_math.catalogue.precisions import FOUR_BITS, STATE_BYTES, as_kv_precision, as_precision, bytes_per_value
from inference_math.evidence.checks import AT_LEAST_ZERO, Numbers, as_numbers, as_one_of, as_whole

__all__ = ["GROUPS", "Model"]

GROUPS = ("attention", "ffn", "experts")
_MXFP4_BLOCK = 256  # values, to a multiple of which kernels pad what an expert takes in
_MALFORMED = (TypeError, AttributeError, LookupError, ArithmeticError, RecursionError)


@dataclass(frozen=True)
class Model:
    """The matrices of a decoder-only language model.

    `attention` is "gqa" (of which MHA and MQA are the extremes `n_kv_heads` = `n_heads` and 1) or "mla".
    `gated` tells a SwiGLU FFN of three matrices from a plain one of two. `n_experts` > 0 makes a mixture of
    experts, whose first `n_dense_layers` layers have a dense FFN of `d_ff`. For MLA, `head_size` is that of
    a query, `qk_nope` + `qk_rope`, and `q_lora` = 0 means an uncompressed query. Sizes are counts.

    Where layers differ in more than that, `stack` says what each is made of, and the sizes above are those of the
    layers with full attention. `context` is the longest sequence (0: not stated), `stored` the precision of the
    checkpoint, `stored_kv` that of the KV cache which it asks for, `fine` which of `GROUPS` are in four bits where the
    weights are; the others are then in `coarse`.
    `blocks` tells whether FP8 has a scale for each block of 128 x 128 weights; else one for a tensor, or a row.

    Raises
    ------
    ValueError
        For sizes that are no whole numbers >= 1 or do not fit each other.
    """

    name: str
    n_layers: int
    d_model: int
    n_heads: int
    n_kv_heads: int
    head_size: int
    d_ff: int
    vocab: int
    gated: bool = True
    tied_embeddings: bool = False
    attention: str = "gqa"
    n_experts: int = 0
    n_active_experts: int = 0
    d_expert: int = 0
    n_shared_experts: int = 0
    n_dense_layers: int = 0
    q_lora: int = 0
    kv_lora: int = 0
    qk_nope: int = 0
    qk_rope: int = 0
    v_head: int = 0
    stack: tuple[Layer, ...] = ()
    context: int = 0
    stored: str = "bf16"
    stored_kv: str = "bf16"
    fine: tuple[str, ...] = ()
    coarse: str = "bf16"
    blocks: bool = False
    source: str = "the user"
    url: str = ""

    def __post_init__(self) -> None:
        as_one_of("attention", self.attention, ("gqa", "mla"))
        as_precision("stored", self.stored)
        as_kv_precision("stored_kv", self.stored_kv)
        as_one_of("coarse", self.coarse, ("bf16", "fp8"))
        for group in self.fine:
            as_one_of("fine", group, GROUPS)
        positive = ["n_active_experts", "d_expert"] if self.n_experts else []
        positive += ["kv_lora", "qk_nope", "qk_rope", "v_head"] if self.attention == "mla" else []
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type == "int":
                low = 0 if field.default == 0 and field.name not in positive else 1
                # The checked int replaces what a table or a JSON file had (80.0, numpy.int64).
                object.__setattr__(self, field.name, as_whole(field.name, value, low))
            elif field.type == "bool" and not isinstance(value, bool):
                raise TypeError(f"{field.name} must be True or False, not {value!r:.80}")
        _divides("n_kv_heads", self.n_kv_heads, "n_heads", self.n_heads)
        for part, whole in (("n_active_experts", "n_experts"), ("n_dense_layers", "n_layers")):
            if getattr(self, part) > getattr(self, whole):
                raise ValueError(f"{part} must be at most {whole}, not {getattr(self, part)}")

    @classmethod
    def from_config(cls, config: str | Path | Mapping[str, object], name: str | None = None) -> Model:
        """Read a Hugging Face `config.json`, or its content as a mapping.

        Accepted are the families of `huggingface.FAMILIES`, also as the language part of a multimodal model. A
        missing field is filled in where transformers derives it from others (llama without `num_key_value_heads`
        has MHA), never from a default size. `quantization_config` sets `stored` and `fine`. Layers that draft tokens
        (multi-token prediction) and vision encoders are left out.

        Raises
        ------
        ValueError
            Naming file and field: missing or bad fields, an unknown `model_type`, and what is not
            modelled: encoders, layers that share a KV cache, other quantisations.
        """
        if isinstance(config, Mapping):
            content, file = config, "config"
        else:
            content, file = parsed_file(Path(config), strict), str(config)
            beside = Path(config).with_name("hf_quant_config.json")
            if beside.is_file() and "quantization_config" not in content:  # where ModelOpt says how it quantised
                content["quantization_config"] = parsed_file(beside, strict).get("quantization")
        try:
            stated = model_fields(content, file)
        except _MALFORMED as error:  # a list where an object belongs, text where a number does
            raise ValueError(f"{file}: cannot be read as a configuration: {error!r:.200}") from error
        try:
            return cls(name=name or str(content.get("_name_or_path") or file), source=file, **stated)
        except ValueError as error:
            raise ValueError(f"{file}: {error}") from error

    @cached_property
    def layers(self) -> tuple[Layer, ...]:
        """What the layers are made of, and how many there are of each kind."""
        if self.stack:
            return self.stack
        if self.attention == "mla":
            sizes = Latent(self.q_lora, self.kv_lora, self.qk_nope, self.qk_rope, self.v_head)
            attention = latent(self.d_model, self.n_heads, sizes)
        else:
            attention = grouped(self.d_model, Heads(self.n_heads, self.n_kv_heads, self.head_size))
        dense = plain_ffn(self.d_model, self.d_ff, gated=self.gated)
        if not self.n_experts:
            return (Layer(self.n_layers, attention, dense),)
        shared = self.n_shared_experts * self.d_expert
        experts = mixture(
            self.d_model, self.n_experts, self.n_active_experts, self.d_expert, shared_width=shared, gated=self.gated
        )
        first = (Layer(self.n_dense_layers, attention, dense),) if self.n_dense_layers else ()
        return (*first, Layer(self.n_layers - self.n_dense_layers, attention, experts))

    @cached_property
    def caches(self) -> dict[Cache, int]:
        """What layers keep of each token, each with how many layers there are that keep it."""
        counts: dict[Cache, int] = {}
        for layer in self.layers:
            for cache in layer.attention.caches:
                counts[cache] = counts.get(cache, 0) + layer.count
        return counts

    @property
    def d_att(self) -> float:
        """Query heads × head size: a token that attends to N costs 4·`n_layers`·`d_att`·N FLOP [C02].

        For MLA the mean of query width (scores) and value width (output), keys and values expanded. Of layers that
        differ the mean, whatever the reach of each.
        """
        return self._over_caches(lambda cache: cache.width) / self.n_layers

    @property
    def decode_flops(self) -> float:
        """FLOPs of one decoding token for one token before it, in one layer on average.

        With grouped queries 4·`d_att`, as in a prompt. MLA decodes in the latent space: scores of latent + rope, values
        of the latent, in every head.
        """
        return self._over_caches(lambda cache: cache.decode_flops) / self.n_layers

    @property
    def group_size(self) -> float:
        """Query heads per KV head, g [C19]: 1 for MHA, `n_heads` for MQA.

        For MLA, whose heads share one latent: the g for which C19 holds, 2·`d_att` / (latent + rope).
        """
        return 2 * self.d_att * self.n_layers / self.kv_values

    @property
    def n_params(self) -> int:
        """``|model|``: parameters of the layers' matrices that one token uses [C02]; no embedding, no LM head."""
        return sum(self.group_params.values())

    @property
    def group_params(self) -> dict[str, int]:
        """Parameters that one token uses, by `GROUPS`: attention; dense FFNs, shared experts, routers; experts."""
        return {
            "attention": int(self._over_layers(lambda layer: layer.attention.params)),
            "ffn": int(self._over_layers(lambda layer: layer.ffn.shared)),
            "experts": int(self._over_layers(lambda layer: layer.ffn.active * layer.ffn.expert)),
        }

    @property
    def routed_params(self) -> int:
        """Parameters of all routed experts."""
        return int(self._over_layers(lambda layer: layer.ffn.experts * layer.ffn.expert))

    @property
    def is_mixture(self) -> bool:
        """Whether some layers have routed experts."""
        return self.routed_params > 0

    @property
    def shape(self) -> dict[str, float]:
        """What the cost formulas of `theory.tokens` take of a model: n_params, n_layers and d_att, by name."""
        return {"n_params": self.n_params, "n_layers": self.n_layers, "d_att": self.d_att}

    @property
    def n_params_total(self) -> int:
        """As `n_params`, with every expert: what lies in memory."""
        return self.n_params - self.group_params["experts"] + self.routed_params

    @property
    def lm_head_params(self) -> int:
        """Parameters of the LM head, used once per generated token."""
        return self.d_model * self.vocab

    @property
    def embedding_params(self) -> int:
        """Parameters of the token embedding, of which a token reads one row."""
        return self.d_model * self.vocab

    @property
    def vocab_params(self) -> int:
        """Parameters of embedding and LM head together: one matrix where they are tied."""
        return self.embedding_params + (0 if self.tied_embeddings else self.lm_head_params)

    def precisions(self, weights: str) -> dict[str, str]:
        """Return the precision of each of `GROUPS` where the weights are said to be in `weights`.

        Four bits mean what checkpoints in four bits keep in them: all matrices of a dense model, the routed experts of
        a mixture, or what `fine` says. The rest is in `coarse`.
        """
        precision = as_precision("weights", weights)
        if precision not in FOUR_BITS:
            return dict.fromkeys(GROUPS, precision)
        fine = self.fine or (("experts",) if self.is_mixture else GROUPS)
        return {group: precision if group in fine else self.coarse for group in GROUPS}

    def weight_bytes(self, precision: str) -> float:
        """Return the bytes of all weights in memory: layers in `precision`, embedding and LM head in 2 bytes.

        Quantised checkpoints quantise the layers' matrices only; engines keep the rest as it is.
        """
        params = self.group_params | {"experts": self.routed_params}
        held = sum(params[group] * bytes_per_value(each) for group, each in self.precisions(precision).items())
        return held + self.vocab_params * bytes_per_value("bf16")

    def loaded_bytes(self, precision: str) -> float:
        """Return the bytes that the weights take of the GPUs: those of the checkpoint, experts in MXFP4 padded."""
        padded = self.expert_padding if self.precisions(precision)["experts"] == "mxfp4" else 1.0
        return self.weight_bytes(precision) + (padded - 1) * self.routed_bytes(precision)

    @property
    def expert_padding(self) -> float:
        """By how much kernels for MXFP4 lengthen an expert: its input to a multiple of 256 values.

        vLLM 0.14 logs 64.38 GiB for gpt-oss-120b on an H100, whose checkpoint has 60.8; other kernels pad the other
        side, too (Marlin 65.97 GiB, those of Blackwell more).
        """
        return -(-self.d_model // _MXFP4_BLOCK) * _MXFP4_BLOCK / self.d_model

    def routed_bytes(self, precision: str) -> float:
        """Return the bytes of all routed experts in a precision; see `precisions`."""
        return self.routed_params * bytes_per_value(self.precisions(precision)["experts"])

    def kv_copies(self, tp: int) -> float:
        """Return how often `tp` GPUs hold each token's KV cache: more than once if they outnumber the KV heads."""
        size = self._over_caches(lambda cache: cache.size(2))
        copied = self._over_caches(lambda cache: cache.size(2) * max(1.0, tp / cache.heads))
        return copied / size if size else 1.0

    def kv_token(self, precision: str) -> float:
        """Return ``|KV_token|``, the KV-cache bytes of one token in all layers [C01].

        2·L·KV heads·head size·bytes, which covers MHA, GQA and MQA; (latent + rope)·L·bytes for MLA. Of windows, as
        long as the token is inside; of a state, nothing. See `kv_bytes`.
        """
        size = bytes_per_value(as_kv_precision("precision", precision))
        return self._over_caches(lambda cache: cache.size(size))

    def kv_bytes(self, tokens: ArrayLike, precision: str) -> Numbers:
        """Return the bytes that a request of so many tokens holds: windows fill up, a state is always there.

        An array for an array of tokens. With full attention `kv_token` for each.
        """
        held = as_numbers("tokens", tokens, AT_LEAST_ZERO)
        size = bytes_per_value(as_kv_precision("precision", precision))
        total = np.full(held.shape, float(STATE_BYTES * self.state_values))
        for cache, layers in self.caches.items():
            kept = np.minimum(held, cache.reach) if cache.evicts else held
            total = total + layers * cache.size(size) * kept
        return float(total) if np.ndim(tokens) == 0 else total

    @property
    def kv_values(self) -> int:
        """Cached values of one token in all layers."""
        return int(self._over_caches(lambda cache: cache.kept))

    @property
    def state_values(self) -> int:
        """Values that a request holds in all layers, however long it is: states of linear attention."""
        return int(self._over_layers(lambda layer: layer.attention.state))

    def heads_on(self, tp: int) -> tuple[int, int]:
        """Return (query heads, KV heads) on one of `tp` GPUs; KV heads fewer than `tp` are replicated."""
        return self.n_heads // tp, max(self.n_kv_heads // tp, 1)

    def gemm_shapes(self, tp: int = 1) -> dict[str, tuple[int, int]]:
        """Return (n, k) of the matrix products on one of `tp` GPUs, fused as vLLM and TensorRT-LLM do.

        A product of M tokens costs 2·M·n·k FLOP and reads n·k weights. All occur once per layer but
        "lm_head", which occurs once per step. KV heads fewer than `tp` are replicated, the vocabulary is
        padded to a multiple of `tp`.

        Raises
        ------
        ValueError
            If `tp` does not divide the heads or the FFN; for MoE and MLA, whose products are others.
        """
        if self.stack or self.n_experts or self.attention == "mla":
            raise ValueError(
                f"gemm_shapes are defined for dense models with GQA throughout, not for {self.name!r} (MoE, MLA, "
                "or layers that differ)"
            )
        tp = as_whole("tp", tp)
        _divides("tp", tp, "n_heads", self.n_heads)
        _divides("tp", tp, "d_ff", self.d_ff)
        if self.n_kv_heads % tp and tp % self.n_kv_heads:
            raise ValueError(f"tp must divide n_kv_heads = {self.n_kv_heads} or be a multiple of it, not {tp}")
        heads, kv_heads = self.heads_on(tp)
        d_ff = self.d_ff // tp
        return {
            "qkv": ((heads + 2 * kv_heads) * self.head_size, self.d_model),
            "attention_out": (self.d_model, heads * self.head_size),
            **({"gate_up": (2 * d_ff, self.d_model)} if self.gated else {"up": (d_ff, self.d_model)}),
            "down": (self.d_model, d_ff),
            "lm_head": (-(-self.vocab // tp), self.d_model),
        }

    def _over_layers(self, of: Callable[[Layer], float]) -> float:
        return sum(layer.count * of(layer) for layer in self.layers)

    def _over_caches(self, of: Callable[[Cache], float]) -> float:
        return sum(layers * of(cache) for cache, layers in self.caches.items())

    @property
    def expert_ffn(self) -> Ffn | None:
        """The routed FFN; None for a dense model. All mixtures here have one size of expert."""
        return next((layer.ffn for layer in self.layers if layer.ffn.experts), None)


def _divides(argument: str, value: int, of: str, total: int) -> None:
    if total % value:
        raise ValueError(f"{argument} must divide {of} = {total}, not {value}")
