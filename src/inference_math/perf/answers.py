"""All numbers of a deployment under one calibration, three ways to serve compared, and what an engine is told.

What is asked is an `Asked`. Coefficients are a dict by their names, with the seconds of an anchor; `factors` those of a
step and of what prompts add to it.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, isfinite
from typing import Any

from inference_math.perf.batch import FOREVER, MOST_TOGETHER, largest_within, mean_seen, round_trip
from inference_math.perf.search import ARCHITECTURES, NEVER, NONE, aggregated, chunked, disaggregated, pooled, served
from inference_math.perf.steps import answer_steps, costs, drafting, kv_tokens, stored_tokens, unit_terms
from inference_math.perf.types import Asked, Costs, Found, Row, Solved, Step, UnitNumbers, Work
from inference_math.theory import chunk_size as _chunk_size
from inference_math.theory import chunked_gain_serial as _chunked_gain_serial
from inference_math.theory import concurrent_prefills as _concurrent_prefills
from inference_math.theory import delta_p as _delta_p
from inference_math.theory import expected_tpot_full as _expected_tpot_full
from inference_math.theory import expected_ttft_full as _expected_ttft_full
from inference_math.theory import gain_bound as _gain_bound
from inference_math.theory import max_batch as _max_batch
from inference_math.theory import max_batch_growing as _max_batch_growing
from inference_math.theory import max_batch_reserved as _max_batch_reserved
from inference_math.theory import max_batch_ttft_full as _max_batch_ttft_full
from inference_math.theory import pdd_concurrency as _pdd_concurrency
from inference_math.theory import pdd_gain_same as _pdd_gain_same
from inference_math.theory import pdd_split as _pdd_split
from inference_math.theory import request_rate as _request_rate

__all__ = [
    "GROWS", "batch_curve", "batch_limits", "brought", "by_formula", "careful", "compared", "computed_tokens", "gains",
    "interval", "keeps", "kept", "lead", "median", "places_of", "ranked", "replicas", "serves", "settings", "solve",
    "steps_of", "swings", "under", "undrafted", "units_for", "usd_per_million",
]  # fmt: skip

concurrent_prefills, delta_p, gain_bound = _concurrent_prefills.plain, _delta_p.plain, _gain_bound.plain
expected_tpot_full, expected_ttft_full = _expected_tpot_full.plain, _expected_ttft_full.plain
max_batch_growing, max_batch_reserved = _max_batch_growing.plain, _max_batch_reserved.plain
max_batch, max_batch_ttft_full = _max_batch.plain, _max_batch_ttft_full.plain
pdd_concurrency, pdd_gain_same, pdd_split = _pdd_concurrency.plain, _pdd_gain_same.plain, _pdd_split.plain
chunk_size, chunked_gain_serial, request_rate = _chunk_size.plain, _chunked_gain_serial.plain, _request_rate.plain

TAIL = 0.05
CAREFUL = 0.9  # of the draws must keep the SLA with the settings that are recommended
NEARLY = 1 + 1e-9  # a setting that meets a limit exactly keeps it
# Engines whose KV caches grow block by block; the others reserve a request's whole length when it is admitted.
GROWS = {"vllm": True, "sglang": True, "trtllm": False}


def places_of(unit: UnitNumbers, work: Work, engine: str) -> int:
    """Return the requests whose KV caches an engine holds at once.

    Where layers forget, or hold a state, a token takes what it does on average in requests as long as these are.
    """
    held = max_batch_growing if GROWS[engine] else max_batch_reserved
    length = work["n_in"] + work["n_out"]
    whole: int = held(kv_tokens(unit, length), work["n_in"], work["n_out"], work["cv"])
    return whole


def places(asked: Asked) -> int:
    """Return the requests that the unit's KV cache holds."""
    return places_of(asked["unit"], asked["work"], asked["engine"])


def fresh_share(work: Work) -> float:
    """Return the share of a prompt's tokens that is computed: what is not stored, the last one always."""
    return 1 - stored_tokens(work["n_in"], work["alpha"]) / work["n_in"]


def steps_of(asked: Asked) -> float:
    """Return the steps of an answer, fewer than its tokens where requests draft: what stands for n_out in the laws."""
    return answer_steps(asked["unit"], asked["work"]["n_out"])


def sharing(asked: Asked) -> float:
    """Return the tokens that share a step's time: what it gives in the mean, but of a quantile none share a gap."""
    return asked["unit"]["gives"] if not asked["quantile"] > 0 else 1.0


def longest_step(asked: Asked) -> float:
    """Return the seconds that a decode's step may take: the limit on TPOT for each token that shares it."""
    return asked["tpot"] * sharing(asked)


def mixes(asked: Asked) -> bool:
    """Tell whether an engine computes chunks beside decodes: SGLang does not where tokens are drafted."""
    return not (asked["engine"] == "sglang" and asked["unit"]["drafts"] > 0)


def compared(asked: Asked, step: Step, batch: int) -> dict[str, Row]:
    """Return what each architecture does at its best within the limits, by a step of decodes and prompts.

    `batch` is the largest with prefill first. Of its chunk a row tells how many tokens are `computed`, in the mean over
    prompts.
    """
    unit, n_in, ttft = asked["unit"], asked["work"]["n_in"], asked["ttft"]
    steps, most, room = steps_of(asked), longest_step(asked), places(asked)
    rows: Any = {
        "aggregated": dict(aggregated(step, batch, steps, asked["quantile"])),
        "chunked": dict(chunked(step, room, n_in, steps, most, ttft) if mixes(asked) else NONE),
        "disaggregated": dict(
            disaggregated(step, kv_tokens(unit, n_in), room, n_in, steps, most, ttft, asked["units"])
        ),
    }
    for name in ARCHITECTURES:
        rows[name]["tpot"] = rows[name]["tpot"] / sharing(asked)
        rows[name]["computed"] = rows[name]["chunk"] * fresh_share(asked["work"])
    found: dict[str, Row] = rows
    return found


def under(asked: Asked, found: Found, factors: list[float]) -> Costs:
    """Return `steps.costs` under the coefficients `found`, a step and its prompts' part stretched."""
    unit, work = asked["unit"], asked["work"]
    return costs(unit, unit_terms(unit, found), work, asked["read_bw"], factors[0], factors[1])


def batch_limits(asked: Asked, step: Step) -> dict[str, int]:
    """Return the largest batch by each limit alone, prefill first (at most `MOST_TOGETHER`): of means or a quantile."""
    steps, quantile = steps_of(asked), asked["quantile"]
    return {
        "TPOT": largest_within(step, MOST_TOGETHER, steps, longest_step(asked), FOREVER, quantile),
        "TTFT": largest_within(step, MOST_TOGETHER, steps, FOREVER, asked["ttft"], quantile),
        "memory": places(asked),
    }


def batch_curve(asked: Asked, step: Step, sizes: list[int]) -> list[list[float]]:
    """Return (tokens/s of a user, tokens/s of a GPU) for each batch, prefill first."""
    unit, n_out, steps = asked["unit"], asked["work"]["n_out"], steps_of(asked)
    curve = []
    for B in sizes:
        per_gpu = B * n_out / round_trip(step, B, steps) / unit["gpus"]
        curve.append([unit["gives"] / mean_seen(step, B, steps, 0), per_gpu])
    return curve


def usd_per_million(gpus: float, price: float, tokens: float) -> float:
    """Return US dollars for a million tokens, `tokens` per second on so many GPUs at a price per hour; NaN without."""
    return gpus * price / 3600 / tokens * 1e6 if tokens > 0 and price > 0 else NEVER


def smallest(limits: dict[str, int]) -> int:
    """Return the smallest of the three limits."""
    return min(limits["TPOT"], min(limits["TTFT"], limits["memory"]))


def solve(asked: Asked, found: Found, factors: list[float]) -> Solved:
    """Return numbers, rows (`compared`), order (of the rows, highest rate first), binding, limits, costs and mixed."""
    each = under(asked, found, factors)
    step, steps = each["mixed"], steps_of(asked)
    limits = batch_limits(asked, step)
    rows = compared(asked, step, smallest(limits))
    names = list(ARCHITECTURES)
    names.sort(key=lambda name: -rows[name]["rate"])
    plain, batch = rows["aggregated"]["rate"], rows["aggregated"]["batch"]
    net, read = delta_p(each["ttft_1"], steps), each["delta_h"] + each["own"]
    numbers = {
        "batch": batch,
        "batch_tpot": limits["TPOT"],
        "batch_ttft": limits["TTFT"],
        "batch_memory": limits["memory"],
        "chunk": rows["chunked"]["computed"],
        "chunked_gain": rows["chunked"]["rate"] / plain if plain > 0 else NEVER,
        "prefill_units": rows["disaggregated"]["prefill_units"],
        "pdd_gain": rows["disaggregated"]["rate"] / plain if plain > 0 else NEVER,
        "t_w": each["t_w"],
        "delta_p": net,
        "delta_p_gross": delta_p(each["ttft_1"] + each["t_w"], steps),
        "delta_h": read,
        "gain_bound": gain_bound(net, read) if read > 0 else NEVER,
        "concurrent_prefills": concurrent_prefills(max(batch, 1), steps),
        "pdd_concurrency": pdd_concurrency(asked["ttft"], steps, longest_step(asked)),
    }
    numbers.update(lead(asked, rows, names))
    return {
        "numbers": numbers, "rows": rows, "order": names, "costs": each, "mixed": step,
        "best": names[0] if rows[names[0]]["rate"] > 0 else "",
        "binding": [name for name in ["TPOT", "TTFT", "memory"] if limits[name] == smallest(limits)],
    }  # fmt: skip


def lead(asked: Asked, rows: dict[str, Row], order: list[str]) -> dict[str, float]:
    """Return what the first of the architectures in `order` does, and how far it is ahead of the second."""
    best, second = rows[order[0]], rows[order[1]]
    tokens = best["rate"] * asked["work"]["n_out"] / asked["unit"]["gpus"]
    return {
        "rate": best["rate"],
        "margin": best["rate"] / second["rate"] - 1 if second["rate"] > 0 else NEVER,
        "tokens_per_gpu": tokens,
        "usd_per_million": usd_per_million(1, asked["price"], tokens),
        "joules_per_token": asked["watts"] / tokens if tokens > 0 and asked["watts"] > 0 else NEVER,
        "ttft": best["ttft"],
        "tpot": best["tpot"],
    }


def by_formula(asked: Asked, one: Solved) -> dict[str, float]:
    """Return what the closed forms say where a search or a comparison says more: at its t_w, ΔP and ΔH.

    In them a step is a sum of which nothing hides, or only the weight read, batches and pools are no whole numbers.
    """
    numbers, rows, steps, tpot = one["numbers"], one["rows"], steps_of(asked), longest_step(asked)
    t_w, net, read, ttft_1 = numbers["t_w"], numbers["delta_p"], numbers["delta_h"], one["costs"]["ttft_1"]
    tpot_1, batch, b = t_w + read, numbers["batch"], rows["chunked"]["batch"]
    by_tpot = max_batch(tpot, tpot_1, net, read)
    by_ttft = max_batch_ttft_full(asked["ttft"], steps, ttft_1, read, t_w)
    told = {
        "batch": min(by_tpot, min(by_ttft, numbers["batch_memory"])), "batch_tpot": by_tpot, "batch_ttft": by_ttft,
    }  # fmt: skip
    if one["best"] == "aggregated" and batch > 0:
        told["rate"] = request_rate(batch, steps, t_w, net, read)
        told["ttft"] = expected_ttft_full(batch, steps, ttft_1, read, t_w)
        told["tpot"] = expected_tpot_full(batch, steps, tpot_1, net, read, 1.0, 0.0) / sharing(asked)
    if b > 0:
        told["chunk"] = chunk_size(b, asked["work"]["n_in"], steps) * fresh_share(asked["work"])
        told["chunked_gain"] = chunked_gain_serial(b, t_w, net, read)
    if tpot > t_w and read > 0:
        split = pdd_split(numbers["delta_p_gross"], read, t_w, tpot)
        told["prefill_units"] = asked["units"] * split / (1 + split)
        told["pdd_gain"] = pdd_gain_same(net, read, t_w, tpot, steps)
    return told


def median(drawn: list[float]) -> float:
    """Return the lower median: one of the draws itself."""
    ordered = list(drawn)
    ordered.sort(key=lambda one: one)
    return ordered[ceil(0.5 * len(ordered)) - 1]


def ranked(solved: list[Solved]) -> list[str]:
    """Return the architectures by the median of their rates over the draws, the highest first."""
    names = list(ARCHITECTURES)
    names.sort(key=lambda name: -median([one["rows"][name]["rate"] for one in solved]))
    return names


def interval(value: float, drawn: list[float]) -> list[float]:
    """Return the lower median of the draws, and the ends between which all but `TAIL` at each side of them lie.

    Three times the value where there are none.
    """
    ordered = [one for one in drawn if isfinite(one)]
    if len(ordered) < 1:
        return [value, value, value]
    ordered.sort(key=lambda one: one)
    low = ordered[max(ceil(TAIL * len(ordered)) - 1, 0)]
    high = ordered[ceil((1 - TAIL) * len(ordered)) - 1]
    return [median(ordered), low, high]


def careful(asked: Asked, best: str, solved: list[Solved]) -> Row:
    """Return an architecture's row that keeps the SLA in nine of ten draws: of the draws' own, that which serves most.

    In the median of the draws; of pools as if units could be divided, so that batch and chunk do not hang on their
    number. Where no row keeps it so often, that which does most often.
    """
    rows = unlike([one["rows"][best] for one in solved if one["rows"][best]["rate"] > 0])
    shares = [min(kept(asked, best, solved, row), CAREFUL) for row in rows]
    chosen: Row = solved[0]["rows"][best]
    often, most = 0.0, 0.0
    for share in shares:
        often = max(often, share)
    for i in range(len(rows)):
        if shares[i] == often:
            row = rows[i]
            even = median_of(asked, best, solved, row, pooled)
            tied = even * NEARLY >= most
            if even > most * NEARLY or (
                tied and serves(asked, best, solved, row) > serves(asked, best, solved, chosen)
            ):
                chosen = row
                most = even
    return chosen


def unlike(rows: list[Row]) -> list[Row]:
    """Return the rows that differ in a setting."""
    found: list[Row] = []
    for row in rows:
        known = False
        for other in found:
            known = known or set_alike(row, other)
        if not known:
            found.append(row)
    return found


def set_alike(one: Any, two: Any) -> bool:
    """Tell whether two rows of an architecture have the same settings; one that it does not have is NaN."""
    alike = True
    for name in ["batch", "chunk", "prefill_units"]:
        alike = alike and (one[name] != one[name] or one[name] == two[name])
    return alike


def kept(asked: Asked, name: str, solved: list[Solved], row: Row) -> float:
    """Return the share of the draws in which the settings of a row keep the SLA."""
    held = [one for one in solved if keeps(asked, name, one, row)]
    return len(held) / len(solved)


def serves(asked: Asked, name: str, solved: list[Solved], row: Row) -> float:
    """Return the requests/s of a unit with the settings of a row: the median of the draws, whether or not they hold."""
    return median_of(asked, name, solved, row, served)


def median_of(
    asked: Asked, name: str, solved: list[Solved], row: Row,
    serving: Callable[[Step, str, Row, float, float, int], float],
) -> float:  # fmt: skip
    """Return the median over the draws of the requests/s of a unit with the settings of a row."""
    n_in, steps = asked["work"]["n_in"], steps_of(asked)
    return median([serving(one["mixed"], name, row, n_in, steps, asked["units"]) for one in solved])


def keeps(asked: Asked, name: str, one: Solved, row: Row) -> bool:
    """Tell whether the settings of an architecture's row keep the SLA under a draw, by the step that they make."""
    step, n_in = one["mixed"], asked["work"]["n_in"]
    tpot, ttft = longest_step(asked) * NEARLY, asked["ttft"] * NEARLY
    if name == "aggregated":
        return bool(row["batch"] <= min(one["numbers"]["batch_tpot"], one["numbers"]["batch_ttft"]))
    mixed = step(row["batch"] if name == "chunked" else 0.0, row["chunk"] / n_in)
    if name == "chunked":
        return bool(mixed <= tpot and (n_in / row["chunk"] + 1) * mixed <= ttft)
    return bool(step(row["batch"], 0.0) <= tpot and mixed <= ttft)


def computed_tokens(asked: Asked, row: Row) -> int:
    """Return the prompt tokens that a row's step computes: what is not stored, of each prompt at least the last."""
    chunk, n_in = row["chunk"], asked["work"]["n_in"]
    computed: int = max(ceil(chunk * fresh_share(asked["work"]) * (1 - 1e-12)), ceil(chunk / n_in))
    return computed


def brought(asked: Asked) -> int:
    """Return the tokens that a decode brings into a step: its own, and those that it drafts."""
    return ceil(1 + asked["unit"]["drafts"])


def whole_prompt(asked: Asked) -> int:
    """Return the tokens that an engine counts of a prompt that it does not cut; TensorRT-LLM counts those stored."""
    share = 1.0 if asked["engine"] == "trtllm" else fresh_share(asked["work"])
    return ceil(asked["work"]["n_in"] * share * (1 - 1e-12))


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
    computed = computed_tokens(asked, row)
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


SWING = 0.2  # of an input, either way
SWUNG = ["n_in", "n_out", "alpha", "ttft", "tpot", "accepted"]


def swings(asked: Asked, found: Found) -> list[dict[str, Any]]:
    """Return for each input what a fifth less and a fifth more of it bring: rates and best architectures.

    Columns: input, low, high (requests/s of a unit), best_low, best_high, `best`, that of the question itself, and
    `swing`, the distance; largest first.
    """
    rows, best, drafted = [], solve(asked, found, [1.0, 1.0])["best"], asked["unit"]["drafts"]
    for name in SWUNG:
        if (name == "alpha" and not asked["work"]["alpha"] > 0) or (name == "accepted" and not drafted > 0):
            continue
        low, high = [solve(swung(asked, name, factor), found, [1.0, 1.0]) for factor in [1 - SWING, 1 + SWING]]
        ends = [low["numbers"]["rate"], high["numbers"]["rate"]]
        rows.append({
            "input": name, "low": ends[0], "high": ends[1], "best_low": low["best"], "best_high": high["best"],
            "best": best, "swing": abs(ends[1] - ends[0]),
        })  # fmt: skip
    rows.sort(key=lambda row: -row["swing"])
    return rows


def swung(asked: Asked, name: str, factor: float) -> Asked:
    """Return the question with one of its inputs by a factor larger: a length, a share, a limit."""
    work, unit = asked["work"], asked["unit"]
    moved: Any = dict(asked)
    lengths: Any = dict(work)
    if name == "n_in":
        lengths["n_in"] = max(1.0, work["n_in"] * factor)
    if name == "n_out":
        lengths["n_out"] = max(1.01, work["n_out"] * factor)
    if name == "alpha":
        lengths["alpha"] = min(1.0, work["alpha"] * factor)
    if name == "ttft":
        moved["ttft"] = asked["ttft"] * factor
    if name == "tpot":
        moved["tpot"] = asked["tpot"] * factor
    if name == "accepted":
        moved["unit"] = drafting(unit, unit["drafts"], min(1.0, unit["accepted"] * factor))
    moved["work"] = lengths
    found: Asked = moved
    return found


def undrafted(asked: Asked, found: Found) -> float:
    """Return the requests/s of a unit at full load if nothing were drafted, of the best architecture."""
    plain: Any = dict(asked)
    plain["unit"] = drafting(asked["unit"], 0, 0.0)
    rate: float = solve(plain, found, [1.0, 1.0])["numbers"]["rate"]
    return rate


def gains(asked: Asked, found: Found, read_bws: dict[str, float]) -> list[dict[str, Any]]:
    """Return what loading the stored share of the prompts gains, by where it lies: "nowhere", then each tier.

    where, binds ("computing" or "loading", what a prompt alone waits for), ttft_alone (s; of a prompt alone), rate
    (requests/s of a unit, of the best architecture), speedup (of ttft_alone) and gain (of rate), over computing all.
    """
    work, terms = asked["work"], unit_terms(asked["unit"], found)
    whole: Any = dict(work)
    whole["alpha"] = 0.0
    where: list[Any] = [["nowhere", whole, 0.0]]
    if work["alpha"] > 0:
        for name in read_bws:
            where.append([name, work, read_bws[name]])
    told: list[dict[str, Any]] = []
    for name, sent, read_bw in where:
        each = costs(asked["unit"], terms, sent, read_bw, 1.0, 1.0)
        step = each["mixed"]
        rows = compared(asked, step, smallest(batch_limits(asked, step)))
        rate = max(rows["aggregated"]["rate"], max(rows["chunked"]["rate"], rows["disaggregated"]["rate"]))
        alone = step(0.0, 1.0)
        quick = costs(asked["unit"], terms, sent, 0.0, 1.0, 1.0)["mixed"](0.0, 1.0)
        first = told[0] if len(told) > 0 else {"ttft_alone": alone, "rate": rate}
        told.append({
            "where": name, "ttft_alone": alone, "rate": rate, "speedup": first["ttft_alone"] / alone,
            "gain": rate / first["rate"] if first["rate"] > 0 else NEVER,
            "binds": "loading" if alone > quick * NEARLY else "computing",
        })  # fmt: skip
    return told


def units_for(asked: Asked, rate: float, traffic: float) -> list[float]:
    """Return the units that mean rates ask for, and their GPUs, for requests/s of a unit and of all users.

    Of pools, too, so that the architecture with the highest rate needs the fewest; it takes the split of that many.
    """
    many = ceil(traffic / rate)
    return [many, many * asked["unit"]["gpus"]]


def replicas(asked: Asked, name: str, rate: float, traffic: float) -> list[float]:
    """Return the replicas that mean rates ask for, and their GPUs, for requests/s of a unit and of all users."""
    units = asked["units"] if name == "disaggregated" else 1
    many = ceil(traffic / (rate * units))
    return [many, many * units * asked["unit"]["gpus"]]
