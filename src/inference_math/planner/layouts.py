"""Which layout serves most per GPU: TP, DP and EP tried, and in pools a layout for prefills and one for decodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from math import floor
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from inference_math.checks import as_whole
from inference_math.perf.answers import longest_step, sharing, steps_of
from inference_math.perf.batch import MOST_TOGETHER, largest_whole
from inference_math.perf.steps import kv_tokens
from inference_math.planner.case import Case, Solved, solve, under
from inference_math.unit import Unit
from inference_math.unit.coefficients import Draw
from inference_math.workload import SLA, Workload

__all__ = ["layouts", "search"]

COLUMNS = [
    "architecture", "layout", "prefill layout", "gpus", "rate", "tokens_per_gpu", "low", "high", "best_in", "batch",
    "ttft", "tpot",
]  # fmt: skip
_SIZES = (1, 2, 4, 8, 16)
_MOST = 512  # GPUs among which layouts are tried
_FIRST = 6  # layouts that are asked under draws, too
_DRAWS = 32  # of the calibration


class _Tried(NamedTuple):
    """A layout at its best: its row, and the requests/s that it serves under a draw, by the draw's number."""

    row: dict[str, Any]
    drawn: Callable[[int], float]


def layouts(unit: Unit, gpus: int) -> Iterator[Unit]:
    """Yield the layouts of a unit's model on at most so many GPUs: TP of 1 to 16, and of mixtures DP with EP.

    Those that do not exist are left out: a TP that does not divide the heads, GPUs too few for the weights.
    """
    most = as_whole("gpus", gpus, 1, _MOST)
    for tp in (size for size in _SIZES if size <= most):
        for dp in (size for size in _SIZES if tp * size <= most and (size == 1 or unit.model.is_mixture)):
            for ep in {1, tp * dp} if unit.model.is_mixture else {1}:
                if dp > 1 and ep == 1:
                    continue  # attention in groups goes with whole experts
                try:
                    yield unit.resized(tp=tp, dp=dp, ep=ep, pp=1)
                except ValueError:
                    continue


def search(unit: Unit, work: Workload, sla: SLA, gpus: int = 8) -> pd.DataFrame:
    """Return what each layout of at most `gpus` GPUs does at its best, most tokens of a GPU first.

    Columns: architecture; layout, in words, and prefill layout, where pools have two; gpus of what is repeated: a unit,
    or all pools of at most `gpus` GPUs; rate (requests/s of these GPUs); tokens_per_gpu (output tokens/s), of the
    calibration itself; of the first six layouts also low and high, the 5 % and 95 % quantiles of draws of the
    calibration, and best_in, the share of the draws in which it is the first of these; batch (decodes of a unit); ttft
    and tpot (s). Aggregated and chunked serving of each layout, and the best pair of layouts for pools. Rates are those
    at saturation, as in `plan`.

    Raises
    ------
    ValueError
        Where no layout has room for the model.

    Examples
    --------
    >>> from inference_math import SLA, Unit, Workload
    >>> from inference_math.planner.layouts import search
    >>> found = search(Unit.of("qwen3-30b-a3b", "h100-sxm", 2), Workload(1000, 300), SLA(1.0, 0.04), gpus=4)
    >>> sorted(set(found["architecture"]))
    ['aggregated', 'chunked', 'disaggregated']
    >>> float(found["best_in"].sum())
    1.0
    """
    if not work.n_out > 1:
        raise ValueError(f"work.n_out must be more than one token, not {work.n_out:g}")
    units = list(layouts(unit, gpus))
    if not units:
        raise ValueError(f"gpus must be enough for {unit.model.name} in {unit.weights} on {unit.gpu.name}, not {gpus}")
    cases = [Case(one, work, sla) for one in units]
    tried = [of for case in cases for of in _alone(case)] + _pools(cases, gpus)
    tried = sorted((one for one in tried if one.row["rate"] > 0), key=lambda one: -one.row["tokens_per_gpu"])
    frame = pd.DataFrame([one.row for one in tried], columns=COLUMNS)
    told = pd.DataFrame(_drawn(tried[:_FIRST], work.n_out), columns=["low", "high", "best_in"])
    return frame.assign(**told.reindex(frame.index))


def _drawn(tried: Sequence[_Tried], n_out: float) -> list[dict[str, float]]:
    """Return for each layout both ends of its tokens per GPU, and in which share of the draws it has the most."""
    if not tried:
        return []
    each = [[n_out * one.drawn(draw) / one.row["gpus"] for draw in range(_DRAWS)] for one in tried]
    first = np.argmax(each, axis=0)
    ends = np.quantile(each, (0.05, 0.95), axis=1).T
    return [
        {"low": low, "high": high, "best_in": float(np.mean(first == place))}
        for place, (low, high) in enumerate(ends.tolist())
    ]


def _alone(case: Case) -> Iterator[_Tried]:
    """Yield aggregated and chunked serving of a unit."""
    draws = case.draws(_DRAWS)

    @cache
    def at(draw: int) -> Solved:
        return solve(case, draws[draw])

    for name, row in solve(case).found["rows"].items():
        if name != "disaggregated":
            of = _row(name, case, None, case.unit.gpus, row["rate"], row)
            yield _Tried(of, lambda draw, name=name: float(at(draw).found["rows"][name]["rate"]))  # type: ignore[misc]


def _row(name: str, case: Case, prefill: Unit | None, gpus: int, rate: float, of: Any) -> dict[str, Any]:
    return {
        "architecture": name, "layout": _words(case.unit), "prefill layout": _words(prefill) if prefill else "",
        "gpus": gpus, "rate": rate, "tokens_per_gpu": rate * case.work.n_out / gpus, "batch": of["batch"],
        "ttft": of["ttft"], "tpot": of["tpot"],
    }  # fmt: skip


def _words(unit: Unit) -> str:
    parts = [f"TP {unit.tp}"] + [
        f"{name.upper()} {getattr(unit, name)}" for name in ("dp", "ep") if getattr(unit, name) > 1
    ]
    return ", ".join(parts)


def _pools(cases: Sequence[Case], gpus: int) -> list[_Tried]:
    """Return the best pair of layouts for pools of whole units on at most so many GPUs, if there is one."""
    small = [case for case in cases if case.unit.gpus < gpus]
    prefills, decodes = [(case, *_prefill(case)) for case in small], [(case, *_decode(case)) for case in small]
    best, most = [], 0.0
    for prefill, fed, ttft in prefills:
        for decode, served, batch, gap in decodes:
            if not (fed and served):
                continue
            for many in range(1, floor((gpus - decode.unit.gpus) / prefill.unit.gpus) + 1):
                for others in range(1, floor((gpus - many * prefill.unit.gpus) / decode.unit.gpus) + 1):
                    used = many * prefill.unit.gpus + others * decode.unit.gpus
                    rate = min(many * fed, others * served)
                    if rate / used > most * (1 + 1e-9):
                        most = rate / used
                        found = {"batch": batch, "ttft": ttft, "tpot": gap}
                        row = _row("disaggregated", decode, prefill.unit, used, rate, found)
                        best = [_Tried(row, _paired(prefill, many, decode, others))]
    return best


def _paired(prefill: Case, many: int, decode: Case, others: int) -> Callable[[int], float]:
    """Return what serves under a draw where so many units prefill and so many decode."""
    each = prefill.draws(_DRAWS), decode.draws(_DRAWS)

    def rate(draw: int) -> float:
        return min(many * _prefill(prefill, each[0][draw])[0], others * _decode(decode, each[1][draw])[0])

    return rate


def _prefill(case: Case, draw: Draw | None = None) -> tuple[float, float]:
    """Return (prompts/s, seconds of a prefill) of a unit that only computes prompts, together as far as TTFT allows."""
    step = under(case, draw)["mixed"]
    room = min(kv_tokens(case.unit.numbers, case.work.n_in) / case.work.n_in, MOST_TOGETHER)
    most = largest_whole(room, lambda k: step(0.0, float(k)) <= case.sla.ttft)
    rates = [(k / step(0.0, float(k)), step(0.0, float(k))) for k in {1, max(most // 2, 1), most} if k <= most]
    return max(rates, default=(0.0, 0.0))


def _decode(case: Case, draw: Draw | None = None) -> tuple[float, int, float]:
    """Return (requests/s, decodes, seconds of a token) of a unit that only decodes, as many as the limits allow."""
    step, longest = under(case, draw)["mixed"], longest_step(case.plain)
    batch = largest_whole(min(case.unit.places(case.work), MOST_TOGETHER), lambda b: step(float(b), 0.0) <= longest)
    if not batch:
        return 0.0, 0, 0.0
    seconds = step(float(batch), 0.0)
    return batch / ((steps_of(case.plain) - 1) * seconds), batch, seconds / sharing(case.plain)
