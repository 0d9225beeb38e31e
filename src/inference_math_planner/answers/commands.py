"""What starts an engine as a plan says: the options of whole command lines, as the engines' own documentation has them.

The words are those of the engine's record, each a template as `evidence.sentences` fills it in. What a plan does not
know stands as a variable of the shell: `$MODEL`, the checkpoint; `$LONGEST`, the tokens of the longest request;
`$STORE_GB`, the size of a store.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from msgspec.structs import replace

from inference_math.unit.problem import prefill_unit, store_bytes, verify_tokens
from inference_math.unit.steps import longest_request
from inference_math.unit.types import Message, Problem

if TYPE_CHECKING:
    from inference_math.catalogue.engines import EngineCli

__all__ = ["commands", "with_cache"]

# What an engine has no option for it reads from a file; such lines begin with this mark.
FILED = "# "


def commands(
    problem: Problem, name: str, settings: dict[str, object], kv: str, tier: str, behind: int
) -> list[list[Message]]:
    """Return [title, command] for each kind of server of an architecture, and for what stands in front of its pools.

    Of units without pools so many are `behind` each router.

    `settings` is what `starts.settings` returns, `kv` the precision of the KV cache where it is told
    (`unit.mixing.told_kv`). Stored KV caches lie in the `tier`: "" where none are, "dram" for host memory, which
    engines load from by themselves; what loads from any other is named in a line of its own. Where sessions are
    counted, the size of the store stands in the command, else a variable.
    """
    engine = problem.engine.cli
    lines: list[list[Message]] = []
    note = engine.store_note if tier == "dram" else engine.away_note
    if tier != "" and note != "":
        lines.append([{"key": "start.stored"}, {"text": note}])
    if problem.unit.drafts > 0:
        lines.append([{"key": "start.drafts"}, {"text": engine.drafter}])
    if name == "disaggregated":
        for pool in ["prefill", "decode"]:
            title: Message = {"key": "start.pool", "units": settings[pool + " units"], "pool": pool}
            lines.append([title, pooled(problem, settings, kv, tier if pool == "prefill" else "", pool)])
        lines.append([{"key": "start.front"}, {"text": engine.router}])
    else:
        lines.append([{"key": "start.unit"}, command(problem, settings, kv, tier, "")])
        if behind > 1:
            lines.append([{"key": "start.front_each", "units": behind}, balanced(problem)])
    return lines


def with_cache(engine: EngineCli, settings: dict[str, object], kv: str) -> dict[str, object]:
    """Return settings with the precision of the KV cache, where an engine is told it; see `unit.mixing.told_kv`."""
    cache, with_it = engine.kv_fp8, settings.copy()
    value = cache["value"] if kv == "fp8" else cache["plain"]
    if kv != "" and value != "":
        with_it[cache["option"]] = value
    return with_it


def balanced(problem: Problem) -> Message:
    """Return what stands in front of units without pools: it looks at requests, or where caches are stored at these."""
    engine = problem.engine.cli
    return {"text": engine.balancer, "policy": engine.policies[1 if problem.work.alpha > 0 else 0]}


def pooled(problem: Problem, settings: dict[str, object], kv: str, tier: str, pool: str) -> Message:
    """Return the command line of a pool's servers, whose settings are those that begin with its name."""
    pool_options: dict[str, object] = {}
    for key in settings:
        if key.startswith(pool + " ") and key != pool + " units":
            pool_options[key.replace(pool + " ", "")] = settings[key]
    of = replace(problem, unit=prefill_unit(problem)) if pool == "prefill" else problem
    return command(of, pool_options, kv, tier, pool)


def store_sized(problem: Problem, option: str) -> Message:
    """Return an option of a store with the size that its sessions take, or with a variable if nobody counts them."""
    size = store_bytes(problem)
    if not size > 0:
        return {
            "text": option, "store_gb": "$STORE_GB", "store_gb_of_a_gpu": "$STORE_GB_OF_A_GPU",
            "store_bytes": "$STORE_BYTES",
        }  # fmt: skip
    each = ceil(size / problem.unit.gpus / 1e9)
    return {"text": option, "store_gb": ceil(size / 1e9), "store_gb_of_a_gpu": each, "store_bytes": ceil(size)}


def command(problem: Problem, settings: dict[str, object], kv: str, tier: str, pool: str) -> Message:
    """Return the command line of one server, and in lines above it what the engine reads from a file."""
    engine = problem.engine.cli
    given = parallel_args(problem)
    given.extend(speculative_args(problem))
    given.extend(kv_args(problem, kv, tier, pool))
    if problem.planning != "":
        given.append({"text": problem.planning})
    for key in settings:
        option = key
        if not key.startswith("--"):
            option = "--" + key if key.startswith("max") else FILED + key + ":"
        given.append({"text": option + " {value}" if settings[key] != "" else option, "value": settings[key]})
    if pool != "":
        part = store_sized(problem, pool_option(engine, tier))
        part["pool"] = pool
        given.append(part)
    if pool == "prefill" and engine.prefill_pool != "":
        given.append({"text": engine.prefill_pool})
    filed = written([one for one in given if one["text"].startswith(FILED)])
    options = [one for one in given if one["text"] != "" and not one["text"].startswith(FILED)]
    return {
        "key": "start.line", "filed": [{"key": "start.filed", "lines": filed}] if len(filed) > 0 else [],
        "program": engine.program, "options": options, "file": engine.file if len(filed) > 0 else "",
    }  # fmt: skip


def written(filed: list[Message]) -> list[Message]:
    """Return the lines of the file of options; what stands before a dot holds what stands behind it."""
    lines: list[Message] = []
    above = ""
    for one in filed:
        line, text = one.copy(), one["text"].replace(FILED, "")
        at = text.find(".")
        holder = text[:at] if at > 0 else ""
        if holder != "" and holder != above:
            lines.append({"text": holder + ":"})
        line["text"] = "  " + text[at + 1 :] if holder != "" else text
        lines.append(line)
        above = holder
    return lines


def parallel_args(problem: Problem) -> list[Message]:
    """Return how the GPUs of a unit divide the model.

    vLLM counts the GPUs that share a matrix; the others all that share the experts, and attention's groups out of them.
    """
    layout, engine = problem.unit.layout, problem.engine.cli
    tp, dp, ep, pp = layout.tp, layout.dp, layout.ep, layout.pp
    given: list[Message] = [{"text": engine.tp, "tp": tp, "all": tp * dp}]
    if dp > 1:
        given.append({"text": engine.dp, "dp": dp})
    if ep > 1:
        given.append({"text": engine.ep, "ep": ep})
    if pp > 1:
        given.append({"text": engine.pp, "pp": pp})
    return given


def speculative_args(problem: Problem) -> list[Message]:
    """Return what makes requests draft tokens, where they do."""
    drafts = problem.unit.drafts
    if not drafts > 0:
        return []
    return [{"text": line, "drafts": drafts, "brought": verify_tokens(problem)} for line in problem.engine.cli.drafting]


def kv_args(problem: Problem, kv: str, tier: str, pool: str) -> list[Message]:
    """Return what the server keeps: its share of the memory, the precision of its KV cache, a store, the longest."""
    engine, work = problem.engine.cli, problem.work
    given: list[Message] = []
    if engine.share != "":
        given.append({"text": engine.share + " {memory}", "memory": problem.unit.memory})
    if kv == "fp8":
        given.append({"text": engine.eight_bits})
    if kv == "bf16" and engine.kv_fp8["plain"] != "":
        given.append({"text": engine.kv_fp8["option"] + " " + engine.kv_fp8["plain"]})
    if tier != "" and not (engine.pool_store != "" and pool != ""):
        option = engine.store if tier == "dram" else engine.away
        if option != "":
            given.append(store_sized(problem, option))
    longest, made_for = ceil(longest_request(work)), problem.context
    given.append({"text": engine.longest + " ${LONGEST:-{longest}}", "longest": longest})
    if longest > made_for > 0 and engine.rope != "":
        given.append({"text": engine.rope, "factor": ceil(10 * longest / made_for) / 10, "context": made_for})
    return given


def pool_option(engine: EngineCli, tier: str) -> str:
    """Return what makes a server one of a pool, a store with it where one option names both."""
    stored = engine.pool_store if tier == "dram" else engine.pool_away
    return stored if tier != "" and engine.pool_store != "" else engine.pool
