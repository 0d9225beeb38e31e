"""What an engine is told for an architecture's row, in its own words."""

from __future__ import annotations

from math import ceil, floor
from typing import TYPE_CHECKING

from inference_math.unit.problem import (
    computed_tokens,
    max_num_batched_tokens,
    max_num_seqs,
    max_num_seqs_per_group,
    of_group,
    prefill_unit,
    verify_tokens,
    whole_prompt,
)
from inference_math.unit.types import OperatingPoint, Problem

if TYPE_CHECKING:
    from inference_math.catalogue.engines import EngineRecord

__all__ = ["TILE", "chunk_told", "page_of", "plain_settings", "settings", "tiled", "tokens_at_once"]

TILE = 256  # rows of a tile of vLLM's FP8 products, the coarsest measured


def page_of(engine: EngineRecord, kind: str, generation: str) -> int:
    """Return the tokens of which a chunk must be a multiple: by the engine, the kind of model, and of GPU."""
    if kind != "dense" and kind != "mixture of experts":
        return engine.scheduler.page_latent
    return engine.scheduler.page_blackwell if generation == "Blackwell" else engine.scheduler.page


def paged(problem: Problem, row: OperatingPoint) -> int:
    """Return the tokens that an engine counts of a row's step in whole pages, one at least; whole prompts are not cut.

    Some count what is stored, too.
    """
    tokens = ceil(row.chunk) if problem.engine.scheduler.counts_stored else computed_tokens(problem, row)
    page, pages = problem.page, tokens / problem.page
    return max(ceil(pages) if row.chunk >= problem.work.n_in else floor(pages), 1) * page


def tokens_at_once(problem: Problem, row: OperatingPoint) -> int:
    """Return the tokens that a group's step computes in chunks: of prompts, and of the decodes beside them."""
    return paged(problem, row) + ceil(row.batch / problem.unit.layout.dp) * verify_tokens(problem)


def tiled(problem: Problem) -> bool:
    """Tell whether steps of a unit are products of FP8 by vLLM in one group, whose tiles were measured."""
    alone = problem.engine.title == "vLLM" and problem.unit.layout.dp == 1
    return alone and "fp8" in [products.rate for products in problem.unit.groups]


def chunk_told(problem: Problem, row: OperatingPoint) -> int:
    """Return the prompt tokens that an engine is told to compute in a group's step.

    A tile that is just begun costs a whole one, which the model of a step does not know. So where tiles were measured
    the step, with its decodes, is cut down to whole ones, if that takes less than a tenth of its chunk: fewer decodes
    are fed then, about as many fewer.
    """
    computed, begun = paged(problem, row), tokens_at_once(problem, row) % TILE
    slight = tiled(problem) and computed > 10 * begun and tokens_at_once(problem, row) > TILE
    return computed - begun if slight else computed


def plain_settings(problem: Problem, name: str, row: OperatingPoint) -> dict[str, int | None]:
    """Return the numbers behind `settings`, by names of our own: for a unit, or of pools for each of theirs.

    chunk: prompt tokens that a step computes, or a prefill unit together; max_num_seqs: requests of a unit at once, of
    pools in a decode unit; token_budget: all tokens of a step, None where an engine has no such limit.
    """
    batch, counted = ceil(row.batch), problem.engine.scheduler.counts_decodes
    if name == "aggregated":
        whole = max_num_batched_tokens(problem, whole_prompt(problem), batch) if counted else None
        return {"chunk": None, "max_num_seqs": batch, "token_budget": whole}
    computed = chunk_told(problem, row) if name == "chunked" else paged(problem, row)
    if name == "chunked":
        chunk, budget = (
            problem.unit.layout.dp * computed,
            max_num_batched_tokens(problem, computed, batch) if counted else None,
        )
        return {"chunk": chunk, "max_num_seqs": max_num_seqs(problem, row), "token_budget": budget}
    return {"chunk": computed, "max_num_seqs": batch, "token_budget": None}


def settings(problem: Problem, name: str, row: OperatingPoint) -> dict[str, object]:
    """Return the engine's settings for an architecture's row; the pools of a disaggregated one in units.

    vLLM and TensorRT-LLM count all computed tokens of a step, SGLang the chunk alone; and they count for each group
    of attention by itself, SGLang for all. Decodes are spread over the groups, and so are the prompts of a prefill
    unit; of chunks each group has its own. A decode counts with the tokens that it drafts.
    """
    scheduler, cli, groups = problem.engine.scheduler, problem.engine.cli, problem.unit.layout.dp
    seqs, tokens = cli.seqs, cli.tokens
    together = groups if scheduler.counts_together else 1  # groups that a limit is for
    batch = ceil(row.batch / groups)
    decoded = batch * verify_tokens(problem)
    options: dict[str, object] = {}
    if name == "aggregated":
        options[seqs] = batch * together
        if scheduler.counts_decodes:  # vLLM does not support to go without chunks, TensorRT-LLM refuses a longer prompt
            options[tokens] = whole_prompt(problem) + decoded
        options.update(cli.whole_prompts)
        return options
    if name == "chunked":
        computed = chunk_told(problem, row)
        options[seqs] = max_num_seqs_per_group(problem, row) * together
        options[tokens] = computed + decoded if scheduler.counts_decodes else computed * together
        options.update(cli.in_chunks)
        return options
    each = paged(problem, of_group(problem, row))
    options["prefill units"] = row.prefill_units
    options["prefill " + tokens] = each * (prefill_unit(problem).layout.dp if scheduler.counts_together else 1)
    options["decode units"] = row.decode_units
    options["decode " + seqs] = batch * together
    return options
