"""What an engine is told for an architecture's row, in its own words."""

from __future__ import annotations

from math import ceil, floor
from typing import TYPE_CHECKING

from inference_math.unit.asked import (
    computed_tokens,
    of_group,
    prefill_unit,
    seats_beside,
    unit_budget,
    unit_seats,
    verify_tokens,
    whole_prompt,
)
from inference_math.unit.types import Asked, Row

if TYPE_CHECKING:
    from inference_math.catalogue.engines import EngineRecord

__all__ = ["TILE", "chunk_told", "page_of", "plain_settings", "settings", "tiled", "tokens_at_once"]

TILE = 256  # rows of a tile of vLLM's FP8 products, the coarsest measured


def page_of(engine: EngineRecord, kind: str, generation: str) -> int:
    """Return the tokens of which a chunk must be a multiple: by the engine, the kind of model, and of GPU."""
    if kind != "dense" and kind != "mixture of experts":
        return engine.scheduler.page_latent
    return engine.scheduler.page_blackwell if generation == "Blackwell" else engine.scheduler.page


def paged(asked: Asked, row: Row) -> int:
    """Return the tokens that an engine counts of a row's step in whole pages, one at least; whole prompts are not cut.

    Some count what is stored, too.
    """
    tokens = ceil(row.chunk) if asked.engine.scheduler.counts_stored else computed_tokens(asked, row)
    page, pages = asked.page, tokens / asked.page
    return max(ceil(pages) if row.chunk >= asked.work.n_in else floor(pages), 1) * page


def tokens_at_once(asked: Asked, row: Row) -> int:
    """Return the tokens that a group's step computes in chunks: of prompts, and of the decodes beside them."""
    return paged(asked, row) + ceil(row.batch / asked.unit.layout.dp) * verify_tokens(asked)


def tiled(asked: Asked) -> bool:
    """Tell whether steps of a unit are products of FP8 by vLLM, whose tiles were measured."""
    products = [one.rate for one in asked.unit.groups]
    return asked.engine.title == "vLLM" and "fp8" in products


def chunk_told(asked: Asked, row: Row) -> int:
    """Return the prompt tokens that an engine is told to compute in a group's step.

    A tile that is just begun costs a whole one, which the model of a step does not know. So where tiles were measured
    the step, with its decodes, is cut down to whole ones.
    """
    computed, begun = paged(asked, row), tokens_at_once(asked, row) % TILE
    return computed - begun if tiled(asked) and tokens_at_once(asked, row) > TILE and begun < computed else computed


def plain_settings(asked: Asked, name: str, row: Row) -> dict[str, int | None]:
    """Return the numbers behind `settings`, by names of our own: for a unit, or of pools for each of theirs.

    chunk: prompt tokens that a step computes, or a prefill unit together; max_num_seqs: requests of a unit at once, of
    pools in a decode unit; token_budget: all tokens of a step, None where an engine has no such limit.
    """
    batch, counted = ceil(row.batch), asked.engine.scheduler.counts_decodes
    if name == "aggregated":
        whole = unit_budget(asked, whole_prompt(asked), batch) if counted else None
        return {"chunk": None, "max_num_seqs": batch, "token_budget": whole}
    computed = chunk_told(asked, row) if name == "chunked" else paged(asked, row)
    if name == "chunked":
        chunk = asked.unit.layout.dp * computed
        budget = unit_budget(asked, computed, batch) if counted else None
        return {"chunk": chunk, "max_num_seqs": unit_seats(asked, row), "token_budget": budget}
    return {"chunk": computed, "max_num_seqs": batch, "token_budget": None}


def settings(asked: Asked, name: str, row: Row) -> dict[str, object]:
    """Return the engine's settings for an architecture's row; the pools of a disaggregated one in units.

    vLLM and TensorRT-LLM count all computed tokens of a step, SGLang the chunk alone; and they count for each group
    of attention by itself, SGLang for all. Decodes are spread over the groups, and so are the prompts of a prefill
    unit; of chunks each group has its own. A decode counts with the tokens that it drafts.
    """
    scheduler, cli, groups = asked.engine.scheduler, asked.engine.cli, asked.unit.layout.dp
    seqs, tokens = cli.seqs, cli.tokens
    together = groups if scheduler.counts_together else 1  # groups that a limit is for
    batch = ceil(row.batch / groups)
    decoded = batch * verify_tokens(asked)
    told: dict[str, object] = {}
    if name == "aggregated":
        told[seqs] = batch * together
        if scheduler.counts_decodes:  # vLLM does not support to go without chunks, TensorRT-LLM refuses a longer prompt
            told[tokens] = whole_prompt(asked) + decoded
        told.update(cli.whole_prompts)
        return told
    if name == "chunked":
        computed = chunk_told(asked, row)
        told[seqs] = seats_beside(asked, row) * together
        told[tokens] = computed + decoded if scheduler.counts_decodes else computed * together
        told.update(cli.in_chunks)
        return told
    each = paged(asked, of_group(asked, row))
    told["prefill units"] = row.prefill_units
    told["prefill " + tokens] = each * (prefill_unit(asked).layout.dp if scheduler.counts_together else 1)
    told["decode units"] = row.decode_units
    told["decode " + seqs] = batch * together
    return told
