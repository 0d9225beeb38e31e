"""All numbers of a deployment under one calibration, three ways to serve compared, and what an engine is told.

What is asked is a dict: unit (`steps.unit_numbers`), work (n_in, n_out, alpha, cv), ttft and tpot (s), quantile (0:
means), units, read_bw (bytes/s that the unit loads from its tier; 0: HBM), price (of a GPU and hour; 0: none), engine.
"""

from __future__ import annotations

from math import ceil, isfinite
from typing import Any

from inference_math.perf.search import MOST_TOGETHER, NEVER, Row, aggregated, chunked, disaggregated, largest_within
from inference_math.perf.steps import Numbers, costs, stretched, unit_terms
from inference_math.theory import concurrent_prefills as _concurrent_prefills
from inference_math.theory import delta_p as _delta_p
from inference_math.theory import max_batch_memory as _max_batch_memory
from inference_math.theory import pdd_concurrency as _pdd_concurrency

__all__ = [
    "batch_limits", "careful", "compared", "computed_tokens", "gains", "interval", "keeps", "kept", "replicas",
    "settings", "solve", "under",
]  # fmt: skip

concurrent_prefills, delta_p = _concurrent_prefills.plain, _delta_p.plain
max_batch_memory, pdd_concurrency = _max_batch_memory.plain, _pdd_concurrency.plain

FOREVER = 1e300  # seconds
TAIL = 0.05
CAREFUL = 0.9  # of the draws must keep the SLA with the settings that are recommended
NEARLY = 1 + 1e-9  # a setting that meets a limit exactly keeps it


def compared(asked: Numbers, step: Any) -> dict[str, Row]:
    """Return what each architecture does at its best within the limits, by a step of decodes and prompts."""
    unit, work, tpot, ttft = asked["unit"], asked["work"], asked["tpot"], asked["ttft"]
    n_in, n_out, capacity = work["n_in"], work["n_out"], unit["kv_capacity"]
    places = max_batch_memory(capacity, n_in, n_out)
    return {
        "aggregated": aggregated(step, places, n_out, tpot, ttft, asked["quantile"]),
        "chunked": chunked(step, places, n_in, n_out, tpot, ttft),
        "disaggregated": disaggregated(step, capacity, places, n_in, n_out, tpot, ttft, asked["units"]),
    }


def under(asked: Numbers, found: Numbers, datasheet: Numbers, factors: list[float]) -> Numbers:
    """Return `costs` under the coefficients `found`, a step and its prompts' part stretched."""
    unit, work, read_bw = asked["unit"], asked["work"], asked["read_bw"]
    least = costs(unit, unit_terms(unit, datasheet), work, read_bw)
    return stretched(costs(unit, unit_terms(unit, found), work, read_bw), least, factors[0], factors[1])


def batch_limits(asked: Numbers, step: Any) -> dict[str, int]:
    """Return the largest batch by each limit alone, prefill first (at most `MOST_TOGETHER`): of means or a quantile."""
    n_out, quantile = asked["work"]["n_out"], asked["quantile"]
    places = max_batch_memory(asked["unit"]["kv_capacity"], asked["work"]["n_in"], n_out)
    return {
        "TPOT": largest_within(step, MOST_TOGETHER, n_out, asked["tpot"], FOREVER, quantile),
        "TTFT": largest_within(step, MOST_TOGETHER, n_out, FOREVER, asked["ttft"], quantile),
        "memory": places,
    }


def solve(asked: Numbers, found: Numbers, datasheet: Numbers, factors: list[float], order: list[str]) -> Numbers:
    """Return numbers, rows (`compared`), order (of the rows, highest rate first), binding, limits, costs and mixed.

    `found`, `datasheet` and `factors` as in `under`.
    `order` names the architectures whose rate and lead are asked for; empty: the two with the highest rates.
    """
    each = under(asked, found, datasheet, factors)
    step, work, n_out = each["mixed"], asked["work"], asked["work"]["n_out"]
    limits = batch_limits(asked, step)
    rows = compared(asked, step)
    names = ["aggregated", "chunked", "disaggregated"]
    names.sort(key=lambda name: -rows[name]["rate"])
    best, second = (order[0], order[1]) if len(order) > 0 else (names[0], names[1])
    smallest = min(limits["TPOT"], min(limits["TTFT"], limits["memory"]))
    plain, batch = rows["aggregated"]["rate"], rows["aggregated"]["batch"]
    rate, next_rate = rows[best]["rate"], rows[second]["rate"]
    tokens = rate * n_out / asked["unit"]["tp"]
    numbers = {
        "rate": rate,
        "margin": rate / next_rate - 1 if next_rate > 0 else NEVER,
        "tokens_per_gpu": tokens,
        "usd_per_million": asked["price"] / 3600 / tokens * 1e6 if tokens > 0 and asked["price"] > 0 else NEVER,
        "ttft": rows[best]["ttft"],
        "tpot": rows[best]["tpot"],
        "batch": batch,
        "batch_tpot": limits["TPOT"],
        "batch_ttft": limits["TTFT"],
        "batch_memory": limits["memory"],
        # Of a prompt an engine counts what it computes.
        "chunk": rows["chunked"]["chunk"] * (1 - work["alpha"]),
        "chunked_gain": rows["chunked"]["rate"] / plain if plain > 0 else NEVER,
        "prefill_units": rows["disaggregated"]["prefill_units"],
        "pdd_gain": rows["disaggregated"]["rate"] / plain if plain > 0 else NEVER,
        "t_w": each["t_w"],
        "delta_p": delta_p(each["ttft_1"], n_out),
        "delta_h": each["delta_h"] + each["own"],
        "concurrent_prefills": concurrent_prefills(max(batch, 1), n_out),
        "pdd_concurrency": pdd_concurrency(asked["ttft"], n_out, asked["tpot"]),
    }
    return {
        "numbers": numbers, "rows": rows, "order": names, "costs": each, "mixed": step,
        "best": names[0] if rows[names[0]]["rate"] > 0 else "",
        "binding": [name for name in ["TPOT", "TTFT", "memory"] if limits[name] == smallest],
    }  # fmt: skip


def interval(value: float, drawn: list[float]) -> list[float]:
    """Return the ends between which all but `TAIL` at each side of the draws lie, and the value, too."""
    ordered = [one for one in drawn if isfinite(one)]
    if len(ordered) < 1:
        return [value, value]
    ordered.sort(key=lambda one: one)
    low = ordered[max(ceil(TAIL * len(ordered)) - 1, 0)]
    high = ordered[ceil((1 - TAIL) * len(ordered)) - 1]
    return [min(low, value), max(high, value)]


def careful(asked: Numbers, best: str, solved: list[Numbers]) -> Row:
    """Return an architecture's row that keeps the SLA in nine of ten draws, of the fastest draw that has one.

    Where none does, that of the slowest draw in which it meets the SLA at all.
    """
    rows = [one["rows"][best] for one in solved]
    rows.sort(key=lambda row: -row["rate"])
    slowest = rows[0]
    for row in rows:
        if row["rate"] > 0:
            slowest = row
            if kept(asked, best, solved, row) >= CAREFUL:
                return dict(row)
    return dict(slowest)


def kept(asked: Numbers, name: str, solved: list[Numbers], row: Row) -> float:
    """Return the share of the draws in which the settings of a row keep the SLA."""
    held = [one for one in solved if keeps(asked, name, one, row)]
    return len(held) / len(solved)


def keeps(asked: Numbers, name: str, one: Numbers, row: Row) -> bool:
    """Tell whether the settings of an architecture's row keep the SLA under a draw, by the step that they make."""
    step, n_in = one["mixed"], asked["work"]["n_in"]
    tpot, ttft = asked["tpot"] * NEARLY, asked["ttft"] * NEARLY
    if name == "aggregated":
        return bool(row["batch"] <= min(one["numbers"]["batch_tpot"], one["numbers"]["batch_ttft"]))
    mixed = step(row["batch"] if name == "chunked" else 0.0, row["chunk"] / n_in)
    if name == "chunked":
        return bool(mixed <= tpot and (n_in / row["chunk"] + 1) * mixed <= ttft)
    return bool(step(row["batch"], 0.0) <= tpot and mixed <= ttft)


def computed_tokens(asked: Numbers, row: Row) -> int:
    """Return the prompt tokens that a row's step computes: what is not stored, of each prompt at least the last."""
    computed: int = max(ceil(row["chunk"] * (1 - asked["work"]["alpha"])), ceil(row["chunk"] / asked["work"]["n_in"]))
    return computed


def settings(asked: Numbers, name: str, row: Row) -> dict[str, Any]:
    """Return the engine's settings for an architecture's row; the pools of a disaggregated one in units.

    vLLM and TensorRT-LLM count all computed tokens of a step, SGLang the chunk alone.
    """
    engine, batch, n_in = asked["engine"], ceil(row["batch"]), asked["work"]["n_in"]
    seqs, tokens = ENGINE_TERMS[engine]
    told: dict[str, Any] = {}
    if name == "aggregated":
        told[seqs] = batch
        told.update(WHOLE_PROMPTS[engine])
        return told
    computed = computed_tokens(asked, row)
    if name == "chunked":
        told[seqs] = batch + ceil(row["chunk"] / n_in)  # prompts under way hold places, too
        told[tokens] = computed if engine == "sglang" else computed + batch
        told.update(IN_CHUNKS[engine])
        return told
    told["prefill units"] = row["prefill_units"]
    told["prefill " + tokens] = computed
    told["decode units"] = asked["units"] - row["prefill_units"]
    told["decode " + seqs] = batch
    return told


# How engines call the most requests in a step and the tokens of a step; what turns chunks off, and on.
ENGINE_TERMS = {
    "vllm": ["--max-num-seqs", "--max-num-batched-tokens"],
    "trtllm": ["max_batch_size", "max_num_tokens"],
    "sglang": ["--max-running-requests", "--chunked-prefill-size"],
}
WHOLE_PROMPTS: dict[str, dict[str, Any]] = {
    "vllm": {"--no-enable-chunked-prefill": ""},  # its budget is then the longest sequence
    "trtllm": {"enable_chunked_prefill": "false"},
    "sglang": {"--chunked-prefill-size": -1},
}
IN_CHUNKS: dict[str, dict[str, Any]] = {
    "vllm": {},
    "trtllm": {"enable_chunked_prefill": "true"},
    "sglang": {"--enable-mixed-chunk": ""},
}


def gains(asked: Numbers, found: Numbers, read_bws: dict[str, float]) -> list[dict[str, Any]]:
    """Return what loading the stored share of the prompts gains, by where it lies: "nowhere", then each tier.

    where, ttft_1 (s; what a prefill adds to a step of others), rate (requests/s of a unit, of the best architecture),
    speedup (of ttft_1) and gain (of the rate), over computing all.
    """
    work, terms = asked["work"], unit_terms(asked["unit"], found)
    whole = {"n_in": work["n_in"], "n_out": work["n_out"], "alpha": 0.0, "cv": work["cv"]}
    places: list[Any] = [["nowhere", whole, 0.0]]
    if work["alpha"] > 0:
        for name in read_bws:
            places.append([name, work, read_bws[name]])
    told: list[dict[str, Any]] = []
    for where, sent, read_bw in places:
        each = costs(asked["unit"], terms, sent, read_bw)
        rows = compared(asked, each["mixed"])
        rate = max(rows["aggregated"]["rate"], max(rows["chunked"]["rate"], rows["disaggregated"]["rate"]))
        first = told[0] if len(told) > 0 else {"ttft_1": each["ttft_1"], "rate": rate}
        told.append(
            {
                "where": where, "ttft_1": each["ttft_1"], "rate": rate, "speedup": first["ttft_1"] / each["ttft_1"],
                "gain": rate / first["rate"] if first["rate"] > 0 else NEVER,
            }
        )  # fmt: skip
    return told


def replicas(asked: Numbers, name: str, rate: float, traffic: float) -> list[float]:
    """Return the replicas that mean rates ask for, and their GPUs, for requests/s of a unit and of all users."""
    units = asked["units"] if name == "disaggregated" else 1
    many = ceil(traffic / (rate * units))
    return [many, many * units * asked["unit"]["tp"]]
