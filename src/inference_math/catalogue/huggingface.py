"""Reading a Hugging Face `config.json`: what it states, what it leaves to its model type, what is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from inference_math.catalogue.hybrids import HYBRIDS
from inference_math.catalogue.quantisation import cached, in_blocks, stored
from inference_math.catalogue.stated import Config
from inference_math.evidence.checks import as_one_of

__all__ = ["FAMILIES", "model_fields"]


@dataclass(frozen=True)
class _Family:
    """What a Hugging Face `model_type` leaves unsaid.

    `needs` are fields that may be null but not missing: transformers would then put in a number of its own. `d_expert`
    names the width of an expert, `active` the experts of a token, `shared` the shared ones, `dense` the dense layers
    before them.
    """

    needs: tuple[str, ...] = ("num_key_value_heads",)
    gated: bool = True
    tied: bool = False
    d_ff: str = "intermediate_size"
    n_experts: str | None = None
    d_expert: str = "moe_intermediate_size"
    active: str = "num_experts_per_tok"
    shared: str = "n_shared_experts"
    dense: str = "first_k_dense_replace"
    mla: bool = False


_DEEPSEEK = _Family(
    needs=("q_lora_rank", "n_shared_experts", "first_k_dense_replace"), n_experts="n_routed_experts", mla=True
)
_QWEN3 = _Family(needs=("num_key_value_heads", "head_dim"))
_QWEN3_MOE = _Family(needs=("num_key_value_heads", "head_dim"), n_experts="num_experts")
_UNIFORM = {
    "llama": _Family(needs=()),
    "mistral": _Family(),
    "ministral3": _Family(needs=("num_key_value_heads", "head_dim")),
    "phi3": _Family(),
    "mimo": _Family(),
    "qwen2": _Family(),
    "qwen3": _QWEN3,
    "qwen3_vl_text": _QWEN3,
    "opt": _Family(needs=(), gated=False, tied=True, d_ff="ffn_dim"),
    "gpt_neox": _Family(needs=(), gated=False),
    "mixtral": _Family(n_experts="num_local_experts", d_expert="intermediate_size"),
    "minimax_m2": _Family(
        needs=("num_key_value_heads", "head_dim"), n_experts="num_local_experts", d_expert="intermediate_size"
    ),
    "qwen2_moe": _Family(needs=("num_key_value_heads", "shared_expert_intermediate_size"), n_experts="num_experts"),
    "qwen3_moe": _QWEN3_MOE,
    "qwen3_vl_moe_text": _QWEN3_MOE,
    "glm4_moe": _Family(
        needs=("num_key_value_heads", "head_dim", "n_shared_experts", "first_k_dense_replace"),
        n_experts="n_routed_experts",
    ),
    "dots1": _Family(
        needs=("num_key_value_heads", "n_shared_experts", "first_k_dense_replace"), n_experts="n_routed_experts"
    ),
    "ernie4_5": _Family(needs=("num_key_value_heads", "head_dim")),
    "ernie4_5_moe": _Family(
        needs=("num_key_value_heads", "moe_num_shared_experts", "moe_layer_start_index"),
        n_experts="moe_num_experts", active="moe_k", shared="moe_num_shared_experts", dense="moe_layer_start_index",
    ),
    "hunyuan_v1_dense": _Family(needs=("num_key_value_heads", "head_dim")),
    "hunyuan_v1_moe": _Family(
        needs=("num_key_value_heads", "head_dim", "num_shared_expert"),
        n_experts="num_experts", active="moe_topk", shared="num_shared_expert",
    ),
    "deepseek_v2": _DEEPSEEK,
    "deepseek_v3": _DEEPSEEK,
    "glm4_moe_lite": _DEEPSEEK,
    "kimi_k2": _DEEPSEEK,
    "kimi_k25": _DEEPSEEK,
    "mistral4": _DEEPSEEK,
}  # fmt: skip
FAMILIES = (*_UNIFORM, *HYBRIDS)
_LAYERS = re.compile("attn|attention|window|conv|ssm|mamba|linear|index|recurrent|compress|gate|expert|layer")

# What changes the cost of a layer, and the words for it: refused, unless the model type is read with it.
_SPECIAL = {
    "is_encoder_decoder": "encoder-decoder models",
    "hybrid_override_pattern": "hybrid layers",
    "hybrid_layer_pattern": "hybrid layers",
    "attn_layer_period": "hybrid layers",
    "full_attention_interval": "linear attention",
    "linear_attn_config": "linear attention",
    "mamba_d_state": "Mamba layers",
    "mamba_num_heads": "Mamba layers",
    "compress_ratios": "compressed attention",
    "sparse_attention_config": "block-sparse attention",
    "index_topk": "sparse attention",
    "indexer_budget": "sparse attention",
    "kv_source_layer_ids": "layers that share a KV cache",
    "engram_layer_ids": "embeddings of several tokens",
    "ngram_size": "embeddings of several tokens",
    "attention_chunk_size": "chunked attention",
    "block_configs": "layers that differ from each other",
    "num_kv_shared_layers": "layers that share a KV cache",
    "use_cla": "layers that share a KV cache",
    "hidden_size_per_layer_input": "embeddings in each layer",
    "sliding_window_pattern": "sliding-window attention",
}


def model_fields(content: Mapping[str, object], file: str) -> dict[str, Any]:
    """Return the fields of `catalogue.Model` that a configuration states, but for its name.

    Of a multimodal model the language part. `file` is what complaints name. Raises `ValueError` as
    `Model.from_config` says.
    """
    config = Config.of(content, file)
    kind = str(config.get("model_type", ""))
    if kind and kind not in FAMILIES:
        raise ValueError(f"{file}: model_type = {kind!r:.80} is not known. {_way_out(config, kind)}")
    as_one_of(f"{file}: model_type", kind, FAMILIES)
    _refuse_special(config, kind)
    common = {
        "context": config.whole("max_position_embeddings", 0, low=0),
        "blocks": in_blocks(config, kind),
        **stored(config),
        "stored_kv": cached(config, kind),
    }
    return common | _sizes(config, kind)


def _sizes(config: Config, kind: str) -> dict[str, object]:
    return HYBRIDS[kind].read(config) if kind in HYBRIDS else _uniform(config, _UNIFORM[kind])


class _Noted(dict[str, object]):
    """The content of a configuration, and what of it was read."""

    def __init__(self, content: Mapping[str, object]) -> None:
        super().__init__(content)
        self.read: set[str] = set()

    def get(self, field: str, default: object = None) -> object:
        self.read.add(field)
        return super().get(field, default)


def _stem(kind: str) -> str:
    return re.split(r"[^a-z]", kind.lower())[0]


def _way_out(config: Config, kind: str) -> str:
    """Say as which known family an unknown one can be read, or what the nearest one misses."""
    mixture = any("expert" in field and bool(value) for field, value in config.content.items())
    latent = "kv_lora_rank" in config.content
    families: list[tuple[bool, int, float, int, str]] = []
    missed: list[tuple[float, str]] = []
    for family in FAMILIES:
        known, like = _UNIFORM.get(family), SequenceMatcher(None, family, kind).ratio()
        if known and (bool(known.n_experts), known.mla) != (mixture, latent):
            continue
        off = {"sliding_window"} if config.get("use_sliding_window") is False else set()
        noted = _Noted({field: value for field, value in config.content.items() if value and field not in off})
        try:
            _refuse_special(Config(noted, config.file), family)
            _sizes(Config(noted, config.file), family)
        except (ValueError, TypeError, KeyError) as error:
            missed.append((like, f"as {family}, {str(error).removeprefix(f'{config.file}: ')}"))
        else:
            left = sorted({field for field in noted if _LAYERS.search(field)} - noted.read)
            families.append(
                (
                    _stem(family) == _stem(kind),
                    -len(left),
                    like,
                    len(families),
                    f"{family}{', but for ' * bool(left)}{', '.join(left):.200}",
                )
            )
    if not families:
        return "No known family can be read from it: " + "; ".join(why for _, why in sorted(missed)[:-3:-1])
    *_, best = max(families)
    return (
        f"Its sizes can be read as those of {best}: if its layers are of that kind, give a copy of the file with that "
        "model_type"
    )


def _refuse_special(config: Config, kind: str) -> None:
    """Refuse what changes a layer's cost and is not read for this model type."""
    handled = HYBRIDS[kind].handles if kind in HYBRIDS else ()
    for field, what in _SPECIAL.items():
        config.refuse(bool(config.get(field)) and field not in handled, field, f"not modelled: {what}")
    if "layer_types" not in handled:
        others = sorted({str(one) for one in config.get("layer_types", ())} - {"full_attention"})
        config.refuse(bool(others), "layer_types", f"not modelled: {', '.join(others)}")
    windowed = config.get("sliding_window") is not None and config.get("use_sliding_window") is not False
    config.refuse(
        windowed and "sliding_window" not in handled,
        "sliding_window",
        f"not modelled: sliding-window attention of {kind}",
    )
    # OPT-350m alone projects its embeddings, by matrices that belong to no layer.
    projected = config.get("word_embed_proj_dim") not in (None, config.get("hidden_size"))
    config.refuse(projected, "word_embed_proj_dim", "not modelled: other than hidden_size")


def _uniform(config: Config, family: _Family) -> dict[str, object]:
    """Return the sizes of a model whose layers are alike, but for dense FFNs in the first of a mixture."""
    for field in family.needs:
        if field not in config.content:
            raise ValueError(f"{config.file}: {field} is missing")
    d_model, heads = config.whole("hidden_size"), config.whole("num_attention_heads")
    if not family.mla and config.get("head_dim") is None:
        config.refuse(d_model % heads != 0, "num_attention_heads", f"must divide hidden_size = {d_model}")
    return {
        "n_layers": config.whole("num_hidden_layers"),
        "d_model": d_model,
        "n_heads": heads,
        "n_kv_heads": config.whole("num_key_value_heads", heads),
        "d_ff": config.whole(family.d_ff),
        "vocab": config.whole("vocab_size"),
        "gated": family.gated,
        "tied_embeddings": config.flag("tie_word_embeddings", family.tied),
        **(_mla(config) if family.mla else {"head_size": config.whole("head_dim", d_model // heads)}),
        **(_experts(config, family) if family.n_experts else {}),
    }


def _mla(config: Config) -> dict[str, object]:
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


def _experts(config: Config, family: _Family) -> dict[str, int]:
    """Return the sizes of a mixture of experts; which layers are dense does not matter, only how many."""
    for field in ("moe_layer_freq", "decoder_sparse_step", "moe_layer_interval"):
        config.refuse(config.get(field, 1) != 1, field, "not modelled: other than 1")
    last = config.whole("num_hidden_layers") - 1
    config.refuse(config.get("moe_layer_end_index", last) not in (-1, last), "moe_layer_end_index", "not modelled")
    # Mixtral has no second size: there an expert is a whole FFN.
    d_expert = _alike(config, family.d_expert)
    # Qwen states the width of all shared experts together, DeepSeek their number.
    wide = (
        "shared_expert_intermediate_size"
        if config.get("shared_expert_intermediate_size")
        else "shared_intermediate_size"
    )
    shared = config.whole(wide, 0, low=0)
    config.refuse(shared % d_expert != 0, wide, f"must be a multiple of {d_expert}")
    dense = config.get("mlp_only_layers", ())
    sound = isinstance(dense, list | tuple) and len({str(one) for one in dense}) == len(dense)
    config.refuse(not sound, "mlp_only_layers", "must be a list of different layers")
    return {
        "n_experts": config.whole(str(family.n_experts)),
        "n_active_experts": _alike(config, family.active),
        "d_expert": d_expert,
        "n_shared_experts": _alike(config, family.shared, shared // d_expert, low=0),
        "n_dense_layers": config.whole(family.dense, len(dense), low=0),
    }


def _alike(config: Config, field: str, default: int | None = None, low: int = 1) -> int:
    """Return a whole number that may stand in a list, once for each layer."""
    said = config.get(field)
    if not isinstance(said, list):
        return config.whole(field, default, low)
    config.refuse(len(set(map(str, said))) != 1, field, "not modelled: layers that differ")
    return Config({field: said[0]}, config.file).whole(field, default, low)
