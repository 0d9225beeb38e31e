"""What a configuration says about the precision of its weights: read, or refused, never ignored."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from inference_math.catalogue.stated import Config

__all__ = ["cached", "in_blocks", "stored"]

_METHODS = {"fp8": "fp8", "fbgemm_fp8": "fp8", "mxfp4": "mxfp4", "awq": "int4", "gptq": "int4"}
_TYPES = ("auto", "bfloat16", "float16", "half", "float32", "float", "float64", "float8_e4m3fn", "float8_e5m2")
# Families whose publishers' own FP8 checkpoints have a scale for each block of 128 x 128 weights (weight_block_size).
# FP8 of any other has one for a tensor, or for each of its rows.
_IN_BLOCKS = (
    "deepseek_v3", "deepseek_v32", "deepseek_v4", "kimi_k2", "kimi_k25", "glm_moe_dsa", "minimax_m2", "mimo_v2_flash",
    "qwen3_moe", "qwen3_vl_moe_text", "qwen3_next", "qwen3_5_text", "qwen3_5_moe_text",
)  # fmt: skip
_ALGORITHMS = {"FP8": "fp8", "NVFP4": "nvfp4", "W4A16_NVFP4": "nvfp4", "MXFP4": "mxfp4", "W4A16_AWQ": "int4"}


def stored(config: Config) -> dict[str, object]:
    """Return `stored`, `fine` and `coarse` of a `catalogue.Model`; nothing where no quantisation is stated.

    Read are the methods fp8, mxfp4, awq and gptq of four bits, modelopt and compressed-tensors. A mixed precision is
    that of its finest matrices; what is not in four bits counts as BF16, or FP8 where the configuration says so.
    """
    _check_type(config)
    said = config.get("quantization_config")
    if said is None:
        return {}
    if not isinstance(said, Mapping):
        raise ValueError(f"{config.file}: quantization_config must be an object, not {said!r:.80}")
    precision = _precision(said)
    if precision is None:
        named = said.get("quant_algo") or said.get("quant_method")
        raise ValueError(f"{config.file}: quantization_config = {named!r:.80}: not modelled: this quantisation")
    if config.get("expert_dtype", said.get("expert_dtype")) == "fp4" and precision == "fp8":  # DeepSeek V4
        return {"stored": "mxfp4", "fine": ("experts",), "coarse": "fp8"}
    if precision in ("bf16", "fp8"):
        return {"stored": precision}
    return {"stored": precision, **_groups(said)}


def cached(config: Config, kind: str) -> str:
    """Return the precision of the KV cache that a checkpoint asks for: "fp8", else "bf16".

    Read are `kv_cache_scheme` (compressed-tensors, ModelOpt) and `kv_cache_quant_algo` (hf_quant_config.json). DeepSeek
    V4 has no other than FP8: vLLM refuses to serve it in BF16 (its class asserts so).
    """
    said = config.get("quantization_config", {})
    scheme, algorithm = (said.get(name) for name in ("kv_cache_scheme", "kv_cache_quant_algo"))
    if isinstance(scheme, Mapping):
        algorithm = "FP8" if scheme.get("num_bits") == 8 and scheme.get("type") == "float" else scheme
    if algorithm not in (None, "FP8"):
        raise ValueError(f"{config.file}: the KV cache's quantisation must be FP8 or none, not {algorithm!r:.80}")
    return "fp8" if algorithm == "FP8" or kind == "deepseek_v4" else "bf16"


def in_blocks(config: Config, kind: str) -> bool:
    """Return whether FP8 weights of a model have a scale for each block: as stated, else as its family's have."""
    said = config.get("quantization_config")
    if isinstance(said, Mapping) and _precision(said) == "fp8":
        if "weight_block_size" in said:
            return bool(said["weight_block_size"])
        groups = said.get("config_groups")
        if isinstance(groups, Mapping):
            return any("block" in str(group) for group in groups.values())
        if said.get("quant_method") != "fp8":
            return False
    return kind in _IN_BLOCKS


def _check_type(config: Config) -> None:
    """Refuse weights of a type that PyTorch does not have; which it is does not matter, for a unit says its own."""
    for field in ("torch_dtype", "dtype"):
        said = config.get(field)
        if said is not None and str(said).removeprefix("torch.") not in _TYPES:
            raise ValueError(f"{config.file}: {field} must be one of {', '.join(_TYPES)}, not {said!r:.80}")


def _precision(said: Mapping[str, object]) -> str | None:
    mixed = said.get("quantized_layers")
    if isinstance(mixed, Mapping):
        algorithms = {_ALGORITHMS.get(str(one.get("quant_algo"))) for one in mixed.values() if isinstance(one, Mapping)}
        return next((fine for fine in ("nvfp4", "mxfp4", "int4", "fp8") if fine in algorithms), None)
    if "quant_algo" in said:
        return _ALGORITHMS.get(str(said["quant_algo"]))
    method = str(said.get("quant_method"))
    if method == "compressed-tensors":
        return _compressed(said)
    if method in ("awq", "gptq"):
        return "int4" if said.get("bits", said.get("w_bit")) == 4 else None
    return _METHODS.get(method)


def _compressed(said: Mapping[str, object]) -> str | None:
    groups = said.get("config_groups")
    if not isinstance(groups, Mapping) or not groups:
        return None
    kinds = set()
    for group in groups.values():
        weights = group.get("weights") if isinstance(group, Mapping) else None
        if not isinstance(weights, Mapping):
            return None
        bits, kind = weights.get("num_bits"), weights.get("type")
        four = {"int": "int4", "float": "mxfp4" if weights.get("group_size") == 32 else "nvfp4"}
        kinds.add("fp8" if (bits, kind) == (8, "float") else four.get(str(kind)) if bits == 4 else None)
    return kinds.pop() if len(kinds) == 1 else None


def _groups(said: Mapping[str, Any]) -> dict[str, object]:
    """Return which groups of matrices are in four bits, by what is left out of them."""
    mixed = said.get("quantized_layers")
    if isinstance(mixed, Mapping):
        four = ("nvfp4", "mxfp4", "int4")
        fine = {_group_of(name) for name, one in mixed.items() if _ALGORITHMS.get(str(one.get("quant_algo"))) in four}
        eight = any("8" in str(one.get("quant_algo")) for one in mixed.values())
        return {"fine": tuple(sorted(fine - {""})), "coarse": "fp8" if eight else "bf16"}
    left = [
        str(name)
        for key in ("ignore", "exclude_modules", "modules_to_not_convert", "ignored_layers")
        for name in said.get(key) or ()
    ]
    attention = any("attn" in name for name in left)
    shared = any(re.search(r"shared_expert|\.mlp\*|mlp\\\.", name) for name in left)
    if not left and str(said.get("quant_method")) == "mxfp4":
        return {}  # a format that is made for experts
    held = [("attention", attention), ("ffn", shared), ("experts", False)]
    return {"fine": tuple(group for group, left in held if not left)}


def _group_of(name: str) -> str:
    if re.search(r"\bexperts\b", name):
        return "experts"
    if re.search(r"mlp|ffn|shared_expert", name):
        return "ffn"
    return "attention" if re.search(r"attn|mixer|attention", name) else ""
