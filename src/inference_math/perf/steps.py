"""The seconds of a unit's step: the terms of `theory.step`, named and summed in one place; and the floor below them.

Everything that asks for a step, a mean, a plan or a curve ends here. Plain Python: the book prints it as JavaScript.
"""

from __future__ import annotations

from typing import Any

from inference_math.perf.types import Costs, Floor, Found, Rates, Shape, Terms, UnitNumbers, Work
from inference_math.theory import allreduce_time as _allreduce_time
from inference_math.theory import attention_time as _attention_time
from inference_math.theory import kv_capacity as _kv_capacity
from inference_math.theory import kv_load_time as _kv_load_time
from inference_math.theory import matrix_time as _matrix_time
from inference_math.theory import mean_context as _mean_context
from inference_math.theory import read_time as _read_time
from inference_math.theory import step_time as _step_time

__all__ = [
    "PARTS", "costs", "floor_of", "floor_step", "floor_terms", "parts", "quantities", "step", "stored_tokens",
    "unit_numbers", "unit_terms",
]  # fmt: skip

allreduce_time, attention_time, kv_load_time = _allreduce_time.plain, _attention_time.plain, _kv_load_time.plain
kv_capacity = _kv_capacity.plain
matrix_time, mean_context, read_time = _matrix_time.plain, _mean_context.plain, _read_time.plain
step_time = _step_time.plain

VALUE_BYTES = {"bf16": 2, "fp8": 1}
# The parts of a step, in the order of `parts`: the first two share it in quadrature, all others add.
PARTS = ["weights", "matrices", "KV cache", "attention of the prompt", "activations", "all-reduce", "layers"]


def stored_tokens(n_in: float, alpha: float) -> float:
    """Return the tokens of a prompt that need no computing: the stored share, but the last token always is."""
    return min(alpha * n_in, n_in - 1)


def unit_numbers(shape: Shape, rates: Rates, tp: int, weights: str, kv: str) -> UnitNumbers:
    """Return what a step needs to know of a unit: bytes, FLOPs, and the rates of all its GPUs together."""
    value, cached = VALUE_BYTES[weights], VALUE_BYTES[kv]
    kv_token = shape["kv_values"] * cached
    held = shape["n_params_total"] * value + shape["vocab_params"] * VALUE_BYTES["bf16"]
    rate: Any = rates["fp8_flops"] if weights == "fp8" else rates["bf16_flops"]
    return {
        "tp": tp, "precision": weights, "n_layers": shape["n_layers"], "d_att": shape["d_att"],
        "decode_flops": shape["decode_flops"], "n_params": shape["n_params"], "head_params": shape["head_params"],
        "step_bytes": shape["n_params_total"] * value + shape["head_params"] * VALUE_BYTES["bf16"],
        "head_bytes": shape["head_params"] * VALUE_BYTES["bf16"],
        "routed_bytes": shape["routed_params"] * value, "idle": shape["idle"],
        "kv_token": kv_token, "kv_copies": shape["kv_copies"],
        "layer_bytes": shape["layer_bytes"], "sum_bytes": shape["sum_bytes"],
        "kv_capacity": kv_capacity(tp * rates["hbm_bytes"], held, shape["kv_copies"] * kv_token),
        "flops": tp * rate, "half_flops": tp * rates["bf16_flops"],
        "best_flops": tp * max(rates["bf16_flops"], rates["fp8_flops"] or 0.0),
        "hbm_bw": tp * rates["hbm_bw"], "link_bw": rates["link_bw"],
    }  # fmt: skip


def pair_time(unit: UnitNumbers, flops: float, share: float) -> float:
    """Return the seconds that a prompt's token takes for one token before it, in all layers."""
    one: float = attention_time(unit["n_layers"], unit["d_att"], 1, 1, flops, share)
    none: float = attention_time(unit["n_layers"], unit["d_att"], 1, 0, flops, share)
    return one - none


def unit_terms(unit: UnitNumbers, found: Found) -> Terms:
    """Return what one of each costs under the coefficients `found`: a token, a cached token, a pair, a step."""
    half, share = unit["half_flops"], found["bf16"]
    moved = unit["tp"] * unit["n_layers"] * unit["layer_bytes"]
    load = read_time(unit["kv_copies"] * unit["kv_token"], unit["hbm_bw"], found["kv"])
    return {
        "t_w": read_time(unit["step_bytes"], unit["hbm_bw"], found["memory"]),
        "routed": read_time(unit["routed_bytes"], unit["hbm_bw"], found["memory"]),
        "idle": unit["idle"],
        "matrices": matrix_time(unit["n_params"], 1, unit["flops"], found[unit["precision"]]),
        "head": matrix_time(unit["head_params"], 1, half, share),
        # A decode reads each cached token and multiplies it with its queries: what takes longer counts.
        "read": max(load, unit["n_layers"] * unit["decode_flops"] / (share * half)),
        "load": load,
        "pair": pair_time(unit, half, share),
        "move": read_time(moved, unit["hbm_bw"], found["memory"]),
        "links": allreduce_time(unit["sum_bytes"], unit["tp"], unit["link_bw"]),
        "fixed": unit["n_layers"] * found["layer"] + found["anchor"],
        "request": found["request"],
    }


def quantities(
    decodes: Any, context: Any, fresh: Any, cached: Any, prompts: Any, larger: Any, smaller: Any
) -> list[Any]:
    """Return what `parts` takes after the terms, of `decodes` at a mean `context` beside `prompts`.

    Each prompt has `fresh` tokens that also see `cached` ones. `larger` and `smaller` compare numbers, or arrays.
    """
    tokens = decodes + prompts * fresh
    sampled = larger(decodes + prompts * smaller(fresh, 1), 1)
    pairs = prompts * fresh * (cached + fresh / 2)
    return [decodes, tokens, sampled, decodes * context, prompts * cached, pairs, larger]


def parts(
    terms: Terms, decodes: Any, tokens: Any, sampled: Any, context: Any, cached: Any, pairs: Any, larger: Any
) -> list[Any]:
    """Return the seconds of each of `PARTS`.

    Of `decodes`, of `tokens` that go through the matrices and `sampled` that go through the LM head, of the tokens
    whose KV cache decodes (`context`) and prompts (`cached`) read, of a prompt's (token, earlier token) `pairs`.
    """
    weights = terms["t_w"]
    if terms["routed"] > 0:  # those experts are read that some token has chosen
        weights = weights - terms["idle"] ** larger(tokens, 1) * terms["routed"]
    return [
        weights,
        terms["matrices"] * tokens + terms["head"] * sampled,
        terms["read"] * context + terms["load"] * cached,
        terms["pair"] * pairs,
        terms["move"] * tokens,
        terms["links"] * tokens,
        terms["fixed"] + terms["request"] * decodes,
    ]


def step(terms: Terms, decodes: float, context: float, fresh: float, cached: float, prompts: float) -> float:
    """Return the seconds of a step; see `quantities` for the arguments."""
    decodes, tokens, sampled, read, loaded, pairs, larger = quantities(
        decodes, context, fresh, cached, prompts, max, min
    )
    each = parts(terms, decodes, tokens, sampled, read, loaded, pairs, larger)
    seconds: float = step_time(each[0], each[1], each[2] + each[3] + each[4] + each[5] + each[6])
    return seconds


def floor_terms(unit: UnitNumbers) -> Floor:
    """Return what no engine on this hardware can do without, at datasheet rates.

    Weights once: of a mixture the experts of one token, the LM head in the weights' precision. KV caches once, without
    the copies of tensor parallelism. Attention at the best rate of the GPU.
    """
    value = VALUE_BYTES[unit["precision"]]
    head = unit["head_params"] * value
    least = unit["step_bytes"] - unit["head_bytes"] - unit["idle"] * unit["routed_bytes"]
    pair = pair_time(unit, unit["best_flops"], 1.0)
    return {
        "weights": read_time(least, unit["hbm_bw"], 1.0),
        "head_read": read_time(head, unit["hbm_bw"], 1.0),
        "read": read_time(unit["kv_token"], unit["hbm_bw"], 1.0),
        "matrices": matrix_time(unit["n_params"], 1, unit["flops"], 1.0),
        "head": matrix_time(unit["head_params"], 1, unit["flops"], 1.0),
        "pair": pair,
        "decode_pair": min(pair, unit["n_layers"] * unit["decode_flops"] / unit["best_flops"]),
    }


def floor_of(
    floor: Floor, passes: Any, sampling: Any, decodes: Any, tokens: Any, context: Any, cached: Any, pairs: Any,
    larger: Any,
) -> Any:  # fmt: skip
    """Return the larger of bytes over bandwidth and FLOPs over rate, of so many passes over the weights.

    `sampling` of them give tokens, and read the LM head. The other arguments as in `parts`, summed over the passes.
    """
    moved = floor["weights"] * passes + floor["head_read"] * sampling + floor["read"] * (context + cached)
    computed = (
        floor["matrices"] * tokens + floor["head"] * decodes + floor["decode_pair"] * context + floor["pair"] * pairs
    )
    return larger(moved, computed)


def floor_step(floor: Floor, decodes: float, context: float, fresh: float, cached: float, prompts: float) -> float:
    """Return the seconds below which no step is whose requests share no cache; see `quantities` for the arguments."""
    passes = 1.0 if decodes + prompts > 0 else 0.0
    sampling = 1.0 if decodes > 0 or prompts >= 1 else 0.0
    pairs = prompts * fresh * (cached + fresh / 2)
    seconds: float = floor_of(
        floor, passes, sampling, decodes, decodes + prompts * fresh, decodes * context, prompts * cached, pairs, max
    )
    return seconds


def costs(unit: UnitNumbers, terms: Terms, work: Work, read_bw: float, factor: float, prompt_factor: float) -> Costs:
    """Return the talks' numbers of a workload (n_in, n_out, alpha, cv): t_w, ttft_1, delta_h, own, and `mixed`.

    `mixed` gives the seconds of a step with so many decodes and prompts, a chunk counting as its share of one, and the
    others are read off it: `t_w` what a step takes however little it does; `ttft_1` what a prompt adds to it, net of
    t_w; `delta_h` the read of one more decode, `own` what else it adds, on average up to 64. The share alpha of the
    prompts lies in HBM, or is loaded with `read_bw` bytes/s where that is above 0: layer by layer, every GPU its own
    copy, waiting where that takes longer than computing the rest [C05]. A step is `factor` times as long, what prompts
    add to it `prompt_factor` times; neither is below the floor. A chunk counts as its share of the prompt's cached
    read; an engine reads all before it in each chunk, which the simulator counts.
    """
    n_in, n_out = work["n_in"], work["n_out"]
    context = mean_context(n_in, max(n_out, 1.001), work["cv"])
    cached = stored_tokens(n_in, work["alpha"])
    fresh = n_in - cached
    copies = unit["kv_copies"] * unit["kv_token"]
    load = kv_load_time(copies, read_bw) * cached if read_bw > 0 else 0.0
    floor = floor_terms(unit)

    def mixed(decodes: float, prompts: float) -> float:
        bare = step(terms, decodes, context, fresh, cached, 0.0)
        seconds = factor * bare
        if prompts > 0:
            added = step(terms, decodes, context, fresh, cached, prompts) - bare
            seconds += prompt_factor * max(added, load * prompts)
        return max(seconds, floor_step(floor, decodes, context, fresh, cached, prompts))

    def empty(decodes: float) -> float:
        seconds: float = factor * step(terms, decodes, 0.0, fresh, cached, 0.0)
        return max(seconds, floor_step(floor, decodes, 0.0, fresh, cached, 0.0))

    own = (empty(64.0) - empty(1.0)) / 63
    t_w = empty(1.0) - own
    return {
        "t_w": t_w, "ttft_1": mixed(0.0, 1.0) - t_w, "delta_h": factor * terms["read"] * context, "own": own,
        "mixed": mixed,
    }  # fmt: skip
