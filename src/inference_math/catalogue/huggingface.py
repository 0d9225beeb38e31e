"""Reading a Hugging Face `config.json`: what it states, what it leaves to its model type, what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from inference_math.checks import as_one_of, as_whole

__all__ = ["model_fields"]


@dataclass(frozen=True)
class _Family:
    """What a Hugging Face `model_type` leaves unsaid.

    `needs` are fields that may be null but not missing: transformers would then put in a number of its own.
    """

    needs: tuple[str, ...] = ("num_key_value_heads",)
    gated: bool = True
    tied: bool = False
    d_ff: str = "intermediate_size"
    n_experts: str | None = None
    mla: bool = False


_DEEPSEEK = _Family(
    needs=("q_lora_rank", "n_shared_experts", "first_k_dense_replace"), n_experts="n_routed_experts", mla=True
)
_FAMILIES = {
    "llama": _Family(needs=()),
    "mistral": _Family(),
    "qwen2": _Family(),
    "qwen3": _Family(needs=("num_key_value_heads", "head_dim")),
    "opt": _Family(needs=(), gated=False, tied=True, d_ff="ffn_dim"),
    "gpt_neox": _Family(needs=(), gated=False),
    "mixtral": _Family(n_experts="num_local_experts"),
    "qwen2_moe": _Family(needs=("num_key_value_heads", "shared_expert_intermediate_size"), n_experts="num_experts"),
    "qwen3_moe": _Family(needs=("num_key_value_heads", "head_dim"), n_experts="num_experts"),
    "deepseek_v2": _DEEPSEEK,
    "deepseek_v3": _DEEPSEEK,
    "kimi_k2": _DEEPSEEK,
}

_NOT_MODELLED = {
    "text_config": "a nested (multimodal) configuration; pass its language part as a mapping",
    "is_encoder_decoder": "encoder-decoder models",
    "hybrid_override_pattern": "hybrid layers",
    "attn_layer_period": "hybrid layers",
    "full_attention_interval": "linear attention",
    "linear_attn_config": "linear attention",
    "mamba_d_state": "Mamba layers",
    "mamba_num_heads": "Mamba layers",
    "index_topk": "sparse attention",
    "attention_chunk_size": "chunked attention",
    "block_configs": "layers that differ from each other",
}


@dataclass(frozen=True)
class _Config:
    """A configuration whose complaints name the file and the field; null counts as missing."""

    content: Mapping[str, Any]
    file: str

    def get(self, field: str, default: Any = None) -> Any:
        value = self.content.get(field)
        return default if value is None else value

    def whole(self, field: str, default: int | None = None, low: int = 1) -> int:
        value = self.get(field, default)
        if value is None:
            raise ValueError(f"{self.file}: {field} is missing")
        try:
            return as_whole(f"{self.file}: {field}", value, low)
        except TypeError as error:
            raise ValueError(str(error)) from error

    def refuse(self, refused: bool, field: str, why: str) -> None:
        if refused:
            raise ValueError(f"{self.file}: {field} = {self.get(field)!r:.80}: {why}")


def model_fields(content: Mapping[str, Any], file: str) -> dict[str, Any]:
    """Return the fields of `catalogue.Model` that a configuration states, but for its name.

    `file` is what complaints name. Raises `ValueError` as `Model.from_config` says.
    """
    config = _Config(content, file)
    family = _family(config)
    d_model, heads = config.whole("hidden_size"), config.whole("num_attention_heads")
    if not family.mla and config.get("head_dim") is None:
        config.refuse(d_model % heads != 0, "num_attention_heads", f"must divide hidden_size = {d_model}")
    tied = config.get("tie_word_embeddings", family.tied)
    config.refuse(not isinstance(tied, bool), "tie_word_embeddings", "must be true or false")
    return {
        "n_layers": config.whole("num_hidden_layers"),
        "d_model": d_model,
        "n_heads": heads,
        "n_kv_heads": config.whole("num_key_value_heads", heads),
        "d_ff": config.whole(family.d_ff),
        "vocab": config.whole("vocab_size"),
        "gated": family.gated,
        "tied_embeddings": tied,
        **(_mla(config) if family.mla else {"head_size": config.whole("head_dim", d_model // heads)}),
        **(_experts(config, family.n_experts) if family.n_experts else {}),
    }


def _family(config: _Config) -> _Family:
    """Return what is known of the model type, unless `config` asks for something that is not modelled."""
    for field, what in _NOT_MODELLED.items():
        config.refuse(bool(config.get(field)), field, f"not modelled: {what}")
    others = sorted({str(kind) for kind in config.get("layer_types", ())} - {"full_attention"})
    config.refuse(bool(others), "layer_types", f"not modelled: {', '.join(others)}")
    windowed = config.get("sliding_window") is not None and config.get("use_sliding_window") is not False
    config.refuse(windowed, "sliding_window", "not modelled: sliding-window attention")
    # OPT-350m alone projects its embeddings, by matrices that belong to no layer.
    projected = config.get("word_embed_proj_dim") not in (None, config.get("hidden_size"))
    config.refuse(projected, "word_embed_proj_dim", "not modelled: other than hidden_size")
    family = _FAMILIES[as_one_of(f"{config.file}: model_type", str(config.get("model_type", "")), _FAMILIES)]
    for field in family.needs:
        if field not in config.content:
            raise ValueError(f"{config.file}: {field} is missing")
    return family


def _mla(config: _Config) -> dict[str, Any]:
    nope, rope = config.whole("qk_nope_head_dim"), config.whole("qk_rope_head_dim")
    return {
        "attention": "mla",
        "head_size": nope + rope,
        "q_lora": config.whole("q_lora_rank", 0, low=0),
        "kv_lora": config.whole("kv_lora_rank"),
        "qk_nope": nope,
        "qk_rope": rope,
        "v_head": config.whole("v_head_dim"),
    }


def _experts(config: _Config, n_experts: str) -> dict[str, int]:
    """Return the sizes of a mixture of experts; which layers are dense does not matter, only how many."""
    for field in ("moe_layer_freq", "decoder_sparse_step"):
        config.refuse(config.get(field, 1) != 1, field, "not modelled: other than 1")
    # Mixtral has no second size: there an expert is a whole FFN.
    size = "intermediate_size" if n_experts == "num_local_experts" else "moe_intermediate_size"
    d_expert = config.whole(size)
    # Qwen states the width of all shared experts together, DeepSeek their number.
    shared = config.whole("shared_expert_intermediate_size", 0, low=0)
    config.refuse(shared % d_expert != 0, "shared_expert_intermediate_size", f"must be a multiple of {d_expert}")
    dense = len(config.get("mlp_only_layers", ()))
    return {
        "n_experts": config.whole(n_experts),
        "n_active_experts": config.whole("num_experts_per_tok"),
        "d_expert": d_expert,
        "n_shared_experts": config.whole("n_shared_experts", shared // d_expert, low=0),
        "n_dense_layers": config.whole("first_k_dense_replace", dense, low=0),
    }
