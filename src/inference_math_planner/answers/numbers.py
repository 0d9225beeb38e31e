"""The numbers of a plan, each with its interval, where it comes from and what it means; and how they are printed."""

from __future__ import annotations

from math import isfinite, nan
from typing import Any

from inference_math.evidence.numerals import most_of
from inference_math.evidence.records import Record
from inference_math.evidence.sentences import render
from inference_math.optimiser.answers import binding_limits, by_formula
from inference_math.unit.problem import of_architecture
from inference_math.unit.types import Message
from inference_math_planner.answers.cautions import Decided

__all__ = ["ANSWERS", "Answered", "answer_texts", "answered", "in_unit", "spanned"]

# Name, title, unit, what computed it, formula and meaning of each answer; {binding}, {units}, {best}, {second} are the
# plan's.
MIDDLE_DRAW = "limited by {binding}, in the middle draw; the settings to start with serve most over all of them"
ANSWERS: list[list[str]] = [
    ["rate", "Requests per second of a unit", "requests/s", "compare", "request_rate", "at full load, {best}"],
    ["margin", "Lead over the runner-up", "fraction", "compare", "", "of {best} over {second}"],
    ["tokens_per_gpu", "Output of one GPU", "token/s", "compare", "", "at full load, {best}"],
    ["usd_per_million", "Cost of a million output tokens", "USD", "compare", "", "at full load"],
    ["joules_per_token", "Energy of an output token, at most", "J", "compare", "", "GPUs at rated power, full load"],
    ["ttft", "Time to first token, TTFT", "s", "compare", "expected_ttft_full", "{best}, without queues"],
    ["front", "of which the front", "s", "fitted", "", "HTTP, tokenizer, launch: what no step takes"],
    ["tpot", "Time per output token, TPOT", "s", "compare", "expected_tpot_full", "{best}"],
    ["batch", "Largest batch, aggregated", "requests", "search", "max_batch", MIDDLE_DRAW],
    ["batch_tpot", "The same, as far as TPOT allows", "requests", "search", "max_batch", ""],
    ["batch_ttft", "The same, as far as TTFT allows", "requests", "search", "max_batch_ttft_full", ""],
    ["batch_memory", "The same, as far as memory allows", "requests", "formula", "", "caches as the engine keeps them"],
    ["chunk", "Prompt tokens in each step", "token", "compare", "chunk_size_full", "chunked prefill, decodes apart"],
    ["chunked_gain", "Gain of chunked over aggregated", "1", "compare", "chunked_gain_sla_serial", "ratio of rates"],
    ["prefill_units", "Units for prefill", "units", "compare", "pdd_split", "of {units}, disaggregated, to start with"],
    ["pdd_gain", "Gain of disaggregated over aggregated", "1", "compare", "pdd_gain_same", "ratio of rates"],
    ["t_w", "Weight read, t_w", "s", "step", "step_time", "part of a step that all requests share"],
    ["delta_p", "ΔP, net", "s", "formula", "delta_p", "what one more request adds to the mean step by its prefill"],
    ["delta_p_gross", "ΔP, gross", "s", "formula", "delta_p", "of a prompt alone, t_w with it; a prefill unit pays it"],
    ["delta_h", "ΔH", "s", "step", "", "what one more request adds to each step by its decode, KV read and all else"],
    [
        "gain_bound",
        "Bound 1 + ΔP/ΔH",
        "1",
        "formula",
        "gain_bound",
        "most that faster prefills gain, in the mean; of each draw",
    ],
    [
        "concurrent_prefills",
        "Prompts in a step beside a request",
        "requests",
        "formula",
        "concurrent_prefills",
        "in the mean, aggregated",
    ],
    [
        "pdd_concurrency",
        "Requests in prefill for each in decode",
        "1",
        "formula",
        "pdd_concurrency",
        "with both limits used up",
    ],
]
# By what a unit is multiplied, and what stands behind it, where that is not its own name.
PRINTED: dict[str, list[Any]] = {"s": [1e3, " ms"], "1": [1, ""], "fraction": [100, " %"]}


class Answered(Record):
    """One number: the middle of the draws with both ends, NaN for none, and what a closed form says, NaN for nothing.

    `unit`, what it is `by` and the name of its `formula`; `why` is what it means.
    """

    name: str
    title: str
    value: float
    low: float
    high: float
    unit: str
    by: str
    formula: str
    by_formula: float
    why: str


def answered(one: Decided) -> list[Answered]:
    """Return all numbers in their order."""
    problem, solved, numbers = one.problem, one.solved, one.numbers
    words: Message = {
        "binding": " and ".join(binding_limits(numbers)), "units": of_architecture(problem, "disaggregated").units,
        "best": solved.order[0], "second": solved.order[1],
    }  # fmt: skip
    formulas = by_formula(problem, solved, numbers)
    rows: list[Answered] = []
    for name, title, unit, by, formula, why in ANSWERS:
        three = numbers.get(name, [nan, nan, nan])
        words["text"] = why if solved.best != "" else why.split(",")[0]
        rows.append(Answered(
            name=name, title=title, value=three[0], low=three[1], high=three[2], unit=unit, by=by, formula=formula,
            by_formula=formulas.get(name, nan), why=render(words),
        ))  # fmt: skip
    return rows


def spanned(three: list[float], scale: float) -> str:
    """Return a number with its ends if it has any, as it is printed."""
    value, least, most = [most_of(scale * end) for end in three]
    return value if least == value and most == value else f"{value} ({least} to {most})"


def in_unit(three: list[float], unit: str) -> str:
    """Return the same with its unit."""
    scale, word = PRINTED.get(unit, [1, " " + unit])
    printed: str = spanned(three, scale) + word
    return printed


def answer_texts(one: Answered) -> dict[str, str]:
    """Return what is printed of a number: its value, what it means and is computed by, what the closed form says."""
    known = isfinite(one.value)
    closed = [one.by_formula, one.by_formula, one.by_formula]
    return {
        "value": in_unit([one.value, one.low, one.high], one.unit) if known else "–",
        "why": one.why if known else "", "by": one.by,
        "said": in_unit(closed, one.unit) if known and isfinite(one.by_formula) else "",
    }  # fmt: skip
