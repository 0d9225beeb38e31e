"""The model that the laboratory serves: its own small one, or one of the catalogue in its true shape."""

from __future__ import annotations

import os
from typing import Any

from inference_math import catalogue
from inference_math.catalogue import Model

__all__ = ["OWN", "chosen", "config", "kv_bytes", "need", "room"]

OWN = Model(
    name="lab",
    n_layers=6,
    d_model=256,
    n_heads=4,
    n_kv_heads=2,
    head_size=64,
    d_ff=704,
    vocab=1024,
    source="the laboratory",
)
"""The laboratory's own model: a decode step takes some milliseconds on one core, a prompt of 64 tokens a few more."""

_OVERHEAD = 1.5 * 2**30  # an engine without model and KV cache: Python, PyTorch, vLLM


def chosen(name: str) -> Model:
    """Return the model of that name: "lab", or a dense one of the catalogue with gated FFN and grouped queries.

    Raises
    ------
    ValueError
        For another name, and for a model that is no such one.
    """
    if name == OWN.name:
        return OWN
    try:
        model = catalogue.model(name)
    except ValueError as error:
        raise ValueError(f"{error}; the laboratory's own is {OWN.name!r}") from None
    if model.attention != "gqa" or model.n_experts or not model.gated:
        raise ValueError(f"model must be dense, with gated FFN and grouped queries, or {OWN.name!r}, not {name!r}")
    return model


def config(model: Model, longest: int) -> dict[str, Any]:
    """Return the Hugging Face `config.json` of a model of that shape, as a Llama of `longest` positions."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": model.d_model,
        "intermediate_size": model.d_ff,
        "num_hidden_layers": model.n_layers,
        "num_attention_heads": model.n_heads,
        "num_key_value_heads": model.n_kv_heads,
        "head_dim": model.head_size,
        "vocab_size": model.vocab,
        "tie_word_embeddings": model.tied_embeddings,
        "max_position_embeddings": longest,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "hidden_act": "silu",
        "bos_token_id": 1,
        "eos_token_id": 2,
    }


def kv_bytes(model: Model, value_bytes: int) -> int:
    """Return the KV-cache bytes of a token at `value_bytes` a value."""
    return int(model.kv_token("fp8") * value_bytes)


def need(model: Model, value_bytes: int, cache_gib: float, engines: int) -> float:
    """Return the bytes of memory that `engines` of them take."""
    weights = (model.n_params_total + model.vocab_params) * value_bytes
    return engines * (weights + cache_gib * 2**30 + _OVERHEAD)


def room(model: Model, value_bytes: int, cache_gib: float, engines: int) -> None:
    """Raise what lacks, before anything runs.

    Raises
    ------
    MemoryError
        Where the machine has less memory than that takes.
    """
    if not hasattr(os, "sysconf"):
        return
    there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    needed = need(model, value_bytes, cache_gib, engines)
    if needed > 0.9 * there:
        raise MemoryError(
            f"{engines} engine(s) of {model.name} take about {needed / 2**30:.1f} GiB of memory, and the machine has "
            f"{there / 2**30:.1f}: choose a smaller --model, or --cache"
        )
