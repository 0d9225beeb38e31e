"""Models and GPUs by name, and the user's own: what a cost formula needs to know about each.

Everything is in SI units: bytes (1 GB = 1e9), bytes per second, dense FLOP/s without sparsity.
Biases, norms and learned positions are left out of every parameter count: 0.1 % of a model here at most.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd

from inference_math.catalogue.huggingface import model_fields
from inference_math.checks import ANY_POSITIVE, as_numbers, as_one_of, as_whole
from inference_math.evidence import load

__all__ = ["GPUS", "MODELS", "PRECISIONS", "Gpu", "Model", "as_precision", "bytes_per_value", "gpu", "model"]

PRECISIONS = ("bf16", "fp8")
_BYTES = {"bf16": 2, "fp8": 1, "fp16": 2}


def as_precision(argument: str, value: Any) -> str:
    """Return "bf16" or "fp8"; "fp16" is "bf16", which it equals in bytes and in tensor-core rate."""
    precision = as_one_of(argument, value, _BYTES)
    return "bf16" if precision == "fp16" else precision


def bytes_per_value(precision: str) -> int:
    """Return the bytes of one weight or cached value: 2 for bf16 (fp16), 1 for fp8."""
    return _BYTES[as_precision("precision", precision)]


@dataclass(frozen=True)
class Model:
    """The matrices of a decoder-only transformer with full causal attention.

    `attention` is "gqa" (of which MHA and MQA are the extremes `n_kv_heads` = `n_heads` and 1) or "mla".
    `gated` tells a SwiGLU FFN of three matrices from a plain one of two. `n_experts` > 0 makes a mixture of
    experts, whose first `n_dense_layers` layers have a dense FFN of `d_ff`. For MLA, `head_size` is that of
    a query, `qk_nope` + `qk_rope`, and `q_lora` = 0 means an uncompressed query. Sizes are counts.

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
    source: str = "the user"
    url: str = ""

    def __post_init__(self) -> None:
        as_one_of("attention", self.attention, ("gqa", "mla"))
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
    def from_config(cls, config: str | Path | Mapping[str, Any], name: str | None = None) -> Model:
        """Read a Hugging Face `config.json`, or its content as a mapping.

        Accepted are the model types llama, mistral, qwen2, qwen3, opt, gpt_neox, mixtral, qwen2_moe,
        qwen3_moe, deepseek_v2, deepseek_v3 and kimi_k2. A missing field is filled in where transformers
        derives it from others (llama without `num_key_value_heads` has MHA), never from a default size.
        Multi-token prediction layers and quantisation settings are ignored.

        Raises
        ------
        ValueError
            Naming file and field: missing or bad fields, an unknown `model_type`, and what is not
            modelled: sliding-window, sparse, linear and hybrid layers, encoders, multimodal models.
        """
        if isinstance(config, Mapping):
            content, file = config, "config"
        else:
            content, file = _parsed(Path(config), json.loads), str(config)
        stated = model_fields(content, file)
        try:
            return cls(name=name or str(content.get("_name_or_path") or file), source=file, **stated)
        except ValueError as error:
            raise ValueError(f"{file}: {error}") from error

    @property
    def d_att(self) -> float:
        """Query heads × head size: a token that attends to N costs 4·`n_layers`·`d_att`·N FLOP [C02].

        For MLA the mean of query width (scores) and value width (output), keys and values expanded.
        """
        if self.attention == "mla":
            return self.n_heads * (self.qk_nope + self.qk_rope + self.v_head) / 2
        return float(self.n_heads * self.head_size)

    @property
    def decode_flops(self) -> float:
        """FLOPs of one decoding token for one token before it, in one layer.

        With grouped queries 4·`d_att`, as in a prompt. MLA decodes in the latent space: scores of latent + rope, values
        of the latent, in every head.
        """
        if self.attention == "mla":
            return 2.0 * self.n_heads * (2 * self.kv_lora + self.qk_rope)
        return 4 * self.d_att

    @property
    def group_size(self) -> float:
        """Query heads per KV head, g [C19]: 1 for MHA, `n_heads` for MQA.

        For MLA, whose heads share one latent: the g for which C19 holds, 2·`d_att` / (latent + rope).
        """
        return 2 * self.d_att / self._kv_values

    @property
    def n_params(self) -> int:
        """``|model|``: parameters of the layers' matrices that one token uses [C02]; no embedding, no LM head."""
        return self._matrices(self.n_active_experts)

    @property
    def shape(self) -> dict[str, float]:
        """What the cost formulas of `theory.tokens` take of a model: n_params, n_layers and d_att, by name."""
        return {"n_params": self.n_params, "n_layers": self.n_layers, "d_att": self.d_att}

    @property
    def n_params_total(self) -> int:
        """As `n_params`, with every expert: what lies in memory."""
        return self._matrices(self.n_experts)

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

    def weight_bytes(self, precision: str) -> int:
        """Return the bytes of all weights in memory: layers in `precision`, embedding and LM head in 2 bytes.

        FP8 checkpoints quantise the layers' matrices only; vLLM and TensorRT-LLM keep the rest as it is.
        """
        vocabulary = self.vocab_params * bytes_per_value("bf16")
        return self.n_params_total * bytes_per_value(precision) + vocabulary

    def kv_copies(self, tp: int) -> float:
        """Return how often `tp` GPUs hold each token's KV cache: more than once if they outnumber the KV heads."""
        return float(tp) if self.attention == "mla" else max(1.0, tp / self.n_kv_heads)

    def kv_token(self, precision: str) -> int:
        """Return ``|KV_token|``, the KV-cache bytes of one token in all layers [C01].

        2·L·KV heads·head size·bytes, which covers MHA, GQA and MQA; (latent + rope)·L·bytes for MLA.
        """
        return self.n_layers * self._kv_values * bytes_per_value(precision)

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
        if self.n_experts or self.attention == "mla":
            raise ValueError(f"gemm_shapes are defined for dense models with GQA, not for {self.name!r} (MoE or MLA)")
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

    @property
    def _kv_values(self) -> int:
        """Cached values of one token in one layer."""
        return self.kv_lora + self.qk_rope if self.attention == "mla" else 2 * self.n_kv_heads * self.head_size

    def _matrices(self, experts: int) -> int:
        """Parameters of all layers' matrices with `experts` routed experts in each MoE layer."""
        dense = self.n_dense_layers if self.n_experts else self.n_layers
        router = self.d_model * self.n_experts
        moe = router + (experts + self.n_shared_experts) * self._ffn(self.d_expert)
        return self.n_layers * self._attention() + dense * self._ffn(self.d_ff) + (self.n_layers - dense) * moe

    def _ffn(self, width: int) -> int:
        return (3 if self.gated else 2) * self.d_model * width

    def _attention(self) -> int:
        if self.attention == "gqa":
            return 2 * self.d_model * self.head_size * (self.n_heads + self.n_kv_heads)
        query = self.n_heads * (self.qk_nope + self.qk_rope)
        down = self.d_model * (self.q_lora + self.kv_lora + self.qk_rope)
        up = (self.q_lora or self.d_model) * query + self.kv_lora * self.n_heads * (self.qk_nope + self.v_head)
        return down + up + self.n_heads * self.v_head * self.d_model


@dataclass(frozen=True)
class Gpu:
    """The datasheet rates of one GPU: upper bounds, which measured efficiencies scale down.

    `bf16_flops` and `fp8_flops` (None where there is none) in FLOP/s, dense; `hbm_bw` in byte/s; `hbm_bytes`
    the marketed capacity at 1e9 bytes per GB, 6 to 7 % below what the driver reports, which leaves room for
    context and buffers; `link_bw` (GPU to GPU) and `pcie_bw` in byte/s per GPU and per direction.
    """

    name: str
    bf16_flops: float
    hbm_bw: float
    hbm_bytes: float
    link_bw: float
    pcie_bw: float
    fp8_flops: float | None = None
    title: str = ""
    source: str = "the user"
    url: str = ""
    convention: str = ""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if "float" in str(field.type) and value is not None:
                object.__setattr__(self, field.name, float(as_numbers(field.name, value, ANY_POSITIVE)))
            elif field.type == "str" and not isinstance(value, str):
                raise TypeError(f"{field.name} must be text, not {value!r:.80}")

    @classmethod
    def from_toml(cls, path: str | Path) -> Gpu:
        """Read one GPU from a TOML file whose keys are the names above; `source` defaults to the path.

        Raises
        ------
        ValueError
            Naming file and key: one that is unknown, missing, no number, not finite or not positive.
        """
        table = {"source": str(path)} | _parsed(Path(path), tomllib.loads)
        try:
            for key in table:
                as_one_of("key", key, [field.name for field in fields(cls)])
            missing = [f.name for f in fields(cls) if f.default is MISSING and f.name not in table]
            if missing:
                raise ValueError(f"missing: {', '.join(missing)}")
            return cls(**table)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path}: {error}") from error

    def flops(self, precision: str) -> float:
        """Return the dense tensor-core rate F in FLOP/s; FP8 on a GPU without it is refused."""
        if as_precision("precision", precision) == "bf16":
            return self.bf16_flops
        if self.fp8_flops is None:
            raise ValueError(f"precision must be bf16 on {self.name}, not {precision!r} (not modelled: no FP8 unit)")
        return self.fp8_flops

    def ridge(self, precision: str) -> float:
        """Return F/BW in FLOP/byte: the arithmetic intensity below which HBM is the bottleneck [C18]."""
        return self.flops(precision) / self.hbm_bw


T = TypeVar("T", Model, Gpu)


class _Catalogue(Mapping[str, T]):
    """Entries of a table of data/ by name, read at the first use; not to be changed."""

    def __init__(self, table: str, entry: type[T]) -> None:
        self._table = table
        self._entry: type[T] = entry

    @cached_property
    def _entries(self) -> dict[str, T]:
        known = {field.name for field in fields(self._entry)}
        records = load(self._table).frame.to_dict("records")
        rows = [{str(k): v for k, v in row.items() if k in known and not pd.isna(v)} for row in records]
        return {row["name"]: self._entry(**row) for row in rows}

    def __getitem__(self, name: str) -> T:
        if name not in self._entries:
            raise KeyError(f"{name!r} is none of the {self._table}: {', '.join(self)}")
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


MODELS: Mapping[str, Model] = _Catalogue("models", Model)
GPUS: Mapping[str, Gpu] = _Catalogue("gpus", Gpu)


def model(name: str) -> Model:
    """Return a model of `data/models.csv`; an unknown name raises ValueError with those that would do."""
    return MODELS[as_one_of("model", name, MODELS)]


def gpu(name: str) -> Gpu:
    """Return a GPU of `data/gpus.csv`; an unknown name raises ValueError with those that would do."""
    return GPUS[as_one_of("gpu", name, GPUS)]


def _parsed(path: Path, parse: Callable[[str], Any]) -> dict[str, Any]:
    try:
        content = parse(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path} must hold an object of named fields, not {type(content).__name__}")
    return content


def _divides(argument: str, value: int, of: str, total: int) -> None:
    if total % value:
        raise ValueError(f"{argument} must divide {of} = {total}, not {value}")
