"""The seconds of a unit's step from its numbers: the terms of `theory.step`, summed.

A unit in numbers is the dict of `unit_numbers`, made of a model's shape on some GPUs and of a GPU's rates
(`unit.shape_of`, `unit.rates_of`). Coefficients are a dict by their names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from inference_math.theory import allreduce_time as _allreduce_time
from inference_math.theory import attention_time as _attention_time
from inference_math.theory import kv_capacity as _kv_capacity
from inference_math.theory import kv_load_time as _kv_load_time
from inference_math.theory import matrix_time as _matrix_time
from inference_math.theory import mean_context as _mean_context
from inference_math.theory import read_time as _read_time
from inference_math.theory import step_time as _step_time

__all__ = ["Numbers", "costs", "loads", "step", "stretched", "unit_numbers", "unit_terms"]

Numbers = Mapping[str, Any]

allreduce_time, attention_time, kv_load_time = _allreduce_time.plain, _attention_time.plain, _kv_load_time.plain
kv_capacity = _kv_capacity.plain
matrix_time, mean_context, read_time = _matrix_time.plain, _mean_context.plain, _read_time.plain
step_time = _step_time.plain

VALUE_BYTES = {"bf16": 2, "fp8": 1}


def unit_numbers(shape: Numbers, rates: Numbers, tp: int, weights: str, kv: str) -> Numbers:
    """Return what a step needs to know of a unit: bytes, FLOPs, and the rates of all its GPUs together."""
    value, cached = VALUE_BYTES[weights], VALUE_BYTES[kv]
    kv_token = shape["kv_values"] * cached
    held = shape["n_params_total"] * value + shape["vocab_params"] * VALUE_BYTES["bf16"]
    return {
        "tp": tp, "precision": weights, "n_layers": shape["n_layers"], "d_att": shape["d_att"],
        "n_params": shape["n_params"], "head_params": shape["head_params"],
        "step_bytes": shape["n_params_total"] * value + shape["head_params"] * VALUE_BYTES["bf16"],
        "routed_bytes": shape["routed_params"] * value, "idle": shape["idle"],
        "kv_token": kv_token, "kv_copies": shape["kv_copies"],
        "layer_bytes": shape["layer_bytes"], "sum_bytes": shape["sum_bytes"],
        "kv_capacity": kv_capacity(tp * rates["hbm_bytes"], held, shape["kv_copies"] * kv_token),
        "flops": tp * rates[weights + "_flops"], "half_flops": tp * rates["bf16_flops"],
        "hbm_bw": tp * rates["hbm_bw"], "link_bw": rates["link_bw"],
    }  # fmt: skip


def unit_terms(unit: Numbers, found: Numbers) -> Numbers:
    """Return what one of each costs under the coefficients `found`: a token, a cached token, a pair, a step."""
    half, share = unit["half_flops"], found["bf16"]
    pair = attention_time(unit["n_layers"], unit["d_att"], 1, 1, half, share)
    pair -= attention_time(unit["n_layers"], unit["d_att"], 1, 0, half, share)
    moved = unit["tp"] * unit["n_layers"] * unit["layer_bytes"]
    return {
        "t_w": read_time(unit["step_bytes"], unit["hbm_bw"], found["memory"]),
        "routed": read_time(unit["routed_bytes"], unit["hbm_bw"], found["memory"]),
        "idle": unit["idle"],
        "matrices": matrix_time(unit["n_params"], 1, unit["flops"], found[unit["precision"]]),
        "head": matrix_time(unit["head_params"], 1, half, share),
        # A cached token is read, and it is multiplied with a query: what takes longer counts.
        "read": max(read_time(unit["kv_copies"] * unit["kv_token"], unit["hbm_bw"], found["kv"]), 2 * pair),
        "pair": pair,
        "move": read_time(moved, unit["hbm_bw"], found["memory"]),
        "links": allreduce_time(unit["sum_bytes"], unit["tp"], unit["link_bw"]),
        "fixed": unit["n_layers"] * found["layer"],
        "request": found["request"],
    }


def loads(
    terms: Numbers, decodes: Any, context: Any, fresh: Any, cached: Any, prompts: Any, larger: Any, smaller: Any
) -> tuple[Any, Any, Any]:
    """Return what `theory.step_time` takes: the weight read, the matrix products, and all else, in seconds.

    Of `decodes` at a mean `context`, beside `prompts` of `fresh` tokens that also see `cached` ones. `larger` and
    `smaller` compare two numbers, or two arrays.
    """
    tokens = decodes + prompts * fresh
    sampled = larger(decodes + prompts * smaller(fresh, 1), 1)
    rest = (
        terms["read"] * (decodes * context + prompts * cached)
        + terms["pair"] * prompts * fresh * (cached + fresh / 2)
        + (terms["move"] + terms["links"]) * tokens
        + terms["request"] * decodes
        + terms["fixed"]
    )
    weights = terms["t_w"]
    if terms["routed"] > 0:  # those experts are read that some token has chosen
        weights = weights - terms["idle"] ** larger(tokens, 1) * terms["routed"]
    return weights, terms["matrices"] * tokens + terms["head"] * sampled, rest


def step(terms: Numbers, decodes: float, context: float, fresh: float, cached: float, prompts: float) -> float:
    """Return the seconds of a step; see `loads` for the arguments."""
    weights, matrices, rest = loads(terms, decodes, context, fresh, cached, prompts, max, min)
    seconds: float = step_time(weights, matrices, rest)
    return seconds


def costs(unit: Numbers, terms: Numbers, work: Numbers, read_bw: float) -> Numbers:
    """Return the talks' numbers of a workload (n_in, n_out, alpha, cv): t_w, ttft_1, delta_h, own, and `mixed`.

    `own` is what one more decode adds besides its read. `mixed` gives the seconds of a step with so many decodes and
    prompts, a chunk counting as its share of one. The share alpha of the prompts lies in HBM, or is loaded with
    `read_bw` bytes/s where that is above 0: layer by layer, waiting where that takes longer than computing the
    rest [C05].
    """
    n_in, n_out = work["n_in"], work["n_out"]
    context = mean_context(n_in, max(n_out, 1.001), work["cv"])
    cached = work["alpha"] * (n_in - 1)
    load = kv_load_time(unit["kv_token"], read_bw) * work["alpha"] * n_in if read_bw > 0 else 0.0

    def computed(decodes: float, prompts: float) -> float:
        return step(terms, decodes, context, n_in - cached, cached, prompts)

    def loaded(decodes: float, prompts: float) -> float:
        bare = computed(decodes, 0.0)
        return bare + max(computed(decodes, prompts) - bare, load * prompts)

    read = terms["read"] * context
    own = (step(terms, 64, 0, 0, 0, 0) - step(terms, 1, 0, 0, 0, 0)) / 63
    t_w = step(terms, 1, 0, 0, 0, 0) - own
    return {
        "t_w": t_w, "ttft_1": max(load, computed(0, 1) - t_w), "delta_h": read, "own": own,
        "mixed": loaded if load > 0 else computed,
    }  # fmt: skip


def stretched(numbers: Numbers, least: Numbers, factor: float, prompt_factor: float) -> Numbers:
    """Return `costs` with a step `factor` times longer, what prompts add to it `prompt_factor` times.

    No time is below that of `least`, at datasheet rates: both factors grow until none is.
    """
    mixed: Callable[[float, float], float] = numbers["mixed"]
    longer = max(1.0, least["t_w"] / (factor * numbers["t_w"]))
    longer = max(longer, (least["delta_h"] + least["own"]) / (factor * (numbers["delta_h"] + numbers["own"])))
    longer = max(longer, least["ttft_1"] / (prompt_factor * numbers["ttft_1"]))
    step, prompt = factor * longer, prompt_factor * longer

    def both(decodes: float, prompts: float) -> float:
        bare = mixed(decodes, 0.0)
        seconds: float = step * bare + prompt * (mixed(decodes, prompts) - bare)
        return seconds

    return {
        "t_w": step * numbers["t_w"], "delta_h": step * numbers["delta_h"], "own": step * numbers["own"],
        "ttft_1": prompt * numbers["ttft_1"], "mixed": both,
    }  # fmt: skip
