"""What an engine is told for an architecture's row, in its own words."""

from __future__ import annotations

from math import ceil, floor
from typing import Any

from inference_math.perf.asked import brought, computed_tokens, whole_prompt
from inference_math.perf.types import Asked, Row

__all__ = ["page_of", "plain_settings", "settings"]

# How engines call the most requests in a step and the tokens of a step; what turns chunks off, and on.
ENGINE_TERMS = {
    "vllm": ["--max-num-seqs", "--max-num-batched-tokens"],
    "trtllm": ["max_batch_size", "max_num_tokens"],
    "sglang": ["--max-running-requests", "--chunked-prefill-size"],
}
WHOLE_PROMPTS: dict[str, dict[str, Any]] = {
    "vllm": {},
    "trtllm": {"enable_chunked_prefill": "false"},
    "sglang": {"--chunked-prefill-size": -1},
}
IN_CHUNKS: dict[str, dict[str, Any]] = {
    "vllm": {},
    "trtllm": {"enable_chunked_prefill": "true"},
    "sglang": {"--enable-mixed-chunk": ""},
}
# Tokens of a page of KV cache that SGLang's attention backends keep: FlashMLA 64 and Cutlass MLA 128, TensorRT-LLM's
# kernels for Blackwell up to 64, all others 1. It refuses a chunk that is no whole number of pages.
LATENT_PAGE = 128
BLACKWELL_PAGE = 64


def page_of(engine: str, kind: str, generation: str) -> int:
    """Return the tokens of which a chunk must be a multiple: by the engine, the kind of model, and of GPU."""
    if engine != "sglang":
        return 1
    if kind != "dense" and kind != "mixture of experts":
        return LATENT_PAGE
    return BLACKWELL_PAGE if generation == "Blackwell" else 1


def paged(asked: Asked, tokens: int) -> int:
    """Return the tokens of a chunk in whole pages, one at least."""
    page = asked["page"]
    return max(floor(tokens / page) * page, page)


def plain_settings(asked: Asked, name: str, row: Row) -> dict[str, Any]:
    """Return the numbers behind `settings`, by names of our own: for a unit, or of pools for each of theirs.

    chunk: prompt tokens that a step computes, or a prefill unit together; max_num_seqs: requests of a unit at once, of
    pools in a decode unit; token_budget: all tokens of a step, None where an engine has no such limit.
    """
    batch = ceil(row["batch"])
    if name == "aggregated":
        whole = None if asked["engine"] == "sglang" else whole_prompt(asked) + batch * brought(asked)
        return {"chunk": None, "max_num_seqs": batch, "token_budget": whole}
    computed = computed_tokens(asked, row)
    if name == "chunked":
        seqs, chunk = batch + ceil(row["chunk"] / asked["work"]["n_in"]), paged(asked, computed)
        budget = None if asked["engine"] == "sglang" else chunk + batch * brought(asked)
        return {"chunk": chunk, "max_num_seqs": seqs, "token_budget": budget}
    return {"chunk": paged(asked, computed), "max_num_seqs": batch, "token_budget": None}


def settings(asked: Asked, name: str, row: Row) -> dict[str, Any]:
    """Return the engine's settings for an architecture's row; the pools of a disaggregated one in units.

    vLLM and TensorRT-LLM count all computed tokens of a step, SGLang the chunk alone; and they count for each group
    of attention by itself, SGLang for all. Decodes are spread over the groups; a prompt keeps one of them busy, so that
    each may compute what the plan has in a step. A decode counts with the tokens that it drafts.
    """
    engine, n_in, groups = asked["engine"], asked["work"]["n_in"], asked["unit"]["layout"]["dp"]
    seqs, tokens = ENGINE_TERMS[engine]
    together = groups if engine == "sglang" else 1  # groups that a limit is for
    batch = ceil(row["batch"] / groups)
    decoded = batch * brought(asked)
    told: dict[str, Any] = {}
    if name == "aggregated":
        told[seqs] = batch * together
        if engine != "sglang":  # vLLM does not support to go without chunks, TensorRT-LLM refuses a longer prompt
            told[tokens] = whole_prompt(asked) + decoded
        told.update(WHOLE_PROMPTS[engine])
        return told
    computed = paged(asked, computed_tokens(asked, row))
    if name == "chunked":
        told[seqs] = (batch + ceil(row["chunk"] / n_in)) * together  # prompts under way hold places, too
        told[tokens] = computed * together if engine == "sglang" else computed + decoded
        told.update(IN_CHUNKS[engine])
        return told
    told["prefill units"] = row["prefill_units"]
    told["prefill " + tokens] = ceil(row["chunk"]) if engine == "trtllm" else computed * together
    told["decode units"] = asked["units"] - row["prefill_units"]
    told["decode " + seqs] = batch * together
    return told
