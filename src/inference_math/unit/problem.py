"""What follows from a question before anything is searched: its constants, and what an engine counts of a row."""

from __future__ import annotations

from math import ceil, floor
from typing import TYPE_CHECKING

from msgspec.structs import replace

from inference_math.theory.plain import max_batch_growing, max_batch_reserved
from inference_math.unit.batch import MOST_TOGETHER
from inference_math.unit.steps import answer_steps, drafting, kv_pooled, kv_sent, kv_tokens, stored_tokens
from inference_math.unit.types import (
    CoefficientValues,
    Layout,
    Message,
    OperatingPoint,
    Problem,
    Rates,
    SearchConstants,
    UnitNumbers,
)
from inference_math.workload.requests import Workload

if TYPE_CHECKING:
    from inference_math.catalogue.engines import EngineRecord

NEARLY = 1 + 1e-9  # a setting that meets a limit exactly keeps it
MOST_TOKENS = 16_384  # of prompts that a group of GPUs computes together: beyond, engines run out of workspace


def largest_graph(engine: EngineRecord, there: float, gpus: float) -> float:
    """Return the requests of the largest CUDA graph that an engine makes on GPUs with so many bytes.

    `gpus` are those of a stage.
    """
    largest = 0.0
    for row in engine.memory.graphs:
        if there >= 2**30 * row.gib:
            largest = 1.0 * (row.few if gpus < 4 else row.many)
    return largest


def usual_share(
    engine: EngineRecord, there: float, unit: UnitNumbers, tokens: float, graph: float, drafts: float
) -> float:
    """Return the share of a GPU's memory for weights and KV caches that an engine takes unless it is told otherwise.

    `there` are the GPU's bytes, `unit` is one that takes all of them; a step has so many `tokens` of all its groups,
    the largest CUDA `graph` so many requests; 0: as many as the engine takes by itself. The engine's record says how.
    """
    memory, reserves, mib, groups = engine.memory, engine.memory.reserves, there / 2**20, unit.layout.dp
    if memory.of_rest:
        taken = weights_share(unit, there)
        return taken + memory.takes * (1 - taken)
    if len(memory.graphs) == 0:
        return memory.takes
    if not graph > 0:
        graph = largest_graph(engine, there, unit.gpus / unit.layout.pp)
    kept = reserves["base"] + reserves["token"] * max(tokens, 2048) + reserves["graph"] * graph
    kept += reserves["gpu"] * unit.gpus
    if groups > 1:
        kept += (reserves["group"] + (reserves["crowded"] if graph > reserves["crowd"] else 0)) * graph * groups
    if mib > 60 * 1024:
        kept = max(kept, reserves["least"])
    if drafts > 0:
        kept += reserves["drafter"]
    return max(0.0, floor(1000 * (1 - kept / mib) + 0.5) / 1000)


def kept_by(engine: EngineRecord, rates: Rates, gpus: float) -> Rates:
    """Return the rates of a GPU with the bytes that an engine needs itself on one of so many."""
    return replace(rates, workspace=engine.memory.single) if gpus < 2 and engine.memory.single > 0 else rates


def weights_share(unit: UnitNumbers, there: float) -> float:
    """Return the share of a GPU's bytes, `there`, that weights take, of a unit that takes all of them."""
    return 1 - (unit.kv_room / unit.gpus + unit.workspace) / there


def max_kv_seqs(unit: UnitNumbers, work: Workload, engine: EngineRecord) -> int:
    """Return the requests whose KV caches an engine holds at once.

    Where layers forget, or hold a state, a token takes what it does on average in requests as long as these are. One
    that fits is held, however much answers scatter.
    """
    held = max_batch_growing if engine.memory.kv_grows else max_batch_reserved
    prompt, room = work.n_in * work.pairing, kv_pooled(unit, work.n_in + work.n_out, engine.memory.windows)
    fits = floor(held(room, prompt, work.n_out, work.cv))
    return max(fits, 1) if room >= prompt + work.n_out else fits


def kv_seqs(problem: Problem) -> int:
    """Return the requests that the unit's KV cache holds."""
    return max_kv_seqs(problem.unit, problem.work, problem.engine)


def max_num_seqs_per_group(problem: Problem, row: OperatingPoint) -> int:
    """Return the requests at once that a row of chunks has in one of the unit's groups.

    Decodes, its part of all, and prompts under way, which hold places, too; no more than fit.
    """
    groups = problem.unit.layout.dp
    under_way = ceil(row.batch / groups) + ceil(row.chunk / problem.work.n_in)
    return min(under_way, ceil(kv_seqs(problem) / groups))


def max_num_seqs(problem: Problem, row: OperatingPoint) -> int:
    """Return the requests at once that a row of chunks has in all of the unit's groups."""
    return min(problem.unit.layout.dp * max_num_seqs_per_group(problem, row), kv_seqs(problem))


def max_num_batched_tokens(problem: Problem, each: int, batch: int) -> int:
    """Return the tokens of a unit's step in which each group has so many of prompts, beside `batch` decodes of all."""
    return problem.unit.layout.dp * each + batch * verify_tokens(problem)


def fresh_share(work: Workload) -> float:
    """Return the share of a prompt's tokens that is computed: what is not stored, the last one always."""
    return 1 - stored_tokens(work.n_in, work.alpha) / work.n_in


def prompts_together(tokens: float, n_in: float, groups: int) -> float:
    """Return the most prompts that a unit of so many groups computes at once, whose KV cache holds `tokens`."""
    return min(min(tokens / n_in, MOST_TOGETHER), max(floor(MOST_TOKENS * groups / n_in), 1))


def search_constants(problem: Problem) -> SearchConstants:
    """Return the constants of a question: what settings are searched for.

    A step gives some tokens in the mean, which share its time; but of a quantile none share a gap.
    """
    unit, work, engine, first = problem.unit, problem.work, problem.engine, prefill_unit(problem)
    n_in, held, sharing = work.n_in, kv_seqs(problem), unit.accepted_per_step if not problem.quantile > 0 else 1.0
    return SearchConstants(
        n_in=n_in,
        steps=answer_steps(unit, work.n_out),
        step=problem.tpot * sharing,
        sharing=sharing,
        ttft=problem.ttft,
        quantile=problem.quantile,
        kv_seqs=held,
        room=min(held, MOST_TOGETHER),
        together=prompts_together(kv_tokens(first, n_in), n_in, first.layout.dp),
        fresh=fresh_share(work),
        groups=unit.layout.dp,
        units=problem.units,
        prefill_gpus=prefill_size(problem),
        handover=problem.handover,
        sent=sent_bytes(problem) / problem.pool_bw,
        mixes=engine.scheduler.mixes_drafts or not unit.drafts > 0,
    )


def prefill_unit(problem: Problem) -> UnitNumbers:
    """Return a unit of the prefill pool, whose requests draft as those of the decode pool do."""
    return drafted_alike(problem, problem.pools[0].prefill) if len(problem.pools) > 0 else problem.unit


def drafted_alike(problem: Problem, other: UnitNumbers) -> UnitNumbers:
    """Return another unit whose requests draft as those of the question's do."""
    return drafting(other, problem.unit.drafts, problem.unit.accepted)


def of_architecture(problem: Problem, name: str) -> Problem:
    """Return the question as an architecture has it: with a unit of its decode pool, where that is laid out apart."""
    if name != "disaggregated" or len(problem.pools) == 0:
        return problem
    pools = problem.pools[0]
    larger, unit = pools.decode.gpus / problem.unit.gpus, drafted_alike(problem, pools.decode)
    read_bw, pool_bw = larger * problem.read_bw, larger * problem.pool_bw
    return replace(problem, unit=unit, units=pools.units, moves=pools.decode_moves, read_bw=read_bw, pool_bw=pool_bw)


def of_units(problem: Problem, units: int) -> Problem:
    """Return what is asked, with so many units in a replica."""
    return replace(problem, units=units, pools=[replace(pools, units=units) for pools in problem.pools])


def moved_by(coefficients: CoefficientValues, moves: CoefficientValues) -> CoefficientValues:
    """Return coefficients of a unit whose layout moves some of those that were drawn."""
    moved = coefficients.copy()
    for name in moves:
        moved[name] = coefficients[name] * moves[name]
    return moved


def prefill_size(problem: Problem) -> float:
    """Return the GPUs of a unit of the prefill pool over those of a unit of the decode pool."""
    return prefill_unit(problem).gpus / problem.unit.gpus


def sent_bytes(problem: Problem) -> float:
    """Return the bytes that go from a prefill unit to a decode unit with a prompt."""
    return kv_sent(problem.unit, problem.work.n_in)


def scattered_over(layout: Layout, joined: float) -> list[Message]:
    """Say that groups which share a layer lie on more GPUs than one node's links reach; nothing where they do not."""
    together = layout.tp * layout.dp
    return [{"key": "outside.nodes", "together": together, "joined": joined}] if together > joined else []


def sessions_overflow(problem: Problem) -> list[Message]:
    """Say what is wrong with keeping the stored part of so many sessions in HBM; nothing where it has room for them."""
    full = problem.work.alpha > 0 and not problem.read_bw > 0 and problem.sessions > kv_seqs(problem)
    return [{"key": "stored.crowded", "places": kv_seqs(problem)}] if full else []


def store_bytes(problem: Problem) -> float:
    """Return the bytes that the caches of the sessions of a unit take; 0 where nobody says how many there are."""
    work = problem.work
    return problem.sessions * kv_sent(problem.unit, work.n_in + work.n_out)


def computed_tokens(problem: Problem, row: OperatingPoint) -> int:
    """Return the prompt tokens that a row's step computes: what is not stored, of each prompt at least the last."""
    chunk, n_in = row.chunk, problem.work.n_in
    return max(ceil(chunk * fresh_share(problem.work) * (1 - 1e-12)), ceil(chunk / n_in))


def ranks_of(unit: UnitNumbers) -> int:
    """Return the groups of a unit's GPUs that share requests: of attention data parallelism and of pipeline stages."""
    return unit.layout.dp * unit.layout.pp


def changed(problem: Problem, row: OperatingPoint, chunk: float, prefill: float, decode: float) -> OperatingPoint:
    """Return a row with another chunk, or another split of its units."""
    computed = chunk * fresh_share(problem.work)
    return replace(row, chunk=chunk, computed=computed, prefill_units=prefill, decode_units=decode)


def of_group(problem: Problem, row: OperatingPoint) -> OperatingPoint:
    """Return a row of pools as each group of a prefill unit has it: its part of the prompts, whole ones."""
    n_in = problem.work.n_in
    each = ceil(row.chunk / n_in / ranks_of(prefill_unit(problem)) - 1e-6)
    return changed(problem, row, n_in * each, row.prefill_units, row.decode_units)


def verify_tokens(problem: Problem) -> int:
    """Return the tokens that a decode brings into a step: its own, and those that it drafts."""
    return ceil(1 + problem.unit.drafts)


def whole_prompt(problem: Problem) -> int:
    """Return the tokens that an engine counts of a prompt that it does not cut; some count those stored."""
    share = 1.0 if problem.engine.scheduler.counts_stored else fresh_share(problem.work)
    return ceil(problem.work.n_in * share * (1 - 1e-12))
