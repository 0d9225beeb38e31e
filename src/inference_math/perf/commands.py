"""What starts an engine as a plan says: whole command lines, as the engines' own documentation has them.

The words are those of the engine's record. What a
plan does not know stands as a variable of the shell: `$MODEL`, the checkpoint; `$LONGEST`, the tokens of the longest
request; `$STORE_GB`, the size of a store.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from inference_math.perf.asked import store_bytes, verify_tokens
from inference_math.perf.steps import longest_request
from inference_math.perf.types import Asked

if TYPE_CHECKING:
    from inference_math.catalogue.engines import EngineRecord

__all__ = ["commands"]

# What an engine has no option for it reads from a file; such lines begin with this mark.
FILED = "# "


def commands(
    asked: Asked, name: str, told: dict[str, object], kv: str, memory: float, tier: str, behind: int
) -> list[list[str]]:
    """Return (title, command) for each kind of server of an architecture, and for what stands in front of its pools.

    Of units without pools so many are `behind` each router.

    `told` is what `settings` returns, `kv` the precision of the KV cache, `memory` the share of the GPUs' that the
    engine takes. Stored KV caches lie in the `tier`: "" where none are, "dram" for host memory, which engines load
    from by themselves; what loads from any other is named in a line of its own. Where sessions are counted, the size of
    the store stands in the command, else a variable.
    """
    found = []
    if tier != "" and tier != "dram":
        found.append(["what is stored", asked["engine"]["away_note"]])
    if tier == "dram" and asked["engine"]["store_note"] != "":
        found.append(["what is stored", asked["engine"]["store_note"]])
    if asked["unit"]["drafts"] > 0:
        found.append(["what drafts", asked["engine"]["drafter"]])
    if name == "disaggregated":
        for pool in ["prefill", "decode"]:
            line = pooled(asked, told, kv, memory, tier if pool == "prefill" else "", pool)
            found.append([str(told[pool + " units"]) + " x " + pool, line])
        found.append(["in front of them", asked["engine"]["router"]])
    else:
        found.append(["each unit", command(asked, told, kv, memory, tier, "")])
        if behind > 1:
            found.append(["in front of each " + str(behind), balanced(asked)])
    return found


def balanced(asked: Asked) -> str:
    """Return what stands in front of units without pools: it looks at requests, or where caches are stored at these."""
    engine = asked["engine"]
    return engine["balancer"].replace("POLICY", engine["policies"][1 if asked["work"]["alpha"] > 0 else 0])


def pooled(asked: Asked, told: dict[str, object], kv: str, memory: float, tier: str, pool: str) -> str:
    """Return the command line of a pool's servers, whose settings are those that begin with its name."""
    own: dict[str, object] = {}
    for key in told:
        if key.startswith(pool + " ") and key != pool + " units":
            own[key.replace(pool + " ", "")] = told[key]
    return command(asked, own, kv, memory, tier, pool)


def store_sized(asked: Asked, option: str) -> str:
    """Return an option of a store with the size that its sessions take, in place of the variable, if they are known."""
    size = store_bytes(asked)
    if not size > 0:
        return option
    each = str(ceil(size / asked["unit"]["gpus"] / 1e9))
    told = option.replace("$STORE_GB_OF_A_GPU", each).replace("$STORE_GB", str(ceil(size / 1e9)))
    return told.replace("$STORE_BYTES", str(ceil(size)))


def command(asked: Asked, told: dict[str, object], kv: str, memory: float, tier: str, pool: str) -> str:
    """Return the command line of one server, and in lines above it what the engine reads from a file."""
    given = parallel_args(asked)
    given.extend(speculative_args(asked))
    given.extend(kv_args(asked, kv, memory, tier, pool))
    for key in told:
        value = str(told[key])
        option = key
        if not key.startswith("--"):
            option = "--" + key if key.startswith("max") else FILED + key + ":"
        given.append(option + " " + value if value != "" else option)
    if pool != "":
        given.append(store_sized(asked, pool_args(asked["engine"], tier, pool)))
    if pool == "prefill" and asked["engine"]["prefill_pool"] != "":
        given.append(asked["engine"]["prefill_pool"])
    said = [one for one in given if not one.startswith(FILED)]
    filed = [one.replace(FILED, "") for one in given if one.startswith(FILED)]
    line = asked["engine"]["program"] + " " + " ".join(said)
    if len(filed) > 0:
        return written(filed) + "\n" + line + asked["engine"]["file"]
    return line


def written(filed: list[str]) -> str:
    """Return the lines that write the file of options; what stands before a dot holds what stands behind it."""
    lines, above = [], ""
    for one in filed:
        at = one.find(".")
        holder = one[:at] if at > 0 else ""
        if holder != "" and holder != above:
            lines.append(holder + ":")
        lines.append("  " + one[at + 1 :] if holder != "" else one)
        above = holder
    return "cat > options.yaml <<EOF\n" + "\n".join(lines) + "\nEOF"


def parallel_args(asked: Asked) -> list[str]:
    """Return how the GPUs of a unit divide the model.

    vLLM counts the GPUs that share a matrix; the others all that share the experts, and attention's groups out of them.
    """
    layout, engine = asked["unit"]["layout"], asked["engine"]
    tp, dp, ep, pp = layout["tp"], layout["dp"], layout["ep"], layout["pp"]
    given = [engine["tp"].replace("TP", str(tp)).replace("ALL", str(tp * dp))]
    if dp > 1:
        given.append(engine["dp"].replace("DP", str(dp)))
    if ep > 1:
        given.append(engine["ep"].replace("EP", str(ep)))
    if pp > 1:
        given.append(engine["pp"].replace("PP", str(pp)))
    return given


def speculative_args(asked: Asked) -> list[str]:
    """Return what makes requests draft tokens, where they do."""
    drafts = asked["unit"]["drafts"]
    if not drafts > 0:
        return []
    lines = asked["engine"]["drafting"]
    return [line.replace("DRAFTS", str(drafts)).replace("BROUGHT", str(verify_tokens(asked))) for line in lines]


def kv_args(asked: Asked, kv: str, memory: float, tier: str, pool: str) -> list[str]:
    """Return what the server keeps: its share of the memory, the precision of its KV cache, a store, the longest."""
    engine, work, given = asked["engine"], asked["work"], []
    if engine["share"] != "":
        given.append(engine["share"] + " " + str(memory))
    if kv == "fp8":
        given.append(engine["eight_bits"])
    if tier != "" and not (engine["pool_store"] != "" and pool != ""):
        option = engine["store"] if tier == "dram" else engine["away"]
        if option != "":
            given.append(store_sized(asked, option))
    longest, made_for = ceil(longest_request(work)), asked["context"]
    given.append(engine["longest"] + " ${LONGEST:-" + str(longest) + "}")
    if longest > made_for > 0 and engine["rope"] != "":
        factor = ceil(10 * longest / made_for) / 10
        given.append(engine["rope"].replace("FACTOR", str(factor)).replace("CONTEXT", str(made_for)))
    return given


def pool_args(engine: EngineRecord, tier: str, pool: str) -> str:
    """Return what makes a server one of a pool, a store with it where one option names both."""
    stored = engine["pool_store"] if tier == "dram" else engine["pool_away"]
    told = stored if tier != "" and engine["pool_store"] != "" else engine["pool"]
    return told.replace("POOL", pool)
