"""Play what takes long, once, for the pages that show it: data/plays.csv.

    python tools/long_plays.py            # all of it, in minutes (make plays)
    python tools/long_plays.py fan_out    # some

Each play is a function of one setting, or of none, and is given all its settings in turn. A page reads the rows with
`inference_math_book.plays.stored`. Beside them stands a digest of the function and its settings.
"""

from __future__ import annotations

import csv
import functools
import hashlib
import inspect
import os
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import product
from math import floor
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

import inference_math_planner as planner
from inference_math import SLA, Unit, Workload, catalogue, evidence, simulate, theory
from inference_math.catalogue import tiers
from inference_math.evidence import data_dir
from inference_math.evidence.numerals import digits
from inference_math.evidence.sentences import render
from inference_math.optimiser import architectures
from inference_math.optimiser.draws import interval
from inference_math.unit import costs
from inference_math.unit.operators import Operators
from inference_math.unit.rates import acceleration
from inference_math_bench.lab import analysis
from inference_math_bench.lab.experiments import Counts
from inference_math_book import case, own_file, served
from inference_math_book.figures import brought, cadence, fanout, routing, stores, together
from inference_math_book.plays import TEXT
from inference_math_planner import plan, size_store
from inference_math_planner.answers.card import hundredths, laid_out, shares_of
from inference_math_planner.answers.deployment import Plan, record_of
from inference_math_planner.answers.text import fleets_table
from inference_math_planner.calibrate import from_kernels
from inference_math_planner.fleets import mixes
from inference_math_planner.fleets.stored import StoreTier, with_stores
from inference_math_planner.fleets.turns import Turns
from inference_math_planner.laws import latency

Setting = dict[str, Any]
Function = Callable[..., dict[str, Any] | list[dict[str, Any]]]
HEADER = ("play", "row", "column", "cell")


@dataclass(frozen=True)
class Play:
    """A function and the settings that it is given; `long` where the first of them takes seconds."""

    function: Function
    settings: tuple[Setting, ...]
    long: bool = False

    @property
    def digest(self) -> str:
        """Twelve hexadecimal digits of the function and its settings."""
        source = inspect.getsource(self.function) + repr(self.settings)
        return hashlib.sha256(source.encode()).hexdigest()[:12]

    def rows(self, number: int) -> list[dict[str, str]]:
        """Return the cells, by column, of the rows of a setting: one, or all of a play without settings."""
        found = self.function(**self.settings[number])
        rows = [self.settings[number] | row for row in (found if isinstance(found, list) else [found])]
        return [{name: printed(value) for name, value in row.items() if not pd.isna(value)} for row in rows]


PLAYS: dict[str, Play] = {}


def printed(value: Any) -> str:
    """Return a cell: a number to nine digits, or a text, marked where it reads as a number."""
    if isinstance(value, str):
        try:
            float(value)
        except ValueError:
            return value
        return TEXT + value
    if isinstance(value, int | np.integer):
        return f"{value}"
    digits = f"{value:.9g}"
    return digits if set(digits) & set(".einf") else f"{digits}.0"


def over(**values: Iterable[Any]) -> tuple[Setting, ...]:
    """Return all settings of some values by name, the last one changing first."""
    return tuple(dict(zip(values, row, strict=True)) for row in product(*values.values()))


def play(*settings: Setting, long: bool = False) -> Callable[[Function], Function]:
    """Register a function as the play of its name."""

    def register(function: Function) -> Function:
        PLAYS[function.__name__] = Play(function, settings or ({},), long)
        return function

    return register


# The case, by three accounts

_S = case.LIMITS.tpot
ROOM = int(case.UNIT.kv_capacity / (case.WORK.n_in + case.WORK.n_out / 2))  # requests of which memory has the caches
USERS = 19  # decodes of the chapters' examples: the batch of the served costs
CARD = {
    "t_w": ("weight read, $t_w$ (ms)", 1e3),
    "tpot_1": ("token that decodes alone, TPOT(1) (ms)", 1e3),
    "prompt": ("prompt in a running step, $P$ (ms)", 1e3),
    "alone": ("prompt alone, $P + t_w$ (ms)", 1e3),
    "T": ("prompt token in a running step, $T = P/N_{\\mathrm{in}}$ (µs)", 1e6),
    "T_gross": ("prompt token of a prompt alone, $T$ of chapter 6 (µs)", 1e6),
    "delta_p": ("ΔP, net (ms)", 1e3),
    "delta_p_gross": ("ΔP, gross: $\\Delta P_g$ (ms)", 1e3),
    "delta_h": ("ΔH (ms)", 1e3),
    "kv_read": ("KV read, a part of ΔH (ms)", 1e3),
    "bound": ("bound, 1 + ΔP/ΔH", 1),
    "e": ("$e$, over both PCIe links", 1),
    "batch": ("largest batch within 40 ms, aggregated", 1),
    "memory": ("requests that memory holds", 1),
    "chunk": ("chunk that keeps up with the decodes (tokens)", 1),
    "budget": ("tokens of a step to start with, every gap within 40 ms", 1),
    "budget_mean": ("tokens of a step, mean gap within 40 ms", 1),
    "chunks_same": ("gain of chunks over prompts beside decodes, 19 decodes", 1),
    "chunks_gain": ("gain of chunks over prompts beside decodes, within 40 ms", 1),
    "split": ("prefill units for a decode unit", 1),
    "split_room": ("prefill units for a decode unit, with room for 100", 1),
    "split_gain": ("gain of pools over aggregated", 1),
    "split_gain_room": ("gain of pools over aggregated, with room for 100", 1),
    "rate": ("requests/s of a unit, aggregated", 1),
    "rate_chunks": ("requests/s of a unit, in chunks", 1),
    "rate_split": ("requests/s of a unit, in pools with room for 100", 1),
    "rate_bound": ("requests/s of a unit, bound if no read hides", 1),
}  # names, words, and what a number in SI units is multiplied by


def _card_of(t_w: Any, prompt: Any, delta_h: Any) -> dict[str, Any]:
    """Return what follows from three costs of the case in seconds, by the formulas of the chapters."""
    (n_in, n_out), load = case.LENGTHS, theory.kv_load_time(
        kv_token=case.UNIT.model.kv_token("bf16"), io_bw=2 * catalogue.gpu("h100-sxm").pcie_bw
    )  # fmt: skip
    net, gross = prompt / n_out, (prompt + t_w) / n_out
    costs_of = {"delta_h": delta_h, "t_w": t_w}
    whole, pools = {"delta_p": net, "n_out": n_out}, {"delta_p_gross": gross, "n_out": n_out}
    held = min(_S, t_w + ROOM * delta_h)  # a step of a decode unit that memory fills
    aggregated = 1 / n_out / theory.unit_time_aggregated_full(**costs_of, **whole, sla_tpot=_S)
    apart = {
        limit: 1 / n_out / theory.unit_time_disaggregated_same(**costs_of, **whole, sla_tpot=limit)
        for limit in (_S, held)
    }
    in_chunks = theory.rate_bound_serial(**costs_of, **pools, sla_tpot=_S)
    batch = theory.max_batch(sla_tpot=_S, tpot_1=t_w + delta_h, delta_p=net, delta_h=delta_h)
    return {
        "t_w": t_w, "tpot_1": t_w + delta_h, "prompt": prompt, "alone": prompt + t_w, "T": prompt / n_in,
        "T_gross": (prompt + t_w) / n_in, "delta_p": net, "delta_p_gross": gross, "delta_h": delta_h,
        "bound": 1 + net / delta_h, "e": prompt / n_in / load, "batch": batch, "memory": ROOM,
        "seats": 1 + (_S - t_w - delta_h) / (net + delta_h),
        "chunk": theory.chunk_size_full(b=batch, n_in=n_in, n_out=n_out),
        "chunks_same": theory.chunked_gain_mixed(**costs_of, **pools, b=USERS), "chunks_gain": in_chunks / aggregated,
        "split": theory.pdd_split(**costs_of, **pools, sla_tpot=_S),
        "split_room": theory.pdd_split(**costs_of, **pools, sla_tpot=held),
        "split_gain": apart[_S] / aggregated, "split_gain_room": apart[held] / aggregated,
        "rate": aggregated, "rate_chunks": in_chunks, "rate_split": apart[held],
        "rate_bound": theory.rate_bound(**costs_of, **whole, sla_tpot=_S),
    }  # fmt: skip


def _card_of_kernels() -> dict[str, Any]:
    """Return the same of kernels that are added up; of chunks by steps of 256 and 512 tokens, with their tiles."""
    summed, step, (n_in, n_out) = served.summed(*case.LENGTHS), case.KERNELS.kernels, case.LENGTHS
    context, ratio = n_in + n_out / 2, n_in / n_out

    def bare(b: float) -> float:
        return step(b, b * context)

    def beside(b: float) -> float:
        return bare(b) + b / n_out * (step(b, b * context, 1, n_in, n_in**2 / 2) - bare(b))

    def chunks(b: float) -> float:
        fed = min(b, 512 / (1 + ratio))
        chunk = 512 - fed
        often, mixed = fed * ratio / chunk, step(fed, fed * context, chunk / n_in, chunk, chunk * n_in / 2)
        return b / fed * (often * mixed + (1 - often) * bare(fed))

    most = [max(b for b in np.arange(2, 60, 0.1) if of(b) <= _S) for of in (beside, chunks)]
    rates = [b / n_out / _S for b in most]
    left = {
        "chunks_gain": most[1] / most[0],
        "chunks_same": beside(USERS) / chunks(USERS),
        "kv_read": summed.cache_read,
        "budget": 256,
        "budget_mean": 512,
    }
    card = _card_of(summed.t_w, summed.ttft_1, summed.delta_h)
    gains = {name: card[name] * card["rate"] / rates[0] for name in ("split_gain", "split_gain_room")}
    return card | left | gains | {"rate": rates[0], "rate_chunks": rates[1]}


def _card_of_plan() -> dict[str, tuple[Any, ...]]:
    """Return the same as the planner has it: the median over its draws, and both ends."""
    found = case.planned()
    drawn = [_card_of(of.t_w, of.ttft_1, of.cache_read + of.own) for of in found.solved.costs]
    names = ("t_w", "tpot_1", "prompt", "alone", "T", "T_gross", "delta_p", "delta_p_gross", "delta_h", "bound", "e")
    rows = found.compared.set_index("architecture")
    rate = {name: tuple(rows.loc[name, ["rate", "rate_low", "rate_high"]]) for name in rows.index}
    told: Any = found.numbers
    ends = {name: interval(np.nan, [float(draw[name]) for draw in drawn]) for name in names}
    ends["kv_read"] = interval(np.nan, [of.cache_read for of in found.solved.costs])
    return {name: tuple(three) for name, three in ends.items()} | {
        "batch": tuple(told["batch"]), "memory": (ROOM,) * 3, "chunk": tuple(told["chunk"]),
        "budget": (found.starts["chunked"].plain["token_budget"],) * 3, "chunks_gain": tuple(told["chunked_gain"]),
        "split_room": tuple(told["prefill_units"]), "split_gain_room": tuple(told["pdd_gain"]),
        "rate": rate["aggregated"], "rate_chunks": rate["chunked"], "rate_split": rate["disaggregated"],
    }  # fmt: skip


@play()
def case_card() -> list[dict[str, Any]]:
    """What the served fit, added kernels and the planner say of the case."""
    rows, lengths = served.rows(case.UNIT.tp), case.LENGTHS

    def of(law: served.Law) -> dict[str, Any]:
        read = law.delta_h(*lengths)
        return _card_of(law.t_1 - read, float(law.prompt(lengths[0])), read)

    def number(name: str, law: served.Law) -> float:
        return float(of(law)["seats" if name == "batch" else name])

    fitted, kernels, drawn, card = of(served.fit(rows)), _card_of_kernels(), _card_of_plan(), []
    for name, (label, times) in CARD.items():
        row: dict[str, Any] = {"name": name, "label": label, "kernels": times * kernels.get(name, np.nan)}
        middle, low, high = drawn.get(name, (np.nan,) * 3)
        row |= {"planner": times * middle, "planner_low": times * low, "planner_high": times * high}
        if name in fitted:
            low, high = served.interval(rows, functools.partial(number, name))
            low, high = (floor(low), floor(high)) if name == "batch" else (low, high)
            row |= {"served": times * fitted[name], "served_low": times * low, "served_high": times * high}
        card.append(row)
    return card


# Agents


@play(*over(tasks=(1, 16), requests=(1, 2, 4, 8, 16, 32)))
def fan_out(tasks: int, requests: int) -> dict[str, float]:
    """Tasks that send requests with the case's lengths, all but 200 tokens of a prompt shared."""
    one = served.CASE
    cost = simulate.StepCost(
        t_w=one.t_1 - one.delta_h, T=one.prompt / one.n_in, kv_read=one.delta_h / (one.n_in + one.n_out / 2)
    )
    # The longest of many answers varies less than one answer does.
    return fanout.play(fanout.Fan(requests, 2000, 200, one.n_out), cost, tasks, int(4000 / requests**0.5))


# Long prompts


@play(*over(budget=(32768, 16384, 8192, 4096, 2048, 1024, 512)))
def long_prompts(budget: int) -> dict[str, float]:
    """Prompts of 30,000 tokens: eight users of Llama-3-70B on four H100, by the tokens that a step may have."""
    unit = Unit.of("llama-3-70b", "h100-sxm", 4, "fp8", "bf16")
    run = planner.foresee(unit, planner.Benchmark(30_000, 500, 80, 8, budget=budget, range_ratio=0.1))
    table: Any = run.table
    gaps, ttft = table.loc["ITL"], table.loc["TTFT"]
    return {"p99": gaps["P99"], "p50": gaps["P50"], "ttft": ttft["mean"], "rate": run.rate}


# Choose a tier


@play(*over(engine=("waits", "goes on")))
def waiting_for_loads(engine: str) -> dict[str, float]:
    """An engine that waits for a slow store, and one that goes on."""
    cost = simulate.StepCost(t_w=0.01, T=40e-6, kv_read=2e-8)
    turns, tier = (
        Turns(turns=20, first=20_000, message=1500, answer=500, think=20.0),
        StoreTier(3e6, load=0.75 * cost.T),
    )
    chunks = simulate.Chunked(8192, kv_capacity=0.6e6)
    run = with_stores(
        turns,
        cost,
        tiers=[tier],
        blocking=engine == "waits",
        users=40,
        requests=800,
        warmup=400,
        block_tokens=64,
        scheduler=chunks,
    ).run
    link = theory.link_rate(again=turns.sessions(1.0).again, R=tier.load)
    return {"rate": run.request_rate, "tpot": run.requests.tpot.mean(), "T": cost.T, "link": link}


# Chunk and token budget


@play(
    *over(
        sla_tpot=(0.04, 0.02),
        engine=("vLLM", "TensorRT-LLM"),
        n_in=(256, 512, 1024, 2048, 4096, 8192),
        n_out=(16, 64, 170, 512, 1024, 2048),
    )
)
def decisions(sla_tpot: float, engine: str, n_in: int, n_out: int) -> dict[str, Any]:
    """The best architecture of the case's unit for other lengths, a second to the first token."""
    kernels = replace(case.KERNELS, engine="vllm" if engine == "vLLM" else "trtllm")
    steps = costs.measured(kernels, n_in, n_out)
    return together.decided(steps, SLA(1.0, sla_tpot), close=case.UNIT.calibration.spread)


WORKLOADS = {
    "chat": (1200, 250, 0.0), "chat, stored": (1200, 250, 0.7), "code completion": (2000, 30, 0.0),
    "RAG": (8000, 100, 0.0), "RAG, stored": (8000, 100, 0.9), "reasoning": (600, 3000, 0.0),
}  # fmt: skip
DEPLOYMENTS = {
    "8B, H100": ("llama-3-8b", "h100-sxm", 1),
    "70B, 2 H100": ("llama-3-70b", "h100-sxm", 2),
    "70B, 2 H20": ("llama-3-70b", "h20", 2),
}


def _priced(name: str, gpu: str, tp: int, n_in: int, n_out: int, alpha: float) -> tuple[costs.WorkloadCosts, float]:
    """Return what a workload costs with a store on SSDs, and the share of its prompts that is computed."""
    model, unit = catalogue.model(name), Unit.of(name, gpu, tp, "fp8", "fp8")
    if gpu == "h100-sxm":
        plain = costs.measured(Operators(model, tp=tp, weights="fp8", kv="fp8"), n_in, n_out)
    else:
        plain = unit.costs(Workload(n_in, n_out))
    whole = plain.ttft_1 + plain.t_w  # a prompt alone; e and κ are of its products, in quadrature with the weight read
    T = whole / n_in
    e = acceleration(tiers.tier("local_ssd"), T, model.kv_copies(tp) * model.kv_token("fp8"), tp)
    products = np.sqrt(whole**2 - plain.t_w**2)
    star = theory.crossover_root(e=e * products / whole, beside=plain.t_w / products)
    loaded = min(alpha, float(star))
    return plain.with_store(loaded, loaded * n_in * T / e), 1 - loaded


def _lead(margin: float) -> str:
    return "no rival" if np.isinf(margin) else f"{100 * margin:.0f} %"


@play(*over(deployment=DEPLOYMENTS, workload=WORKLOADS))
def decision_chart(deployment: str, workload: str) -> dict[str, str]:
    """The best architecture of some deployments and workloads, and how it is set."""
    numbers, computed = _priced(*DEPLOYMENTS[deployment], *WORKLOADS[workload])
    tpot, ttft, tp, error = case.LIMITS.tpot, 1.0, DEPLOYMENTS[deployment][2], case.UNIT.calibration.spread
    found = architectures.compare(numbers, tpot, ttft)
    best, margin = together.best_of(found)
    close = not np.isinf(margin) and margin < error and best != "none fits"
    row = {"best": f"{best}, too close to call" if close else best, "leader": best}
    if margin:
        same, tail = together.best_of(architectures.compare(numbers, tpot, ttft, quantile=0.99))
        its = found.set_index("architecture").loc[best]
        row |= {"lead": _lead(margin), "at P99": f"{same}, {_lead(tail)}"}
        row |= {"per GPU (1/s)": f"{its.rate / tp:.2f}", "decodes": f"{its.batch:.0f}"}
        if best == "chunked":
            row["batched tokens"] = f"{its.batch + computed * its.chunk:,.0f}"
        if best == "disaggregated":
            row["pools"] = f"{its.prefill_units:.0f}:{its.decode_units:.0f}"
    return row


# FP8 caches

CHAT, LONG = (case.WORK, case.LIMITS), (Workload(2000, 500), SLA(2, 0.03))
ASKED = {
    "Llama-3-70B, 2 H100, vLLM": (("llama-3-70b", "h100-sxm", 2, "fp8"), "vllm", CHAT),
    "the same, TensorRT-LLM": (("llama-3-70b", "h100-sxm", 2, "fp8"), "trtllm", CHAT),
    "the same, SGLang": (("llama-3-70b", "h100-sxm", 2, "fp8"), "sglang", CHAT),
    "DeepSeek-V3, 8 H200, vLLM": (("deepseek-v3", "h200-sxm", 8, "fp8"), "vllm", LONG),
    "the same, TensorRT-LLM ": (("deepseek-v3", "h200-sxm", 8, "fp8"), "trtllm", LONG),
    "the same, SGLang ": (("deepseek-v3", "h200-sxm", 8, "fp8"), "sglang", LONG),
    "DeepSeek-V3, 8 B200, SGLang": (("deepseek-v3", "b200", 8, "fp8"), "sglang", LONG),
    "glm-5": (("glm-5", "h200-sxm", 8, "fp8"), "sglang", (Workload(8204, 1024), SLA(30, 0.25))),
    "deepseek-v3.2": (("deepseek-v3.2", "h200-sxm", 8, "fp8"), "sglang", (Workload(8204, 1024), SLA(30, 0.25))),
}


@play(*over(setup=ASKED))
def eight_bit_caches(setup: str) -> dict[str, float]:
    """Plans with a cache in BF16 and in FP8, and the requests that fit."""
    unit, engine, asked = ASKED[setup]
    row: dict[str, Any] = {}
    for kv in ("bf16", "fp8"):
        one = Unit.of(*unit, kv, engine)
        found = plan(one, *asked)
        row |= {f"rate_{kv}": found["rate"], f"delta_h_{kv}": found["delta_h"], f"fit_{kv}": one.places(asked[0])}
    return row


# The laboratory


@play(*over(lengths=("geometric", "uniform", "two lengths", "fixed")))
def count_tests(lengths: str) -> dict[str, float]:
    """How likely counts of prompts in a step are by the binomial law, each of four slots that it could be of."""
    middles, mean = (np.arange(20_000) + 0.5) / 20_000, Counts.n_out
    answers = {
        "geometric": stats.geom.ppf(middles, 1 / mean).astype(int), "uniform": np.arange(1, 2 * mean),
        "two lengths": np.array([mean // 4, 2 * mean - mean // 4]), "fixed": np.array([mean]),
    }[lengths]  # fmt: skip
    table = evidence.load("lab_counts").frame
    rows = table[table.lengths == lengths]
    design: dict[str, Any] = {"users": Counts.users, "watched": (int(rows.windows.iloc[0]), Counts.window)}
    steps, decodes = rows.steps.tolist(), rows.decodes.tolist()
    beside = {"beside": True} | design
    return {
        "steps": sum(steps),
        "p, all slots": analysis.count_test(steps, answers, **design).p,
        "p, beside a decode": analysis.count_test(decodes, answers, **beside).p,
        "p, 7 slots": analysis.count_test(steps, answers, tagged=Counts.users - 1, **design).p,
        "p, 8 beside": analysis.count_test(decodes, answers, tagged=Counts.users, **beside).p,
    }


# Your own GPU


@play(long=True)
def own_fit() -> dict[str, float]:
    """How far off the fit to our own file is, and predictions without it."""
    own = own_file.ours()[0]
    fitted = from_kernels.fit(own.times, own.unit)
    zero = (from_kernels.predicted(fitted.table, own.unit) / fitted.table.seconds - 1).abs().mean()
    return {"points": len(fitted.table), "off": fitted.mape, "zero": float(zero)}


# Prefills at every N-th step


def _parts() -> dict[str, float]:
    of = case.UNIT.costs(case.WORK)
    return {name: float(getattr(of, name)) for name in ("t_w", "ttft_1", "delta_h")}


@play(*over(ranks=(1, 4, 8, 16), every=(1, 2, 4, 8, 16, 32)))
def cadence_ranks(ranks: int, every: int) -> dict[str, float]:
    """Mean gap and mean TTFT of ranks that step together at 35 % of what they serve at most."""
    parts, answer = _parts(), served.CASE.n_out
    each = 0.35 / (parts["ttft_1"] + (answer - 1) * parts["delta_h"])
    run = cadence.opened(parts, each * ranks, answer, every, ranks)
    return {"gap simulated": run.gaps.mean, "ttft simulated": float(run.requests.ttft.mean())}


@play(
    *(
        {"ranks": ranks, "schedule": schedule, "set": number}
        for ranks in (1, 8)
        for schedule, numbers in cadence.FAMILY.items()
        for number in numbers
    )
)
def cadence_family(ranks: int, schedule: str, set: int) -> dict[str, float]:
    """What cadences, chunks and pools do at the same load."""
    load = {1: 0.5, 8: 0.35}[ranks]
    return cadence.scheduled(_parts(), served.CASE.n_in, served.CASE.n_out, ranks, load, schedule, set)


# Promise a percentile

SERVED = costs.WorkloadCosts(  # the case as served; every part of a step adds
    *case.LENGTHS, served.CASE.t_1 - served.CASE.delta_h, served.CASE.prompt, served.CASE.delta_h, 0.0, np.inf, np.inf
)


@play(*over(B=(4, 16, 64, 128), N_out=(16, 64, 256)))
def formulas_checked(B: int, N_out: int) -> dict[str, float]:
    """A loop of users over what formulas say of it."""
    here = replace(SERVED, n_out=N_out)  # the same times, other answers
    run = simulate.closed_loop(
        Workload(case.WORK.n_in, N_out, lengths="geometric"),
        here.step_cost(),
        concurrency=B,
        requests=40_000,
        warmup=1000,
        seed=B + N_out,
    )
    return {
        "mean TTFT": run.requests.ttft.mean() / here.ttft(B),
        "mean gap": run.gaps.mean / here.tpot(B),
        "P99 gap": run.gaps.quantile(0.99) / latency.gap_quantile(0.99, B, N_out, **here.law),
        "requests/s": run.request_rate / here.rate(B),
        "mean TPOT": run.requests.tpot.mean() / here.tpot(B),
    }


@play()
def bursts() -> list[dict[str, Any]]:
    """Mean TTFT in seconds of requests in the order of their arrival, of users who begin together."""
    starts = []
    for seed in range(200):
        run = simulate.closed_loop(
            Workload(*case.LENGTHS, lengths="geometric"),
            SERVED.step_cost(),
            concurrency=32,
            requests=450,
            start="together",
            seed=seed,
        )
        in_order = run.requests.sort_values("arrival").ttft.to_numpy()
        starts.append(in_order[:320].reshape(10, 32).mean(axis=1))
    groups = {"1 to 32": 0, "33 to 64": 1, "65 to 96": 2, "289 to 320": 9}
    return [{"requests": group, "ttft": np.mean(starts, axis=0)[place]} for group, place in groups.items()]


# Route

PEOPLE, BATCH = (1.5, 2200, 170), (0.0, 8000, 300)


@play(*over(rate=(0.0, 0.1, 0.2, 0.3, 0.4, 0.5), engine=("whole prompts", "chunks")))
def two_classes(rate: float, engine: str) -> dict[str, float]:
    """People's requests on one engine beside those of a batch."""
    cost = simulate.StepCost(t_w=0.016, T=70e-6, kv_read=4e-8)
    return routing.two_classes(PEOPLE, (rate, *BATCH[1:]), cost, None if engine == "whole prompts" else 512)


# Set the batch


@play(*over(room=("reserved", "grows")))
def caches_that_grow(room: str) -> dict[str, float]:
    """Requests with room for their whole answer, or for what is there of it."""
    held = {"kv_capacity": 500_000, "n_in": 600, "n_out": 3000}
    limit = int(theory.max_batch_growing(**held, cv=1)) if room == "grows" else 200
    run = simulate.closed_loop(
        Workload(600, 3000, lengths="geometric"),
        simulate.StepCost(t_w=0.02, prompt=0.03, delta_h=1e-5),
        concurrency=200,
        requests=2500,
        warmup=1000,
        seed=2,
        scheduler=simulate.Aggregated(limit, 500_000, room == "grows"),
    )
    stays = (run.requests.finished - run.requests.admitted).mean()
    return {"rate": run.request_rate, "stays": stays, "preempted": run.preempted, "requests": len(run.requests)}


@play(
    *(
        {"alpha": 0.0 if e == 1 else 0.9, "e": e, "waits": waits}
        for e, waits in ((1.0, 1), (4.0, 1), (4.0, 0), (0.5, 0))
    )
)
def loading_engines(alpha: float, e: float, waits: int) -> dict[str, float]:
    """Requests per second of an engine that waits for what it loads, or does not."""
    price = costs.step_cost(case.KERNELS)
    read = float(costs.measured(case.KERNELS, *case.LENGTHS).additive.cache_read)
    run = simulate.closed_loop(
        Workload(*case.LENGTHS, alpha=alpha, lengths="geometric"),
        simulate.StepCost(t_w=price.t_w, T=price.T, delta_h=read),
        concurrency=64,
        scheduler=simulate.Aggregated(max_batch=32),
        reuse=simulate.Reuse(price.T / e, blocking=bool(waits)),
        requests=20_000,
        warmup=1000,
        seed=8,
    )
    return {"rate": run.request_rate}


# Size a fleet

FLEETS = {
    "400 ms and 40 ms, the case": (case.WORK, case.LIMITS),
    "400 ms and 200 ms": (case.WORK, SLA(0.4, 0.2)),
    "2 s and 40 ms": (case.WORK, SLA(2.0, 0.04)),
    "2 s and 200 ms": (case.WORK, SLA(2.0, 0.2)),
    "the case, 15 turns on SSDs": (Workload(*case.LENGTHS, float(theory.reuse_conversation(turns=15))), case.LIMITS),
}
RATE = 40  # requests/s that fleets are for


def _counted(found: Plan, rate: float, **options: Any) -> dict[str, float]:
    """Return the GPUs of each architecture's fleet, with their ends."""
    answer = planner.fleet(found, rate, **options)
    gpus = {one.architecture: one.gpus for one in (answer, *answer.others)}
    return {
        f"{name}{end}": float(each)
        for name in gpus
        for end, each in zip(("", ", low", ", high"), gpus[name], strict=True)
    }


def _planned(name: str) -> Plan:
    work, limits = FLEETS[name]
    return plan(case.UNIT, work, limits, tier=tiers.tier("local_ssd") if work.alpha else None)


@play(*over(promise=FLEETS), long=True)
def fleets(promise: str) -> dict[str, float]:
    """Fleets for some promises."""
    return _counted(_planned(promise), RATE)


@play(*over(which=("another seed", "few requests", "16 units", "16 GPUs")), long=True)
def fleets_beside(which: str) -> dict[str, float]:
    """The case's fleet drawn again, one of two requests/s, one of plans for sixteen units, and what 16 GPUs serve."""
    if which == "another seed":
        return _counted(_planned("400 ms and 40 ms, the case"), RATE, arrivals=planner.Arrivals(seed=1))
    if which == "few requests":
        return _counted(_planned("2 s and 200 ms"), 2)
    if which == "16 GPUs":
        return {"rate": planner.capacity(_planned("400 ms and 40 ms, the case"), 16).rate}
    wide = plan(case.UNIT, case.WORK, case.LIMITS, units=16)
    return {"disaggregated": planner.fleet(wide, RATE, architecture="disaggregated").gpus[0]}


@play(*over(mix=("none", "azure-code"), architecture=("chunked", "disaggregated")), long=True)
def fleets_of_code(mix: str, architecture: str) -> dict[str, float]:
    """Fleets for code completion, all requests alike or as they were recorded."""
    code = mixes.mix("azure-code")
    coding = plan(case.UNIT, Workload.from_trace(code), SLA(1.0, 0.050))
    arrivals = planner.Arrivals(mix=None if mix == "none" else code)
    return {"GPUs": planner.fleet(coding, 20, architecture=architecture, arrivals=arrivals).gpus[0]}


@play(long=True)
def case_fleets() -> Any:
    """All fleets of the case, as the answer prints them."""
    tight = _planned("400 ms and 40 ms, the case")
    return fleets_table(planner.as_record(tight, planner.fleet(tight, RATE))).to_dict("records")


@play(*over(pool=("one unit", "six units", "six units, bursts"), busy=(0.5, 0.7, 0.85)))
def pool_waits(pool: str, busy: float) -> dict[str, Any]:
    """First tokens of pools that compute prompts alone."""
    alone = served.CASE.prompt + served.CASE.t_1 - served.CASE.delta_h
    units, cv = 1 if pool == "one unit" else 6, 2 if pool.endswith("bursts") else 1
    run = simulate.open_loop(
        Workload(case.WORK.n_in, 1),
        simulate.StepCost(t_w=alone),
        rate=units * busy / alone,
        cv_arrivals=cv,
        requests=20_000,
        warmup=1000,
        scheduler=simulate.Disaggregated(units, 1),
    )
    return {"mean": run.requests.ttft.mean(), "P99": run.requests.ttft.quantile(0.99)}


# Size a store

AGENTS = Turns(turns=60, first=15_000, message=1_500, answer=500, think=20.0)
SEVENTY = Unit.of("llama-3-70b", "h100-sxm", 4, weights="fp8", kv="fp8")
BELOW = {"HBM": 0.0, "HBM and host": 2.5e6}  # tokens of host memory
CROWDS = (
    4, 6, 8, 10, 12, 14, 16, 17, 18, 19, 20, 21, 22, 24, 28, 32, 36, 40, 44, 47, 50, 52, 54, 56, 58, 60, 64, 68,
)  # fmt: skip
CROWDS_PLAYED = (8, 14, 18, 22, 28, 40, 60)


@play(*over(cv=(0.0, 0.5, 1.0), users=(6, 10, 16, 20, 24, 27, 32, 40, 56, 64, 72, 90, 140)))
def cliff(cv: float, users: int) -> dict[str, float]:
    """What small sessions find in HBM, and in HBM and host memory."""
    return stores.cliff_played(users, cv, 1500, 2500)


@play(*over(tier=BELOW, users=CROWDS, source=("law",)), *over(tier=BELOW, users=CROWDS_PLAYED, source=("simulated",)))
def crowds(tier: str, users: int, source: str) -> dict[str, float]:
    """What more and more agents of a unit find and see."""
    place = list(BELOW).index(tier) * len(CROWDS_PLAYED) + CROWDS_PLAYED.index(users) if source == "simulated" else 0
    seed = int(np.random.SeedSequence(0, spawn_key=(place,)).generate_state(1)[0])
    return brought.crowd(SEVENTY, AGENTS, users, BELOW[tier], None if source == "law" else seed)


@play()
def case_store() -> dict[str, Any]:
    """What 500 agents on sixteen units find with host memory and SSDs, and what they need."""
    below = {"dram": 8e12, "local_ssd": 60e12}
    answer = size_store(SEVENTY, AGENTS, 500, below, units=16, sla=SLA(ttft=2.0, tpot=0.05))
    row: dict[str, Any] = {"alone": answer.alone, "half": answer.needed[0.5], "stands for": answer.stands_for}
    row |= dict(zip(("low", "high"), answer.spread, strict=True))
    for one in answer.tiers.to_dict("records"):
        row |= {f"{one['tier']} found": one["together"], f"{one['tier']} rate": one["rate"]}
    return row


SIZED = {
    "llama-3-70b": (SEVENTY, 16),
    "gpt-oss-120b": (Unit.of("gpt-oss-120b", "h100-sxm", 2), 8),
    "deepseek-v3": (Unit.of("deepseek-v3", "h200-sxm", 8, kv="fp8"), 16),
    "minimax-m2": (Unit.of("minimax-m2", "h200-sxm", 4, weights="fp8"), 16),
}


@play(*over(model=SIZED))
def store_sizes(model: str) -> dict[str, Any]:
    """What 500 agents find on some units, and the store that they need."""
    unit, units = SIZED[model]
    found = size_store(unit, AGENTS, 500, {"dram": 8e12}, units=units)
    alone, both = found.tiers.to_dict("records")
    row: dict[str, Any] = {"a unit": f"{unit.gpus} × {unit.gpu.name}, {unit.weights}, KV {unit.kv}", "units": units}
    row |= {"GPUs": units * unit.gpus, "session (GB)": found.gb, "90 % takes (TB)": found.needed[0.9] / 1e3}
    row |= {"HBM (TB)": alone["gb"] / 1e3}
    for label, one in (("HBM", alone), ("with host", both)):
        row |= {f"{label}: found (%)": round(100 * one["together"], 3), f"{label}: turns/s": one["rate"]}
        row |= {f"{label}: TTFT (s)": one["ttft"]}
    return row


# Speculative decoding


@play(
    *(
        draft | limit
        for draft in (
            {"drafts": 0, "accepted": 0.0},
            {"drafts": 1, "accepted": 0.85},
            *over(drafts=(3,), accepted=(0.85, 0.6, 0.2)),
        )
        for limit in over(tpot=(0.025, 0.03, 0.06, 0.1))
    )
)
def drafted(drafts: int, accepted: float, tpot: float) -> dict[str, float]:
    """Requests per second of the best architecture with drafts, and by how much it is ahead of the aggregated one."""
    unit = Unit.of("llama-3-70b", "h100-sxm", 2, "fp8", drafts=drafts, accepted=accepted)
    rates = plan(unit, Workload(2048, 512), SLA(4, tpot)).compared.set_index("architecture").rate
    return {"rate": rates.max(), "ahead": rates.max() / rates["aggregated"]}


# Split pools


@play(long=True)
def splits() -> dict[str, str]:
    """What plans, and searches for a layout of each pool, say of splits."""
    planned = {units: plan(case.UNIT, case.WORK, case.LIMITS, units=units) for units in (2, 8)}
    wide = plan(case.UNIT, case.WORK, SLA(case.LIMITS.ttft, 0.2))
    short = plan(case.UNIT, Workload(1024, 6), SLA(2.0, 0.2))
    glm = plan(Unit.of("glm-5", "h200-sxm", 8, "fp8", engine="sglang"), Workload(32_000, 512), SLA(10, 0.05))
    reused, limits = Workload(64_000, 400, alpha=0.9), SLA(5.0, 0.02)
    drafting: dict[str, Any] = {"engine": "sglang", "drafts": 3, "accepted": 0.7}
    laid = {
        gpu: planner.search(planner.Case(Unit.of("glm-5", gpu, 8, weights, **drafting), reused, limits))[0]
        for gpu, weights in (("b200", "nvfp4"), ("h200-sxm", "fp8"))
    }
    pair: Any = record_of(laid["b200"], stores=False, runner_up=False).architectures[0]
    searched, _ = planner.search(planner.Case(case.UNIT, case.WORK, case.LIMITS))
    pools: Any = glm.solved.settings["disaggregated"]
    assert 1 < planned[2]["pdd_gain"] < planned[8]["pdd_gain"]
    assert max(wide["pdd_gain"], short["pdd_gain"]) < 1
    assert pools.prefill_units > 2 * pools.decode_units
    assert all(one.best == "disaggregated" for one in laid.values())
    margin, gain = searched.answers["margin"], planned[8].answers["pdd_gain"]
    return {
        "split_case": f"{planned[8]['pdd_gain']:.1f}",
        "split_ends": f"{gain.low:.1f} and {gain.high:.1f}",
        "case_split": _split(planned[8]),
        "gain_2": f"{planned[2]['pdd_gain']:.1f}",
        "gain_8": f"{planned[8]['pdd_gain']:.1f}",
        "gain_wide": f"{wide['pdd_gain']:.2f}",
        "gain_short": f"{short['pdd_gain']:.2f}",
        "fits": digits(planned[8]["batch_memory"]),
        "glm_split": _split(glm),
        "glm_gain": f"{glm['pdd_gain']:.2f}",
        "glm_b200": f"{laid['b200']['pdd_gain']:.1f}",
        "glm_h200": f"{laid['h200-sxm']['pdd_gain']:.1f}",
        "glm_prefill": ", ".join(map(render, shares_of(pair.pools["prefill"]))),
        "glm_decode": ", ".join(map(render, shares_of(pair.pools["decode"]))),
        "searched_second": searched.order[1],
        "searched_unit": render(laid_out(searched.case.problem, searched.order[1])),
        "searched_lead": f"{100 * searched['margin']:.0f}",
        "searched_ends": f"{100 * margin.low:.0f} to {100 * margin.high:.0f}",
        "wide_sure": f"{wide.card.sure}",
    }


def _split(of: Plan) -> str:
    pools = of.solved.settings["disaggregated"]
    return f"{pools.prefill_units:.0f} to {pools.decode_units:.0f}"


# Questions


@play(long=True)
def questions_ways() -> dict[str, str]:
    """What plans say of splits and of other ways to serve, in the words of the page."""
    found, unit, work, limits, one = case.planned(), case.UNIT, case.WORK, case.LIMITS, served.CASE
    by = found.compared.set_index("architecture")
    law = {"t_w": one.t_1 - one.delta_h, "delta_p": one.delta_p, "delta_h": one.delta_h}
    loose = plan(unit, work, SLA(limits.ttft, 0.2))
    served_both = evidence.load("predicted_split_gains").frame
    slow_users, quick_users = served_both[served_both.speed < 35], served_both[served_both.speed.between(80, 120)]
    two = plan(unit, work, limits, units=2)
    short = plan(unit, Workload(1024, 6), SLA(2.0, 0.2))
    glm = plan(Unit.of("glm-5", "h200-sxm", 8, "fp8", engine="sglang"), Workload(32_000, 512), SLA(10, 0.05))
    again = Workload(64_000, 400, alpha=0.9), SLA(5, 0.02)
    reused = [
        plan(Unit.of("glm-5", name, tp, of, kv, "sglang", drafts=3, accepted=0.7), *again)
        for name, tp, of, kv in (("h200-sxm", 8, "fp8", "bf16"), ("b200", 4, "nvfp4", "fp8"))
    ]
    laid = [
        planner.search(planner.Case(Unit.of("glm-5", name, 8, of, engine="sglang", drafts=3, accepted=0.7), *again))[0]
        for name, of in (("h200-sxm", "fp8"), ("b200", "nvfp4"))
    ]
    shortest = next(filter(_split_pays, range(16, 4000, 16)))
    within_1_30, gpt = SLA(ttft=1, tpot=0.03), Workload(2000, 500)
    oss = {
        name: plan(Unit.of("gpt-oss-120b", "h100-sxm", 2, "mxfp4", engine=name), gpt, within_1_30)
        for name in ("vllm", "trtllm")
    }
    h200, b200 = (catalogue.gpu(name) for name in ("h200-sxm", "b200"))
    same = {"prefill_cost": 1, "decode_cost": 1, "sla_tpot": limits.tpot, **law}
    ratios = (1, 1), (b200.flops("fp8") / unit.gpu.flops("fp8"), 1), (1, h200.hbm_bw / unit.gpu.hbm_bw)
    special = [float(theory.pdd_gain_per_cost(flop_ratio=f, mbw_ratio=m, **same)) for f, m in ratios]
    plain, prefill_b200, decode_h200 = special
    late = plan(unit, work, SLA(ttft=0.15, tpot=limits.tpot))
    assert not late.feasible
    assert any("TP 8" in one for one in late.advice)
    assert found.tie
    assert all(one.tie for one in (*reused, *oss.values()))
    assert all(one.best == "disaggregated" for one in (*reused, *laid))
    pools: Any = found.solved.settings["disaggregated"]
    ways = {"aggregated": "aggregated serving", "chunked": "chunked prefill", "disaggregated": "a split"}
    return dict(
        q_best_low=found.best,
        q_chance=f"{hundredths(found.best_in)}",
        q_pdd=f"{found['pdd_gain']:.1f}",
        q_pdd_loose=f"{loose['pdd_gain']:.2f}",
        q_pdd_two=f"{two['pdd_gain']:.1f}",
        **{f"q_rate_{name}": f"{by.rate[name]:.2f}" for name in by.index},
        q_splits=f"{len(served_both)}",
        q_splits_gain=f"{(served_both.gain > 1).sum()}",
        q_splits_slow=f"{slow_users.gain.median():.1f}",
        q_splits_quick=f"{quick_users.gain.median():.1f}",
        q_split=_split(found),
        q_shortest=f"{shortest}",
        q_short=f"{short['pdd_gain']:.2f}",
        q_glm_split=_split(glm),
        q_glm_gain=f"{glm['pdd_gain']:.2f}",
        q_reused_split=" and ".join(map(_split, reused)),
        q_reused_gain=" and ".join(f"{one['pdd_gain']:.2f}" for one in reused),
        q_laid_sure=" and ".join(dict.fromkeys(f"{one.card.sure}" for one in laid)),
        q_laid_gain=" and ".join(f"{one['pdd_gain']:.1f}" for one in laid),
        q_gbs=digits(
            theory.transfer_bandwidth(
                rate=by.rate["disaggregated"] * (1 + pools.prefill_units / pools.decode_units),
                n_in=work.n_in,
                kv_token=unit.model.kv_token(unit.kv),
            )
            / 1e9
        ),
        q_prefill_b200=f"{prefill_b200 / plain:.1f}",
        q_decode_h200=f"{decode_h200 / plain:.1f}",
        **{f"q_oss_{name}_way": ways[one.best] for name, one in oss.items()},
        q_oss=f"{oss['vllm']['rate']:.1f}",
        q_oss_sure=_percent(oss["vllm"].best_in),
        q_oss_trtllm=f"{oss['trtllm']['rate']:.1f}",
        q_late=f"{1e3 * float(unit.prefill_time(work.n_in) + unit.front.seconds):.0f}",
    )


@play(long=True)
def questions_fleets() -> dict[str, str]:
    """What fleets, other GPUs and precisions are said to serve."""
    found, unit, work, limits = case.planned(), case.UNIT, case.WORK, case.LIMITS
    gpt, within_1_30 = Workload(2000, 500), SLA(ttft=1, tpot=0.03)
    many = {rate: planner.fleet(found, rate) for rate in (10.0, 40.0)}
    sixteen = planner.capacity(found, 16)
    wider = SLA(ttft=2, tpot=0.05)
    two_h200 = max(
        2 / tp * plan(Unit.of("llama-3-70b", "h200-sxm", tp, "fp8", "bf16"), work, wider)["rate"] for tp in (1, 2)
    )
    pairs_20 = plan(unit, work, wider)
    four_h100 = max(2 * pairs_20["rate"], plan(unit.resized(tp=4), work, wider)["rate"])
    twenty = planner.fleet(pairs_20, 20.0)
    sizes = {
        name: {
            tp: plan(Unit.of("gpt-oss-120b", name, tp, "mxfp4"), gpt, within_1_30)["tokens_per_gpu"] for tp in (1, 2, 4)
        }
        for name in ("h100-sxm", "h200-sxm", "b200")
    }
    per = {name: max(by_tp.values()) for name, by_tp in sizes.items()}
    of_size = {name: max(by_tp, key=by_tp.__getitem__) for name, by_tp in sizes.items()}
    assert of_size["h100-sxm"] == 2
    others = planner.across(found, ["h200-sxm", "b200"]).set_index("gpu")
    narrow = plan(unit.resized(kv="fp8"), work, limits)
    one_gpu, mixture = unit.resized(tp=1), plan(Unit.of("gpt-oss-120b", "h100-sxm", 2, "mxfp4", unit.kv), work, limits)
    bf16, four = plan(Unit.of("llama-3-70b", "h100-sxm", 4), work, limits), plan(unit.resized(tp=4), work, limits)
    l40s = plan(Unit.of("qwen3-14b", "l40s", 1, "fp8"), Workload(1000, 200), SLA(2, 0.05))
    assert not (evidence.load("accuracy").frame.gpu == "l40s").any()
    plain = Unit.of("deepseek-v3", "h200-sxm", 8, "fp8", "bf16", "sglang")
    draft_rates = [plan(one, gpt, SLA(2, 0.03))["rate"] for one in (plain, _drafting(plain))]
    assert many[40.0].gpus[0] < min(one.gpus[0] for one in many[40.0].others)
    return dict(
        q_gpus_10=digits(many[10.0].gpus[0]),
        q_gpus_next=digits(min(one.gpus[0] for one in many[40.0].others)),
        q_gpus_40=digits(many[40.0].gpus[0]),
        q_joule=digits(found["joules_per_token"]),
        q_capacity=f"{sixteen.rate:.1f}",
        q_two_h200=f"{two_h200:.1f}",
        q_four_h100=f"{four_h100:.1f}",
        q_twenty=digits(twenty.gpus[0]),
        q_gpt_h100=digits(per["h100-sxm"]),
        q_gpt_h200=digits(per["h200-sxm"]),
        q_gpt_b200=digits(per["b200"]),
        q_even_price=digits(round(per["b200"] / per["h100-sxm"], 1)),
        **{f"q_gpt_tp_{name[:4]}": f"{tp}" for name, tp in of_size.items()},
        q_bf16=digits(bf16["tokens_per_gpu"]),
        q_fp8=digits(four["tokens_per_gpu"]),
        q_fp8_two=digits(found["tokens_per_gpu"]),
        q_alone_fit=f"{one_gpu.places(work)}",
        q_alone_fit8=f"{one_gpu.resized(kv='fp8').places(work)}",
        q_least=f"{costs.smallest_tp(unit.model, unit.gpu, 'bf16')}",
        q_kv16=digits(found["tokens_per_gpu"]),
        q_kv16_read=f"{1e3 * found['delta_h']:.2f}",
        q_kv8=digits(narrow["tokens_per_gpu"]),
        q_kv8_read=f"{1e3 * narrow['delta_h']:.2f}",
        **{f"q_slow_{kv}": f"{1e3 * float(plain.resized(kv=kv).costs(gpt).delta_h):.2f}" for kv in ("fp8", "bf16")},
        q_h200=f"{others.ratio['h200-sxm']:.1f}",
        q_b200=f"{others.ratio['b200']:.1f}",
        q_mixture=digits(mixture["tokens_per_gpu"]),
        q_dense=digits(found["tokens_per_gpu"]),
        **{f"q_draft_{users}": f"{_sooner(plain, gpt, users):.1f}" for users in (1, 64, 1024)},
        q_draft_rate=f"{draft_rates[1] / draft_rates[0]:.1f}",
        **{f"q_dense_draft_{users}": f"{_sooner(unit, work, users):.1f}" for users in (1, 8, 32)},
        q_l40s=f"{l40s['rate']:.1f}",
        q_l40s_span=" to ".join(
            f"{l40s.compared.set_index('architecture')[end][l40s.best]:.1f}" for end in ("rate_low", "rate_high")
        ),
    )


def _split_pays(tokens: int) -> bool:
    """Whether a split of the case gains with such prompts, by the theorem."""
    of = case.UNIT.costs(Workload(tokens, case.WORK.n_out))
    law = {"delta_p": of.delta_p, "delta_h": of.delta_h, "t_w": of.t_w, "n_out": case.WORK.n_out}
    return bool(theory.pdd_gain_same(**law, sla_tpot=case.LIMITS.tpot) > 1)


def _drafting(unit: Unit) -> Unit:
    return unit.resized(drafts=1, accepted=0.85)


def _sooner(unit: Unit, work: Workload, users: int) -> float:
    """Return by how many times a draft makes a token come sooner."""
    return float(unit.tpot(work, users)) / float(_drafting(unit).tpot(work, users))


def _percent(share: float) -> str:
    return f"{100 * share:.0f}"


def rows_of(name: str, number: int) -> list[dict[str, str]]:
    """Return the rows of a setting of a play, for a process to compute."""
    return PLAYS[name].rows(number)


def lines(name: str, rows: Iterable[dict[str, str]]) -> list[dict[str, str]]:
    """Return the lines of the table for a play with such rows."""
    cells = [{"digest": TEXT + PLAYS[name].digest}, *rows]
    return [
        dict(zip(HEADER, (name, f"{number}", column, cell), strict=True))
        for number, row in enumerate(cells)
        for column, cell in row.items()
    ]


def main() -> None:
    """Play what is named, or all, on all processors, and write each play's lines into the table when it is done."""
    asked, path = sys.argv[1:] or list(PLAYS), data_dir() / "plays.csv"
    with path.open(encoding="utf-8") as file:
        table = [line for line in csv.DictReader(file) if line["play"] in PLAYS]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        begun = {name: [pool.submit(rows_of, name, n) for n in range(len(PLAYS[name].settings))] for name in asked}
        for name, futures in begun.items():
            table = [line for line in table if line["play"] != name]
            table += lines(name, (row for future in futures for row in future.result()))
            table.sort(key=lambda line: line["play"])  # the lines of a play stay in their order
            with path.open("w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, HEADER, lineterminator="\n")
                writer.writeheader()
                writer.writerows(table)
            print(name, flush=True)


if __name__ == "__main__":
    main()
