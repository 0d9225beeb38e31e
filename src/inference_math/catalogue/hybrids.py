"""Model types whose layers differ from each other: what each layer is made of, read from a configuration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from inference_math.catalogue.layers import (
    Attention,
    Compressed,
    Ffn,
    Heads,
    Index,
    Latent,
    Layer,
    chosen,
    compressed,
    delta_net,
    grouped,
    latent,
    mamba,
    mixture,
    parallel,
    plain_ffn,
    short_conv,
)
from inference_math.catalogue.stated import Config

__all__ = ["HYBRIDS", "Hybrid"]

Pair = tuple[Attention, Ffn]
_WIDEST = 1000  # multiples of the hidden size
_FULL, _WINDOW, _CHUNK, _LINEAR = "full_attention", "sliding_attention", "chunked_attention", "linear_attention"


@dataclass(frozen=True)
class Hybrid:
    """How a model type is read; `handles` names the fields that it reads beyond the sizes."""

    pairs: Callable[[Config], list[Pair]]
    handles: tuple[str, ...]
    attention: str = "gqa"
    tied: bool = False

    def read(self, config: Config) -> dict[str, object]:
        """Return the fields of `catalogue.Model`, `stack` among them."""
        pairs = self.pairs(config)
        counts = Counter(pairs)
        ffn = next((ffn for _, ffn in pairs if ffn.experts), None)
        heads = config.whole("num_attention_heads")
        nope = config.whole("qk_nope_head_dim", 0, low=0)
        sizes = {
            "n_layers": len(pairs),
            "d_model": config.whole("hidden_size"),
            "n_heads": heads,
            "n_kv_heads": config.whole("num_key_value_heads", config.get("num_attention_groups", heads)),
            "head_size": config.whole("head_dim", config.whole("hidden_size") // heads),
            "d_ff": max(ffn.width for _, ffn in pairs) or 1,
            "vocab": config.whole("vocab_size"),
            "tied_embeddings": config.flag("tie_word_embeddings", self.tied),
            "attention": self.attention,
            "stack": tuple(Layer(count, *pair) for pair, count in counts.items()),
        }
        if self.attention == "mla":
            rope = config.whole("qk_rope_head_dim")
            nope = nope or config.whole("head_dim") - rope  # DeepSeek-V4 has one vector for all, part of it rotated
            sizes |= {
                "head_size": nope + rope,
                "kv_lora": config.whole("kv_lora_rank", nope),
                "qk_nope": nope,
                "qk_rope": rope,
                "q_lora": config.whole("q_lora_rank", 0, low=0),
                "v_head": config.whole("v_head_dim", nope + rope),
            }
        if ffn is not None:
            sizes |= {
                "n_experts": ffn.experts,
                "n_active_experts": ffn.active,
                "d_expert": ffn.expert // (ffn.matrices * config.whole("hidden_size")) or 1,
            }
        return sizes


def _grouped(config: Config, prefix: str = "", **more: Any) -> Attention:
    """Return grouped queries of the sizes stated, some of them under names with a prefix."""

    def size(name: str, default: int | None = None) -> int:
        return config.whole(prefix + name, config.get(name, default))

    d_model, heads = config.whole("hidden_size"), size("num_attention_heads")
    head = size("head_dim", d_model // heads)
    kvs = size("num_key_value_heads", config.get("num_attention_groups", heads))
    return grouped(d_model, Heads(heads, kvs, head, size("v_head_dim", head)), **more)


def _windowed(config: Config, field: str = "sliding_window", prefix: str = "", **more: Any) -> Attention:
    return _grouped(config, prefix, reach=config.whole(field), **more)


def _routed(config: Config, experts: str, width: str, shared: int = 0, active: str = "num_experts_per_tok") -> Ffn:
    return mixture(
        config.whole("hidden_size"),
        config.whole(experts),
        config.whole(active),
        config.whole(width),
        shared_width=shared,
        inner=config.whole("routed_expert_hidden_size", 0, low=0),
    )


def _windows(config: Config, ffn: Callable[[Config], Ffn]) -> list[Pair]:
    """Return windows and full attention as the configuration says, with one FFN."""
    kinds = config.kinds("layer_types", config.whole("num_hidden_layers"), (_FULL, _WINDOW))
    by_kind, works = {_FULL: _grouped(config), _WINDOW: _windowed(config)}, ffn(config)
    return [(by_kind[kind], works) for kind in kinds]


def _gpt_oss(config: Config) -> list[Pair]:
    return _windows(config, lambda own: _routed(own, "num_local_experts", "intermediate_size"))


def _olmo3(config: Config) -> list[Pair]:
    return _windows(config, lambda own: plain_ffn(own.whole("hidden_size"), own.whole("intermediate_size")))


def _gemma(config: Config) -> list[Pair]:
    """Gemma 3 and 4: windows, and full attention with heads of its own size; dense, or dense beside routed."""
    count, d_model = config.whole("num_hidden_layers"), config.whole("hidden_size")
    if config.get("layer_types") is None:
        every = config.whole("sliding_window_pattern", 6)
        kinds = [_FULL if (i + 1) % every == 0 else _WINDOW for i in range(count)]
    else:
        kinds = config.kinds("layer_types", count, (_FULL, _WINDOW))
    heads = config.whole("num_attention_heads")
    wide = config.whole("global_head_dim", config.whole("head_dim"))
    alike, few = config.flag("attention_k_eq_v", False), config.whole("num_key_value_heads")
    few = config.whole("num_global_key_value_heads", few) if alike else few
    by_kind = {_FULL: grouped(d_model, Heads(heads, few, wide), shared_kv=alike), _WINDOW: _windowed(config)}
    width = config.whole("intermediate_size")
    if config.flag("enable_moe_block", False):
        ffn = _routed(config, "num_experts", "moe_intermediate_size", width, "top_k_experts")
    else:
        ffn = plain_ffn(d_model, width)
    return [(by_kind[kind], ffn) for kind in kinds]


def _llama4(config: Config) -> list[Pair]:
    """Llama 4: three layers of four see chunks, unless the configuration says which."""
    count = config.whole("num_hidden_layers")
    stated = config.get("layer_types")
    kinds = (
        [_FULL if (i + 1) % 4 == 0 else _CHUNK for i in range(count)]
        if stated is None
        else config.kinds("layer_types", count, (_FULL, _CHUNK))
    )
    by_kind = {_FULL: _grouped(config), _CHUNK: _windowed(config, "attention_chunk_size", aligned=True)}
    routed = _routed(config, "num_local_experts", "intermediate_size", config.whole("intermediate_size"))
    dense = plain_ffn(config.whole("hidden_size"), config.whole("intermediate_size_mlp"))
    every = config.whole("interleave_moe_layer_step")
    return [(by_kind[kind], routed if (i + 1) % every == 0 else dense) for i, kind in enumerate(kinds)]


def _qwen_next(config: Config) -> list[Pair]:
    """Qwen3-Next and Qwen3.5: gated delta rule, and every fourth layer full attention with an output gate."""
    count, d_model = config.whole("num_hidden_layers"), config.whole("hidden_size")
    if config.get("layer_types") is None:
        every = config.whole("full_attention_interval")
        kinds = [_FULL if (i + 1) % every == 0 else _LINEAR for i in range(count)]
    else:
        kinds = config.kinds("layer_types", count, (_FULL, _LINEAR))
    linear = delta_net(
        d_model,
        key_heads=config.whole("linear_num_key_heads"),
        key=config.whole("linear_key_head_dim"),
        value_heads=config.whole("linear_num_value_heads"),
        value=config.whole("linear_value_head_dim"),
        kernel=config.whole("linear_conv_kernel_dim"),
    )
    by_kind = {_FULL: _grouped(config, gated=config.flag("attn_output_gate", True)), _LINEAR: linear}
    if config.get("num_experts") is None:
        ffn = plain_ffn(d_model, config.whole("intermediate_size"))
    else:
        shared = config.whole("shared_expert_intermediate_size", low=0)
        ffn = _routed(config, "num_experts", "moe_intermediate_size", shared)
    return [(by_kind[kind], ffn) for kind in kinds]


def _sparse_latent(config: Config) -> list[Pair]:
    """DeepSeek V3.2 and GLM-5: latents of which an index chooses some; later GLMs share the choice between layers."""
    count, d_model = config.whole("num_hidden_layers"), config.whole("hidden_size")
    dense_first = config.whole("first_k_dense_replace", low=0)
    sizes = Latent(
        config.whole("q_lora_rank", 0, low=0),
        *map(config.whole, ("kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")),
    )
    index = Index(*map(config.whole, ("index_topk", "index_n_heads", "index_head_dim")))
    if config.get("layer_types"):
        config.kinds("layer_types", count, ("deepseek_sparse_attention",))
    full = ["full"] * count
    kinds = config.kinds("indexer_types", count, ("full", "shared")) if config.get("indexer_types") else full
    heads = config.whole("num_attention_heads")
    by_kind = {kind: latent(d_model, heads, sizes, index, indexed=kind == "full") for kind in ("full", "shared")}
    width = config.whole("moe_intermediate_size")
    routed = _routed(
        config, "n_routed_experts", "moe_intermediate_size", config.whole("n_shared_experts", low=0) * width
    )
    dense = plain_ffn(d_model, config.whole("intermediate_size"))
    return [(by_kind[kind], dense if i < dense_first else routed) for i, kind in enumerate(kinds)]


def _deepseek_v4(config: Config) -> list[Pair]:
    """DeepSeek V4: a window in each layer, beside it compressed entries, of those of four tokens an index chooses.

    The streams of its residual, and what mixes them, are not counted.
    """
    count, d_model, heads = map(config.whole, ("num_hidden_layers", "hidden_size", "num_attention_heads"))
    ratios = config.kinds("compress_ratios", count, (0, 4, 128))
    sizes = Compressed(*map(config.whole, ("q_lora_rank", "o_lora_rank", "head_dim", "o_groups", "sliding_window")))
    config.refuse(sizes.head % 128 != 0, "head_dim", "must be a multiple of 128")
    index = Index(*map(config.whole, ("index_topk", "index_n_heads", "index_head_dim")))
    by_ratio = {ratio: compressed(d_model, heads, sizes, ratio, index if ratio == 4 else None) for ratio in set(ratios)}
    shared = config.whole("n_shared_experts", low=0) * config.whole("moe_intermediate_size")
    routed = _routed(config, "n_routed_experts", "moe_intermediate_size", shared)
    return [(by_ratio[ratio], routed) for ratio in ratios]


def _minimax_m3(config: Config) -> list[Pair]:
    """MiniMax M3: full attention first, then blocks that an index chooses; the first layers dense."""
    config.refuse(config.flag("attention_output_gate", False), "attention_output_gate", "not modelled")
    count, d_model = config.whole("num_hidden_layers"), config.whole("hidden_size")
    said = config.get("sparse_attention_config")
    config.refuse(not isinstance(said, Mapping), "sparse_attention_config", "must be an object")
    sparse = Config(said, config.file)
    kinds = sparse.kinds("sparse_attention_freq", count, (0, 1))
    silent = sparse.kinds("sparse_disable_index_value", count, (0, 1))
    sparse.refuse(silent != kinds, "sparse_disable_index_value", "not modelled: an index with values")
    blocks, block = map(sparse.whole, ("sparse_topk_blocks", "sparse_block_size"))
    index = Index(blocks * block, sparse.whole("sparse_num_index_heads"), sparse.whole("sparse_index_dim"))
    heads = Heads(*map(config.whole, ("num_attention_heads", "num_key_value_heads", "head_dim")))
    by_kind = {0: grouped(d_model, heads), 1: chosen(d_model, heads, index)}
    shared = config.whole("n_shared_experts", low=0) * config.whole("shared_intermediate_size")
    routed = _routed(config, "num_local_experts", "intermediate_size", shared)
    dense = plain_ffn(d_model, config.whole("dense_intermediate_size"))
    routes = config.kinds("moe_layer_freq", count, (0, 1))
    return [(by_kind[kind], routed if r else dense) for kind, r in zip(kinds, routes, strict=True)]


def _mimo_v2(config: Config) -> list[Pair]:
    """MiMo-V2: windows with heads of their own, values smaller than keys."""
    count = config.whole("num_hidden_layers")
    windows = config.kinds("hybrid_layer_pattern", count, (0, 1))
    routes = config.kinds("moe_layer_freq", count, (0, 1))
    by_kind = {0: _grouped(config), 1: _windowed(config, prefix="swa_")}
    routed = _routed(config, "n_routed_experts", "moe_intermediate_size")
    dense = plain_ffn(config.whole("hidden_size"), config.whole("intermediate_size"))
    return [(by_kind[w], routed if r else dense) for w, r in zip(windows, routes, strict=True)]


def _step(config: Config) -> list[Pair]:
    """Step-3.5 and 3.7: windows, some with heads of their own, between full attention; the first layers dense."""
    count = config.whole("num_hidden_layers")
    kinds = config.kinds("layer_types", count, (_FULL, _WINDOW))
    other = config.get("attention_other_setting", {})
    config.refuse(not isinstance(other, Mapping), "attention_other_setting", "must be an object")
    by_kind = {_FULL: _grouped(config), _WINDOW: _windowed(Config({**config.content, **other}, config.file))}
    said = config.get("moe_layers_enum")
    if said is None:
        routes = set(range(config.whole("first_k_dense_replace", low=0), count))
    else:
        routes = {int(one) for one in (said.split(",") if isinstance(said, str) else said) if str(one).isdecimal()}
        config.refuse(not routes <= set(range(count)), "moe_layers_enum", f"must name layers below {count}")
    experts, active = (
        ("num_experts", "num_experts_per_tok")
        if config.get("moe_num_experts") is None
        else ("moe_num_experts", "moe_top_k")
    )
    routed = _routed(config, experts, "moe_intermediate_size", config.whole("share_expert_dim"), active)
    dense = plain_ffn(config.whole("hidden_size"), config.whole("intermediate_size"))
    return [(by_kind[kind], routed if i in routes else dense) for i, kind in enumerate(kinds)]


def _mamba(config: Config) -> Attention:
    sizes = {"heads": "n_heads", "head": "d_head", "groups": "n_groups", "state": "d_state", "kernel": "d_conv"}
    return mamba(
        config.whole("hidden_size"), **{ours: config.whole(f"mamba_{theirs}") for ours, theirs in sizes.items()}
    )


def _falcon_h1(config: Config) -> list[Pair]:
    """Falcon-H1: attention and a state space beside each other in every layer."""
    config.refuse(config.get("attn_layer_indices") is not None, "attn_layer_indices", "not modelled: other than null")
    heads, head = config.whole("mamba_n_heads"), config.whole("mamba_d_head")
    wide = config.whole("mamba_d_ssm", heads * head)
    config.refuse(wide != heads * head, "mamba_d_ssm", f"must be {heads} heads of {head}")
    ffn = plain_ffn(config.whole("hidden_size"), config.whole("intermediate_size"))
    return [(parallel(_grouped(config), _mamba(config)), ffn)] * config.whole("num_hidden_layers")


def _granite_h(config: Config) -> list[Pair]:
    """Granite 4: attention or a state space, with a mixture or, without experts, the shared FFN alone."""
    shared = config.whole("shared_intermediate_size")
    ffn = plain_ffn(config.whole("hidden_size"), shared)
    if config.whole("num_local_experts", 0, low=0):
        ffn = _routed(config, "num_local_experts", "intermediate_size", shared)
    kinds = config.kinds("layer_types", config.whole("num_hidden_layers"), ("attention", "mamba"))
    inner = config.whole("mamba_n_heads") * config.whole("mamba_d_head") if "mamba" in kinds else 0
    wide = config.whole("mamba_expand", 2) * config.whole("hidden_size")
    config.refuse(inner not in (0, wide), "mamba_expand", f"must make {inner} of hidden_size")
    mixes = {kind: _mamba(config) if kind == "mamba" else _grouped(config) for kind in set(kinds)}
    return [(mixes[kind], ffn) for kind in kinds]


def _lfm2(config: Config) -> list[Pair]:
    """LFM2: gated convolutions and attention; dense, or a mixture after the first layers."""
    count, d_model = config.whole("num_hidden_layers"), config.whole("hidden_size")
    attends = config.get("full_attn_idxs")
    if config.get("layer_types") is None and attends is not None:
        kinds = [_FULL if i in attends else "conv" for i in range(count)]
    else:
        kinds = config.kinds("layer_types", count, (_FULL, "conv"))
    by_kind = {_FULL: _grouped(config), "conv": short_conv(d_model, config.whole("conv_L_cache"))}
    width = config.whole("intermediate_size", config.get("block_ff_dim"))
    if config.get("num_experts") is None:
        if config.flag("block_auto_adjust_ff_dim", True):  # as the model does it
            step, wide = config.whole("block_multiple_of", 256), config.get("block_ffn_dim_multiplier", 1.0)
            config.refuse(not 0 < wide <= _WIDEST, "block_ffn_dim_multiplier", "is out of range")
            width = -(-int(wide * int(2 * width / 3)) // step) * step
        return [(by_kind[kind], plain_ffn(d_model, width)) for kind in kinds]
    dense_first, routed = (
        config.whole("num_dense_layers", low=0),
        _routed(config, "num_experts", "moe_intermediate_size"),
    )
    return [(by_kind[kind], plain_ffn(d_model, width) if i < dense_first else routed) for i, kind in enumerate(kinds)]


def _kimi_linear(config: Config) -> list[Pair]:
    """Kimi Linear: a delta rule with gates for each channel, and some layers latent attention; Kimi K3.

    That has in each layer a vector more, for attention over the layers before (`attn_res_block_size`): not counted.
    """
    config.refuse(config.get("moe_layer_freq", 1) != 1, "moe_layer_freq", "not modelled: other than 1")
    said = config.get("linear_attn_config")
    config.refuse(not isinstance(said, Mapping), "linear_attn_config", "must be an object")
    linear, count, d_model = Config(said, config.file), config.whole("num_hidden_layers"), config.whole("hidden_size")
    full = linear.get("full_attn_layers")
    sound = isinstance(full, list) and set(full) <= set(range(1, count + 1))
    linear.refuse(not sound, "full_attn_layers", f"must be a list of layers from 1 to {count}")
    heads, head = linear.whole("num_heads"), linear.whole("head_dim")
    whole = linear.flag("use_full_rank_gate", False)
    delta = delta_net(
        d_model, key_heads=heads, key=head, value_heads=heads, value=head, ranks=(head, 0 if whole else head),
        kernel=linear.whole("short_conv_kernel_size"),
    )  # fmt: skip
    sizes = Latent(
        config.whole("q_lora_rank", 0, low=0),
        *map(config.whole, ("kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")),
    )
    gated = config.flag("mla_use_output_gate", False)
    attends = latent(d_model, config.whole("num_attention_heads"), sizes, gated=gated)
    shared = config.whole("num_shared_experts", low=0) * config.whole("moe_intermediate_size")
    routed = _routed(config, "num_experts", "moe_intermediate_size", shared, "num_experts_per_token")
    dense, dense_first = (
        plain_ffn(d_model, config.whole("intermediate_size")),
        config.whole("first_k_dense_replace", low=0),
    )
    return [(attends if i + 1 in full else delta, dense if i < dense_first else routed) for i in range(count)]


_NEMOTRON = {"M": "mamba", "E": "moe", "-": "mlp", "*": "attention"}


def _nemotron_h(config: Config) -> list[Pair]:
    """Nemotron-H: each layer is one of Mamba, attention, FFN or mixture; matrices without gates."""
    d_model = config.whole("hidden_size")
    stated = config.get("layers_block_type") or [_NEMOTRON.get(c, c) for c in config.get("hybrid_override_pattern", "")]
    others = sorted(set(map(str, stated)) - set(_NEMOTRON.values()))
    field = "layers_block_type" if config.get("layers_block_type") else "hybrid_override_pattern"
    config.refuse(bool(others) or not stated, field, f"not modelled: {', '.join(others) or 'no layers'}")
    nothing, rest = Attention("none"), Ffn()
    pairs: dict[str, Pair] = {
        "mamba": (mamba(d_model, heads=config.whole("mamba_num_heads"), head=config.whole("mamba_head_dim"),
                        groups=config.whole("n_groups"), state=config.whole("ssm_state_size"),
                        kernel=config.whole("conv_kernel")), rest),
        "attention": (grouped(d_model, Heads(
            config.whole("num_attention_heads"), config.whole("num_key_value_heads"),
            config.whole("head_dim", config.get("attention_head_dim")))), rest),
        "mlp": (nothing, plain_ffn(d_model, config.whole("intermediate_size"), gated=False)),
    }  # fmt: skip
    if "moe" in stated:
        pairs["moe"] = (
            nothing,
            mixture(
                d_model,
                config.whole("n_routed_experts"),
                config.whole("num_experts_per_tok"),
                config.whole("moe_intermediate_size"),
                gated=False,
                inner=config.whole("moe_latent_size", 0, low=0),
                shared_width=config.whole("n_shared_experts") * config.whole("moe_shared_expert_intermediate_size"),
            ),
        )
    return [pairs[str(kind)] for kind in stated]


def _nemotron_nas(config: Config) -> list[Pair]:
    """Nemotron-NAS: the widths of each layer found by a search, some layers without attention."""
    count, d_model = config.whole("num_hidden_layers"), config.whole("hidden_size")
    blocks = config.get("block_configs")
    config.refuse(not isinstance(blocks, list) or len(blocks) != count, "block_configs", f"must have {count} entries")
    heads = config.whole("num_attention_heads")
    pairs = []
    for block in blocks:
        attention, ffn = block["attention"], block["ffn"]
        group = Config(attention, config.file).whole("n_heads_in_group", heads)
        config.refuse(heads % group != 0, "block_configs", f"not modelled: groups of {group} heads")
        special = [k for part in (attention, ffn) for k in ("replace_with_linear", "sparsify") if part.get(k)]
        special += [k for k in ("window_length", "num_sink_tokens") if attention.get(k)]
        config.refuse(bool(special), "block_configs", f"not modelled: {', '.join(special)}")
        mixes = Attention("none")
        if not attention.get("no_op"):
            mixes = grouped(d_model, Heads(heads, heads // group, d_model // heads))
        # As the model does it: two thirds of the multiple, rounded up to a multiple of 256.
        config.refuse(not 0 <= (ffn.get("ffn_mult") or 0) <= _WIDEST, "block_configs", "ffn_mult is out of range")
        width = -(-int(2 * ffn["ffn_mult"] * d_model / 3) // 256) * 256 if not ffn.get("no_op") else 0
        pairs.append((mixes, plain_ffn(d_model, width) if width else Ffn()))
    return pairs


HYBRIDS = {
    "gpt_oss": Hybrid(_gpt_oss, ("layer_types", "sliding_window")),
    "gemma3_text": Hybrid(_gemma, ("layer_types", "sliding_window", "sliding_window_pattern"), tied=True),
    "gemma4_text": Hybrid(_gemma, ("layer_types", "sliding_window"), tied=True),
    "llama4_text": Hybrid(_llama4, ("layer_types", "attention_chunk_size")),
    "qwen3_next": Hybrid(_qwen_next, ("layer_types", "full_attention_interval")),
    "qwen3_5_text": Hybrid(_qwen_next, ("layer_types", "full_attention_interval")),
    "qwen3_5_moe_text": Hybrid(_qwen_next, ("layer_types", "full_attention_interval")),
    "deepseek_v32": Hybrid(_sparse_latent, ("index_topk", "layer_types"), "mla"),
    "deepseek_v4": Hybrid(_deepseek_v4, ("index_topk", "compress_ratios", "sliding_window"), "mla"),
    "minimax_m3": Hybrid(_minimax_m3, ("sparse_attention_config",)),
    "minimax_m3_vl": Hybrid(_minimax_m3, ("sparse_attention_config",)),
    "glm_moe_dsa": Hybrid(_sparse_latent, ("index_topk", "layer_types"), "mla"),
    "mimo_v2_flash": Hybrid(_mimo_v2, ("hybrid_layer_pattern", "sliding_window", "attention_chunk_size")),
    "olmo3": Hybrid(_olmo3, ("layer_types", "sliding_window")),
    "step3p5": Hybrid(_step, ("layer_types", "sliding_window")),
    "step3p7": Hybrid(_step, ("layer_types", "sliding_window")),
    "falcon_h1": Hybrid(_falcon_h1, ("mamba_d_state",)),
    "granitemoehybrid": Hybrid(_granite_h, ("layer_types", "mamba_d_state")),
    "lfm2": Hybrid(_lfm2, ("layer_types",), tied=True),
    "lfm2_moe": Hybrid(_lfm2, ("layer_types",), tied=True),
    "kimi_linear": Hybrid(_kimi_linear, ("linear_attn_config",), "mla"),
    "nemotron_h": Hybrid(_nemotron_h, ("hybrid_override_pattern", "mamba_num_heads")),
    "nemotron-nas": Hybrid(_nemotron_nas, ("block_configs",)),
}
